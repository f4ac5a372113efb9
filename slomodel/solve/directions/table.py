"""Search directions by name; the caller tests each proposed direction (eqn:lsearch-grc)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from slomodel.solve.directions.alternating import Turns
from slomodel.solve.directions.conjugate_gradient import ConjugateGradient
from slomodel.solve.directions.direction import IDLE_STEPS, Direction, Gradient
from slomodel.solve.directions.gauss_newton import GaussNewton
from slomodel.solve.directions.lbfgs import LBFGS
from slomodel.solve.directions.levenberg_marquardt import LevenbergMarquardt
from slomodel.solve.directions.mixed_newton import MixedNewton
from slomodel.solve.directions.newton import LARGEST_DENSE, Newton
from slomodel.solve.directions.newton_cg import NewtonCG
from slomodel.solve.directions.quasi_newton import QuasiNewton
from slomodel.solve.objective import Evaluator
from slomodel.solve.subroutine import Iterate

# For directions that account for the units of the variables: where units differ by 1e6, a step to
# the minimum may have a cosine of 1e-6 with −∇f, and in a valley one of 1e-9. Four digits of it are
# left here.
LEAST_COSINE = 1e-12
# Second-order steps gain something at every step until none gains anything.
FEW_IDLE_STEPS = 10
# Evaluations along the first of several alternating directions.
FIRST_TURN = 60


@dataclass(frozen=True, slots=True)
class Rule:
    """How to construct a direction for a run, from its start and δ̄, and the requirements.

    `initial_step` names the rule for the first trial step; `squares`: f must be a sum of squares;
    `most` is the largest admissible n. `alpha` is the least cosine with −∇f, `idle` the number of
    steps without a gain that ends a run. `any_units`: the direction, apart from its memory, does
    not depend on the units of the variables. `predicts`: its proposals are steps to the minimum of
    a model of f, and `confirm` makes the model that of the Hessian. `linearises`: it needs the
    Jacobian of the residuals at every point.
    """

    start: Callable[[Evaluator, Iterate, float], Direction]
    initial_step: str
    squares: bool = False
    most: int | None = None
    alpha: float = 1e-4
    idle: int = IDLE_STEPS
    any_units: bool = False
    predicts: bool = False
    linearises: bool = False


def dense(
    start: Callable[[Evaluator, Iterate, float], Direction], *, squares: bool = False
) -> Rule:
    """Rule for a direction that solves a dense system (n, n)."""
    return Rule(
        start,
        "unit",
        squares=squares,
        most=LARGEST_DENSE,
        alpha=LEAST_COSINE,
        idle=FEW_IDLE_STEPS,
        any_units=True,
    )


def by_turns(*rules: Rule) -> Rule:
    """Rule that alternates between several directions, the first for FIRST_TURN evaluations."""

    def start(evaluate: Evaluator, at: Iterate, delta_bar: float) -> Direction:
        directions = tuple(rule.start(evaluate, at, delta_bar) for rule in rules)
        return Turns(evaluate, directions, FIRST_TURN)

    return Rule(
        start,
        "unit",
        squares=any(rule.squares for rule in rules),
        most=min((rule.most for rule in rules if rule.most is not None), default=None),
        alpha=min(rule.alpha for rule in rules),
        idle=max(rule.idle for rule in rules),
        any_units=any(rule.any_units for rule in rules),
    )


_ALONE: dict[str, Rule] = {
    "gradient": Rule(lambda evaluate, start, delta_bar: Gradient(), "bb"),
    "lbfgs": Rule(
        lambda evaluate, start, delta_bar: LBFGS(len(start.x), delta_bar, eps=evaluate.eps), "unit"
    ),
    "levenberg-marquardt": Rule(
        LevenbergMarquardt,
        "unit",
        squares=True,
        most=LARGEST_DENSE,
        alpha=LEAST_COSINE,
        any_units=True,
        predicts=True,
        linearises=True,
    ),
    "bfgs": Rule(QuasiNewton, "unit", alpha=LEAST_COSINE, any_units=True, predicts=True),
    "cg": Rule(lambda evaluate, start, delta_bar: ConjugateGradient(len(start.x)), "bb"),
    "newton-cg": Rule(NewtonCG, "unit"),
    "newton": dense(Newton),
    "gauss-newton": dense(GaussNewton, squares=True),
}
DIRECTIONS: dict[str, Rule] = {
    **_ALONE,
    "gauss-newton/newton": dense(MixedNewton, squares=True),
    **{
        "/".join(names): by_turns(*(_ALONE[name] for name in names))
        for names in (
            ("lbfgs", "newton"),
            ("lbfgs", "newton-cg"),
            ("newton-cg", "lbfgs"),
            ("newton-cg", "lbfgs", "newton"),
            ("gauss-newton", "newton-cg", "lbfgs", "newton"),
        )
    },
}
