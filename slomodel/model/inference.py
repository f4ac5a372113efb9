"""From a solution to the uncertainty of its variables and definitions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, final

import numpy as np

from slomodel.calculus.squares import Square, squares
from slomodel.errors import Diagnostic, DomainError
from slomodel.front.data.points import Vector
from slomodel.ir.walk import inputs
from slomodel.model.profile import profile_intervals
from slomodel.model.quantities import Quantities
from slomodel.problem import Problem
from slomodel.solve import Solution
from slomodel.solve.information import Information, Mask, described, from_factor, from_hessian
from slomodel.solve.options import choice, number, whole
from slomodel.solve.run.message import counted
from slomodel.solve.sets.convex_set import Set
from slomodel.solve.uncertainty import Linearise, StatisticalScale, Uncertainty

Scale = Literal["auto", "likelihood", "least-squares"]
Curvature = Literal["auto", "hessian", "gauss-newton"]

_MOST_UNKNOWNS = 2_000
_NO_CONSTANT = 1e-9
_FAR = 0.05
"""Distance from the stationary point, in standard errors, from which a note is given."""
_SETS_WITH_EDGES = ("box", "ball", "psd")
"""Closed sets of full dimension: inside them the unknowns are free."""


class FittedObjective(Protocol):
    """The model that the solver moved: its derivatives at a point u (m,)."""

    @property
    def n(self) -> int: ...

    def value_and_gradient(self, x: Vector) -> tuple[float, Vector]: ...

    def hessian(self, x: Vector) -> Vector: ...

    def unpack(self, x: Vector) -> dict[str, Vector]: ...


@dataclass(frozen=True, slots=True)
class UncertaintyOptions:
    """How an objective is read, as `Solution.uncertainty` documents it."""

    scale: Scale = "auto"
    curvature: Curvature = "auto"
    factor: float = 1.0
    residuals: int | None = None

    def checked(self) -> UncertaintyOptions:
        """The options. Raises DomainError for a wrong one."""
        choice("scale", self.scale, ("auto", "likelihood", "least-squares"))
        choice("curvature", self.curvature, ("auto", "hessian", "gauss-newton"))
        number("factor", self.factor, 0.0)
        if self.residuals is not None:
            whole("residuals", self.residuals, 1)
        return self


@dataclass(frozen=True, slots=True)
class _Residuals:
    """The squares of an objective at a point.

    `sum_of_squares` Σ w r² and `count` are those of the residuals that read data; squares of
    variables alone are penalties. `weight` is w if all are equal, and `is_all`: the squares, with
    the penalties, add up to the objective, without a constant beside them.
    """

    squares: tuple[Square, ...]
    sum_of_squares: float
    count: int
    weight: float | None
    is_all: bool


@final
@dataclass(frozen=True, slots=True, eq=False)
class FittedPoint:
    """A solution of a model, in the solver's variables.

    `problem` and `quantities` are those of the model in unconstrained variables, `curved` its
    derivatives, `point` is u (m,), `within` the closed set, `shapes` those of the user's variables,
    `linearise` linearises quantities, on new data if given, `to_user` maps u to x, and `element`
    names an element of u. Variables in `joint` are not elementwise functions of u.
    """

    problem: Problem
    quantities: Quantities
    curved: FittedObjective
    solution: Solution
    point: Vector
    within: Set | None
    shapes: Mapping[str, tuple[int, ...]]
    linearise: Linearise
    to_user: Callable[[Vector], Mapping[str, Vector]]
    element: Callable[[int], str]
    joint: frozenset[str]

    @property
    def parts(self) -> dict[str, Vector]:
        """The arrays of the solver's variables by name."""
        return self.curved.unpack(self.point)

    def uncertainty(self, options: UncertaintyOptions) -> Uncertainty:
        """The uncertainty of this fit. Raises DomainError where it is not defined."""
        options.checked()
        if self.curved.n > _MOST_UNKNOWNS:
            message = f"standard errors of {self.curved.n:,} unknowns need too large a matrix"
            remedy = f"the limit is {_MOST_UNKNOWNS:,} unknowns; hold some with model.fix"
            raise DomainError(Diagnostic("E607", message, help=remedy))
        held = self._held()
        result = self._residuals() if options.scale != "likelihood" else None
        uses_squares = self._uses_squares(options, result, int((~held).sum()))
        kind = options.curvature
        if kind == "auto":
            kind = "gauss-newton" if uses_squares else "hessian"
        every = result or self._residuals()
        if kind == "gauss-newton" and every is None:
            message = "the objective is not a sum of squares, and has no Gauss-Newton matrix"
            raise DomainError(Diagnostic("E607", message, help='choose curvature="hessian"'))
        sign = -1.0 if self.problem.sense == "maximize" else 1.0
        gradient = sign * self.curved.value_and_gradient(self.point)[1]
        factor = 1.0 / options.factor
        if uses_squares:
            assert result is not None
            factor = 2.0 * result.sum_of_squares / max(self._freedom(result, options, held), 1)
        if kind == "gauss-newton":
            assert every is not None
            information = from_factor(self._factor(every), held)
        else:
            hessian = sign * self.curved.hessian(self.point)
            information = from_hessian(hessian, gradient, self.point, held, factor)
        scale = self._scale(options, result if uses_squares else None, information, kind)
        directions = described(information.undetermined(), self.element)
        return Uncertainty(
            information,
            scale,
            self.shapes,
            self.linearise,
            self._profiles(information, scale, sign),
            directions,
            self._notes(information, scale, gradient, directions),
        )

    def _freedom(self, residuals: _Residuals, options: UncertaintyOptions, held: Mask) -> int:
        return (options.residuals or residuals.count) - int((~held).sum())

    def _uses_squares(
        self, options: UncertaintyOptions, residuals: _Residuals | None, free: int
    ) -> bool:
        """Whether the objective is read as a sum of squares of unknown variance."""
        if options.scale == "likelihood":
            return False
        count = 0 if residuals is None else options.residuals or residuals.count
        if options.scale == "auto":
            return residuals is not None and residuals.is_all and count > free
        if residuals is None:
            message = "the objective is not a sum of squares with weights of one sign"
            remedy = 'read it as a likelihood, scale="likelihood"'
            raise DomainError(Diagnostic("E607", message, help=remedy))
        if count <= free:
            message = f"{count} residuals do not determine a variance beside {free} unknowns"
            remedy = 'read the objective as a likelihood, scale="likelihood"'
            raise DomainError(Diagnostic("E607", message, help=remedy))
        return True

    def _scale(
        self,
        options: UncertaintyOptions,
        residuals: _Residuals | None,
        information: Information,
        kind: str,
    ) -> StatisticalScale:
        """The scale of the covariance, and what it assumes."""
        matrix = "Gauss-Newton matrix" if kind == "gauss-newton" else "Hessian"
        if residuals is not None:
            count = options.residuals or residuals.count
            freedom = count - information.rank
            variance = residuals.sum_of_squares / freedom
            each = "" if residuals.weight is not None else ", times their weights,"
            deviation = math.sqrt(variance / (residuals.weight or 1.0))
            return StatisticalScale(
                2.0 * variance,
                float(freedom),
                f"Assumed: least squares of {count:,} residuals{each} of equal, unknown variance; "
                f"standard deviation {deviation:.6g} with {counted(freedom, 'degree')} of freedom; "
                f"{matrix}; Student's t.",
            )
        read = "a log-likelihood" if self.problem.sense == "maximize" else "-log-likelihood"
        times = "" if options.factor == 1.0 else f", times {options.factor:g},"
        return StatisticalScale(
            1.0 / options.factor,
            None,
            f"Assumed: the objective{times} is {read} up to a constant (for a mean over N, give "
            f"factor=N); {matrix}; normal distribution.",
        )

    def _held(self) -> Mask:
        """The elements of u at active bounds. Raises DomainError for sets without an interior."""
        for variable in self.problem.variables:
            kind = None if variable.set is None else variable.set.kind
            if kind is not None and kind not in _SETS_WITH_EDGES:
                message = f"standard errors are not available for variables in a {kind}"
                remedy = "declare `in open_simplex`" if kind == "simplex" else ""
                remedy = remedy or "hold the variable with model.fix, or write it by angles"
                raise DomainError(Diagnostic("E607", message, help=remedy))
            marks = self.solution.active.get(variable.name)
            if kind in ("ball", "psd") and marks is not None and marks.any():
                message = f"`{variable.name}` is on the boundary of its set, a {kind}"
                remedy = "standard errors need a solution inside such a set, or hold the variable"
                raise DomainError(Diagnostic("E607", message, help=remedy))
        if self.within is None:
            return np.zeros(self.point.size, dtype=bool)
        return self.within.at_bounds(self.point)

    def _residuals(self) -> _Residuals | None:
        """The squares that data enter; None if the objective is not a sum of squares."""
        problem = self.problem
        result = squares(problem.objective, problem.inputs)
        observed = tuple(one for one in result if _reads_data(one))
        if problem.vector is not None or not result:
            return None
        count, total, all_squares = 0, 0.0, 0.0
        used: list[Vector] = []
        for one in result:
            weight, residual = self.quantities.evaluated((one.weight, one.residual), self.parts)
            weight = -weight if problem.sense == "maximize" else weight
            if (weight < 0.0).any():
                return None
            own = float((weight * residual**2).sum())
            all_squares += own
            if one in (observed or result):
                count += int(np.count_nonzero(weight))
                total += own
                used.append(weight[weight != 0.0])
        weights = np.concatenate(used)
        equal = bool(weights.size) and float(np.ptp(weights)) <= 1e-12 * float(weights.max())
        rest = abs(abs(self.solution.fun) - all_squares)
        exact = rest <= _NO_CONSTANT * all_squares
        return _Residuals(result, total, count, float(weights[0]) if equal else None, exact)

    def _factor(self, residuals: _Residuals) -> Vector:
        """A factor (N, m) of the Gauss-Newton matrix: √(2w)·J over all squares."""
        blocks = []
        for square in residuals.squares:
            (weight,) = self.quantities.evaluated((square.weight,), self.parts)
            jacobian = self.quantities.derivatives(square.residual, self.parts, "the residuals")
            blocks.append(np.sqrt(2.0 * np.abs(weight)).reshape(-1, 1) * jacobian)
        return np.concatenate(blocks)

    def _profiles(
        self, information: Information, scale: StatisticalScale, sign: float
    ) -> Callable[[str, float], Vector]:
        def profile(name: str, quantile: float) -> Vector:
            return profile_intervals(self, information, scale.factor, sign, name, quantile)

        return profile

    def _notes(
        self,
        information: Information,
        scale: StatisticalScale,
        gradient: Vector,
        directions: Sequence[str],
    ) -> tuple[str, ...]:
        notes = []
        if directions:
            listed = "; ".join(directions[:3]) + ("; …" if len(directions) > 3 else "")
            many = "a direction" if len(directions) == 1 else f"{len(directions)} directions"
            notes.append(
                f"Not determined by the data: {many} along which the objective is flat: {listed}. "
                "Quantities that change along it have infinite standard errors."
            )
        if information.held.any():
            count = int(information.held.sum())
            elements = "1 element is" if count == 1 else f"{count:,} elements are"
            notes.append(
                f"{elements} at bounds and taken as held there; the others are conditional on that."
            )
        away = information.newton_decrement(gradient) / math.sqrt(scale.factor or 1.0)
        if not self.solution.success or away > _FAR:
            notes.append(
                f"The run ended with status {self.solution.status}, about {away:.2g} standard "
                "errors from a stationary point: solve to a smaller gtol."
            )
        return tuple(notes)


def _reads_data(one: Square) -> bool:
    return any(node.role == "data" for node in inputs(one.residual))
