"""Tables of the monomials z^α of n unknowns up to some degree, and norms of polynomials in them.

The norm of a homogeneous polynomial q = Σ q_α z^α of degree k is ‖q‖ = (Σ |q_α|² α!/k!)^½, that of
its symmetric form T in the entries (Bombieri): for ‖z‖ <= 1, |q(z)| <= ‖T‖ <= ‖q‖, and as the form
of a product is the symmetric part of the product of forms, ‖qq'‖ <= ‖q‖‖q'‖. So Σ_k ‖q_k‖ makes
series on the unit ball a Banach algebra, as Σ |q_α| does those on |z_i| <= 1. Where some unknowns
are bounded one by one and the others by their length, the coefficients of the monomials in the
former are polynomials in the latter, whose norms add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations_with_replacement
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from slomodel.bounds.arithmetic.rounding import Array

Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of monomials, by the places of both factors, sorted by the place of their product.

    `sums` (products, pairs) adds up the pairs of each product: its entries are 1.
    """

    left: Places
    right: Places
    sums: csr_array


@dataclass(frozen=True, slots=True)
class Classes:
    """Monomials by their exponents of the unknowns bounded one by one and the degree in the others.

    `sums` (classes, monomials) adds up the members of each class with the weights α!/k!; classes
    are in the order of their degrees, and `starts` are the first ones of each degree.
    """

    sums: csr_array
    starts: Places


@dataclass(frozen=True, eq=False)
class Monomials:
    """The monomials of n unknowns of degree at most `degree`, in the order of their degrees.

    `apart` are the unknowns that norms bound one by one; the others are bounded by their length.
    """

    n: int
    degree: int
    apart: tuple[int, ...] = ()

    @cached_property
    def exponents(self) -> Places:
        """α (monomials, n)."""
        if self.apart:
            return monomials(self.n, self.degree).exponents
        rows = np.zeros((self.ends[-1], self.n), dtype=np.intp)
        start = 0
        for k in range(self.degree + 1):
            rows_of_k = list(combinations_with_replacement(range(self.n), k))
            factors = np.array(rows_of_k, dtype=np.intp).reshape(len(rows_of_k), k)
            places = np.arange(start, start + len(factors))
            for own in factors.T:
                rows[places, own] += 1
            start += len(factors)
        return rows

    def classes(self, degree: int) -> Classes | None:
        """The classes of degree at most this; None where each holds one monomial."""
        return _classes(self, degree)

    @cached_property
    def _class_of_each(self) -> tuple[Places, Places, Array] | None:
        """The monomials class by class, the first ones of each in them, and the weights."""
        own = np.array([k in self.apart for k in range(self.n)], dtype=bool)
        if np.count_nonzero(~own) < 2:
            return None
        others = self.exponents[:, ~own]
        degrees = self.exponents.sum(axis=1)
        rank = others.sum(axis=1)
        factorial = np.cumprod([1.0, *range(1, self.degree + 1)])
        weights = np.prod(factorial[others], axis=1) / factorial[rank]
        keys = np.column_stack([degrees, self.exponents[:, own]])
        order = np.lexsort(keys.T[::-1])
        changes = (np.diff(keys[order], axis=0) != 0).any(axis=1)
        starts = np.concatenate([[0], 1 + np.flatnonzero(changes)])
        return order, starts, weights

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """How many monomials have a degree of at most k, for each k."""
        return tuple(comb(self.n + k, k) for k in range(self.degree + 1))

    def starts(self, degree: int) -> Places:
        """The places of the first monomial of each degree up to this one."""
        return np.array([0, *self.ends[:degree]], dtype=np.intp)

    @cached_property
    def _codes(self) -> tuple[Places, Places, Places]:
        """A number for each monomial, such that those of factors add up; sorted, with places."""
        if self.apart:
            return monomials(self.n, self.degree)._codes
        # Numbers of many digits, added modulo 2^64, distinguish the monomials of a table.
        digits = np.random.default_rng(0).integers(2**63, size=self.n, dtype=np.int64)
        codes = self.exponents @ digits
        order = np.argsort(codes)
        assert np.diff(codes[order]).all(), "two monomials have one number"
        return codes, codes[order], order

    def products(self, left: Places, right: Places) -> Places:
        """The places of the products of monomials, of degrees within the table."""
        codes, sorted_codes, order = self._codes
        return order[np.searchsorted(sorted_codes, codes[left] + codes[right])]

    def pairs(self, first: int, second: int) -> Pairs:
        """All pairs of monomials of at most these degrees whose product is in the table."""
        return _pairs(monomials(self.n, self.degree), first, second)

    @cached_property
    def multiples(self) -> tuple[Places, ...]:
        """For each monomial, the places of its products with the first ones."""
        if self.apart:
            return monomials(self.n, self.degree).multiples
        degrees = self.exponents.sum(axis=1)
        ends = [self.ends[self.degree - int(k)] for k in degrees]
        return tuple(
            self.products(np.full(count, place, dtype=np.intp), np.arange(count, dtype=np.intp))
            for place, count in enumerate(ends)
        )

    def count_of_pairs(self) -> int:
        """The number of pairs of two factors of full degree."""
        return comb(2 * self.n + self.degree, self.degree)

    def powers(self, lengths: Array) -> Array:
        """Upper estimates of |h^α| (monomials,) for |h_i| <= lengths_i; rounded to nearest."""
        with np.errstate(all="ignore"):
            return np.asarray(np.prod(lengths**self.exponents, axis=1))

    @cached_property
    def on_sphere(self) -> Array:
        """The largest |h^α| (monomials,) for ‖h‖ = 1, Π (α_i/k)^(α_i/2); rounded to nearest."""
        if self.apart:
            return monomials(self.n, self.degree).on_sphere
        degrees = self.exponents.sum(axis=1, keepdims=True)
        shares = self.exponents / np.maximum(degrees, 1)
        return np.asarray(np.prod(shares ** (0.5 * self.exponents), axis=1))


@cache
def monomials(n: int, degree: int, apart: tuple[int, ...] = ()) -> Monomials:
    """The table, constructed once."""
    return Monomials(n, degree, apart)


@cache
def _classes(table: Monomials, degree: int) -> Classes | None:
    known = table._class_of_each
    if known is None:
        return None
    order, starts, weights = known
    count = table.ends[degree]
    starts = starts[starts < count]
    order = order[:count]
    sums = csr_array((weights[order], order, np.append(starts, count)), shape=(len(starts), count))
    degrees = table.exponents[order[starts]].sum(axis=1)
    return Classes(sums, np.searchsorted(degrees, np.arange(degree + 1)))


@cache
def _pairs(table: Monomials, first: int, second: int) -> Pairs:
    ends = table.ends
    degrees = table.exponents.sum(axis=1)
    left, right = [], []
    for place in range(ends[first]):
        count = ends[min(second, table.degree - int(degrees[place]))]
        left.append(np.full(count, place, dtype=np.intp))
        right.append(np.arange(count, dtype=np.intp))
    both = np.concatenate(left), np.concatenate(right)
    places = table.products(*both)
    order = np.argsort(places, kind="stable")
    starts = np.flatnonzero(np.diff(places[order], prepend=-1))
    count = len(order)
    sums = csr_array(
        (np.ones(count), np.arange(count), np.append(starts, count)), shape=(len(starts), count)
    )
    return Pairs(both[0][order], both[1][order], sums)
