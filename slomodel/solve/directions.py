"""Search directions by name; each proposal is tested by the caller (eqn:lsearch-grc)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from slomodel.solve.conjugate import ConjugateGradient
from slomodel.solve.direction import Direction, Gradient
from slomodel.solve.floor import IDLE_STEPS
from slomodel.solve.gauss_newton import GaussNewton
from slomodel.solve.lbfgs import LBFGS
from slomodel.solve.newton import LARGEST_DENSE, Newton
from slomodel.solve.newton_cg import NewtonCG
from slomodel.solve.objective import Evaluator
from slomodel.solve.subroutine import Iterate
from slomodel.solve.turns import Turns

# Of directions that take the units of the variables into account: where these differ by 1e6, a
# step to the minimum may have a cosine of 1e-6 with −∇f.
LEAST_COSINE = 1e-8
# They gain at every step, until they gain nothing.
FEW_IDLE_STEPS = 10


@dataclass(frozen=True, slots=True)
class Rule:
    """How a direction is made for a run, from its start and δ̄, and what it needs.

    `initial_step` is the first trial it goes with; `squares`: it needs a sum of squares; `most`
    is the largest n it is for. `alpha` is the least cosine with −∇f, `idle` the number of steps
    without a gain that end a run.
    """

    start: Callable[[Evaluator, Iterate, float], Direction]
    initial_step: str
    squares: bool = False
    most: int | None = None
    alpha: float = 1e-4
    idle: int = IDLE_STEPS


def dense(
    start: Callable[[Evaluator, Iterate, float], Direction], *, squares: bool = False
) -> Rule:
    """A rule that solves with a matrix (n, n)."""
    return Rule(
        start,
        "unit",
        squares=squares,
        most=LARGEST_DENSE,
        alpha=LEAST_COSINE,
        idle=FEW_IDLE_STEPS,
    )


def by_turns(first: Rule, second: Rule, work: int, *, again: bool = False) -> Rule:
    """A rule that takes two by turns, `work` evaluations in the first."""

    def start(evaluate: Evaluator, at: Iterate, delta_bar: float) -> Direction:
        pair = first.start(evaluate, at, delta_bar), second.start(evaluate, at, delta_bar)
        return Turns(evaluate, pair, work, again)

    return Rule(
        start,
        "unit",
        most=second.most,
        alpha=min(first.alpha, second.alpha),
        idle=max(first.idle, second.idle),
    )


_ALONE: dict[str, Rule] = {
    "gradient": Rule(lambda evaluate, start, delta_bar: Gradient(), "bb"),
    "lbfgs": Rule(lambda evaluate, start, delta_bar: LBFGS(len(start.x), delta_bar), "unit"),
    "cg": Rule(lambda evaluate, start, delta_bar: ConjugateGradient(len(start.x)), "bb"),
    "newton-cg": Rule(NewtonCG, "unit"),
    "newton": dense(Newton),
    "gauss-newton": dense(GaussNewton, squares=True),
}
DIRECTIONS: dict[str, Rule] = {
    **_ALONE,
    # The second one's turn comes after so many evaluations along the first.
    "lbfgs/newton-cg": by_turns(_ALONE["lbfgs"], _ALONE["newton-cg"], 600, again=True),
    "lbfgs/newton": by_turns(_ALONE["lbfgs"], _ALONE["newton"], 600, again=True),
    "newton-cg/newton": by_turns(_ALONE["newton-cg"], _ALONE["newton"], 200),
}
