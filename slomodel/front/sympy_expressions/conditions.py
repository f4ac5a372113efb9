"""Conditions that say which terms of a Sum count: KroneckerDelta and Piecewise.

An equation that determines an index of the sum takes the place of that index, one that determines
an index outside makes the sum one by group, and conditions that bound an index on both sides are
its limits: no array of all combinations is formed.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import sympy as sp

from slomodel.front.elaboration.indices.grouping import position_within, read_at
from slomodel.front.elaboration.indices.index_sets import index_at
from slomodel.front.elaboration.indices.tables import is_whole
from slomodel.front.elaboration.values import Label, Value, combine, number, number_of
from slomodel.front.sympy_expressions.evaluation import Steps, SymPyRequest
from slomodel.front.sympy_expressions.scope import IndexScope
from slomodel.functions import eq, floor, land, sub, where
from slomodel.ir.walk import inputs


@dataclass(slots=True)
class Determined:
    """The labels of a sum that equations leave, the scope of its terms, positions of outer labels.

    Terms count where all of `inside` hold; `left` are the conditions that determine no index.
    """

    labels: dict[sp.Basic, Label]
    scope: IndexScope
    groups: dict[Label, Value] = field(default_factory=dict)
    inside: list[Value] = field(default_factory=list)
    left: list[sp.Basic] = field(default_factory=list)

    def counted(self, body: Value) -> Value:
        """The terms, 0 where they do not count."""
        if not self.inside:
            return body
        holds = reduce(lambda one, other: combine(land, one, other), self.inside)
        return combine(where, holds, body, number(0.0))


def delta(request: SymPyRequest) -> Steps:
    """A KroneckerDelta as a number."""
    return (yield SymPyRequest(_as_choice(*request.node.args[:2]), request.scope))


def _as_choice(first: sp.Basic, second: sp.Basic) -> sp.Basic:
    return sp.Piecewise((1, sp.Eq(first, second)), (0, True))


def split(terms: sp.Expr) -> tuple[sp.Expr, list[sp.Basic]]:
    """Terms of a sum without the conditions under which they count, and those conditions."""
    factors: list[sp.Expr] = []
    conditions: list[sp.Basic] = []
    for factor in sp.Mul.make_args(terms):
        if isinstance(factor, sp.KroneckerDelta):
            conditions.append(sp.Eq(*factor.args[:2]))
            continue
        if isinstance(factor, sp.Piecewise) and len(factor.args) == 2:
            (one, condition), (other, last) = factor.args
            if last is sp.true and sp.S.Zero in (one, other):
                holds = condition if other is sp.S.Zero else sp.Not(condition)
                inner, more = split(one if other is sp.S.Zero else other)
                factors.append(inner)
                conditions += [*sp.And.make_args(holds), *more]
                continue
        factors.append(factor)
    return sp.Mul(*factors), conditions


def joined(terms: sp.Expr, conditions: Sequence[sp.Basic]) -> sp.Expr:
    """Terms with conditions under which they count."""
    return sp.Piecewise((terms, sp.And(*conditions)), (0, True)) if conditions else terms


def with_bands_as_limits(node: sp.Sum, scope: IndexScope) -> sp.Sum:
    """The Sum with conditions on indices that bound one of them on both sides as its limits."""
    terms, conditions = split(node.function)
    if not conditions:
        return node
    limits = list(node.limits)
    sizes = {one for limit in limits for one in sp.Tuple(*limit[1:]).free_symbols}
    around = {*scope.labels, *scope.values, *(limit[0] for limit in limits)}
    left = [part for condition in conditions for part in _without_abs(condition)]
    count = len(left)
    # SymPy's first limit is the innermost: it may contain the indices of those after it.
    for k, limit in enumerate(limits):
        around.discard(limit[0])
        sides: tuple[list[sp.Expr], list[sp.Expr]] = ([], [])
        used: list[sp.Basic] = []
        for condition in left:
            found = _end(condition, limit[0])
            if found is not None and found[1].free_symbols <= around | sizes:
                sides[found[0]].append(found[1])
                used.append(condition)
        moves = sp.Tuple(*sides[0], *sides[1]).free_symbols & around
        if len(limit) == 3 and all(sides) and moves:
            first, last = sp.Max(limit[1], *sides[0]), sp.Min(limit[2], *sides[1])
            limits[k] = sp.Tuple(limit[0], first, last)
            left = [one for one in left if one not in used]
    return node if len(left) == count else sp.Sum(joined(terms, left), *limits)


def _without_abs(condition: sp.Basic) -> tuple[sp.Basic, ...]:
    """|e| <= c as two conditions."""
    if isinstance(condition, (sp.Le, sp.Lt)) and isinstance(condition.lhs, sp.Abs):
        inner = condition.lhs.args[0]
        return condition.func(inner, condition.rhs), condition.func(-inner, condition.rhs)
    return (condition,)


def _end(condition: sp.Basic, symbol: sp.Basic) -> tuple[bool, sp.Expr] | None:
    """Whether a condition bounds an index from above, and its last or first value."""
    if not isinstance(condition, (sp.Le, sp.Lt, sp.Ge, sp.Gt)):
        return None
    difference = sp.expand(condition.gts - condition.lts)
    coefficient = difference.coeff(symbol, 1)
    rest = difference - coefficient * symbol
    if coefficient not in (1, -1) or rest.has(sp.Indexed) or symbol in rest.free_symbols:
        return None
    terms = rest.as_coefficients_dict().items()
    if not all(number.is_Integer and (one.is_Symbol or one == 1) for one, number in terms):
        return None
    strict = int(isinstance(condition, (sp.Lt, sp.Gt)))
    return (True, rest - strict) if coefficient == -1 else (False, strict - rest)


Solving = Generator[SymPyRequest, Value, Determined]


def determined(
    conditions: Sequence[sp.Basic], labels: Mapping[sp.Basic, Label], scope: IndexScope
) -> Solving:
    """What equations among the conditions of a sum determine; `labels` are those it binds."""
    result = Determined(dict(labels), scope)
    for condition in conditions:
        for symbol, label in list(result.labels.items()):
            position = yield from _position(condition, symbol, label, result)
            if position is not None:
                place, inside = position
                del result.labels[symbol]
                result.scope = _with_values(result.scope, {symbol: index_at(label, place)})
                result.inside += inside
                break
        else:
            result.left.append(condition)
    own = set(result.labels.values())
    keys: dict[sp.Basic, Value] = {}
    for condition in list(result.left):
        for symbol, label in scope.labels.items():
            taken = {label, *result.groups}
            if symbol in labels or label in result.groups:
                continue
            position = yield from _position(condition, symbol, label, result)
            if position is None or not own & set(position[0].labels):
                continue
            read = {one for value in (position[0], *result.groups.values()) for one in value.labels}
            if not taken & read:
                result.groups[label], inside = position
                keys[symbol] = index_at(label, position[0])
                result.inside += inside
                result.left.remove(condition)
                break
    if keys:
        inner = result.scope
        values = {name: read_at(value, result.groups) for name, value in inner.values.items()}
        guard = None if inner.guard is None else read_at(inner.guard, result.groups)
        result.scope = _with_values(replace(inner, values=values, guard=guard), keys)
        result.inside = [read_at(one, result.groups) for one in result.inside]
    return result


def _with_values(scope: IndexScope, values: Mapping[sp.Basic, Value]) -> IndexScope:
    """The scope in which indices have values in place of labels."""
    labels = {symbol: one for symbol, one in scope.labels.items() if symbol not in values}
    return replace(scope, labels=labels, values={**scope.values, **values})


def _position(
    condition: sp.Basic, symbol: sp.Basic, label: Label, known: Determined
) -> Generator[SymPyRequest, Value, tuple[Value, list[Value]] | None]:
    """The position of a label that an equation determines, inside its axis, and where it exists."""
    place = _solution(condition, symbol)
    if place is None:
        return None
    scope = known.scope
    value = yield SymPyRequest(place, scope)
    if any(one.role != "data" for one in inputs(value.expr)) or label in value.labels:
        return None
    value = combine(sub, value, number_of(label.start))
    inside: list[Value] = []
    if not is_whole(value.expr, scope.translation.whole):
        # Numbers between two positions are equal to none.
        rounded = combine(floor, value)
        inside.append(combine(eq, rounded, value))
        value = combine(where, inside[0], rounded, number(0.0))
    clipped, within = position_within(label.dim, value, scope.translation.lists)
    return clipped, inside if within is None else [*inside, within]


def _solution(condition: sp.Basic, symbol: sp.Basic) -> sp.Expr | None:
    """The value of an index at which an equation holds; None if it has no coefficient of 1 or -1.

    Other occurrences of the index, as in `Eq(g[j], j)`, leave none either.
    """
    if not isinstance(condition, sp.Eq):
        return None
    difference = condition.lhs - condition.rhs
    coefficient = difference.coeff(symbol, 1)
    if coefficient not in (1, -1):
        return None
    rest = difference - coefficient * symbol
    return None if symbol in rest.free_symbols else -rest * coefficient
