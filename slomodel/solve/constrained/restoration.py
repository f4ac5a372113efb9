"""Minimisation of the violation alone, whose minimum may show that constraints contradict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from slomodel.solve.constrained.primal_dual import PrimalDual
from slomodel.solve.constrained.scaled import ScaledConstraints
from slomodel.solve.norms import Vector
from slomodel.solve.run.solution import Solution
from slomodel.solve.sets.convex_set import Set
from slomodel.solve.status import Status

# A minimum of the violation above this is taken for one that is not 0.
INFEASIBLE = 1e-6
# A minimum of the violation has to exceed its rounding error by this factor.
BEYOND_ROUNDING = 1e3
# The violation is at a minimum that is not 0 if its slope, over the magnitude of x, is below this
# fraction of it; where it tends to 0 the two are about equal. Most attempts to reach that.
FLAT, ATTEMPTS = 1e-3, 4
# The violation is minimised again from points at these distances, in units of max(1, |x_j|), from
# a minimum that is not 0; one is lower if it is below this fraction.
AROUND, LESS_VIOLATED = (0.0, 0.1, 1.0), 0.9
# Iterations of a minimisation from a point around a minimum.
MOST_AROUND = 500


class MinimiseViolation(Protocol):
    """A minimisation of the sum of squared violations from x (n,)."""

    def __call__(
        self, x: Vector, gtol: float, *, leaves: bool = False, most: int | None = None
    ) -> Solution: ...


@dataclass(frozen=True, slots=True)
class Restored:
    """The end of a restoration: the last run, its point, and the status that it implies, if any."""

    run: Solution
    at: PrimalDual
    status: Status | None = None


@dataclass(frozen=True, slots=True)
class Restoration:
    """Minimises the violation, by `minimise`; `spent` are the statuses of exhausted budgets."""

    objective: ScaledConstraints
    within: Set | None
    ctol: float
    minimise: MinimiseViolation
    spent: tuple[Status, ...]

    def restored(self, at: PrimalDual, rounding: float) -> Restored:
        """The least violation found from a point, infeasible if that is a minimum and not 0.

        `rounding` estimates the rounding error of the constraints.
        """
        least = max(INFEASIBLE, BEYOND_ROUNDING * rounding)
        tolerance = 1e-3 * min(1.0, at.violation) * self.ctol**0.5
        run = self.minimise(at.x, tolerance)
        result = self._at(run)
        for _ in range(ATTEMPTS):
            if not run.status.success or result.violation <= least or self._is_flat(run, result):
                break
            run = self.minimise(result.x, FLAT * self._slope_scale(result))
            result = self._at(run)
        for k in range(len(AROUND)):
            if run.status in self.spent or not self._is_minimum(run, result, least):
                break
            run, result = self._less_violated(run, result, tolerance, k)
        if run.status in self.spent:
            return Restored(run, result, run.status)
        if not self._is_minimum(run, result, least):
            return Restored(run, result)
        return Restored(run, result, Status.infeasible)

    def _at(self, run: Solution) -> PrimalDual:
        nothing = np.zeros(len(self.objective.equations))
        return PrimalDual.of(self.objective, run.x, nothing, self.within)

    def _slope_scale(self, result: PrimalDual) -> float:
        """The slope of the violation where it is the only thing that changes with x, relatively."""
        return FLAT * result.excess / max(1.0, float(np.abs(result.x).max(initial=0.0)))

    def _is_flat(self, run: Solution, result: PrimalDual) -> bool:
        return run.gradient_norm <= self._slope_scale(result)

    def _is_minimum(self, run: Solution, result: PrimalDual, least: float) -> bool:
        """Whether a run that minimised the violation has ended at a minimum that is not 0."""
        return run.status.success and result.violation > least and self._is_flat(run, result)

    def _less_violated(
        self, run: Solution, result: PrimalDual, tolerance: float, k: int
    ) -> tuple[Solution, PrimalDual]:
        """The violation minimised again, from a point around the minimiser; the better of both.

        The stationary point of a symmetric violation, as that of xy = 1 at 0, may be a saddle or a
        maximum, which a run from a point near it leaves. The first point is the minimiser itself,
        from which `auto` follows negative curvature.
        """
        rng, far = np.random.default_rng(k), np.maximum(1.0, np.abs(result.x))
        x = result.x + AROUND[k] * far * rng.standard_normal(self.objective.n)
        if self.within is not None:
            self.within.project(x, x)
        again = self.minimise(x, tolerance, leaves=True, most=MOST_AROUND)
        other = self._at(again)
        lower = other.is_finite and other.violation < LESS_VIOLATED * result.violation
        return (again, other) if lower else (run, result)
