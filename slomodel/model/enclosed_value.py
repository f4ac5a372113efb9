"""Kernels of a value with a proved bound on its rounding error, and of the gradient beside it."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from slomodel.calculus import Known
from slomodel.calculus.rays.numbers import MidRad
from slomodel.calculus.rays.ray import enclosed_value
from slomodel.codegen.kernels import Compiled, Derivatives, Evaluate, Kernels
from slomodel.errors import MissingRule
from slomodel.ir import build
from slomodel.ir.expr import Const, Expr
from slomodel.ir.walk import substitute
from slomodel.model.rays import computed
from slomodel.rewrite.work import prepared

Vector = NDArray[np.float64]


class _PointAndResult(threading.local):
    """The kernel of one thread, its argument (x, 0) and x, its result (∇f, e) and ∇f."""

    parts: tuple[Evaluate, Vector, Vector, Vector, Vector] | None = None


class EnclosedValues:
    """f at points (n,) with a bound on its error, and ∇f, by one kernel in double precision.

    The kernel is that of value and gradient of a function of one vector (x, e), with the bound in
    place of the derivative by e. `plain` is the objective without choices between formulas, if
    these occur: it is taken where there is no bound with them. Raises MissingRule without any.
    """

    def __init__(
        self,
        compiled: Compiled,
        written: Expr,
        data: Mapping[str, Vector],
        plain: Expr | None = None,
    ) -> None:
        own = compiled.derivatives
        x, graphs = own.variables, computed(compiled.prepared)
        error = build.variable("error of value", ())
        rewritten, *gradient = substitute((own.objective, *own.gradient), graphs)
        enclosed = _first_enclosed((rewritten, *filter(None, [plain]), written))
        given = compiled.given
        taken = {one.name for one in (*x, error, *given)}
        radius = Const(0.0) if enclosed.rad is None else enclosed.rad
        roots, tables = prepared((enclosed.mid, *gradient, radius), taken)
        whole = {one: made for one, made in compiled.prepared.items() if one.dtype == "whole"}
        known = Known(frozenset({*given, *tables}))
        results = Derivatives(roots[0], (*x, error), known, roots[1:])
        self._kernels = Kernels(compiled.over(results, {**whole, **tables}), data)
        self._own = _PointAndResult()

    def __call__(self, x: Vector, out: Vector) -> tuple[float, float]:
        """f at x with a bound on its error; ∇f is written into `out`, both (n,)."""
        parts = self._own.parts
        if parts is None:
            kernel = self._kernels.function("value_and_gradient")
            argument, result = np.zeros(len(x) + 1), np.empty(len(x) + 1)
            parts = self._own.parts = (kernel, argument, argument[:-1], result, result[:-1])
        kernel, argument, point, result, gradient = parts
        point[:] = x
        value = kernel(argument, result)
        out[:] = gradient
        error = float(result[-1])
        # NaN where intermediate results overflow.
        return value, error if error >= 0.0 else math.inf


def _first_enclosed(objectives: Sequence[Expr]) -> MidRad:
    """The enclosure of the first of several equivalent objectives that has one."""
    for objective in objectives[:-1]:
        try:
            return enclosed_value(objective)
        except MissingRule:
            continue
    return enclosed_value(objectives[-1])
