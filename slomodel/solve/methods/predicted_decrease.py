"""The stop test of `auto`: what a step to the minimum of a model of f would still change."""

from __future__ import annotations

import numpy as np

from slomodel.solve.norms import EPS, Vector
from slomodel.solve.subroutine import Iterate


class PredictedDecrease:
    """Whether a point is stationary to the relative tolerance `gtol`, in any units of f and x.

    It is if ‖∇f‖ ≤ gtol·max(|f(x0)|, ‖∇f(x0)‖), and a step v to the minimum of a quadratic model
    either lowers f by at most gtol²·|f|, or changes no variable by more than gtol times the largest
    magnitude that it has had. The second is for least values of 0, of which no decrease is a small
    part; where the Hessian vanishes there as well, |f| may be replaced by eps times the change of f
    that its curvatures cause over these magnitudes.
    Dennis & Schnabel, Numerical Methods for Unconstrained Optimization (1983), Section 7.2.
    """

    def __init__(self, start: Iterate, gtol: float) -> None:
        self._gtol = gtol
        self._steep = max(abs(start.f), start.gnorm)
        self._size = np.abs(start.x)

    def met(self, at: Iterate, v: Vector, decrease: float, curvatures: Vector | None) -> bool:
        """Whether the test is met at a point by a step v (n,) with its predicted decrease.

        `curvatures` (n,) are the diagonal elements of the Hessian, if they are known.
        """
        np.maximum(self._size, np.abs(at.x), out=self._size)
        gtol = self._gtol
        if not at.gnorm <= gtol * self._steep:
            return False
        size = abs(at.f)
        if curvatures is not None:
            size += EPS * float(np.abs(curvatures).dot(self._size * self._size))
        return decrease <= gtol * gtol * size or bool((np.abs(v) <= gtol * self._size).all())
