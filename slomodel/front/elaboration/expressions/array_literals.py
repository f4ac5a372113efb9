"""Array literals: `[a, b]` of numbers is a vector, `[[a, b], [c, d]]` a matrix."""

from __future__ import annotations

from dataclasses import replace

from slomodel.front.elaboration.errors import StatementError, shape_error
from slomodel.front.elaboration.evaluation import Steps
from slomodel.front.elaboration.scope import ValueRequest
from slomodel.front.elaboration.shape_mismatch import Operand, marks, operand
from slomodel.front.elaboration.values import Value, combine, show, with_unit_axes
from slomodel.front.text.syntax import ArrayLiteral
from slomodel.functions import add
from slomodel.ir import build
from slomodel.ir.dims import Dim, literal
from slomodel.ir.expr import Affine


def array_literal(node: ArrayLiteral, request: ValueRequest) -> Steps:
    """The values joined along a new first axis, whose size is their number."""
    result: list[Operand] = []
    for item in node.items:
        value = yield ValueRequest(item, request.scope)
        result.append(operand(item, with_unit_axes(value)))
        if value.rank != result[0].value.rank or result[-1].value.axes != result[0].value.axes:
            raise _unequal(result[0], result[-1])
    size = literal(len(result))
    placed = [_placed(one.value, literal(k), size) for k, one in enumerate(result)]
    # A balanced sum: a chain of n sums would have n² terms where it is evaluated by parts.
    while len(placed) > 1:
        pairs = zip(placed[::2], placed[1::2], strict=False)
        rest = placed[len(placed) - len(placed) % 2 :]
        placed = [combine(add, a, b) for a, b in pairs] + rest
    return placed[0]


def _placed(value: Value, position: Dim, size: Dim) -> Value:
    """The value at one position along a new first axis of a size, zeros elsewhere."""
    count = len(value.labels)
    shape = value.expr.shape
    rank = len(shape)
    index = Affine.identity(rank)
    index.insert(count, Affine(position, (0,) * rank))
    expr = build.scatter(value.expr, index, (*shape[:count], size, *shape[count:]))
    return replace(value, expr=expr, axes=(size, *value.axes))


def _unequal(first: Operand, other: Operand) -> StatementError:
    a, b = show(first.value), show(other.value)
    message = f"the values in `[…]` need one shape: {a} and {b}"
    remedy = "join arrays of other sizes with `concat(a, b)`"
    return shape_error("E204", message, other.span, remedy, marks=marks(first, other))
