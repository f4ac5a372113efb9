"""Runs of the solver on the epigraph form of a model, and their results in its own variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from slomodel.front.data.points import Vector
from slomodel.ir import build
from slomodel.ir.expr import Expr
from slomodel.model.closed_sets import closed_set
from slomodel.model.compiled_constraints import CompiledConstraints
from slomodel.model.epigraph import EpigraphForm
from slomodel.model.evaluation import Evaluating
from slomodel.problem import DeclaredSet
from slomodel.reference import evaluate
from slomodel.solve import Solution
from slomodel.solve.constrained.entry import solve_constrained
from slomodel.solve.entry import Unpack, start_in
from slomodel.solve.run.message import counted
from slomodel.solve.run_options import DEFAULTS
from slomodel.solve.sets.convex_set import Set
from slomodel.solve.status import Status

MOST_UNKNOWNS, MOST_UNKNOWNS_OF_PROGRAM = 300, 1000
"""Most unknowns of the epigraph form, and of one that is a quadratic program: Newton steps for the
KKT conditions form matrices of that size."""
_BUDGETS = (
    *(Status.max_iter, Status.max_time, Status.max_nfev),
    *(Status.user_stopped, Status.interrupted),
)
# Where a run of the form ends so, the model itself is not minimised again.
_FINAL = (
    *(Status.converged, Status.precision, Status.infeasible, Status.unbounded, Status.no_minimum),
    *_BUDGETS,
)
# Lengths over which norms are smoothed in turn, in units of the largest norm at the start; at the
# last one rounding errors may be too large, and the result is that of the one before.
SMOOTHED = (1e-2, 1e-4, 1e-6, 1e-8, 1e-10)
# So many of them at least, here down to 1e-6, are needed for a result of the model itself.
FEWEST = 3
_COUNTS = ("nit", "nfev", "njev", "nhev")
STALLED = (Status.line_search_stalled, Status.not_descent)
"""How a run ends at a kink."""


def remaining(
    options: Mapping[str, Any], spent: Mapping[str, int], seconds: float
) -> dict[str, Any]:
    """What a run leaves of its budgets after so many steps, evaluations and seconds."""
    left = {name: options.get(name) for name in ("max_iter", "max_time", "max_nfev")}
    if left["max_iter"] is not None:
        left["max_iter"] = max(0, left["max_iter"] - spent["nit"])
    if left["max_time"] is not None:
        left["max_time"] = max(0.0, left["max_time"] - seconds)
    if left["max_nfev"] is not None:
        left["max_nfev"] = max(1, left["max_nfev"] - spent["nfev"])
    return {name: budget for name, budget in left.items() if budget is not None}


@dataclass(frozen=True, slots=True)
class EpigraphRun:
    """The epigraph form of `of`, a model without open sets, with its constraints.

    It is the form of `base`, which is that model, or if `norms` are given that with these smoothed.
    """

    of: Evaluating
    base: Evaluating
    form: EpigraphForm
    constraints: CompiledConstraints
    in_sets: Unpack
    norms: tuple[Expr, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the form is small enough for Newton steps."""
        program = self.constraints.is_quadratic_program
        return self.constraints.n <= (MOST_UNKNOWNS_OF_PROGRAM if program else MOST_UNKNOWNS)

    def solution(self, x0: Vector, options: dict[str, Any]) -> Solution | None:
        """The Solution from x0 (n,); None if the run has not come to an end that says something."""
        n, model, user = len(x0), self.of, options["user"]
        x0 = start_in(model._within, x0)
        diagnose: Callable[[Vector], str | None] = options["diagnose"]
        own: dict[str, Any] = {
            "in_sets": self.in_sets,
            "user": (lambda z: z[:n]) if user is None else (lambda z: user(z[:n])),
            "diagnose": lambda z: diagnose(z[:n]),
        }
        found: Solution | None = None
        reached, runs, began = 0.0, 0, perf_counter()
        spent: dict[str, Any] = dict.fromkeys(_COUNTS, 0)
        lengths = self._lengths(x0)
        for length in lengths:
            given = np.append(x0, length) if self.norms else x0
            first = np.append(given, self.form.values(self.base._values(given), model._binding))
            own["within"] = self._within(length)
            left = remaining(options, spent, perf_counter() - began)
            run = solve_constrained(self.constraints, first, **{**options, **left, **own})
            spent = {name: getattr(run, name) + count for name, count in spent.items()}
            runs += 1
            if found is not None and run.status in _BUDGETS:
                return None
            if found is not None and not run.success:
                spent["nit"] -= run.nit  # its steps are not taken
                break
            history = run.history if found is None else found.history.followed_by(run.history)
            found, reached = replace(run, history=history), length
            assert run.unconstrained is not None
            x0 = run.unconstrained[:n]
            if not run.success:
                break
        assert found is not None
        if self.norms and found.success and lengths.index(reached) + 1 < FEWEST:
            return None
        x = x0
        violation = self._violation(x)
        if found.status not in _FINAL or (
            found.success and violation > options.get("ctol", DEFAULTS["ctol"])
        ):
            return None
        fun, jac = model.value_and_gradient(x)
        kept = {one.name for one in model._problem.constraints} | set(model.variables)
        assert found.unconstrained is not None
        count, remark = len(found.unconstrained) - n - bool(self.norms), ""
        if count:
            remark = f" Its kinks were replaced by {count} bounded variables (epigraph form)."
        if self.norms:
            remark += f" Norms were smoothed over {reached:.1g}, in {counted(runs, 'run')}."
        return replace(
            found,
            fun=fun,
            jac=jac,
            unconstrained=None if user is None else x,
            multipliers={k: one for k, one in found.multipliers.items() if k in kept},
            active={k: one for k, one in found.active.items() if k in kept},
            violation=violation,
            message=f"{found.message}{remark}",
            **spent,
        )

    def from_the_end_of(self, earlier: Solution, options: dict[str, Any]) -> Solution:
        """The Solution from the end of a run of the model itself; that run's if it is no better."""
        x = earlier.x if earlier.unconstrained is None else earlier.unconstrained
        spent = {name: getattr(earlier, name) for name in _COUNTS}
        left = remaining(options, spent, float(earlier.history.time[-1]))
        found = self.solution(x, {**options, **left})
        if found is None or not found.success:
            return earlier
        total = {name: getattr(found, name) + count for name, count in spent.items()}
        began = f"It began at the end of a run of {earlier.nit:,} iterations that stalled at kinks."
        message = f"{found.message} {began}"
        history = earlier.history.followed_by(found.history)
        return replace(found, message=message, model=earlier.model, history=history, **total)

    def _lengths(self, x: Vector) -> list[float]:
        """The lengths over which norms are smoothed, in turn, from a start x (n,); 0 without any.

        The unit is the largest of the norms there, or 1 if all are 0.
        """
        if not self.norms:
            return [0.0]
        values = evaluate(self.norms, self.of._values(x), self.of._binding.sizes)
        largest = max(float(np.max(one, initial=0.0)) for one in values) or 1.0
        return [largest * one for one in SMOOTHED]

    def _within(self, length: float) -> Set | None:
        """The set of the form, in which norms are smoothed over a length."""
        problem = self.form.problem
        if self.norms:
            k, number = len(self.base._problem.variables) - 1, build.const(length)
            fixed = DeclaredSet("box", "the length of smoothing", low=number, high=number)
            variables = list(problem.variables)
            variables[k] = replace(variables[k], set=fixed)
            problem = replace(problem, variables=tuple(variables))
        return closed_set(problem, self.of._binding)

    def _violation(self, x: Vector) -> float:
        """The largest violation of a constraint of the model itself at x (n,)."""
        model, result = self.of, 0.0
        limits = model._problem.constraints
        values = evaluate([one.value for one in limits], model._values(x), model._binding.sizes)
        for one, value in zip(limits, values, strict=True):
            excess = np.abs(value) if one.is_equation else value
            result = max(result, float(np.max(excess, initial=0.0)))
        return result
