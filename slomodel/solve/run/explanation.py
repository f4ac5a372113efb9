"""An account of a run: its direction, its kinds of steps, what limited it, and what to try."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import fill
from typing import Protocol

import numpy as np

from slomodel.solve.norms import Vector, norm
from slomodel.solve.run.history import History
from slomodel.solve.run.message import counted
from slomodel.solve.status import Status

# The last steps over which the convergence of a run is judged, and the factors by which the
# gradient norm changes per step, on average, of fast and of slow convergence.
LAST, FAST, SLOW = 10, 0.3, 0.9
# Values per step, on average, from which a search counts as long.
LONG_SEARCH = 4.0
# Steps are short if most of the last ones are below this fraction of the longest one.
SHORT = 1e-8
_WIDTH = 88
_BUDGETS = (Status.max_iter, Status.max_time, Status.max_nfev)

Parameters = Mapping[str, float | str]


class FinishedRun(Protocol):
    """The members of a solution that its explanation reads."""

    @property
    def x(self) -> Vector: ...
    @property
    def status(self) -> Status: ...
    @property
    def message(self) -> str: ...
    @property
    def method(self) -> str: ...
    @property
    def parameters(self) -> dict[str, float | str]: ...
    @property
    def history(self) -> History: ...
    @property
    def nit(self) -> int: ...
    @property
    def nfev(self) -> int: ...
    @property
    def njev(self) -> int: ...
    @property
    def nhev(self) -> int: ...
    @property
    def rounding_steps(self) -> int: ...


def steps_by_kind(kinds: Mapping[str, Sequence[float]]) -> str:
    """`secant pairs 12 (97%), …`: steps by kind, and their fraction of the decrease of f."""
    total = sum(max(fall, 0.0) for _, fall in kinds.values())
    return ", ".join(
        f"{kind} {count:.0f}" + (f" ({max(fall, 0.0) / total:.0%})" if total > 0.0 else "")
        for kind, (count, fall) in kinds.items()
    )


def explanation(run: FinishedRun) -> str:
    """The account of a run as lines of text."""
    return "\n".join(fill(line, _WIDTH, subsequent_indent="  ") for line in _lines(run))


def _lines(run: FinishedRun) -> Iterator[str]:
    yield f"Method: {_method(run)}."
    if "steps" in run.parameters:
        yield f"Steps by kind, with their fractions of the decrease: {run.parameters['steps']}."
    products = f", {counted(run.nhev, 'Hessian product')}" if run.nhev else ""
    yield (
        f"Work: {counted(run.nit, 'step')}, {counted(run.nfev, 'value')}, "
        f"{counted(run.njev, 'gradient')}{products}."
    )
    yield f"End: {run.status}. {run.message}"
    limits = list(_limits(run))
    if limits or run.status.success:
        yield f"What limited it: {' '.join(limits) or 'nothing; it converged quickly.'}"
    advice = list(_advice(run))
    if advice:
        yield f"What to try: {' '.join(advice)}"


def _method(run: FinishedRun) -> str:
    direction, reason = run.parameters.get("direction"), run.parameters.get("chosen_for")
    if direction is None:
        return run.method
    why = f", which suits {reason}" if reason else ", as requested"
    return f"{run.method} along the direction {direction}{why}"


def rate(run: FinishedRun) -> float | None:
    """The mean factor of the gradient norm per step over the last steps; None for few steps."""
    norms = run.history.gradient_norm[-LAST - 1 :]
    if len(norms) <= LAST // 2 or not (norms[0] > 0.0 and norms[-1] > 0.0):
        return None
    return float((norms[-1] / norms[0]) ** (1.0 / (len(norms) - 1)))


def _limits(run: FinishedRun) -> Iterator[str]:
    factor = rate(run)
    if factor is not None and factor > SLOW:
        change = f"changed by a factor of {factor:.2g} per step"
        yield f"The gradient norm {change} in the last {min(LAST, run.nit)} steps, which is slow."
    elif factor is not None and factor > FAST:
        yield f"The gradient norm fell by a factor of {1.0 / factor:.2g} per step at the end."
    flat = _flat_steps(run)
    if flat > max(LAST, run.nit // 2):
        yield (
            f"The last {flat:,} steps made 1 % of the decrease: a long flat valley, or a start far "
            "above the minimum."
        )
    if run.nit and run.nfev > LONG_SEARCH * run.nit:
        yield (
            f"Each step took {run.nfev / run.nit:.1f} values: most trial steps were too long, as "
            "where the objective is far from quadratic or not finite."
        )
    steps = run.history.step[1:]
    if len(steps) > LAST and np.median(steps[-LAST:]) < SHORT * steps.max():
        yield "The last steps were far shorter than earlier ones."
    if run.status.success and _goes_on(run):
        yield (
            f"The last steps, to ‖x‖ = {norm(run.x):.3g}, were as long as those before, while the "
            "gradient vanished: there may be no least point, as of a logistic regression of "
            "separable data, and a regulariser or a prior gives one."
        )
    if run.rounding_steps:
        yield f"{counted(run.rounding_steps, 'step')} changed f by no more than its rounding error."
    if run.status in _BUDGETS:
        yield f"The budget {run.status} ended it."


def _flat_steps(run: FinishedRun) -> int:
    """The number of steps after f was within 1 % of its whole decrease of the last value."""
    left = np.abs(run.history.fun - run.history.fun[-1])
    return int(len(left) - 1 - np.argmax(left <= 0.01 * left[0])) if len(left) else 0


def _goes_on(run: FinishedRun) -> bool:
    """Whether steps of about the same length lowered the gradient norm by much, as towards inf."""
    steps, norms = run.history.step[-LAST:], run.history.gradient_norm
    if len(norms) <= LAST:
        return False
    return bool(steps.min() >= 0.5 * steps.max() and norms[-1] <= 0.1 * norms[-LAST - 1])


def _advice(run: FinishedRun) -> Iterator[str]:
    factor = rate(run)
    slow = run.status in _BUDGETS and factor is not None and factor > SLOW
    direction = run.parameters.get("direction")
    if slow and direction in ("gradient", "cg"):
        yield "The method auto uses curvature and often needs far fewer steps."
    elif slow:
        yield (
            "The curvature may be badly conditioned: bring data to similar magnitudes, add a "
            "regulariser, or compare direction='newton-cg' and direction='lbfgs'."
        )
    elif run.status in _BUDGETS and factor is not None:
        yield "Continue from the point found, with more steps or time: it still converges."
    if run.status.success:
        yield (
            "solution.certify() proves whether this is a strict minimum; starts=20 or hops=100 "
            "look for lower ones."
        )
