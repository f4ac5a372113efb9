"""Derivatives of operations on matrices, from the same factorisations as their values.

For X = A⁻¹B: dX = A⁻¹(dB - dA X), so that B̄ = A⁻ᵀX̄ and Ā = -B̄Xᵀ. For the factor L of A = LLᵀ:
dL = L Φ(L⁻¹ dA L⁻ᵀ), where Φ takes the lower triangle with half the diagonal (Murray, 2016). An
inverse matrix is formed only for derivatives of inverses and determinants, which contain it.
Operands that count as symmetric have symmetric tangents.
"""

from __future__ import annotations

from collections.abc import Sequence

from slomodel.functions import add, eq, ge, gt, mul, neg, sub, where
from slomodel.ir import build
from slomodel.ir.expr import Expr, MatrixFunction, MatrixOperation


def adjoint_of_operand(node: MatrixOperation, k: int, adjoint: Expr) -> Expr:
    """The adjoint of operand k from that of the node."""
    matrix = node.operands[0]
    match node.function:
        case "cholesky":
            upper = build.transposed(node)
            inner = _lower_with_half_diagonal(build.product(upper, adjoint))
            half = build.matrix_operation("solve_upper", upper, inner)
            whole = build.matrix_operation("solve_upper", upper, build.transposed(half))
            return _symmetric_part(whole)
        case "solve" | "solve_symmetric" | "solve_lower" | "solve_upper":
            right = build.matrix_operation(_TRANSPOSED[node.function], *_other(node), adjoint)
            if k == 1:
                return right
            outer = _negative(build.product(right, build.transposed(node)))
            return _as_stored(node.function, outer)
        case "inverse" | "inverse_symmetric" | "inverse_posdef":
            turned = build.transposed(node) if node.function == "inverse" else node
            return _negative(build.product(build.product(turned, adjoint), turned))
        case "det":
            scaled = build.apply(mul, adjoint, node)
            return _scaled(scaled, build.transposed(build.matrix_operation("inverse", matrix)))
        case "logdet":
            return _scaled(adjoint, build.transposed(build.matrix_operation("inverse", matrix)))
        case "logdet_posdef":
            return _scaled(adjoint, build.matrix_operation("inverse_posdef", matrix))
    raise TypeError(f"`{node.function}` occurs only in lowered graphs")


def tangent_of_operation(node: MatrixOperation, tangents: Sequence[Expr | None]) -> Expr | None:
    """The tangent of a node from those of its operands; None stands for zero."""
    moved = tangents[0]
    if node.function.startswith("solve"):
        change = tangents[1]
        if moved is not None:
            own = build.product(_as_stored(node.function, moved), node)
            change = _negative(own) if change is None else build.apply(sub, change, own)
        if change is None:
            return None
        return build.matrix_operation(node.function, node.operands[0], change)
    if moved is None:
        return None
    matrix = node.operands[0]
    match node.function:
        case "cholesky":
            half = build.matrix_operation("solve_lower", node, moved)
            inner = build.matrix_operation("solve_lower", node, build.transposed(half))
            return build.product(node, _lower_with_half_diagonal(inner))
        case "inverse" | "inverse_symmetric" | "inverse_posdef":
            return _negative(build.product(build.product(node, moved), node))
        case "det":
            change = _trace_of_product(build.matrix_operation("inverse", matrix), moved)
            return build.apply(mul, node, change)
        case "logdet":
            return _trace_of_product(build.matrix_operation("inverse", matrix), moved)
        case "logdet_posdef":
            return _trace_of_product(build.matrix_operation("inverse_posdef", matrix), moved)
    raise TypeError(f"`{node.function}` occurs only in lowered graphs")


_TRANSPOSED: dict[str, MatrixFunction] = {
    "solve": "solve",
    "solve_symmetric": "solve_symmetric",
    "solve_lower": "solve_upper",
    "solve_upper": "solve_lower",
}
"""The function that solves the system with the transposed matrix."""


def _other(node: MatrixOperation) -> tuple[Expr]:
    """The matrix of the transposed system."""
    matrix = node.operands[0]
    return (matrix if node.function == "solve_symmetric" else build.transposed(matrix),)


def _as_stored(function: MatrixFunction, matrix: Expr) -> Expr:
    """The part of a derivative that belongs to elements which the function reads."""
    if function == "solve_lower":
        return lower_triangle(matrix)
    if function == "solve_upper":
        return build.transposed(lower_triangle(build.transposed(matrix)))
    return matrix


def lower_triangle(matrix: Expr) -> Expr:
    """The matrices with zeros above the diagonal."""
    rows, columns = positions(matrix)
    return build.apply(where, build.apply(ge, rows, columns), matrix, build.const(0.0))


def positions(matrix: Expr) -> tuple[Expr, Expr]:
    """The row and the column of each element, in the shape of the matrices."""
    place = matrix.rank - 2
    row, column = (
        build.broadcast(build.iota(matrix.shape[axis]), (axis,), matrix.shape)
        for axis in (place, place + 1)
    )
    return row, column


def _lower_with_half_diagonal(matrix: Expr) -> Expr:
    """Φ: the lower triangle with half the diagonal."""
    row, column = positions(matrix)
    half = build.apply(where, build.apply(eq, row, column), build.const(0.5), build.const(0.0))
    weight = build.apply(where, build.apply(gt, row, column), build.const(1.0), half)
    return build.apply(mul, weight, matrix)


def _symmetric_part(matrix: Expr) -> Expr:
    both = build.apply(add, matrix, build.transposed(matrix))
    return build.apply(mul, build.const(0.5), both)


def _negative(matrix: Expr) -> Expr:
    return build.apply(neg, matrix)


def _scaled(factor: Expr, matrix: Expr) -> Expr:
    """The matrices, each times the number for its index of the batch."""
    return build.apply(
        mul, build.broadcast(factor, tuple(range(factor.rank)), matrix.shape), matrix
    )


def _trace_of_product(left: Expr, right: Expr) -> Expr:
    """Σ_ij left_ij right_ji for every index of the batch."""
    batch = tuple(range(left.rank - 2))
    row, column = left.rank - 2, left.rank - 1
    inputs = [(*batch, row, column), (*batch, column, row)]
    return build.einsum([left, right], inputs, batch, left.shape)
