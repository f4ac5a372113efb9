"""Quadratic models by the name of the direction that is computed from them."""

from __future__ import annotations

from collections.abc import Callable

from slomodel.solve.directions.gauss_newton import GaussNewton
from slomodel.solve.objective import Evaluator
from slomodel.solve.quadratics.alternating import AlternatingModels
from slomodel.solve.quadratics.dense import Damped, DenseHessian
from slomodel.solve.quadratics.hessian import HessianProducts
from slomodel.solve.quadratics.limited_memory import LimitedMemory
from slomodel.solve.quadratics.quadratic import Quadratic
from slomodel.solve.subroutine import Iterate


def limited_memory(evaluate: Evaluator, start: Iterate, longest: float, _: float) -> LimitedMemory:
    """The model of pairs."""
    compiled = evaluate.is_compiled and evaluate.within is not None and evaluate.within.is_box
    return LimitedMemory(len(start.x), longest, evaluate.eps, compiled=compiled)


def dense(evaluate: Evaluator, start: Iterate, longest: float, goal: float) -> Quadratic:
    """The model of the Hessian."""
    return DenseHessian(evaluate, goal)


def damped(evaluate: Evaluator, start: Iterate, longest: float, _: float) -> Quadratic:
    """The model of the Gauss–Newton matrix."""
    return Damped(GaussNewton(evaluate, start, longest))


ModelOfRun = Callable[[Evaluator, Iterate, float, float], Quadratic]


def by_turns(other: ModelOfRun) -> ModelOfRun:
    """The model of pairs and another one, which alternate."""

    def alternating(evaluate: Evaluator, start: Iterate, longest: float, _: float) -> Quadratic:
        own = evaluate, start, longest, 0.0
        return AlternatingModels(evaluate, start, limited_memory(*own), other(*own))

    return alternating


MODELS: dict[str, ModelOfRun] = {
    "lbfgs": limited_memory,
    "newton-cg": HessianProducts,
    "newton": dense,
    "gauss-newton": damped,
    "lbfgs/newton": by_turns(dense),
    "lbfgs/newton-cg": by_turns(HessianProducts),
}
"""(evaluate, start, longest step, goal for a quadratic objective or 0) -> the model of a run."""
