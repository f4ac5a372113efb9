"""Values of expressions: graph nodes with index labels and named axes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from slomodel.errors import Span
from slomodel.functions import abs, add, div, floor, mul, pow, root, sqrt, square, sub
from slomodel.ir import build
from slomodel.ir.dims import Dim, Shape, literal, named
from slomodel.ir.expr import Const, Einsum, Expr, Map
from slomodel.ir.function import ScalarFunction

Axis: TypeAlias = Dim | None
"""An axis of a value; None is one created by `None` in an index, the only kind that broadcasts."""


@dataclass(frozen=True, slots=True, eq=False)
class Label:
    """An index variable in scope: it takes `dim` values, `start`, `start + step`, ….

    `order` numbers labels in the order of their construction; `is_range`: the domain was a `range`.
    """

    name: str
    dim: Dim
    start: Dim
    order: int
    is_range: bool = False
    step: int = 1


@dataclass(frozen=True, slots=True)
class Pattern:
    """Where the stored entries of sparse data stand: entry k at `places[0][k], places[1][k], …`.

    `name` is that of the data, `entry` the label that numbers the entries, `shape` that of the
    data. The places are whole numbers, one array along the entries for each axis.
    """

    name: str
    entry: Label
    places: tuple[Expr, ...]
    shape: Shape


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """An array of shape `axes` for each value of the index `labels` on which it depends.

    The node `expr` has one axis per label, in the order of the labels, then one for each axis that
    is not None. `row` is the span of a transposed vector that has not been multiplied by `@` yet.
    With a `pattern` the value is a sparse array: it has no axes, one of its labels numbers the
    entries of the pattern, and all other elements are 0. `total_of` names the log density of arrays
    whose sum the value is.
    """

    expr: Expr
    labels: tuple[Label, ...] = ()
    axes: tuple[Axis, ...] = ()
    row: Span | None = None
    pattern: Pattern | None = None
    total_of: str = ""

    @property
    def rank(self) -> int:
        return len(self.axes)

    @property
    def dims(self) -> Shape:
        """The dims of the axes of the node that are not labels."""
        return self.expr.shape[len(self.labels) :]


def value_of(expr: Expr) -> Value:
    """A node without index labels as a value."""
    return Value(expr, (), expr.shape)


def number(value: float) -> Value:
    return value_of(build.const(value))


def number_of(dim: Dim) -> Value:
    """A whole number that is affine in dims, as a scalar; it may be negative."""
    result = number(float(dim.const))
    for name, coefficient in dim.terms:
        term = combine(mul, number(float(coefficient)), value_of(build.size_of(named(name))))
        result = combine(add, term, result)
    return result


def show(value: Value) -> str:
    """The shape in the notation of the language, `[m, None]` or `scalar`."""
    if value.pattern is not None:
        return f"{show_axes(value.pattern.shape)} sparse"
    return show_axes(value.axes)


def show_axes(axes: Sequence[Axis]) -> str:
    return f"[{', '.join(map(str, axes))}]" if axes else "scalar"


def is_square(value: Value) -> bool:
    """Whether a value is a matrix with the same dim on both axes."""
    return value.rank == 2 and value.axes[0] is not None and value.axes[0] == value.axes[1]


def merged(values: Sequence[Value]) -> tuple[Axis, ...] | None:
    """The axes of an elementwise result; None if shapes differ. Scalars fit any shape."""
    result: tuple[Axis, ...] = ()
    for value in values:
        if not value.axes:
            continue
        if not result:
            result = value.axes
            continue
        if len(result) != len(value.axes):
            return None
        pairs = list(zip(result, value.axes, strict=True))
        if any(a is not None and b is not None and a != b for a, b in pairs):
            return None
        result = tuple(b if a is None else a for a, b in pairs)
    return result


def union(values: Iterable[Value]) -> tuple[Label, ...]:
    """All labels of the values, in canonical order."""
    return tuple(sorted({x for v in values for x in v.labels}, key=lambda label: label.order))


def combine(function: ScalarFunction, *values: Value) -> Value:
    """A scalar function applied elementwise, matching labels by identity and axes by position.

    The caller checks the shapes by `merged`.
    """
    if not any(value.axes or value.labels for value in values):
        numbers = [value.expr for value in values]
        return Value(build.apply_along(function, numbers, ((),) * len(numbers), ()))
    axes = merged(values)
    assert axes is not None
    labels = union(values)
    place = {label: k for k, label in enumerate(labels)}
    position: list[int] = []
    shape = [label.dim for label in labels]
    for axis in axes:
        position.append(len(shape))
        if axis is not None:
            shape.append(axis)
    own = tuple(
        tuple(place[label] for label in value.labels)
        + tuple(position[k] for k, axis in enumerate(value.axes) if axis is not None)
        for value in values
    )
    expr = build.apply_along(function, [v.expr for v in values], own, tuple(shape))
    return Value(expr, labels, axes)


def with_unit_axes(value: Value) -> Value:
    """The value with every axis created by `None` replaced by an axis of size 1."""
    if None not in value.axes:
        return value
    dims = tuple(literal(1) if axis is None else axis for axis in value.axes)
    count = len(value.labels)
    kept = tuple(count + k for k, axis in enumerate(value.axes) if axis is not None)
    shape = tuple(label.dim for label in value.labels) + dims
    expr = build.broadcast(value.expr, (*range(count), *kept), shape)
    return replace(value, expr=expr, axes=dims)


def as_axes(value: Value, labels: Sequence[Label], axes: Sequence[Axis]) -> Value:
    """A value with `labels` turned into its first axes: one per entry of `axes` that is not None.

    It is broadcast along labels on which it does not depend.
    """
    kept = tuple(label for label in value.labels if label not in labels)
    every = (*kept, *labels)
    number = {label: k for k, label in enumerate(every)}
    inner = range(len(every), len(every) + len(value.dims))
    own = (*(number[label] for label in value.labels), *inner)
    shape = (*(label.dim for label in every), *value.dims)
    expr = build.einsum([value.expr], [own], tuple(range(len(shape))), shape)
    return Value(expr, kept, (*axes, *value.axes))


def remainder(value: Value, divisor: Value) -> Value:
    """The remainder of whole numbers, with the sign of the divisor."""
    quotient = combine(floor, combine(div, value, divisor))
    return combine(sub, value, combine(mul, divisor, quotient))


def power_of(base: Value, exponent: Value) -> Value:
    """`base ^ exponent`; `norm2(x)^2` is the sum of squares, `sumsq(x)^0.5` is `norm2(x)`."""
    node, number = base.expr, exponent.expr
    if isinstance(number, Const):
        inside = _root_of(node)
        if inside is not None and number.value == 2.0:
            return replace(base, expr=inside, row=None)
        if inside is not None and number.value == 4.0:
            return combine(square, replace(base, expr=inside, row=None))
        if number.value == 0.5:
            return square_root(base)
    return combine(pow, base, exponent)


def squared(value: Value) -> Value:
    inside = _root_of(value.expr)
    return combine(square, value) if inside is None else replace(value, expr=inside)


def square_root(value: Value) -> Value:
    """`sqrt`, which is the norm of a sum of squares and the absolute value of a square."""
    node = value.expr
    if isinstance(node, Map) and node.function is square:
        return combine(abs, replace(value, expr=node.operands[0]))
    return combine(root if _is_sum_of_squares(node) else sqrt, value)


def _root_of(node: Expr) -> Expr | None:
    """The sum of squares s if the node is the root of s, otherwise None."""
    return node.operands[0] if isinstance(node, Map) and node.function is root else None


def _is_sum_of_squares(node: Expr) -> bool:
    if not isinstance(node, Einsum) or len(node.operands) != 2:
        return False
    equal = node.operands[0] is node.operands[1] and node.inputs[0] == node.inputs[1]
    return equal and len(set(node.output)) == len(node.output)
