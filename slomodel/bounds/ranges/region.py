"""Sets of displacements that bounds hold over: balls, and products of intervals with a ball."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slomodel.bounds.arithmetic.rounding import Array, up_add, up_matmul, up_mul, up_norm


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """K = {y (n,): |y_j| <= half_j, and the others of length at most `rest`}.

    Unknowns with an infinite `half` are the others; K is a ball where all are. `radius` is an upper
    bound on ‖y‖. For convex symmetric K the largest g·y is a norm of g, and bilinear forms have
    norms over K as over balls: sup over y, y' in K of |D²u[y, y']| obeys the chain rule.
    """

    half: Array
    rest: float
    radius: float

    @classmethod
    def ball(cls, n: int, radius: float) -> Region:
        return cls(np.full(n, np.inf), radius, radius)

    @classmethod
    def product(cls, half: Array, rest: float) -> Region:
        cut = np.isfinite(half)
        own = [*half[cut], rest] if not cut.all() else [*half[cut]]
        return cls(half, rest, float(up_norm(np.asarray(own))))

    @property
    def is_ball(self) -> bool:
        return not bool(np.isfinite(self.half).any())

    @property
    def widths(self) -> Array:
        """The largest |y_j| (n,)."""
        return np.minimum(self.half, self.rest if not np.isfinite(self.half).all() else np.inf)

    def reach(self, rows: Array) -> Array:
        """Upper bounds on the largest g·y over K for the columns g of rows >= 0 (n, ..)."""
        whole = np.asarray(up_mul(np.asarray(self.radius), up_norm(rows, 0)))
        if self.is_ball:
            return whole
        cut = np.isfinite(self.half)
        flat = np.reshape(rows, (len(rows), -1))
        own = up_matmul(flat[cut].T, self.half[cut])
        if not cut.all():
            own = up_add(own, up_mul(np.asarray(self.rest), up_norm(flat[~cut], 0)))
        return np.minimum(whole, np.reshape(own, whole.shape))
