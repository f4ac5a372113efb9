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

MODELS: dict[str, Callable[[Evaluator, Iterate, float], Quadratic]] = {
    "lbfgs": lambda evaluate, start, longest: LimitedMemory(len(start.x), longest, evaluate.eps),
    "newton-cg": HessianProducts,
    "newton": lambda evaluate, start, longest: DenseHessian(evaluate),
    "gauss-newton": lambda evaluate, start, longest: Damped(GaussNewton(evaluate, start, longest)),
}
"""(evaluate, start, longest step) -> the model of a run."""
