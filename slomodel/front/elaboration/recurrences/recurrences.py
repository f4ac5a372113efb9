"""Recurrences: definitions by index whose elements depend on earlier ones.

`time_steps` turns a body into the graph of one step.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial

from slomodel.errors import ShapeError
from slomodel.front.elaboration.errors import StatementError, error, shape_error
from slomodel.front.elaboration.indices.index_sets import (
    bind_iterations,
    check_name,
    label_of,
)
from slomodel.front.elaboration.recurrences.earlier_steps import (
    CODE,
    RecurrentState,
    RowsOfTables,
    labelled,
    read_earlier,
)
from slomodel.front.elaboration.recurrences.first_values import (
    CaseReader,
    first_values,
    laid_out,
    values_by_index,
)
from slomodel.front.elaboration.recurrences.step_order import (
    StepOrder,
    read_ahead,
    step_orders,
    with_own_indices,
)
from slomodel.front.elaboration.recurrences.time_steps import Body, recurrence
from slomodel.front.elaboration.recurrences.windows import EarlierValues, Windows
from slomodel.front.elaboration.scope import Ongoing, Scope, ValueRequest
from slomodel.front.elaboration.shape_mismatch import marks, operand
from slomodel.front.elaboration.values import (
    Label,
    Value,
    combine,
    number_of,
    show,
    show_axes,
    union,
    value_of,
    with_unit_axes,
)
from slomodel.front.text.syntax import (
    Let,
    Name,
    Node,
    roots,
)
from slomodel.front.text.traversal import nodes
from slomodel.functions import ge
from slomodel.ir import build
from slomodel.ir.dims import Dim, Shape
from slomodel.ir.expr import Expr as Graph
from slomodel.ir.walk import inputs
from slomodel.problem import Check


def is_recurrence(group: Sequence[Let]) -> bool:
    """Whether one definition, or several joined by `and`, form a recurrence."""
    if len(group) > 1 or group[0].first is not None:
        return True
    one = group[0]
    return one.indices is not None and one.name.text in _names(one.expr)


def _names(root: Node) -> Iterator[str]:
    return (node.text for node in nodes(root) if isinstance(node, Name))


def recurrent(group: Sequence[Let], scope: Scope) -> Generator[ValueRequest, Value, list[Value]]:
    """The arrays that a recurrence computes, their axes in the order of the indices.

    In a function, the recurrence runs for each index on which its arguments depend.
    """
    own = [with_own_indices(one, group) for one in group]
    return (yield from _computed(own, step_orders(own), scope, _outer_labels(own, scope)))


def _computed(
    group: Sequence[Let],
    orders: Sequence[StepOrder],
    scope: Scope,
    outer: tuple[Label, ...],
    rows: RowsOfTables | None = None,
) -> Generator[ValueRequest, Value, list[Value]]:
    """The arrays of a recurrence that runs in these orders, for all values of the labels `outer`.

    `rows`: they are one row of each of several tables.
    """
    states: list[RecurrentState] = []
    for k, (statement, order) in enumerate(zip(group, orders, strict=True)):
        states.append((yield from _state(k, statement, order, group, scope, outer, rows)))
    length = _length(states)
    windows = Windows(len(states))
    by_name = {state.name: state for state in states}
    for state in states:
        ahead = read_ahead(state.statement, {name: one.order for name, one in by_name.items()})
        if ahead is not None and isinstance(ahead.base, Name):
            read_earlier(state, windows, by_name[ahead.base.text], ahead, state.scope)
    if orders[0].inner is None:
        bodies = yield from _bodies(states, windows)
    else:
        bodies = yield from _rows(states, windows, scope)
    bodies += [one.body for one in windows.made]
    _check_further_steps(states, length)
    try:
        made = recurrence(length, bodies, _in_order([*states, *windows.made]))
    except ShapeError as problem:
        message = f"this cannot be computed step by step: {problem}"
        raise error(CODE, message, states[0].statement.span) from None
    values: list[Value] = []
    for state, array in zip(states, made[: len(states)], strict=True):
        value = _array(state, array)
        for one in (value, value_of(array)):
            scope.note(one, state.statement.expr.span)
        values.append(value)
    return values


def _length(states: Sequence[RecurrentState]) -> Dim:
    """The least number of steps of the states; some may have a fixed number of further ones."""
    orders = {(state.order.backwards, state.order.inner) for state in states}
    differences = [[one.length - other.length for one in states] for other in states]
    for state, more in zip(states, differences, strict=True):
        forwards = orders == {(False, None)}
        if all(one == Dim() or (forwards and one.is_literal and one.const > 0) for one in more):
            return state.length
    other = next(one for one in states if one.length != states[0].length)
    assert other.statement.indices is not None
    message = "the definitions of a recurrence run over the same steps"
    remedy = f"`{states[0].name}` has {states[0].length} of them"
    time = other.statement.indices[other.order.axis]
    raise shape_error(CODE, message, time.domain.span, remedy)


def _check_further_steps(states: Sequence[RecurrentState], length: Dim) -> None:
    """Check that the further steps of a state read only steps that the others have."""
    for state in states:
        if state.length == length:
            continue
        enough = combine(ge, number_of(length - state.count), number_of(Dim())).expr
        fault = f"`{state.name}` has {state.count} first values, and the other steps are {length}"
        span = state.statement.span
        state.scope.model.checks.append(Check(enough, span.text, span, fault))
        for number, lag in state.reads:
            other = next((one for one in states if one.number == number), None)
            short = Dim() if other is None else state.length - other.length - lag
            if other is not None and not (short.is_literal and short.const <= 0):
                last = f"{state.time.name} = {state.length - 1}"
                step = state.length - 1 - lag
                message = f"at {last}, `{state.name}` reads step {step} of `{other.name}`"
                remedy = f"`{other.name}` has {other.length} steps: give it as many as it needs"
                raise error(CODE, message, state.statement.expr.span, remedy)


def _array(state: RecurrentState, array: Graph) -> Value:
    """The array of all steps, (steps, …), with its axes in the order of the indices."""
    if state.order.backwards:
        array = build.flipped(array, 0)
    value = labelled(array, (None, *state.outer))
    count, rank = len(value.labels), value.rank
    order = [*range(1, rank)]
    order.insert(state.order.axis, 0)
    expr = build.transpose(value.expr, (*range(count), *(count + k for k in order)))
    return Value(expr, value.labels, tuple(value.axes[k] for k in order))


def _bodies(
    states: Sequence[RecurrentState], windows: Windows
) -> Generator[ValueRequest, Value, list[Body]]:
    """The bodies of the states, each evaluated after those whose shape it needs."""
    evaluated: dict[int, Body] = {}
    while len(evaluated) < len(states):
        state = _next(states, evaluated)
        evaluated[state.number] = yield from _body(state, states, windows)
    return [evaluated[state.number] for state in states]


def _rows(
    states: Sequence[RecurrentState], windows: Windows, scope: Scope
) -> Generator[ValueRequest, Value, list[Body]]:
    """The bodies of recurrences in two indices: a step is a row, itself computed by a recurrence.

    Reads of the same row belong to the inner recurrence, all others to earlier rows.
    """
    first = states[0]
    for state in states:
        if state.axes or state.count != first.count:
            shape = f"{state.count} of shape {show_axes(state.axes)}"
            message = "tables that are computed together begin with equally many rows of numbers"
            remedy = f"`{first.name}` has {first.count}, and `{state.name}` {shape}"
            raise shape_error(CODE, message, state.statement.span, remedy)
    axis = first.order.axis
    group: list[Let] = []
    for one in states:
        indices = one.statement.indices or ()
        indices = (*indices[:axis], *indices[axis + 1 :])
        group.append(replace(one.statement, indices=indices, expr=one.body, first=None))
    tables = {
        other.name: Ongoing(other.name, partial(read_earlier, first, windows, other))
        for other in states
    }
    own = scope.with_local({first.time.name: first.time, **tables})
    rows = RowsOfTables(tables, first.time, axis)
    orders = [state.order.of_rows for state in states]
    values = yield from _computed(group, orders, own, (*first.outer, first.time), rows)
    bodies: list[Body] = []
    reads = first.reads
    for state, value in zip(states, values, strict=True):
        root = laid_out(value, (first.time, *first.outer), value.dims)
        used = set(inputs(root))
        state.reads = {key: array for key, array in reads.items() if array in used}
        own_reads = {array: key for key, array in state.reads.items()}
        bodies.append(Body(state.shape, state.count, state.first, root, own_reads))
    return bodies


def _outer_labels(group: Sequence[Let], scope: Scope) -> tuple[Label, ...]:
    """The labels of the arguments and definitions of a function that a recurrence reads."""
    names = {name for statement in group for root in roots(statement) for name in _names(root)}
    known = (scope.local[name] for name in names if name in scope.local)
    return union(one for one in known if isinstance(one, Value))


def _next(states: Sequence[RecurrentState], evaluated: Collection[int]) -> RecurrentState:
    """The state whose body is evaluated next: if possible it reads only states of known shape.

    The shape of a state is that of its first values, or of its body if it has none.
    """
    left = [state for state in states if state.number not in evaluated]
    unknown = {state.name for state in left if state.first is None}
    for state in left:
        if not (unknown - {state.name}).intersection(_names(state.body)):
            return state
    return left[0]


def check_group(group: Sequence[Let]) -> None:
    """Check that definitions form a recurrence: each has an index, and reads an earlier step."""
    for statement in group:
        if statement.indices is None:
            message = f"`{statement.name.text}` belongs to a recurrence, and has no index of time"
            remedy = f"write `{statement.name.text}[t in T] = …`"
            if len(group) > 1:
                remedy += "; definitions without an index have a `let` of their own"
            raise error(CODE, message, statement.name.span, remedy)
    names = [statement.name.text for statement in group]
    for k, statement in enumerate(group):
        if names.index(names[k]) < k:
            message = f"`{names[k]}` is declared twice"
            raise error("E202", message, statement.name.span, "give one of them another name")
    if not any(set(names) & set(_names(statement.expr)) for statement in group):
        where = group[0].first.span if len(group) == 1 and group[0].first else group[-1].span
        message = "nothing here depends on an earlier step"
        remedy = "leave out `first`" if len(group) == 1 else "give each definition its own `let`"
        raise error(CODE, message, where, remedy)


def _state(
    number: int,
    statement: Let,
    order: StepOrder,
    group: Sequence[Let],
    scope: Scope,
    outer: tuple[Label, ...],
    rows: RowsOfTables | None,
) -> Generator[ValueRequest, Value, RecurrentState]:
    """The state with its first values; the names of the group are not in scope there."""
    assert statement.indices is not None
    time = statement.indices[order.axis]
    later = [one for one in statement.indices if one is not time]
    names = [one.name.text for one in group]
    check_name(time.name, scope, names)
    every = label_of(time, scope)
    if every.start != Dim() or every.step != 1:
        message = f"a recurrence counts its steps from 0, one by one, unlike `{time.name.text}`"
        raise error(CODE, message, time.domain.span, f"write `{time.name.text} in T`")
    labels, inner = bind_iterations(later, scope)
    if time.name.text in inner.local:
        raise error("E202", f"two indices have the name `{time.name.text}`", time.name.span)

    def steps(count: Dim, begin: Dim) -> Label:
        """The index of time over `count` steps from one on."""
        start = every.dim - 1 - begin if order.backwards else begin
        step = -1 if order.backwards else 1
        return scope.model.label(time.name.text, count, start, is_range=True, step=step)

    body = statement.expr
    count: Dim = Dim()
    axes: Shape = ()
    values: Graph | None = None
    if statement.first is not None:
        count, axes, values = yield from first_values(statement.first, (*outer, *labels), inner)
    else:
        reader = CaseReader(time.name.text, every.dim, order.backwards, names, inner)
        cases = reader.cases(body)
        if order.inner is not None and not _begin_equally(reader, group):
            cases = None  # a condition on the rows then stays one
        if cases is not None:
            body, label = cases.rest, steps(cases.count, Dim())
            by_index = values_by_index(cases.early, label, (*outer, *labels), inner)
            count, axes, values = yield from by_index
    left = steps(every.dim - count, count)
    own = inner.with_local({time.name.text: left})
    return RecurrentState(
        number, statement, order, body, left, outer, labels, own, count, axes, values, rows
    )


def _begin_equally(reader: CaseReader, group: Sequence[Let]) -> bool:
    """Whether the definitions of tables have the same number of first rows."""
    every = [reader.cases(one.expr) for one in group]
    return len({None if one is None else one.count for one in every}) == 1


def _body(
    state: RecurrentState, states: Sequence[RecurrentState], windows: Windows
) -> Generator[ValueRequest, Value, Body]:
    """The values of a state at all steps that its body computes."""

    ongoing = {other.name: _ongoing(state, windows, other) for other in states}
    scope = state.scope.with_local(ongoing)
    value = with_unit_axes((yield ValueRequest(state.body, scope)))
    every: list[RecurrentState | EarlierValues] = [*states, *windows.made]
    is_read = any(state.number == number for one in every for number, _ in one.reads)
    if state.first is None and not state.later and not is_read:
        state.axes = value.dims
    if value.axes != state.axes and value.rank:
        wanted = show_axes(state.axes)
        message = f"the first values are {wanted}, and what follows is {show(value)}"
        if state.first is None:
            message = f"without first values `{state.name}` is a number, not {show(value)}"
        found_at = marks(operand(state.body, value))
        raise shape_error(CODE, message, state.body.span, marks=found_at)
    root = laid_out(value, (state.time, *state.outer, *state.later), state.axes)
    used = set(inputs(root))
    state.reads = {key: array for key, array in state.reads.items() if array in used}
    reads = {array: key for key, array in state.reads.items()}
    return Body(state.shape, state.count, state.first, root, reads)


def _ongoing(state: RecurrentState, windows: Windows, other: RecurrentState) -> Ongoing:
    """The values of another state that `state` reads; for a row, those of its table too."""
    read = partial(read_earlier, state, windows, other)
    if other.rows is not None:
        read = partial(other.rows.read, other.name, read)
    return Ongoing(other.name, read)


def _in_order(states: Sequence[RecurrentState | EarlierValues]) -> list[int]:
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


def _circle(
    states: Sequence[RecurrentState | EarlierValues], waiting: Sequence[int]
) -> StatementError:
    first = states[waiting[0]]
    assert isinstance(first, RecurrentState), "a window waits only for a state"
    path = [waiting[0]]
    while path.count(path[-1]) == 1:
        reads = states[path[-1]].reads
        path.append(next(o for o, lag in reads if lag == Dim() and o in waiting))
    names = [states[number].name for number in path[path.index(path[-1]) :]]
    time = first.time.name
    message = f"at the same step {time}, " + ", which reads ".join(f"`{name}`" for name in names)
    remedy = f"read one of them at an earlier step, as in `{names[0]}[{time} - 1]`"
    return error(CODE, message, first.statement.span, remedy)
