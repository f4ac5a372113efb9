"""Closed balls, and Euclidean norms of vectors at any scale."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

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
        share = generator.random() ** (1.0 / n)
        return self.at(direction * (share / norm(direction)))
