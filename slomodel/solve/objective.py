"""The interface of objectives to the solvers, and the counted access to them."""

from __future__ import annotations

import math
from collections.abc import Callable
from time import perf_counter
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from slomodel.calculus.rays.bounds import RayBounds
from slomodel.codegen.native.binding import CompiledFunction
from slomodel.errors import SlomodelError
from slomodel.solve.coloured_hessian import ColouredHessian
from slomodel.solve.compiled.loop import LoopState
from slomodel.solve.facts import (
    CompiledResiduals,
    Curved,
    DescribedObjective,
    InC,
    Product,
    RayBounded,
    Residual,
    SparselyCurved,
    conforms,
)
from slomodel.solve.norms import EPS, Vector, norm, ratio
from slomodel.solve.run_options import RunOptions
from slomodel.solve.sets.convex_set import Set
from slomodel.solve.status import Status

# A central difference with h = eps^DIFFERENCE_POWER balances rounding, eps/h, and truncation, h².
DIFFERENCE_POWER = 1.0 / 3.0
Positions = NDArray[np.intp]
# The measure that the tolerance applies to, in messages.
GRADIENT, PROJECTED_GRADIENT = "gradient norm", "norm of the projected gradient"


class Objective(Protocol):
    """A function of x (n,) with its gradient, as written: never negated for a maximum."""

    @property
    def n(self) -> int: ...

    def value(self, x: Vector) -> float: ...

    def value_and_gradient(self, x: Vector, out: Vector | None = None) -> tuple[float, Vector]:
        """f and ∇f (n,). The gradient is written into `out` if that is given."""
        ...


@runtime_checkable
class Precise(Protocol):
    """An objective that states the rounding unit of its precision."""

    @property
    def eps(self) -> float: ...


def functions_in_c(objective: Objective) -> tuple[CompiledFunction, CompiledFunction] | None:
    """Value, and value with gradient, as functions of C; None for an objective without them."""
    if not conforms(objective, InC):
        return None
    value, gradient = objective.compiled("value"), objective.compiled("value_and_gradient")
    return None if value is None or gradient is None else (value, gradient)


def projected_norm(within: Set, x: Vector, g: Vector) -> float:
    """The norm of the projected gradient at x (n,), a point of the set, for a gradient g (n,)."""
    step = np.empty_like(x)
    within.projected_gradient(x, g, step)
    return norm(step)


class BudgetSpent(Exception):
    """Raised in the middle of a step when a budget is exhausted; never leaves `solve`."""

    def __init__(self, status: Status) -> None:
        Exception.__init__(self, status)
        self.status = status


class EvaluationLost(SlomodelError, RuntimeError):
    """Raised by an objective that cannot be evaluated any more; a run ends at its best point."""


class Evaluator:
    """The objective in the solver's sense (always minimised), with counts and budgets.

    `nfev` counts the points at which a value was needed, `njev` those at which a gradient was, and
    `nhev` the Hessian products. Where both a value and a gradient are needed the value is computed
    first, so that it counts once. `nonfinite` counts the points at which either was not finite;
    `last_nonfinite` is the last of these. The solvers evaluate at points of `within` only; None
    stands for the whole space. `own_gradient`, if set, may compute gradients in place of the
    objective's: (x, out), both (n,), returns whether it has written one; `has_own_gradients` is
    True once it has.
    """

    __slots__ = (
        *("_coloured", "_curved", "_in_c", "_described", "_operations", "_precise", "_residual"),
        "_first_jacobian",
        *("_errors_loaded", "_loaded", "_max_nfev", "_max_time", "_objective", "_ray_loaded"),
        "columns_in_c",
        *("deadline", "has_own_gradients", "last_nonfinite", "own_gradient"),
        *("nfev", "nhev", "njev", "nonfinite", "sign", "started", "within"),
    )

    def __init__(
        self, objective: Objective, options: RunOptions, within: Set | None = None
    ) -> None:
        max_nfev, max_time = options.max_nfev, options.max_time
        self._objective = objective
        self._precise = objective if conforms(objective, Precise) else None
        self._curved = objective if conforms(objective, Curved) else None
        self._described = objective if conforms(objective, DescribedObjective) else None
        self._residual = objective if conforms(objective, Residual) else None
        self._in_c = functions_in_c(objective)
        self._operations = 0.0 if self._described is None else self._described.facts.operations
        self.within = within
        self._loaded: set[Product] = set()
        self._ray_loaded = self._errors_loaded = False
        self._max_nfev = math.inf if max_nfev is None else max_nfev
        self.sign = -1.0 if options.sense == "maximize" else 1.0
        self.started = perf_counter()
        self._max_time = math.inf if max_time is None else max_time
        self.deadline = self.started + self._max_time
        self.nfev = 0
        self.njev = 0
        self.nhev = 0
        self.nonfinite = 0
        self.last_nonfinite: Vector | None = None
        self._coloured: ColouredHessian | Literal[False] | None = False
        self._first_jacobian: tuple[Vector, Vector, Vector] | None = None
        self.has_own_gradients = False
        self.own_gradient: Callable[[Vector, Vector], bool] | None = None
        # The products with unit vectors (n, n) by compiled code, counted; None where it has none.
        self.columns_in_c: Callable[[Vector], Vector | None] | None = None

    @property
    def eps(self) -> float:
        """The rounding unit of values, gradients and products; the solver computes with EPS."""
        return EPS if self._precise is None else self._precise.eps

    @property
    def has_residuals(self) -> bool:
        """Whether f is a sum of squares, up to a constant, whose residuals are available."""
        return self.sign > 0.0 and self._residual is not None and self._residual.has_residuals()

    def load_residuals(self) -> None:
        """Prepare the residuals, if f has any; the time this takes is not charged to the run."""
        began = perf_counter()
        if self.has_residuals:
            self.affine_unknowns()
        self._stop_clock(perf_counter() - began)

    def jacobian(self, x: Vector, columns: Positions | None = None) -> tuple[Vector, Vector]:
        """r (m,) with f = Σ r² up to a constant, and its Jacobian (m, n), at x (n,).

        `columns` (k,) are the positions of those that are computed; None stands for all. Two
        columns count as one Hessian product, of which each is about half the work.
        """
        known, self._first_jacobian = self._first_jacobian, None
        if columns is None and known is not None and np.array_equal(x, known[0]):
            return known[1:]
        self.check_time()
        assert self._residual is not None
        self.nhev += ((len(x) if columns is None else len(columns)) + 1) // 2
        return self._residual.jacobian(x, columns)

    def gradient_of_residuals(self, x: Vector, out: Vector) -> bool:
        """Write 2 Jᵀr at x into `out`, both (n,); False if that is not possible.

        The next `jacobian`, if it is at x, costs nothing more.
        """
        if not self.has_residuals:
            return False
        r, J = self.jacobian(x)
        np.matmul(r, J, out=out)
        out *= 2.0
        self._first_jacobian = (x.copy(), r, J)
        return bool(np.isfinite(out).all())

    def compiled_residuals(self) -> CompiledResiduals | None:
        """The residuals as a function of C; None if they are not."""
        if not (self.has_residuals and conforms(self._objective, InC)):
            return None
        return self._objective.compiled_residuals()

    def affine_unknowns(self) -> NDArray[np.bool_]:
        """Unknowns (n,) in which the residuals are affine, for given values of the others."""
        assert self._residual is not None
        return self._residual.affine_unknowns()

    @property
    def is_smooth(self) -> bool:
        """Whether the objective is not known to have kinks."""
        return self._described is None or self._described.facts.smooth

    @property
    def is_bounded_below(self) -> bool:
        """Whether f is known to be bounded below, as a sum of squares is."""
        if self._described is None or self.sign < 0.0:
            return False
        facts = self._described.facts
        return facts.squares and not facts.signed

    @property
    def operations(self) -> float:
        """An estimate of the operations of a value and gradient; 0 if unknown."""
        return self._operations

    @property
    def measure(self) -> str:
        """The quantity that the tolerance of a run applies to, in words."""
        return GRADIENT if self.within is None else PROJECTED_GRADIENT

    @property
    def has_products(self) -> bool:
        """Whether Hessian products are more than differences of gradients."""
        return self._curved is not None

    @property
    def has_ray_bounds(self) -> bool:
        """Whether the objective bounds itself along rays."""
        return conforms(self._objective, RayBounded)

    def ray_bounds(self, x: Vector, v: Vector, T: float, precise: bool = False) -> RayBounds:
        """Bounds along x + t v, both (n,), for 0 <= t <= T, after checking the time.

        The time of the first one, for which a kernel is compiled, is not charged to the run.
        """
        self.check_time()
        assert conforms(self._objective, RayBounded)
        began = perf_counter()
        result = self._objective.ray_bounds(x, v, T, precise)
        if not self._ray_loaded:
            self._ray_loaded = True
            self._stop_clock(perf_counter() - began)
        return result if self.sign > 0.0 else result.negated

    def value_with_error(
        self, x: Vector, out: Vector, again: bool = False
    ) -> tuple[float, float, float]:
        """f at x (n,), a proved bound on its error and the norm of ∇f, written into `out` (n,).

        `again`: the value at x has been counted. As for `ray_bounds`, the time of the first one is
        not charged to the run.
        """
        assert conforms(self._objective, RayBounded)
        if not again:
            self._count_value()
        self.njev += 1
        began = 0.0 if self._errors_loaded else perf_counter()
        value, error = self._objective.value_with_error(x, out)
        if not self._errors_loaded:
            self._errors_loaded = True
            self._stop_clock(perf_counter() - began)
        if not math.isfinite(value):
            return self._watched(value, x), math.inf, math.nan
        if self.sign < 0.0:
            np.negative(out, out=out)
        size = norm(out)
        return self.sign * value, error, size if size < math.inf else self._watched(size, x)

    @property
    def work(self) -> int:
        """Evaluations of every kind so far."""
        return self.nfev + self.njev + self.nhev

    @property
    def weighted_work(self) -> int:
        """Values and gradients so far, and Hessian products, each of which costs about two."""
        return self.nfev + self.njev + 2 * self.nhev

    def value(self, x: Vector) -> float:
        """f at x (n,); raises BudgetSpent before a limit would be exceeded.

        The first value is always computed, so that a run has a point to return.
        """
        self._count_value()
        f = float(self._objective.value(x))
        return self.sign * (f if -math.inf < f < math.inf else self._watched(f, x))

    def _count_value(self) -> None:
        if self.nfev:
            if self.nfev >= self._max_nfev:
                raise BudgetSpent(Status.max_nfev)
            if perf_counter() > self.deadline:
                raise BudgetSpent(Status.max_time)
        self.nfev += 1

    @property
    def computes_both(self) -> bool:
        """Whether a value and gradient by one evaluation cost less than by two."""
        return self._described is not None and self.own_gradient is None

    def value_and_gradient(self, x: Vector, out: Vector) -> tuple[float, float]:
        """f at x (n,) and the norm of ∇f, which is written into `out` (n,), by one evaluation.

        The counts are those of `value` and `gradient`. The norm is NaN if f is not finite.
        """
        if self.own_gradient is not None:
            return self.value(x), self.gradient(x, out)
        self._count_value()
        self.njev += 1
        f, g = self._objective.value_and_gradient(x, out)
        f *= self.sign
        if not math.isfinite(f):
            return self._watched(f, x), math.nan
        if g is not out:
            np.copyto(out, g)
        if self.sign < 0.0:
            np.negative(out, out=out)
        size = norm(out) if self.within is None else self._measured(x, out)
        return f, size if size < math.inf else self._watched(size, x)

    def _measured(self, x: Vector, g: Vector) -> float:
        """The norm of the gradient g (n,) at x (n,), of the projected one in a set."""
        size = norm(g)
        if self.within is not None and math.isfinite(size):
            return projected_norm(self.within, x, g)
        return size

    def _watched(self, number: float, x: Vector) -> float:
        """Return a number computed at x (n,), after recording x if the number is not finite."""
        if not math.isfinite(number):
            self.nonfinite += 1
            self.last_nonfinite = x.copy()
        return number

    def go_on(self, seconds: float, nfev: int, njev: int, nhev: int) -> None:
        """Continue the counts and the clock of an interrupted run."""
        self.started = perf_counter() - seconds
        self.deadline = self.started + self._max_time
        self.nfev, self.njev, self.nhev = nfev, njev, nhev

    @property
    def is_compiled(self) -> bool:
        """Whether value and gradient are functions of C, so that `store` may be called."""
        return self._in_c is not None

    def store(self, loop: LoopState) -> None:
        """Write functions, counts and limits into the state of a compiled loop."""
        assert self._in_c is not None
        value, gradient = self._in_c
        loop.value, loop.value_table = value.address, value.table
        loop.gradient, loop.gradient_table = gradient.address, gradient.table
        loop.sign, loop.computes_both = self.sign, self.computes_both
        loop.nfev, loop.njev, loop.nhev = self.nfev, self.njev, self.nhev
        loop.max_nfev = int(min(self._max_nfev, 2**62))

    def store_product(self, loop: LoopState) -> bool:
        """Write the Hessian product into the state of a compiled loop; False if it is not in C."""
        self.check_time()
        if not conforms(self._objective, InC):
            return False
        self._load("hvp")
        product = self._objective.compiled("hvp")
        if product is None:
            return False
        loop.product, loop.product_table, loop.sign = product.address, product.table, self.sign
        return True

    def load(self, loop: LoopState) -> None:
        """Read the counts after steps of a compiled loop."""
        self.nfev, self.njev, self.nhev = loop.nfev, loop.njev, loop.nhev

    def check_time(self) -> None:
        """Raise BudgetSpent past the time limit."""
        if perf_counter() > self.deadline:
            raise BudgetSpent(Status.max_time)

    def gradient(self, x: Vector, out: Vector) -> float:
        """Write ∇f at x into `out`, both (n,); return its norm.

        In a set X it is the norm ‖x − P(x − ∇f)‖ of the projected gradient, P the projection on X.
        """
        if self.own_gradient is not None and self.own_gradient(x, out):
            self.has_own_gradients = True
        else:
            self.njev += 1
            _, g = self._objective.value_and_gradient(x, out)
            if g is not out:
                np.copyto(out, g)
            if self.sign < 0.0:
                np.negative(out, out=out)
        size = norm(out) if self.within is None else self._measured(x, out)
        return size if size < math.inf else self._watched(size, x)

    def inside(self, x: Vector) -> Vector:
        """The point (n,) of the set that is nearest to x (n,): x itself if there is no set."""
        if self.within is None:
            return x
        nearest = np.empty_like(x)
        self.within.project(x, nearest)
        return nearest

    def hvp(self, x: Vector, v: Vector, out: Vector) -> None:
        """Write the Hessian at x times v into `out`, all (n,), after checking the time.

        For an objective without Hessian products it is a central difference of gradients.
        """
        self.check_time()
        if self._curved is not None:
            self._load("hvp")
            self.nhev += 1
            np.multiply(self._curved.hvp(x, v), self.sign, out=out)
        else:
            self._difference(x, v, out)

    def coloured_hessian(self, most: int) -> ColouredHessian | None:
        """The pattern of the Hessian, in at most `most` colours; None if that fails.

        Known after the first request, whatever `most` is then.
        """
        if self._coloured is False:
            self.check_time()
            self._coloured = None
            if conforms(self._objective, SparselyCurved):
                self._coloured = self._objective.coloured_hessian(most)
        return self._coloured or None

    def _load(self, product: Product) -> None:
        """Prepare a product; the time this takes is not charged to the run."""
        if product in self._loaded:
            return
        self._loaded.add(product)
        if self._described is not None:
            began = perf_counter()
            self._described.load(product)
            self._stop_clock(perf_counter() - began)

    def _stop_clock(self, seconds: float) -> None:
        """Leave out some seconds that have passed."""
        self.started += seconds
        self.deadline += seconds

    def _difference(self, x: Vector, v: Vector, out: Vector) -> None:
        """(∇f(x + s) − ∇f(x − s))·‖v‖/2‖s‖, s along v of length ∛eps·‖x∘v‖/‖v‖."""
        vnorm = norm(v)
        size = ratio(norm(x * v), vnorm) or 1.0
        s = (self.eps**DIFFERENCE_POWER * size / vnorm) * v
        above, below = x + s, x - s
        self.gradient(above, out)
        before = np.empty_like(out)
        self.gradient(below, before)
        out -= before
        # The displacement after rounding.
        out *= ratio(vnorm, norm(above - below))

    def gauss_newton(self, x: Vector, v: Vector, out: Vector) -> None:
        """Write the Gauss–Newton matrix at x times v into `out`; counted as `hvp`."""
        self.check_time()
        self._load("gauss_newton")
        self.nhev += 1
        assert self._described is not None
        np.multiply(self._described.gauss_newton(x, v), self.sign, out=out)
