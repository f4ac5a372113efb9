"""Quadratic models by the name of the direction that is computed from them."""

from __future__ import annotations

from collections.abc import Callable

from slomodel.solve.directions.gauss_newton import GaussNewton
from slomodel.solve.objective import Evaluator
from slomodel.solve.quadratics.dense import Damped, DenseHessian
from slomodel.solve.quadratics.hessian import HessianProducts
from slomodel.solve.quadratics.limited_memory import LimitedMemory
from slomodel.solve.quadratics.quadratic import Quadratic
from slomodel.solve.subroutine import Iterate

MODELS: dict[str, Callable[[Evaluator, Iterate, float, float], Quadratic]] = {
    "lbfgs": lambda evaluate, start, longest, _: LimitedMemory(len(start.x), longest, evaluate.eps),
    "newton-cg": HessianProducts,
    "newton": lambda evaluate, start, longest, goal: DenseHessian(evaluate, goal),
    "gauss-newton": lambda evaluate, start, longest, _: Damped(
        GaussNewton(evaluate, start, longest)
    ),
}
"""(evaluate, start, longest step, goal for a quadratic objective or 0) -> the model of a run."""
