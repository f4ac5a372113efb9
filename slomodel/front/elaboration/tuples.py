"""Index sets that are not products of ranges: lists of tuples, computed from data at bind.

A range whose bounds depend on other indices or on data, such as `j in range(i)` and `k in
range(first[g], first[g+1])`, gives a list of tuples. An index is then a table over the list, so
that work and memory are proportional to the number of tuples. Conditions on indices and data select
the tuples for which they hold: expressions guarded by them are not evaluated elsewhere.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from slomodel.front.elaboration.errors import StatementError, error
from slomodel.front.elaboration.grouping import keys_of, read_at
from slomodel.front.elaboration.index_sets import check_name, label_of, number_of
from slomodel.front.elaboration.scope import Elaboration, Scope, Symbol, ValueRequest
from slomodel.front.elaboration.tables import is_table
from slomodel.front.elaboration.values import Label, Value, combine, number, union
from slomodel.front.text.syntax import Condition, FunctionCall, Iteration, Name, Node, children
from slomodel.functions import add, maximum, sub, where
from slomodel.ir import build
from slomodel.ir.dims import literal
from slomodel.ir.expr import Expr, Listed, Lookup
from slomodel.ir.walk import inputs


@dataclass(frozen=True, slots=True)
class TupleSet:
    """The tuples that a sum runs over.

    `labels` are summed over, `scope` is that of the terms. `groups` maps each outer index on which
    the bounds or conditions depend to its position in each term; `left` are the conditions that
    have not been taken into account yet.
    """

    labels: tuple[Label, ...]
    scope: Scope
    groups: Mapping[Label, Value]
    left: tuple[Condition, ...]


Built: TypeAlias = Generator[ValueRequest, Value, TupleSet]
"""The construction of a set: yields requests for the values of bounds and conditions."""


def has_dependent_range(iterations: Sequence[Iteration], scope: Scope) -> bool:
    """Whether the bounds of some range contain indices or arrays."""
    names = {iteration.name.text for iteration in iterations}
    return any(_is_dependent(iteration, scope, names) for iteration in iterations)


def _is_dependent(iteration: Iteration, scope: Scope, names: set[str]) -> bool:
    domain = iteration.domain
    if not isinstance(domain, FunctionCall) or domain.function.text != "range":
        return False
    stack: list[Node] = list(domain.args)
    while stack:
        node = stack.pop()
        if isinstance(node, Name):
            known = scope.local.get(node.text) or scope.model.symbols.get(node.text)
            array = isinstance(known, Symbol) and known.value is not None
            if node.text in names or array or isinstance(known, (Label, Value)):
                return True
        stack += children(node)
    return False


def tuple_set(
    iterations: Sequence[Iteration],
    conditions: Sequence[Condition],
    scope: Scope,
    guarded: bool = False,
) -> Built:
    """The tuples of a sum with dependent ranges.

    `guarded`: the indices in conditions on indices and data always become a list.
    """
    tuples = _TupleList(scope.model)
    plain: dict[str, Label] = {}
    for iteration in iterations:
        name = iteration.name.text
        check_name(iteration.name, scope, {*plain, *tuples.values})
        inner = _known(scope, plain, tuples)
        if _is_dependent(iteration, scope, {*plain, *tuples.values}):
            low, high = yield from _bounds(iteration, inner)
            for label in union([low, high]):
                if label is not tuples.label:
                    tuples.take(label)
                    plain.pop(label.name, None)
            tuples.extend(name, low, high)
        else:
            plain[name] = label_of(iteration, inner)
    inner = _known(scope, plain, tuples)
    own = [*plain.values(), *([] if tuples.label is None else [tuples.label])]
    left: list[Condition] = []
    keys = [key.equation for key in keys_of(conditions, inner, own)]
    for condition in conditions:
        inner = _known(scope, plain, tuples)
        value = yield ValueRequest(condition, inner)
        if condition in keys or value.rank or not _is_of_data(value.expr):
            left.append(condition)
            continue
        others = [label for label in value.labels if label is not tuples.label]
        if others and not guarded:
            left.append(condition)
            continue
        for label in others:
            tuples.take(label)
            plain.pop(label.name, None)
        tuples.select(value)
    inner = _known(scope, plain, tuples)
    labels = (*plain.values(), *(() if tuples.label is None else (tuples.label,)))
    mine = {iteration.name.text for iteration in iterations}
    around = {label: one for label, one in tuples.positions.items() if label.name not in mine}
    return TupleSet(labels, inner, around, tuple(left))


def _known(scope: Scope, plain: Mapping[str, Label], tuples: _TupleList) -> Scope:
    """The names at a tuple: its indices, and what depends on an index that the list has taken."""
    read = {
        name: tuples.at(value)
        for name, value in scope.local.items()
        if isinstance(value, Value) and any(one in tuples.positions for one in value.labels)
    }
    return scope.with_local({**read, **plain, **tuples.values})


def _bounds(
    iteration: Iteration, scope: Scope
) -> Generator[ValueRequest, Value, tuple[Value, Value]]:
    """The first value of a range and its exclusive end."""
    domain = iteration.domain
    assert isinstance(domain, FunctionCall)
    if domain.kwargs or not 1 <= len(domain.args) <= 2:
        message = "`range` takes one bound or two"
        raise error("E212", message, domain.span, "write `range(b)` or `range(a, b)`")
    values: list[Value] = []
    for argument in domain.args:
        value = yield ValueRequest(argument, scope)
        if value.axes or not is_table(value.expr, scope.model):
            raise _not_bounds(argument)
        values.append(value)
    return (number(0.0), values[0]) if len(values) == 1 else (values[0], values[1])


def _not_bounds(node: Node) -> StatementError:
    message = f"`{node.span.text}` bounds a range: it must be a whole number that data decide"
    remedy = "make it of indices, dims, whole numbers and index data"
    return error("E212", message, node.span, remedy)


def _is_of_data(node: Expr) -> bool:
    return all(one.role == "data" for one in inputs(node))


@dataclass(slots=True)
class _TupleList:
    """A growing list of tuples: `positions` along labels, `values` of indices by name.

    All of them run over `label`, which is None while the list has no index.
    """

    model: Elaboration
    label: Label | None = None
    positions: dict[Label, Value] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)

    def take(self, label: Label) -> None:
        """Turn an index label into an index of the list: each tuple with each of its values."""
        if self.label is None:
            self.label = self.model.label("", label.dim)
            position = Value(build.iota(label.dim), (self.label,))
        else:
            position = self._repeat(build.size_of(label.dim))
        self.positions[label] = position
        if label.name:
            self.values[label.name] = combine(add, position, number_of(label.start))

    def extend(self, name: str, low: Value, high: Value) -> None:
        """Add an index from `low` up to, but excluding, `high`, both whole numbers of data."""
        if self.label is None:
            self.label = self.model.label("", literal(1))
        low, high = self.at(low), self.at(high)
        self.values[name] = low if low.labels else self._along(low)
        counts = combine(maximum, combine(sub, high, low), number(0.0))
        offset = self._repeat(counts.expr)
        self.values[name] = combine(add, self.values[name], offset)

    def select(self, condition: Value) -> None:
        """Select the tuples for which a condition on their indices and data holds."""
        condition = self.at(condition)
        if not condition.labels:
            self._keep(self._along(combine(where, condition, number(1.0), number(0.0))).expr, True)
        else:
            self._keep(condition.expr, False)

    def at(self, value: Value) -> Value:
        """A value over labels that belong to the list, evaluated at its tuples."""
        return read_at(value, self.positions)

    def _along(self, value: Value) -> Value:
        assert self.label is not None
        return Value(build.broadcast(value.expr, (), (self.label.dim,)), (self.label,))

    def _repeat(self, counts: Expr) -> Value:
        """Repeat each tuple by its count, and return the number of each repetition."""
        assert self.label is not None
        if not counts.rank:
            counts = build.broadcast(counts, (), (self.label.dim,))
        label = self.model.tuple_label(build.sum_over(counts, (0,)))
        offset = build.listing("offset", counts, label.dim)
        self._move("parent", counts, label)
        return Value(offset, (label,))

    def _keep(self, condition: Expr, is_number: bool) -> None:
        one, zero = build.const(1.0), build.const(0.0)
        numbers = condition if is_number else build.apply(where, condition, one, zero)
        label = self.model.tuple_label(build.sum_over(numbers, (0,)))
        self._move("select", numbers, label)

    def _move(self, what: Listed, source: Expr, label: Label) -> None:
        """Replace the tuples by those at a list of positions."""
        table = build.listing(what, source, label.dim)

        def moved(value: Value) -> Value:
            picked = build.gather(value.expr, [Lookup((0,), table)], (label.dim,))
            return Value(picked, (label,))

        self.positions = {one: moved(value) for one, value in self.positions.items()}
        self.values = {name: moved(value) for name, value in self.values.items()}
        self.label = label
