"""Recurrences: definitions by index whose elements depend on earlier ones.

`time_steps` turns a body into the graph of one step.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial

from slomodel.errors import ShapeError
from slomodel.front.elaboration.earlier_steps import (
    CODE,
    NotExpression,
    RecurrentState,
    labelled,
    read_earlier,
)
from slomodel.front.elaboration.errors import StatementError, error, shape_error
from slomodel.front.elaboration.index_sets import (
    bind_iterations,
    check_name,
    label_of,
)
from slomodel.front.elaboration.scope import Ongoing, Scope, ValueRequest
from slomodel.front.elaboration.shape_mismatch import marks, operand
from slomodel.front.elaboration.time_steps import Body, recurrence
from slomodel.front.elaboration.values import (
    Label,
    Value,
    merged,
    settled,
    show,
    show_axes,
    union,
    value_of,
)
from slomodel.front.elaboration.windows import Window, Windows
from slomodel.front.text.syntax import (
    Compare,
    Expr,
    First,
    FunctionCall,
    Index,
    Iteration,
    Let,
    Name,
    Node,
    NumberLiteral,
    SumChain,
    children,
    roots,
)
from slomodel.functions import add
from slomodel.ir import build
from slomodel.ir.dims import Dim, Shape, literal
from slomodel.ir.expr import Affine
from slomodel.ir.expr import Expr as Graph
from slomodel.ir.walk import inputs


def is_recurrence(group: Sequence[Let]) -> bool:
    """Whether one definition, or several joined by `and`, form a recurrence."""
    if len(group) > 1 or group[0].first is not None:
        return True
    one = group[0]
    return one.indices is not None and one.name.text in _names(one.expr)


def _nodes(root: Node) -> Iterator[Node]:
    stack: list[Node] = [root]
    while stack:
        node = stack.pop()
        yield node
        stack += children(node)


def _names(root: Node) -> Iterator[str]:
    return (node.text for node in _nodes(root) if isinstance(node, Name))


def recurrent(group: Sequence[Let], scope: Scope) -> Generator[ValueRequest, Value, list[Value]]:
    """The arrays that a recurrence computes, each with time as its first axis.

    In a function, the recurrence runs for each index on which its arguments depend.
    """
    outer = _outer_labels(group, scope)
    states: list[RecurrentState] = []
    for k, statement in enumerate(group):
        states.append((yield from _state(k, statement, group, scope, outer)))
    length = states[0].length
    for state in states[1:]:
        if state.length != length:
            assert state.statement.indices is not None
            message = "the definitions of a recurrence run over the same steps"
            remedy = f"`{states[0].name}` has {length} of them"
            raise shape_error(CODE, message, state.statement.indices[0].domain.span, remedy)
    windows = Windows(len(states))
    evaluated: dict[int, Body] = {}
    while len(evaluated) < len(states):
        state = _next(states, evaluated)
        evaluated[state.number] = yield from _body(state, states, windows)
    bodies = [evaluated[state.number] for state in states]
    bodies += [one.body for one in windows.made]
    try:
        made = recurrence(length, bodies, _in_order([*states, *windows.made]))
    except ShapeError as problem:
        message = f"this cannot be computed step by step: {problem}"
        raise error(CODE, message, states[0].statement.span) from None
    found: list[Value] = []
    for state, array in zip(states, made[: len(states)], strict=True):
        value = labelled(array, (None, *outer))
        for one in (value, value_of(array)):
            scope.note(one, state.statement.expr.span)
        found.append(value)
    return found


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
    _check_time(group)
    if not any(set(names) & set(_names(statement.expr)) for statement in group):
        where = group[0].first.span if len(group) == 1 and group[0].first else group[-1].span
        message = "nothing here depends on an earlier step"
        remedy = "leave out `first`" if len(group) == 1 else "give each definition its own `let`"
        raise error(CODE, message, where, remedy)


def _check_time(group: Sequence[Let]) -> None:
    """Check that no definition is shifted in a later index alone, which is then its time."""
    names = {statement.name.text for statement in group}
    for statement in group:
        assert statement.indices is not None
        time, *later = (one.name.text for one in statement.indices)
        reads = [
            node.items
            for node in _nodes(statement.expr)
            if isinstance(node, Index) and isinstance(node.base, Name) and node.base.text in names
        ]
        if not all(isinstance(items[0], Name) and items[0].text == time for items in reads):
            continue
        for items in reads:
            for item, index in zip(items[1:], later, strict=False):
                if isinstance(item, SumChain) and index in _names(item):
                    message = f"the first index of a recurrence is its time, and `{time}` is not"
                    remedy = f"write `{index}` first: `{statement.name.text}[{index} in …, …]`"
                    raise error(CODE, message, statement.indices[0].span, remedy)


def _state(
    number: int, statement: Let, group: Sequence[Let], scope: Scope, outer: tuple[Label, ...]
) -> Generator[ValueRequest, Value, RecurrentState]:
    """The state with its first values; the names of the group are not in scope there."""
    assert statement.indices is not None
    time, *later = statement.indices
    check_name(time.name, scope, [one.name.text for one in group])
    every = label_of(time, scope)
    if every.start != Dim() or every.step != 1:
        message = f"a recurrence counts its steps from 0, one by one, unlike `{time.name.text}`"
        raise error(CODE, message, time.domain.span, f"write `{time.name.text} in T`")
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
    return RecurrentState(number, statement, body, left, outer, labels, own, count, axes, values)


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
            raise error(CODE, message, first.iteration.domain.span, "write `for t in m`")
        scope = inner.with_local({label.name: label})
        labels = (label, *later)
    found: list[Value] = []
    for one in first.values:
        found.append(settled((yield ValueRequest(one, scope))))
    axes = merged(found)
    if axes is None:
        every = [operand(node, value) for node, value in zip(first.values, found, strict=True)]
        message = "the first values of a recurrence have one shape"
        raise shape_error(CODE, message, first.span, marks=marks(*every))
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
    state: RecurrentState, states: Sequence[RecurrentState], windows: Windows
) -> Generator[ValueRequest, Value, Body]:
    """The values of a state at all steps that its body computes."""

    ongoing = {
        other.name: Ongoing(other.name, partial(read_earlier, state, windows, other))
        for other in states
    }
    scope = state.scope.with_local(ongoing)
    value = settled((yield ValueRequest(state.body, scope)))
    is_read = any(state.number == number for one in states for number, _ in one.reads)
    if state.first is None and not state.later and not is_read:
        state.axes = value.dims
    if value.axes != state.axes and value.rank:
        wanted = show_axes(state.axes)
        message = f"the first values are {wanted}, and what follows is {show(value)}"
        if state.first is None:
            message = f"without first values `{state.name}` is a number, not {show(value)}"
        found_at = marks(operand(state.body, value))
        raise shape_error(CODE, message, state.body.span, marks=found_at)
    root = _laid_out(value, (state.time, *state.outer, *state.later), state.axes)
    used = set(inputs(root))
    state.reads = {key: array for key, array in state.reads.items() if array in used}
    reads = {array: key for key, array in state.reads.items()}
    return Body(state.shape, state.count, state.first, root, reads)


def _in_order(states: Sequence[RecurrentState | Window]) -> list[int]:
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


def _circle(states: Sequence[RecurrentState | Window], waiting: Sequence[int]) -> StatementError:
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
