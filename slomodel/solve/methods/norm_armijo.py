"""Normalised Armijo line search, Algorithm 2 of the paper (alg:lsearch)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from slomodel.errors import Diagnostic, DomainError
from slomodel.solve.constants.proved import ProofSource
from slomodel.solve.directions.direction import SecantPair
from slomodel.solve.directions.table import DIRECTIONS
from slomodel.solve.line_search.armijo import Found, LineSearch
from slomodel.solve.line_search.certified import CertifiedSearch
from slomodel.solve.line_search.exact import Ray
from slomodel.solve.line_search.initial_step import INITIAL_STEPS, WANTS_PAIRS, StepMemory
from slomodel.solve.methods.auto import LOGARITHMIC_MOVE
from slomodel.solve.methods.ball import ball_of_a_step
from slomodel.solve.norms import EPS, LARGEST, Vector, norm, slope_along
from slomodel.solve.objective import Evaluator
from slomodel.solve.stagnation.stagnation import Stagnation
from slomodel.solve.stagnation.unbounded import FarProbe
from slomodel.solve.subroutine import (
    AcceptedStep,
    CheckedStep,
    ConstantsOver,
    EpochRegion,
    Halt,
    Iterate,
    TheoremInequality,
)
from slomodel.solve.verify.inequalities import by_curvature, by_ray_curvature, of_line_search

# Limit on the restarts of a stalled run from descent steps in other units.
RESTARTS = 10


@dataclass(frozen=True, slots=True)
class NormArmijo:
    """Steps of length at most δ̄ along a gradient-related direction, without Lipschitz constants.

    D = d = δ̄, so that every step ends its epoch. With the `degree` of a polynomial the line search
    is exact; with `certified` the descent of every step is proved. `chosen_for` is the reason for a
    direction that was not requested. Variables marked as `logarithmic`, (n,), move by at most
    LOGARITHMIC_MOVE in a step.
    """

    delta_bar: float
    theta: float
    sigma: float
    alpha: float
    direction: str
    initial_step: str
    degree: int | None = None
    chosen_for: str = ""
    prove: ProofSource | None = None
    logarithmic: Vector | None = None
    certified: bool = False

    name = "norm-armijo"

    @property
    def parameters(self) -> dict[str, float | str]:
        more: dict[str, float | str] = {} if self.degree is None else {"line_search": "exact"}
        if self.certified:
            more["line_search"] = "certified"
        if self.chosen_for:
            more["chosen_for"] = self.chosen_for
        return {
            "delta_bar": self.delta_bar,
            "theta": self.theta,
            "sigma": self.sigma,
            "alpha": self.alpha,
            "direction": self.direction,
            "initial_step": self.initial_step,
            **more,
        }

    @property
    def inequalities(self) -> tuple[TheoremInequality, ...]:
        # Along −g the cosine is 1, whatever alpha the direction has.
        alpha = 1.0 if self.direction == "gradient" else self.alpha
        if self.certified:
            return (*of_line_search(self.sigma, alpha), by_ray_curvature(alpha))
        return (
            *of_line_search(self.sigma, alpha),
            by_curvature(self._curvature(), self.sigma, self.theta, alpha),
        )

    def _curvature(self) -> Callable[[CheckedStep], float] | None:
        """L1 for the second inequality, if that applies and bounds exist."""
        full = self.initial_step == "full" and self.degree is None
        bb = self.initial_step == "bb" and self.direction == "gradient" and self.degree is None
        if self.prove is None or self.logarithmic is not None or not (full or bb):
            return None
        return ProvedCurvature(self.prove, over_last_two=bb)

    def region(self, start: Iterate, constants: ConstantsOver | None) -> EpochRegion:
        return ball_of_a_step(start, self.delta_bar)

    def stepper(self, evaluate: Evaluator, start: Iterate, tolerance: float) -> NormArmijoRun:
        return NormArmijoRun(self, evaluate, start)


class ProvedCurvature:
    """L1 over B(x_{k−1}, δ̄); with `over_last_two` the larger of that and L1 over B(x_{k−2}, δ̄)."""

    def __init__(self, prove: ProofSource, over_last_two: bool) -> None:
        self._prove = prove
        self._over_last_two = over_last_two
        self._before = 0.0

    def __call__(self, step: CheckedStep) -> float:
        L1 = self._prove(step.old.x, step.region.D).L1
        before, self._before = self._before, L1
        return max(L1, before) if self._over_last_two else L1


class NormArmijoRun:
    """One run of NormArmijo: buffers, the memory of the direction, and its stagnation.

    `delta`, `delta_first` and `trials` describe the last step.
    """

    def __init__(self, method: NormArmijo, evaluate: Evaluator, start: Iterate) -> None:
        self.delta = self.delta_first = 0.0
        self.trials = 0
        self._method = method
        self._evaluate = evaluate
        self._initial_step = INITIAL_STEPS[method.initial_step]
        self._begin(start)
        self._wants_pairs = self._direction.wants_pairs or method.initial_step in WANTS_PAIRS
        self._restarts = 0
        self._ray = None
        if method.degree is not None:
            self._ray = Ray(evaluate, method.degree, method.sigma, start)
        self._v = np.empty_like(start.x)
        self._s = np.empty_like(start.x)
        self._y = np.empty_like(start.x)

    def _begin(self, start: Iterate, probe: FarProbe | None = None) -> None:
        """Initialise the run at `start`, without memory of earlier steps."""
        method, rule = self._method, DIRECTIONS[self._method.direction]
        if method.certified and not self._evaluate.has_ray_bounds:
            message = "line_search='certified' is for models, which have bounds along rays"
            raise DomainError(Diagnostic("E604", message, help="use line_search='armijo'"))
        self._direction = rule.start(self._evaluate, start, method.delta_bar)
        self._memory = StepMemory()
        self._stagnation = Stagnation.of_searches(self._evaluate, start, rule.idle, probe)
        resolution = self._stagnation.resolution
        self._search = LineSearch(self._evaluate, resolution, start, method.theta, method.sigma)
        self._certified = CertifiedSearch(self._evaluate, start) if method.certified else None

    def enter(self, region: EpochRegion) -> EpochRegion:
        return region

    def step(self, current: Iterate, region: EpochRegion) -> AcceptedStep | Halt:
        """Step to x + δv with δ from the line search. Paper: alg:lsearch."""
        v, D = self._v, region.D
        if self._stagnation.probe.due:
            halt = self._stagnation.look_far(current, np.multiply(v, self.delta, out=self._s))
            if halt:
                return halt
        vnorm, slope, own = self._related_direction(current, v)
        in_units = own and slope > -self._method.alpha * current.gnorm
        if self._certified is not None:
            return self._proved(self._certified, current, vnorm, D, own, in_units)
        longest = self._longest(v, vnorm, D)
        first = self._ray and self._ray.minimiser(current, v, vnorm, slope, longest)
        first = first or self._initial_step(longest, self._memory)
        found = self._search.search(current, v, vnorm, slope, first)
        self.trials = self._search.trials
        if found is None:
            again = own or first < longest
            vnorm = self._direction.fallback(current, v)
            longest = first = self._longest(v, vnorm, D)
            found = self._last_resort(current, vnorm, longest, again)
            own = in_units = False
        if found is None or self._stagnation.after(found.point, found.delta * vnorm / D):
            return self._restart_or_halt(current, D)
        self.delta, self.delta_first = found.delta, first
        full_length = found.delta >= longest * (1.0 - 4.0 * EPS)
        taken = self._accept(current, found, vnorm, full_length, own)
        return replace(taken, in_units=True) if in_units else taken

    def _longest(self, v: Vector, vnorm: float, D: float) -> float:
        """The largest δ of a step δv, v (n,), to the boundary or to the limit of a variable."""
        longest = min(D / vnorm, LARGEST)
        marked = self._method.logarithmic
        if marked is None:
            return longest
        fastest = float(np.abs(v * marked).max())
        return min(longest, LOGARITHMIC_MOVE / fastest) if fastest > 0.0 else longest

    def _proved(
        self,
        search: CertifiedSearch,
        current: Iterate,
        vnorm: float,
        D: float,
        own: bool,
        in_units: bool,
    ) -> AcceptedStep | Halt:
        """A step of proved descent along the direction or, if there is none, along −g."""
        longest = self._longest(self._v, vnorm, D)
        found = search.search(current, self._v, vnorm, longest)
        self.trials = search.trials
        if found is None and own:
            vnorm, own, in_units = self._direction.fallback(current, self._v), False, False
            longest = self._longest(self._v, vnorm, D)
            found = search.search(current, self._v, vnorm, longest)
            self.trials += search.trials
        if found is None or self._stagnation.after(found.point, found.delta * vnorm / D):
            return self._restart_or_halt(current, D)
        self.delta = self.delta_first = found.delta
        full_length = found.delta >= longest * (1.0 - 4.0 * EPS)
        taken = self._accept(current, found, vnorm, full_length, own)
        assert search.step is not None
        facts = {"limited": float(search.step.limited)}
        facts["curvature"] = search.step.curvature / (vnorm * vnorm)
        return replace(taken, in_units=in_units, facts=facts)

    def _restart_or_halt(self, current: Iterate, D: float) -> AcceptedStep | Halt:
        """If no step gains anything: a step of `way_down` and a restart without memory, or a halt.

        The memory may stem from points where f is far steeper. A direction that depends on the
        units of the variables is not restarted, since it would only stall again.
        """
        halt, way = self._stagnation.explain_search(current, D)
        any_units = DIRECTIONS[self._method.direction].any_units
        if way is None or not any_units or self._restarts == RESTARTS:
            return halt
        at = halt.best or current
        new = Iterate(at.x + way.step, 0.0, np.empty_like(at.g), 0.0)
        new.f = self._evaluate.value(new.x)
        new.gnorm = self._evaluate.gradient(new.x, new.g)
        if not (-math.inf < new.f < at.f and math.isfinite(new.gnorm)):
            return halt
        self._restarts += 1
        self._begin(new, self._stagnation.probe)
        return AcceptedStep(new, norm(way.step), at_boundary=False, in_units=True)

    def _related_direction(self, at: Iterate, v: Vector) -> tuple[float, float, bool]:
        """Write a direction with ⟨g,v⟩ ≤ −α‖g‖‖v‖ into v (n,).

        For a rule that scales the variables, the norms may also be those of the scaled variables:
        where units differ by 1e20, the best direction may have a cosine of 1e-20 with −g. Returns
        ‖v‖, ⟨g,v⟩/‖v‖ and whether v is the rule's own direction and not along −g.
        """
        g, gnorm = at.g, at.gnorm
        vnorm = self._direction.propose(at, v)
        if self._method.direction == "gradient":
            return vnorm, -gnorm, False
        if 0.0 < vnorm <= LARGEST:
            slope = slope_along(g, gnorm, v, vnorm)
            if slope <= -self._method.alpha * gnorm:
                return vnorm, slope, True
            units = self._direction.units
            if units is not None:
                least = self._method.alpha * norm(g * units) * norm(v / units)
                if slope * vnorm <= -least < 0.0:
                    return vnorm, slope, True
        return self._direction.fallback(at, v), -gnorm, False

    def _last_resort(self, at: Iterate, vnorm: float, longest: float, again: bool) -> Found | None:
        """Search along −g from the full length, and once more if f is noisier than assumed.

        Without `again` the first search is skipped, since it was just made.
        """
        found = self._along_gradient(at, vnorm, longest) if again else None
        if found is None and self._stagnation.resolution.measure(
            self._evaluate, at, longest * vnorm
        ):
            found = self._along_gradient(at, vnorm, longest)
        return found

    def _along_gradient(self, at: Iterate, vnorm: float, longest: float) -> Found | None:
        found = self._search.search(at, self._v, vnorm, -at.gnorm, longest)
        self.trials += self._search.trials
        return found

    def _accept(
        self, old: Iterate, found: Found, vnorm: float, full_length: bool, own: bool
    ) -> AcceptedStep:
        new = found.point
        self._memory.delta = found.delta
        self._stagnation.probe.count(full_length)
        if self._wants_pairs:
            s = np.subtract(new.x, old.x, out=self._s)
            y = np.subtract(new.g, old.g, out=self._y)
            pair = SecantPair(s, y, float(s.dot(y)), norm(s), norm(y), own)
            self._memory.pair = pair
            self._direction.learn(pair)
        return AcceptedStep(new, found.delta * vnorm, full_length, found.by_rounding)
