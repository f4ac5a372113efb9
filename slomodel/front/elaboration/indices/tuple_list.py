"""A growing list of index tuples, stored as tables over one axis whose size depends on the data."""

from __future__ import annotations

from dataclasses import dataclass, field

from slomodel.front.elaboration.indices.grouping import read_at
from slomodel.front.elaboration.indices.index_sets import index_at
from slomodel.front.elaboration.indices.steps import rounded_up
from slomodel.front.elaboration.scope import Elaboration
from slomodel.front.elaboration.values import Label, Value, combine, number, number_of
from slomodel.functions import add, maximum, minimum, mul, sub, where
from slomodel.ir import build
from slomodel.ir.dims import literal
from slomodel.ir.expr import Expr, Listed


@dataclass(slots=True)
class TupleList:
    """A growing list of tuples: `positions` along labels, `values` of indices by name.

    Positions run over `label`, which is None while the list has no index. Values may also depend on
    labels that are not in the list.
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
            _, position = self._repeat(build.size_of(label.dim))
        self._enter(label, position)

    def extend(self, name: str, low: Value, high: Value, step: int = 1) -> None:
        """Add an index from `low` up to, but excluding, `high`, both whole numbers of data."""
        self.values[name] = self._between(low, high, step)

    def extend_label(self, label: Label, low: Value, high: Value) -> None:
        """Turn an index label into an index of the list, with positions from `low` below `high`."""
        low, size = combine(maximum, low, number(0.0)), number_of(label.dim)
        self._enter(label, self._between(low, combine(minimum, high, size)))

    def join(self, label: Label, key: Value, limit: Value) -> None:
        """Add the index with `key`, over `label` alone, equal to `limit` at each tuple."""
        limit = self.at(limit)
        if self.label is None:
            self.label = self.model.label("", literal(1))
        if not limit.labels:
            limit = self._along(limit)
        own = (key.expr, limit.expr)
        order = build.listing("order", (key.expr,), label.dim)
        low, high = (
            Value(build.listing(what, own, self.label.dim), (self.label,))
            for what in ("below", "upto")
        )
        place = self._between(low, high)
        ordered = Value(order, (label,))
        self._enter(label, read_at(ordered, {label: place}))

    def select(self, condition: Value) -> None:
        """Select the tuples for which a condition on their indices and data holds."""
        condition = self.at(condition)
        numbers = combine(where, condition, number(1.0), number(0.0))
        source = self._along(numbers).expr
        label = self.model.tuple_label(build.sum_over(source, (0,)))
        self._move("select", source, label)

    def select_from(self, condition: Value) -> None:
        """Begin the list with the indices at which a condition on data holds."""
        assert self.label is None
        marked = _as_numbers(condition.expr)
        self.label = self.model.tuple_label(build.sum_over(marked, tuple(range(marked.rank))))
        for axis, label in enumerate(condition.labels):
            position = build.listing("select", (marked,), self.label.dim, axis)
            self._enter(label, Value(position, (self.label,)))

    def at(self, value: Value) -> Value:
        """A value over labels that belong to the list, evaluated at its tuples."""
        return read_at(value, self.positions)

    def _enter(self, label: Label, position: Value) -> None:
        self.positions[label] = position
        self.model.whole[position.expr] = label.dim
        if label.name:
            self.values[label.name] = index_at(label, position)

    def _between(self, low: Value, high: Value, step: int = 1) -> Value:
        """Repeat each tuple once per number of its range, and return these numbers."""
        if self.label is None:
            self.label = self.model.label("", literal(1))
        low, high = self.at(low), self.at(high)
        extent = combine(sub, high, low)
        counts = self._along(
            rounded_up(extent, step) if step > 1 else combine(maximum, extent, number(0.0))
        )
        before = self.label
        parent, offset = self._repeat(counts.expr)
        offset = combine(mul, offset, number(float(step))) if step > 1 else offset
        return combine(add, read_at(low, {before: parent}), offset)

    def _along(self, value: Value) -> Value:
        assert self.label is not None
        if value.labels:
            return value
        return Value(build.broadcast(value.expr, (), (self.label.dim,)), (self.label,))

    def _repeat(self, counts: Expr) -> tuple[Value, Value]:
        """Repeat each tuple by its count; the old position and the number of each repetition."""
        assert self.label is not None
        if not counts.rank:
            counts = build.broadcast(counts, (), (self.label.dim,))
        label = self.model.tuple_label(build.sum_over(counts, (0,)))
        offset = build.listing("offset", (counts,), label.dim)
        return self._move("parent", counts, label), Value(offset, (label,))

    def _move(self, what: Listed, source: Expr, label: Label) -> Value:
        """Replace the tuples by those at a list of positions, which are returned."""
        assert self.label is not None
        table = Value(build.listing(what, (source,), label.dim), (label,))
        moved = {self.label: table}
        self.positions = {one: read_at(value, moved) for one, value in self.positions.items()}
        self.values = {name: read_at(value, moved) for name, value in self.values.items()}
        self.label = label
        return table


def _as_numbers(condition: Expr) -> Expr:
    return build.apply(where, condition, build.const(1.0), build.const(0.0))
