"""Sums over groups: `sum(r[i] for i in N if g[i] == k)` for each `k in G` adds r[i] at g[i].

No array of N × G is formed: the sum is a scatter, whose work is proportional to its terms.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from slomodel.front.elaboration.contraction import total
from slomodel.front.elaboration.index_sets import number_of
from slomodel.front.elaboration.scope import Scope
from slomodel.front.elaboration.tables import domain_of, is_table, reads_arrays
from slomodel.front.elaboration.values import Label, Value, combine, number, settled, union
from slomodel.front.text.syntax import BoolOp, Compare, Condition, Expr, Name
from slomodel.functions import ge, land, lt, maximum, minimum, sub
from slomodel.ir import build
from slomodel.ir.dims import Dim
from slomodel.ir.expr import Affine, Index, Lookup


@dataclass(frozen=True, slots=True)
class Key:
    """An equation between an index `label` from outside a sum and an expression of its terms."""

    label: Label
    expr: Expr
    equation: Condition


def conjuncts(condition: Condition | None) -> tuple[Condition, ...]:
    """The conjuncts of a condition: conditions that all have to hold."""
    if isinstance(condition, BoolOp) and condition.op == "and":
        return condition.operands
    return () if condition is None else (condition,)


def keys_of(
    conditions: Sequence[Condition], scope: Scope, summed: Collection[Label]
) -> tuple[Key, ...]:
    """The equations that may group the terms of a sum over `summed`, one per index."""
    found: dict[Label, Key] = {}
    for condition in conditions:
        if not isinstance(condition, Compare) or condition.op != "==":
            continue
        left, right = condition.left, condition.right
        for side, other in ((left, right), (right, left)):
            label = scope.local.get(side.text) if isinstance(side, Name) else None
            if isinstance(label, Label) and label not in summed and reads_arrays(other, scope):
                found.setdefault(label, Key(label, other, condition))
    return tuple(found.values())


def groups_terms(
    keys: Sequence[Key], value: Value, scope: Scope, summed: Collection[Label]
) -> bool:
    """Whether the value of a key's expression assigns a group to each term of the sum.

    It may depend on no index that a key of the same sum replaces.
    """
    varies = any(label in summed for label in value.labels)
    own = any(key.label in value.labels for key in keys)
    return varies and not own and not value.axes and is_table(value.expr, scope.model)


def position(key: Key, value: Value, scope: Scope) -> tuple[Value, Value | None]:
    """The position of each term along the key's axis, and which terms have one (None: all)."""
    label = key.label
    if label.start == Dim() and domain_of(value.expr, scope.model) == label.dim:
        return value, None
    if label.start != Dim():
        value = combine(sub, value, number_of(label.start))
    size = number_of(label.dim)
    inside = combine(land, combine(ge, value, number(0.0)), combine(lt, value, size))
    last = combine(sub, size, number(1.0))
    return combine(maximum, combine(minimum, value, last), number(0.0)), inside


def read_at(value: Value, positions: Mapping[Label, Value]) -> Value:
    """A value with each label that has positions replaced by the labels these depend on."""
    if not any(label in positions for label in value.labels):
        return value
    value = settled(value)
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
            index.append(_along(labels.index(label), len(shape)))
    index += [_along(axis, len(shape)) for axis in range(len(labels), len(shape))]
    return Value(build.gather(value.expr, index, shape), labels, value.axes)


def summed_by_group(
    body: Value, positions: Mapping[Label, Value], summed: Sequence[Label]
) -> Value:
    """The sum over each group; `positions` are along the axis of each key's index."""
    read = {label for value in positions.values() for label in value.labels}
    body = read_at(body, positions)
    body = settled(total(body, [label for label in summed if label not in read], ()))
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
            index.append(_along(every.index(label), len(shape)))
    index += [_along(axis, len(shape)) for axis in rest]
    result = (*(label.dim for label in labels), *body.dims)
    return Value(build.scatter(operand, index, result), labels, body.axes)


def _along(axis: int, rank: int) -> Affine:
    return Affine(Dim(), tuple(int(k == axis) for k in range(rank)))
