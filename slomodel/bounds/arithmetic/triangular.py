"""Triangular systems y = Ly + b of intervals, L sparse and strictly triangular.

For the midpoint M of L, R near (I - M)⁻¹ and any z, y - z = G(y - z) + R(b - z + Lz) with G = I -
R(I - L), which is strictly triangular too, so that |y - z| <= e for every e >= 0 with |G|e + |R(b -
z + Lz)| <= e. Unlike forward substitution in intervals, whose radii grow like those of |L|, this
preserves the cancellation in powers of L. It is done for one block of rows after another.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.sparse import csr_array

from slomodel.bounds.arithmetic.interval import Interval, around, interval, point
from slomodel.bounds.arithmetic.interval_einsum import contract
from slomodel.bounds.arithmetic.rounding import (
    Array,
    gamma,
    nonnegative_sum,
    underflow,
    up_add,
    up_matmul,
)

Places = NDArray[np.intp]
_ROWS = 640
"""Rows that are solved together: their factor stays in the cache."""
_INFLATIONS = 6
"""Attempts to enlarge e until Ge + rest <= e; the first one nearly always does."""
_MOST_KNOWN = 8
"""Factors that are cached, of n² numbers each."""


@dataclass(frozen=True, slots=True)
class SparseIntervals:
    """A matrix (m, n) as the sum of its entries, which may repeat places."""

    shape: tuple[int, int]
    rows: Places
    columns: Places
    entries: Interval

    @property
    def transposed(self) -> SparseIntervals:
        """The transpose."""
        return SparseIntervals(self.shape[::-1], self.columns, self.rows, self.entries)

    def part(self, rows: slice, columns: slice) -> SparseIntervals:
        """The block of these rows and columns."""
        inside = (self.rows >= rows.start) & (self.rows < rows.stop)
        inside &= (self.columns >= columns.start) & (self.columns < columns.stop)
        return SparseIntervals(
            (rows.stop - rows.start, columns.stop - columns.start),
            self.rows[inside] - rows.start,
            self.columns[inside] - columns.start,
            self.entries.each(lambda array: array[inside]),
        )

    def times(self, x: Interval) -> Interval:
        """The product with a dense x (n, columns), by midpoints and radii."""
        order = np.argsort(self.rows, kind="stable")
        starts = np.searchsorted(self.rows[order], np.arange(self.shape[0] + 1))
        terms = int(np.diff(starts).max(initial=0)) + 2
        mid = self.entries.mid

        def matrix(data: Array) -> csr_array:
            return csr_array((data[order], self.columns[order], starts), shape=self.shape)

        def nonnegative(left: Array, right: Array) -> Array:
            return nonnegative_sum(matrix(left) @ right, terms, underflow(terms))

        own, x_mid = self.entries.rad_about(mid), x.mid
        size, x_size = np.abs(mid), np.abs(x_mid)
        rounding = gamma(2 * terms)
        with np.errstate(all="ignore"):
            radius = nonnegative(np.asarray(up_add(own, size * rounding)), x_size)
            radius = up_add(radius, np.full(radius.shape, underflow(terms)))
            if not x.is_point:
                radius = up_add(radius, nonnegative(self.entries.magnitude, x.rad_about(x_mid)))
            middle = matrix(mid) @ x_mid
            return around(middle, radius)

    def midpoint(self) -> Array:
        """A dense matrix near the midpoint."""
        dense = np.zeros(self.shape)
        np.add.at(dense, (self.rows, self.columns), self.entries.mid)
        return dense


def solved(L: SparseIntervals, b: Interval, order: Places) -> Interval | None:
    """y (n, columns) with y = Ly + b; L is strictly lower triangular in the given order.

    None where it is not, or where rounding or overflow leaves no bound.
    """
    n, back = len(order), np.argsort(order)
    moved = SparseIntervals(L.shape, back[L.rows], back[L.columns], L.entries)
    if (moved.columns >= moved.rows).any():
        return None
    b = b.each(lambda array: array[order])
    lo, hi = np.empty(b.shape), np.empty(b.shape)
    for start in range(0, n, _ROWS):
        own = slice(start, min(start + _ROWS, n))
        right = b.each(itemgetter(own))
        if start:
            before = moved.part(own, slice(0, start))
            right = right + before.times(interval(lo[:start], hi[:start]))
        solved_block = _solved_block(moved.part(own, own), right)
        if solved_block is None:
            return None
        lo[own], hi[own] = solved_block.lo, solved_block.hi
    return Interval(lo[back], hi[back])


def _solved_block(L: SparseIntervals, b: Interval) -> Interval | None:
    with np.errstate(all="ignore"):
        system = _known_systems.of(L)
        if system is None:
            return None
        z = system.R @ b.mid
        if not np.isfinite(z).all():
            return None
        dims = (len(z), len(z), z.shape[1])
        beyond = b - point(z) + L.times(point(z))
        rest = contract([(point(system.R), (0, 1)), (beyond, (1, 2))], (0, 2), dims).magnitude
        radius = _majorant(system.G, rest)
    return None if radius is None else around(z, radius)


@dataclass(frozen=True, slots=True)
class _System:
    """R near (I - M)⁻¹ for the midpoint M of L, and G >= |I - R(I - L)|."""

    R: Array
    G: Array

    @classmethod
    def of(cls, L: SparseIntervals) -> _System | None:
        """None where the inverse overflows."""
        one = np.eye(L.shape[0])
        A = one - L.midpoint()
        R = solve_triangular(A, one, lower=True, unit_diagonal=True, check_finite=False)
        if not np.isfinite(R).all():
            return None
        product = L.transposed.times(point(R.T)).each(np.transpose)
        return cls(R, np.tril((point(one) - point(R) + product).magnitude, -1))


class _KnownSystems:
    """The last few systems: one L serves derivatives of several orders and many right sides."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[bytes, _System | None] = {}

    def of(self, L: SparseIntervals) -> _System | None:
        """The system of L, cached or new."""
        parts = (L.entries.lo, L.entries.hi, L.rows, L.columns)
        key = b"".join(blake2b(part.tobytes(), digest_size=16).digest() for part in parts)
        key += len(L.rows).to_bytes(8, "little") + L.shape[0].to_bytes(8, "little")
        if key not in self._known:
            while len(self._known) >= _MOST_KNOWN:
                self._known.pop(next(iter(self._known)))
            self._known[key] = _System.of(L)
        return self._known[key]


_known_systems = _KnownSystems()


def _majorant(G: Array, rest: Array) -> Array | None:
    """Some e with Ge + rest <= e, for a strictly lower triangular G >= 0; None if none is found."""
    one = np.eye(len(G))
    e = solve_triangular(one - G, rest, lower=True, unit_diagonal=True, check_finite=False)
    factor = 1.0 + 1e-9
    for _ in range(_INFLATIONS):
        e = np.abs(e) * factor + 1e-300
        if not np.isfinite(e).all():
            return None
        again = up_add(up_matmul(G, e), rest)
        if (again <= e).all():
            return np.asarray(again)
        e, factor = np.maximum(e, again), factor + 1e-3
    return None
