"""Profile intervals: how far one unknown can move before the best objective grows too much."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

import numpy as np

from slomodel.errors import Diagnostic, DomainError
from slomodel.front.data.points import Vector
from slomodel.problem import Problem
from slomodel.solve import solve
from slomodel.solve.information import Information
from slomodel.solve.plain_functions import Functions

_MOST_STEPS = 40
_ACCURACY = 1e-5
"""Norm of the gradient of a minimised objective, in units of its covariance."""


class Differentiable(Protocol):
    """An objective with its gradient at a point (m,)."""

    def value_and_gradient(self, x: Vector) -> tuple[float, Vector]: ...


class Fit(Protocol):
    """A solution in the solver's variables: see `inference.FittedPoint`."""

    @property
    def problem(self) -> Problem: ...

    @property
    def curved(self) -> Differentiable: ...

    @property
    def point(self) -> Vector: ...

    @property
    def parts(self) -> Mapping[str, Vector]: ...

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]: ...

    @property
    def joint(self) -> Collection[str]: ...

    @property
    def to_user(self) -> Callable[[Vector], Mapping[str, Vector]]: ...


def profile_intervals(
    fit: Fit,
    information: Information,
    factor: float,
    sign: float,
    name: str,
    quantile: float,
) -> Vector:
    """Intervals (k, 2) of the elements of a variable, where 2 (f_min(x_j) − f_min) <= factor·q².

    `factor` is that of the covariance, and f is minimised over all other unknowns. Raises
    DomainError for quantities that are not elements of variables, or where the covariance is not
    defined.
    """
    first = _first_unknown(fit, name)
    count = int(np.prod(fit.shapes[name]))
    if information.flat.any() or information.held.any():
        message = "profile intervals need a fit without undetermined directions and active bounds"
        raise DomainError(Diagnostic("E607", message, help="hold such variables with model.fix"))
    root = np.sqrt(factor) * information.inverse_root()
    inverse = root @ root.T
    ends = np.empty((count, 2))
    for k in range(count):
        j = first + k
        profile = _Profile(fit, sign / factor, j, inverse)
        for side, direction in enumerate((-1.0, 1.0)):
            point = fit.point.copy()
            point[j] = profile.end(direction, quantile)
            ends[k, side] = fit.to_user(point)[name].ravel()[k]
    return ends


def _first_unknown(fit: Fit, name: str) -> int:
    """The position in u of the first element of a variable that is x = x(u) elementwise."""
    first = 0
    for variable in fit.problem.variables:
        if variable.set is not None:
            message = (
                f"profile intervals are not available with closed sets, as of `{variable.name}`"
            )
            raise DomainError(Diagnostic("E607", message, help='use method="delta"'))
    for free, array in fit.parts.items():
        if free == name:
            if array.shape == fit.shapes[name] and name not in fit.joint:
                return first
            break
        first += array.size
    message = f"`{name}` has no profile interval: it is not a variable with independent elements"
    raise DomainError(Diagnostic("E607", message, help='use method="delta"'))


class _Profile:
    """The objective, in units of its covariance, minimised over all unknowns but one."""

    def __init__(self, fit: Fit, unit: float, j: int, covariance: Vector) -> None:
        self._unit = unit
        self._value: Callable[[Vector], tuple[float, Vector]] = fit.curved.value_and_gradient
        self._point = fit.point
        self._j = j
        self._others = np.arange(fit.point.size) != j
        self._slope = covariance[self._others, j] / covariance[j, j]
        conditional = covariance[np.ix_(self._others, self._others)] - np.outer(
            self._slope, covariance[j, self._others]
        )
        self._root = np.linalg.cholesky(conditional) if self._others.any() else conditional
        self._error = float(np.sqrt(covariance[j, j]))
        self._least = unit * self._value(self._point)[0]
        self._warm = np.zeros(int(self._others.sum()))

    def end(self, direction: float, quantile: float) -> float:
        """The element at which twice the growth is quantile²; infinite if it never is."""
        from scipy.optimize import brentq

        wanted = 0.5 * quantile**2

        def excess(steps: float) -> float:
            return self._growth(direction * steps) - wanted

        self._warm[:] = 0.0
        low, high = 0.0, quantile
        for _ in range(_MOST_STEPS):
            if excess(high) >= 0.0:
                break
            low, high = high, 1.6 * high
        else:
            return direction * np.inf
        steps = float(brentq(excess, low, high, xtol=1e-7 * quantile, rtol=1e-10))
        return float(self._point[self._j] + direction * steps * self._error)

    def _growth(self, steps: float) -> float:
        """The growth of the minimum when the element is moved by `steps` standard errors."""
        moved = steps * self._error
        start = self._point.copy()
        start[self._j] += moved
        start[self._others] += self._slope * moved

        def at(z: Vector) -> Vector:
            point = start.copy()
            point[self._others] += self._root @ z
            return point

        if not self._others.any():
            return self._unit * self._value(start)[0] - self._least
        objective = Functions(
            lambda z: self._unit * self._value(at(z))[0],
            lambda z: self._root.T @ (self._unit * self._value(at(z))[1][self._others]),
            self._warm.size,
        )
        result = solve(
            objective,
            self._warm.copy(),
            method="norm-armijo",
            direction="lbfgs",
            gtol=_ACCURACY,
            scaled=False,
            max_iter=500,
        )
        self._warm = result.x
        return result.fun - self._least
