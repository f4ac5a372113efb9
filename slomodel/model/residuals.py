"""Residuals of a sum of squares and their Jacobian, by one kernel of (x, v)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from slomodel.calculus import Known, jvp
from slomodel.codegen.kernels import Compiled, Derivatives, Kernels
from slomodel.codegen.native.binding import CompiledFunction
from slomodel.ir import build
from slomodel.ir.dims import number_of_elements
from slomodel.ir.expr import Expr, Input
from slomodel.model.hessian_sparsity import affine_unknowns
from slomodel.rewrite.work import prepared
from slomodel.solve.facts import CompiledResiduals

Vector = NDArray[np.float64]


class Residuals:
    """r (m,) with f = Σ r² up to a constant, and its Jacobian (m, n), of a compiled model.

    The kernel is that of value and gradient of a function of one vector (x, v, …), with residuals,
    their derivatives along v and the weights in place of the derivatives by the rest.
    """

    def __init__(self, compiled: Compiled, data: Mapping[str, Vector], n: int) -> None:
        own = compiled.derivatives
        self._compiled, self._data, self._squares = compiled, data, own.squares
        x, squares = own.variables, own.squares
        v = tuple(build.variable(f"v[{one.name}]", one.shape) for one in x)
        residuals = [square.residual for square in squares]
        tangents = jvp(residuals, dict(zip(x, v, strict=True)))
        weights = [square.weight for square in squares]
        results = [
            _results("r", residuals),
            _results("Jv", residuals),
            _results("w", weights),
        ]
        flat = [one for group in results for one in group]
        taken = {one.name for one in (*x, *v, *flat, *compiled.given)}
        roots, tables = prepared((build.const(0.0), *residuals, *tangents, *weights), taken)
        zeros = tuple(build.zeros(one.shape) for one in (*x, *v))
        known = Known(frozenset({*compiled.given, *tables}))
        written = Derivatives(roots[0], (*x, *v, *flat), known, (*zeros, *roots[1:]))
        self._kernels = Kernels(compiled.over(written, {**compiled.prepared, **tables}), data)
        self._n = n
        sizes = compiled.numbers
        self._sizes = [sum(_size(one, sizes) for one in group) for group in results]
        self._root = self._roots_of_weights(np.zeros(n))

    @property
    def exists(self) -> bool:
        """Whether all weights are nonnegative, so that their square roots exist."""
        return bool(np.isfinite(self._root).all())

    @property
    def compiled(self) -> CompiledResiduals | None:
        """The kernel of the calling thread for callers in C; None if it is not one of C."""
        kernel = self._kernels.function("value_and_gradient")
        function: CompiledFunction | None = getattr(kernel, "compiled", None)
        if function is None:
            return None
        return CompiledResiduals(function, self._root, 2 * self._n + sum(self._sizes))

    def along(self, x: Vector, v: Vector) -> tuple[Vector, Vector]:
        """r and Jv (m,) at x for a direction v, both (n,)."""
        r, product, _ = self._numbers(x, v)
        return self._root * r, self._root * product

    def residuals(self, x: Vector) -> Vector:
        """r (m,) at x (n,)."""
        return self.along(x, np.zeros(self._n))[0]

    def jacobian(self, x: Vector, columns: NDArray[np.intp] | None = None) -> tuple[Vector, Vector]:
        """r (m,) and J (m, n) at x (n,), from n products with unit vectors.

        `columns` (k,) are the positions of the columns that J has; None stands for all.
        """
        chosen = range(self._n) if columns is None else columns.tolist()
        n, m = self._n, len(self._root)
        if not chosen:
            return np.empty(m), np.empty((m, 0))
        kernel = self._kernels.function("value_and_gradient")
        point, out = self._arrays(x)
        rows = np.empty((len(chosen), m))
        product = out[2 * n + m : 2 * n + 2 * m]
        for k, position in enumerate(chosen):
            point[n + position] = 1.0
            kernel(point, out)
            point[n + position] = 0.0
            rows[k] = product
        rows *= self._root
        # Stored as (m, n), in which order products with J sum its rows.
        return self._root * out[2 * n : 2 * n + m], np.ascontiguousarray(rows.T)

    @cached_property
    def affine(self) -> NDArray[np.bool_]:
        """Unknowns (n,) in which the residuals are affine, for given values of the others."""
        return affine_unknowns(self._squares, self._compiled, self._data)

    def _numbers(self, x: Vector, v: Vector) -> tuple[Vector, Vector, Vector]:
        n, (m, _, _) = self._n, self._sizes
        point, out = self._arrays(x)
        point[n : 2 * n] = v
        self._kernels.function("value_and_gradient")(point, out)
        return out[2 * n : 2 * n + m], out[2 * n + m : 2 * n + 2 * m], out[2 * n + 2 * m :]

    def _arrays(self, x: Vector) -> tuple[Vector, Vector]:
        """The argument of the kernel at x (n,), with v = 0, and an array for its results."""
        point = np.zeros(2 * self._n + sum(self._sizes))
        point[: self._n] = x
        return point, np.empty(len(point))

    def _roots_of_weights(self, x: Vector) -> Vector:
        weights = self._numbers(x, np.zeros(self._n))[2]
        with np.errstate(invalid="ignore"):
            return np.sqrt(weights)


def _results(name: str, values: Sequence[Expr]) -> list[Input]:
    return [build.variable(f"{name}[{k}]", one.shape) for k, one in enumerate(values)]


def _size(node: Expr, sizes: Mapping[str, int]) -> int:
    return number_of_elements(node.shape, sizes)
