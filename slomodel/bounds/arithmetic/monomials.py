"""Tables of the monomials z^α of n unknowns up to some degree."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations_with_replacement
from math import comb

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds.arithmetic.rounding import Array

Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of monomials, by the places of both factors, sorted by the place of their product.

    `starts` are the first pairs of each product.
    """

    left: Places
    right: Places
    starts: Places


@dataclass(frozen=True, eq=False)
class Monomials:
    """Those of n unknowns of degree at most `degree`, in the order of their degrees."""

    n: int
    degree: int

    @cached_property
    def exponents(self) -> Places:
        """α (monomials, n)."""
        rows = np.zeros((self.ends[-1], self.n), dtype=np.intp)
        place = 0
        for k in range(self.degree + 1):
            for one in combinations_with_replacement(range(self.n), k):
                np.add.at(rows[place], list(one), 1)
                place += 1
        return rows

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
        codes = self.exponents @ (self.degree + 1) ** np.arange(self.n, dtype=np.intp)
        order = np.argsort(codes)
        return codes, codes[order], order

    def products(self, left: Places, right: Places) -> Places:
        """The places of the products of monomials, of degrees within the table."""
        codes, sorted_codes, order = self._codes
        return order[np.searchsorted(sorted_codes, codes[left] + codes[right])]

    def pairs(self, first: int, second: int) -> Pairs:
        """All pairs of monomials of at most these degrees whose product is in the table."""
        return _pairs(self, first, second)

    @cached_property
    def multiples(self) -> tuple[Places, ...]:
        """For each monomial, the places of its products with the first ones."""
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
        degrees = self.exponents.sum(axis=1, keepdims=True)
        shares = self.exponents / np.maximum(degrees, 1)
        return np.asarray(np.prod(shares ** (0.5 * self.exponents), axis=1))


@cache
def monomials(n: int, degree: int) -> Monomials:
    """The table, constructed once."""
    return Monomials(n, degree)


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
    return Pairs(both[0][order], both[1][order], starts)
