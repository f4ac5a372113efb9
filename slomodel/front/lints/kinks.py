"""Warnings about kinks and jumps of an objective: functions that are not C¹, with positions."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from slomodel.calculus.kinked_products import remaining_kinks
from slomodel.calculus.piecewise import continuity_order, is_continuously_differentiable
from slomodel.errors import Diagnostic, Span
from slomodel.front.data.bind import Binding
from slomodel.functions import (
    DISCONTINUOUS,
    abs,
    add,
    differentiated,
    ge,
    gt,
    land,
    le,
    lt,
    relu,
    square,
    where,
)
from slomodel.ir import build
from slomodel.ir.expr import Const, Expr, Extreme, Input, Map, Recur, is_map
from slomodel.ir.function import ANALYTIC, ScalarFunction
from slomodel.ir.walk import dependents, postorder
from slomodel.problem import NONSMOOTH, Check, DataDeclaration, Problem

_BOUNDS = "a bound over a ball that touches it is infinite"


def nonsmooth_warnings(
    objective: Expr,
    spans: Mapping[Expr, Span],
    place: Span,
    data: Sequence[DataDeclaration] = (),
    checks: Sequence[Check] = (),
    arrays: Mapping[str, NDArray[np.float64]] = MappingProxyType({}),
    joins: Collection[Expr] = (),
) -> list[Diagnostic]:
    """A warning for each node that depends on x and is not C¹; `place` is for nodes without span.

    There is no warning for kinks that a product smooths, as in |t|³, and for the choices `joins`.
    """
    limits = lower_limits(data, checks, arrays)
    objective, inside = with_bodies(objective)
    spans = {**{n: spans[r] for n, r in inside.items() if r in spans}, **spans}
    order = differentiated(objective)
    varying = dependents(order, lambda n: isinstance(n, Input) and n.role == "variable")
    # A proof that a choice is smooth takes long: there is none for choices known to be smooth.
    judged = [node for node in order if node in varying and node not in joins]
    kinked = [node for node in judged if _may_be_kinked(node, limits, varying)]
    if not kinked:
        return []
    seen = remaining_kinks(objective, order, varying).nodes
    result: dict[Diagnostic, None] = {}
    for node in kinked:
        if node not in seen:
            continue
        span = spans.get(node, place)
        if isinstance(node, Map):
            result[_remark(node.function, span)] = None
        elif isinstance(node, Extreme):
            message = f"`{node.which}` has a kink where its extreme elements are equal"
            remedy = "`logsumexp` is smooth"
            result[Diagnostic(NONSMOOTH, message, span, help=remedy, severity="warning")] = None
    return list(result)


def with_bodies(objective: Expr) -> tuple[Expr, dict[Expr, Recur]]:
    """An objective with all kinks of the given one, those inside recurrences included.

    The bodies of all loops, at all steps, are added to it. The second result maps their nodes to a
    state of their loop.
    """
    inside: dict[Expr, Recur] = {}
    known = set(postorder(objective))
    waiting = [(node, node) for node in postorder(objective) if isinstance(node, Recur)]
    while waiting:
        node, outer = waiting.pop(0)
        if node in inside and outer is node:
            continue
        inside.update(dict.fromkeys(node.states, outer))
        for body in build.bodies(node):
            new = [one for one in postorder(body) if one not in known and one not in inside]
            inside.update(dict.fromkeys(new, outer))
            waiting += [(one, outer) for one in new if isinstance(one, Recur)]
            total = build.sum_over(body, tuple(range(body.rank)))
            objective = build.apply(add, objective, total)
    return objective, inside


def _may_be_kinked(node: Expr, limits: Mapping[Expr, float], varying: Collection[Expr]) -> bool:
    """Whether a node itself, as a function of its operands, is not C¹."""
    if not isinstance(node, Map):
        return isinstance(node, Extreme)
    is_kinked = node.function.result != "bool" and smoothness_of(node, limits) <= 0
    return is_kinked and _has_kink(node, varying)


def smoothness_of(node: Map, limits: Mapping[Expr, float]) -> int:
    """Order of continuous differentiability of a function, given lower bounds on operands."""
    function = node.function
    if function.smoothness_above is None:
        return function.smoothness
    return function.smoothness_above(*(_least(operand, limits) for operand in node.operands))


def _least(node: Expr, limits: Mapping[Expr, float]) -> float:
    """Lower bound on the elements of a node; -inf if none is known."""
    if isinstance(node, Const):
        return float(node.value)
    if isinstance(node, Map) and node.function in (abs, square, relu):
        return 0.0
    if isinstance(node, Map) and node.function.monotonicity is not None:
        return node.function.monotonicity.image[0]
    return limits.get(node, -math.inf)


def lower_limits(
    data: Sequence[DataDeclaration],
    checks: Sequence[Check],
    arrays: Mapping[str, NDArray[np.float64]] = MappingProxyType({}),
) -> dict[Expr, float]:
    """Lower bounds on data, and on nodes that the model's checks bound, such as `check s > 1`.

    `arrays` holds data by name; data without values are assumed to be nonnegative.
    """
    result: dict[Expr, float] = {}
    for one in data:
        array = arrays.get(one.name, one.values)
        if array is not None and np.size(array):
            result[one.node] = float(np.min(array))
        else:
            # Only unusual data, such as delta < 0 in `huber`, would cause a kink: there is no
            # warning before they are known. Bounds and methods use the actual numbers.
            result[one.node] = 0.0 if one.default is None else one.default
    conditions = [check.condition for check in checks]
    while conditions:
        condition = conditions.pop()
        if not isinstance(condition, Map):
            continue
        if condition.function is land:
            conditions += condition.operands
        elif condition.function in (ge, gt, le, lt):
            larger, smaller = condition.operands
            if condition.function in (le, lt):
                larger, smaller = smaller, larger
            if isinstance(smaller, Const):
                result[larger] = max(result.get(larger, -math.inf), float(smaller.value))
    return result


def _has_kink(node: Map, varying: Collection[Expr]) -> bool:
    """Whether a node may have a kink: not if it is a `where` that never switches or is smooth."""
    if node.function is not where:
        return True
    return node.operands[0] in varying and not is_continuously_differentiable(node, varying)


def _remark(function: ScalarFunction, span: Span) -> Diagnostic:
    kink = min(function.kinks, key=lambda kink: kink.order)
    word = "jump" if kink.order == DISCONTINUOUS else "kink"
    message = kink.message or f"`{function.name}` has a {word}"
    return Diagnostic(NONSMOOTH, message, span, help=kink.remedy or _BOUNDS, severity="warning")


def smoothness(
    problem: Problem,
    arrays: Mapping[str, NDArray[np.float64]] = MappingProxyType({}),
    apart_from: Collection[ScalarFunction] = (),
) -> int:
    """Lower bound on the order of continuous differentiability of the objective.

    It is the minimum over its functions, `apart_from` some; a joint of a `where` may be smoother
    than is proved.
    `arrays` holds data by name; the values of other data are unknown.
    """
    variables: set[Expr] = set(problem.inputs)
    objective, _ = with_bodies(problem.objective)
    order = differentiated(objective)
    varying = dependents(order, variables.__contains__)
    kinks = remaining_kinks(objective, order, varying)
    limits = lower_limits(problem.data, problem.checks, arrays)
    classes = [
        _order(node, varying, limits) if isinstance(node, Map) else 0
        for node in order
        if isinstance(node, (Map, Extreme)) and node in varying and node in kinks.nodes
        if node not in problem.joins
        if node.dtype == "real" and not is_map(node, *apart_from)
    ]
    return min([kinks.order, *classes])


def _order(node: Map, varying: set[Expr], limits: Mapping[Expr, float]) -> int:
    """Order of differentiability of a node; a choice that is constant has no kink."""
    if node.function is not where:
        return smoothness_of(node, limits)
    return max(0, continuity_order(node, varying)) if node.operands[0] in varying else ANALYTIC


def smoothness_class(problem: Problem, arrays: Mapping[str, NDArray[np.float64]]) -> str:
    """The smoothness class in words."""
    degree = smoothness(problem, arrays)
    if degree >= ANALYTIC:
        return "smooth (derivatives of every order on its domain)"
    if degree < 0:
        return "discontinuous (it jumps)"
    return f"C{degree}" if degree > 0 else "nonsmooth (it has kinks)"


def kinks_of_data(problem: Problem, binding: Binding) -> list[Diagnostic]:
    """Warnings about kinks that depend on the values of data, such as delta < 0 in `huber`."""
    span = problem.spans.get(problem.objective) or next(iter(problem.spans.values()), None)
    if span is None or not kinks_depend_on_data(problem):
        return []
    result = nonsmooth_warnings(
        *(problem.objective, problem.spans, span, problem.data, problem.checks, binding.arrays),
        joins=problem.joins,
    )
    return [one for one in result if one not in problem.warnings]


def kinks_depend_on_data(problem: Problem) -> bool:
    """Whether the smoothness of some function depends on data."""
    order = postorder(problem.objective)
    return any(isinstance(n, Map) and n.function.smoothness_above is not None for n in order)
