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

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval, around, point
from slomodel.bounds.arithmetic.monomials import Monomials
from slomodel.bounds.arithmetic.rounding import SMALLEST_NORMAL, UNIT, Array
from slomodel.bounds.arithmetic.upper_bounds import FLOOR, floored, rounded_up

_ROUNDINGS = 2**16
"""Roundings on the longest path of an expression >= 0: tables have half as many monomials."""
_MOST_AT_ONCE = 2**20
"""Products of coefficients computed together, 8 MB."""


def enlarged(x: Array) -> Array:
    """Upper bounds on expressions >= 0 from their computed values; what is unknown is infinite."""
    return rounded_up(x, _ROUNDINGS)


@dataclass(frozen=True, slots=True, eq=False)
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

    @property
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
        degree = max(self.degree, other.degree)
        c = self.padded(degree) + other.padded(degree)
        rounding = UNIT * np.abs(c).sum(axis=0)
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
        c = _product(self, other)
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
        beyond = [
            product(own[i], others[max(top + 1 - i, 0) :].sum(axis=0))
            for i in range(len(own))
            if i + len(others) - 1 > top
        ]
        tail = sum(beyond, start=np.zeros(c.shape[1:]))
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
    size, classes = np.abs(c), table.classes
    if classes is None or degree == 0:
        return floored(np.add.reduceat(size, table.starts(degree), axis=0))
    order = classes.order[: len(c)]
    count = int(np.searchsorted(classes.degrees, degree, "right"))
    starts = classes.starts[:count]
    size = size[order]
    wide = classes.weights[: len(c)].reshape((-1, *(1,) * (c.ndim - 1)))
    root = np.sqrt(np.add.reduceat(wide * size * size, starts, axis=0))
    # Squares below 1e-140 lose digits, and those beyond 1e308 are infinite.
    plain = (root < FLOOR) | (root == np.inf)
    if plain.any():
        root = np.where(plain, np.add.reduceat(size, starts, axis=0), root)
    degrees = np.searchsorted(classes.degrees[:count], np.arange(degree + 1))
    return floored(np.add.reduceat(root, degrees, axis=0))


def _values(sizes: Array, part: float) -> Array:
    """Σ_k sizes_k part^(k + 1), rounded to nearest."""
    result = np.zeros(sizes.shape[1:])
    for size in sizes[::-1]:
        result = (result + size) * part
    return result


def _product(a: PowerSeries, b: PowerSeries) -> Array:
    """The coefficients of the elementwise product, up to the degree of the table."""
    if len(a.c) == 1 or len(b.c) == 1:
        return np.asarray(a.c * b.c)
    table = a.table
    pairs = table.pairs(a.degree, b.degree)
    shape = np.broadcast_shapes(a.shape, b.shape)
    size = int(np.prod(shape))
    left, right = _flat(a.c, shape), _flat(b.c, shape)
    step = max(1, _MOST_AT_ONCE // len(pairs.left))
    parts = [
        np.add.reduceat(
            left[pairs.left, k : k + step] * right[pairs.right, k : k + step], pairs.starts, axis=0
        )
        for k in range(0, size, step)
    ]
    count = len(pairs.starts)
    result = np.concatenate(parts, axis=1) if parts else np.zeros((count, 0))
    return result.reshape((count, *shape))


def _flat(c: Array, shape: tuple[int, ...]) -> Array:
    wide = c.reshape((len(c), *(1,) * (len(shape) - c.ndim + 1), *c.shape[1:]))
    return np.broadcast_to(wide, (len(c), *shape)).reshape((len(c), -1))


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


def nearly(x: Array, roundings: int) -> Interval:
    """Intervals around numbers computed with `roundings` operations, of 4 steps each."""
    slack = np.abs(x) * (8.0 * roundings * UNIT) + SMALLEST_NORMAL
    return around(x, slack)
