"""Algorithm 1 of the paper: sequential local optimization (alg:Meta)."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace

import numpy as np

from slomodel.solve.constants.source import LipschitzSource
from slomodel.solve.norms import EPS, Vector, norm
from slomodel.solve.objective import BudgetSpent, EvaluationLost, Evaluator
from slomodel.solve.run.blocks import blocks_of
from slomodel.solve.run.checkpoint import Keeper
from slomodel.solve.run.kinks import MOST_UNKNOWNS, falls_at_a_kink, stationary_within
from slomodel.solve.run.kinks_in_sets import descent_in_a_polyhedron
from slomodel.solve.run.monitor import Monitor
from slomodel.solve.run.run_state import RunState
from slomodel.solve.run.saddle_escape import SaddleWatch, saddles_left
from slomodel.solve.run.second_descent import creeps, second_descent
from slomodel.solve.run.stationary_point import Beyond, falls_beyond
from slomodel.solve.run.valleys import along_valley, is_slow, where_ended, without_end
from slomodel.solve.sets.convex_set import Set
from slomodel.solve.stagnation.pole import PoleWatch, unresolved
from slomodel.solve.stagnation.unbounded import REACHED, Drift, depth
from slomodel.solve.status import Status
from slomodel.solve.subroutine import (
    AcceptedStep,
    EpochRegion,
    Halt,
    Iterate,
    Stepper,
    Subroutine,
    Violation,
)

# A sum of squares below this fraction of its decrease in the run counts as 0.
SMALL = 1e-6
# The kind of a step of `auto` from a stationary point that is not a minimum.
BEYOND = "beyond a saddle"
# That of a step to the end of another descent.
AGAIN = "second descent"
# That of a step along a curved valley.
ALONG = "along a valley"
_STALLED = (Status.precision, Status.line_search_stalled, Status.not_descent)


def minimize(
    subroutine: Subroutine,
    evaluate: Evaluator,
    monitor: Monitor,
    run: RunState,
    lipschitz: LipschitzSource | None = None,
    keeper: Keeper | None = None,
    watch: SaddleWatch | None = None,
) -> None:
    """Run epochs τ = 1, 2, … from `run.current.x` until `run.status` is set.

    Ctrl-C, an exhausted budget or a lost objective ends the run at the last accepted point.
    `keeper` writes checkpoints, and restores one at the start if it has one; `watch` leaves
    saddles.
    Paper: alg:Meta.
    """
    try:
        if keeper is None or keeper.saved is None:
            evaluate_start(evaluate, monitor, run)
        elif len(keeper.saved.rows) == 1 and evaluate.own_gradient:
            # The first step uses the Jacobian at the start, which the saved counts contain.
            with suppress(BudgetSpent):
                evaluate.gradient(run.current.x, np.empty_like(run.current.g))
        if run.status is None:
            stepper = subroutine.stepper(evaluate, run.current, run.tolerance)
            constants = lipschitz.start(evaluate, run.options.seed) if lipschitz else None
            drift, pole = Drift(evaluate, run.current.x), PoleWatch(evaluate)
            parts = {
                "run": run,
                "stepper": stepper,
                "constants": constants,
                "watch": watch,
                "drift": drift,
                "pole": pole,
            }
            if keeper:
                keeper.follow(evaluate, monitor, parts)
                # A resumed run that had already ended is tested again under the present options.
                run.status, run.stop_asked = None, False
        while run.status is None:
            if run.region is None and not run.lingers:
                run.region = stepper.enter(subroutine.region(run.current, constants))
                run.first, run.violations_before = monitor.k, run.violations
            goes_on = watch is None and run.certifier is None
            if not run.lingers:
                one_epoch(stepper, evaluate, monitor, run, keeper, drift, pole, goes_on=goes_on)
            elif has_ended(run, monitor.k, evaluate) and keeper:
                keeper.keep(evaluate, monitor, run.current, at_end=True)
            judge_end(evaluate, run, drift, pole)
            if watch:
                left = left_saddle(watch, monitor, run)
            elif run.status is None:
                left = run.is_slow and sped_up(subroutine, evaluate, monitor, run, drift)
            else:
                left = (
                    went_beyond(evaluate, monitor, run)
                    or went_to_border(evaluate, monitor, run, drift)
                    or went_on(evaluate, monitor, run, drift.start)
                    or (run.status in _STALLED and left_kinks(evaluate, monitor, run))
                )
            if left:
                stepper = subroutine.stepper(evaluate, run.current, run.tolerance)
                parts["stepper"] = stepper
    except BudgetSpent as spent:
        # An interrupted search for a lower point does not change how the run ended.
        if run.status is None:
            run.end(spent.status)
    except KeyboardInterrupt:
        run.end(Status.interrupted)
    except EvaluationLost as lost:
        if not math.isfinite(run.current.f):
            raise
        run.end(Status.interrupted, sentence=f"The run ended: {lost.diagnostics[0].message}.")
    run.return_to_best()
    if evaluate.has_own_gradients:
        # The solution has the objective's own gradient, which may differ by rounding.
        evaluate.own_gradient = None
        run.current.gnorm = evaluate.gradient(run.current.x, run.current.g)
    describe_curvature(evaluate, run, watch, monitor.k)


def judge_end(evaluate: Evaluator, run: RunState, drift: Drift, pole: PoleWatch) -> None:
    """Correct the status of a run that has ended at a limit, at a pole or far from anything."""
    if run.status is Status.converged:
        run.halt(drift.at_end(run.current, run.depth, run.so_far.gained))
    elif run.status in _STALLED:
        if run.status is not Status.precision:
            run.halt(drift.where_stalled(run.current, run.depth))
        run.halt(pole.at_end(run.current))
    if run.status is Status.precision and not run.facts.smooth:
        beside_kinks(evaluate, run)
    if run.status is Status.line_search_stalled and is_flat(run, drift.start):
        detail = f"{evaluate.measure} {run.current.gnorm:.3g}.".capitalize()
        run.end(Status.converged, detail, sentence="The point is stationary within rounding.")
    if run.status in (Status.precision, Status.line_search_stalled):
        # Along a valley a run goes where rounding errors may hide all descent that is left.
        size = 0.0 if ALONG in run.kinds else abs(run.first_f)
        size = max(size, abs(run.current.f))
        run.halt(unresolved(evaluate, run.current, size))


def is_flat(run: RunState, x0: Vector) -> bool:
    """Whether the gradient of a stalled run is small, and changes f by rounding over the whole way.

    Small is below the tolerance of the paper, by which runs of `auto` do not end. A loss that
    has fallen to exactly 0 has no digits left by which a search could go on.
    """
    at, gained = run.current, run.so_far.gained
    small = run.options.gtol * min(1.0, max(abs(run.first_f), run.first_gnorm))
    return at.gnorm < small and at.gnorm * norm(at.x - x0) <= EPS * gained


def beside_kinks(evaluate: Evaluator, run: RunState) -> None:
    """Do not claim success at a kink of many unknowns, from which few directions can be tried.

    Along each of them f may change as its gradients imply, up to the next kink.
    """
    if len(run.current.x) <= MOST_UNKNOWNS or evaluate.within is not None:
        return
    with suppress(BudgetSpent, KeyboardInterrupt, EvaluationLost):
        examined = falls_at_a_kink(evaluate, run.current, run.so_far)
        if examined.lower is not None or examined.tried:
            run.end(Status.line_search_stalled, f"{run.detail} {examined.tried}".strip())


def describe_curvature(
    evaluate: Evaluator, run: RunState, watch: SaddleWatch | None, k: int
) -> None:
    """Report what is known about saddles and kinks at the end of a run of k steps."""
    said = ""
    in_set = evaluate.within is not None
    if run.status in (_STALLED if in_set else _STALLED[1:]) and not run.facts.smooth:
        with suppress(BudgetSpent, KeyboardInterrupt, EvaluationLost):
            run.tried = stationary_within(evaluate, run.current)
            if run.status is Status.precision and not run.tried:
                # Beside kinks and bounds f may be flat along the projected gradient alone.
                run.end(Status.line_search_stalled, run.detail)
    if watch and run.status is not Status.unbounded:
        said = watch.verdict
    elif BEYOND in run.kinds:
        said = saddles_left(int(run.kinds[BEYOND][0]))
    elif not (watch or run.leaves_saddles) and k > 0 and evaluate.within is None:
        seen = look_beyond(evaluate, run)
        remedy = "Use method='auto' or second_order=True, or another start."
        said = f"{seen.message(evaluate.sign)} {remedy}" if seen else ""
    run.detail = " ".join(filter(None, (run.detail, said, run.tried)))


def look_beyond(evaluate: Evaluator, run: RunState) -> Beyond | None:
    """A lower point beyond the stationary point at which a run has converged; None if none.

    A sum of squares that is about 0 is at its minimum. Nothing is found if the budget is exhausted.
    """
    facts = run.facts
    nothing = facts.squares and not facts.signed and abs(run.current.f) <= SMALL * run.so_far.gained
    nothing = nothing and run.so_far.gained > 0.0
    if run.status is not Status.converged or nothing:
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
    if run.status is not Status.converged and run.status not in _STALLED:
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


def evaluate_start(evaluate: Evaluator, monitor: Monitor, run: RunState) -> None:
    """Compute f and g at the start, the tolerance, and the value of f that counts as unbounded.

    The scale is s = min(1, max(|f|, ‖g‖)), or 1 if that is 0, so that a flat or tiny f does not
    satisfy the tolerance at once.
    """
    start = run.current
    start.f = evaluate.value(start.x)
    start.gnorm = evaluate.gradient(start.x, start.g)
    monitor.record(start, 0.0, run.epoch)
    if not (math.isfinite(start.f) and math.isfinite(start.gnorm)):
        run.end(Status.nonfinite_start)
        return
    scale = min(1.0, max(abs(start.f), start.gnorm)) or 1.0
    run.tolerance = run.options.gtol * (scale if run.options.scaled else 1.0)
    if run.own_test:
        run.tolerance = 0.0
    run.depth = run.examined = depth(evaluate, start.f, len(start.x))
    run.first_f, run.first_gnorm, run.first_size = start.f, start.gnorm, norm(start.x)
    run.stop_asked = monitor.report(start, 0.0, run.epoch)


def one_epoch(
    stepper: Stepper,
    evaluate: Evaluator,
    monitor: Monitor,
    run: RunState,
    keeper: Keeper | None = None,
    drift: Drift | None = None,
    pole: PoleWatch | None = None,
    *,
    goes_on: bool = False,
) -> None:
    """Iterate in the epoch's set until x_{k+1} lies in its margin or the run ends.

    For the ball B(x₀^τ, D) the margin is ‖x_{k+1} − x₀^τ‖ ∈ [D−d, D]. With `goes_on`, epochs of one
    step without constants follow each other at once: only D of their sets is used.
    """
    assert run.region is not None
    goes_on = goes_on and run.region.is_one_free_step
    blocks = blocks_of(stepper, monitor, run, drift, pole) if goes_on else None
    try:
        while True:
            ended = has_ended(run, monitor.k, evaluate)
            if keeper:
                keeper.keep(evaluate, monitor, run.current, at_end=ended)
            if ended or run.is_slow:
                break
            several = blocks.advance() if blocks else None
            taken = several or stepper.step(run.current, run.region)
            if isinstance(taken, Violation):
                run.region = stepper.enter(inflated(run.region, run.current))
                run.violations += 1
                continue
            if isinstance(taken, Halt):
                run.halt(taken)
                break
            old, ends = run.current, goes_on or ends_epoch(taken, run.region)
            run.accept(taken)
            monitor.record(taken.point, taken.length, run.epoch)
            if run.certifier:
                run.certifier.took(old, taken, run.region, run.tolerance, ends, monitor.k)
            if monitor.reports:
                run.stop_asked = monitor.report(taken.point, taken.length, run.epoch)
            if drift and run.current.f < run.examined:
                run.halt(drift.far_below(run.current, run.depth))
                run.examined /= EPS
            if drift and monitor.k >= drift.next:
                extrapolate(evaluate, monitor, run, drift, goes_on=goes_on)
            if pole:
                run.halt(pole.record(run.current))
            if run.status is not None:
                break
            # A stop that was asked for, or that of max_iter, comes before attempts to speed it up.
            if goes_on and not run.is_slow:
                run.epochs.add(run.region, 1, 0)
                run.epoch, run.first = run.epoch + 1, monitor.k
                run.region = stepper.enter(run.region)
            elif ends and not goes_on:
                break
    finally:
        steps, violations = monitor.k - run.first, run.violations - run.violations_before
        run.epochs.add(run.region, steps, violations)
    run.epoch += 1
    run.region = None


def extrapolate(
    evaluate: Evaluator, monitor: Monitor, run: RunState, drift: Drift, *, goes_on: bool
) -> None:
    """Judge the path of a run whose steps have doubled in number: whether it ends, or is slow."""
    run.halt(drift.after(monitor.k, run.current, run.depth))
    if goes_on and run.leaves_saddles:
        run.is_slow = is_slow(monitor.recorder, run, evaluate.sign, monitor.k)
        drifts = drift.in_valley(monitor.k, run.current, run.first_f)
        if run.status is None:
            run.halt(drifts)


def inflated(region: EpochRegion, at: Iterate) -> EpochRegion:
    """The region with L1 and L2 doubled; L1 = 0 becomes ‖g‖/D, for which the step has length D."""
    assert region.L1 is not None
    L2 = None if region.L2 is None else 2.0 * region.L2
    return replace(region, L1=2.0 * region.L1 or at.gnorm / region.D, L2=L2)


def has_ended(run: RunState, k: int, evaluate: Evaluator) -> bool:
    """Test the current point, x_k, and set the status if the run ends there."""
    point = run.current
    small = point.gnorm < run.tolerance
    # `auto` alone, for which no theorem states how a run ends.
    if small and evaluate.within is not None and run.leaves_saddles:
        small = not falls_to_bounds(run, evaluate.within)
    if small or point.gnorm == 0.0:
        reached = f"{evaluate.measure} {point.gnorm:.3g}, tolerance {run.tolerance:.3g}."
        run.end(Status.converged, reached.capitalize())
    elif run.stop_asked:
        run.end(Status.user_stopped)
    elif k >= run.options.max_iter:
        run.end(Status.max_iter)
    return run.status is not None


def falls_to_bounds(run: RunState, within: Set) -> bool:
    """Whether f falls clearly up to bounds that are nearer than the tolerance.

    The projected gradient is no longer than the way to the bounds, however steep f is: the slope
    along it has to be below gtol²·max(|f(x0)|, |f|) as well, or below the square of the tolerance.
    """
    point = run.current
    step = np.empty_like(point.x)
    within.projected_gradient(point.x, point.g, step)
    room = run.options.gtol**2 * max(abs(run.first_f), abs(point.f))
    return -float(point.g.dot(step)) > max(room, run.tolerance**2)


def ends_epoch(taken: AcceptedStep, region: EpochRegion) -> bool:
    """Whether the new point lies in the margin of the epoch's set: at a distance in [D−d, D]."""
    if taken.at_boundary or region.ends_every_step:
        return True
    x = taken.point.x
    if not region.set.in_margin(x, region.d):
        return False
    slack = 8.0 * EPS * (region.D + norm(x))
    assert region.set.contains(x, slack), "a step left the set of its epoch"
    return True
