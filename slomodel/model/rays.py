"""Kernels that bound the objective along a ray; they are those of an objective of (x, v, T)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from slomodel.calculus import Known
from slomodel.calculus.rays.bounds import RayBounds
from slomodel.calculus.rays.ray import RayGraph, ray_graph
from slomodel.codegen.kernels import Compiled, Derivatives, Kernels
from slomodel.errors import MissingRule
from slomodel.ir import build
from slomodel.ir.expr import Expr, Input
from slomodel.ir.walk import substitute
from slomodel.rewrite.work import prepared

Vector = NDArray[np.float64]
_RESULTS = 10


class _Own(threading.local):
    """The argument (x, v, T, r) and the result of the kernel of one thread."""

    point: Vector | None = None
    out: Vector | None = None


class Rays:
    """The bounds along rays from points (n,) of a model, by one kernel in double precision.

    The kernel is that of value and gradient of a function of one vector (x, v, T, r), with the
    bounds in place of the derivatives by r. Raises MissingRule where there is no proof.
    """

    def __init__(self, compiled: Compiled, written: Expr, data: Mapping[str, Vector]) -> None:
        own = compiled.derivatives
        x = own.variables
        v = tuple(build.variable(f"v[{one.name}]", one.shape) for one in x)
        end = build.variable("end of ray", ())
        results = tuple(build.variable(f"ray[{k}]", ()) for k in range(_RESULTS))
        made = _computed(compiled.prepared)
        (rewritten,) = substitute((own.objective,), made)
        graph = _first_with_a_proof((rewritten, written), dict(zip(x, v, strict=True)), end)
        given = compiled.given
        taken = {one.name for one in (*x, *v, end, *results, *given)}
        roots, tables = prepared((graph.at[0].mid, *graph.numbers), taken)
        whole = {one: made for one, made in compiled.prepared.items() if one.dtype == "whole"}
        zeros = tuple(build.zeros(one.shape) for one in (*x, *v, end))
        known = Known(frozenset({*given, *tables}))
        bounds = Derivatives(roots[0], (*x, *v, end, *results), known, (*zeros, *roots[1:]))
        self._kernels = Kernels(compiled.over(bounds, {**whole, **tables}), data)
        self._own = _Own()

    def __call__(self, x: Vector, v: Vector, T: float) -> RayBounds:  # noqa: N803
        """The bounds along x + t v, both (n,), for 0 <= t <= T."""
        n = len(x)
        if self._own.point is None or self._own.out is None:
            self._own.point = np.zeros(2 * n + 1 + _RESULTS)
            self._own.out = np.empty_like(self._own.point)
        point, out = self._own.point, self._own.out
        point[:n], point[n : 2 * n], point[2 * n] = x, v, T
        self._kernels.function("value_and_gradient")(point, out)
        return RayBounds.of(T, out[-_RESULTS:].tolist())

    def source(self) -> str:
        """The source of the kernel."""
        return self._kernels.compiled.source(("value_and_gradient",))


def _computed(made: Mapping[Input, Expr]) -> dict[Expr, Expr]:
    """The graphs of prepared data, whose rounding errors count; tables of indices are exact."""
    return {one: graph for one, graph in made.items() if one.dtype != "whole"}


def _first_with_a_proof(
    objectives: Sequence[Expr], directions: Mapping[Input, Input], end: Expr
) -> RayGraph:
    """The bounds of the first of several equivalent objectives for which a proof exists."""
    for objective in objectives[:-1]:
        try:
            return ray_graph(objective, directions, end)
        except MissingRule:
            continue
    return ray_graph(objectives[-1], directions, end)


def without_proof(
    f: Callable[[Vector], tuple[float, Vector]], x: Vector, v: Vector, end: float, reason: str
) -> RayBounds:
    """The values along a ray that has no bounds, for f that gives value and gradient."""
    value, gradient = f(x)
    return RayBounds(end, value, float(gradient @ v), float("nan"), reason=reason)
