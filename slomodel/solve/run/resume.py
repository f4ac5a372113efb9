"""Resuming a run: consistency of the checkpoint with the call and the objective."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from slomodel.errors import Diagnostic, DomainError
from slomodel.solve.norms import Vector
from slomodel.solve.objective import Objective
from slomodel.solve.run.checkpoint import Saved, Trajectory
from slomodel.solve.run_options import RunOptions

UNASKED_METHOD = "auto"
# Tolerance on values of one objective at one point, relative to |f| or 1: the number of threads
# changes the last digits.
_SAME = 1e-9


def agreed(saved: Saved, requested: Trajectory) -> Trajectory:
    """The trajectory of the checkpoint, with the requested options that it cannot store.

    Budgets are taken from the call. Raises DomainError if another option differs.
    """
    there = saved.trajectory
    if requested.method not in (there.method, UNASKED_METHOD):
        raise _differs("method", there.method, requested.method)
    before: dict[str, Any] = there.run.trajectory()
    defaults = RunOptions().trajectory()
    for name, value in requested.run.trajectory().items():
        if value not in (before[name], defaults[name]):
            raise _differs(name, before[name], value)
    options = dict(there.options)
    given = {name: value for name, value in requested.options.items() if value is not None}
    for name, value in given.items():
        if name in there.not_held:
            options[name] = value
        elif name not in options or options[name] != value:
            raise _differs(name, options.get(name), value)
    for name in there.not_held:
        if name not in given:
            message = f"the checkpoint was written with a {name} that it cannot hold"
            raise DomainError(Diagnostic("E604", message, help=f"give {name} again"))
    options |= chosen_before(saved) if there.method == UNASKED_METHOD else {}
    return replace(there, options=options, run=replace(requested.run, **before))


def chosen_before(saved: Saved) -> dict[str, object]:
    """The options that `auto` of an earlier version chose for a run that is saved.

    Since then it makes other choices; the state of a run fits its own direction only.
    """
    stack: list[object] = [saved.code]
    while stack:
        code = stack.pop()
        if isinstance(code, dict):
            stack += code.values()
        if not isinstance(code, list):
            continue
        if code[:1] == ["object"] and code[2] == "NormArmijo" and "interpolates" not in code[3]:
            return {"direction": code[3]["direction"], "line_search": "armijo"}
        stack += code
    return {}


def start_of(saved: Saved, x0: ArrayLike | None) -> Vector:
    """The x0 (n,) of the run to resume; DomainError if the call gives a different one."""
    if x0 is None or np.array_equal(np.asarray(x0), saved.x0):
        return saved.x0
    message = f"x0 is not the one that the run in `{saved.path}` began with"
    remedy = "leave x0 out: the run goes on from the point that it had reached"
    raise DomainError(Diagnostic("E604", message, help=remedy))


def check_objective(saved: Saved, objective: Objective, sign: float) -> None:
    """Raise DomainError if the checkpoint belongs to another objective."""
    at = saved.point
    result = None
    if len(at.x) == objective.n:
        result = sign * float(objective.value(at.x))
        if abs(result - at.f) <= _SAME * max(1.0, abs(at.f)):
            return
    here = f"n = {objective.n}" if result is None else f"{sign * result:.12g}"
    there = f"n = {len(at.x)}" if result is None else f"{sign * at.f:.12g}"
    message = f"`{saved.path}` is of another objective: at its point {there} there, {here} here"
    raise DomainError(Diagnostic("E604", message, help="resume with the same model and data"))


def _differs(name: str, there: object, here: object) -> DomainError:
    was = "was not given" if there is None else f"was {there!r}"
    message = f"{name} {was} in the run to resume, and {here!r} is asked for"
    remedy = f"leave {name} out, or start from the point that was reached: x0=solution.x"
    return DomainError(Diagnostic("E604", message, help=remedy))
