"""Search directions by name; each proposal is tested by the caller (eqn:lsearch-grc)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from slomodel.solve.conjugate import ConjugateGradient
from slomodel.solve.direction import Direction, Gradient
from slomodel.solve.lbfgs import LBFGS
from slomodel.solve.newton import LARGEST_DENSE, Newton
from slomodel.solve.newton_cg import NewtonCG
from slomodel.solve.objective import Evaluator
from slomodel.solve.subroutine import Iterate


@dataclass(frozen=True, slots=True)
class Rule:
    """How a direction is made for a run, from its start and δ̄, and what it needs.

    `initial_step` is the first trial it goes with; `curvature`: Hessian-vector products;
    `most` is the largest n it is for.
    """

    start: Callable[[Evaluator, Iterate, float], Direction]
    initial_step: str
    curvature: bool = False
    most: int | None = None


DIRECTIONS: dict[str, Rule] = {
    "gradient": Rule(lambda evaluate, start, delta_bar: Gradient(), "bb"),
    "lbfgs": Rule(lambda evaluate, start, delta_bar: LBFGS(len(start.x), delta_bar), "unit"),
    "cg": Rule(lambda evaluate, start, delta_bar: ConjugateGradient(len(start.x)), "bb"),
    "newton-cg": Rule(NewtonCG, "unit", curvature=True),
    "newton": Rule(Newton, "unit", curvature=True, most=LARGEST_DENSE),
}
