"""Constructors of operations on matrices, which are the last two axes; the others are a batch."""

from __future__ import annotations

from slomodel.errors import ShapeError
from slomodel.ir.dims import show_shape
from slomodel.ir.expr import Const, Einsum, Expr, MatrixFunction, MatrixOperation
from slomodel.ir.linear import broadcast, einsum, transpose


def matrix_operation(function: MatrixFunction, *operands: Expr) -> Expr:
    """A function of square matrices, all operands with the same batch axes."""
    matrix = operands[0]
    for operand in operands:
        if operand.rank < 2 or operand.dtype != "real":
            raise ShapeError(f"`{function}` needs matrices, not {show_shape(operand.shape)}")
        if operand.shape[:-1] != matrix.shape[:-1] and function != "solve_lu":
            shapes = f"{show_shape(matrix.shape)} and {show_shape(operand.shape)}"
            raise ShapeError(f"`{function}` needs operands with equal rows, not {shapes}")
    lowered = function in ("solve_lu", "solve_lu_transposed", "det_lu", "logdet_lu", "inverse_lu")
    if not lowered and matrix.shape[-1] != matrix.shape[-2]:
        raise ShapeError(f"`{function}` needs a square matrix, not {show_shape(matrix.shape)}")
    if len(operands) == 1:
        return _without_repetitions(function, matrix)
    return MatrixOperation(function, operands)


def _without_repetitions(function: MatrixFunction, matrix: Expr) -> Expr:
    """The function of one matrix each where matrices repeat along batch axes, then repeated."""
    rank = matrix.rank
    if not isinstance(matrix, Einsum) or len(matrix.operands) != 1 or len(matrix.dims) != rank:
        return MatrixOperation(function, (matrix,))
    kept = [k for k in range(rank) if k >= rank - 2 or matrix.output[k] in matrix.inputs[0]]
    if len(kept) == rank:
        return MatrixOperation(function, (matrix,))
    own = tuple(matrix.output[k] for k in kept)
    once = einsum(matrix.operands, matrix.inputs, own, matrix.dims[: max(own) + 1])
    result = MatrixOperation(function, (once,))
    axes = (*kept[:-2], *range(rank - 2, rank - 2 + result.rank - len(kept) + 2))
    return broadcast(result, axes, (*matrix.shape[:-2], *result.shape[len(kept) - 2 :]))


def transposed(matrix: Expr) -> Expr:
    """The matrices (…, m, n) transposed."""
    batch = tuple(range(matrix.rank - 2))
    return transpose(matrix, (*batch, matrix.rank - 1, matrix.rank - 2))


def transposed_from(node: Expr) -> Expr | None:
    """The matrices of which a node is the transpose, as a view; None for other nodes."""
    if not isinstance(node, Einsum) or len(node.operands) != 1 or node.rank < 2:
        return None
    batch = tuple(range(node.rank - 2))
    turned = (*batch, node.rank - 1, node.rank - 2)
    is_view = len(node.dims) == node.rank and node.inputs[0] == tuple(range(node.rank))
    return node.operands[0] if is_view and node.output == turned else None


def product(left: Expr, right: Expr) -> Expr:
    """The matrix products of (…, n, k) and (…, k, m) over the same batch."""
    batch = tuple(range(left.rank - 2))
    row, summed, column = range(left.rank - 2, left.rank + 1)
    dims = (*left.shape, right.shape[-1])
    inputs = [(*batch, row, summed), (*batch, summed, column)]
    return einsum([left, right], inputs, (*batch, row, column), dims)


def diagonals(matrix: Expr) -> Expr:
    """The diagonals (…, n) of square matrices (…, n, n)."""
    batch = tuple(range(matrix.rank - 2))
    row = matrix.rank - 2
    return einsum([matrix], [(*batch, row, row)], (*batch, row), matrix.shape[:-1])


def identities(matrix: Expr) -> Expr:
    """The identity matrix for every index of the batch, in the shape of square matrices."""
    batch = tuple(range(matrix.rank - 2))
    row = matrix.rank - 2
    return einsum([Const(1.0)], [()], (*batch, row, row), matrix.shape[:-1])
