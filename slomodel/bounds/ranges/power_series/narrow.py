"""Operations on matrices that read few of the unknowns, as series of a higher degree in these.

Norms of series in some of the unknowns are those in all, so that such a series is one in all, with
the parts above their degree in the tail.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from slomodel.bounds.arithmetic.monomials import Monomials, Places, monomials
from slomodel.bounds.arithmetic.power_series import PowerSeries, enlarged
from slomodel.bounds.ranges.power_series.node_values import Value, is_constant
from slomodel.ir.expr import Expr, MatrixFunction, MatrixOperation
from slomodel.ir.walk import inputs

_MOST_OPERATIONS = 2.0**28
"""Limit on one product of two matrices of series; a proof computes some dozens of them."""
_MOST_DEGREE = 10
"""Highest degree that is tried, with 66 monomials in two unknowns and 1,001 in four."""
_INVERSES: Mapping[MatrixFunction, MatrixFunction] = {
    "solve": "inverse",
    "solve_symmetric": "inverse_symmetric",
}


@dataclass(frozen=True, slots=True)
class Narrow:
    """The unknowns `rows` that a node reads, with a table of their own."""

    node: Expr
    rows: tuple[int, ...]
    table: Monomials

    def given(self, known: Mapping[Expr, Value]) -> dict[Expr, Value]:
        """The inputs of the node as series in these unknowns."""
        places = [0, *(1 + row for row in self.rows)]
        result: dict[Expr, Value] = {}
        for leaf in inputs(self.node):
            own = known[leaf]
            if isinstance(own, PowerSeries):
                c = own.c if is_constant(own) else own.c[places]
                own = PowerSeries(self.table, c, own.tail, own.error)
            result[leaf] = own
        return result

    def widened(self, u: PowerSeries, table: Monomials) -> PowerSeries:
        """A series in these unknowns as one in all."""
        degree = min(u.degree, table.degree)
        count = self.table.ends[degree]
        c = np.zeros((table.ends[degree], *u.shape))
        c[_places(self.table.exponents[:count], self.rows, table)] = u.c[:count]
        above = u.by_degree[degree + 1 :].sum(axis=0)
        return PowerSeries(table, c, enlarged(u.tail + above), u.error)


def _places(exponents: Places, rows: Sequence[int], table: Monomials) -> Places:
    """The places in a table of monomials in some of its unknowns."""
    result = np.zeros(len(exponents), dtype=np.intp)
    for own, row in zip(exponents.T, rows, strict=True):
        for t in range(int(own.max(initial=0))):
            more = own > t
            factor = np.full(int(more.sum()), 1 + row, dtype=np.intp)
            result[more] = table.products(result[more], factor)
    return result


def narrow(
    node: Expr, known: Mapping[Expr, Value], table: Monomials, sizes: Mapping[str, int]
) -> Narrow | None:
    """The narrow form of an operation on matrices; None where it reads too many unknowns."""
    if not isinstance(node, MatrixOperation):
        return None
    rows: set[int] = set()
    for leaf in inputs(node):
        own = known.get(leaf)
        if own is None:
            return None
        if is_constant(own):
            continue
        if not isinstance(own, PowerSeries) or own.degree != 1 or (own.tail + own.error).any():
            return None
        moves = own.c[1:].reshape((table.n, -1)).any(axis=1)
        rows.update(np.flatnonzero(moves).tolist())
    degree = narrow_degree(node, len(rows), table, sizes)
    if degree is None:
        return None
    apart = tuple(k for k, row in enumerate(sorted(rows)) if row in table.apart)
    return Narrow(node, tuple(sorted(rows)), monomials(len(rows), degree, apart))


def narrow_degree(
    node: Expr, unknowns: int, table: Monomials, sizes: Mapping[str, int]
) -> int | None:
    """The degree in the unknowns that a node reads, above that of the table; None for no such."""
    if not 0 < unknowns < table.n:
        return None
    size = float(node.operands[0].shape[-1].size(sizes)) ** 3
    for degree in range(_MOST_DEGREE, table.degree, -1):
        if size * monomials(unknowns, degree).count_of_pairs() <= _MOST_OPERATIONS:
            return degree
    return None


def narrow_inverse(
    node: Expr, known: Mapping[Expr, Value], table: Monomials, sizes: Mapping[str, int]
) -> Narrow | None:
    """The narrow form of A⁻¹ where a node is A⁻¹B."""
    if not isinstance(node, MatrixOperation) or node.function not in _INVERSES:
        return None
    inverse = MatrixOperation(_INVERSES[node.function], (node.operands[0],))
    found = narrow(inverse, known, table, sizes)
    return None if found is None else replace(found, node=inverse)
