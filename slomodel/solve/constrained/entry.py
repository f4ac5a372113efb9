"""`solve_constrained`: from options to an augmented Lagrangian run, and to its Solution."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from slomodel.solve.constrained.augmented_lagrangian import (
    AugmentedLagrangian,
    ConstrainedOutcome,
)
from slomodel.solve.constrained.checkpoint import SavedRun
from slomodel.solve.constrained.objective import ConstrainedObjective, ConstraintRows
from slomodel.solve.constrained.primal_dual import PrimalDual
from slomodel.solve.constrained.record import RunRecord
from slomodel.solve.constrained.restoration import INFEASIBLE
from slomodel.solve.constrained.scaled import SAMPLES, ScaledConstraints
from slomodel.solve.entry import Diagnose, Unpack, View, copies, start_in, with_multipliers
from slomodel.solve.norms import Vector
from slomodel.solve.objective import EvaluationLost
from slomodel.solve.options import start_vector
from slomodel.solve.run.checkpoint import Trajectory, read_checkpoint
from slomodel.solve.run.live import display_of
from slomodel.solve.run.message import counted
from slomodel.solve.run.monitor import Callback, Progress, check_callback
from slomodel.solve.run.resume import agreed, start_of
from slomodel.solve.run.solution import Solution
from slomodel.solve.run_options import RunOptions
from slomodel.solve.sets.convex_set import Set
from slomodel.solve.status import Status

# Size of a constraint's gradient times its multiplier, in units of the gradient of the objective,
# from which on the gradients of active constraints count as dependent.
GROWN = 1e6
NO_MULTIPLIERS = (
    "Near this point the gradients of the active constraints and bounds are dependent, so that a "
    "minimum there has no multipliers: write constraints that do not touch, and equations as such."
)
_WITHOUT_PROGRESS = (Status.line_search_stalled, Status.not_descent, Status.max_iter)


def solve_constrained(
    objective: ConstrainedObjective,
    x0: ArrayLike | None,
    *,
    method: str = "auto",
    callback: Callback | None = None,
    progress: Progress | bool | None = None,
    unpack: Unpack | None = None,
    user: View | None = None,
    diagnose: Diagnose | None = None,
    within: Set | None = None,
    in_sets: Unpack | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: str | os.PathLike[str] | None = None,
    **options: object,
) -> Solution:
    """Find a KKT point of an objective with constraints, from x0 (n,).

    The arguments are those of `solve`, which minimises the subproblems by `method`. The run ends
    when the gradient of the Lagrangian, projected on the set, is below gtol·s with the scale s of
    `solve`, and no constraint is violated by more than `ctol`. A checkpoint is written after each
    subproblem.
    """
    run, of_method = RunOptions.of(options)
    trajectory = Trajectory(method, of_method, run)
    saved = None if resume is None else read_checkpoint(resume)
    trajectory = trajectory if saved is None else agreed(saved, trajectory)
    run = trajectory.run
    start = (
        start_in(within, start_vector(x0, objective.n)) if saved is None else start_of(saved, x0)
    )
    check_callback(callback)
    display = display_of(progress, run.max_time, measure="‖∇L‖")
    record = RunRecord(run, callback, display, user)
    nothing = np.zeros(len(objective.equations))
    with np.errstate(all="ignore"):
        scaled = ScaledConstraints.at(objective, start)
        first = PrimalDual.of(scaled, start, nothing, within)
        record.counts.update(nfev=1, njev=1, nhev=SAMPLES)
        steps = AugmentedLagrangian.begin(first, scaled, within, trajectory, record, diagnose)
        try:
            record.took(start, first.f, first.stationarity, 0.0)
            if saved is not None:
                steps.resume(saved)
            if checkpoint is not None:
                steps.keeper = SavedRun(checkpoint, trajectory, start)
            outcome = steps.outcome()
        except KeyboardInterrupt:
            outcome = ConstrainedOutcome(steps.at, Status.interrupted, "", steps.last)
        except EvaluationLost as lost:
            detail = f"The run ended: {lost.diagnostics[0].message}."
            outcome = ConstrainedOutcome(steps.at, Status.interrupted, detail, steps.last)
        finally:
            if display is not None:
                display.close()
        solution = _solution(outcome, steps, in_sets)
    if user is not None:
        solution = replace(solution, x=user(solution.x), unconstrained=solution.x)
    return replace(solution, variables=copies(unpack(solution.x))) if unpack else solution


def _solution(
    outcome: ConstrainedOutcome, steps: AugmentedLagrangian, in_sets: Unpack | None
) -> Solution:
    """The Solution of a run that has ended, in the solver's variables alone."""
    at, record, last = outcome.at, steps.record, outcome.last
    sign, run = record.sign, steps.run
    try:
        _, g, _ = steps.objective.evaluate(at.x, np.zeros_like(at.y))
    except EvaluationLost:
        g = np.full_like(at.x, np.nan)
    counts: dict[str, Any] = dict(record.counts)
    solution = Solution(
        x=at.x.copy(),
        fun=sign * at.f + 0.0,
        jac=sign * at.g,
        gradient_norm=at.stationarity,
        violation=at.violation,
        status=outcome.status,
        message=_message(outcome, steps),
        variables={},
        history=record.history(),
        epochs=tuple(record.epochs),
        method=steps.method,
        parameters={"penalty": steps.penalty, **(last.parameters if last else {})},
        seed=run.seed,
        certificate=last.certificate if last else None,
        calls=tuple(record.calls),
        **counts,
    )
    if steps.within is not None and in_sets is not None:
        solution = with_multipliers(solution, steps.within, in_sets, sign)
    y, c = at.y / steps.objective.units, at.c * steps.objective.units
    multipliers = by_name(steps.objective.rows, -sign * y)
    held = steps.objective.equations | (y > 0.0) | (c >= -run.ctol)
    active = {
        name: array > 0.0
        for name, array in by_name(steps.objective.rows, held.astype(float), signed=False).items()
    }
    return replace(
        solution,
        jac=sign * g,
        multipliers={**solution.multipliers, **multipliers},
        active={**solution.active, **active},
    )


def by_name(
    rows: Sequence[ConstraintRows], values: Vector, signed: bool = True
) -> dict[str, Vector]:
    """Arrays by the names of constraints, from numbers for all rows (m,), added up by name.

    With `signed` they refer to the difference of the sides as written.
    """
    result: dict[str, Vector] = {}
    for row in rows:
        array = np.array(values[row.start : row.stop].reshape(row.shape))
        array *= row.orientation if signed else 1
        result[row.name] = np.asarray(result.get(row.name, 0.0) + array)
    return result


def _message(outcome: ConstrainedOutcome, steps: AugmentedLagrangian) -> str:
    """The sentence of the status, the residuals, the counts, and the remedy."""
    at, status, counts = outcome.at, outcome.status, steps.record.counts
    sense = steps.run.sense
    measure = "gradient of the Lagrangian"
    if steps.within is not None:
        measure = "projected gradient of the Lagrangian"
    sentence = status.sentence_of(sense)
    if status is Status.converged:
        sentence = "The constraints hold, and the Lagrangian is stationary."
    if status is Status.interrupted and outcome.detail:
        sentence = ""
    if status is Status.precision:
        sentence = (
            "The constraints hold and the Lagrangian is stationary as far as rounding allows."
        )
    residuals = (
        f"Norm of the {measure} {at.stationarity:.3g}, tolerance {steps.tolerance:.3g}; "
        f"largest violation of a constraint {at.violation:.3g}."
    )
    if status is Status.infeasible:
        residuals = f"The largest violation is {at.violation:.3g}."
    spent = (
        f"{counted(counts['nit'], 'iteration')}, {counted(counts['nfev'], 'value')}, "
        f"{counted(counts['njev'], 'gradient')}."
    )
    if status is Status.nonfinite_start:
        residuals = ""
        sentence = _not_finite(steps) or outcome.detail
    detail = "" if status is Status.nonfinite_start else outcome.detail
    remedy = status.remedy_of(sense)
    if status in _WITHOUT_PROGRESS:
        largest = _grown_multiplier(steps)
        detail, remedy = (largest, NO_MULTIPLIERS) if largest else (detail, remedy)
    return " ".join(filter(None, (sentence, detail, residuals, spent, remedy)))


def _grown_multiplier(steps: AugmentedLagrangian) -> str:
    """The constraint whose multiplier times gradient is far larger than ∇f, in a sentence.

    Where that happens the constraints' gradients nearly cancel each other. Empty if it does not,
    or where the constraints do not hold.
    """
    at, objective = steps.at, steps.objective
    if not (at.is_finite and at.y.any()) or at.violation > INFEASIBLE:
        return ""
    k = int(np.argmax(np.abs(at.y)))
    nothing, only = np.zeros_like(at.y), np.zeros_like(at.y)
    only[k] = at.y[k]
    _, g, _ = objective.evaluate(at.x, nothing)
    _, both, _ = objective.evaluate(at.x, only)
    size, own = float(np.linalg.norm(both - g)), float(np.linalg.norm(g))
    if not own < size / GROWN < np.inf:
        return ""
    name = next(row.name for row in objective.rows if row.start <= k < row.stop)
    return (
        f"The gradient of `{name}` times its multiplier has grown to {size:.2g}, and that of the "
        f"objective is {own:.2g}."
    )


def _not_finite(steps: AugmentedLagrangian) -> str:
    """The constraints that are not finite at the start, where the objective is."""
    finite = np.isfinite(steps.at.c)
    names = [row.name for row in steps.objective.rows if not finite[row.start : row.stop].all()]
    listed = ", ".join(f"`{name}`" for name in dict.fromkeys(names))
    result = f"At the start there are constraints that are not finite: {listed}."
    return result if names and np.isfinite(steps.at.f) else ""
