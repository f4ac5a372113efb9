"""Evidence that f is unbounded below."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from slomodel.solve.compiled.loop import LoopState
from slomodel.solve.norms import EPS, Vector, norm
from slomodel.solve.objective import Evaluator
from slomodel.solve.sets.convex_set import Set
from slomodel.solve.status import Status
from slomodel.solve.subroutine import Halt, Iterate

# Consecutive steps of full length before f is probed farther out; doubled after each probe, so that
# probing costs at most about as much as the steps.
FIRST_PROBE = 64
# A function that falls from −1/eps, in units of f(x0), to the power ENDLESS of that does so without
# end: f = −x + 1e-18x² has its minimum between the two. While each doubling lowers f by more than
# the one before, distances are doubled LEAPS at a time after DOUBLINGS.
ENDLESS = 6
DOUBLINGS, LEAPS = 80, 16
# The power of −1/eps below which a run counts as unbounded along any path.
ANY_PATH = 3
# −log(x) never does: it decreases by the same amount with every doubling of the distance, up
# to the largest double. These are the number of such doublings that shows this, and the most that
# are tried.
LEAST_DOUBLINGS = 60
MOST_DOUBLINGS = 1000
# If f is bounded below, its decreases per doubling are summable and so shrink: by half each for
# 1/x, like 1/j² for 1/log(x). f counts as unbounded if those in the last quarter of the doublings
# are at least this fraction of those in the second; it is 0.43 for terms 1/j, as of −log(log(x)).
STEADY = 0.75
# A decrease below this fraction of the largest shows at once that the decreases shrink.
SHRUNK = 1e-9
# A decrease of up to this many eps·|f| may be rounding.
ROUNDINGS = 64.0
# A direction is tried unchanged, and rounded to multiples of 1/PARTS of its largest element: small
# elements that stem from converged variables would grow with the distance.
PARTS = 16.0
# A run still advances if, while its number of steps doubled, it moved by at least this fraction of
# its previous distance. Fixed step sizes reach 0.41 for −log(x) and 0.26 for 1/x, and ever less
# where they converge.
ONWARD = 0.25
# The distance at which a set is tested for being bounded.
FAR_OUT = 1e100
# A run that ends this far from its start, in units of max(1, ‖x0‖), may be diverging.
FAR = 100.0
# Beyond that distance in the same units it is followed on, however short its steps have become.
LOST = 1e6
# A run follows a valley without end if it is that far out, and at VALLEY_DOUBLINGS consecutive
# doublings of its steps f fell by at most BARELY of |f| and of its whole decrease, while in all the
# distance grew by the factor FARTHER. Towards a minimum it would tend to a constant.
VALLEY_DOUBLINGS, BARELY, FARTHER = 3, 1e-4, 1.5
# A stationary point is not a minimum if beyond it f falls for this many doublings of the distance,
# and then never rises: f tends to a limit that it does not reach, as 1/x and exp(−x) do.
LEAST_FALLS = 3
# Where f rises at a step halved fewer times than this, the point may be a minimum all the same.
BARRIERS = 20
# Halvings of the way from the start in which those doublings are looked for.
MOST_HALVINGS = 60
# Within this part of the decrease so far, f has reached its limit, and the run has converged. Runs
# on exp(−x), and on losses of data that can be separated, end there, since f is as small as its
# gradient; on 1/x, where f is the root of its gradient, a test of the gradient ends them before.
REACHED = 1e-5


TENDS = "It tends to a limit as the variables grow without end, and has nearly reached it."
NEARLY = "The objective has nearly reached a limit."
STATIONARY = "The point found is stationary to the tolerance."


def depth(evaluate: Evaluator, first_f: float, n: int) -> float:
    """The value below which f may be unbounded: −1/eps, in units of max(1, |f(x0)|), for x0 (n,).

    In a bounded set, and for a sum of squares, it is −inf: f is bounded below, however low.
    """
    if evaluate.is_bounded_below:
        return -math.inf
    if evaluate.within is not None and is_bounded(evaluate.within, n):
        return -math.inf
    return -max(1.0, abs(first_f)) / EPS


def is_bounded(within: Set, n: int) -> bool:
    """Whether the points nearest to far ones, ±FAR_OUT(1, …, 1) in ℝⁿ, are not far themselves.

    Unbounded boxes, cones of matrices and products with them have far points in one of these
    directions.
    """
    nearest = np.empty(n)
    for far in (FAR_OUT, -FAR_OUT):
        within.project(np.full(n, far), nearest)
        if not norm(nearest) < math.sqrt(FAR_OUT):
            return False
    return True


def falls_without_end(evaluate: Evaluator, at: Iterate, step: Vector, lowest: float) -> Halt | None:
    """Follow `at` + step, 2·step, 4·step, … (n,) while f decreases; a Halt if f is unbounded.

    In a set these are the projections of the points. The evidence is a value far below `lowest`, or
    decreases that do not shrink until x or f overflows.
    """
    last, factor = at.f, 1.0
    endless = lowest / EPS ** (ENDLESS - 1)
    falls: list[float] = []
    clear = 0
    for j in range(MOST_DOUBLINGS):
        f = evaluate.value(evaluate.inside(at.x + factor * step))
        if f < endless:
            at_end = factor if f > -math.inf else 0.5 * factor
            value = f if f > -math.inf else last
            return Halt(Status.unbounded, _shown(evaluate, value, at_end * norm(step)))
        if not math.isfinite(f):
            break
        falls.append(last - f)
        if not falls[-1] > SHRUNK * max(falls):
            return None
        clear = clear + 1 if falls[-1] > ROUNDINGS * evaluate.eps * abs(f) else 0
        last, factor = f, 2.0 * factor
        if j > DOUBLINGS and f < lowest and falls[-1] > falls[-2]:
            factor *= 2.0 ** (LEAPS - 1)
    if clear < LEAST_DOUBLINGS or not _steady(falls):
        return None
    shown = _shown(evaluate, last, 0.5 * factor * norm(step)).removesuffix(".")
    way = "rose" if evaluate.sign < 0.0 else "fell"
    detail = f"{shown}: it {way} by {falls[-1]:.3g} in the last of {len(falls)} doublings of that"
    return Halt(Status.unbounded, f"{detail} distance, and no less in those before.")


Way = Callable[[float], Vector]
"""The point (n,) at a multiple t of the way so far, beyond the point at t = 0."""


def straight(at: Iterate, gone: Vector) -> Way:
    """The straight way from the start, `gone` (n,), and beyond."""
    return lambda t: at.x + t * gone


def scaled(at: Iterate, start: Vector) -> Way | None:
    """The way on which variables that have grown far from x0 (n,) grow on, in proportion.

    Those that have vanished vanish on, as in products of both. None if none has grown.
    """
    size, first = np.abs(at.x), np.abs(start)
    powers = 1.0 * (size >= FAR * np.maximum(1.0, first)) - (FAR * size <= first)
    return (lambda t: at.x * (1.0 + t) ** powers) if powers.max() > 0.0 else None


def falls_to_a_limit(evaluate: Evaluator, at: Iterate, way: Way, gained: float) -> Halt | None:
    """A Halt if f only falls along the way from the start, and beyond its end.

    It falls at LEAST_FALLS doublings of the distance or more, and then to the end or until it is
    constant up to rounding, and rises nowhere. Where it is constant from the point on, the
    doublings are those before. `gained` is the decrease so far.
    """
    least = ROUNDINGS * evaluate.eps * gained  # below it the squares of roundings count as well
    noise = _noise(evaluate, at.f, least)
    nearer = (evaluate.inside(way(0.5**k)) for k in range(1, BARRIERS))
    if any(evaluate.value(x) > at.f + noise for x in nearer):
        return None  # a local minimum
    last, factor, falls = at.f, 1.0, 0
    while norm(way(factor) - at.x) < FAR_OUT:
        f = evaluate.value(evaluate.inside(way(factor)))
        noise = _noise(evaluate, f, least)
        if last - f > noise:
            last, factor, falls = f, 2.0 * factor, falls + 1
        elif abs(f - last) <= noise:
            factor *= 2.0**LEAPS
        else:
            return None
    if falls < LEAST_FALLS and falls + _falls_before(evaluate, at, way, least) < LEAST_FALLS:
        return None
    shown = _shown(evaluate, last, norm(way(0.5 * factor) - at.x))
    if at.f - last <= REACHED * gained:
        return Halt(Status.converged, f"{TENDS} {shown}")
    return Halt(Status.no_minimum, f"{STATIONARY} {shown}")


def _noise(evaluate: Evaluator, f: float, least: float) -> float:
    return ROUNDINGS * evaluate.eps * max(abs(f), least)


def _falls_before(evaluate: Evaluator, at: Iterate, way: Way, least: float) -> int:
    """At how many doublings of the distance f fell on the way to x, up to LEAST_FALLS."""
    after, falls = at.f, 0
    for k in range(1, MOST_HALVINGS):
        f = evaluate.value(evaluate.inside(way(0.5**k - 1.0)))
        noise = _noise(evaluate, f, least)
        if not f >= after - noise or falls == LEAST_FALLS:
            break
        falls += f > after + noise
        after = f
    return falls


def _shown(evaluate: Evaluator, f: float, distance: float) -> str:
    return f"It is {evaluate.sign * f:.3g} at a distance of {distance:.3g} from the point."


def _steady(falls: list[float]) -> bool:
    """Whether LEAST_DOUBLINGS or more decreases per doubling do not shrink."""
    quarter = len(falls) // 4
    before, after = falls[quarter : 2 * quarter], falls[-quarter:]
    return min(after) >= STEADY * float(np.median(before))


class FarProbe:
    """Probes the direction of many consecutive full steps for evidence that f is unbounded below.

    With steps of at most δ̄ alone, it would take 1/eps steps to show that f = −x is unbounded.
    """

    def __init__(self, evaluate: Evaluator, start: Iterate) -> None:
        self._evaluate = evaluate
        self._start = start.f, len(start.x)
        self._in_a_row = 0
        self._next = FIRST_PROBE

    def count(self, full_length: bool) -> None:
        """Record whether an accepted step had the full length."""
        self._in_a_row = self._in_a_row + 1 if full_length else 0
        if not full_length:
            self._next = FIRST_PROBE

    def store(self, loop: LoopState) -> None:
        """Write the state into that of a compiled loop."""
        loop.in_a_row, loop.next_probe = self._in_a_row, self._next

    def load(self, loop: LoopState) -> None:
        """Read the state after steps of a compiled loop."""
        self._in_a_row, self._next = loop.in_a_row, loop.next_probe

    @property
    def due(self) -> bool:
        return self._in_a_row >= self._next

    def look(self, at: Iterate, step: Vector) -> Halt | None:
        """Follow `at` + step, 2·step, 4·step, … (n,) while f decreases."""
        self._next *= 2
        return falls_without_end(self._evaluate, at, step, depth(self._evaluate, *self._start))


class Drift:
    """Extrapolates the path of a run, whatever its steps, for evidence that f is unbounded below.

    This is done whenever the number of steps has doubled and the run still advances (ONWARD), and
    at an end far from the start. On −log(x) fixed-step methods take shrinking steps, and Newton's
    method reaches points where the gradient is below any tolerance. `next` is the step of the next
    test.
    """

    def __init__(self, evaluate: Evaluator, start: Vector) -> None:
        self._evaluate = evaluate
        self._start = start.copy()
        self._mark = start.copy()
        self.gone = np.zeros_like(start)
        self._f = math.inf
        self._distances = np.zeros(VALLEY_DOUBLINGS + 1)
        self._in_valley = 0
        self._is_bounded = evaluate.within is not None and is_bounded(evaluate.within, len(start))
        self.next = FIRST_PROBE

    @property
    def start(self) -> Vector:
        """A copy of x0 (n,)."""
        return self._start.copy()

    def may_diverge(self, at: Iterate) -> bool:
        """Whether a point is far from x0, and no set is in the way."""
        return not self._is_bounded and self._is_far(at)

    def _is_far(self, at: Iterate) -> bool:
        return norm(at.x - self._start) >= FAR * max(1.0, norm(self._start))

    def after(self, k: int, at: Iterate, lowest: float) -> Halt | None:
        """The halt, if any, after step k, along the displacement since the last test."""
        if k < self.next:
            return None
        self.next = 2 * k
        self.gone = gone = at.x - self._mark
        before = self._mark - self._start
        np.copyto(self._mark, at.x)
        onward = norm(gone) >= ONWARD * norm(before) > 0.0
        # So far out, rounding errors of f may allow none but steps that are short for the way.
        if not (onward or norm(before) >= LOST * max(1.0, norm(self._start))):
            return None
        return self._look(at, gone, lowest)

    def in_valley(self, k: int, at: Iterate, first_f: float) -> Halt | None:
        """The halt, if any, at a test of `after`, of a run that follows a valley without end."""
        distances = self._distances
        distances[:-1] = distances[1:]
        distances[-1] = distance = norm(at.x - self._start)
        fell, self._f = self._f - at.f, at.f
        barely = fell <= BARELY * min(abs(at.f), first_f - at.f)
        self._in_valley = self._in_valley + 1 if barely else 0
        far = distance >= FAR * max(1.0, norm(self._start))
        if self._in_valley < VALLEY_DOUBLINGS or not far or distance < FARTHER * distances[0]:
            return None
        way = "rose" if self._evaluate.sign < 0.0 else "fell"
        detail = (
            f"The run follows a valley that leads ever farther away: it has come to a distance of "
            f"{distance:.3g} from its start, and in the last {k // 2:,} steps the objective {way} "
            f"by {fell:.2g}. The point is not stationary."
        )
        return Halt(Status.no_minimum, detail)

    def far_below(self, at: Iterate, lowest: float) -> Halt | None:
        """The halt, if any, at a point where f is below `lowest`, along the way from the start."""
        if at.f < lowest / EPS ** (ANY_PATH - 1):
            return Halt(Status.unbounded, "")
        return self._look(at, at.x - self._start, lowest)

    def where_stalled(self, at: Iterate, lowest: float) -> Halt | None:
        """The halt, if any, at a point where no step gains anything, far from any minimum.

        Far out, rounding errors of f hide the decrease of a step that is short for the way so far.
        """
        if at.gnorm == 0.0:
            return None
        if at.f < lowest:
            return Halt(Status.unbounded, "")
        return self._look(at, at.x - self._start, lowest) if self._is_far(at) else None

    def at_end(self, at: Iterate, lowest: float, gained: float) -> Halt | None:
        """The halt, if any, at a stationary point far from the start, after a decrease."""
        gone = at.x - self._start
        if not self.may_diverge(at):
            return None
        endless = self._look(at, gone, lowest)
        endless = endless or falls_to_a_limit(self._evaluate, at, straight(at, gone), gained)
        return endless or self._at_scaled_limit(at, gained)

    def at_limit(self, at: Iterate, gained: float) -> Halt | None:
        """The halt, if any, at a point far out from which rounding hides that f falls to a limit.

        Along other ways it must not fall.
        """
        found = self._at_scaled_limit(at, gained) if self.may_diverge(at) else None
        return found and (replace(found, sentence=NEARLY) if found.status.success else None)

    def _at_scaled_limit(self, at: Iterate, gained: float) -> Halt | None:
        way = scaled(at, self._start)
        return way and falls_to_a_limit(self._evaluate, at, way, gained)

    def border(self, at: Iterate, gained: float) -> Iterate | None:
        """A lower point farther along the way, up to the border of a bounded set; None if none.

        f has to fall by REACHED of the decrease so far, `gained`. The gradient is not computed.
        """
        gone = at.x - self._start
        if not (self._is_bounded and self._is_far(at)):
            return None
        best, factor = at, 1.0
        while factor * norm(gone) < FAR_OUT:
            x = self._evaluate.inside(at.x + factor * gone)
            f = self._evaluate.value(x)
            if not best.f - f > ROUNDINGS * self._evaluate.eps * abs(f):
                break
            best, factor = Iterate(x, f, np.empty_like(x), math.nan), 2.0 * factor
        return best if at.f - best.f > REACHED * gained else None

    def _look(self, at: Iterate, gone: Vector, lowest: float) -> Halt | None:
        if self._is_bounded:
            return None
        largest = float(np.abs(gone).max(initial=0.0))
        if not 0.0 < largest < math.inf:
            return None
        rounded = np.round(gone * (PARTS / largest)) * (largest / PARTS)
        result = falls_without_end(self._evaluate, at, gone, lowest)
        if result is None and not np.array_equal(rounded, gone):
            result = falls_without_end(self._evaluate, at, rounded, lowest)
            if result is None and largest >= FAR * max(1.0, norm(self._start)):
                # Rounding errors of terms that cancel at `at` would grow with the distance.
                f = self._evaluate.value(self._evaluate.inside(rounded))
                origin = replace(at, x=rounded, f=f)
                result = falls_without_end(self._evaluate, origin, rounded, lowest)
        return result
