"""Index sets that are not products of ranges: lists of tuples, computed from data at bind.

A range whose bounds depend on other indices or on data, such as `j in range(i)` and `k in
range(first[g], first[g+1])`, gives a list of tuples. An index is then a table over the list, so
that work and memory are proportional to the number of tuples. Conditions on indices and data select
the tuples for which they hold: expressions guarded by them are not evaluated elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TypeAlias

from slomodel.front.elaboration.errors import StatementError, error
from slomodel.front.elaboration.indices.grouping import keys_of, position_within
from slomodel.front.elaboration.indices.index_sets import (
    check_names,
    index_at,
    iterated_pattern,
    label_of,
    range_arguments,
)
from slomodel.front.elaboration.indices.linear_conditions import (
    bound,
    equation_of,
    limits_of,
    solution,
)
from slomodel.front.elaboration.indices.sparse import entry_label, entry_names
from slomodel.front.elaboration.indices.tables import is_table
from slomodel.front.elaboration.indices.tuple_list import TupleList
from slomodel.front.elaboration.scope import Scope, Symbol, ValueRequest
from slomodel.front.elaboration.values import Label, Value, combine, number, number_of, union
from slomodel.front.text.syntax import (
    Compare,
    Condition,
    FunctionCall,
    Iteration,
    Name,
    Node,
)
from slomodel.front.text.traversal import children
from slomodel.functions import land, maximum, minimum
from slomodel.ir.expr import Expr
from slomodel.ir.walk import inputs
from slomodel.problem import Place, Selection


@dataclass(frozen=True, slots=True)
class TupleSet:
    """The tuples that a sum runs over.

    `labels` are summed over, `scope` is that of the terms. `groups` maps each outer index on which
    the bounds or conditions depend to its position in each term; `left` are the conditions not yet
    taken into account, and `inside` further ones, which say where terms exist.
    """

    labels: tuple[Label, ...]
    scope: Scope
    groups: Mapping[Label, Value]
    left: tuple[Condition, ...]
    inside: tuple[Value, ...] = ()


Built: TypeAlias = Generator[ValueRequest, Value, TupleSet]
"""The construction of a set: yields requests for the values of bounds and conditions."""
Evaluation: TypeAlias = Generator[ValueRequest, Value, None]
"""A step of the construction, which also yields requests."""


def has_dependent_range(iterations: Sequence[Iteration], scope: Scope) -> bool:
    """Whether the bounds of some range contain indices or arrays."""
    names = {name.text for iteration in iterations for name in iteration.names}
    return any(is_dependent(iteration, scope, names) for iteration in iterations)


def is_dependent(iteration: Iteration, scope: Scope, names: set[str]) -> bool:
    """Whether the bounds of a range contain arrays or indices, of which `names` are inner ones."""
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


def _bounds(
    iteration: Iteration, scope: Scope
) -> Generator[ValueRequest, Value, tuple[Value, Value, int]]:
    """The first value of a range, its exclusive end and its step."""
    domain = iteration.domain
    assert isinstance(domain, FunctionCall)
    low, high, step = range_arguments(domain, scope)
    values: list[Value] = []
    for argument in (low, high):
        value = number(0.0) if argument is None else (yield ValueRequest(argument, scope))
        if argument is not None and (value.axes or not is_table(value.expr, scope.model)):
            raise _not_bounds(argument)
        values.append(value)
    return values[0], values[1], step


def _not_bounds(node: Node) -> StatementError:
    message = f"`{node.span.text}` bounds a range: it must be a whole number that data decide"
    remedy = "make it of indices, dims, whole numbers and index data"
    return error("E212", message, node.span, remedy)


def tuple_set(
    iterations: Sequence[Iteration],
    conditions: Sequence[Condition],
    scope: Scope,
    guarded: bool = False,
) -> Built:
    """The tuples of a sum.

    With `guarded`, the indices in conditions on indices and data always become a list.
    """
    build = _Construction(scope, guarded)
    for iteration in iterations:
        yield from build.iterate(iteration)
    build.left = list(conditions)
    yield from build.substitute()
    yield from build.restrict()
    yield from build.find_keys()
    yield from build.join()
    yield from build.select()
    mine = {iteration.name.text for iteration in iterations} | build.listed
    return build.result(mine)


class _Construction:
    """The construction of a tuple set: `plain` are the indices that are not in the list, by name.

    `left` are the conditions that have not been taken into account, `keys` those of `left` that
    determine an index from outside the sum; `listed` are the names of labels of stored entries.
    """

    def __init__(self, scope: Scope, guarded: bool) -> None:
        self.scope = scope
        self.guarded = guarded
        self.tuples = TupleList(scope.model)
        self.plain: dict[str, Label] = {}
        self.inside: list[Value] = []
        self.left: list[Condition] = []
        self.keys: list[Condition] = []
        self.listed: set[str] = set()

    @property
    def inner(self) -> Scope:
        """The scope at a tuple: its indices, and names that depend on an index of the list."""
        tuples = self.tuples
        read = {
            name: tuples.at(value)
            for name, value in self.scope.local.items()
            if isinstance(value, Value) and any(label in tuples.positions for label in value.labels)
        }
        own = {name: tuples.at(value) for name, value in tuples.values.items()}
        inner = self.scope.with_local({**read, **self.plain, **own})
        return inner if inner.guard is None else replace(inner, guard=tuples.at(inner.guard))

    def result(self, names: Collection[str]) -> TupleSet:
        tuples = self.tuples
        own = () if tuples.label is None else (tuples.label,)
        around = {label: one for label, one in tuples.positions.items() if label.name not in names}
        inside = tuple(map(tuples.at, self.inside))
        return TupleSet((*self.plain.values(), *own), self.inner, around, tuple(self.left), inside)

    def take(self, labels: Iterable[Label]) -> None:
        """Make labels indices of the list."""
        for label in labels:
            if label is not self.tuples.label:
                self.tuples.take(label)
                self.plain.pop(label.name, None)

    def iterate(self, iteration: Iteration) -> Evaluation:
        """Add the index of `i in domain`."""
        name = iteration.name.text
        names = {*self.plain, *self.tuples.values}
        check_names(iteration, self.scope, names)
        pattern = iterated_pattern(iteration, self.scope)
        if pattern is not None:
            label = entry_label(iteration, pattern, self.scope.model)
            self.scope = self.scope.with_local(entry_names(iteration, pattern, label))
            self.plain[label.name] = label
            self.listed.add(label.name)
            return
        inner = self.inner
        if not is_dependent(iteration, self.scope, names):
            self.plain[name] = label_of(iteration, inner)
            return
        low, high, step = yield from _bounds(iteration, inner)
        self.take(union([low, high]))
        self.tuples.extend(name, low, high, step)

    def substitute(self) -> Evaluation:
        """Replace each index of the sum that an equation determines by its value."""
        for condition in list(self.left):
            form = equation_of(condition, self.inner)
            for label in () if form is None else form.unit_labels:
                if self.plain.get(label.name) is not label:
                    continue
                assert form is not None
                place = yield from solution(form, label, self.inner)
                if place is None:
                    continue
                place, inside = position_within(label.dim, place, self.scope.model)
                del self.plain[label.name]
                self.tuples.values[label.name] = index_at(label, place)
                self.inside += [] if inside is None else [inside]
                self.left.remove(condition)
                break

    def restrict(self) -> Evaluation:
        """List the indices that conditions bound from below and above by other ones."""
        for label in list(self.plain.values()):
            lows, highs, used = yield from self._limits(label)
            others = union([*lows, *highs])
            if others and ((lows and highs) or self.guarded):
                self.take(others)
                low = reduce(partial(combine, maximum), lows, number(0.0))
                high = reduce(partial(combine, minimum), highs, number_of(label.dim))
                del self.plain[label.name]
                self.tuples.extend_label(label, self.tuples.at(low), self.tuples.at(high))
                self.left = [one for one in self.left if one not in used]

    def _limits(
        self, label: Label
    ) -> Generator[ValueRequest, Value, tuple[list[Value], list[Value], list[Condition]]]:
        """First positions and exclusive ends of a label from conditions, and those conditions."""
        sides: tuple[list[Value], list[Value]] = ([], [])
        used: list[Condition] = []
        for condition in self.left:
            limits = limits_of(condition, self.inner)
            result: list[tuple[bool, Value]] = []
            for limit in limits:
                if label in limit.form.unit_labels:
                    value = yield from bound(limit, label, self.inner)
                    is_high = limit.form.affine.labels[label] < 0
                    result += [] if value is None else [(is_high, value)]
            if result and len(result) == len(limits):
                used.append(condition)
                for is_high, value in result:
                    sides[is_high].append(value)
        return *sides, used

    def find_keys(self) -> Evaluation:
        """Find the conditions that group the terms of the sum."""
        inner = self.inner
        own = [*self.plain.values(), *([] if self.tuples.label is None else [self.tuples.label])]
        for key in (yield from keys_of(self.left, inner, own)):
            self.keys.append(key.equation)

    def join(self) -> Evaluation:
        """List the pairs for which an equation between two indices' data holds."""
        for condition in list(self.left):
            if condition in self.keys or not isinstance(condition, Compare):
                continue
            if condition.op != "==":
                continue
            left = yield ValueRequest(condition.left, self.inner)
            right = yield ValueRequest(condition.right, self.inner)
            if left.rank or right.rank or not (_is_of_data(left.expr) and _is_of_data(right.expr)):
                continue
            if not left.labels or not right.labels or set(left.labels) & set(right.labels):
                continue
            for key, limit in ((left, right), (right, left)):
                label, *more = key.labels
                if not more and label is not self.tuples.label:
                    self.take(limit.labels)
                    self.plain.pop(label.name, None)
                    self.tuples.join(label, key, limit)
                    self.left.remove(condition)
                    break

    def select(self) -> Evaluation:
        """List the tuples for which conditions on data hold."""
        known: list[tuple[Condition, Value]] = []
        for condition in self.left:
            if condition not in self.keys:
                value = yield ValueRequest(condition, self.inner)
                if not value.rank and _is_of_data(value.expr):
                    known.append((condition, value))
        own = self.tuples.label
        model = self.scope.model
        dense = model.dense
        wanted = [
            value
            for one, value in known
            if self.guarded
            or (len(value.labels) > 1 and inputs(value.expr) and _place(one) not in dense)
        ]
        if not wanted and own is None:
            return
        reached = {*union(wanted), *([] if own is None else [own])}
        chosen = [(one, value) for one, value in known if reached.issuperset(value.labels)]
        self.left = [one for one in self.left if all(one is not other for other, _ in chosen)]
        values = [value for _, value in chosen]
        if own is None and len(union(values)) > 1:
            for label in union(values):
                self.plain.pop(label.name, None)
            self.tuples.select_from(reduce(partial(combine, land), values))
            assert self.tuples.label is not None
            if not self.guarded:
                places = tuple(_place(one) for one, _ in chosen)
                cells = tuple(label.dim for label in union(values))
                name = str(self.tuples.label.dim)
                model.selections.append(Selection(name, cells, places))
            return
        labels = union(values) or tuple(self.plain.values())[:1]
        if own is None or any(label is not own for label in labels):
            self.take(label for label in labels if label is not own)
            values = []
            for condition, _ in chosen:
                values.append((yield ValueRequest(condition, self.inner)))
        if values:
            self.tuples.select(reduce(partial(combine, land), values))


def _place(condition: Condition) -> Place:
    return condition.span.start, condition.span.end


def _is_of_data(node: Expr) -> bool:
    return all(one.role == "data" for one in inputs(node))
