"""Algorithm 1 of the paper: sequential local optimization (alg:Meta)."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace

import numpy as np

from slomodel.solve.constants.source import LipschitzSource
from slomodel.solve.norms import EPS, norm
from slomodel.solve.objective import BudgetSpent, EvaluationLost, Evaluator
from slomodel.solve.run.blocks import blocks_of
from slomodel.solve.run.checkpoint import Keeper
from slomodel.solve.run.continuation import continued
from slomodel.solve.run.ending import (
    describe_curvature,
    describe_distance,
    end_at_zero,
    judge_end,
)
from slomodel.solve.run.monitor import Monitor
from slomodel.solve.run.run_state import RunState
from slomodel.solve.run.saddle_escape import SaddleWatch
from slomodel.solve.run.valleys import is_slow
from slomodel.solve.sets.convex_set import Set
from slomodel.solve.stagnation.pole import PoleWatch
from slomodel.solve.stagnation.unbounded import Drift, depth
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
    drift = Drift(evaluate, run.current.x)
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
            pole = PoleWatch(evaluate)
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
            if continued(subroutine, evaluate, monitor, run, watch, drift):
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
    describe_distance(run, drift)


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
        if run.status is None and run.is_slow:
            end_at_zero(evaluate, run)


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
