"""Sums over groups: `sum(r[i] for i in N if g[i] == k)` for each `k in G` adds r[i] at g[i].

No array of N × G is formed: the sum is a scatter, whose work is proportional to its terms.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass

from slomodel.front.elaboration.indices.contraction import total
from slomodel.front.elaboration.indices.linear_conditions import equation_of, solution
from slomodel.front.elaboration.indices.tables import domain_of
from slomodel.front.elaboration.scope import Elaboration, Scope, ValueRequest
from slomodel.front.elaboration.values import (
    Label,
    Value,
    combine,
    number,
    number_of,
    union,
    with_unit_axes,
)
from slomodel.front.text.syntax import Condition
from slomodel.functions import add, ge, land, lt, maximum, minimum, mul, sub
from slomodel.ir import build
from slomodel.ir.dims import Dim
from slomodel.ir.expr import Affine, Index, Lookup


@dataclass(frozen=True, slots=True)
class Key:
    """An equation that determines the position of an index `label` from outside a sum."""

    label: Label
    place: Value
    equation: Condition


def keys_of(
    conditions: Sequence[Condition], scope: Scope, summed: Collection[Label]
) -> Generator[ValueRequest, Value, tuple[Key, ...]]:
    """The equations that group the terms of a sum over `summed`, one per index.

    The position may depend on no index that another key of the same sum determines.
    """
    result: dict[Label, Key] = {}
    for condition in conditions:
        form = equation_of(condition, scope)
        for label in () if form is None else form.unit_labels:
            if label in summed or label in result:
                continue
            assert form is not None
            place = yield from solution(form, label, scope)
            if place is not None and any(one in summed for one in place.labels):
                result[label] = Key(label, place, condition)
                break
    return tuple(
        key for key in result.values() if not any(one in key.place.labels for one in result)
    )


def position_within(dim: Dim, place: Value, model: Elaboration) -> tuple[Value, Value | None]:
    """The position clipped to an axis, and where clipping changes nothing (None: everywhere)."""
    if domain_of(place.expr, model) == dim:
        return place, None
    size, zero = number_of(dim), number(0.0)
    inside = combine(land, combine(ge, place, zero), combine(lt, place, size))
    last = combine(sub, size, number(1.0))
    clipped = combine(maximum, combine(minimum, place, last), zero)
    model.whole[clipped.expr] = dim
    return clipped, inside


def read_at(value: Value, positions: Mapping[Label, Value]) -> Value:
    """A value with each label that has positions replaced by the labels these depend on."""
    if not any(label in positions for label in value.labels):
        return value
    value = with_unit_axes(value)
    kept = {label for label in value.labels if label not in positions}
    used = {one for label in value.labels if label in positions for one in positions[label].labels}
    labels = tuple(sorted(kept | used, key=lambda label: label.order))
    shape = (*(label.dim for label in labels), *value.dims)
    index: list[Index] = []
    for label in value.labels:
        if label in positions:
            own = positions[label]
            index.append(Lookup(tuple(map(labels.index, own.labels)), own.expr))
        else:
            index.append(Affine.along(labels.index(label), len(shape)))
    index += [Affine.along(axis, len(shape)) for axis in range(len(labels), len(shape))]
    return Value(build.gather(value.expr, index, shape), labels, value.axes)


def summed_by_group(
    body: Value, positions: Mapping[Label, Value], summed: Sequence[Label]
) -> Value:
    """The sum over each group; `positions` are along the axis of each key's index."""
    read = {label for value in positions.values() for label in value.labels}
    body = read_at(body, positions)
    body = with_unit_axes(total(body, [label for label in summed if label not in read], ()))
    every = union([body, *positions.values()])
    shape = (*(label.dim for label in every), *body.dims)
    places = [every.index(label) for label in body.labels]
    rest = range(len(every), len(shape))
    operand = build.broadcast(body.expr, (*places, *rest), shape)
    left = {label for label in every if label not in summed}
    labels = tuple(sorted({*left, *positions}, key=lambda label: label.order))
    index: list[Index] = []
    for label in labels:
        if label in positions:
            value = positions[label]
            index.append(Lookup(tuple(map(every.index, value.labels)), value.expr))
        else:
            index.append(Affine.along(every.index(label), len(shape)))
    index += [Affine.along(axis, len(shape)) for axis in rest]
    result = (*(label.dim for label in labels), *body.dims)
    return Value(build.scatter(operand, index, result), labels, body.axes)


def rows_by_group(
    body: Value, positions: Mapping[Label, Value], model: Elaboration
) -> tuple[Value, Value, Label]:
    """The elements of each group as a row, a mask of those that exist, and the label along rows.

    All rows are as long as the largest group. `positions` are along the axis of each key's index;
    they all depend on one index.
    """
    (listed,) = union(positions.values())
    outer = sorted(positions, key=lambda label: label.order)
    groups = _combined(outer, model)
    key = _number_of([positions[label] for label in outer], outer).expr
    group = _number_of([Value(build.iota(label.dim), (label,)) for label in outer], outer)
    numbers = build.iota(groups.dim)
    first, end = (
        Value(build.listing(what, (key, numbers), groups.dim), (groups,))
        for what in ("below", "upto")
    )
    counts = combine(sub, end, first)
    largest = build.apply(maximum, build.extreme(counts.expr, "max", (0,)), build.const(0.0))
    along = model.tuple_label(largest)
    place = Value(build.iota(along.dim), (along,))
    first, counts = (read_at(one, {groups: group}) for one in (first, counts))
    last = combine(sub, number_of(listed.dim), number(1.0))
    element = combine(minimum, combine(add, first, place), last)
    order = Value(build.listing("order", (key,), listed.dim), (listed,))
    chosen = read_at(order, {listed: element})
    return read_at(body, {listed: chosen}), combine(lt, place, counts), along


def _combined(labels: Sequence[Label], model: Elaboration) -> Label:
    """A label over all combinations of the values of labels."""
    if len(labels) == 1:
        return model.label("", labels[0].dim)
    count = number(1.0)
    for label in labels:
        count = combine(mul, count, number_of(label.dim))
    return model.tuple_label(count.expr)


def _number_of(positions: Sequence[Value], labels: Sequence[Label]) -> Value:
    """The number of a combination of positions of labels, in C order."""
    result, *more = positions
    for position, label in zip(more, labels[1:], strict=True):
        result = combine(add, combine(mul, result, number_of(label.dim)), position)
    return result
