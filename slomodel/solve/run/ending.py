"""How a run has ended: its status judged once more, and what is known about the last point."""

from __future__ import annotations

from contextlib import suppress

from slomodel.solve.norms import EPS, Vector, norm
from slomodel.solve.objective import BudgetSpent, EvaluationLost, Evaluator
from slomodel.solve.run.continuation import ALONG, BEYOND, STALLED, has_vanished, look_beyond
from slomodel.solve.run.kinks import MOST_UNKNOWNS, falls_at_a_kink, stationary_within
from slomodel.solve.run.run_state import RunState
from slomodel.solve.run.saddle_escape import SaddleWatch, saddles_left
from slomodel.solve.stagnation.pole import PoleWatch, unresolved
from slomodel.solve.stagnation.unbounded import Drift
from slomodel.solve.status import Status

# Ends that may be on the way to a limit.
_ON_A_WAY = (Status.precision, Status.max_iter, Status.max_time, Status.max_nfev)


def judge_end(evaluate: Evaluator, run: RunState, drift: Drift, pole: PoleWatch) -> None:
    """Correct the status of a run that has ended at a limit, at a pole or far out."""
    if run.status is Status.converged:
        run.halt(drift.at_end(run.current, run.depth, run.so_far.gained))
    elif run.status in STALLED:
        end_at_zero(evaluate, run)
    if run.status in STALLED:
        if run.status is not Status.precision:
            run.halt(drift.where_stalled(run.current, run.depth))
        run.halt(pole.at_end(run.current))
        if run.status is Status.precision:
            run.halt(drift.at_limit(run.current, run.so_far.gained))
    if run.status is Status.precision and not run.facts.smooth:
        beside_kinks(evaluate, run)
    if run.status in STALLED[:2] and is_flat(run, drift.start):
        detail = f"{evaluate.measure} {run.current.gnorm:.3g}.".capitalize()
        run.end(Status.converged, detail, sentence="The point is stationary within rounding.")
    if run.status in (Status.precision, Status.line_search_stalled):
        # Along a valley a run goes where rounding errors may hide all descent that is left.
        size = 0.0 if ALONG in run.kinds else abs(run.first_f)
        size = max(size, abs(run.current.f))
        run.halt(unresolved(evaluate, run.current, size))


def describe_distance(run: RunState, drift: Drift) -> None:
    """Report a distance from the start that is large, as on the way to a limit at infinity."""
    if run.status not in _ON_A_WAY or not drift.may_diverge(run.current):
        return
    distance = norm(run.current.x - drift.start)
    far = f"The run has come to a distance of {distance:.3g} from its start."
    run.detail = f"{run.detail} {far}".strip()
    remedy = Status.no_minimum.remedy_of(run.options.sense)
    remedy = f"If the objective tends to a limit there, {remedy[0].lower()}{remedy[1:]}"
    if run.status is not Status.precision:
        remedy = f"{run.remedy or run.status.remedy_of(run.options.sense)} {remedy}"
    run.remedy = remedy


def end_at_zero(evaluate: Evaluator, run: RunState) -> None:
    """End a run that is slow or has stalled where a sum of squares has vanished to the tolerance.

    It cannot fall by more than its value.
    """
    if has_vanished(evaluate, run):
        run.end(
            Status.converged,
            f"{evaluate.measure} {run.current.gnorm:.3g}.".capitalize(),
            sentence="The sum of squares has vanished to the tolerance.",
        )


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
    if run.status in (STALLED if in_set else STALLED[1:]) and not run.facts.smooth:
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
