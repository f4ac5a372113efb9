"""Recurrences: definitions by index whose elements depend on earlier ones.

`time_steps` turns a body into the graph of one step.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from slomodel.errors import ShapeError, Span
from slomodel.front.elaboration.affine_index import affine, is_at_least_zero, value_of_affine
from slomodel.front.elaboration.errors import StatementError, error, shape_error
from slomodel.front.elaboration.index_sets import (
    bind_iterations,
    check_name,
    label_of,
)
from slomodel.front.elaboration.scope import Elaboration, Ongoing, Scope, ValueRequest
from slomodel.front.elaboration.shape_mismatch import marks, operand
from slomodel.front.elaboration.time_steps import Body, recurrence
from slomodel.front.elaboration.values import (
    Label,
    Value,
    combine,
    merged,
    number,
    number_of,
    settled,
    show,
    show_axes,
    union,
)
from slomodel.front.elaboration.windows import InnerIndex, Window, Windows
from slomodel.front.text.syntax import (
    BoolOp,
    Compare,
    Expr,
    First,
    FunctionCall,
    Index,
    Iteration,
    Let,
    Name,
    Node,
    NoneLiteral,
    Not,
    NumberLiteral,
    Slice,
    String,
    children,
    roots,
)
from slomodel.functions import add, ge, where
from slomodel.ir import build
from slomodel.ir.dims import Dim, Shape, literal
from slomodel.ir.expr import Affine, Input
from slomodel.ir.expr import Expr as Graph
from slomodel.problem import Check, LookupBound

_CODE = "E227"
NotExpression = Slice | NoneLiteral | Compare | BoolOp | Not | String


def is_recurrence(group: Sequence[Let]) -> bool:
    """Whether one definition, or several joined by `and`, form a recurrence."""
    if len(group) > 1 or group[0].first is not None:
        return True
    one = group[0]
    return one.indices is not None and one.name.text in _names(one.expr)


def _names(root: Node) -> Iterator[str]:
    stack: list[Node] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, Name):
            yield node.text
        stack += children(node)


@dataclass(slots=True)
class _State:
    """One state of a recurrence.

    `time` is the index over the steps that the body computes, after `count` first values. The
    state is computed for all values of the labels `outer`, the indices around a function's call.
    """

    number: int
    statement: Let
    body: Expr
    time: Label
    outer: tuple[Label, ...]
    later: tuple[Label, ...]
    scope: Scope
    count: Dim
    axes: Shape
    first: Graph | None
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


def recurrent(group: Sequence[Let], scope: Scope) -> Generator[ValueRequest, Value, list[Value]]:
    """The arrays that a recurrence computes, each with time as its first axis.

    In a function, the recurrence runs for each index on which its arguments depend.
    """
    outer = _outer_labels(group, scope)
    states: list[_State] = []
    for k, statement in enumerate(group):
        states.append((yield from _state(k, statement, group, scope, outer)))
    length = states[0].length
    for state in states[1:]:
        if state.length != length:
            assert state.statement.indices is not None
            message = "the definitions of a recurrence run over the same steps"
            remedy = f"`{states[0].name}` has {length} of them"
            raise shape_error(_CODE, message, state.statement.indices[0].domain.span, remedy)
    windows = Windows(len(states))
    bodies: list[Body] = []
    for state in states:
        bodies.append((yield from _body(state, states, windows)))
    bodies += [one.body for one in windows.made]
    try:
        made = recurrence(length, bodies, _in_order([*states, *windows.made]))
    except ShapeError as problem:
        message = f"this cannot be computed step by step: {problem}"
        raise error(_CODE, message, states[0].statement.span) from None
    found: list[Value] = []
    for state, array in zip(states, made[: len(states)], strict=True):
        value = _labelled(array, (None, *outer))
        scope.note(value, state.statement.expr.span)
        found.append(value)
    return found


def _outer_labels(group: Sequence[Let], scope: Scope) -> tuple[Label, ...]:
    """The labels of the arguments and definitions of a function that a recurrence reads."""
    names = {name for statement in group for root in roots(statement) for name in _names(root)}
    known = (scope.local[name] for name in names if name in scope.local)
    return union(one for one in known if isinstance(one, Value))


def _labelled(array: Graph, front: Sequence[Label | None]) -> Value:
    """The value of an array whose first axes run over labels; None is an axis of the value."""
    labels = sorted((one for one in front if one is not None), key=lambda one: one.order)
    order = [front.index(label) for label in labels]
    order += [k for k in range(array.rank) if k not in order]
    found = build.transpose(array, tuple(order))
    return Value(found, tuple(labels), found.shape[len(labels) :])


def check_group(group: Sequence[Let]) -> None:
    """Check that definitions form a recurrence: each has an index, and reads an earlier step."""
    for statement in group:
        if statement.indices is None:
            message = f"`{statement.name.text}` belongs to a recurrence, and has no index of time"
            remedy = f"write `{statement.name.text}[t in T] = …`"
            if len(group) > 1:
                remedy += "; definitions without an index have a `let` of their own"
            raise error(_CODE, message, statement.name.span, remedy)
    names = [statement.name.text for statement in group]
    for k, statement in enumerate(group):
        if names.index(names[k]) < k:
            message = f"`{names[k]}` is declared twice"
            raise error("E202", message, statement.name.span, "give one of them another name")
    if not any(set(names) & set(_names(statement.expr)) for statement in group):
        where = group[0].first.span if len(group) == 1 and group[0].first else group[-1].span
        message = "nothing here depends on an earlier step"
        remedy = "leave out `first`" if len(group) == 1 else "give each definition its own `let`"
        raise error(_CODE, message, where, remedy)


def _state(
    number: int, statement: Let, group: Sequence[Let], scope: Scope, outer: tuple[Label, ...]
) -> Generator[ValueRequest, Value, _State]:
    """The state with its first values; the names of the group are not in scope there."""
    assert statement.indices is not None
    time, *later = statement.indices
    check_name(time.name, scope, [one.name.text for one in group])
    every = label_of(time, scope)
    if every.start != Dim() or every.step != 1:
        message = f"a recurrence counts its steps from 0, one by one, unlike `{time.name.text}`"
        raise error(_CODE, message, time.domain.span, f"write `{time.name.text} in T`")
    labels, inner = bind_iterations(later, scope)
    if time.name.text in inner.local:
        raise error("E202", f"two indices have the name `{time.name.text}`", time.name.span)
    first, body = statement.first, statement.expr
    if first is None:
        first, body = _written_as_cases(statement.expr, time)
    count: Dim = Dim()
    axes: Shape = ()
    values: Graph | None = None
    if first is not None:
        count, axes, values = yield from _first_values(first, (*outer, *labels), inner)
    left = scope.model.label(time.name.text, every.dim - count, count, is_range=True)
    own = inner.with_local({time.name.text: left})
    return _State(number, statement, body, left, outer, labels, own, count, axes, values)


def _written_as_cases(body: Expr, time: Iteration) -> tuple[First | None, Expr]:
    """`where(t == 0, first, rest)` and `where(t < m, first, rest)` read as `rest first …`."""
    if not isinstance(body, FunctionCall) or body.function.text != "where" or body.kwargs:
        return None, body
    if len(body.args) != 3:
        return None, body
    test, early, rest = body.args
    if not isinstance(test, Compare):
        return None, body
    own = isinstance(test.left, Name) and test.left.text == time.name.text
    is_zero = isinstance(test.right, NumberLiteral) and test.right.value == 0
    domain: Expr = NumberLiteral(1.0, "1", test.right.span)
    if not own or isinstance(early, NotExpression) or isinstance(rest, NotExpression):
        return None, body
    if test.op in (">", "!=", ">=") and (is_zero or test.op == ">="):
        early, rest = rest, early
    elif not (test.op == "==" and is_zero) and test.op != "<":
        return None, body
    if test.op in ("<", ">="):
        domain = test.right
    return First((early,), replace(time, domain=domain), early.span), rest


def _first_values(
    first: First, later: tuple[Label, ...], inner: Scope
) -> Generator[ValueRequest, Value, tuple[Dim, Shape, Graph]]:
    """The number of first values, the axes of one beyond the later indices, and their array."""
    scope, labels = inner, later
    if first.iteration is not None:
        check_name(first.iteration.name, inner, ())
        label = label_of(first.iteration, inner)
        if label.start != Dim() or label.step != 1:
            message = "first values count from 0, one by one"
            raise error(_CODE, message, first.iteration.domain.span, "write `for t in m`")
        scope = inner.with_local({label.name: label})
        labels = (label, *later)
    found: list[Value] = []
    for one in first.values:
        found.append(settled((yield ValueRequest(one, scope))))
    axes = merged(found)
    if axes is None:
        every = [operand(node, value) for node, value in zip(first.values, found, strict=True)]
        message = "the first values of a recurrence have one shape"
        raise shape_error(_CODE, message, first.span, marks=marks(*every))
    shape = tuple(axis for axis in axes if axis is not None)
    if first.iteration is not None:
        return labels[0].dim, shape, _laid_out(found[0], labels, shape)
    count = literal(len(found))
    total: Graph | None = None
    for k, value in enumerate(found):
        own = _laid_out(value, labels, shape)
        wide = build.broadcast(own, tuple(range(1, own.rank + 1)), (literal(1), *own.shape))
        if len(found) > 1:
            index = [
                Affine(
                    literal(k) if j == 0 else Dim(), tuple(int(i == j) for i in range(wide.rank))
                )
                for j in range(wide.rank)
            ]
            wide = build.scatter(wide, index, (count, *own.shape))
        total = wide if total is None else build.apply(add, total, wide)
    assert total is not None
    return count, shape, total


def _laid_out(value: Value, labels: Sequence[Label], axes: Shape) -> Graph:
    """The array of a value, of shape (*labels, *axes); numbers fill the axes."""
    shape = (*(label.dim for label in labels), *axes)
    place = {label: k for k, label in enumerate(labels)}
    count = len(labels)
    own = [place[label] for label in value.labels]
    own += range(count, count + value.rank)
    return build.einsum([value.expr], [tuple(own)], tuple(range(len(shape))), shape)


def _body(
    state: _State, states: Sequence[_State], windows: Windows
) -> Generator[ValueRequest, Value, Body]:
    """The values of a state at all steps that its body computes."""

    def read(other: _State, node: Index, scope: Scope) -> Value:
        lag, along = _lag(state, other, node, scope)
        if along is None:
            return _labelled(at(other, lag), (state.time, *state.outer))
        window = windows.of(other, along.label.dim)
        is_current = lag == Dim()
        own = at(window, lag if is_current else lag - 1)
        found = along.part(own, at(other, lag) if is_current else None)
        return _labelled(found, (state.time, along.label, *state.outer))

    def at(source: _State | Window, lag: Dim) -> Input:
        key = (source.number, lag)
        if key not in state.reads:
            name = f"{source.name} of {source.number} at {state.name} - {lag}"
            state.reads[key] = Input(name, "step", (state.time.dim, *source.shape))
        return state.reads[key]

    ongoing = {other.name: Ongoing(other.name, partial(read, other)) for other in states}
    scope = state.scope.with_local(ongoing)
    value = settled((yield ValueRequest(state.body, scope)))
    if value.axes != state.axes and value.rank:
        wanted = show_axes(state.axes)
        message = f"the first values are {wanted}, and what follows is {show(value)}"
        if state.first is None:
            message = f"an element is a number without `first`, and this is {show(value)}"
        found_at = marks(operand(state.body, value))
        raise shape_error(_CODE, message, state.body.span, marks=found_at)
    root = _laid_out(value, (state.time, *state.outer, *state.later), state.axes)
    reads = {array: key for key, array in state.reads.items()}
    return Body(state.shape, state.count, state.first, root, reads)


def _lag(state: _State, other: _State, node: Index, scope: Scope) -> tuple[Dim, InnerIndex | None]:
    """How many steps before its own a state reads another; checked against the first values.

    For an index that an inner one shifts, the least of them, and how the window is read.
    """
    item, time = node.items[0], state.time
    text = node.span.text
    remedy = f"write it like `{other.name}[{time.name} - 1]`"
    if isinstance(item, NotExpression):
        message = f"`{text}` reads several steps of `{other.name}`, which is being computed"
        raise error(_CODE, message, item.span, remedy)
    index = affine(item, scope)
    shifts = {label: factor for label, factor in index.labels.items() if label != time}
    if index.labels.get(time) != 1 or len(shifts) > 1 or set(shifts.values()) - {1, -1}:
        message = f"a recurrence reads `{other.name}` a fixed number of steps before `{time.name}`"
        raise error(_CODE, message, item.span, remedy)
    least = most = time.start - index.offset
    along = None
    for label, factor in shifts.items():
        along = InnerIndex(label, factor > 0)
        least, most = (least, least + along.span) if factor < 0 else (least - along.span, least)
    guard = scope.guard if along is not None else None
    needed_lag = most if guard is None else least - 1
    _check_lags(state, other, node, least, needed_lag, remedy)
    if along is not None and is_at_least_zero(state.count - most) is not True:
        # In a window the steps before the first are 0; a condition has to exclude them.
        place = value_of_affine(index)
        needed = place if guard is None else combine(where, guard, place, number(0.0))
        bound = LookupBound(needed.expr, state.length, item.span.text, item.span)
        state.scope.model.lookups[bound] = None
    return least, along


def _check_lags(
    state: _State, other: _State, node: Index, least: Dim, most: Dim, remedy: str
) -> None:
    """Check that a state may read another these many steps before its own."""
    text, time, begin = node.span.text, state.time, state.count
    if least == most == Dim():
        if other is state:
            message = f"at {time.name} = {begin}, `{text}` reads the element that it defines"
            raise error(_CODE, message, node.span, remedy)
        return
    is_current = least == Dim() and other is not state
    ahead = is_at_least_zero(least if is_current else least - 1)
    if ahead is False:
        message = f"at {time.name} = {begin}, `{text}` reads step {begin - least}"
        message += ", which comes later" if least != Dim() else ", the element that it defines"
        raise error(_CODE, message, node.span, "a step depends on earlier ones: " + remedy)
    enough = is_at_least_zero(begin - most)
    if enough is False:
        message = f"at {time.name} = {begin}, `{text}` reads step {begin - most}: there is none"
        raise error(_CODE, message, node.span, _more_values(state, most))
    model = state.scope.model
    if ahead is None:
        _check(model, least - 1, node.span, f"`{text}` reads no earlier step")
    if enough is None:
        fault = f"`{state.name}` has {begin} first values, and `{text}` needs {most}"
        _check(model, begin - most, node.span, fault)


def _more_values(state: _State, lag: Dim) -> str:
    if lag == literal(1):
        return f"give the first value of `{state.name}`: `… first {state.name}0`"
    if lag.is_literal and lag.const <= 3:
        names = ", ".join(f"{state.name}{k}" for k in range(lag.const))
        return f"give as many first values as the largest lag: `… first {names}`"
    time = state.time.name
    return f"give {lag} first values: `… first {state.name}0[{time}] for {time} in {lag}`"


def _check(model: Elaboration, dim: Dim, span: Span, fault: str) -> None:
    """Test at bind that a dim is not negative."""
    condition = combine(ge, number_of(dim), number_of(Dim())).expr
    model.checks.append(Check(condition, span.text, span, fault))


def _in_order(states: Sequence[_State | Window]) -> list[int]:
    """The numbers of the states, each after those that it reads at the same step."""
    order: list[int] = []
    waiting = [state.number for state in states]
    while waiting:
        ready = [
            number
            for number in waiting
            if not any(lag == Dim() and other in waiting for other, lag in states[number].reads)
        ]
        if not ready:
            raise _circle(states, waiting)
        order.append(ready[0])
        waiting.remove(ready[0])
    return order


def _circle(states: Sequence[_State | Window], waiting: Sequence[int]) -> StatementError:
    first = states[waiting[0]]
    assert isinstance(first, _State), "a window waits only for a state"
    path = [waiting[0]]
    while path.count(path[-1]) == 1:
        reads = states[path[-1]].reads
        path.append(next(o for o, lag in reads if lag == Dim() and o in waiting))
    names = [states[number].name for number in path[path.index(path[-1]) :]]
    time = first.time.name
    message = f"at the same step {time}, " + ", which reads ".join(f"`{name}`" for name in names)
    remedy = f"read one of them at an earlier step, as in `{names[0]}[{time} - 1]`"
    return error(_CODE, message, first.statement.span, remedy)
