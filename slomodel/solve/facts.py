"""Structural facts about an objective, stated by the compiler or implied by its methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, TypeGuard, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from slomodel.calculus.rays.bounds import RayBounds
from slomodel.codegen.entry import EntryName
from slomodel.codegen.native.binding import CompiledFunction
from slomodel.solve.coloured_hessian import ColouredHessian
from slomodel.solve.norms import Vector

Pattern: TypeAlias = Any
"""A Boolean matrix of scipy.sparse in CSR format."""
Product = Literal["hvp", "gauss_newton"]
T = TypeVar("T")

_known: dict[tuple[type, object], bool] = {}


def conforms(one: object, protocol: Callable[..., T]) -> TypeGuard[T]:
    """Whether an object has the members of a protocol, a class that can be tested at run time.

    The answer is cached for the type, since a test takes longer than a small evaluation; a negative
    one only for objects whose attributes cannot change.
    """
    kind = type(one)
    result = _known.get((kind, protocol))
    if result is None:
        result = isinstance(one, protocol)  # type: ignore[arg-type]
        if result or not kind.__dictoffset__:
            _known[kind, protocol] = result
    return result


@runtime_checkable
class Curved(Protocol):
    """An objective with Hessian–vector products."""

    def hvp(self, x: Vector, v: Vector) -> Vector:
        """The Hessian at x times v, all (n,)."""
        ...


@dataclass(frozen=True, slots=True)
class ObjectiveFacts:
    """`curvature`: Hessian products are available; `squares`: Gauss–Newton products as well.

    `signed`: some squares are subtracted, or the signs of their weights are unknown. `degree` is an
    upper bound on the degree of a polynomial; None for anything else. `smooth`: the objective is
    known to be continuously differentiable, or nothing is known. `logarithmic`, (n,), is 1 for
    variables on a logarithmic scale, as those of open sets, and 0 for others; None without any.
    `operations` estimates those of a value and gradient; 0 if unknown.
    """

    curvature: bool = False
    squares: bool = False
    degree: int | None = None
    smooth: bool = True
    signed: bool = False
    logarithmic: Vector | None = field(default=None, compare=False)
    operations: float = field(default=0.0, compare=False)


NO_FACTS = ObjectiveFacts()


@runtime_checkable
class RayBounded(Protocol):
    """An objective that bounds itself along rays, as compiled models do, and its own errors."""

    def value_with_error(self, x: Vector, out: Vector) -> tuple[float, float]:
        """f at x with a proved bound on its rounding error; ∇f is written into `out`, both (n,)."""
        ...

    def ray_bounds(self, x: Vector, v: Vector, T: float, precise: bool = False) -> RayBounds:
        """Bounds along x + t v, both (n,), for 0 <= t <= T.

        `precise` asks for a smaller error of the slope, at many times the cost.
        """
        ...


@runtime_checkable
class SparselyCurved(Protocol):
    """An objective that may know the sparsity of its Hessian."""

    def coloured_hessian(self, most: int) -> ColouredHessian | None:
        """The pattern of its Hessian in at most `most` colours; None if it is unknown."""
        ...


@dataclass(frozen=True, slots=True)
class CompiledResiduals:
    """Residuals (m,) and their derivatives along v (n,) as a C function.

    It maps (x, v, 0, …) to 2n unused numbers, then residuals and derivatives, in arrays of
    the same `length`; both are multiplied by `root` (m,).
    """

    function: CompiledFunction
    root: Vector
    length: int


@runtime_checkable
class InC(Protocol):
    """An objective that may be compiled to functions of C."""

    def compiled(self, name: EntryName) -> CompiledFunction | None:
        """The function of an entry, of the calling thread; None if it is not for callers in C."""
        ...

    def compiled_residuals(self) -> CompiledResiduals | None:
        """Its residuals in C, for the calling thread; None if it has none, or not in C."""
        ...


@runtime_checkable
class Residual(Protocol):
    """An objective that may be a sum of squares of residuals, up to a constant."""

    def has_residuals(self) -> bool:
        """Whether there are residuals: a method, since a test of the protocol reads properties,
        and this answer needs their kernels.
        """
        ...

    def jacobian(self, x: Vector, columns: NDArray[np.intp] | None = None) -> tuple[Vector, Vector]:
        """The residuals (m,) and columns of their Jacobian (m, n) at x (n,); None for all."""
        ...

    def affine_unknowns(self) -> NDArray[np.bool_]:
        """Unknowns (n,) in which the residuals are affine, for given values of the others."""
        ...


@runtime_checkable
class DescribedObjective(Curved, Protocol):
    """An objective that describes its structure, as compiled models do."""

    @property
    def facts(self) -> ObjectiveFacts: ...

    def load(self, product: Product) -> None:
        """Prepare a product in advance, so that its first call takes no longer than the others."""
        ...

    def gauss_newton(self, x: Vector, v: Vector) -> Vector:
        """The Gauss–Newton matrix at x times v, all (n,); for sums of squares only."""
        ...


def facts_of(objective: object) -> ObjectiveFacts:
    """The facts that an objective states, or those that its methods imply."""
    if conforms(objective, DescribedObjective):
        return objective.facts
    return ObjectiveFacts(curvature=conforms(objective, Curved))


def compiled_facts(objective: object) -> ObjectiveFacts:
    """The facts of a compiled objective; NO_FACTS for any other.

    User-supplied Hessian products may be expensive: they are used only by methods that need them.
    """
    return objective.facts if conforms(objective, DescribedObjective) else NO_FACTS
