"""A model as the solvers see it: kernels without checks, and what the compiler knows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from slomodel.codegen.entry import EntryName
from slomodel.codegen.kernels import Derivatives, Evaluate
from slomodel.codegen.layout import Precision
from slomodel.front.data.vectors import Vector
from slomodel.ir.expr import Const
from slomodel.solve.facts import Facts, Product


class CompiledObjective:
    """An objective over points (n,) of which nothing has to be checked any more.

    Value and gradient are planned and loaded when this is made, before the clock of a run starts;
    products with the Hessian when they are asked for first, while it stands.
    """

    def __init__(
        self,
        n: int,
        function: Callable[[EntryName], Evaluate],
        derivatives: Derivatives,
        smooth: bool,
        precision: Precision = "float64",
    ) -> None:
        self.n = n
        self._eps = float(np.finfo(precision).eps)
        self._smooth = smooth
        self._function = function
        self._derivatives = derivatives
        function("value")
        function("value_and_gradient")

    @property
    def eps(self) -> float:
        """The rounding unit of the precision of the kernels."""
        return self._eps

    @property
    def facts(self) -> Facts:
        known = self._derivatives
        weights = [square.weight for square in known.squares]
        signed = not all(isinstance(w, Const) and w.value >= 0.0 for w in weights)
        return Facts(True, bool(known.squares), known.degree, self._smooth, signed)

    def load(self, product: Product) -> None:
        self._function(product)

    def value(self, x: Vector) -> float:
        return self._function("value")(x)

    def value_and_gradient(self, x: Vector, out: Vector | None = None) -> tuple[float, Vector]:
        gradient = np.empty(self.n) if out is None else out
        return self._function("value_and_gradient")(x, gradient), gradient

    def hvp(self, x: Vector, v: Vector) -> Vector:
        return self._product("hvp", x, v)

    def gauss_newton(self, x: Vector, v: Vector) -> Vector:
        return self._product("gauss_newton", x, v)

    def _product(self, name: EntryName, x: Vector, v: Vector) -> Vector:
        product = np.empty(self.n)
        self._function(name)(x, v, product)
        return product
