"""A model as the solvers see it: kernels without argument checks, and facts from the compiler."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slomodel.calculus.rays.bounds import RayBounds
from slomodel.codegen.entry import EntryName
from slomodel.codegen.kernels import Derivatives, Evaluate
from slomodel.codegen.layout import Precision
from slomodel.codegen.native.binding import CompiledFunction
from slomodel.errors import Diagnostic, DomainError
from slomodel.front.data.points import Point, Vector, VectorLayout
from slomodel.ir.expr import Const
from slomodel.model.residuals import Residuals
from slomodel.solve import Solution
from slomodel.solve.coloured_hessian import ColouredHessian
from slomodel.solve.facts import CompiledResiduals, ObjectiveFacts, Product


class CompiledObjective:
    """A compiled objective over points (n,) that have already been checked.

    The kernels for value and gradient are planned and loaded on construction, before the clock of a
    run starts; Hessian products are loaded when first requested, while the clock is stopped. With
    `begin`, which starts to compile a kernel, these and the `products` are compiled at a time.
    """

    def __init__(
        self,
        n: int,
        function: Callable[[EntryName], Evaluate],
        derivatives: Derivatives,
        smooth: bool,
        precision: Precision = "float64",
        logarithmic: Vector | None = None,
        along_rays: Callable[[Vector, Vector, float, bool], RayBounds] | None = None,
        with_error: Callable[[Vector, Vector], tuple[float, float]] | None = None,
        squares: Callable[[], Residuals | None] | None = None,
        coloured: Callable[[int], ColouredHessian | None] | None = None,
        operations: float = 0.0,
        begin: Callable[[EntryName], None] = lambda name: None,
        products: Sequence[Product] = (),
    ) -> None:
        self.n = n
        self._eps = float(np.finfo(precision).eps)
        self._smooth = smooth
        self._logarithmic = logarithmic
        self._along_rays = along_rays
        self._with_error = with_error
        self._squares = squares
        self._coloured = coloured
        self._operations = operations
        self._function = function
        self._derivatives = derivatives
        self._own = _OfThread()
        names: tuple[EntryName, ...] = ("value", "value_and_gradient", *products)
        for name in names[:2]:
            # Once one kernel is compiled it is known that the others will be.
            for one in names:
                begin(one)
            function(name)

    @property
    def eps(self) -> float:
        """Machine epsilon of the precision of the kernels."""
        return self._eps

    @cached_property
    def facts(self) -> ObjectiveFacts:
        known = self._derivatives
        weights = [square.weight for square in known.squares]
        signed = not all(isinstance(w, Const) and w.value >= 0.0 for w in weights)
        return ObjectiveFacts(
            *(True, bool(known.squares), known.degree, self._smooth, signed, self._logarithmic),
            self._operations,
        )

    def load(self, product: Product) -> None:
        self._function(product)

    def value(self, x: Vector) -> float:
        return self._kernel("value")(x)

    def value_and_gradient(self, x: Vector, out: Vector | None = None) -> tuple[float, Vector]:
        gradient = np.empty(self.n) if out is None else out
        return self._kernel("value_and_gradient")(x, gradient), gradient

    def compiled(self, name: EntryName) -> CompiledFunction | None:
        """The function of an entry as C calls it; None if it is not compiled for that."""
        result: CompiledFunction | None = getattr(self._kernel(name), "compiled", None)
        return result

    def compiled_residuals(self) -> CompiledResiduals | None:
        """The residuals as C calls them; None if there are none, or not compiled for that."""
        result = self._squares and self._squares()
        return result.compiled if result else None

    def hvp(self, x: Vector, v: Vector) -> Vector:
        return self._product("hvp", x, v)

    def gauss_newton(self, x: Vector, v: Vector) -> Vector:
        return self._product("gauss_newton", x, v)

    def has_residuals(self) -> bool:
        """Whether the objective is a sum of squares of residuals, up to a constant."""
        return self._squares is not None and self._squares() is not None

    def residuals(self, x: Vector) -> Vector:
        result = self._squares and self._squares()
        assert result is not None
        return result.residuals(x)

    def jacobian(self, x: Vector, columns: NDArray[np.intp] | None = None) -> tuple[Vector, Vector]:
        result = self._squares and self._squares()
        assert result is not None
        return result.jacobian(x, columns)

    def affine_unknowns(self) -> NDArray[np.bool_]:
        """Unknowns (n,) in which the residuals are affine, for given values of the others."""
        result = self._squares and self._squares()
        assert result is not None
        return result.affine

    def coloured_hessian(self, most: int) -> ColouredHessian | None:
        """The pattern of the Hessian in at most `most` colours; None if it is unknown."""
        return None if self._coloured is None else self._coloured(most)

    def ray_bounds(self, x: Vector, v: Vector, T: float, precise: bool = False) -> RayBounds:  # noqa: N803
        if self._along_rays is None:
            return RayBounds(
                T, *(math.nan,) * 3, reason="the objective was compiled without bounds along rays"
            )
        return self._along_rays(x, v, T, precise)

    def value_with_error(self, x: Vector, out: Vector) -> tuple[float, float]:
        if self._with_error is None:
            return self.value_and_gradient(x, out)[0], math.inf
        return self._with_error(x, out)

    def _product(self, name: EntryName, x: Vector, v: Vector) -> Vector:
        product = np.empty(self.n)
        self._kernel(name)(x, v, product)
        return product

    def _kernel(self, name: EntryName) -> Evaluate:
        """The kernel of this name of the calling thread, at a fraction of the time of a look-up."""
        used = self._own.kernels
        result = used.get(name)
        if result is None:
            result = used[name] = self._function(name)
        return result


class _OfThread(threading.local):
    """The kernels that a thread has used: each has its own."""

    def __init__(self) -> None:
        self.kernels: dict[EntryName, Evaluate] = {}


def start_point(
    x0: Point | Solution, vectors: VectorLayout, own: Callable[[], Vector], related: bool
) -> Vector:
    """The start (n,) given as a vector, as named arrays or as the point of a Solution.

    Variables that named arrays leave out start as in `own()`, the model's start (n,). `related`
    tells that a Solution is of this model, perhaps with others of its variables fixed.
    Raises DomainError or ShapeError, which suggest the call that was probably intended.
    """
    if isinstance(x0, Solution) and related and x0.x.shape != vectors.shape:
        x0 = _by_name(x0, vectors) or x0
    if isinstance(x0, Solution):
        return vectors.vector(x0.x, "x0")
    if isinstance(x0, str | os.PathLike):
        remedy = f"read it first: x0=slomodel.load_solution({os.fspath(x0)!r})"
        raise _no_start("a text", remedy)
    if callable(x0):
        name = getattr(x0, "__name__", "it")
        raise _no_start("a function", f"call it, as in x0=model.{name}()")
    if isinstance(x0, Mapping) and 0 < len(x0) < len(vectors.shapes):
        return vectors.pack({**vectors.unpack(own()), **x0})
    return vectors.vector(x0, "x0")


def _by_name(x0: Solution, vectors: VectorLayout) -> dict[str, Any]:
    """The values of variables in a solution of the model with others of them fixed or free."""
    result: dict[str, Any] = {}
    for name in vectors.shapes:
        if name in x0.variables:
            result[name] = x0.variables[name]
        elif x0.model is not None:
            with suppress(DomainError):
                result[name] = x0.model.evaluate(name, x0)
    return result


def _no_start(found: str, remedy: str) -> DomainError:
    message = f"x0: expected real numbers, named arrays or a Solution, found {found}"
    return DomainError(Diagnostic("E602", message, help=remedy))
