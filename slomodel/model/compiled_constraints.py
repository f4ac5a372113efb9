"""The objective and the constraints of a model as the solver sees them: values and derivatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from slomodel.calculus.degree import degree
from slomodel.codegen.kernels import Compiled, Kernels
from slomodel.codegen.target import Target
from slomodel.front.data.bind import Binding
from slomodel.front.data.points import Vector
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Input
from slomodel.model.lagrangian import WEIGHT, multipliers_of, penalty_of
from slomodel.model.plans import Plans
from slomodel.solve.constrained.objective import ConstraintRows, PenaltySubproblem
from slomodel.solve.sets.convex_set import Mask

Build = Callable[[Binding, Compiled, Plans], PenaltySubproblem]
"""The augmented Lagrangian of a bound problem, with its kernels, as an objective of the solvers."""


class CompiledConstraints:
    """The objective and the constraints of a bound problem, for the solver.

    A kernel is compiled when it is first called.
    """

    def __init__(self, binding: Binding, plans: Plans, target: Target, make: Build) -> None:
        """`plans` are those of the problem itself."""
        problem = plans.problem
        self._binding = binding
        self._plans = plans
        self._target = target
        self._make = make
        self.n = sum(_size(one, binding) for one in problem.inputs)
        rows, at = [], 0
        for constraint in problem.constraints:
            shape = concrete(constraint.value.shape, binding.sizes)
            stop = at + int(np.prod(shape))
            rows.append(
                ConstraintRows(
                    constraint.name, constraint.orientation, constraint.is_equation, at, stop, shape
                )
            )
            at = stop
        self.rows = tuple(rows)
        self.m = at

    @property
    def eps(self) -> float:
        return float(np.finfo(self._kernels.compiled.precision).eps)

    @cached_property
    def is_quadratic_program(self) -> bool:
        problem = self._plans.problem
        own = degree(problem.objective, problem.inputs)
        others = [degree(one.value, problem.inputs) for one in problem.constraints]
        return own is not None and own <= 2 and all(one is not None and one <= 1 for one in others)

    @cached_property
    def equations(self) -> Mask:
        marks = [np.full(row.stop - row.start, row.is_equation) for row in self.rows]
        result: Mask = np.concatenate([np.zeros(0, dtype=bool), *marks])
        return result

    @cached_property
    def _kernels(self) -> Kernels:
        compiled = self._plans.lagrangian.latest(self._binding, self._target)
        return Kernels(compiled, self._binding.arrays)

    def evaluate(self, x: Vector, y: Vector, weight: float = 1.0) -> tuple[float, Vector, Vector]:
        n = self.n
        point = np.concatenate([x, [weight], y])
        slopes = np.empty_like(point)
        self._kernels.function("value_and_gradient")(point, slopes)
        return float(slopes[n]), slopes[:n], slopes[n + 1 :]

    def product(
        self, x: Vector, y: Vector, v: Vector, weight: float = 1.0
    ) -> tuple[Vector, Vector]:
        along = np.concatenate([v, np.zeros(1 + self.m)])
        result = self._times(x, y, along, weight)
        return result[: self.n], result[self.n + 1 :]

    def transposed(self, x: Vector, u: Vector) -> Vector:
        """The transposed Jacobian of c at x (n,) times u (m,)."""
        along = np.concatenate([np.zeros(self.n + 1), u])
        return self._times(x, np.zeros(self.m), along, 0.0)[: self.n]

    def _times(self, x: Vector, y: Vector, along: Vector, weight: float) -> Vector:
        point = np.concatenate([x, [weight], y])
        product = np.empty_like(point)
        self._kernels.function("hvp")(point, along, product)
        return product

    def jacobian(self, x: Vector) -> Vector:
        """The Jacobian (m, n) of c at x (n,), by the shorter of its sides."""
        if self.m <= self.n:
            return np.array([self.transposed(x, unit) for unit in np.eye(self.m)])
        zero = np.zeros(self.m)
        return np.array([self.product(x, zero, unit, 0.0)[1] for unit in np.eye(self.n)]).T

    def augmented(self, y: Vector, penalty: Vector, weight: float = 1.0) -> PenaltySubproblem:
        arrays = {WEIGHT: np.array(weight)}
        for k, one in enumerate(self.rows):
            rows = slice(one.start, one.stop)
            arrays[multipliers_of(k)] = y[rows].reshape(one.shape)
            arrays[penalty_of(k)] = np.array(penalty[rows].max(initial=0.0) or 1.0)
        binding = replace(self._binding, arrays={**self._binding.arrays, **arrays})
        plans = self._plans.augmented
        # Planned without these data, so that all subproblems share the kernels.
        compiled = plans.latest(self._binding, self._target)
        return self._make(binding, compiled, plans)


def _size(node: Input, binding: Binding) -> int:
    return int(np.prod(concrete(node.shape, binding.sizes)))
