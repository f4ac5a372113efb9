"""The Lagrangian and the augmented Lagrangian of a problem with constraints, as problems."""

from __future__ import annotations

from dataclasses import replace

from slomodel.functions import add, div, mul, neg, relu, square, sub
from slomodel.ir import build
from slomodel.ir.expr import Expr, Input
from slomodel.problem import Constraint, DataDeclaration, Problem, Variable

WEIGHT = "weight of the objective"


def minimised(problem: Problem) -> Expr:
    """The objective, negated for a maximum."""
    objective = problem.objective
    return build.apply(neg, objective) if problem.sense == "maximize" else objective


def lagrangian_problem(problem: Problem) -> Problem:
    """The Lagrangian w·f + Σ y·c as a function of x, w and y, which its gradient contains.

    So one kernel gives f and c beside the gradient with respect to x, and one Hessian product with
    (v, 0, 0) the product of the Hessian, and of the Jacobian of c, with v.
    """
    weight = build.variable(WEIGHT, ())
    multipliers = [
        build.variable(multipliers_of(k), one.value.shape)
        for k, one in enumerate(problem.constraints)
    ]
    total = build.apply(mul, weight, minimised(problem))
    for one, y in zip(problem.constraints, multipliers, strict=True):
        total = build.apply(add, total, _sum(build.apply(mul, y, one.value)))
    variables = tuple(Variable(node) for node in (*problem.inputs, weight, *multipliers))
    return replace(
        problem,
        objective=total,
        sense="minimize",
        variables=variables,
        vector=None,
        constraints=(),
    )


def augmented_problem(problem: Problem) -> Problem:
    """The augmented Lagrangian over x, with data for its weight, penalties and multipliers."""
    weight = build.data(WEIGHT, ())
    total = build.apply(mul, weight, minimised(problem))
    data = [weight]
    for k, one in enumerate(problem.constraints):
        penalty, y = build.data(penalty_of(k), ()), build.data(multipliers_of(k), one.value.shape)
        data += [penalty, y]
        total = build.apply(add, total, _penalised(one, y, penalty))
    return replace(
        problem,
        objective=total,
        sense="minimize",
        data=(*problem.data, *map(DataDeclaration, data)),
        constraints=(),
    )


def multipliers_of(k: int) -> str:
    return f"multipliers {k + 1}"


def penalty_of(k: int) -> str:
    return f"penalty {k + 1}"


def _sum(value: Expr) -> Expr:
    return build.sum_over(value, tuple(range(value.rank)))


def _penalised(constraint: Constraint, y: Input, penalty: Input) -> Expr:
    """Σ (y c + ρ c²/2) for equations, Σ (max(0, y + ρ c)² − y²)/2ρ for inequalities."""
    c, half = constraint.value, build.const(0.5)
    rho = build.broadcast(penalty, (), c.shape)
    if constraint.is_equation:
        quadratic = build.apply(mul, build.apply(mul, half, penalty), _sum(build.apply(square, c)))
        return build.apply(add, _sum(build.apply(mul, y, c)), quadratic)
    estimate = build.apply(relu, build.apply(add, y, build.apply(mul, rho, c)))
    difference = build.apply(sub, _sum(build.apply(square, estimate)), _sum(build.apply(square, y)))
    return build.apply(mul, build.apply(div, half, penalty), difference)
