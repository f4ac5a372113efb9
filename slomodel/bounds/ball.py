"""Closed balls, products of intervals with balls, and Euclidean norms of vectors at any scale."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from slomodel.bounds.arithmetic.rounding import Array, up_add, up_matmul, up_mul, up_norm

Vector = NDArray[np.float64]


def norm(v: Vector) -> float:
    """Euclidean norm of (n,), without overflow at 1e200 or loss of accuracy at 1e-200."""
    largest = float(np.abs(v).max(initial=0.0))
    if largest == 0.0 or not math.isfinite(largest):
        return largest
    return largest * float(np.linalg.norm(v / largest))


def unit(v: Vector) -> Vector | None:
    """v/‖v‖ (n,); None where v is 0 or not finite."""
    length = norm(v)
    return v / length if 0.0 < length < math.inf else None


@dataclass(frozen=True, slots=True)
class Ball:
    """The closed ball around a centre (n,), or its part in a box that holds the centre.

    `box` holds the lower and the upper ends (n,). Points are moved into the box, and thereby closer
    to the centre.
    """

    centre: Vector
    radius: float
    box: tuple[Vector, Vector] | None = None

    def at(self, direction: Vector) -> Vector:
        """The point of the boundary in a direction (n,) of unit length, moved into the box."""
        return self._in_box(self.centre + self.radius * direction)

    def _in_box(self, x: Vector) -> Vector:
        return x if self.box is None else np.clip(x, *self.box)

    def inside(self, x: Vector) -> Vector:
        """x (n,), moved radially to the boundary if it lies outside, and into the box."""
        offset = x - self.centre
        length = norm(offset)
        return self._in_box(x) if length <= self.radius else self.at(offset / length)

    def random(self, generator: Generator) -> Vector:
        """A point distributed uniformly in the ball, moved into the box."""
        n = len(self.centre)
        direction = generator.standard_normal(n)
        fraction = generator.random() ** (1.0 / n)
        return self.at(direction * (fraction / norm(direction)))


@dataclass(frozen=True, slots=True, eq=False)
class Displacements:
    """K = {y (n,): |y_j| <= half_j, and the others of length at most `rest`}.

    Unknowns with an infinite `half` are the others; K is a ball where all are. `radius` is an upper
    bound on ‖y‖. For convex symmetric K the largest g·y is a norm of g, and bilinear forms have
    norms over K as over balls: sup over y, y' in K of |D²u[y, y']| obeys the chain rule.
    """

    half: Array
    rest: float
    radius: float

    @classmethod
    def ball(cls, n: int, radius: float) -> Displacements:
        return cls(np.full(n, np.inf), radius, radius)

    @classmethod
    def product(cls, half: Array, rest: float) -> Displacements:
        cut = np.isfinite(half)
        own = [*half[cut], rest] if not cut.all() else [*half[cut]]
        return cls(half, rest, float(up_norm(np.asarray(own))))

    @property
    def is_ball(self) -> bool:
        return not bool(np.isfinite(self.half).any())

    @property
    def widths(self) -> Array:
        """The largest |y_j| (n,), by `rest` for the unknowns that have no half."""
        return np.where(np.isfinite(self.half), self.half, self.rest)

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
