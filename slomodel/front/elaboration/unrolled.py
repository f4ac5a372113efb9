"""Products, maxima and minima over axes of a few elements, written out element by element."""

from __future__ import annotations

from collections.abc import Sequence

from slomodel.errors import Span
from slomodel.front.elaboration.faults import missing
from slomodel.front.elaboration.scope import Model
from slomodel.front.elaboration.values import Label, Value, as_axes, combine
from slomodel.functions import maximum, minimum, mul
from slomodel.ir import build
from slomodel.ir.dims import Dim, literal
from slomodel.ir.expr import Affine
from slomodel.ir.function import ScalarFunction

MOST_UNROLLED = 32
_FUNCTIONS: dict[str, ScalarFunction] = {"prod": mul, "max": maximum, "min": minimum}


def folded(name: str, body: Value, labels: Sequence[Label], model: Model, span: Span) -> Value:
    """`prod`, `max` or `min` of a value over index labels of literal size."""
    if body.rank:
        raise missing(f"`{name}` of arrays by index cannot be computed yet", span)
    every = as_axes(body, labels, [label.dim for label in labels])
    return fold_axes(name, every, range(len(labels)), model, span)


def fold_axes(name: str, value: Value, axes: Sequence[int], model: Model, span: Span) -> Value:
    """`prod`, `max` or `min` of a value over some of its axes, which have literal sizes.

    A product written out has the right gradient where factors are 0, which a quotient has not.
    """
    for axis in sorted(axes, reverse=True):
        dim = value.axes[axis]
        count = dim.const if dim is not None and dim.is_literal else None
        if count is None or not 1 <= count <= MOST_UNROLLED:
            raise missing(
                f"`{name}` over the axis `{dim}` cannot be computed yet",
                span,
                f"it can over an axis of a fixed size, 1 to {MOST_UNROLLED}",
            )
        elements = [_element(value, axis, k) for k in range(count)]
        value = _fold(elements, _FUNCTIONS[name], model, span)
    return value


def _fold(elements: list[Value], function: ScalarFunction, model: Model, span: Span) -> Value:
    """In pairs, so that the graph stays shallow."""
    while len(elements) > 1:
        pairs = [combine(function, *elements[k : k + 2]) for k in range(0, len(elements) - 1, 2)]
        for pair in pairs:
            model.note(pair, span)
        elements = pairs + elements[2 * len(pairs) :]
    return elements[0]


def _element(value: Value, axis: int, k: int) -> Value:
    place = len(value.labels) + axis
    shape = value.expr.shape[:place] + value.expr.shape[place + 1 :]
    index = []
    for own in range(value.expr.rank):
        out = own - (own > place)
        unit = tuple(int(own != place and out == j) for j in range(len(shape)))
        index.append(Affine(literal(k) if own == place else Dim(), unit))
    axes = value.axes[:axis] + value.axes[axis + 1 :]
    return Value(build.gather(value.expr, index, shape), value.labels, axes)
