"""Runs of the solver on the epigraph form of a model, and their results in its own variables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slomodel.front.data.points import Vector
from slomodel.model.compiled_constraints import CompiledConstraints
from slomodel.model.epigraph import EpigraphForm
from slomodel.model.evaluation import Evaluating
from slomodel.reference import evaluate
from slomodel.solve import Solution
from slomodel.solve.constrained.entry import solve_constrained
from slomodel.solve.entry import Unpack, start_in
from slomodel.solve.run_options import DEFAULTS
from slomodel.solve.sets.convex_set import Set
from slomodel.solve.status import Status

MOST_UNKNOWNS, MOST_UNKNOWNS_OF_PROGRAM = 300, 1000
"""Most unknowns of the epigraph form, and of one that is a quadratic program: Newton steps for the
KKT conditions form matrices of that size."""
# Where a run of the form ends so, the model itself is not minimised again.
_FINAL = (
    *(Status.converged, Status.precision, Status.infeasible, Status.unbounded, Status.no_minimum),
    *(Status.max_iter, Status.max_time, Status.max_nfev),
    *(Status.user_stopped, Status.interrupted),
)
_COUNTS = ("nit", "nfev", "njev", "nhev")
STALLED = (Status.line_search_stalled, Status.not_descent)
"""How a run ends at a kink."""


@dataclass(frozen=True, slots=True)
class EpigraphRun:
    """The epigraph form of `of`, a model without open sets, with its constraints and its set."""

    of: Evaluating
    form: EpigraphForm
    constraints: CompiledConstraints
    within: Set | None
    in_sets: Unpack

    @property
    def fits(self) -> bool:
        """Whether the form is small enough for Newton steps."""
        program = self.constraints.is_quadratic_program
        return self.constraints.n <= (MOST_UNKNOWNS_OF_PROGRAM if program else MOST_UNKNOWNS)

    def solution(self, x0: Vector, options: dict[str, Any]) -> Solution | None:
        """The Solution from x0 (n,); None if the run has not come to an end that says something."""
        n, model, user = len(x0), self.of, options["user"]
        x0 = start_in(model._within, x0)
        first = np.concatenate([x0, self.form.values(model._values(x0), model._binding)])
        diagnose: Callable[[Vector], str | None] = options["diagnose"]
        own: dict[str, Any] = {
            "within": self.within,
            "in_sets": self.in_sets,
            "user": (lambda z: z[:n]) if user is None else (lambda z: user(z[:n])),
            "diagnose": lambda z: diagnose(z[:n]),
        }
        found = solve_constrained(self.constraints, first, **{**options, **own})
        assert found.unconstrained is not None
        x = found.unconstrained[:n]
        violation = self._violation(x)
        if found.status not in _FINAL or (
            found.success and violation > options.get("ctol", DEFAULTS["ctol"])
        ):
            return None
        fun, jac = model.value_and_gradient(x)
        kept = {one.name for one in model._problem.constraints} | set(model.variables)
        count = len(found.unconstrained) - n
        remark = f"Its kinks were replaced by {count} bounded variables (epigraph form)."
        return replace(
            found,
            fun=fun,
            jac=jac,
            unconstrained=None if user is None else x,
            multipliers={k: one for k, one in found.multipliers.items() if k in kept},
            active={k: one for k, one in found.active.items() if k in kept},
            violation=violation,
            message=f"{found.message} {remark}",
        )

    def from_the_end_of(self, earlier: Solution, options: dict[str, Any]) -> Solution:
        """The Solution from the end of a run of the model itself; that run's if it is no better."""
        x = earlier.x if earlier.unconstrained is None else earlier.unconstrained
        left = {name: options.get(name) for name in ("max_time", "max_nfev")}
        if left["max_time"] is not None:
            left["max_time"] = max(0.0, left["max_time"] - float(earlier.history.time[-1]))
        if left["max_nfev"] is not None:
            left["max_nfev"] = max(1, left["max_nfev"] - earlier.nfev)
        found = self.solution(x, {**options, **left})
        if found is None or not found.success:
            return earlier
        total = {name: getattr(found, name) + getattr(earlier, name) for name in _COUNTS}
        began = f"It began at the end of a run of {earlier.nit:,} iterations that stalled at kinks."
        message = f"{found.message} {began}"
        return replace(found, message=message, model=earlier.model, **total)

    def _violation(self, x: Vector) -> float:
        """The largest violation of a constraint of the model itself at x (n,)."""
        model, result = self.of, 0.0
        limits = model._problem.constraints
        values = evaluate([one.value for one in limits], model._values(x), model._binding.sizes)
        for one, value in zip(limits, values, strict=True):
            excess = np.abs(value) if one.is_equation else value
            result = max(result, float(np.max(excess, initial=0.0)))
        return result
