"""Determinants of matrices of up to four rows as polynomials of their elements.

Their derivatives exist where the matrix is singular, and those by A⁻¹ do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import combinations

from slomodel.functions import add, mul, neg, sub
from slomodel.ir.dims import literal
from slomodel.ir.expr import Expr, MatrixOperation
from slomodel.ir.linear import slice_at
from slomodel.ir.walk import postorder
from slomodel.rewrite.facts import Facts
from slomodel.rewrite.replacement import composed

_MOST_ROWS = 4
"""Expansions by minors of more rows have more products than a factorisation has."""


def small_determinants(root: Expr, facts: Facts) -> tuple[Expr, tuple[str, ...]]:
    """The graph with polynomials in place of small determinants."""
    found = [
        node
        for node in postorder(root)
        if isinstance(node, MatrixOperation) and node.function == "det"
    ]
    values: dict[Expr, Expr] = {}
    for node in found:
        matrix = node.operands[0]
        n = matrix.shape[-1].size(facts.sizes)
        if 1 <= n <= _MOST_ROWS:
            values[node] = _determinant(matrix, n)
    if not values:
        return root, ()
    return composed([root], values)[root], ("determinants of few rows are polynomials",)


def _determinant(matrix: Expr, n: int) -> Expr:
    """Laplace's expansion by minors of the first two rows."""
    rows = [slice_at(matrix, matrix.rank - 2, literal(k)) for k in range(n)]
    a = [[slice_at(row, row.rank - 1, literal(k)) for k in range(n)] for row in rows]
    if n == 1:
        return a[0][0]
    terms: list[Expr] = []
    for columns in combinations(range(n), 2):
        others = [k for k in range(n) if k not in columns]
        minor = _minor(a, 0, columns)
        rest = _minor(a, 2, others) if n == 4 else a[2][others[0]] if n == 3 else None
        term = minor if rest is None else mul(minor, rest)
        terms.append(neg(term) if sum(columns) % 2 == 0 else term)
    return reduce(add, terms)


def _minor(a: list[list[Expr]], row: int, columns: Sequence[int]) -> Expr:
    """The determinant of two rows, from `row` on, and two columns."""
    i, j = columns
    return sub(mul(a[row][i], a[row + 1][j]), mul(a[row][j], a[row + 1][i]))
