"""Plans of a problem: its derivatives, rewritten or as written, for a target and a set of sizes."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cached_property

from slomodel.calculus import Known
from slomodel.codegen.automatic import Automatic
from slomodel.codegen.kernels import TARGETS, Compiled, Derivatives
from slomodel.codegen.layout import Default, Precision
from slomodel.codegen.target import Target
from slomodel.front.data.bind import Binding
from slomodel.front.lints.kinks import kinks_depend_on_data, smoothness
from slomodel.ir.expr import Expr, Input
from slomodel.ir.index_tables import require_single
from slomodel.ir.node import without_gc
from slomodel.model.lagrangian import augmented_problem, lagrangian_problem
from slomodel.model.unconstrained import ChangeOfVariables, change_of, unbounded_ends
from slomodel.problem import DataDeclaration, Problem
from slomodel.rewrite import Change, Facts, Optimized, for_derivatives, optimized
from slomodel.solve.options import choice

BACKENDS = ("auto", *(name for name, target in TARGETS.items() if not target.instead))
"""Names for `backend=`, which runs the kernels."""
TARGET_NAMES = ("auto", *TARGETS, "graph")
"""Names of targets for source; `auto` is the one whose kernels run on this machine."""
PRECISIONS: dict[str, Precision] = {"float64": "float64", "float32": "float32"}


def known_of(problem: Problem) -> Known:
    """Facts about the data that follow from their declarations."""
    return Known(
        frozenset(d.node for d in problem.data if not d.may_be_missing),
        frozenset(d.node for d in problem.data if "symmetric" in d.attributes),
    )


def target_of(name: str) -> Target:
    """The target of this name. Raises DomainError for an unknown name.

    `auto` is the target named by the environment variable SLOMODEL_BACKEND, or else the fastest
    available.
    """
    if choice("target", name, TARGET_NAMES) == "auto":
        name = os.environ.get("SLOMODEL_BACKEND", "auto")
        choice("SLOMODEL_BACKEND", name, BACKENDS)
    return Automatic() if name == "auto" else TARGETS[name]


def backend_of(name: object) -> Target:
    """The target of a backend that must run on this machine. Raises DomainError or TargetLimit."""
    instead = TARGETS[name].instead if isinstance(name, str) and name in TARGETS else ""
    hint = f"it is source text only: use {instead}, or source({name!r})" if instead else ""
    target = target_of(choice("backend", name, BACKENDS, hint))
    target.require()
    return target


def precision_of(dtype: str) -> Precision:
    """The precision of this name. Raises DomainError for an unknown name."""
    return PRECISIONS[choice("dtype", dtype, PRECISIONS)]


_MOST_KEPT = 16
_LONGEST_TABLE = 1000
"""Larger tables of constants are passed to generated source as arguments, not written into it."""


def _default(declared: DataDeclaration) -> Default | None:
    if declared.values is None or declared.values.size > _LONGEST_TABLE:
        return declared.default
    return tuple(declared.values.tolist())


class Plans:
    """Derivatives of a problem, as written and as rewritten, shared by all models bound from it.

    The problem is rewritten once for each set of facts, and each result is differentiated once; the
    latest few are cached.
    """

    def __init__(self, problem: Problem, rewrites: Collection[str], precision: Precision) -> None:
        self.problem = problem
        self._rewrites = tuple(rewrites)
        self._variables = problem.inputs
        self._precision: Precision = precision
        self._lock = threading.RLock()
        self._compiled: Compiled | None = None
        self._free: dict[frozenset[str], tuple[ChangeOfVariables, Plans]] = {}
        self._latest: list[tuple[Optimized, Derivatives]] = []
        self._objective = for_derivatives(problem.objective)
        self.written = Derivatives(self._objective, self._variables, known_of(problem))

    def change(self, binding: Binding) -> ChangeOfVariables | None:
        """The change of variables onto the open sets that the problem declares, if any."""
        result = self._free_plans(binding)
        return None if result is None else result[0]

    def unconstrained(self, binding: Binding) -> Plans:
        """Plans of the problem in unconstrained variables."""
        result = self._free_plans(binding)
        return self if result is None else result[1]

    def _free_plans(self, binding: Binding) -> tuple[ChangeOfVariables, Plans] | None:
        """The change of variables with the plans in u; it depends on which ends are infinite."""
        if not self._has_open:
            return None
        unbounded = unbounded_ends(self.problem, binding)
        with self._lock:
            if unbounded not in self._free:
                change = ChangeOfVariables(self.problem, unbounded)
                plans = Plans(change.problem, self._rewrites, self._precision)
                self._free[unbounded] = (change, plans)
            return self._free[unbounded]

    def of(self, problem: Problem) -> Plans:
        """Plans of another problem with the same passes and precision."""
        return Plans(problem, self._rewrites, self._precision)

    @cached_property
    def lagrangian(self) -> Plans:
        """Plans of the Lagrangian over variables and multipliers."""
        return Plans(lagrangian_problem(self.problem), self._rewrites, self._precision)

    @cached_property
    def augmented(self) -> Plans:
        """Plans of the augmented Lagrangian, whose multipliers and penalty are data."""
        return Plans(augmented_problem(self.problem), self._rewrites, self._precision)

    @cached_property
    def _has_open(self) -> bool:
        return any(change_of(variable) is not None for variable in self.problem.variables)

    def smooth(self, binding: Binding) -> bool:
        """Whether the objective is proved continuously differentiable for these data."""
        if self._kinks_by_data:
            return smoothness(self.problem, binding.arrays) > 0
        return self._smooth

    @cached_property
    def _smooth(self) -> bool:
        return smoothness(self.problem) > 0

    @cached_property
    def _kinks_by_data(self) -> bool:
        return kinks_depend_on_data(self.problem)

    def compiled(
        self, binding: Binding, target: Target, shared: Compiled | None = None
    ) -> Compiled:
        """The kernels of a binding, planned but not yet printed; `shared` if these are suitable.

        Nothing is rewritten while a size is unknown.
        """
        derivatives, sizes = self.written, binding.sizes
        result: Mapping[Input, Expr] = {}
        if binding.has_all_sizes:
            optimum, derivatives = self._optimum(binding)
            result = optimum.prepared
            if self._precision == "float32":
                arrays = {
                    d.node: binding.arrays.get(d.name) for d in self.problem.data if d.is_whole
                }
                wholes = {node: array for node, array in arrays.items() if array is not None}
                require_single(derivatives.objective, wholes, sizes)
            sizes = optimum.joint.sizes if optimum.joint else sizes
        if shared is not None and shared.serves(derivatives, sizes, target):
            return shared
        problem = self.problem
        nodes = [declaration.node for declaration in problem.data]
        defaults = {d.node: value for d in problem.data if (value := _default(d)) is not None}
        own = (problem.name, derivatives, nodes, sizes, target)
        attributes = {
            d.node: d.attributes | ({"whole"} if d.is_whole else set())
            for d in problem.data
            if d.attributes or d.is_whole
        }
        return Compiled(*own, self._precision, defaults, result, attributes)

    def latest(self, binding: Binding, target: Target) -> Compiled:
        """The kernels of a binding: those of the latest one if they are suitable."""
        with self._lock:
            self._compiled = self.compiled(binding, target, self._compiled)
            return self._compiled

    def changes(self, binding: Binding) -> tuple[Change, ...]:
        """The changes that the passes made for a binding."""
        return self._optimum(binding)[0].changes if binding.has_all_sizes else ()

    def _optimum(self, binding: Binding) -> tuple[Optimized, Derivatives]:
        problem = self.problem
        given = {d.node: binding.arrays.get(d.name) for d in problem.data}
        values = {k: array for k, array in given.items() if array is not None}
        facts = Facts(binding.sizes, values, known_of(problem))
        with self._lock:
            for pair in self._latest:
                if facts.agrees(pair[0].facts):
                    return pair
            taken = {v.name for v in problem.variables} | {d.name for d in problem.data}
            own = (self._objective, facts, self._rewrites, self._variables, taken)
            with without_gc():
                result = optimized(*own)
            facts.forget()
            self._latest = [(result, self._derivatives_of(result)), *self._latest[: _MOST_KEPT - 1]]
            return self._latest[0]

    def _derivatives_of(self, optimized: Optimized) -> Derivatives:
        """The derivatives of a rewritten objective; those of an equal, recent one are reused."""
        if optimized.objective is self.written.objective and optimized.joint is None:
            return self.written
        objective = optimized.objective if optimized.joint is None else optimized.joint.objective
        for one, derivatives in self._latest:
            if derivatives.objective is objective and one.prepared == optimized.prepared:
                return derivatives
        known = known_of(self.problem)
        known = replace(known, finite=known.finite.union(optimized.prepared))
        slopes = None if optimized.joint is None else optimized.joint.gradient
        return Derivatives(objective, self._variables, known, slopes, optimized.structure)
