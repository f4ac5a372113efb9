"""A warning about starts that no step can leave: variables in products all zero, or all equal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from slomodel.calculus import gradient
from slomodel.errors import Diagnostic
from slomodel.front.lints.initial_facts import InitialFact, initial_facts, is_constant_along
from slomodel.functions import mul, square
from slomodel.ir.dims import Dim
from slomodel.ir.expr import Axes, Einsum, Expr, Input, Map
from slomodel.ir.walk import dependents, inputs, postorder
from slomodel.problem import Problem, Variable

_Facts = Mapping[Expr, InitialFact]
_Factor = tuple[Expr, Axes]
_MOST_PRODUCTS = 200
_SADDLE = "where the gradient is zero whatever the data: a saddle, or the optimum itself"
_UNMOVED = "where its gradient is zero whatever the data: the first step leaves it there"
_REMEDY = "start at random: `init normal(0, 0.1)`"
_REMEDY_OF_SADDLE = "unless the optimum is there, start at random: `init normal(0, 0.1)`"


def with_saddle_warning(problem: Problem) -> Problem:
    """The problem, with a warning if no step can leave its start, whatever the data."""
    starts = {v.node: s for v in problem.variables if (s := _number(v)) is not None}
    order = postorder(problem.objective) if starts else []
    varying = dependents(order, lambda n: isinstance(n, Input) and n.role == "variable")
    products = {node: own for node in order if len(own := _factors(node, varying)) > 1}
    facts = initial_facts([problem.objective], starts) if products else {}
    products = {node: own for node, own in products.items() if _is_suspect(node, own, facts)}
    if not products:
        return problem
    nodes = problem.inputs
    slopes = dict(zip(nodes, gradient(problem.objective, nodes), strict=True))
    facts = initial_facts([problem.objective, *slopes.values()], starts)
    flat = all(facts[slope].is_zero for slope in slopes.values())
    reasons: dict[tuple[Input, ...], str] = {}
    for factors in list(products.values())[:_MOST_PRODUCTS]:
        stuck = _stuck(factors, slopes, facts, facts[problem.objective].is_zero)
        if stuck:
            reasons[stuck] = _SADDLE if flat else _UNMOVED
    for node in list(products)[:_MOST_PRODUCTS]:
        for dim, equal in _in_step(node, products[node], slopes, facts):
            reasons.setdefault(equal, f"and elements along `{dim}` that start equal stay equal")
    least = [
        a for a in reasons if any(set(a) < set(b) and reasons[a] == reasons[b] for b in reasons)
    ]
    remarks = [_remark(problem, a, text) for a, text in reasons.items() if a not in least]
    return replace(problem, warnings=(*problem.warnings, *remarks)) if remarks else problem


def _number(variable: Variable) -> float | None:
    """The number to which all elements are initialised; None for any other `init`."""
    named = {"zeros": 0.0, "ones": 1.0}
    init = variable.init
    return init.parameters[0] if init.kind == "number" else named.get(init.kind)


def _factors(node: Expr, varying: set[Expr]) -> list[_Factor]:
    """The factors of a product that depend on variables; a square has two."""
    if isinstance(node, Einsum):
        pairs = [*zip(node.operands, node.inputs, strict=True)]
    elif isinstance(node, Map) and node.function in (mul, square):
        pairs = [*zip(node.operands, node.axes, strict=True)] * (3 - len(node.operands))
    else:
        return []
    return [pair for pair in pairs if pair[0] in varying]


def _is_suspect(node: Expr, factors: list[_Factor], facts: _Facts) -> bool:
    """Whether a product may be stationary at the start; the gradient decides."""
    zero = sum(facts[operand].is_zero for operand, _ in factors)
    return zero > 1 or next(_units(node, factors, facts), None) is not None


def _variables(factors: list[_Factor], dim: Dim | None = None) -> tuple[Input, ...]:
    """The variables below some factors; with `dim`, only those with an axis of that dim."""
    result = inputs(*(operand for operand, _ in factors))
    return tuple(v for v in result if v.role == "variable" and (dim is None or dim in v.shape))


def _stuck(
    factors: list[_Factor], slopes: Mapping[Input, Expr], facts: _Facts, solved: bool
) -> tuple[Input, ...]:
    """The variables of a product with two zero factors, if their gradient is zero too.

    A square counts if its variables are 0, unless the problem is `solved` there.
    """
    zero = [factor for factor in factors if facts[factor[0]].is_zero]
    result = _variables(zero) if len(zero) > 1 else ()
    if len(set(zero)) == 1 and (solved or not all(facts[one].is_zero for one in result)):
        return ()
    return result if all(facts[slopes[one]].is_zero for one in result) else ()


def _in_step(
    node: Expr, factors: list[_Factor], slopes: Mapping[Input, Expr], facts: _Facts
) -> Iterator[tuple[Dim, tuple[Input, ...]]]:
    """Dims over which a product sums equal terms, and the variables with these dims.

    The terms are the hidden units of a factorisation or a network: if the gradient is constant
    along them as well, they remain equal in every step.
    """
    for dim, having in _units(node, factors, facts):
        variables = _variables(having, dim)
        axes = [
            (variable, k)
            for variable in variables
            for k, other in enumerate(variable.shape)
            if other == dim
        ]
        if axes and all(
            k in facts[one].constant_axes & facts[slopes[one]].constant_axes for one, k in axes
        ):
            yield dim, variables


def _units(
    node: Expr, factors: list[_Factor], facts: _Facts
) -> Iterator[tuple[Dim, list[_Factor]]]:
    """Summed dims along which the factors are constant, where the factors differ in axes.

    Yields each dim with the factors that have it.
    """
    if not isinstance(node, Einsum):
        return
    known = [facts[operand] for operand in node.operands]
    for label, dim in enumerate(node.dims):
        having = [factor for factor in factors if label in factor[1]]
        unlike = len({frozenset(own) for _, own in having}) > 1 and label not in node.output
        if (
            unlike
            and not (dim.is_literal and dim.const == 1)
            and is_constant_along(node, label, known)
        ):
            yield dim, having


def _remark(problem: Problem, stuck: tuple[Input, ...], text: str) -> Diagnostic:
    first = next(v for v in problem.variables if v.node is stuck[0])
    names = ", ".join(f"`{one.name}`" for one in stuck)
    number = _number(first)
    verb = "starts" if len(stuck) == 1 else "start"
    place = f"{names} {verb} at {number:g}, {text}" if number is not None else f"{names}: {text}"
    remedy = _REMEDY_OF_SADDLE if text is _SADDLE else _REMEDY
    return Diagnostic("W203", place, first.span, help=remedy, severity="warning")
