"""Stagnation: criteria for steps that gain nothing, and for steps that diverge."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from slomodel.solve.compiled.loop import LoopState
from slomodel.solve.directions.direction import IDLE_STEPS
from slomodel.solve.norms import Vector
from slomodel.solve.objective import Evaluator
from slomodel.solve.stagnation.diagnosis import explain_failure, explain_limit
from slomodel.solve.stagnation.in_a_set import explain_in_set
from slomodel.solve.stagnation.resolution import Resolution
from slomodel.solve.stagnation.scaled_descent import WayDown
from slomodel.solve.stagnation.unbounded import FarProbe
from slomodel.solve.subroutine import Halt, Iterate

# ‖g‖ has decreased if it is below this fraction of its value at the last gain.
LOWERED = 0.9
# Steps below this fraction of the longest are negligible: towards a kink f may be halved forever by
# ever shorter steps, along a kink decrease slightly at each step, and with a wrong gradient by one
# ulp at each.
SHORT = 1e-12
# Short steps gain something if f decreases by this fraction of its total decrease and of its value
# at the start, as towards a pole.
STEEP = 1e-3
# ‖g‖ has a new extreme if it is beyond the last one by this relative amount. IDLE_STEPS gradient
# steps lower it by more if the condition number is below 1e11.
DRIFT = 1e-9
# Number of steps without a gain that ends a run where a model of f predicts no resolved decrease.
FLOOR_STEPS = 5


class Gain(Protocol):
    """The criterion for a gain of one kind of steps, with the values at the last gain."""

    def gained(self, point: Iterate, noise: float, fraction: float) -> bool:
        """Whether `point` is a gain; `noise` is the resolution of f there.

        `fraction` is the length of the last step in units of the longest allowed.
        """
        ...


class SearchGain:
    """For line searches, where f always decreases: a clear decrease of ‖g‖ or a resolved one of f.

    The decrease of f counts after a step that is not short, or if it is a large part of the total.
    """

    def __init__(self, start: Iterate, resolution: Resolution) -> None:
        self._resolution = resolution
        self._first_f = self._f = start.f
        self._gnorm = start.gnorm

    def gained(self, point: Iterate, noise: float, fraction: float) -> bool:
        self._resolution.record(point)
        decrease = self._f - point.f
        negligible = fraction <= SHORT and decrease <= STEEP * max(
            self._first_f - point.f, abs(self._first_f)
        )
        gained = (decrease > noise and not negligible) or point.gnorm < LOWERED * self._gnorm
        if gained:
            self._f, self._gnorm = point.f, point.gnorm
        return gained

    def store(self, loop: LoopState) -> None:
        """Write the state into that of a compiled loop."""
        loop.first_f, loop.gain_f, loop.gain_gnorm = self._first_f, self._f, self._gnorm

    def load(self, loop: LoopState) -> None:
        """Read the state after steps of a compiled loop."""
        self._f, self._gnorm = loop.gain_f, loop.gain_gnorm


class RangeGain:
    """For fixed step sizes, which lower ‖g‖ long after f stops changing: any new extreme of ‖g‖."""

    def __init__(self, start: Iterate) -> None:
        self._low = self._high = start.gnorm
        self._f = start.f

    def gained(self, point: Iterate, noise: float, fraction: float) -> bool:
        low, high = self._low * (1.0 - DRIFT), self._high * (1.0 + DRIFT)
        if point.f < self._f - noise and fraction > SHORT:
            self._f, self._low, self._high = point.f, point.gnorm, point.gnorm
            return True
        if low <= point.gnorm <= high:
            return False
        self._low, self._high = min(self._low, point.gnorm), max(self._high, point.gnorm)
        return True


class ChangeGain:
    """For steps along which f may rise: any resolved change of f, or a clear decrease of ‖g‖."""

    def __init__(self, start: Iterate) -> None:
        self._f, self._gnorm = start.f, start.gnorm

    def gained(self, point: Iterate, noise: float, fraction: float) -> bool:
        if abs(point.f - self._f) > noise or point.gnorm < LOWERED * self._gnorm:
            self._f, self._gnorm = point.f, point.gnorm
            return True
        return False


_Gain = TypeVar("_Gain", bound=Gain)


class Stagnation(Generic[_Gain]):
    """Whether a run still gains something, and whether its long steps diverge.

    A run stagnates after `idle_steps` consecutive steps without a gain. Consecutive steps of full
    length suggest that f is unbounded below, which a probe far out confirms or refutes.
    `at_floor` is set where a model of f predicts no decrease beyond the resolution of f.
    """

    def __init__(
        self,
        evaluate: Evaluator,
        start: Iterate,
        gain: _Gain,
        resolution: Resolution,
        idle_steps: int = IDLE_STEPS,
        probe: FarProbe | None = None,
    ) -> None:
        self.resolution = resolution
        self.probe = probe or FarProbe(evaluate, start)
        self._evaluate = evaluate
        self._gain = gain
        self.at_floor = False
        self._has_measured = False
        self._idle = 0
        self._idle_steps = idle_steps

    @staticmethod
    def of_searches(
        evaluate: Evaluator,
        start: Iterate,
        idle_steps: int = IDLE_STEPS,
        probe: FarProbe | None = None,
    ) -> Stagnation[SearchGain]:
        """The stagnation of a line search."""
        resolution = Resolution(start, evaluate.eps)
        gain = SearchGain(start, resolution)
        return Stagnation(evaluate, start, gain, resolution, idle_steps, probe)

    @staticmethod
    def of_fixed_steps(evaluate: Evaluator, start: Iterate) -> Stagnation[RangeGain]:
        """The stagnation of steps whose length a Lipschitz constant determines."""
        return Stagnation(evaluate, start, RangeGain(start), Resolution(start, evaluate.eps))

    @staticmethod
    def of_free_steps(evaluate: Evaluator, start: Iterate) -> Stagnation[ChangeGain]:
        """The stagnation of steps along which f may rise."""
        return Stagnation(evaluate, start, ChangeGain(start), Resolution(start, evaluate.eps))

    def after(self, point: Iterate, fraction: float = 1.0) -> bool:
        """Update with an accepted point; True if the run stagnates.

        `fraction` is the length of the last step in units of the longest allowed.
        """
        gained = self._gain.gained(point, self.resolution.noise(point), fraction)
        self._idle = 0 if gained else self._idle + 1
        return self._idle >= (FLOOR_STEPS if self.at_floor else self._idle_steps)

    def measures_floor(self, at: Iterate) -> bool:
        """Measure the noise of f where a step is first rejected at its resolution.

        True if it was underestimated: searches then try far fewer points.
        """
        if not self.at_floor or self._has_measured:
            return False
        self._has_measured = True
        return self.resolution.measure_nearby(self._evaluate, at)

    def store(self: Stagnation[SearchGain], loop: LoopState) -> None:
        """Write the state of a line search into that of a compiled loop."""
        self.resolution.store(loop)
        self._gain.store(loop)
        self.probe.store(loop)
        loop.idle, loop.idle_steps = self._idle, self._idle_steps

    def load(self: Stagnation[SearchGain], loop: LoopState, best: Iterate | None) -> None:
        """Read the state after steps of a compiled loop; `best` as for `Resolution`."""
        self.resolution.load(loop, best)
        self._gain.load(loop)
        self.probe.load(loop)
        self._idle, self.at_floor = loop.idle, bool(loop.at_floor)

    def look_far(self, at: Iterate, step: Vector) -> Halt | None:
        """After many steps of full length, follow `step` (n,) far out; a Halt if f is unbounded."""
        return self.probe.look(at, step) if self.probe.due else None

    def explain(self, at: Iterate, reach: float, limit: str) -> Halt:
        """Why steps from `at`, whose length `limit` names, gain nothing (`explain_limit`)."""
        if self._evaluate.within is not None:
            return explain_in_set(self._evaluate, self.resolution, at, reach)
        return explain_limit(self._evaluate, self.resolution, at, reach, limit)

    def explain_search(self, at: Iterate, longest: float) -> tuple[Halt, WayDown | None]:
        """Why no step up to `longest` gains anything, and one that does (`explain_failure`)."""
        if self._evaluate.within is not None:
            return explain_in_set(self._evaluate, self.resolution, at, longest), None
        return explain_failure(self._evaluate, self.resolution, at, longest)
