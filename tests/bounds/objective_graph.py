"""An objective graph as functions of a flat vector, in doubles and in 60 digits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property

import mpmath
import numpy as np
import sympy as sp
from numpy.typing import NDArray

from slomodel import functions as fn
from slomodel.bounds import ObjectivePart
from slomodel.calculus import jvp
from slomodel.codegen.entry import Entry
from slomodel.codegen.kernels import TARGETS
from slomodel.codegen.layout import Layout, Sizes
from slomodel.ir import build
from slomodel.ir.expr import Const, Expr, Input, Map
from slomodel.ir.function import ScalarFunction
from slomodel.ir.walk import postorder
from slomodel.reference import evaluate, meaning

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

    setting: ObjectivePart

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

    @cached_property
    def switches(self) -> tuple[Expr, ...]:
        """What changes sign where a branch, a kink or a jump begins; one number an element."""
        moving: set[Expr] = set(self.setting.variables)
        found: dict[Expr, None] = {}
        for node in postorder(self.setting.objective):
            if moving.isdisjoint(node.operands):
                continue
            moving.add(node)
            if isinstance(node, Map):
                found.update(dict.fromkeys(_sides(node)))
        return tuple(found)

    def signs(self, x: Vector) -> NDArray[np.bool_]:
        """Which of the switches are positive at x."""
        with np.errstate(all="ignore"):
            found = evaluate(self.switches, self._values(x, x), self.setting.sizes)
        return np.concatenate([np.ravel(np.asarray(one) > 0.0) for one in found])

    def exact_switch(self, x: Exact, k: int, written: bool = False) -> mpmath.mpf:
        """The k-th number whose sign `signs` tells."""
        return self._exactly(self.switches, x, x, written)[k]

    def exact_value(self, x: Exact, written: bool = False) -> mpmath.mpf:
        return self._exactly((self.setting.objective,), x, x, written)[0]

    def exact_gradient(self, x: Exact, written: bool = False) -> Exact:
        """`written`: with the numbers of the model as they were written, not as doubles."""
        return self._exactly(self.setting.gradient, x, x, written)

    def exact_hvp(self, x: Exact, v: Exact, written: bool = False) -> Exact:
        return self._exactly(self.hessian, x, v, written)

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

    def _exactly(self, roots: Sequence[Expr], x: Exact, v: Exact, written: bool = False) -> Exact:
        found = evaluate_exactly(roots, self._values(x, v), self.setting.sizes, written)
        return np.concatenate([np.ravel(one) for one in found])


def exact(x: Vector) -> Exact:
    """The same numbers for mpmath."""
    numbers = (one if isinstance(one, mpmath.mpf) else float(one) for one in np.ravel(x))
    return np.array([mpmath.mpf(one) for one in numbers], dtype=object)


def exact_norm(x: Exact) -> mpmath.mpf:
    return mpmath.sqrt(sum((one * one for one in x), mpmath.mpf(0)))


_COMPARISONS = (fn.lt, fn.le, fn.gt, fn.ge)


def _sides(node: Map) -> list[Expr]:
    """What changes sign where the function of a node has a kink or its truth value changes."""

    def less(j: int, k: int) -> Expr:
        operands = [node.operands[j], node.operands[k]]
        return build.apply_along(fn.sub, operands, [node.axes[j], node.axes[k]], node.shape)

    if node.function in (fn.abs, fn.sign, fn.relu):
        return [node.operands[0]]
    if node.function in (fn.maximum, fn.minimum, *_COMPARISONS):
        return [less(0, 1)]
    if node.function is fn.clip:
        return [less(0, 1), less(0, 2)]
    if node.function is fn.huber:
        size = fn.abs(node.operands[0])
        axes = [node.axes[0], node.axes[1]]
        return [build.apply_along(fn.sub, [size, node.operands[1]], axes, node.shape)]
    return []


def evaluate_exactly(
    roots: Sequence[Expr],
    values: Mapping[Input, NDArray],
    sizes: Mapping[str, int],
    written: bool = False,
) -> list[NDArray]:
    """As `evaluate`, in mpmath's precision; scalar functions by their SymPy definitions.

    `written`: a constant is the number that it was written as, not its double.
    """
    results: dict[Expr, NDArray] = {}
    for node in postorder(*roots):
        if isinstance(node, Const) and node.dtype == "real" and np.isfinite(node.value):
            number = _number(node) if written else mpmath.mpf(node.value)
            results[node] = np.asarray(number, dtype=object)
            continue
        if isinstance(node, Input):
            array = np.asarray(values[node])
            results[node] = exact(array).reshape(array.shape) if array.dtype != object else array
            continue
        operands = [results[operand] for operand in node.operands]
        results[node] = (
            _map(node, operands) if isinstance(node, Map) else _linear(node, operands, sizes)
        )
    return [results[root] for root in roots]


def _number(node: Const) -> mpmath.mpf:
    exactly = node.exact
    if isinstance(exactly, Fraction):
        return mpmath.mpf(exactly.numerator) / exactly.denominator
    return mpmath.mpf(str(sp.N(exactly, DIGITS)))


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

    def at(*numbers: object) -> object:
        try:
            number = made(*numbers)
        except (ZeroDivisionError, ValueError, OverflowError):
            return mpmath.nan
        return mpmath.nan if isinstance(number, mpmath.mpc) else number

    def value(*numbers: object) -> object:
        number = at(*numbers)
        return _limit(at, numbers) if mpmath.isnan(number) else number

    return value


_NEAR = 30
"""Digits of the distance from a point without a value within which its limit is sought."""


def _limit(at: Callable[..., object], numbers: Sequence[object]) -> object:
    """What both sides of a hole, as of (x^p - 1)/p at p = 0, tend to; NaN if they differ."""
    with mpmath.workdps(4 * mpmath.mp.dps):
        sides = []
        for size in (1, -1, mpmath.mpf(1) / 1000):
            step = size * mpmath.mpf(10) ** -_NEAR
            sides.append(at(*(one + (k + 1) * step for k, one in enumerate(numbers))))
        plus, minus, nearer = sides
        if any(mpmath.isnan(one) for one in sides):
            return mpmath.nan
        near = mpmath.mpf(10) ** (5 - _NEAR) * (1 + abs(nearer))
        agree = abs(plus - minus) < near and abs(plus - nearer) < near
        return (plus + minus) / 2 if agree else mpmath.nan
