"""An objective as the sum of parts of unlike kinds, each of which has its own best rule.

f is affine in its outermost nodes that are not linear: f = Σ_k ⟨w_k, u_k⟩ + an affine function.
Terms of one kind stay together, where their curvatures are bounded as one sum: elementwise
functions of affine arrays, log-sum-exps of affine arrays, terms that read the same layer of a
network, and other terms that read common variables. Quadratic terms join another part, as their
derivatives are constant and add no looseness there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import slomodel.functions as table
from slomodel.bounds.effort import MOST_NODES
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.structure.linear_predictors import (
    affine_nodes,
    element_function,
    factors_of,
    is_linear,
)
from slomodel.bounds.structure.networks import layer_at
from slomodel.calculus.degree import degree
from slomodel.functions.compound import stop_gradient
from slomodel.ir import build
from slomodel.ir.expr import Expr, Input, Map
from slomodel.ir.walk import first_met, inputs, postorder, substitute

_MOST_PARTS = 8
"""Largest number of parts; each takes about as long as a bound of the whole."""

Kind = str
ELEMENTS, LOG_SUMS, LAYERS, OTHERS, QUADRATIC = (
    "elements",
    "log-sum-exps",
    "layers",
    "others",
    "quadratic",
)


@dataclass(slots=True)
class TermGroup:
    """Terms of one kind and what they have in common: layers of a network, or variables."""

    kind: Kind
    terms: list[Expr]
    shared: set[Expr]

    def takes(self, other: TermGroup) -> bool:
        """Whether both groups belong to one part."""
        if self.kind != other.kind:
            return False
        return self.kind not in (LAYERS, OTHERS) or not self.shared.isdisjoint(other.shared)


@dataclass(frozen=True, slots=True)
class _Grouped:
    """The outermost nonlinear terms by kind, and the affine ones."""

    groups: list[TermGroup]
    terms: list[Expr]
    affine_terms: list[Expr]


@once_per_part
def split(part: ObjectivePart) -> tuple[ObjectivePart, ...]:
    """The parts of f, each over the variables that it reads; only f itself where
    the whole objective is of one kind.
    """
    grouped = _grouped(part)
    if grouped is None:
        return (part,)
    places = {one: build.data(f"term {k}", one.shape) for k, one in enumerate(grouped.terms)}
    zeros = {term: build.zeros(term.shape) for term in grouped.affine_terms}
    (outer,) = substitute((part.objective,), {**places, **zeros})
    return tuple(_part(part, outer, places, group.terms) for group in grouped.groups)


def is_sharper_by_parts(part: ObjectivePart) -> bool:
    """Whether a part is a network, log-sum-exps or a polynomial, or two have no common variable.

    Elements and any other terms of common variables are bounded together as well as apart.
    """
    grouped = _grouped(part)
    if grouped is None:
        return False
    variables = set(part.variables)
    read = [variables.intersection(inputs(*group.terms)) for group in grouped.groups]
    return any(a.isdisjoint(b) for a, b in combinations(read, 2)) or any(
        group.kind in (LAYERS, LOG_SUMS)
        or (group.kind == OTHERS and all(degree(t, part.variables) for t in group.terms))
        for group in grouped.groups
    )


@once_per_part
def _grouped(part: ObjectivePart) -> _Grouped | None:
    """The terms; None where the whole objective is of one kind or too large."""
    variables = set(part.variables)
    order, varying = part.order, part.varying
    if len(varying) > MOST_NODES or part.objective not in varying:
        return None
    affine = affine_nodes(order, varying)
    terms, affine_terms = _terms(part.objective, varying, affine)
    groups = _groups(terms, order, varying, affine, variables)
    return _Grouped(groups, terms, affine_terms) if 1 < len(groups) <= _MOST_PARTS else None


def _terms(
    objective: Expr, varying: Collection[Expr], affine: Collection[Expr]
) -> tuple[list[Expr], list[Expr]]:
    """The outermost nonlinear nodes, and those that are affine."""
    result: list[Expr] = []
    flat: list[Expr] = []
    seen, stack = {objective}, [objective]
    while stack:
        node = stack.pop()
        if node not in varying:
            continue
        if node in affine:
            flat.append(node)
        elif is_linear(node, varying):
            fresh = [operand for operand in node.operands if operand not in seen]
            seen.update(fresh)
            stack += fresh
        else:
            result.append(node)
    return result, flat


def _groups(
    terms: Sequence[Expr],
    order: Sequence[Expr],
    varying: Collection[Expr],
    affine: Collection[Expr],
    variables: Collection[Input],
) -> list[TermGroup]:
    """The terms grouped by kind.

    Terms made constant by `stop_gradient` join the term that reads them, quadratic ones the first
    group.
    """
    deep = {
        node
        for node in order
        if node in varying and node not in affine and layer_at(node, varying) is not None
    }
    fixed = [one for one in terms if isinstance(one, Map) and one.function is stop_gradient]
    groups: list[TermGroup] = []
    for term in terms:
        if term not in fixed:
            _join(groups, _group(term, varying, affine, deep, variables))
    quadratic = [group for group in groups if group.kind == QUADRATIC]
    groups = [group for group in groups if group.kind != QUADRATIC] or quadratic
    if quadratic and groups is not quadratic:
        groups[0].terms += quadratic[0].terms
    for one in fixed:
        reading = [g for g in groups if one in postorder(*g.terms)]
        if not reading:
            return []
        reading[0].terms.append(one)
    return groups


def _join(groups: list[TermGroup], new: TermGroup) -> None:
    """Add a group, merged with all groups that it belongs to."""
    apart = [group for group in groups if not group.takes(new)]
    for group in groups:
        if group.takes(new):
            new = TermGroup(new.kind, [*group.terms, *new.terms], group.shared | new.shared)
    groups[:] = [*apart, new]


def _group(
    term: Expr,
    varying: Collection[Expr],
    affine: Collection[Expr],
    deep: Collection[Expr],
    variables: Collection[Input],
) -> TermGroup:
    """The group of one term."""
    result = degree(term, variables)
    if result is not None and result <= 2:
        return TermGroup(QUADRATIC, [term], set())
    tops = first_met([term], deep)
    if tops:
        return TermGroup(LAYERS, [term], tops)
    if isinstance(term, Map) and term.function is table.log:
        return TermGroup(LOG_SUMS, [term], set())
    factors = (term,) if isinstance(term, Map) else factors_of(term, varying)
    one = build.const(1.0)
    if factors is not None and element_function(factors, one, varying, affine) is not None:
        return TermGroup(ELEMENTS, [term], set())
    return TermGroup(OTHERS, [term], {node for node in inputs(term) if node in variables})


def _part(
    part: ObjectivePart, outer: Expr, places: Mapping[Expr, Expr], terms: Collection[Expr]
) -> ObjectivePart:
    """The objective with all other terms replaced by 0, over its own variables."""
    back = {
        place: term if term in terms else build.zeros(term.shape) for term, place in places.items()
    }
    (objective,) = substitute((outer,), back)
    own = set(inputs(objective))
    used = tuple(variable for variable in part.variables if variable in own)
    others = set(part.variables).difference(used)
    values = {node: array for node, array in part.values.items() if node not in others}
    return replace(part, objective=objective, variables=used, values=values, product=None)
