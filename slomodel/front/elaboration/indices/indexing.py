"""Indices and slices: `x[i]`, `x[i+1]`, `A[i,:]`, `x[1:]`, `x[-1]`, `b[:, None]`, `a[g[i]]`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from slomodel.front.elaboration.errors import StatementError, shape_error
from slomodel.front.elaboration.evaluation import Steps
from slomodel.front.elaboration.indices.affine_index import (
    AffineIndex,
    affine,
    check_index,
    check_slice,
    is_inside,
    moving_slice,
    size,
    value_of_affine,
)
from slomodel.front.elaboration.indices.grouping import position_within
from slomodel.front.elaboration.indices.sparse import entry_value
from slomodel.front.elaboration.indices.steps import positive, stepped
from slomodel.front.elaboration.indices.tables import (
    check_table,
    may_be_whole,
    multiplies_indices,
    reads_arrays,
)
from slomodel.front.elaboration.scope import Ongoing, Scope, ValueRequest
from slomodel.front.elaboration.shape_mismatch import marks, operand
from slomodel.front.elaboration.values import (
    Axis,
    Label,
    Value,
    combine,
    number,
    show,
    with_unit_axes,
)
from slomodel.front.text.syntax import Expr, Index, Name, Negate, NoneLiteral, NumberLiteral, Slice
from slomodel.functions import where
from slomodel.ir import build
from slomodel.ir.dims import Dim
from slomodel.ir.expr import Affine, Lookup
from slomodel.ir.expr import Index as NodeIndex
from slomodel.problem import Check, LookupBound


@dataclass(slots=True)
class _Picked:
    """The index of each axis of the operand, and the axes of the result.

    `position` is the axis of the result to which a slice or an index array leads, counted among
    those that are not None; `steps` has the steps of slices by that position.
    """

    where: list[tuple[AffineIndex | Value, int | None]] = field(default_factory=list)
    axes: list[Axis] = field(default_factory=list)
    steps: dict[int, int] = field(default_factory=dict)

    @property
    def dims(self) -> list[Dim]:
        return [axis for axis in self.axes if axis is not None]


def indexing(node: Index, request: ValueRequest) -> Steps:
    scope = request.scope
    state = scope.local.get(node.base.text) if isinstance(node.base, Name) else None
    is_earlier = None
    if isinstance(state, Ongoing):
        read = state.read(node, scope)
        base, items, is_earlier = read.value, read.items, read.is_earlier
        if not items and not base.rank:
            return base
        if 0 < len(items) < base.rank and len(items) < len(node.items):
            raise _too_few_of_state(node, base, len(items), state.name)
        node = replace(node, items=items)
    else:
        base = yield ValueRequest(node.base, scope, sparse=True)
        if base.pattern is not None:
            return entry_value(node, base, scope)
    count = sum(not isinstance(item, NoneLiteral) for item in node.items)
    if count > base.rank:
        raise _too_many(node, base, count)
    # The last axes are whole where there is no index for them: `A[i]` is a row, as in NumPy.
    whole = Slice(None, None, None, node.span)
    picked = _Picked()
    rest = iter(base.axes)
    for item in (*node.items, *[whole] * (base.rank - count)):
        if isinstance(item, NoneLiteral):
            picked.axes.append(None)
            continue
        axis = next(rest)
        if axis is not None and not isinstance(item, Slice) and _is_table(item, scope):
            table = yield ValueRequest(item, scope)
            _look_up(picked, item, table, axis, scope)
        else:
            _pick(picked, item, axis, scope)
        if is_earlier is not None:
            place = picked.where[0][0]
            holds = is_earlier(place if isinstance(place, Value) else value_of_affine(place))
            fault = f"`{node.span.text}` reads a step that is not an earlier one"
            scope.model.checks.append(Check(holds.expr, item.span.text, node.span, fault))
            is_earlier = None
    return _read(base, picked)


def _is_table(item: Expr, scope: Scope) -> bool:
    """Whether an index reads arrays, or multiplies indices, as in `v[i * (i + 1) / 2 + j]`."""
    if reads_arrays(item, scope):
        return True
    try:
        affine(item, scope)
    except StatementError:
        return multiplies_indices(item, scope)
    return False


def _pick(picked: _Picked, item: Expr | Slice, axis: Axis, scope: Scope) -> None:
    if axis is None:
        _pick_new(picked, item, scope)
    elif isinstance(item, Slice):
        _slice(picked, item, axis, scope)
    else:
        index = affine(item, scope)
        if _is_negative_literal(item):
            index = AffineIndex(axis + index.offset)
        elif scope.guard is not None and not is_inside(index, axis):
            _look_up(picked, item, value_of_affine(index), axis, scope)
            return
        check_index(scope.model, index, axis, item.span)
        picked.where.append((index, None))


def _slice(picked: _Picked, item: Slice, axis: Dim, scope: Scope) -> None:
    _check_ends(item, scope)
    varying = moving_slice(item, scope)
    if varying is not None:
        first, length = varying
        check_index(scope.model, first, axis, item.span)
        check_index(scope.model, first.plus(AffineIndex(length - 1)), axis, item.span)
        picked.where.append((first, len(picked.dims)))
        picked.axes.append(length)
        return
    reverse = item.lo is None and item.hi is None and _is_minus_one(item.step)
    low = Dim() if item.lo is None else _edge(item.lo, axis, scope)
    high = axis if item.hi is None else _edge(item.hi, axis, scope)
    check_slice(scope.model, low, high, axis, item.span)
    step = 1 if reverse or item.step is None else positive(item.step, scope)
    start = axis - 1 if reverse else low
    picked.where.append((AffineIndex(start), len(picked.dims)))
    picked.steps[len(picked.dims)] = -1 if reverse else step
    picked.axes.append(stepped(high - low, step, scope.model))


def _check_ends(item: Slice, scope: Scope) -> None:
    """Check that the ends of a slice are sizes: arrays have no axes of different lengths."""
    for end in (item.lo, item.hi):
        if end is not None and reads_arrays(end, scope):
            ends = [one.span.text for one in (item.lo, item.hi) if one is not None]
            message = f"the length of a slice does not depend on data, as `{end.span.text}` does"
            remedy = f"let an index run: `sum(…[k] for k in range({', '.join(ends)}))`"
            raise shape_error("E209", message, end.span, remedy)


def _is_minus_one(node: Expr | None) -> bool:
    return isinstance(node, Negate) and _is_negative_literal(node) and node.span.text == "-1"


def _look_up(picked: _Picked, item: Expr, value: Value, axis: Dim, scope: Scope) -> None:
    """Index an axis by data: a number, or an array whose axes become those of the result."""
    value = with_unit_axes(value)
    if scope.guard is not None:
        value = _guarded(item, value, axis, scope, scope.guard)
    check_table(scope.model, value.expr, axis, item)
    if value.rank and any(isinstance(one, Value) and one.rank for one, _ in picked.where):
        message = "two arrays of indices could mean pairs or all combinations"
        remedy = "write pairs with an index, as in `B[g[i], h[i]]`"
        raise shape_error("E209", message, item.span, remedy)
    picked.where.append((value, len(picked.dims)))
    picked.axes += value.axes


def _guarded(item: Expr, value: Value, axis: Dim, scope: Scope, guard: Value) -> Value:
    """The index clipped to its axis, after a check that it is inside wherever the guard holds."""
    if value.rank or not may_be_whole(value.expr, scope.model):
        return value
    clipped, inside = position_within(axis, value, scope.model)
    if inside is not None:
        needed = combine(where, guard, value, number(0.0)).expr
        scope.model.lookups[LookupBound(needed, axis, item.span.text, item.span)] = None
    return clipped


def _pick_new(picked: _Picked, item: Expr | Slice, scope: Scope) -> None:
    """Index an axis created by `None`, which is taken whole or read at 0."""
    if isinstance(item, Slice) and item.lo is None and item.hi is None:
        picked.axes.append(None)
    elif isinstance(item, Slice) or affine(item, scope).constant != 0:
        message = "an axis created by `None` has only the index 0"
        raise shape_error("E210", message, item.span, "write `:` to keep it or `0` to drop it")


def _edge(node: Expr, axis: Dim, scope: Scope) -> Dim:
    edge = size(node, scope)
    return axis + edge if _is_negative_literal(node) else edge


def _is_negative_literal(node: Expr) -> bool:
    return (
        isinstance(node, Negate)
        and isinstance(node.operand, NumberLiteral)
        and node.operand.value > 0
    )


def _read(base: Value, picked: _Picked) -> Value:
    """The operand read at the indices; a transposition if every axis is taken whole."""
    used = {label for index, _ in picked.where for label in index.labels}
    labels = tuple(sorted({*base.labels, *used}, key=lambda label: label.order))
    shape = tuple(label.dim for label in labels) + tuple(picked.dims)
    index: list[NodeIndex] = [
        _place(AffineIndex(Dim(), {label: 1}), None, labels, shape, {}) for label in base.labels
    ]
    index += [
        _place(form, position, labels, shape, picked.steps) for form, position in picked.where
    ]
    source = [
        _whole_axis(one, shape, axis) for one, axis in zip(index, base.expr.shape, strict=True)
    ]
    order = [k for k in source if k is not None]
    if len(order) == len(shape) == len(set(order)) == len(source):
        expr = build.transpose(base.expr, tuple(order.index(k) for k in range(len(shape))))
    else:
        expr = build.gather(base.expr, index, shape)
    return Value(expr, labels, tuple(picked.axes))


def _place(
    form: AffineIndex | Value,
    position: int | None,
    labels: tuple[Label, ...],
    shape: tuple[Dim, ...],
    steps: Mapping[int, int],
) -> NodeIndex:
    if isinstance(form, Value):
        assert position is not None
        own = [labels.index(label) for label in form.labels]
        first = len(labels) + position
        return Lookup((*own, *range(first, first + form.rank)), form.expr)
    coefficients = [form.labels.get(label, 0) for label in labels]
    rest = range(len(shape) - len(labels))
    coefficients += [steps.get(k, 1) if k == position else 0 for k in rest]
    return Affine(form.offset, tuple(coefficients))


def _whole_axis(one: NodeIndex, shape: tuple[Dim, ...], axis: Dim) -> int | None:
    """The axis of the result that runs through the whole operand axis in order, if any."""
    if not isinstance(one, Affine):
        return None
    used = [k for k, c in enumerate(one.coefficients) if c]
    if one.offset != Dim() or len(used) != 1 or one.coefficients[used[0]] != 1:
        return None
    return used[0] if shape[used[0]] == axis else None


def _too_few_of_state(node: Index, base: Value, left: int, name: str) -> StatementError:
    """The error for a state whose first values have axes that its indices should run along.

    `left` of the indices are not steps.
    """
    count = base.rank + len(node.items) - left
    axes = f"{count} axes: its indices and those of its first values"
    message = f"{len(node.items)} indices, and `{name}` has {axes}"
    remedy = "if the first values differ by index, write their element, as in `first a[k]`"
    return shape_error("E209", message, node.span, remedy)


def _too_many(node: Index, base: Value, count: int) -> StatementError:
    if not base.rank:
        message = f"`{node.base.span.text}` is a scalar, without an axis to index"
        return shape_error("E209", message, node.span, "omit the index")
    axes = "axis" if base.rank == 1 else f"{base.rank} axes"
    message = f"{count} indices for the {axes} of {show(base)}"
    remedy = "write one index for each axis"
    result = marks(operand(node.base, base))
    return shape_error("E209", message, node.span, remedy, marks=result)
