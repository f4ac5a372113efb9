"""Runs of the solver on the epigraph form of a model, and their results in its own variables."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
from slomodel.solve.entry import Diagnose, Unpack, View, start_in
from slomodel.solve.run.checkpoint import Saved
from slomodel.solve.run.message import counted
from slomodel.solve.run.parts import BUDGETS, Part, RunParts, point_of, stopped
from slomodel.solve.run_options import DEFAULTS
from slomodel.solve.sets.convex_set import Set
from slomodel.solve.status import Status

MOST_UNKNOWNS, MOST_UNKNOWNS_OF_PROGRAM = 300, 1000
"""Most unknowns of the epigraph form, and of one that is a quadratic program: Newton steps for the
KKT conditions form matrices of that size."""
# Where a run of the form ends so, the model itself is not minimised again.
_FINAL = (
    *(Status.converged, Status.precision, Status.infeasible, Status.unbounded, Status.no_minimum),
    *BUDGETS,
)
# Lengths over which norms are smoothed in turn, in units of the largest norm at the start; at the
# last one rounding errors may be too large, and the result is that of the one before.
SMOOTHED = (1e-2, 1e-4, 1e-6, 1e-8, 1e-10)
# So many of them at least, here down to 1e-6, are needed for a result of the model itself.
FEWEST = 3
STALLED = (Status.line_search_stalled, Status.not_descent)
"""How a run ends at a kink."""


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

    def solution(
        self, x0: Vector, options: dict[str, Any], parts: RunParts, kept: int = 0
    ) -> Solution | None:
        """The Solution from x0 (n,); None if its parts have not come to an end that says something.

        So many iterations are `kept` for steps after it.
        """
        n, x0 = len(x0), start_in(self.of._within, x0)
        found: Solution | None = None
        reached, runs = 0.0, 0
        lengths = self._lengths(x0)
        for length in lengths:
            given = np.append(x0, length) if self.norms else x0
            first = np.append(given, self.form.values(self.base._values(given), self.of._binding))
            run = parts.run(self._part(first, n, length, options), kept=kept + bool(self.norms))
            runs += 1
            if found is not None and not run.success:
                # Its steps are taken back.
                found = parts.back_to(found)
                if parts.ended in BUDGETS:
                    return None
                break
            found, reached = run, length
            x0 = point_of(run)[:n]
            if not run.success or parts.ended in BUDGETS:
                break
        assert found is not None
        if self.norms and found.success and lengths.index(reached) + 1 < FEWEST:
            return None
        violation = self._violation(x0)
        if found.status not in _FINAL or (
            found.success and violation > options.get("ctol", DEFAULTS["ctol"])
        ):
            spent = parts.spent()
            if spent is None or self.norms:
                return None
            found = stopped(found, spent, options["sense"])
        remark = self._remark(runs, reached)
        user: View | None = options["user"]
        return parts.whole(self._of_the_model(found, x0, violation, remark, user))

    def _part(self, first: Vector, n: int, length: float, options: dict[str, Any]) -> Part:
        """The run of the form from `first`, for a model of n unknowns."""
        user: View | None = options["user"]
        diagnose: Diagnose = options["diagnose"]
        own: dict[str, Any] = {
            "in_sets": self.in_sets,
            "user": (lambda z: z[:n]) if user is None else (lambda z: user(z[:n])),
            "diagnose": lambda z: diagnose(z[:n]),
            "within": self._within(length),
        }

        def part(given: dict[str, Any]) -> Solution:
            start = None if given["resume"] else first
            return solve_constrained(self.constraints, start, **{**given, **own})

        return part

    def _remark(self, runs: int, reached: float) -> str:
        """What was replaced by what, in sentences."""
        count, remark = self.constraints.n - self.of.n - bool(self.norms), ""
        if count:
            remark = f" Its kinks were replaced by {count} bounded variables (epigraph form)."
        if self.norms:
            remark += f" Norms were smoothed over {reached:.1g}, in {counted(runs, 'run')}."
        return remark

    def _of_the_model(
        self, found: Solution, x: Vector, violation: float, remark: str, user: View | None
    ) -> Solution:
        """The Solution of the model itself at x (n,), from that of the form."""
        fun, jac = self.of.value_and_gradient(x)
        kept = {one.name for one in self.of._problem.constraints} | set(self.of.variables)
        return replace(
            found,
            fun=fun,
            jac=jac,
            unconstrained=None if user is None else x,
            multipliers={k: one for k, one in found.multipliers.items() if k in kept},
            active={k: one for k, one in found.active.items() if k in kept},
            violation=violation,
            message=f"{found.message}{remark}",
        )

    def from_the_end_of(
        self, earlier: Solution, options: dict[str, Any], parts: RunParts
    ) -> Solution:
        """The Solution from the end of a run of the model itself; that run's if it is no better."""
        # One for a step back.
        if parts.spent(wanted=2) is not None:
            return earlier
        found = self.solution(point_of(earlier), options, parts, kept=1)
        if found is not None and (found.success or found.status is Status.unbounded):
            first = f"a run of {earlier.nit:,} iterations that stalled at kinks"
            message = f"{found.message} It began at the end of {first}."
            return replace(found, message=message, model=earlier.model)
        earlier, ended = parts.back_to(earlier), parts.ended
        return stopped(earlier, ended, options["sense"]) if ended in BUDGETS else earlier

    def resumes(self, saved: Saved) -> bool:
        """Whether a checkpoint is of a run of this form."""
        return not self.norms and len(saved.point.x) == self.constraints.n

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
