"""Functions of matrices by the operations that fit what is known of the matrix.

A matrix whose form shows that it is symmetric is factored by Cholesky, a triangular one not at all,
and a product TTᵀ of a triangular T is already factored. Matrices are the last two axes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from slomodel.calculus.symmetry import Symmetries
from slomodel.functions import (
    abs,
    add,
    div,
    eq,
    ge,
    gt,
    le,
    log,
    lt,
    mul,
    neg,
    square,
    sub,
    where,
)
from slomodel.ir import build
from slomodel.ir.expr import Axes, Const, Einsum, Expr, Iota, Map, MatrixOperation
from slomodel.ir.matrices import transposed_from

_DEEPEST = 30


@dataclass(slots=True)
class MatrixFacts:
    """Attributes of inputs, and queries about the matrices that are computed from them.

    - `symmetric`: data that equal their transposes.
    - `symmetric_sets`: variables in sets of symmetric matrices, and the symmetric data. Of a matrix
      that is symmetric because of these variables the symmetric part is taken, so that single
      elements may vary.
    - `lower`: lower triangular variables with a positive diagonal.
    """

    symmetric: set[Expr] = field(default_factory=set)
    symmetric_sets: set[Expr] = field(default_factory=set)
    lower: set[Expr] = field(default_factory=set)
    _symmetries: Symmetries = field(init=False)
    _in_sets: Symmetries = field(init=False)
    _lower: dict[tuple[Expr, bool], bool] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._symmetries = Symmetries(self.symmetric)
        self._in_sets = Symmetries(self.symmetric_sets)

    def declare_symmetric(self, data: Expr) -> None:
        self.symmetric.add(data)
        self.symmetric_sets.add(data)

    def declare(self, variable: Expr, set_kind: str | None) -> None:
        """Record the set of a variable."""
        if set_kind in ("correlation", "psd"):
            self.symmetric_sets.add(variable)
        elif set_kind == "cholesky_factor":
            self.lower.add(variable)

    def is_symmetric(self, matrix: Expr) -> bool:
        """True if the matrices are known to be symmetric."""
        return self._symmetries.is_invariant(matrix, _turned(matrix))

    def is_triangular(self, matrix: Expr, lower: bool, depth: int = _DEEPEST) -> bool:
        """True if the matrices are known to be lower (or upper) triangular."""
        key = (matrix, lower)
        if key not in self._lower:
            self._lower[key] = depth > 0 and self._is_triangular(matrix, lower, depth - 1)
        return self._lower[key]

    def _is_triangular(self, matrix: Expr, lower: bool, depth: int) -> bool:
        if matrix in self.lower:
            return lower
        inner = transposed_from(matrix)
        if inner is not None:
            return self.is_triangular(inner, not lower, depth)
        if isinstance(matrix, MatrixOperation):
            return self._is_triangular_operation(matrix, lower, depth)
        if isinstance(matrix, Map):
            return self._is_triangular_map(matrix, lower, depth)
        return isinstance(matrix, Einsum) and self._is_triangular_product(matrix, lower, depth)

    def _is_triangular_operation(self, node: MatrixOperation, lower: bool, depth: int) -> bool:
        if node.function == "cholesky":
            return lower
        solves = node.function == ("solve_lower" if lower else "solve_upper")
        return solves and self.is_triangular(node.operands[-1], lower, depth)

    def _is_triangular_map(self, node: Map, lower: bool, depth: int) -> bool:
        row, column = node.rank - 2, node.rank - 1

        def holds(k: int) -> bool:
            operand, axes = node.operands[k], node.axes[k]
            if operand is Const(0.0):
                return True
            both = {row, column} <= set(axes)
            return both and self.is_triangular(operand, lower, depth)

        function = node.function
        if function is mul:
            return holds(0) or holds(1)
        if function in (neg, square, abs, div):
            return holds(0)
        if function in (add, sub):
            return holds(0) and holds(1)
        if function is where:
            least, most = _differences(node.operands[0], node.axes[0], row, column)
            if not lower:
                least, most = -most, -least
            if least >= 0:
                return holds(2)
            # Where the condition fails, the row is beyond the column if it holds for all others.
            return holds(1) if least == -inf and most >= -1 else holds(1) and holds(2)
        return False

    def _is_triangular_product(self, node: Einsum, lower: bool, depth: int) -> bool:
        """Whether a product is diagonal, has a triangular factor, or two that are contracted."""
        if node.rank < 2 or len(set(node.output)) < node.rank:
            return node.output[-2:] == node.output[-1:] * 2
        row, column = node.output[-2:]
        summed = {label for label in range(len(node.dims)) if label not in node.output}
        inner: dict[bool, set[int]] = {True: set(), False: set()}
        for operand, labels in zip(node.operands, node.inputs, strict=True):
            last = labels[-2:]
            if last in ((row, column), (column, row)):
                if self.is_triangular(operand, lower == (last == (row, column)), depth):
                    return True
            elif len(set(last)) == 2 and (last[0] in summed) != (last[1] in summed):
                # The factor as a matrix whose rows are those of the result, or its columns.
                (label,) = set(last) & summed
                begins = row in last
                if (begins or column in last) and self.is_triangular(
                    operand, lower == ((last[0] == row) or (last[1] == column)), depth
                ):
                    inner[begins].add(label)
        return bool(inner[True] & inner[False])

    def has_positive_diagonal(self, matrix: Expr) -> bool:
        """True for a Cholesky factor, computed or declared."""
        matrix = transposed_from(matrix) or matrix
        computed = isinstance(matrix, MatrixOperation) and matrix.function == "cholesky"
        return computed or matrix in self.lower

    def factor(self, matrix: Expr) -> Expr | None:
        """A triangular T with TTᵀ equal to the matrices; None if there is none in the graph."""
        if not isinstance(matrix, Einsum) or len(matrix.operands) != 2:
            return None
        left, right = matrix.operands
        own, other = matrix.inputs
        if left is not right or len(own) != matrix.rank or len(set(matrix.output)) < matrix.rank:
            return None
        *batch, row, column = matrix.output
        (summed, *more) = [k for k in range(len(matrix.dims)) if k not in matrix.output] or [-1]
        if more or own[:-2] != tuple(batch) or other[:-2] != tuple(batch):
            return None
        ends = {own[-2:], other[-2:]}
        if ends == {(row, summed), (column, summed)}:
            result = left
        elif ends == {(summed, row), (summed, column)}:
            result = build.transposed(left)
        else:
            return None
        is_any = self.is_triangular(result, True) or self.is_triangular(result, False)
        return result if is_any else None

    def cholesky(self, matrix: Expr) -> Expr:
        """The factor L of symmetric matrices, or of their symmetric parts."""
        factor = self.factor(matrix)
        if factor is not None and self.has_positive_diagonal(factor) and self._is_lower(factor):
            return factor
        return build.matrix_operation("cholesky", self.symmetric_part(matrix))

    def symmetric_part(self, matrix: Expr) -> Expr:
        """The matrices if they are known to be symmetric, else (A + Aᵀ)/2."""
        if self.is_symmetric(matrix):
            return matrix
        both = build.apply(add, matrix, build.transposed(matrix))
        return build.apply(mul, build.const(0.5), both)

    def logdet(self, matrix: Expr) -> Expr:
        """log det; NaN where it is negative, or the matrices are symmetric and not definite."""
        factor = self.factor(matrix)
        triangular = factor
        if self.has_positive_diagonal(matrix):
            triangular = matrix
        if triangular is not None:
            pivots = build.apply(abs, build.diagonals(triangular))
            total = build.sum_over(build.apply(log, pivots), (pivots.rank - 1,))
            return build.apply(mul, build.const(1.0 if factor is None else 2.0), total)
        if self._counts_as_symmetric(matrix):
            return build.matrix_operation("logdet_posdef", self.symmetric_part(matrix))
        return build.matrix_operation("logdet", matrix)

    def det(self, matrix: Expr) -> Expr:
        """The determinants."""
        factor = self.factor(matrix)
        if factor is not None:
            return build.apply(square, self.det(factor))
        if self._is_lower(matrix) or self.is_triangular(matrix, False):
            pivots = build.diagonals(matrix)
            return build.product_over(pivots, pivots.rank - 1)
        return build.matrix_operation("det", matrix)

    def solve(self, matrix: Expr, right: Expr) -> Expr:
        """X with AX = B, for B of shape (…, n, m)."""
        for lower in (True, False):
            if self.is_triangular(matrix, lower):
                return build.matrix_operation(
                    "solve_lower" if lower else "solve_upper", matrix, right
                )
        factor = self.factor(matrix)
        if factor is not None:
            return self.solve(build.transposed(factor), self.solve(factor, right))
        if self._counts_as_symmetric(matrix):
            return build.matrix_operation("solve_symmetric", self.symmetric_part(matrix), right)
        return build.matrix_operation("solve", matrix, right)

    def inverse(self, matrix: Expr) -> Expr:
        """The inverses."""
        symmetric = self._counts_as_symmetric(matrix)
        if symmetric and self.factor(matrix) is None:
            return build.matrix_operation("inverse_symmetric", self.symmetric_part(matrix))
        if symmetric or self._is_lower(matrix) or self.is_triangular(matrix, False):
            return self.solve(matrix, build.identities(matrix))
        return build.matrix_operation("inverse", matrix)

    def _is_lower(self, matrix: Expr) -> bool:
        return self.is_triangular(matrix, True)

    def _counts_as_symmetric(self, matrix: Expr) -> bool:
        """Whether the matrices are symmetric where all variables lie in their sets."""
        return self.is_symmetric(matrix) or self._in_sets.is_invariant(matrix, _turned(matrix))


def _turned(matrix: Expr) -> Axes:
    """The order of axes of the transposed matrices."""
    return (*range(matrix.rank - 2), matrix.rank - 1, matrix.rank - 2)


def _differences(condition: Expr, axes: Axes, row: int, column: int) -> tuple[float, float]:
    """The least and most row - column of elements for which a condition holds, of all if unknown.

    All differences in between occur.
    """
    if not isinstance(condition, Map) or condition.function not in (gt, ge, lt, le, eq):
        return -inf, inf
    sides = [_position(operand) for operand in condition.operands]
    places = [tuple(axes[one] for one in own) for own in condition.axes]
    first, second = sides
    if first is None or second is None or {*places} != {(row,), (column,)}:
        return -inf, inf
    # The condition compares row + offset with column, or the other way round.
    function, offset = condition.function, second - first
    if places[0] == (column,):
        offset = -offset
        function = {gt: lt, ge: le, lt: gt, le: ge}.get(function, function)
    least = offset + (function is gt) if function in (gt, ge, eq) else -inf
    most = offset - (function is lt) if function in (lt, le, eq) else inf
    return least, most


def _position(node: Expr) -> float | None:
    """The c of a node i + c, where i is a position along an axis; None for other nodes."""
    if isinstance(node, Iota):
        return 0.0
    if isinstance(node, Map) and node.function in (add, sub):
        first, second = node.operands
        if isinstance(first, Const) and node.function is add:
            first, second = second, first
        if isinstance(first, Iota) and isinstance(second, Const):
            return second.value if node.function is add else -second.value
    return None
