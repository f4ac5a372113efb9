"""The earlier steps that a step of a recurrence reads: `h[t-2]`, `e[t-1-j] for j in q`, `u[t-w:t]`.

A read at a fixed lag is a placeholder over all steps. Several steps at once are read from a window
of the latest ones, and steps that do not move with time from the whole history (see `windows`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from slomodel.errors import Span
from slomodel.front.elaboration.errors import StatementError, error, shape_error
from slomodel.front.elaboration.indices.affine_index import (
    AffineIndex,
    affine,
    is_at_least_zero,
    moving_slice,
    value_of_affine,
)
from slomodel.front.elaboration.indices.index_sets import index_value
from slomodel.front.elaboration.indices.tables import reads_arrays
from slomodel.front.elaboration.recurrences.step_order import StepOrder
from slomodel.front.elaboration.recurrences.windows import EarlierValues, InnerIndex, Windows
from slomodel.front.elaboration.scope import Elaboration, Ongoing, Scope, StateRead
from slomodel.front.elaboration.values import Label, Value, combine, number, number_of
from slomodel.front.text.syntax import (
    BoolOp,
    Compare,
    Expr,
    Index,
    Item,
    Let,
    NoneLiteral,
    Not,
    Slice,
    String,
)
from slomodel.functions import ge, gt, lt, where
from slomodel.ir import build
from slomodel.ir.dims import Dim, Shape, literal
from slomodel.ir.expr import Expr as Graph
from slomodel.ir.expr import Input
from slomodel.problem import Check, LookupBound

CODE = "E227"
NotExpression = Slice | NoneLiteral | Compare | BoolOp | Not | String


@dataclass(frozen=True, slots=True)
class RowsOfTables:
    """One row, that at `index`, the one at place `axis`, of each of several tables."""

    tables: Mapping[str, Ongoing]
    index: Label
    axis: int

    def read(
        self, name: str, row: Callable[[Index, Scope], StateRead], node: Index, scope: Scope
    ) -> StateRead:
        """The value that `node` reads of a table: in this row by `row`, or in an earlier one."""
        items, axis = node.items, self.axis
        item = items[axis] if axis < len(items) > 1 else None
        if item is not None and not isinstance(item, NotExpression):
            place = affine(item, scope)
            if place == AffineIndex(self.index.start, {self.index: self.index.step}):
                return row(replace(node, items=(*items[:axis], *items[axis + 1 :])), scope)
        return self.tables[name].read(node, scope)


@dataclass(slots=True)
class RecurrentState:
    """One state of a recurrence.

    `time` is the index over the steps that the body computes, after `count` first values; it falls
    if these are at the end, `order.backwards`. The state is computed for all values of the labels
    `outer`, the indices around a function's call or that of `rows`, if it is a row of a table.
    """

    number: int
    statement: Let
    order: StepOrder
    body: Expr
    time: Label
    outer: tuple[Label, ...]
    later: tuple[Label, ...]
    scope: Scope
    count: Dim
    axes: Shape
    first: Graph | None
    rows: RowsOfTables | None = None
    reads: dict[tuple[int, Dim], Input] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.statement.name.text

    @property
    def shape(self) -> Shape:
        return (*(label.dim for label in (*self.outer, *self.later)), *self.axes)

    @property
    def length(self) -> Dim:
        """The number of all steps."""
        return self.time.dim + self.count

    def position(self, step: Dim) -> Dim:
        """The value of the index of time at a step."""
        return self.length - 1 - step if self.order.backwards else step

    def at(self, source: RecurrentState | EarlierValues, lag: Dim) -> Input:
        """The placeholder (steps, …) for a state or window some steps before each step."""
        key = (source.number, lag)
        if key not in self.reads:
            name = f"{source.name} of {source.number} at {self.name} - {lag}"
            self.reads[key] = Input(name, "step", (self.time.dim, *source.shape))
        return self.reads[key]


def labelled(array: Graph, front: Sequence[Label | None]) -> Value:
    """The value of an array whose first axes run over labels; None is an axis of the value."""
    labels = sorted((one for one in front if one is not None), key=lambda one: one.order)
    order = [front.index(label) for label in labels]
    order += [k for k in range(array.rank) if k not in order]
    transpose = build.transpose(array, tuple(order))
    return Value(transpose, tuple(labels), transpose.shape[len(labels) :])


@dataclass(frozen=True, slots=True)
class _Read:
    """A read of state `other` in the text `node`, in a step of `state`."""

    state: RecurrentState
    other: RecurrentState
    node: Index
    scope: Scope

    @property
    def text(self) -> str:
        return self.node.span.text

    @property
    def item(self) -> Item:
        """The index of time."""
        return self.node.items[self.other.order.axis]

    @property
    def remedy(self) -> str:
        sign = "+" if self.state.order.backwards else "-"
        return f"write it like `{self.other.name}[{self.state.time.name} {sign} 1]`"

    @property
    def is_of_history(self) -> bool:
        """Whether the index of time is a place from data or an index that does not move with it.

        In a list of tuples the index of time is read from the list: steps cannot be distinguished.
        """
        time = self.state.time
        if isinstance(self.item, NotExpression) or self.scope.local.get(time.name) is not time:
            return False
        if reads_arrays(self.item, self.scope):
            return True
        labels = affine(self.item, self.scope).labels
        return bool(labels) and time not in labels

    def is_earlier(self, place: Value) -> Value:
        """Whether places in time come before the step, as they have to where a guard holds."""
        backwards, guard = self.state.order.backwards, self.scope.guard
        if guard is not None:
            never = number_of(self.state.length) if backwards else number(-1.0)
            place = combine(where, guard, place, never)
        return combine(gt if backwards else lt, place, index_value(self.state.time))

    def steps(self, index: AffineIndex) -> AffineIndex:
        """The steps that values of the index of time denote."""
        if not self.state.order.backwards:
            return index
        return AffineIndex(self.state.length - 1).plus(index, -1)


def read_earlier(
    state: RecurrentState, windows: Windows, other: RecurrentState, node: Index, scope: Scope
) -> StateRead:
    """The value at the steps that the index of time denotes in `node`, and the other indices.

    A slice is the first axis of the value, and the first of these; so are places in the history.
    """
    axis = other.order.axis
    if axis >= len(node.items):
        count = len(other.shape) - len(other.outer) + 1
        given = f"{len(node.items)} {'index' if len(node.items) == 1 else 'indices'}"
        message = f"{given}, and `{other.name}` has {count} axes"
        raise shape_error("E209", message, node.span, "write one index for each axis")
    rest = (*node.items[:axis], *node.items[axis + 1 :])
    read = _Read(state, other, node, scope)
    item = node.items[axis]
    if isinstance(item, Slice):
        rest = (Slice(None, None, None, item.span), *rest)
    elif read.is_of_history:
        return StateRead(_history(read, windows), (item, *rest), read.is_earlier)
    return StateRead(_value_read(read, windows), rest)


def _value_read(read: _Read, windows: Windows) -> Value:
    """The value at the steps that the index of time denotes."""
    state, other, scope = read.state, read.other, read.scope
    item, time = read.item, state.time
    along: Label | None = None
    if isinstance(item, Slice):
        result = moving_slice(item, scope)
        if result is None:
            message = f"`{read.text}` reads several steps of `{other.name}`, being computed"
            few = f"`{other.name}[{time.name}-2:{time.name}]`"
            remedy = f"{read.remedy}, or a fixed number of steps as in {few}"
            raise error(CODE, message, item.span, remedy)
        index, length = result
        along = scope.model.label("", length)
        index = index.plus(AffineIndex(Dim(), {along: 1}))
    elif isinstance(item, NotExpression):
        message = f"a step of `{other.name}` is a number"
        raise error(CODE, message, item.span, read.remedy)
    else:
        index = affine(item, scope)
    steps = read.steps(index)
    if time not in steps.labels:
        return _unmoved(read, steps, item)
    shifts = {label: factor for label, factor in steps.labels.items() if label != time}
    if steps.labels[time] != 1 or len(shifts) > 1 or set(shifts.values()) - {1, -1}:
        raise _not_a_lag(read, item, read.remedy)
    lag = state.count - steps.offset
    if not shifts:
        return _at_lag(read, windows, index, lag)
    ((label, factor),) = shifts.items()
    inner = InnerIndex(label, factor > 0)
    least = lag - inner.span if inner.is_later else lag
    most = lag if inner.is_later else lag + inner.span
    _check_lags(read, least, least - 1 if scope.guard is not None else most)
    _check_beginning(read, index, most)
    window = windows.of(other, label.dim)
    is_current = least == Dim()
    own = state.at(window, least if is_current else least - 1)
    part = inner.part(own, state.at(other, least) if is_current else None)
    return labelled(part, (time, None if label is along else label, *state.outer))


def _at_lag(read: _Read, windows: Windows, index: AffineIndex, lag: Dim) -> Value:
    """The value a fixed number of steps ago, before the first where a condition excludes it."""
    state, other = read.state, read.other
    front = (state.time, *state.outer)
    before_first = is_at_least_zero(state.count - lag) is False
    if read.scope.guard is None or not before_first or not lag.is_literal:
        _check_lags(read, lag, lag)
        return labelled(state.at(other, lag), front)
    _check_beginning(read, index, lag)
    window = state.at(windows.of(other, lag), Dim())
    return labelled(build.slice_at(window, 1, lag - 1), front)


def _history(read: _Read, windows: Windows) -> Value:
    """All values of a state, with time as the first axis: 0 at the step and after it."""
    state, scope, item = read.state, read.scope, read.item
    assert not isinstance(item, NotExpression)
    if scope.guard is None and not reads_arrays(item, scope):
        last = read.steps(affine(item, scope)).most
        if is_at_least_zero(state.count - 1 - last) is not True:
            message = f"`{read.text}` reads steps of `{read.other.name}` that are not earlier ones"
            later = f"range({state.time.name} + 1, {state.length})"
            domain = later if state.order.backwards else f"range({state.time.name})"
            raise error(CODE, message, read.node.span, f"restrict the index: `for … in {domain}`")
    array = state.at(windows.history_of(read.other), Dim())
    places = build.flipped(array, 1) if state.order.backwards else array
    return labelled(places, (state.time, None, *state.outer))


def _unmoved(read: _Read, index: AffineIndex, item: Expr | Slice) -> Value:
    """The value at a step that does not move with time: one of the first values."""
    first, place = read.other.first, index.constant
    count = read.other.count.const if read.other.count.is_literal else 0
    if first is None or place is None or not 0 <= place < count:
        raise _not_a_lag(read, item, read.remedy)
    return labelled(build.slice_at(first, 0, literal(place)), read.state.outer)


def _not_a_lag(read: _Read, item: Expr | Slice, remedy: str) -> StatementError:
    name, time = read.other.name, read.state.time.name
    message = f"a recurrence reads `{name}` a fixed number of steps before `{time}`"
    return error(CODE, message, item.span, remedy)


def _check_beginning(read: _Read, index: AffineIndex, most: Dim) -> None:
    """Check at bind that a condition excludes steps before the first, which are 0 in a window."""
    state, guard = read.state, read.scope.guard
    if is_at_least_zero(state.count - most) is True:
        return
    place = value_of_affine(index)
    needed = place if guard is None else combine(where, guard, place, number(0.0))
    span = read.item.span
    state.scope.model.lookups[LookupBound(needed.expr, state.length, span.text, span)] = None


def _check_lags(read: _Read, least: Dim, most: Dim) -> None:
    """Check that a state may read another from `least` to `most` steps before its own."""
    state, other, node = read.state, read.other, read.node
    text, begin = read.text, state.count
    at = f"at {state.time.name} = {state.position(begin)}, `{text}` reads"
    if least == most == Dim():
        if other is state:
            raise error(CODE, f"{at} the element that it defines", node.span, read.remedy)
        return
    is_current = least == Dim() and other is not state
    ahead = is_at_least_zero(least if is_current else least - 1)
    if ahead is False:
        raise _ahead(read, at, least)
    enough = is_at_least_zero(begin - most)
    if enough is False:
        message = f"{at} step {state.position(begin - most)}: there is none"
        raise error(CODE, message, node.span, _more_values(state, most))
    model = state.scope.model
    if ahead is None:
        _check(model, least - 1, node.span, f"`{text}` reads no earlier step")
    if enough is None:
        fault = f"`{state.name}` has {begin} first values, and `{text}` needs {most}"
        _check(model, begin - most, node.span, fault)


def _ahead(read: _Read, at: str, least: Dim) -> StatementError:
    """The error for a read of a step that is computed after its own."""
    state, backwards = read.state, read.state.order.backwards
    message = f"{at} step {state.position(state.count - least)}"
    if least == Dim():
        message += ", the element that it defines"
    else:
        message += f", which comes {'earlier' if backwards else 'later'}"
    remedy = f"a step depends on {'later' if backwards else 'earlier'} ones: {read.remedy}"
    if least != Dim() and not backwards:
        remedy = "steps depend on earlier ones, or all of them on later ones"
        if state.first is not None:
            time, name = state.time.name, state.name
            remedy = "a step depends on earlier ones; to run backwards, leave out `first` and give "
            remedy += f"the last value by `where({time} == {state.length - 1}, {name}0, …)`"
    return error(CODE, message, read.node.span, remedy)


def _more_values(state: RecurrentState, lag: Dim) -> str:
    time = state.time.name
    if state.order.backwards:
        edge = state.length - lag
        test = f"{time} == {edge}" if lag == literal(1) else f"{time} >= {edge}"
        return f"give the values there by a condition: `where({test}, {state.name}0, …)`"
    if state.rows is not None:
        test = f"{time} == 0" if lag == literal(1) else f"{time} < {lag}"
        return f"give the values there by a condition: `where({test}, {state.name}0, …)`"
    later = ", ".join(label.name for label in state.later)
    element = f"[{later}]" if later else ""
    if lag == literal(1):
        return f"give the first value of `{state.name}`: `… first {state.name}0{element}`"
    if lag.is_literal and lag.const <= 3:
        names = ", ".join(f"{state.name}{k}{element}" for k in range(lag.const))
        return f"give as many first values as the largest lag: `… first {names}`"
    every = ", ".join(filter(None, (time, later)))
    return f"give {lag} first values: `… first {state.name}0[{every}] for {time} in {lag}`"


def _check(model: Elaboration, dim: Dim, span: Span, fault: str) -> None:
    """Test at bind that a dim is not negative."""
    condition = combine(ge, number_of(dim), number_of(Dim())).expr
    model.checks.append(Check(condition, span.text, span, fault))
