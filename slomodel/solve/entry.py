"""`solve`: from options to a method, through Algorithm 1, to a Solution."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slomodel.errors import StartWarning
from slomodel.solve.compiled import library as compiled_loops
from slomodel.solve.compiled.beyond import hessian_at
from slomodel.solve.constants.proved import Clocked, ProofSource, Prove, SignedErrors, proof_source
from slomodel.solve.constants.source import LipschitzSource
from slomodel.solve.facts import InC, compiled_facts, conforms, facts_of
from slomodel.solve.methods.table import method_of
from slomodel.solve.norms import EPS, Vector, norm
from slomodel.solve.objective import Evaluator, Objective
from slomodel.solve.options import start_vector
from slomodel.solve.run.checkpoint import Keeper, Trajectory, read_checkpoint
from slomodel.solve.run.driver import minimize
from slomodel.solve.run.explanation import steps_by_kind
from slomodel.solve.run.live import display_of
from slomodel.solve.run.message import counted, message
from slomodel.solve.run.monitor import Callback, Monitor, Progress, check_callback
from slomodel.solve.run.resume import agreed, check_objective, start_of
from slomodel.solve.run.run_state import RunState
from slomodel.solve.run.saddle_escape import SaddleWatch, watch_of
from slomodel.solve.run.solution import FittedModel, Solution
from slomodel.solve.run_options import RunOptions
from slomodel.solve.sets.convex_set import Set
from slomodel.solve.status import Status
from slomodel.solve.subroutine import Iterate, Subroutine
from slomodel.solve.verify.certificate import Certifier

Variables = Mapping[str, NDArray[np.float64]]
Arrays = dict[str, NDArray[np.float64]]
Unpack = Callable[[Vector], Variables]
View = Callable[[Vector], Vector]
Diagnose = Callable[[Vector], str | None]

# A start within this many rounding errors of the set is moved without a warning.
OUTSIDE = 64.0
_OF_THE_SEARCH = (Status.line_search_stalled, Status.not_descent)


def solve(
    objective: Objective,
    x0: ArrayLike | None,
    *,
    method: str = "norm-armijo",
    callback: Callback | None = None,
    progress: Progress | bool | None = None,
    unpack: Unpack | None = None,
    user: View | None = None,
    diagnose: Diagnose | None = None,
    prove: Prove | ProofSource | None = None,
    within: Set | None = None,
    in_sets: Unpack | None = None,
    model: FittedModel | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: str | os.PathLike[str] | None = None,
    **options: object,
) -> Solution:
    """Find a point with ‖∇f‖ < gtol·s from x0 (n,); s = min(1, max(|f(x0)|, ‖∇f(x0)‖)).

    If that scale is 0, or without `scaled`, s = 1. `auto` has a test of its own
    (`PredictedDecrease`). `callback(state)` gets a State at k = 0 and
    after every step; it returns None or False to continue, True to stop. `progress` is a display,
    or True for a live line if standard error is a terminal.

    `options` are those of every run (`RunOptions`) and of the method (`METHODS`); None means the
    default of a method's option. `unpack` splits x into the arrays of `Solution.variables`; `user`
    maps a point of the solver to the x that callbacks and the Solution show, if they differ;
    `diagnose` describes in a sentence where a point is not finite; `prove` bounds the constants
    over balls. All iterates stay in the set `within`: x0 is moved to its nearest point, and ‖∇f‖ is
    replaced by ‖x − P(x − ∇f)‖, P the projection on the set; `in_sets` splits a vector of the
    solver into the arrays of the variables in sets; `model` is that of the Solution. A run that
    does not converge returns a status and raises no exception. The run is written to `checkpoint`
    every few seconds; `resume` continues a checkpoint bit for bit, in which case x0 may be omitted.
    """
    run_options, of_method = RunOptions.of(options)
    trajectory = Trajectory(method, of_method, run_options)
    saved = None if resume is None else read_checkpoint(resume)
    trajectory = trajectory if saved is None else agreed(saved, trajectory)
    start = (
        start_in(within, start_vector(x0, objective.n)) if saved is None else start_of(saved, x0)
    )
    check_callback(callback)
    proofs = None if prove is None else Clocked(proof_source(prove))
    if method == "auto" and conforms(objective, InC):
        # Loaded before the clock of the run starts.
        compiled_loops.library()
    evaluate = Evaluator(objective, trajectory.run, within)
    measure = "‖∇f‖" if within is None else "‖x − P(x − ∇f)‖"
    display = display_of(progress, trajectory.run.max_time, measure=measure)
    evaluate.columns_in_c = partial(hessian_at, evaluate)
    monitor = Monitor(evaluate, callback, display, user)
    point = unknown(start) if saved is None else saved.point
    run = RunState(point, trajectory.run, proofs=proofs, facts=compiled_facts(objective))
    subroutine, lipschitz, watch = _set_up(trajectory, objective, start, evaluate, run)
    if saved is not None:
        check_objective(saved, objective, evaluate.sign)
        # The gradient at the start was that of the residuals, if f has any.
        evaluate.has_own_gradients = bool(evaluate.own_gradient) and evaluate.has_residuals
    keeper = Keeper(checkpoint, trajectory, start, saved) if checkpoint or saved else None
    try:
        # A trial outside the domain or beyond overflow is rejected without a warning.
        with np.errstate(all="ignore"):
            minimize(subroutine, evaluate, monitor, run, lipschitz, keeper, watch)
    finally:
        monitor.close(run.current, run.step, run.epoch)
    if run.status is Status.nonfinite_start:
        run.detail = (diagnose and diagnose(start)) or what_is_not_finite(run.current)
    elif diagnose:
        run.detail = f"{run.detail} {_nonfinite_points(run, evaluate, diagnose)}".strip()
    of_user = OfUser(user, unpack, model, in_sets)
    return outcome(run, evaluate, monitor, subroutine, lipschitz, of_user)


@dataclass(frozen=True, slots=True)
class OfUser:
    """The parts of a Solution that do not stem from the run: map to the user's x, arrays, model.

    `in_sets` gives the arrays of the variables in sets.
    """

    user: View | None = None
    unpack: Unpack | None = None
    model: FittedModel | None = None
    in_sets: Unpack | None = None


def with_multipliers(solution: Solution, within: Set, in_sets: Unpack, sign: float) -> Solution:
    """The solution with its multipliers and active bounds."""
    x = solution.x if solution.unconstrained is None else solution.unconstrained
    multipliers, active = at_bounds(within, x, sign * solution.jac, in_sets, sign)
    return replace(solution, multipliers=multipliers, active=active)


def at_bounds(
    within: Set, x: Vector, g: Vector, in_sets: Unpack, sign: float
) -> tuple[Arrays, dict[str, NDArray[np.bool_]]]:
    """The multipliers at x (n,), ∇f plus the projected −∇f for a gradient g, and active bounds."""
    tangential = np.empty_like(x)
    within.tangent(x, -g, tangential)
    # At bounds the two parts cancel exactly; elsewhere the multipliers are 0.
    multipliers = sign * (g + tangential) + 0.0
    active = {
        name: array > 0.0 for name, array in in_sets(within.at_bounds(x).astype(np.float64)).items()
    }
    return copies(in_sets(multipliers)), active


def copies(variables: Variables) -> Arrays:
    """The arrays by name, none shared with the caller's."""
    return {name: np.array(array) for name, array in variables.items()}


def _set_up(
    trajectory: Trajectory,
    objective: Objective,
    start: Vector,
    evaluate: Evaluator,
    run: RunState,
) -> tuple[Subroutine, LipschitzSource | None, SaddleWatch | None]:
    """Construct the method, its source of constants and the saddle watch; give `run` its certifier.

    Raises DomainError for options that do not suit the method or the objective.
    """
    options, proofs, facts = trajectory.run, run.proofs, facts_of(objective)
    # A norm that overflows is inf, without a warning.
    with np.errstate(all="ignore"):
        subroutine, lipschitz = method_of(
            *(trajectory.method, trajectory.options, start, options.gtol, proofs, facts),
            evaluate.within,
            own_test(options),
        )
    if subroutine.linearises:
        evaluate.load_residuals()
        evaluate.own_gradient = evaluate.gradient_of_residuals
    run.leaves_saddles = trajectory.method == "auto" and own_test(options)
    run.own_test = subroutine.own_test
    watch = watch_of(bool(options.second_order), facts, evaluate, proofs, options.seed)
    errors = None
    if proofs:
        proofs.stop_by(evaluate.check_time)
        errors = proofs.errors and SignedErrors(proofs.errors, evaluate.sign)
    if options.verify:
        run.certifier = Certifier(subroutine.inequalities, errors, evaluate)
    return subroutine, lipschitz, watch


def own_test(options: RunOptions) -> bool:
    """Whether a method may use a termination test of its own in place of the gradient norm."""
    plain = not (options.verify or options.second_order)
    return plain and options.scaled and options.gtol > 0.0


def start_in(within: Set | None, x0: Vector) -> Vector:
    """The point (n,) of the set nearest to x0 (n,), with a warning if that is not x0."""
    if within is None:
        return x0
    start = np.empty_like(x0)
    if not within.project(x0, start):
        return start
    if not np.isfinite(x0).all():
        return x0
    away = norm(start - x0)
    if away > OUTSIDE * EPS * max(1.0, norm(x0)):
        message = f"x0 is outside the set of the variables: it is moved by {away:.3g}, into the set"
        warnings.warn(message, StartWarning, stacklevel=4)
    return start


def unknown(x: Vector) -> Iterate:
    """The point x (n,) before f and its gradient are computed."""
    return Iterate(x.copy(), math.nan, np.full_like(x, math.nan), math.nan)


def outcome(
    run: RunState,
    evaluate: Evaluator,
    monitor: Monitor,
    subroutine: Subroutine,
    lipschitz: LipschitzSource | None,
    of_user: OfUser,
) -> Solution:
    """The Solution of a run that has ended."""
    assert run.status is not None
    point, nit = run.current.copy(), max(monitor.k, 0)
    user, unpack = of_user.user, of_user.unpack
    x = point.x if user is None else user(point.x)
    parameters = subroutine.parameters | (lipschitz.parameters if lipschitz else {})
    if run.kinds:
        parameters["steps"] = steps_by_kind(run.kinds)
    within, in_sets = evaluate.within, of_user.in_sets
    multipliers: Arrays = {}
    active: dict[str, NDArray[np.bool_]] = {}
    if within is not None and in_sets is not None:
        multipliers, active = at_bounds(within, point.x, point.g, in_sets, evaluate.sign)
    return Solution(
        x=x,
        fun=evaluate.sign * point.f + 0.0,
        jac=evaluate.sign * point.g,
        gradient_norm=point.gnorm,
        nit=nit,
        nfev=evaluate.nfev,
        njev=evaluate.njev,
        nhev=evaluate.nhev,
        status=run.status,
        message=message(run, evaluate, nit, parameters),
        variables=copies(unpack(x)) if unpack else {},
        history=monitor.recorder.history(),
        epochs=run.epochs.records(),
        method=subroutine.name,
        parameters=parameters,
        seed=run.options.seed,
        rounding_steps=run.rounding_steps,
        violations=run.violations,
        certificate=run.certifier.certificate() if run.certifier else None,
        calls=tuple(run.calls),
        unconstrained=None if user is None else point.x,
        multipliers=multipliers,
        active=active,
        model=of_user.model,
    )


def _nonfinite_points(run: RunState, evaluate: Evaluator, diagnose: Diagnose) -> str:
    """The number of points with non-finite values, and the cause at the last of them.

    Reported after a failed search, or if most points were such; else empty.
    """
    last, most = evaluate.last_nonfinite, 2 * evaluate.nonfinite > evaluate.nfev
    if last is None or not (run.status in _OF_THE_SEARCH or most):
        return ""
    why = diagnose(last)
    seen = f"No finite number at {counted(evaluate.nonfinite, 'point')} tried"
    return f"{seen}; at the last, {why}" if why else f"{seen}."


def what_is_not_finite(start: Iterate) -> str:
    """The first element that is NaN or infinite: of x, of f, of the gradient."""
    for what, values in (("x0", start.x), ("the gradient", start.g)):
        bad = np.flatnonzero(~np.isfinite(values))
        if what == "the gradient" and not math.isfinite(start.f):
            return f"The objective is {start.f}."
        if bad.size:
            return f"Element {bad[0]} of {what} is {values[bad[0]]}."
    return "The norm of the gradient is past the largest number."
