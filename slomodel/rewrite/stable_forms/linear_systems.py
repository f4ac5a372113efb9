"""Systems in place of inverses, and logarithms of determinants that neither over- nor underflow.

A⁻¹B is the solution of AX = B: Gaussian elimination with exchanges is backward stable for each
column, and a product with the computed inverse is not (Higham, *Accuracy and Stability*, 2nd ed.,
§14.1). log(det A) adds logarithms of pivots; it has a value where det A > 0.
"""

from __future__ import annotations

from slomodel.ir import build
from slomodel.ir.dims import literal
from slomodel.ir.expr import Axes, Einsum, Expr, Map, MatrixFunction, MatrixOperation
from slomodel.ir.walk import inputs

_SOLVING: dict[str, MatrixFunction] = {"inverse": "solve", "inverse_symmetric": "solve_symmetric"}


def log_of_determinant(node: Map) -> Expr | None:
    """log(det A) as one function of A."""
    (inner,) = node.operands
    if not isinstance(inner, MatrixOperation) or inner.function != "det":
        return None
    value = build.matrix_operation("logdet", *inner.operands)
    return build.broadcast(value, node.axes[0], node.shape)


def solution_for_inverse(node: Einsum) -> Expr | None:
    """A product of an inverse with one other factor as the solution of a system."""
    for k, operand in enumerate(node.operands):
        if _is_inverse(operand) and _changes(operand):
            for transposed in (False, True):
                solved = _solved(node, k, transposed)
                if solved is not None:
                    return solved
    return None


def _is_inverse(node: Expr) -> bool:
    """Whether a node is an inverse, also by factors: T⁻ᵀ(T⁻¹I)."""
    while isinstance(node, MatrixOperation) and node.function.startswith("solve"):
        node = node.operands[-1]
        if _is_identity(node):
            return True
    return isinstance(node, MatrixOperation) and node.function in _SOLVING


def _is_identity(node: Expr) -> bool:
    return (
        isinstance(node, Einsum) and not node.operands and node.output[-2:] == node.output[-1:] * 2
    )


def _changes(node: Expr) -> bool:
    """Whether a node depends on variables; other inverses are computed once."""
    return any(one.role != "data" for one in inputs(node))


def _solved(node: Einsum, k: int, transposed: bool) -> Expr | None:
    """The contraction with operand k, an inverse, applied to the one factor that shares its label.

    That label is of the inverse's columns, or of its rows if `transposed`.
    """
    inverse, labels = node.operands[k], node.inputs[k]
    if len(set(labels)) < len(labels):
        return None
    kept, summed = labels[-2:][::-1] if transposed else labels[-2:]
    holders = [j for j, own in enumerate(node.inputs) if summed in own and j != k]
    if summed in node.output or len(holders) != 1:
        return None
    (j,) = holders
    own, batch = node.inputs[j], labels[:-2]
    columns = [label for label in own if label != summed and label not in batch]
    if len(columns) > 1 or kept in columns or len(set(own)) < len(own):
        return None
    order = (*batch, summed, *columns)
    shape = tuple(node.dims[label] for label in order)
    wide = shape if columns else (*shape, literal(1))
    right = build.broadcast(node.operands[j], tuple(map(order.index, own)), wide)
    result = _applied(inverse, right, transposed)
    if result is None:
        return None
    if not columns:
        result = build.reshape(result, result.shape[:-1])
    terms = [
        (operand, labels) for q, (operand, labels) in enumerate(_terms(node)) if q not in (j, k)
    ]
    terms.insert(min(j, k), (result, (*batch, kept, *columns)))
    # Without the label that the system sums over: one without operand would multiply by its size.
    number = {label: n for n, label in enumerate(k for k in range(len(node.dims)) if k != summed)}

    def renamed(labels: Axes) -> Axes:
        return tuple(number[label] for label in labels)

    return build.einsum(
        [operand for operand, _ in terms],
        [renamed(labels) for _, labels in terms],
        renamed(node.output),
        [node.dims[label] for label in number],
    )


def _terms(node: Einsum) -> list[tuple[Expr, Axes]]:
    return list(zip(node.operands, node.inputs, strict=True))


def _applied(inverse: Expr, right: Expr, transposed: bool) -> Expr | None:
    """The inverse, or its transpose, applied to right sides."""
    assert isinstance(inverse, MatrixOperation)
    function, matrix = inverse.function, inverse.operands[0]
    if function in _SOLVING:
        own = build.transposed(matrix) if transposed and function == "inverse" else matrix
        return build.matrix_operation(_SOLVING[function], own, right)
    inner = inverse.operands[1]
    if _is_identity(inner):
        if transposed:
            return None
        return build.matrix_operation(function, matrix, right)
    assert isinstance(inner, MatrixOperation)
    is_symmetric = inner.operands[0] is build.transposed(matrix)
    if transposed and not is_symmetric:
        return None
    applied = _applied(inner, right, transposed=False)
    return None if applied is None else build.matrix_operation(function, matrix, applied)
