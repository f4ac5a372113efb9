"""Power series in few unknowns with a norm of what their coefficients leave out.

Let A be the series u = Σ u_α z^α with ‖u‖ < ∞ in a norm of `arithmetic/monomials.py`: a Banach
algebra, ‖uv‖ <= ‖u‖‖v‖, whose elements are analytic functions on the unit ball, or where |z_i| <= 1
for the unknowns that are bounded one by one and ‖z‖ <= 1 for the others. Norms depend on |u_α| and
are at most Σ |u_α|. A `PowerSeries` stands for all u = c + t + e of A with the polynomial c, the
coefficients of t above the degree of the table and ‖t‖ <= `tail`, and ‖e‖ <= `error`, e of any
degree. Sums and products of such u are again of this kind:

    (c + t + e)(c' + t' + e') = cc' + tt' + ct' + tc' + te' + et' + e(c' + e') + ce',

where all before e(c' + e') but the low degrees of cc' are above the degree of the table. Errors of
rounding count as e. Upper bounds follow the discipline of `arithmetic/upper_bounds.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from operator import itemgetter

import numpy as np
from scipy.sparse import csr_array

from slomodel.bounds.arithmetic.interval import Interval, around, point
from slomodel.bounds.arithmetic.monomials import Monomials
from slomodel.bounds.arithmetic.rounding import SMALLEST_NORMAL, UNIT, Array
from slomodel.bounds.arithmetic.upper_bounds import FLOOR, floored, rounded_up

_ROUNDINGS = 2**16
"""Roundings on the longest path of an expression >= 0: tables have half as many monomials."""
_MOST_AT_ONCE = 2**20
"""Products of coefficients computed together, 8 MB."""
_FEW_TOGETHER = 2**15
"""Coefficients of several series up to which one call of NumPy for all is faster than several."""


def enlarged(x: Array) -> Array:
    """Upper bounds on expressions >= 0 from their computed values; what is unknown is infinite."""
    return rounded_up(x, _ROUNDINGS)


@dataclass(frozen=True, eq=False)
class PowerSeries:
    """Arrays of series: `c` (monomials up to some degree, *shape), `tail` and `error` (*shape)."""

    table: Monomials
    c: Array
    tail: Array
    error: Array

    @classmethod
    def constant(cls, table: Monomials, a: Interval) -> PowerSeries:
        """Numbers within intervals."""
        middle = a.mid
        error = np.zeros(a.shape) if a.is_point else a.rad_about(middle)
        return cls(table, middle[np.newaxis], np.zeros(a.shape), error)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tail.shape

    @property
    def degree(self) -> int:
        """The degree of the coefficients that are stored."""
        return self.table.ends.index(len(self.c))

    @property
    def is_constant(self) -> bool:
        """Whether it is a number, known within its error."""
        return len(self.c) == 1 and not self.tail.any()

    @cached_property
    def by_degree(self) -> Array:
        """The norms of the coefficients of each degree (degree + 1, *shape); rounded to nearest."""
        return norms_by_degree(self.table, self.c, self.degree)

    @property
    def interval(self) -> Interval:
        """The interval of the constant term and its error."""
        return around(self.c[0], self.error) if self.error.any() else point(self.c[0])

    def range_over(self, part: float) -> Interval:
        """The values for |z_i| <= part <= 1."""
        if self.is_constant:
            return self.interval
        moved = _values(self.by_degree[1:], part)
        moved = moved + self.tail * part ** (self.table.degree + 1) + self.error
        return around(self.c[0], enlarged(moved))

    def each(self, view: Callable[[Array], Array]) -> PowerSeries:
        """The series with a view of its elements; the view gets arrays with one axis in front."""
        return PowerSeries(
            self.table,
            view(self.c),
            view(self.tail[np.newaxis])[0],
            view(self.error[np.newaxis])[0],
        )

    def padded(self, degree: int) -> Array:
        """The coefficients up to a degree that is not lower than its own."""
        missing = self.table.ends[degree] - len(self.c)
        return np.pad(self.c, [(0, missing)] + [(0, 0)] * (self.c.ndim - 1)) if missing else self.c

    def with_error(self, error: Array) -> PowerSeries:
        """The series with a further error."""
        return PowerSeries(self.table, self.c, self.tail, enlarged(self.error + error))

    def __neg__(self) -> PowerSeries:
        return PowerSeries(self.table, -self.c, self.tail, self.error)

    def __add__(self, other: PowerSeries) -> PowerSeries:
        a, b = (self, other) if len(self.c) >= len(other.c) else (other, self)
        shape = np.broadcast_shapes(a.shape, b.shape)
        common = len(b.c)
        c = np.empty((len(a.c), *shape))
        np.add(_of_rank(a.c[:common], 1 + len(shape)), _of_rank(b.c, 1 + len(shape)), c[:common])
        c[common:] = _of_rank(a.c[common:], 1 + len(shape))
        rounding = UNIT * np.abs(c[:common]).sum(axis=0)
        return PowerSeries(
            self.table,
            c,
            enlarged(self.tail + other.tail),
            enlarged(self.error + other.error + rounding),
        )

    def __sub__(self, other: PowerSeries) -> PowerSeries:
        return self + (-other)

    def __mul__(self, other: PowerSeries) -> PowerSeries:
        """The product, elementwise."""
        c = _product(self.table, self.c, other.c)
        return self._times(other, c, self.by_degree, other.by_degree, np.multiply, 0)

    def __matmul__(self, other: PowerSeries) -> PowerSeries:
        """The products of matrices (…, n, k) and (…, k, m)."""
        c = _product_of_matrices(self, other)
        own, others = self.by_degree, other.by_degree
        return self._times(other, c, own, others, np.matmul, self.shape[-1])

    def _times(
        self,
        other: PowerSeries,
        c: Array,
        own: Array,
        others: Array,
        product: Callable[[Array, Array], Array],
        summed: int,
    ) -> PowerSeries:
        """The product with coefficients c, from the norms of both by degree."""
        top = self.table.degree
        whole, whole_of_other = own.sum(axis=0), others.sum(axis=0)
        tail = np.zeros(c.shape[1:])
        first = max(top + 2 - len(others), 0)
        if first < len(own):
            rank = max(own.ndim, others.ndim)
            left, right = _of_rank(own, rank), _of_rank(others, rank)
            from_each = np.cumsum(right[::-1], axis=0)[::-1]
            above = from_each[top + 2 - len(own) : top + 2 - first][::-1]
            tail = product(left[first:], above).sum(axis=0)
        if self.tail.any():
            tail = tail + product(self.tail, whole_of_other + other.tail + other.error)
        if other.tail.any():
            tail = tail + product(whole + self.error, other.tail)
        # z^α of degree k has at most 2^k factors z^β, each with one product.
        pairs = min(len(self.c), 2**top) if len(other.c) > 1 else 1
        roundings = pairs * max(summed, 1) + 4
        error = (1.01 * roundings * UNIT) * product(whole, whole_of_other)
        if self.error.any():
            error = error + product(self.error, whole_of_other + other.error)
        if other.error.any():
            error = error + product(whole, other.error)
        return PowerSeries(self.table, c, enlarged(np.asarray(tail)), enlarged(np.asarray(error)))

    @property
    def without_constant(self) -> PowerSeries:
        """The series less the constant of its coefficients, which is exact."""
        c = self.c.copy()
        c[0] = 0.0
        return PowerSeries(self.table, c, self.tail, self.error)

    @property
    def norm(self) -> Array:
        """Upper bounds on ‖u‖ (*shape)."""
        return enlarged(self.by_degree.sum(axis=0) + self.tail + self.error)

    @property
    def size_of_coefficients(self) -> Array:
        """Upper bounds on the norms of the polynomials c (*shape)."""
        return enlarged(self.by_degree.sum(axis=0))


def norms_by_degree(table: Monomials, c: Array, degree: int) -> Array:
    """The norms of coefficients (monomials, *shape) of each degree; rounded to nearest."""
    classes = table.classes(degree)
    if classes is None or degree == 0:
        return floored(np.add.reduceat(np.abs(c), table.starts(degree), axis=0))
    flat = c.reshape((len(c), -1))
    squares = np.square(flat)
    if np.count_nonzero(squares) < np.count_nonzero(flat):
        # What else underflows is far below FLOOR.
        squares = np.maximum(squares, SMALLEST_NORMAL * (flat != 0.0))
    root = np.sqrt(classes.sums @ squares)
    if np.count_nonzero(root == np.inf):
        root = np.where(root == np.inf, (classes.sums != 0.0) @ np.abs(flat), root)
    result = np.add.reduceat(root, classes.starts, axis=0)
    return floored(result.reshape((degree + 1, *c.shape[1:])))


def _values(sizes: Array, part: float) -> Array:
    """Σ_k sizes_k part^(k + 1), rounded to nearest."""
    result = np.zeros(sizes.shape[1:])
    for size in sizes[::-1]:
        result = (result + size) * part
    return result


def _product(table: Monomials, a: Array, b: Array) -> Array:
    """The coefficients of the elementwise product, up to the degree of the table."""
    if len(a) == 1 or len(b) == 1:
        return np.asarray(a * b)
    pairs = table.pairs(table.ends.index(len(a)), table.ends.index(len(b)))
    shape = np.broadcast_shapes(a.shape[1:], b.shape[1:])
    size = int(np.prod(shape))
    left, right = _flat(a, shape), _flat(b, shape)
    step = max(1, _MOST_AT_ONCE // len(pairs.left))
    parts = []
    for k in range(0, size, step):
        products = np.take(left[:, k : k + step], pairs.left, axis=0)
        products *= np.take(right[:, k : k + step], pairs.right, axis=0)
        parts.append(pairs.sums @ products)
    count = pairs.sums.shape[0]
    result = np.concatenate(parts, axis=1) if parts else np.zeros((count, 0))
    return result.reshape((count, *shape))


def _flat(c: Array, shape: tuple[int, ...]) -> Array:
    wide = _of_rank(c, 1 + len(shape))
    return np.broadcast_to(wide, (len(c), *shape)).reshape((len(c), -1))


def _of_rank(a: Array, rank: int) -> Array:
    """The array with axes of length 1 after its first one."""
    return a.reshape((len(a), *(1,) * (rank - a.ndim), *a.shape[1:]))


def _product_of_matrices(a: PowerSeries, b: PowerSeries) -> Array:
    table = a.table
    degree = min(a.degree + b.degree, table.degree)
    shape = (a.c[0] @ b.c[0]).shape
    result = np.zeros((table.ends[degree], *shape))
    for place, one in enumerate(a.c):
        if one.any():
            places = table.multiples[place][: len(b.c)]
            result[places] += one @ b.c[: len(places)]
    return result


@dataclass(frozen=True, slots=True)
class TaylorCoefficients:
    """Numbers φ_0, φ_1, .. along a first axis (k, *shape), each within `rad` of `mid`."""

    mid: Array
    rad: Array

    @classmethod
    def within(cls, intervals: Sequence[Interval]) -> TaylorCoefficients:
        every = Interval.concatenated([one.each(itemgetter(np.newaxis)) for one in intervals])
        mid = every.mid
        return cls(mid, every.rad_about(mid))

    @classmethod
    def nearly(cls, x: Array, roundings: int, terms: Array | None = None) -> TaylorCoefficients:
        """Numbers computed with `roundings` operations, of 4 steps each, from terms with
        these sums of magnitudes, by default |x|.
        """
        terms = np.abs(x) if terms is None else terms
        return cls(x, terms * (8.0 * roundings * UNIT) + SMALLEST_NORMAL)

    def after(self, first: Interval) -> TaylorCoefficients:
        """These with φ_0 before them."""
        own = TaylorCoefficients.within([first])
        mid, rad = zip((own.mid, own.rad), (self.mid, self.rad), strict=True)
        return TaylorCoefficients(np.concatenate(mid), np.concatenate(rad))

    def over(self, numbers: Array) -> TaylorCoefficients:
        """The quotients by numbers from 1 to 1e6."""
        mid = self.mid / numbers
        rad = self.rad / numbers * (1.0 + 4.0 * UNIT) + np.abs(mid) * (2.0 * UNIT)
        return TaylorCoefficients(mid, rad + SMALLEST_NORMAL)


def composition(v: PowerSeries, coefficients: TaylorCoefficients) -> PowerSeries:
    """Σ φ_k v^k by Horner's rule, where v has no constant term."""
    table, top = v.table, v.table.degree
    mid, rad = coefficients.mid, floored(coefficients.rad)
    results = [mid[-1:]]
    times = _multiplication(v)
    for one in mid[-2::-1]:
        c = np.array(times(results[-1]))
        c[0] += one
        results.append(c)
    own = v.by_degree
    whole = own.sum(axis=0)
    # The norms of v from each degree on: of the least that takes a degree of the other factor
    # above the top.
    above = np.zeros((top + 2, *v.shape))
    above[: len(own)] = np.cumsum(own[::-1], axis=0)[::-1]
    beyond = above[top + 1 : 0 : -1]
    sizes = _norms_of_each(table, results[:-1])
    size = sizes.sum(axis=1)
    leaving = (sizes * beyond).sum(axis=1)
    moved = whole + v.tail + v.error
    roundings = 1.01 * UNIT * (min(len(v.c), 2**top) + 4)
    tail, error = np.zeros(v.shape), rad[-1]
    for k, (one, result) in enumerate(zip(rad[-2::-1], results[1:], strict=True)):
        tail = leaving[k] + tail * moved + (size[k] + error) * v.tail
        error = (
            roundings * size[k] * whole
            + error * (whole + v.error)
            + (size[k] * v.error + one + UNIT * np.abs(result[0]))
        )
        tail, error = np.maximum(tail, FLOOR * (tail != 0.0)), np.maximum(error, FLOOR)
    return PowerSeries(table, results[-1], enlarged(tail), enlarged(error))


def _multiplication(v: PowerSeries) -> Callable[[Array], Array]:
    """The coefficients of the product with a series, from its coefficients (monomials, *shape)."""
    if v.tail.size > 1 or len(v.c) == 1:
        return partial(_product, v.table, v.c)
    table, count = v.table, v.table.ends[-1]
    pairs = table.pairs(table.degree, v.degree)
    entries = v.c.ravel()[pairs.right]
    matrix = csr_array((entries, pairs.left, pairs.sums.indptr), shape=(count, count))

    def times(c: Array) -> Array:
        wide = np.zeros(count)
        wide[: len(c)] = c.ravel()
        return np.asarray(matrix @ wide).reshape((count, *v.shape))

    return times


def _norms_of_each(table: Monomials, results: Sequence[Array]) -> Array:
    """The norms by degree (results, degree + 1, *shape) of coefficients (monomials, *shape)."""
    top, shape = table.degree, results[0].shape[1:]
    if len(results) * results[-1].size <= _FEW_TOGETHER:
        every = np.zeros((table.ends[-1], len(results), *shape))
        for k, one in enumerate(results):
            every[: len(one), k] = one
        return np.swapaxes(norms_by_degree(table, every, top), 0, 1)
    norms = np.zeros((len(results), top + 1, *shape))
    for k, one in enumerate(results):
        degree = table.ends.index(len(one))
        norms[k, : degree + 1] = norms_by_degree(table, one, degree)
    return norms


def unknown(table: Monomials, shape: tuple[int, ...]) -> PowerSeries:
    """The series of which nothing is known."""
    infinite = np.full(shape, np.inf)
    return PowerSeries(table, np.zeros((1, *shape)), infinite, infinite)


def variables(table: Monomials, centre: Array, reach: Array) -> PowerSeries:
    """The unknowns centre + reach·z (n,), one monomial each."""
    n = table.n
    c = np.zeros((n + 1, n))
    c[0] = centre
    c[np.arange(1, n + 1), np.arange(n)] = reach
    return PowerSeries(table, c, np.zeros(n), np.zeros(n))


def exactly(x: Array) -> Interval:
    """Numbers without an error."""
    return point(np.asarray(x, dtype=np.float64))
