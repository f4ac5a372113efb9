"""Truncated Newton directions: Newton's equation solved by conjugate gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np

from slomodel.solve.directions.direction import SecantPair, of_search_length
from slomodel.solve.norms import Vector, norm
from slomodel.solve.subroutine import Iterate

# Bounds on the number of Hessian–vector products for one direction, which is otherwise 2n.
MOST_PRODUCTS = 250
FEWEST_PRODUCTS = 10
# Relative tolerance on ‖Hv + g‖/‖g‖: √(‖g‖/‖g₀‖), for superlinear convergence, and at most this.
LOOSEST = 0.5


class Products(Protocol):
    """Products with the Hessian, or with its restriction to a subspace."""

    @property
    def eps(self) -> float:
        """The rounding unit of the products."""
        ...

    def hvp(self, x: Vector, v: Vector, out: Vector) -> None:
        """Write the Hessian at x times v into `out`, all (n,)."""
        ...


class NewtonCG:
    """v with Hv ≈ −g by conjugate gradients, up to the first direction without positive curvature.

    If that direction is −g itself, v is −g scaled to the length of the search. `took` is called
    with the length of each step along the vector of the last product. Dembo & Steihaug,
    Truncated-Newton algorithms for large-scale optimization (1983).
    """

    wants_pairs = False
    predicting = None
    in_c = None
    kind = ""
    units = None

    def __init__(
        self,
        evaluate: Products,
        start: Iterate,
        delta_bar: float,
        took: Callable[[float], None] | None = None,
    ) -> None:
        self._took = took
        self._evaluate = evaluate
        self._delta_bar = delta_bar
        self._first_gnorm = start.gnorm
        self._residual = np.empty_like(start.x)
        self._d = np.empty_like(start.x)
        self._Hd = np.empty_like(start.x)

    def propose(self, at: Iterate, out: Vector, left: float = math.inf) -> float:
        """Write v (n,) into `out` after at most `left` products, but at least FEWEST_PRODUCTS."""
        enough = min(LOOSEST, math.sqrt(at.gnorm / self._first_gnorm))
        most = max(FEWEST_PRODUCTS, int(min(2 * len(at.x), MOST_PRODUCTS, left)))
        return self.truncated(at, out, enough, most)

    def truncated(self, at: Iterate, out: Vector, enough: float, most: int) -> float:
        """Write v (n,) with ‖Hv + g‖ ≤ enough·‖g‖, or of `most` products, into `out`; its norm."""
        r, d, Hd = self._residual, self._d, self._Hd
        # In units of ‖g‖, so that no square overflows.
        np.divide(at.g, at.gnorm, out=r)
        np.negative(r, out=d)
        out[:] = 0.0
        rr = 1.0
        for k in range(most):
            self._evaluate.hvp(at.x, d, Hd)
            curvature = float(d.dot(Hd))
            if not self._evaluate.eps * float(np.abs(d).dot(np.abs(Hd))) < curvature < math.inf:
                if k == 0:
                    return self.fallback(at, out)
                break
            step = rr / curvature
            if self._took is not None:
                self._took(step)
            out += np.multiply(d, step, out=d)
            r += np.multiply(Hd, step, out=Hd)
            before, rr = rr, float(r.dot(r))
            if rr <= enough * enough:
                break
            d *= (rr / before) / step
            d -= r
        out *= at.gnorm
        return norm(out)

    def learn(self, pair: SecantPair) -> None:
        pass

    def fallback(self, at: Iterate, out: Vector) -> float:
        return of_search_length(at, self._delta_bar, out)
