"""Steps with which a run goes on from where it has ended, or creeps, to a lower point.

Beyond saddles, maxima and kinks; to the border of a bounded set; along curved valleys; to the end
of another descent from the start.
"""

from __future__ import annotations

import math
from contextlib import suppress

import numpy as np

from slomodel.solve.norms import Vector, norm
from slomodel.solve.objective import BudgetSpent, EvaluationLost, Evaluator
from slomodel.solve.run.kinks import falls_at_a_kink
from slomodel.solve.run.kinks_in_sets import descent_in_a_polyhedron
from slomodel.solve.run.monitor import Monitor
from slomodel.solve.run.run_state import RunState
from slomodel.solve.run.saddle_escape import SaddleWatch
from slomodel.solve.run.second_descent import creeps, second_descent
from slomodel.solve.run.stationary_point import Beyond, falls_beyond
from slomodel.solve.run.valleys import along_valley, where_ended, without_end
from slomodel.solve.stagnation.unbounded import REACHED, Drift
from slomodel.solve.status import Status
from slomodel.solve.subroutine import AcceptedStep, Iterate, Subroutine

# A sum of squares below this fraction of its decrease in the run counts as 0.
SMALL = 1e-6
# The kind of a step of `auto` from a stationary point that is not a minimum.
BEYOND = "beyond a saddle"
# That of a step to the end of another descent.
AGAIN = "second descent"
# That of a step along a curved valley.
ALONG = "along a valley"
STALLED = (Status.precision, Status.line_search_stalled, Status.not_descent)


def continued(
    subroutine: Subroutine,
    evaluate: Evaluator,
    monitor: Monitor,
    run: RunState,
    watch: SaddleWatch | None,
    drift: Drift,
) -> bool:
    """Step to a lower point where the run has ended, lingers or creeps; True if one was found."""
    if watch:
        return left_saddle(watch, monitor, run)
    if run.status is None:
        return run.is_slow and sped_up(subroutine, evaluate, monitor, run, drift)
    return (
        went_beyond(evaluate, monitor, run)
        or went_to_border(evaluate, monitor, run, drift)
        or went_on(evaluate, monitor, run, drift.start)
        or (run.status in STALLED and left_kinks(evaluate, monitor, run))
    )


def has_vanished(evaluate: Evaluator, run: RunState) -> bool:
    """Whether f is a sum of squares that has fallen to a small part of its decrease."""
    room = run.options.gtol**2 * run.so_far.gained
    return evaluate.is_bounded_below and abs(run.current.f) <= room


def look_beyond(evaluate: Evaluator, run: RunState) -> Beyond | None:
    """A lower point beyond the stationary point at which a run has ended; None if none.

    A sum of squares that is about 0 is at its minimum. Where rounding hides the descent near a
    saddle, steps along its negative curvature may be long enough. Nothing is found if the budget is
    exhausted.
    """
    facts = run.facts
    nothing = facts.squares and not facts.signed and abs(run.current.f) <= SMALL * run.so_far.gained
    nothing = nothing and run.so_far.gained > 0.0
    hidden = run.status is Status.precision and facts.smooth and evaluate.within is None
    if nothing or not (run.status is Status.converged or hidden):
        return None
    try:
        if not facts.smooth:
            examined = falls_at_a_kink(evaluate, run.current, run.so_far)
            run.tried = examined.tried
            if examined.lower is not None:
                return examined.lower
        if not facts.curvature:
            return None
        return falls_beyond(
            *(evaluate, run.current, run.so_far, run.hessian),
            is_quadratic=facts.degree is not None and facts.degree <= 2,
            # Values and gradients that only a sentence of the message would need are not worth it.
            in_valleys=run.leaves_saddles,
        )
    except (BudgetSpent, KeyboardInterrupt, EvaluationLost):
        return None


def went_beyond(evaluate: Evaluator, monitor: Monitor, run: RunState) -> bool:
    """Step to a lower point beyond a stationary one at which `auto` has ended; True if it did."""
    if not run.leaves_saddles or monitor.k >= run.options.max_iter:
        return False
    seen = look_beyond(evaluate, run)
    if seen is None:
        return False
    new = Iterate(seen.x, seen.f, np.empty_like(seen.x), 0.0)
    new.gnorm = evaluate.gradient(new.x, new.g)
    if not math.isfinite(new.gnorm):
        return False
    go_on_from(new, monitor, run)
    return True


def went_to_border(evaluate: Evaluator, monitor: Monitor, run: RunState, drift: Drift) -> bool:
    """Step on to the border of a bounded set where f, flat by its gradient, still falls."""
    if run.status is not Status.converged or not run.leaves_saddles:
        return False
    new = None
    if monitor.k < run.options.max_iter:
        with suppress(BudgetSpent, KeyboardInterrupt, EvaluationLost):
            new = drift.border(run.current, run.so_far.gained)
    if new is None:
        return False
    new.gnorm = evaluate.gradient(new.x, new.g)
    if not math.isfinite(new.gnorm):
        return False
    go_on_from(new, monitor, run)
    return True


def sped_up(
    subroutine: Subroutine, evaluate: Evaluator, monitor: Monitor, run: RunState, drift: Drift
) -> bool:
    """Step to the end of a second descent, or along a curved valley; True if that is lower."""
    run.is_slow = False
    if creeps(evaluate, monitor.recorder, run, monitor.k):
        if evaluate.within is not None:
            return left_kinks(evaluate, monitor, run)
        start = Iterate(drift.start, run.first_f, np.empty_like(drift.start), 0.0)
        found = second_descent(subroutine, evaluate, run, start)
        if found is not None:
            go_on_from(found, monitor, run, AGAIN)
            return True
    if not (evaluate.has_products and evaluate.is_smooth) or evaluate.within is not None:
        return False
    return went_along(evaluate, monitor, run, drift.gone, drift.start)


def went_on(evaluate: Evaluator, monitor: Monitor, run: RunState, x0: Vector) -> bool:
    """Step on along a valley where a run has ended on the way; True if f falls clearly.

    Where it falls, but rounding errors are too large for further steps, the run is no success
    (`where_ended`).
    """
    if ALONG not in run.kinds or monitor.k >= run.options.max_iter:
        return False
    if run.status is not Status.converged and run.status not in STALLED:
        return False
    if has_vanished(evaluate, run):
        return False
    gone = run.current.x - x0
    least = REACHED * min(abs(run.current.f), run.so_far.gained)
    with suppress(BudgetSpent, KeyboardInterrupt, EvaluationLost):
        if went_along(evaluate, monitor, run, gone, x0, least):
            return True
        run.halt(where_ended(evaluate, run.current, x0, run.status, least))
    return False


def went_along(
    evaluate: Evaluator,
    monitor: Monitor,
    run: RunState,
    gone: Vector,
    x0: Vector,
    least: float = 0.0,
) -> bool:
    """Step along a curved valley, from the displacement `gone` (n,); True if f falls by `least`."""
    found, endless = along_valley(evaluate, run.current, gone, run.in_vain)
    run.in_vain = run.in_vain + 1 if found is None else 0
    if found is None or not run.current.f - found.f > least:
        return False
    go_on_from(found, monitor, run, ALONG)
    if endless:
        run.halt(without_end(evaluate, found, x0))
    return True


def left_kinks(evaluate: Evaluator, monitor: Monitor, run: RunState) -> bool:
    """Step to the end of a descent among kinks in a polyhedron, once in a run of `auto`."""
    able = run.leaves_saddles and not run.facts.smooth and not run.has_descended_again
    if not able or monitor.k >= run.options.max_iter:
        return False
    run.has_descended_again = True
    found = descent_in_a_polyhedron(evaluate, run.current)
    if found is not None:
        go_on_from(found, monitor, run, AGAIN)
    return found is not None


def left_saddle(watch: SaddleWatch, monitor: Monitor, run: RunState) -> bool:
    """Step along negative curvature if the run lingers or has ended; True if that was possible."""
    lingers = run.status is None and (run.lingers or watch.due(run.current))
    if not (lingers or (run.status is not None and run.status.success)):
        return False
    # A stop that was asked for, or that of max_iter, comes first.
    stops = run.stop_asked or monitor.k >= run.options.max_iter
    run.lingers = lingers and stops
    if stops:
        return False
    result = watch.leave(run.current, None if lingers else run.so_far)
    if result is None:
        if run.status is not None:
            watch.judge(run.current, run.tolerance)
        return False
    go_on_from(result, monitor, run)
    return True


def go_on_from(accepted: Iterate, monitor: Monitor, run: RunState, kind: str = "") -> None:
    """Continue a run that lingered or had ended from a point beyond a saddle, or of this kind."""
    kind = kind or (BEYOND if run.leaves_saddles else "")
    run.status, run.detail, run.remedy, run.sentence = None, "", "", ""
    run.hessian, run.tried = None, ""
    length = norm(accepted.x - run.current.x)
    run.accept(AcceptedStep(accepted, length, at_boundary=True, kind=kind))
    monitor.record(run.current, run.step, run.epoch)
    run.stop_asked = monitor.report(run.current, run.step, run.epoch)
