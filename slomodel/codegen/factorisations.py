"""Operations on matrices by factorisations, which are nodes that several operations share."""

from __future__ import annotations

from slomodel.functions import log, mul
from slomodel.ir import build
from slomodel.ir.expr import Expr, MatrixFunction, MatrixOperation
from slomodel.ir.matrices import transposed_from


def factored(node: MatrixOperation) -> Expr:
    """The node in terms of a Cholesky or LU factorisation; itself if it needs none."""
    matrix, *others = node.operands
    match node.function:
        case "solve_symmetric":
            return _operation("solve_cholesky", _cholesky(matrix), matrix, *others)
        case "inverse_symmetric":
            return _operation("inverse_cholesky", _cholesky(matrix), matrix)
        case "inverse_posdef":
            return _operation("inverse_cholesky", _cholesky(matrix))
        case "logdet_posdef":
            pivots = build.diagonals(_cholesky(matrix))
            roots = build.sum_over(build.apply(log, pivots), (pivots.rank - 1,))
            return build.apply(mul, build.const(2.0), roots)
        case "det":
            return _operation("det_lu", _lu(_upright(matrix)))
        case "logdet":
            return _operation("logdet_lu", _lu(_upright(matrix)))
        case "solve":
            return _solution(matrix, *others)
        case "inverse":
            return _inverse(matrix)
    return node


def _solution(matrix: Expr, right: Expr) -> Expr:
    """A⁻¹B by LU of A, or of the matrix of which A is the transpose."""
    inner = transposed_from(matrix)
    if inner is not None:
        return _operation("solve_lu_transposed", _lu(inner), right)
    return _operation("solve_lu", _lu(matrix), right)


def _inverse(matrix: Expr) -> Expr:
    inner = transposed_from(matrix)
    if inner is not None:
        return build.transposed(_operation("inverse_lu", _lu(inner)))
    return _operation("inverse_lu", _lu(matrix))


def _operation(function: MatrixFunction, *operands: Expr) -> Expr:
    return MatrixOperation(function, operands)


def _cholesky(matrix: Expr) -> Expr:
    return build.matrix_operation("cholesky", matrix)


def _lu(matrix: Expr) -> Expr:
    return build.matrix_operation("lu", matrix)


def _upright(matrix: Expr) -> Expr:
    """The matrix or its transpose, whichever is not a view: the determinants are equal."""
    inner = transposed_from(matrix)
    return matrix if inner is None else inner
