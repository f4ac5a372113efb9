"""Sorted multi-indices: their number, their multiplicities, and products along them.

A sum over all tuples (b, c, …) of k indices below d of a symmetric term is the sum over the
C(d + k - 1, k) sorted tuples, each times the number of its permutations.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import comb, factorial

from slomodel.functions import add, div, eq, mul, where
from slomodel.ir import build
from slomodel.ir.dims import Dim, literal, named
from slomodel.ir.expr import Affine, Expr, Index, Multiset


class Multisets:
    """The sorted k-tuples of numbers below some dims, for known `sizes` of the named dims.

    The number of tuples is not affine in the sizes, so it becomes a named dim, which is added to
    `sizes`.
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = dict(sizes)

    def number(self, dim: Dim, degree: int) -> int:
        """The number of sorted tuples: C(d + degree - 1, degree)."""
        return comb(dim.size(self.sizes) + degree - 1, degree)

    def dim(self, dim: Dim, degree: int) -> Dim:
        """The dim of an axis along the sorted tuples."""
        if degree == 1:
            return dim
        if dim.is_literal:
            return literal(self.number(dim, degree))
        name = f"sorted {degree}-tuples below {dim}"
        self.sizes[name] = self.number(dim, degree)
        return named(name)

    def multiplicity(self, dim: Dim, degree: int) -> Expr:
        """The number of permutations of each sorted tuple: degree! / Π (run lengths)!.

        The product over entries of their position in their run is the product of these factorials.
        """
        numbers = build.iota(dim)
        entries = [self.entry(numbers, dim, degree, j) for j in range(degree)]
        run = build.const(1.0)
        below: Expr = run
        place: Expr = run
        for before, entry in pairwise(entries):
            longer = build.apply(add, place, build.const(1.0))
            place = build.apply(where, build.apply(eq, before, entry), longer, run)
            below = build.apply(mul, below, place)
        return build.apply(div, build.const(float(factorial(degree))), below)

    def entry(self, vector: Expr, dim: Dim, degree: int, j: int) -> Expr:
        """The elements of a vector at entry j of each sorted tuple."""
        index = Multiset(0, dim, degree, j, j + 1)
        return build.gather(vector, [index], (self.dim(dim, degree),))

    def monomial(self, operand: Expr, axis: int, degree: int) -> Expr:
        """The products of the operand's elements along an axis at the entries of each sorted tuple.

        The axis of the tuples is the last, after the operand's other axes. The products are
        computed from those of both halves of a tuple, of which there are fewer.
        """
        dim = operand.shape[axis]
        rest = [dim for k, dim in enumerate(operand.shape) if k != axis]
        shape = (*rest, self.dim(dim, degree))
        half = (degree + 1) // 2
        factors = []
        for start, stop in ((0, half), (half, degree)):
            if stop - start == 1:
                source, place = operand, axis
            else:
                source, place = self.monomial(operand, axis, stop - start), len(rest)
            index: list[Index] = [Affine.along(k, len(shape)) for k in range(len(rest))]
            index.insert(place, Multiset(len(rest), dim, degree, start, stop))
            factors.append(build.gather(source, index, shape))
        return build.apply(mul, *factors)


def swapped(rank: int, a: int, b: int) -> tuple[int, ...]:
    """All axes in order, except that two are exchanged."""
    order = list(range(rank))
    order[a], order[b] = b, a
    return tuple(order)
