"""Long steps along a curved valley: an extrapolation of the path, and a return to the floor.

In a narrow valley that curves, steps along any direction are short: after one of length t the floor
is missed by O(t²). A run then takes thousands of steps for a way that a curve would go in a few.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from slomodel.solve.directions.newton_cg import MOST_PRODUCTS, NewtonCG
from slomodel.solve.norms import Vector, norm
from slomodel.solve.objective import BudgetSpent, Evaluator
from slomodel.solve.run.history import Recorder
from slomodel.solve.run.run_state import RunState
from slomodel.solve.stagnation.resolution import ROUNDING, spread_nearby
from slomodel.solve.stagnation.unbounded import FAR, NEARLY, TENDS
from slomodel.solve.status import Status
from slomodel.solve.subroutine import Halt, Iterate

# A run is slow if f fell, in the second half of at least this many steps, by less than this part of
# |f| and of its whole fall.
MANY, SLOW = 256, 0.5
# Work for extrapolations, as a part of that of the run so far, divided by LESS for every time that
# they were in vain.
PART, LESS = 0.25, 2.0
# The first extrapolation is by the last displacement, each next one by FARTHER times the one
# before, or by NEARER times it after a failure, down to NEAREST.
FARTHER, NEARER, NEAREST = 2.0, 0.25, 0.05
# Newton steps back to the floor, and the trials of each, every one SHORTER than the last.
RETURN, TRIALS, SHORTER = 12, 8, 0.25
# Their part of the predicted decrease, and the relative residuals of the first two, and of the
# others.
DESCENT, LOOSE, TIGHT = 0.1, 0.1, 0.01
# The floor is reached where the predicted decrease is below this part of what the step gains.
ON_FLOOR = 1e-3
# What an extrapolation gains has to be this many times the rounding error of f at its end: far out
# in a steep valley, where that grows, no step could gain anything.
CLEAR = 10.0
# The valley has no end if f fell at this many extrapolations in a row, each at least as long as the
# way before it.
ENDLESS = 40


def is_slow(recorder: Recorder, run: RunState, sign: float, k: int) -> bool:
    """Whether a run of `auto` has made slow progress in the second half of k steps."""
    if k < MANY or not run.leaves_saddles:
        return False
    f = run.current.f
    return sign * recorder.value(k // 2) - f <= SLOW * min(abs(f), run.first_f - f)


@dataclass(frozen=True, slots=True)
class Across:
    """Products with the restriction of the Hessian to the complement of a unit vector u (n,)."""

    evaluate: Evaluator
    u: Vector

    @property
    def eps(self) -> float:
        return self.evaluate.eps

    def hvp(self, x: Vector, v: Vector, out: Vector) -> None:
        self.evaluate.hvp(x, v, out)
        out -= float(self.u.dot(out)) * self.u


def along_valley(
    evaluate: Evaluator, at: Iterate, gone: Vector, in_vain: int
) -> tuple[Iterate | None, bool]:
    """A lower point farther along a path whose last part was `gone` (n,), and whether it ends.

    Every point is a minimum of f on a hyperplane across the path. It is None where that is not
    lower, as `in_vain` times before; the flag is True where f fell for ENDLESS extrapolations of
    growing length.
    After Gelfand & Tsetlin, The principle of nonlocal search (1961).
    """
    own, evaluate.own_gradient = evaluate.own_gradient, None
    most = evaluate.weighted_work * (1.0 + PART * LESS**-in_vain)
    best: Iterate | None = None
    factor, falls = 1.0, 0
    with suppress(BudgetSpent):
        while evaluate.weighted_work < most and falls < ENDLESS and factor >= NEAREST:
            start, step = best or at, factor * gone
            end = _floor(evaluate, start, step, most)
            if end is not None and _gains_clearly(evaluate, start.f - end.f, end):
                falls = falls + 1 if norm(end.x - start.x) >= norm(gone) else 0
                gone = end.x - start.x
                best, factor = end, FARTHER
            else:
                factor, falls = factor * NEARER, 0
    evaluate.own_gradient = own
    return best, falls >= ENDLESS


def _gains_clearly(evaluate: Evaluator, gain: float, end: Iterate) -> bool:
    """Whether a gain at the end of an extrapolation is far above the rounding error of f there."""
    if not gain > ROUNDING * evaluate.eps * abs(end.f):
        return False
    return gain > CLEAR * spread_nearby(evaluate, end)


def _floor(evaluate: Evaluator, at: Iterate, step: Vector, most: float) -> Iterate | None:
    """The minimum of f on the hyperplane across a step (n,) at its end; None if f is not finite."""
    length = norm(step)
    if not 0.0 < length < math.inf:
        return None
    across = Across(evaluate, step / length)
    end = Iterate(at.x + step, 0.0, np.empty_like(step), 0.0)
    end.f, end.gnorm = evaluate.value(end.x), evaluate.gradient(end.x, end.g)
    newton, v = None, np.empty_like(step)
    for k in range(RETURN):
        if not (math.isfinite(end.f) and math.isfinite(end.gnorm)):
            return None
        g = end.g - float(across.u.dot(end.g)) * across.u
        here = Iterate(end.x, end.f, g, norm(g))
        if here.gnorm == 0.0 or evaluate.weighted_work >= most:
            break
        newton = newton or NewtonCG(across, here, length)
        left = 0.5 * (most - evaluate.weighted_work)
        products = int(min(2 * len(v), MOST_PRODUCTS, max(left, 1.0)))
        newton.truncated(here, v, LOOSE if k < 2 else TIGHT, products)
        slope = float(g.dot(v))
        rounding = ROUNDING * evaluate.eps * abs(end.f)
        if -slope <= ON_FLOOR * abs(at.f - end.f) + rounding:
            break
        factor = 1.0
        for _ in range(TRIALS):
            f = evaluate.value(end.x + factor * v)
            if f <= end.f + DESCENT * factor * slope:
                break
            factor *= SHORTER
        else:
            break
        end = Iterate(end.x + factor * v, f, np.empty_like(v), 0.0)
        end.gnorm = evaluate.gradient(end.x, end.g)
    return end


def where_ended(
    evaluate: Evaluator, at: Iterate, start: Vector, status: Status, least: float
) -> Halt | None:
    """The Halt, if any, of a run that ended in a valley on the way from x0 (n,).

    If f falls by `least` where the way is doubled, rounding hides the descent that is left.
    Otherwise it has nearly reached a limit if it falls ever less where the way is doubled twice.
    """
    falls, far, gone = [], at, at.x - start
    for _ in range(2):
        end = _floor(evaluate, far, gone, math.inf)
        if end is None:
            return None
        falls.append(far.f - end.f)
        far, gone = end, end.x - start
    if falls[0] > least:
        return Halt(Status.line_search_stalled, _still_falls(evaluate, at, start))
    shrinks = falls[0] > falls[1] > ROUNDING * evaluate.eps * abs(at.f)
    is_far = norm(at.x - start) >= FAR * max(1.0, norm(start))
    if status in (Status.converged, Status.line_search_stalled) and shrinks and is_far:
        detail = f"{TENDS} {_still_falls(evaluate, at, start)}"
        return Halt(Status.converged, detail, sentence=NEARLY)
    return None


def without_end(evaluate: Evaluator, at: Iterate, start: Vector) -> Halt:
    """The end of a run that follows a valley without end from x0 (n,)."""
    return Halt(Status.no_minimum, _still_falls(evaluate, at, start))


def _still_falls(evaluate: Evaluator, at: Iterate, start: Vector) -> str:
    way = "rises" if evaluate.sign < 0.0 else "falls"
    return (
        f"The objective still {way} along a curved valley, on which the run has come to a distance "
        f"of {norm(at.x - start):.3g} from its start."
    )
