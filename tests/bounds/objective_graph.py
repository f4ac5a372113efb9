"""An objective graph as functions of a flat vector, in doubles and in 60 digits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import mpmath
import numpy as np
import sympy as sp
from numpy.typing import NDArray

from slomodel.bounds import Setting
from slomodel.calculus import jvp
from slomodel.codegen.entry import Entry
from slomodel.codegen.kernels import TARGETS
from slomodel.codegen.layout import Layout
from slomodel.codegen.sizes import Sizes
from slomodel.ir import build
from slomodel.ir.expr import Expr, Input, Map
from slomodel.ir.function import ScalarFunction
from slomodel.ir.walk import postorder
from slomodel.reference import meaning

Vector = NDArray[np.float64]
Exact = NDArray[np.object_]
Product = Callable[[Vector, Vector], Vector]

DIGITS = 60


@dataclass(frozen=True)
class ObjectiveGraph:
    """Gradient (n,), Hessian times v (n,) and D³f[v, v] (n,) at x (n,), from the graphs alone.

    The `exact_` forms take and give vectors of mpmath numbers; they do without the kernels that
    the others are compiled to.
    """

    setting: Setting

    @property
    def n(self) -> int:
        return self.setting.n

    @property
    def centre(self) -> Vector:
        return np.concatenate([np.ravel(self.setting.values[v]) for v in self.setting.variables])

    @cached_property
    def directions(self) -> tuple[Input, ...]:
        return tuple(build.direction(v.name, v.shape) for v in self.setting.variables)

    @cached_property
    def hessian(self) -> tuple[Expr, ...]:
        along: dict[Expr, Expr] = dict(zip(self.setting.variables, self.directions, strict=True))
        return jvp(self.setting.gradient, along)

    @cached_property
    def third_derivative(self) -> tuple[Expr, ...]:
        along: dict[Expr, Expr] = dict(zip(self.setting.variables, self.directions, strict=True))
        return jvp(self.hessian, along)

    @cached_property
    def gradient(self) -> Callable[[Vector], Vector]:
        kernel = self._compiled(self.setting.gradient)
        return lambda x: kernel(x, x)

    @cached_property
    def hvp(self) -> Product:
        return self._compiled(self.hessian)

    @cached_property
    def third(self) -> Product:
        return self._compiled(self.third_derivative)

    def exact_gradient(self, x: Exact) -> Exact:
        return self._exactly(self.setting.gradient, x, x)

    def exact_hvp(self, x: Exact, v: Exact) -> Exact:
        return self._exactly(self.hessian, x, v)

    def exact_third(self, x: Exact, v: Exact) -> Exact:
        return self._exactly(self.third_derivative, x, v)

    def _values(self, x: NDArray, v: NDArray) -> dict[Input, NDArray]:
        values: dict[Input, NDArray] = dict(self.setting.values)
        at = 0
        for variable, direction in zip(self.setting.variables, self.directions, strict=True):
            shape = np.shape(self.setting.values[variable])
            end = at + int(np.prod(shape, dtype=int))
            values[variable], values[direction] = x[at:end].reshape(shape), v[at:end].reshape(shape)
            at = end
        return values

    def _compiled(self, roots: tuple[Expr, ...]) -> Product:
        setting = self.setting
        data = tuple(node for node in setting.values if node not in setting.variables)
        layout = Layout(setting.variables, data, Sizes(tuple(setting.sizes)))
        entry = Entry("hvp", None, roots, self.directions)
        make = TARGETS["numpy"].maker("searched", entry, layout, setting.sizes)
        kernel = make({node.name: np.asarray(setting.values[node]) for node in data})

        def product(x: Vector, v: Vector) -> Vector:
            out = np.empty(self.n)
            kernel(x, v, out)
            return out

        return product

    def _exactly(self, roots: Sequence[Expr], x: Exact, v: Exact) -> Exact:
        found = evaluate_exactly(roots, self._values(x, v), self.setting.sizes)
        return np.concatenate([np.ravel(one) for one in found])


def exact(x: Vector) -> Exact:
    """The same numbers for mpmath."""
    return np.array([mpmath.mpf(float(one)) for one in np.ravel(x)], dtype=object)


def exact_norm(x: Exact) -> mpmath.mpf:
    return mpmath.sqrt(sum((one * one for one in x), mpmath.mpf(0)))


def evaluate_exactly(
    roots: Sequence[Expr], values: Mapping[Input, NDArray], sizes: Mapping[str, int]
) -> list[NDArray]:
    """As `evaluate`, in mpmath's precision; scalar functions by their SymPy definitions."""
    results: dict[Expr, NDArray] = {}
    for node in postorder(*roots):
        if isinstance(node, Input):
            array = np.asarray(values[node])
            results[node] = exact(array).reshape(array.shape) if array.dtype != object else array
            continue
        operands = [results[operand] for operand in node.operands]
        results[node] = (
            _map(node, operands) if isinstance(node, Map) else _linear(node, operands, sizes)
        )
    return [results[root] for root in roots]


def _linear(node: Expr, operands: list[NDArray], sizes: Mapping[str, int]) -> NDArray:
    found = meaning(node, operands, sizes)
    return np.asarray(found if found.dtype == bool else np.asarray(found, dtype=object))


def _map(node: Map, operands: list[NDArray]) -> NDArray:
    aligned = [
        np.expand_dims(array, [axis for axis in range(node.rank) if axis not in axes])
        for array, axes in zip(operands, node.axes, strict=True)
    ]
    if node.function.name == "where":
        return np.where(aligned[0].astype(bool), aligned[1], aligned[2])
    found = np.frompyfunc(_scalar(node.function), node.function.arity, 1)(*aligned)
    return np.asarray(found, dtype=bool if node.dtype == "bool" else object)


@cache
def _scalar(function: ScalarFunction) -> Callable[..., object]:
    """One number by the definition; NaN outside the domain."""
    symbols = sp.symbols(f"x:{function.arity}", real=True)
    made = sp.lambdify(symbols, function.definition(*symbols), "mpmath")

    def value(*numbers: object) -> object:
        try:
            found = made(*numbers)
        except (ZeroDivisionError, ValueError, OverflowError):
            return mpmath.nan
        return mpmath.nan if isinstance(found, mpmath.mpc) else found

    return value
