"""Simplices: the vectors of nonnegative elements with sum 1, one for each line of an array."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from slomodel.solve.norms import EPS, Vector, norm
from slomodel.solve.sets.convex_set import Mask, Polyhedron, to_projection

# A sum counts as 1 up to this multiple of the rounding error of adding its elements.
OF_A_SUM = 8.0


@dataclass(frozen=True, slots=True)
class Simplex:
    """{x : x ≥ 0, sum of each line along `axis` = 1} for x (n,), an array of `shape` in C order."""

    shape: tuple[int, ...]
    axis: int = -1

    convex = True
    polyhedral = True
    is_box = False

    def contains(self, x: Vector, slack: float = 0.0) -> bool:
        if slack == 0.0:
            if self._is_one and len(x):
                rounding = OF_A_SUM * EPS * math.sqrt(len(x))
                return bool(x.min() >= 0.0 and abs(x.sum() - 1.0) <= rounding)
            rows = self._rows(x)
            off = np.abs(rows.sum(axis=1) - 1.0)
            rounding = OF_A_SUM * EPS * math.sqrt(rows.shape[1])
            return bool((rows >= 0.0).all() and (off <= rounding).all())
        nearest = np.empty_like(x)
        self.project(x, nearest)
        return norm(x - nearest) <= slack

    def project(self, x: Vector, out: Vector) -> bool:
        """The projection of Held, Wolfe & Crowder (1974): sort, and find the common shift."""
        if self.contains(x):
            np.copyto(out, x)
            return False
        if self._is_one:
            _project_row(x, out)
            return True
        rows = self._rows(x)
        # The shift is computed relative to the largest element, so that large x lose no digits.
        rows = rows - rows.max(axis=1, keepdims=True)
        down = -np.sort(-rows, axis=1)
        counts = np.arange(1, rows.shape[1] + 1)
        shifts = (np.cumsum(down, axis=1) - 1.0) / counts
        last = np.maximum((down > shifts).sum(axis=1) - 1, 0)
        rows = np.maximum(rows - shifts[np.arange(len(rows)), last][:, None], 0.0)
        self._write(rows / rows.sum(axis=1, keepdims=True), out)
        return True

    def tangent(self, x: Vector, v: Vector, out: Vector) -> None:
        if self._is_one:
            np.copyto(out, _tangent_of_row(x, v))
            return
        self._write(self._tangent(self._rows(x), self._rows(v)), out)

    def _tangent(self, x: Vector, v: Vector) -> Vector:
        """v less the shift for which its free elements and the positive ones at 0 have sum 0."""
        zero = x <= 0.0
        # Free elements first, then those at 0 from the largest down.
        order = np.lexsort((-v, zero), axis=1)
        sorted_v = np.take_along_axis(v, order, axis=1)
        sorted_zero = np.take_along_axis(zero, order, axis=1)
        means = np.cumsum(sorted_v, axis=1) / np.arange(1, v.shape[1] + 1)
        before = np.concatenate([np.full((len(v), 1), -math.inf), means[:, :-1]], axis=1)
        joins = ~sorted_zero | (sorted_v > before)
        last = np.logical_and.accumulate(joins, axis=1).sum(axis=1) - 1
        shift = means[np.arange(len(v)), last][:, None]
        moved: Vector = v - shift
        return np.where(zero, np.maximum(moved, 0.0), moved)

    def projected_gradient(self, x: Vector, g: Vector, out: Vector) -> None:
        to_projection(self, x, g, out)

    def face(self, x: Vector, r: Vector) -> SimplexFace:
        if self._is_one:
            moving = (x > 0.0) | (_tangent_of_row(x, -r) > 0.0)
            return SimplexFace(self, moving[None, :])
        rows = self._rows(x)
        free = (rows > 0.0) | (self._tangent(rows, -self._rows(r)) > 0.0)
        return SimplexFace(self, free)

    def at_bounds(self, x: Vector) -> Mask:
        return x <= 0.0

    def limits(self) -> tuple[Vector, Vector]:
        n = math.prod(self.shape)
        return np.zeros(n), np.full(n, 1.0 + OF_A_SUM * EPS * math.sqrt(n))

    def polyhedron(self) -> Polyhedron:
        # Upper ends would only repeat what the sums and the lower ends say.
        n, length = math.prod(self.shape), self.shape[self.axis]
        E = np.empty((n // length, n))
        for k, line in enumerate(np.eye(n // length)):
            self._write(np.repeat(line[:, None], length, axis=1), E[k])
        return Polyhedron(np.zeros(n), np.full(n, math.inf), E)

    def interior_point(self) -> Vector:
        return np.full(math.prod(self.shape), 1.0 / self.shape[self.axis])

    @property
    def _is_one(self) -> bool:
        """Whether there is a single line, whose elements need no rows."""
        return math.prod(self.shape) == self.shape[self.axis]

    def _rows(self, x: Vector) -> Vector:
        """The lines of x (n,) as rows (n/K, K)."""
        if self.has_rows:
            return x.reshape(-1, self.shape[-1])
        lines = np.moveaxis(x.reshape(self.shape), self.axis, -1)
        return lines.reshape(-1, self.shape[self.axis])

    @property
    def has_rows(self) -> bool:
        """Whether the lines are consecutive elements, which need no transposition."""
        return self.axis in (-1, len(self.shape) - 1)

    def _write(self, rows: Vector, out: Vector) -> None:
        if self.has_rows:
            out[:] = rows.ravel()
            return
        array = out.reshape(self.shape)
        lines = np.moveaxis(array, self.axis, -1)
        lines[...] = rows.reshape(lines.shape)


@dataclass(frozen=True, slots=True)
class SimplexFace:
    """The face in which the elements in `free` (n/K, K) move, by steps of sum 0 in every row."""

    simplex: Simplex
    free: Mask

    shift = None
    whole = False
    coordinates = None

    def project(self, v: Vector) -> Vector:
        simplex, before = self.simplex, v.shape[:-1]
        if simplex.has_rows:
            return self._moved(v.reshape(*before, *self.free.shape)).reshape(v.shape)
        axis = simplex.axis % len(simplex.shape) + len(before)
        lines = np.moveaxis(v.reshape(*before, *simplex.shape), axis, -1)
        rows = self._moved(lines.reshape(*before, *self.free.shape))
        projected: Vector = np.moveaxis(rows.reshape(lines.shape), -1, axis)
        return projected.reshape(v.shape)

    def _moved(self, rows: Vector) -> Vector:
        """The projection of rows (…, n/K, K)."""
        rows = np.where(self.free, rows, 0.0)
        rows -= rows.sum(axis=-1, keepdims=True) / self.free.sum(axis=1, keepdims=True)
        return np.where(self.free, rows, 0.0)


def _project_row(x: Vector, out: Vector) -> None:
    """`Simplex.project` of a single line x (n,), which takes a fifth of the time of rows."""
    shifted = x - x.max()
    down = np.sort(shifted)[::-1]
    shifts = (down.cumsum() - 1.0) / np.arange(1, len(x) + 1)
    last = max(int(np.count_nonzero(down > shifts)) - 1, 0)
    shifted -= shifts[last]
    np.maximum(shifted, 0.0, out=out)
    out /= out.sum()


def _tangent_of_row(x: Vector, v: Vector) -> Vector:
    """`Simplex._tangent` of a single line x (n,) and v (n,)."""
    zero = x <= 0.0
    free = v[~zero]
    count = len(free)
    shift = float(free.sum()) / count if count else -math.inf
    if count == len(v):
        return v - shift
    held = v[zero]
    if held.max() > shift:
        # Elements at 0 join from the largest down, while they exceed the mean of those before.
        down = np.sort(held)[::-1]
        sums = (float(free.sum()) + down.cumsum()) / np.arange(count + 1, len(v) + 1)
        before = np.concatenate([[shift], sums[:-1]])
        shift = float(sums[int(np.count_nonzero(down > before)) - 1])
    moved: Vector = v - shift
    return np.where(zero, np.maximum(moved, 0.0), moved)
