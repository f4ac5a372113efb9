"""The message of a run: its status, observations, counts, and the remedy."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter

from slomodel.solve.objective import GRADIENT, Evaluator
from slomodel.solve.run.run_state import RunState
from slomodel.solve.status import Sense, Status

_LIMITS = (Status.max_iter, Status.max_time, Status.max_nfev)
_MANY = 1000
"""Steps after which a run that has not converged may have had a bad start."""
_SMOOTH = (
    "The objective is smooth and its gradient derived, so that its values must lose digits here: "
    "write it without differences of large terms, or without factors that overflow."
)
_AT_KINK = (
    "The gradient is derived, so that a minimum at a kink is likely: take the point, or write a "
    "smooth form of the kink, such as sqrt(t^2 + 1e-6) for abs(t)."
)
_SAMPLED = "lipschitz='sampled'"


def message(run: RunState, evaluate: Evaluator, nit: int, parameters: Mapping[str, object]) -> str:
    """The sentence of the status, the observations, the counts, and the remedy."""
    assert run.status is not None
    sense = run.options.sense
    counts = (
        f"{counted(nit, 'iteration')}, {counted(evaluate.nfev, 'value')}, "
        f"{counted(evaluate.njev, 'gradient')}."
    )
    remedy = run.remedy or run.status.remedy_of(sense)
    proofs = proofs_note(run, perf_counter() - evaluate.started, parameters)
    if run.status is Status.converged and nit == 0 and len(run.current.x):
        remedy = stationary_start(sense)
    elif run.status is Status.line_search_stalled and not run.remedy and known_smooth(run):
        remedy = _SMOOTH
    elif run.status is Status.line_search_stalled and not run.remedy and at_kink(run):
        remedy = _AT_KINK
    elif proofs:
        remedy = f"{remedy} {proofs}"
    elif run.status in _LIMITS and parameters.get("direction", "gradient") == "gradient":
        remedy = f"{remedy} The method auto often needs far fewer steps."
    elif run.status in _LIMITS and nit >= _MANY:
        remedy = f"{remedy} Another start may lead elsewhere: starts=20 tries several."
    sentence = run.sentence or run.status.sentence_of(sense).replace(GRADIENT, evaluate.measure)
    return " ".join(filter(None, (sentence, run.detail, counts, constants_note(run), remedy)))


def known_smooth(run: RunState) -> bool:
    """Whether the objective is compiled and has no kinks."""
    return run.facts.curvature and run.facts.smooth


def at_kink(run: RunState) -> bool:
    """Whether the objective is compiled, and gradients about the point say that it is a minimum."""
    return run.facts.curvature and bool(run.tried)


def proofs_note(run: RunState, seconds: float, parameters: Mapping[str, object]) -> str:
    """A note if proofs of constants took most of the time limit: how much, and an alternative."""
    proofs = run.proofs
    if run.status is not Status.max_time or not proofs or proofs.seconds <= 0.5 * seconds:
        return ""
    spent = (
        f"Of {seconds:.2g} s, {proofs.seconds:.2g} s went to proving constants over "
        f"{counted(proofs.number, 'ball')}, {proofs.longest:.2g} s to the longest."
    )
    if "lipschitz" in parameters:
        instead = "a D and lipschitz='sampled'" if parameters.get("D") == "auto" else _SAMPLED
        return f"{spent} With {instead} they are estimated from a few gradients."
    if "p" in parameters:
        return f"{spent} Give L where it is known."
    return f"{spent} verify and second_order ask for them here: leave those out."


def stationary_start(sense: Sense) -> str:
    """The message for a start at which the gradient vanishes."""
    other = "minimum" if sense == "maximize" else "maximum"
    return (
        f"The start is already stationary: it may be a saddle or a {other}. Unless it is a "
        "solution found before, start elsewhere, for example from a random init."
    )


def constants_note(run: RunState) -> str:
    """The evidence of the run about its Lipschitz constants; empty if there is none."""
    if not run.violations:
        return ""
    steps = counted(run.violations, "step")
    epochs = run.epochs.records()
    if any(epoch.source == "sampled" for epoch in epochs):
        return f"The sampled L1 was too small for {steps}, and doubled."
    return f"The given L1 is too small: {steps} did not descend as it implies."


def counted(number: int, noun: str) -> str:
    """`1 step`, `2,000 steps`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
