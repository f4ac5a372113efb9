"""Normalised Armijo line search, Algorithm 2 of the paper (alg:lsearch)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from slomodel.errors import Diagnostic, DomainError
from slomodel.solve.compiled.steps import CompiledSteps, Pace, compiled_steps
from slomodel.solve.constants.proved import ProofSource
from slomodel.solve.directions.direction import (
    Predicting,
    Propose,
    SecantPair,
    gradient_related,
)
from slomodel.solve.directions.table import DIRECTIONS
from slomodel.solve.line_search.armijo import AcceptedTrial, LineSearch
from slomodel.solve.line_search.certified import RELAXATION, CertifiedSearch, descent_left, hidden
from slomodel.solve.line_search.exact import Ray
from slomodel.solve.line_search.initial_step import INITIAL_STEPS, WANTS_PAIRS, StepMemory
from slomodel.solve.line_search.interpolating import InterpolatingSearch
from slomodel.solve.line_search.proved_values import ProvedValues
from slomodel.solve.methods.auto import BENDS, LOGARITHMIC_MOVE, SECOND_DESCENT, PredictedDecrease
from slomodel.solve.methods.ball import ball_of_a_step, grown, widened
from slomodel.solve.norms import EPS, LARGEST, Vector, norm, slope_along
from slomodel.solve.objective import Evaluator
from slomodel.solve.stagnation.stagnation import Stagnation
from slomodel.solve.stagnation.unbounded import FarProbe
from slomodel.solve.subroutine import (
    AcceptedStep,
    Block,
    BlockLimits,
    CheckedStep,
    ConstantsOver,
    EpochRegion,
    Halt,
    Iterate,
    TheoremInequality,
)
from slomodel.solve.verify.inequalities import (
    ProvedCurvature,
    by_curvature,
    by_ray_curvature,
    of_line_search,
)

# Limit on the restarts of a stalled run from descent steps in other units.
RESTARTS = 10
# A step whose slope rounding in doubles hides is at the floor if it is shorter than this many units
# in the last place of ‖x‖.
FLOOR_ULPS = 8.0


@dataclass(frozen=True, slots=True)
class NormArmijo:
    """Steps of length at most δ̄ along a gradient-related direction, without Lipschitz constants.

    D = d = δ̄, so that every step ends its epoch. With the `degree` of a polynomial the line search
    is exact; with `certified` the descent of every step is proved. `chosen_for` is the reason for a
    direction that was not requested. Variables marked as `logarithmic`, (n,), move by at most
    LOGARITHMIC_MOVE in a step. With `interpolates` rejected steps are shortened by interpolation
    and steep ones lengthened; with `grows` δ̄ grows after steps of full length.
    With `gtol` the run ends by the test of `PredictedDecrease`.
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
    interpolates: bool = False
    grows: bool = False
    gtol: float | None = None

    name = "norm-armijo"

    @property
    def own_test(self) -> bool:
        return self.gtol is not None

    @property
    def linearises(self) -> bool:
        return DIRECTIONS[self.direction].linearises

    @property
    def second_descent(self) -> NormArmijo | None:
        return replace(self, **SECOND_DESCENT) if self.chosen_for else None

    @property
    def parameters(self) -> dict[str, float | str]:
        search = "certified" if self.certified else "" if self.degree is None else "exact"
        search = "interpolating" if self.interpolates else search
        more = {"line_search": search, "chosen_for": self.chosen_for}
        return {
            "delta_bar": self.delta_bar,
            "theta": self.theta,
            "sigma": self.sigma,
            "alpha": self.alpha,
            "direction": self.direction,
            "initial_step": self.initial_step,
            **{name: text for name, text in more.items() if text},
        }

    @property
    def relaxation(self) -> float:
        """The factor by which certified steps are shorter than minimisers of their majorants."""
        return RELAXATION if self.direction == "gradient" else 1.0

    @property
    def inequalities(self) -> tuple[TheoremInequality, ...]:
        # Along −g the cosine is 1, whatever alpha the direction has.
        alpha = 1.0 if self.direction == "gradient" else self.alpha
        if self.certified:
            return (
                *of_line_search(self.sigma, alpha),
                by_ray_curvature(alpha, descent_left(self.relaxation)),
            )
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
        self._logarithmic = method.logarithmic
        self._reach = method.delta_bar
        self._test = None if method.gtol is None else PredictedDecrease(start, method.gtol)
        self._ray = None
        if method.degree is not None:
            self._ray = Ray(evaluate, method.degree, method.sigma, start)
        self._v = np.empty_like(start.x)
        self._pace = Pace()
        # Whether a compiled loop found that the proposed direction meets the test.
        self._meets_test = False
        self._compiled: CompiledSteps | None = None
        direction = self._direction.in_c
        if method.interpolates and self._ray is None and direction is not None:
            own = (len(start.x), direction.memory, method.logarithmic)
            self._compiled = compiled_steps(evaluate, *own)
            self._connect()
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
        self._interpolating = (
            InterpolatingSearch(self._evaluate, resolution, start, method.sigma)
            if method.interpolates
            else None
        )
        self._certified = None
        if method.certified:
            values = ProvedValues(self._evaluate, start, method.theta, method.sigma)
            own = (method.sigma, method.relaxation, values)
            self._certified = CertifiedSearch(self._evaluate, start, *own)

    def _connect(self) -> None:
        """Let the direction of the run use compiled linear algebra."""
        direction, compiled = self._direction.in_c, self._compiled
        if compiled and direction is not None:
            direction.estimate.connect(compiled.inverse_hessian, compiled.hessians)
            # The first step takes one, and the test at the end.
            compiled.has_products()

    def enter(self, region: EpochRegion) -> EpochRegion:
        return widened(region, self._reach)

    def advance(self, current: Iterate, region: EpochRegion, limits: BlockLimits) -> Block | None:
        """Plain steps by a compiled loop; None if there is none, or the next is not plain."""
        compiled, stagnation = self._compiled, self._stagnation
        if compiled is None or self._reach != region.D or stagnation.probe.due:
            return None
        block = self._block(compiled, current, limits) if self._pace.is_due() else None
        # Where one kind of steps gives up before any, another may go on.
        if block is None and compiled.loop.gave_up:
            block = self._block(compiled, current, limits)
        return block

    def _block(
        self, compiled: CompiledSteps, current: Iterate, limits: BlockLimits
    ) -> Block | None:
        direction, loop = self._direction.in_c, compiled.loop
        assert direction is not None
        assert self._interpolating is not None
        loop.gave_up = False
        if not direction.store(loop, current):
            self._pace.pass_over()
            return None
        kind = self._direction.kind
        loop.alpha, loop.reach, loop.grows = self._method.alpha, self._reach, self._method.grows
        if self._test is not None:
            self._test.store(loop)
        self._interpolating.store(loop)
        self._stagnation.store(loop)
        steps = compiled.run(direction.compiled, current, limits)
        self._pace.record(steps, bool(loop.was_left))
        self._meets_test = bool(loop.meets_test)
        if not steps:
            if not loop.gave_up:
                self._pace.is_due()
            if self._meets_test or loop.computed or loop.gave_up:
                direction.load(loop, current)
            return None
        block = compiled.block(steps, kind)
        direction.load(loop, block.point)
        if loop.computed:
            block = replace(block, kind=self._direction.kind)
        self._interpolating.load(loop)
        self._stagnation.load(loop, compiled.best)
        self._reach, self.delta, self._memory.delta = loop.reach, loop.delta, loop.delta
        return block

    def step(self, current: Iterate, region: EpochRegion) -> AcceptedStep | Halt:
        """Step to x + δv with δ from the line search. Paper: alg:lsearch."""
        v, D = self._v, region.D
        stagnation = self._stagnation
        if stagnation.probe.due:
            halt = self._stagnation.look_far(current, np.multiply(v, self.delta, out=self._s))
            if halt:
                return halt
        test, meets = self._test, self._meets_test
        self._meets_test = False
        if test and meets and self._compiled and self._compiled.loop.confirmed:
            return test.end(current, self._compiled.loop.decrease, self._hessian)
        if not meets:
            vnorm, slope, own = self._related(current, v)
        if test is not None and (meets or own):
            if not meets and current.gnorm <= test.steepest:
                meets = test.met(current, v, -0.5 * vnorm * slope, self._curvatures)
            if meets:
                vnorm, slope, own, halt = self._confirmed(current, v, test)
                if halt is not None:
                    return halt
            noise = stagnation.resolution.noise(current)
            stagnation.at_floor = -0.5 * vnorm * slope <= noise
        in_units = own and slope > -self._method.alpha * current.gnorm
        if self._certified is not None:
            return self._proved(self._certified, current, vnorm, D, own, in_units)
        longest = self._longest(v, vnorm, D)
        first = self._ray and self._ray.minimiser(current, v, vnorm, slope, longest)
        first = first or self._initial_step(longest, self._memory)
        self.trials = 0
        accepted: AcceptedTrial | None = None
        predicting = self._direction.predicting
        if own and predicting is not None and predicting.bends:
            accepted = self._bent(current, predicting, D)
            vnorm = norm(v)
            if vnorm > 0.0:
                slope = slope_along(current.g, current.gnorm, v, vnorm)
                longest = self._longest(v, vnorm, D)
                first = min(first, longest)
        # Steps that were shortened until they underflow leave no direction.
        if accepted is None and vnorm > 0.0:
            accepted = self._searched(current, vnorm, slope, first, longest)
            small = own and -0.5 * vnorm * slope <= math.sqrt(EPS) * abs(current.f)
            noise_at = stagnation.resolution.measure_nearby
            if accepted is None and small and noise_at(self._evaluate, current):
                accepted = self._searched(current, vnorm, slope, first, longest)
        if accepted is None:
            again = own or first < longest
            vnorm = self._direction.fallback(current, v)
            longest = first = self._longest(v, vnorm, D)
            accepted = self._last_resort(current, vnorm, longest, again)
            own = in_units = False
        if accepted is None or stagnation.after(accepted.point, accepted.delta * vnorm / D):
            return self._restart_or_halt(current, D)
        self.delta, self.delta_first = accepted.delta, first
        full_length = accepted.delta >= longest * (1.0 - 4.0 * EPS)
        taken = self._accept(current, accepted, vnorm, full_length, own)
        return replace(taken, in_units=True) if in_units else taken

    def _searched(
        self, current: Iterate, vnorm: float, slope: float, first: float, longest: float
    ) -> AcceptedTrial | None:
        """A search along the direction of this step from the first trial δ."""
        if self._interpolating is None:
            accepted = self._search.search(current, self._v, vnorm, slope, first)
            self.trials += self._search.trials
            return accepted
        search = self._interpolating
        accepted = search.search(current, self._v, vnorm, slope, first, longest)
        self.trials += search.trials
        return accepted

    def _bent(self, current: Iterate, direction: Predicting, D: float) -> AcceptedTrial | None:
        """A step along a direction that bends after rejected trials; None if none is accepted.

        Each trial is of the whole proposal, or of its part within δ̄.
        """
        search, v = self._interpolating, self._v
        if search is None:
            return None
        for _ in range(BENDS):
            vnorm = norm(v)
            if not 0.0 < vnorm <= LARGEST:
                return None
            slope = slope_along(current.g, current.gnorm, v, vnorm)
            delta = min(1.0, self._longest(v, vnorm, D))
            accepted = search.search(current, v, vnorm, slope, delta, delta, once=True)
            if accepted is None and self._stagnation.measures_floor(current):
                accepted = search.search(current, v, vnorm, slope, delta, delta, once=True)
            self.trials += search.trials
            if accepted is not None:
                return accepted
            direction.bend(current, v)
        return None

    def _longest(self, v: Vector, vnorm: float, D: float) -> float:
        """The largest δ of a step δv, v (n,), to the boundary or to the limit of a variable."""
        longest = min(D / vnorm, LARGEST)
        marked = self._logarithmic
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
        proposed = self._initial_step(longest, self._memory)
        accepted = search.search(current, self._v, vnorm, longest, proposed)
        self.trials = search.trials
        if accepted is None and own:
            vnorm, own, in_units = self._direction.fallback(current, self._v), False, False
            longest = self._longest(self._v, vnorm, D)
            accepted = search.search(current, self._v, vnorm, longest)
            self.trials += search.trials
        if accepted is None and search.unproved:
            return hidden(self._stagnation.explain_search(current, D)[0], search.unproved)
        if accepted is not None:
            length = accepted.delta * vnorm
            at_floor = search.at_floor and length <= FLOOR_ULPS * EPS * norm(current.x)
            self._stagnation.at_floor = at_floor
        if accepted is None or self._stagnation.after(accepted.point, accepted.delta * vnorm / D):
            return self._restart_or_halt(current, D)
        self.delta = self.delta_first = accepted.delta
        full_length = accepted.delta >= longest * (1.0 - 4.0 * EPS)
        taken = self._accept(current, accepted, vnorm, full_length, own)
        if search.step is None:
            return replace(taken, in_units=True) if in_units else taken
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
        self._connect()
        if self._direction.predicting is not None:
            self._direction.predicting.recover()
        return AcceptedStep(new, norm(way.step), at_boundary=False, in_units=True)

    def _related(
        self, at: Iterate, v: Vector, propose: Propose | None = None
    ) -> tuple[float, float, bool]:
        """The direction at a point, as `gradient_related`."""
        if self._method.direction == "gradient":
            return self._direction.propose(at, v), -at.gnorm, False
        return gradient_related(self._direction, self._method.alpha, at, v, propose)

    @property
    def _curvatures(self) -> Vector | None:
        predicting = self._direction.predicting
        return None if predicting is None else predicting.curvatures

    @property
    def _hessian(self) -> Vector | None:
        predicting = self._direction.predicting
        return None if predicting is None else predicting.hessian

    def _confirmed(
        self, at: Iterate, v: Vector, test: PredictedDecrease
    ) -> tuple[float, float, bool, Halt | None]:
        """The direction by the Hessian at a point that meets the test, and the end if it does then.

        An estimate of the Hessian may not yet know a direction in which f is flat.
        """
        predicting = self._direction.predicting
        if predicting is None:
            return *self._related(at, v), None
        vnorm, slope, own = self._related(at, v, predicting.confirm)
        decrease = -0.5 * vnorm * slope
        if not test.met(at, v, decrease, self._curvatures):
            return vnorm, slope, own, None
        return vnorm, slope, own, test.end(at, decrease, self._hessian)

    def _last_resort(
        self, at: Iterate, vnorm: float, longest: float, again: bool
    ) -> AcceptedTrial | None:
        """Search along −g from the full length, and once more if f is noisier than assumed.

        Without `again` the first search is skipped, since it was just made.
        """
        accepted = self._along_gradient(at, vnorm, longest) if again else None
        if accepted is None and self._stagnation.resolution.measure(
            self._evaluate, at, longest * vnorm
        ):
            accepted = self._along_gradient(at, vnorm, longest)
        return accepted

    def _along_gradient(self, at: Iterate, vnorm: float, longest: float) -> AcceptedTrial | None:
        accepted = self._search.search(at, self._v, vnorm, -at.gnorm, longest)
        self.trials += self._search.trials
        return accepted

    def _accept(
        self, old: Iterate, accepted: AcceptedTrial, vnorm: float, full_length: bool, own: bool
    ) -> AcceptedStep:
        new, kind = accepted.point, self._direction.kind
        if kind and not own:
            kind = "gradient"
        self._memory.delta = accepted.delta
        self._stagnation.probe.count(full_length)
        if self._method.grows and full_length:
            self._reach = grown(self._reach, accepted.delta * vnorm)
        if self._wants_pairs:
            s = np.subtract(new.x, old.x, out=self._s)
            y = np.subtract(new.g, old.g, out=self._y)
            pair = SecantPair(s, y, float(s.dot(y)), norm(s), norm(y), own)
            self._memory.pair = pair
            self._direction.learn(pair)
        length = accepted.delta * vnorm
        return AcceptedStep(new, length, full_length, accepted.by_rounding, False, False, kind)
