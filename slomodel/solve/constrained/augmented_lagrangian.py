"""The augmented Lagrangian method: subproblems over the set of the variables, solved by `solve`.

Powell, Hestenes and Rockafellar's method in the form of Birgin & Martínez, *Practical Augmented
Lagrangian Methods for Constrained Optimization* (SIAM, 2014): multipliers follow the minimisers of
the subproblems, and the penalty grows where the constraints do not come closer to holding.
Newton's method for the KKT conditions (newton_steps.py) is tried between the subproblems.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slomodel.solve.constrained.checkpoint import STATE, SavedRun, saved_state
from slomodel.solve.constrained.levels import by_levels
from slomodel.solve.constrained.newton_steps import AFAR, LARGEST, LARGEST_QUADRATIC, NewtonSteps
from slomodel.solve.constrained.objective import loosest_for_lengths
from slomodel.solve.constrained.primal_dual import PrimalDual
from slomodel.solve.constrained.record import RunRecord, SharedDisplay
from slomodel.solve.constrained.restoration import INFEASIBLE, Restoration
from slomodel.solve.constrained.scaled import ScaledConstraints
from slomodel.solve.entry import Diagnose, solve
from slomodel.solve.norms import Vector
from slomodel.solve.run.checkpoint import Saved, Trajectory
from slomodel.solve.run.parts import BUDGETS
from slomodel.solve.run.solution import Solution
from slomodel.solve.run_options import RunOptions
from slomodel.solve.sets.convex_set import Set
from slomodel.solve.stagnation.unbounded import FAR
from slomodel.solve.status import Status

# The first penalty in units of f and c: it balances |f| and the violation within these limits, and
# is 1 where nothing is violated. A larger one keeps iterates near curved constraints; with a
# smaller one circles that must not overlap were seen to end at one point, where no gradient parts
# them.
LEAST_PENALTY, MOST_FIRST_PENALTY, UNVIOLATED_PENALTY = 1e-4, 10.0, 1.0
# Past this penalty rounding errors of the constraints dominate the subproblem.
LARGEST_PENALTY = 1e14
PENALTY_FACTOR = 10.0
# The penalty grows unless the constraints come closer to holding by this factor.
ENOUGH = 0.25
# Tolerances of the subproblems fall by this factor, from FIRST times the first residual or 1.
TIGHTER, FIRST = 0.1, 1.0
LARGEST_MULTIPLIER = 1e20
# So many penalties in a row without progress, and the violation itself is minimised.
HOPELESS = 4
# Rounding errors in units of eps.
UNITS = 32.0
# Number of successive subproblems without an improvement that ends the run.
IDLE = 5
# Most saddles of the Lagrangian that a run leaves.
MOST_SADDLES = 5
# A point is clearly lower if its distance reaches this, in units of max(1, |x|); most such points
# from which a run without progress goes on.
CLEARLY, MOST_LOWERED = 1e-6, 10
# So many in a row, each farther out by this factor: f tends to a limit, and has no minimum.
MOST_RECEDED, RECEDING = 4, 1.05
# Iterations of a subproblem before it is interrupted to look for a descent without end; doubled
# after each time.
FIRST_PIECE = 500
# Fraction of a descent without end by which f has to fall at points where the constraints hold.
FALLEN = 0.5


@dataclass(slots=True)
class ConstrainedOutcome:
    """How a run has ended: its point, status and explanation, and the last run of a subproblem."""

    at: PrimalDual
    status: Status
    detail: str = ""
    last: Solution | None = None


@dataclass(slots=True)
class AugmentedLagrangian:
    """The state of a run between two subproblems, all that its continuation depends on.

    `tolerance` is that of stationarity, `wanted` that of the next subproblem. `penalised` counts
    the growths of the penalty since the constraints came closer to holding, `idle` the subproblems
    since the residual last fell; `restored` is set once the violation alone has been minimised.
    """

    objective: ScaledConstraints
    within: Set | None
    method: str
    options: Mapping[str, object]
    run: RunOptions
    record: RunRecord
    diagnose: Diagnose | None
    at: PrimalDual
    tolerance: float
    penalty: float
    wanted: float
    gap: float = np.inf
    best: float = np.inf
    penalised: int = 0
    idle: int = 0
    restored: bool = False
    saddles: int = 0
    lowered: int = 0
    receded: int = 0
    nearby: float = 1.0
    endless: bool = False
    saddle_f: float = np.inf
    leaves: bool = False
    last: Solution | None = None
    keeper: SavedRun | None = None

    @staticmethod
    def begin(
        at: PrimalDual,
        objective: ScaledConstraints,
        within: Set | None,
        requested: Trajectory,
        record: RunRecord,
        diagnose: Diagnose | None,
    ) -> AugmentedLagrangian:
        """The run from a point with multipliers 0, at which `at.g` is the gradient of f."""
        run = requested.run
        scale = min(1.0, max(abs(at.f), at.stationarity)) or 1.0
        tolerance = run.gtol * (scale if run.scaled and np.isfinite(scale) else 1.0)
        excess = np.where(objective.equations, at.c, np.maximum(at.c, 0.0))
        squares, unit = float(excess @ excess), objective.unit
        penalty = UNVIOLATED_PENALTY
        if squares > 0.0:
            balanced = 2.0 * abs(at.f) / unit / squares
            penalty = float(np.clip(balanced, LEAST_PENALTY, MOST_FIRST_PENALTY))
        penalty *= unit
        loosest = min(FIRST * min(unit, at.stationarity), loosest_for_lengths(requested.options))
        wanted = max(loosest, tolerance)
        own = (objective, within, requested.method, requested.options, run, record, diagnose)
        nearby = max(1.0, float(np.linalg.norm(at.x)))
        return AugmentedLagrangian(*own, at, tolerance, penalty, wanted, nearby=nearby)

    def resume(self, saved: Saved) -> None:
        """Continue a saved run, at the beginning of a subproblem.

        Raises DomainError for a checkpoint of another model.
        """
        state = saved_state(saved, len(self.at.y))
        for name in STATE:
            setattr(self, name, state[name])
        self.record.resume(saved, state)
        y = saved.arrays[0] * self.objective.units
        self.at = PrimalDual.of(self.objective, saved.point.x, y, self.within)

    def _keep(self) -> None:
        if self.keeper is not None:
            state = {name: getattr(self, name) for name in STATE}
            self.keeper.keep(self.at, self.at.y / self.objective.units, state, self.record)

    def outcome(self) -> ConstrainedOutcome:
        """Run until the KKT conditions hold, a budget is spent, or nothing improves any more."""
        while True:
            self._keep()
            ended = self._newton() or self._spent() or self._subproblem() or self._judged()
            if ended is not None:
                return ended
            self.record.outer += 1

    def _end(self, status: Status, detail: str = "") -> ConstrainedOutcome:
        return ConstrainedOutcome(self.at, status, detail, self.last)

    def _is_solved(self) -> bool:
        return self.at.is_solution(self.tolerance, self.run.ctol)

    @property
    def _largest_penalty(self) -> float:
        return LARGEST_PENALTY * self.objective.unit

    def _spent(self) -> ConstrainedOutcome | None:
        status = self.record.spent
        return None if status is None else self._end(status)

    def _newton(self) -> ConstrainedOutcome | None:
        """Newton steps for the KKT conditions; the outcome if they hold.

        With `second_order` only from the minimiser of a subproblem, which is not a saddle: along
        the active constraints the augmented Lagrangian has the curvature of the Lagrangian.
        """
        if self.endless:
            return self._end(Status.unbounded)
        if self.run.second_order and self.last is None:
            return None
        if self._is_solved():
            return self._end_at_minimum(Status.converged)
        spent = self._spent()
        if spent is not None or not self._has_newton_steps:
            return spent
        counts = self.record.counts

        def took(new: PrimalDual, length: float) -> bool:
            counts["nit"] += 1
            self.record.took(new.x, new.f, new.stationarity, length)
            return self.record.spent is None and not new.is_solution(self.tolerance, self.run.ctol)

        steps = NewtonSteps(self.objective, self.within, self._evaluated)
        before, self.at = self.at, steps.run(self.at, self.penalty, took)
        ended = self._ended()
        # Multipliers of nearly dependent gradients have no size that a subproblem could start from.
        if ended is None and self.at.error > before.error:
            self.at = before
        if ended is None and self.last is None and self.objective.is_quadratic_program:
            ended = self._along_recession(steps)
        return ended

    def _along_recession(self, steps: NewtonSteps) -> ConstrainedOutcome | None:
        """The outcome if a quadratic objective falls along a line on which all constraints hold."""
        d = steps.recession(self.at)
        if d is None:
            return None
        ended = self._restore() if self.at.violation > self.run.ctol else None
        if ended is not None or self.at.violation > self.run.ctol:
            return ended
        x = self.at.x + (AFAR * max(1.0, float(np.abs(self.at.x).max()))) * d
        if self.within is not None:
            self.within.project(x, x)
        self._evaluated(1, 0)
        far = PrimalDual.of(self.objective, x, self.at.y, self.within)
        if self._holds_far_out(far) and far.f < self.at.f:
            self.at = far
        falls = "From here it falls along a straight line, on all of which the constraints hold."
        return self._end(Status.unbounded, falls)

    @property
    def _has_newton_steps(self) -> bool:
        most = LARGEST_QUADRATIC if self.objective.is_quadratic_program else LARGEST
        return self.method == "auto" and not self.options and self.objective.n <= most

    def _evaluated(self, points: int, products: int) -> None:
        counts = self.record.counts
        counts["nfev"] += points
        counts["njev"] += points
        counts["nhev"] += products

    def _end_at_minimum(self, status: Status) -> ConstrainedOutcome | None:
        """The outcome at a KKT point, or None to go on from a saddle of the Lagrangian.

        The next subproblem then begins along negative curvature, or once along a direction without
        curvature, where the objective may fall by terms of higher order. A point that it does not
        leave is the end.
        """
        at = self.at = self._on_bounds(self.at)
        steps = NewtonSteps(self.objective, self.within, self._evaluated)
        far = float(np.linalg.norm(at.x)) > FAR * self.nearby
        # A KKT point of a convex program is a minimum, however far out.
        if far and self.objective.is_quadratic_program and self.objective.n <= LARGEST_QUADRATIC:
            far = not steps.is_convex_around(at)
        if far and (self._lower() or self._lower(0.0)):
            if self.receded < MOST_RECEDED:
                return None
            self.at = at
            return self._end(Status.no_minimum)
        plain = status is Status.converged and self._has_newton_steps
        plain = plain and not (self.run.second_order or self.run.verify)
        plain = plain and self.run.scaled and self.saddles < MOST_SADDLES
        plain = plain and self.at.f < self.saddle_f
        if plain and not steps.is_convex_at(self.at, self.penalty, strictly=not self.saddles):
            self.saddles, self.saddle_f, self.leaves = self.saddles + 1, self.at.f, True
            return None
        return self._end(status)

    def _on_bounds(self, at: PrimalDual) -> PrimalDual:
        """A solution with the variables on the bounds that its gradient step reaches, if it is one.

        Such variables are nearer to these bounds than the tolerance, and active.
        """
        polyhedron = None if self.within is None else self.within.polyhedron()
        if self.within is None or polyhedron is None:
            return at
        step = np.empty_like(at.x)
        self.within.projected_gradient(at.x, at.g, step)
        low, high = step <= polyhedron.low - at.x, step >= polyhedron.high - at.x
        x = np.where(low, polyhedron.low, np.where(high, polyhedron.high, at.x))
        self.within.project(x, x)
        if np.array_equal(x, at.x):
            return at
        self._evaluated(1, 0)
        new = PrimalDual.of(self.objective, x, at.y, self.within)
        solves = new.is_finite and new.is_solution(self.tolerance, self.run.ctol)
        return new if solves else at

    def _ended(self) -> ConstrainedOutcome | None:
        """The outcome if the KKT conditions hold, or hold up to rounding errors."""
        if self._is_solved():
            return self._end_at_minimum(Status.converged)
        stationarity, violation = self._resolution()
        resolved = self.at.is_solution(
            max(self.tolerance, stationarity), max(self.run.ctol, violation)
        )
        return self._end_at_minimum(Status.precision) if resolved else None

    def _resolution(self, at: PrimalDual | None = None) -> tuple[float, float]:
        """Rounding errors of the gradient of the Lagrangian and of the constraints, estimated.

        That of a constraint is its change if the elements of x change by a few units in the last
        place, for the largest of some changes of random signs.
        """
        at, nothing = at or self.at, np.zeros_like(self.at.y)
        unit = UNITS * self.objective.eps
        _, g, _ = self.objective.evaluate(at.x, nothing)
        terms = float(np.linalg.norm(g)) + float(np.linalg.norm(at.g - g))
        return unit * terms, unit * self.objective.sensitivity(at.x)

    def _subproblem(self) -> ConstrainedOutcome | None:
        """Minimise the augmented Lagrangian, and estimate the multipliers at its minimiser."""
        at, equations = self.at, self.objective.equations
        run = self._minimised_in_pieces()
        self.leaves = False
        self.last = run
        if self.endless:
            return self._end(Status.unbounded)
        if run.status is Status.nonfinite_start:
            return self._end(run.status, run.status.sentence)
        _, _, c = self.objective.evaluate(run.x, at.y)
        if run.status is Status.unbounded:
            return self._unbounded(run, c)
        y = at.y + self.penalty * c
        y = np.where(equations, y, np.maximum(y, 0.0))
        y = np.clip(y, -LARGEST_MULTIPLIER, LARGEST_MULTIPLIER)
        self.at = PrimalDual.of(self.objective, run.x, y, self.within)
        if run.status in BUDGETS:
            return self._end(run.status)
        gap = np.where(equations, np.abs(c), np.abs(np.maximum(c, -at.y / self.penalty)))
        worst, units = float(np.max(gap, initial=0.0)), self.objective.units
        holds = float(np.max(gap * units, initial=0.0)) <= self.run.ctol
        if worst > ENOUGH * self.gap and not holds:
            self.penalty *= PENALTY_FACTOR
            self.penalised += 1
        else:
            self.penalised = 0
        self.gap = worst
        self.wanted = max(TIGHTER * self.wanted, 0.5 * self.tolerance)
        return None

    def _minimised_in_pieces(self) -> Solution:
        """The minimiser of the augmented Lagrangian, unless a descent without end is found."""
        at, x, piece, leaves = self.at, self.at.x, FIRST_PIECE, self.leaves
        while True:
            run = self._minimised(x, at.y, self.penalty, self.wanted, leaves=leaves, most=piece)
            if run.status is not Status.max_iter or self.record.spent is not None:
                return run
            far = PrimalDual.of(self.objective, run.x, at.y, self.within)
            lower = by_levels(self.objective, self.within, far, run.x - x, self._went_on)
            if lower is not None and lower.endless:
                self.at, self.endless = lower.at, True
                return run
            x, piece, leaves = run.x, 2 * piece, False
            if lower is not None and lower.at.f < far.f:
                x = lower.at.x

    def _went_on(self, points: int) -> bool:
        self._evaluated(points, 0)
        return self.record.spent is None

    def _minimised(
        self,
        x: Vector,
        y: Vector,
        penalty: float,
        gtol: float,
        weight: float = 1.0,
        leaves: bool = False,
        most: int | None = None,
    ) -> Solution:
        record, began = self.record, self.record.seconds
        part = self.objective.augmented(y, np.full(len(y), penalty), weight)
        display = None if record.display is None else SharedDisplay(record, record.display)
        options: dict[str, Any] = {**record.remaining(), **self.options}
        if most is not None:
            options["max_iter"] = min(options["max_iter"], most)
        result = solve(
            part.objective,
            x,
            method=self.method,
            callback=record.report,
            progress=display,
            diagnose=self.diagnose,
            prove=part.prove,
            within=self.within,
            gtol=gtol,
            # The test of `auto`, which also looks for negative curvature, takes the place of gtol.
            scaled=leaves,
            seed=self.run.seed,
            verify=self.run.verify,
            second_order=self.run.second_order,
            **options,
        )
        record.add(result, began)
        return result

    def _unbounded(self, run: Solution, c: Vector) -> ConstrainedOutcome | None:
        """A descent without end: of f itself if the constraints hold there, else of the sum.

        Far out the constraints hold up to `ctol` times the magnitude of x at best, which shows that
        f is unbounded only where they hold at some point. Where they do not hold on the way, f has
        to have fallen half as far at the nearest point at which they do.
        """
        if self.at.violation > self.run.ctol and not self.restored:
            return self._restore()
        far = PrimalDual.of(self.objective, run.x, self.at.y, self.within)
        least = self.at.f
        if not self._holds_far_out(far):
            least = self.at.f + FALLEN * (far.f - self.at.f)
            nearest = self._minimised(run.x, np.zeros_like(c), 1.0, self.run.ctol, weight=0.0)
            far = PrimalDual.of(self.objective, nearest.x, self.at.y, self.within)
        if self._holds_far_out(far) and far.f < least:
            self.at = far
            return self._end(Status.unbounded)
        if self.penalty >= self._largest_penalty:
            return self._end(
                Status.line_search_stalled,
                "The augmented Lagrangian is unbounded below for every penalty tried.",
            )
        self.penalty *= PENALTY_FACTOR
        return None

    def _holds_far_out(self, point: PrimalDual) -> bool:
        """Whether the constraints hold up to `ctol`, relative to the magnitude of x.

        Where they do not change with x, as a·u == 1 at a = 0, they hold there or nowhere near.
        """
        size = float(np.abs(point.x).max(initial=0.0))
        if size > 1.0 and point.violation > self.run.ctol:
            size = min(size, self.objective.sensitivity(point.x))
        return point.violation <= self.run.ctol * max(1.0, size)

    def _judged(self) -> ConstrainedOutcome | None:
        """The outcome if the residual has stopped falling or the constraints cannot hold."""
        ended = self._ended()
        if ended is not None:
            return ended
        self.idle = 0 if self.at.error < 0.9 * self.best else self.idle + 1
        self.best = min(self.best, self.at.error)
        stuck = (
            self.penalised >= HOPELESS or self.penalty >= self._largest_penalty or self.idle >= IDLE
        )
        if not stuck:
            return None
        if self.at.violation > self.run.ctol and not self.restored:
            return self._restore()
        if self.idle < IDLE and self.penalty < self._largest_penalty:
            return None
        if self._lower():
            return None
        if self.at.violation <= INFEASIBLE and self.at.stationarity <= 1e3 * self.tolerance:
            return self._end(Status.precision)
        return self._end(Status.line_search_stalled)

    def _lower(self, least: float = 1.0) -> bool:
        """Whether a clearly lower point was found at which the constraints hold, to go on from.

        Distances are in units of |x|, and of `least` where that is smaller.
        """
        if self.lowered == MOST_LOWERED:
            return False
        _, g, _ = self.objective.evaluate(self.at.x, np.zeros_like(self.at.y))
        far = np.maximum(least, np.abs(self.at.x))
        steep = float(np.linalg.norm(g * far))
        if not 0.0 < steep < np.inf:
            return False
        step = (-CLEARLY / steep) * g * far**2
        lower = by_levels(self.objective, self.within, self.at, step, self._went_on)
        if lower is None:
            return False
        self.lowered, self.endless = self.lowered + 1, lower.endless
        reached = RECEDING * float(np.linalg.norm(self.at.x))
        self.receded = self.receded + 1 if float(np.linalg.norm(lower.at.x)) > reached else 0
        self.at = PrimalDual.of(self.objective, lower.at.x, self.at.y, self.within)
        self.idle = self.penalised = 0
        self.gap = self.best = np.inf
        return True

    def _restore(self) -> ConstrainedOutcome | None:
        """Minimise the sum of squared violations; they are infeasible if its minimum is not 0."""
        self.restored, before, nothing = True, self.at, np.zeros_like(self.at.y)

        def minimise(
            x: Vector, gtol: float, *, leaves: bool = False, most: int | None = None
        ) -> Solution:
            run = self._minimised(x, nothing, 1.0, gtol, weight=0.0, leaves=leaves, most=most)
            spent = run.status in BUDGETS and self.record.spent is None
            return replace(run, status=Status.line_search_stalled) if spent else run

        own = (self.objective, self.within, self.run.ctol, minimise, BUDGETS)
        rounding = self._resolution(before)[1]
        result = Restoration(*own).restored(before, rounding)
        if result.status is not None:
            if result.status not in BUDGETS:
                self.at, self.last = result.at, result.run
            return self._end(result.status)
        if result.at.violation < before.violation:
            self.at = result.at
        self.penalised = self.idle = 0
        self.gap = self.best = np.inf
        return None
