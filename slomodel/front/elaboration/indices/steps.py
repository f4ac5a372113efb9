"""Ranges and slices with steps: their sizes are rounded up, and compared once they are known."""

from __future__ import annotations

from slomodel.errors import Span
from slomodel.front.elaboration.errors import error
from slomodel.front.elaboration.indices.affine_index import whole
from slomodel.front.elaboration.scope import Elaboration, Scope
from slomodel.front.elaboration.values import Value, combine, merged, number, number_of
from slomodel.front.text.syntax import Expr
from slomodel.functions import add, div, eq, floor, maximum
from slomodel.ir import build
from slomodel.ir.dims import Dim, literal
from slomodel.ir.expr import Affine
from slomodel.problem import Check


def positive(node: Expr, scope: Scope) -> int:
    """The value of a step, a literal whole number above 0."""
    step = whole(node, scope)
    if step < 1:
        message = f"the step `{node.span.text}` is not positive"
        raise error("E212", message, node.span, "write a step from 1 on, and count upwards")
    return step


def stepped(extent: Dim, step: int, model: Elaboration) -> Dim:
    """The number of steps that fit into an extent, rounded up; at least 0."""
    if step == 1:
        return extent
    if extent.is_literal:
        return literal(max(-(-extent.const // step), 0))
    if all(coefficient % step == 0 for _, coefficient in extent.terms):
        terms = tuple((name, coefficient // step) for name, coefficient in extent.terms)
        return Dim(terms, -(-extent.const // step))
    count = rounded_up(number_of(extent), step)
    text = f"({extent})" if extent.const or len(extent.terms) > 1 else f"{extent}"
    return model.counted_dim(f"ceil({text}/{step})", count.expr)


def rounded_up(extent: Value, step: int) -> Value:
    """The whole number ceil(extent / step), or 0 if that is negative."""
    shifted = combine(maximum, combine(add, extent, number(step - 1.0)), number(0.0))
    return combine(floor, combine(div, shifted, number(float(step))))


def conformed(model: Elaboration, span: Span, values: tuple[Value, ...]) -> tuple[Value, ...]:
    """The values, with rounded sizes of axes taken to be equal to those of other values.

    `x[::2]` has ceil(n/2) elements and `x[1::2]` ceil((n - 1)/2): whether these are equal is tested
    at bind. Axes that can never be equal are left as they are.
    """
    ranks = {value.rank for value in values if value.rank}
    if len(ranks) != 1 or merged(values) is not None:
        return values
    result = list(values)
    for axis in range(ranks.pop()):
        dims = [value.axes[axis] for value in result if value.rank]
        target = next((dim for dim in dims if dim is not None), None)
        for k, value in enumerate(result):
            own = value.axes[axis] if value.rank else None
            if own is None or target is None or own == target:
                continue
            if not (_is_rounded(own) or _is_rounded(target)):
                return values
            result[k] = _renamed(value, axis, target)
            condition = build.apply(eq, build.size_of(own), build.size_of(target))
            fault = f"`{span.text}` is of axes of different sizes"
            model.checks.append(Check(condition, span.text, span, fault))
    return tuple(result)


def _is_rounded(dim: Dim) -> bool:
    return any("(" in name for name, _ in dim.terms)


def _renamed(value: Value, axis: int, dim: Dim) -> Value:
    """The value with the size of an axis replaced by another dim that is the same number."""
    axes = (*value.axes[:axis], dim, *value.axes[axis + 1 :])
    place = len(value.labels) + sum(one is not None for one in value.axes[:axis])
    shape = (*value.expr.shape[:place], dim, *value.expr.shape[place + 1 :])
    every = range(len(shape))
    index = [Affine(Dim(), tuple(int(k == j) for k in every)) for j in every]
    return Value(build.gather(value.expr, index, shape), value.labels, axes)
