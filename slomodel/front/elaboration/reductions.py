"""Products, maxima, minima and sums of exponentials, over index labels and over axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from slomodel.errors import Span
from slomodel.front.elaboration.faults import shape_fault
from slomodel.front.elaboration.ranges import is_at_least_zero
from slomodel.front.elaboration.scope import Model
from slomodel.front.elaboration.values import Label, Value, settled
from slomodel.functions import ge, mul
from slomodel.functions.shifted import logsumexp, softmax
from slomodel.functions.translate import balanced
from slomodel.ir import build
from slomodel.ir.dims import Dim, literal
from slomodel.ir.expr import Affine, Axes, Expr
from slomodel.problem import Check

MOST_UNROLLED = 32
"""Products of so many factors are written out, longer ones are a recurrence."""

_Reduction = Callable[[Expr, Axes], Expr]


def reduced(
    name: str,
    value: Value,
    model: Model,
    span: Span,
    *,
    labels: Sequence[Label] = (),
    axes: Sequence[int] = (),
) -> Value:
    """`prod`, `max`, `min` or `logsumexp` of a value over some labels and some axes.

    A label that the value does not depend on counts as often as it has values.
    """
    value = settled(value)
    absent = [label for label in labels if label not in value.labels]
    every = (*absent, *value.labels)
    shape = tuple(label.dim for label in every) + value.dims
    expr = build.broadcast(value.expr, tuple(range(len(absent), len(shape))), shape)
    dropped = [k for k, label in enumerate(every) if label in labels]
    dropped += [len(every) + axis for axis in axes]
    if name != "prod":
        require_nonempty(name, model, [shape[k] for k in dropped], span)
    kept = tuple(label for label in value.labels if label not in labels)
    rest = tuple(axis for k, axis in enumerate(value.axes) if k not in axes)
    return Value(_REDUCTIONS[name](expr, tuple(sorted(dropped))), kept, rest)


def softened(value: Value, axis: int, model: Model, span: Span) -> Value:
    """`softmax` of a value along one axis."""
    require_nonempty("softmax", model, [value.dims[axis]], span)
    place = len(value.labels) + axis
    return Value(softmax(value.expr, (place,)), value.labels, value.axes)


def require_nonempty(name: str, model: Model, dims: Sequence[Dim], span: Span) -> None:
    """Of nothing there is no mean and no largest element: an error now, or at bind."""
    for dim in dims:
        at_least_one = is_at_least_zero(dim - 1)
        if at_least_one is False:
            message = f"the {name} of nothing is not defined"
            raise shape_fault("E212", message, span, "take it over at least one element")
        if at_least_one is None:
            condition = ge(build.size_of(dim), 1.0)
            model.checks.append(Check(condition, span.text, span, f"`{span.text}` is of nothing"))


def _product(expr: Expr, axes: Axes) -> Expr:
    """Both forms have the right derivative where factors are 0, which a quotient has not."""
    for axis in reversed(axes):
        dim = expr.shape[axis]
        if dim.is_literal and 1 <= dim.const <= MOST_UNROLLED:
            elements = [_element(expr, axis, k) for k in range(dim.const)]
            # In pairs, so that the graph stays shallow.
            expr = balanced(mul, elements)
        else:
            expr = build.product_over(expr, axis)
    return expr


def _element(expr: Expr, axis: int, k: int) -> Expr:
    rest = [j for j in range(expr.rank) if j != axis]
    index = [
        Affine(literal(k) if j == axis else Dim(), tuple(int(j == other) for other in rest))
        for j in range(expr.rank)
    ]
    return build.gather(expr, index, tuple(expr.shape[j] for j in rest))


_REDUCTIONS: dict[str, _Reduction] = {
    "prod": _product,
    "max": lambda expr, axes: build.extreme(expr, "max", axes),
    "min": lambda expr, axes: build.extreme(expr, "min", axes),
    "logsumexp": logsumexp,
}
