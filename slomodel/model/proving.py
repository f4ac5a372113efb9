"""Proofs about a compiled model: bounds over balls and along rays, and certificates of points."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from slomodel.calculus.rays.bounds import RayBounds
from slomodel.codegen.kernels import Compiled
from slomodel.errors import Diagnostic, DomainError, MissingRule
from slomodel.front.data.points import Point, Vector
from slomodel.ir.expr import Input, Recur
from slomodel.model.enclosed_value import EnclosedValues
from slomodel.model.extended_slope import ExtendedSlopes, extended_slopes
from slomodel.model.fitting import Fitting, named_elements
from slomodel.model.plans import target_of
from slomodel.model.rays import Rays, without_proof
from slomodel.model.waiting import waiting
from slomodel.solve import Solution
from slomodel.solve.information import described, from_hessian
from slomodel.solve.options import number

# Imported by the methods that need it: it takes a sixth of the time of all other imports.
if TYPE_CHECKING:
    from slomodel.bounds import Bounds, ObjectivePart, PointCertificate
    from slomodel.bounds.arithmetic.interval import Interval
    from slomodel.bounds.structure.invariances import Invariance


_DOUBLE = np.dtype(np.float64)
_MOST_NAMED = 1000
"""Largest n for which directions without curvature are named: their eigenvectors take a second."""


class Proving(Fitting):
    """A model that proves bounds on its derivatives, and statements about points."""

    def bounds(self, center: Point | Solution, radius: float, effort: str = "default") -> Bounds:
        """Proved Lipschitz constants of gradient and Hessian over a ball about `center` (n,).

        Where variables are declared in closed sets, over the part of the ball in these, provided
        that `center` lies in them.
        Either may be inf, with a `reason`; `explain()` of the result shows how each is derived.
        `effort` is `quick`, `default` or `thorough`: how much work a rule may take, for bounds
        closer to the constants.
        """
        from slomodel.bounds import bounds, effort_of

        chosen = effort_of(effort)
        with waiting(f"bounds of {self.name}"):
            part = self._part_within(self._point(center))
            return bounds(replace(part, effort=chosen), radius)

    def value_with_error(self, x: Point | Solution) -> tuple[float, float]:
        """f(x) and a proved bound on its rounding error; inf where there is none."""
        self._binding.require_data()
        point = x if self._is_vector(x) else self._point(x)
        return self._value_with_error(point, np.empty(self.n))

    def _value_with_error(self, x: Vector, out: Vector) -> tuple[float, float]:
        """f at x (n,) with a bound on its error; ∇f is written into `out` (n,)."""
        enclosed = self._enclosed_values
        if enclosed is not None:
            return enclosed(x, out)
        value, out[:] = self.value_and_gradient(x)
        return value, math.inf

    def ray_bounds(
        self,
        x: Point | Solution,
        v: Point,
        T: float,  # noqa: N803
        precise: bool = False,
    ) -> RayBounds:
        """Proved bounds on the derivatives of φ(t) = f(x + t v) for 0 <= t <= T, x and v (n,).

        One kernel computes φ, φ' and φ'' at 0 with their errors and the ends of φ'' and φ''' over
        the ray, for a few times the cost of a gradient. φ(t) <= φ(0) + φ'(0) t + M t²/2 for M the
        `remainder_upper`, which is at most `upper`. Ends are infinite, with a `reason`, where there
        is no proof.

        `precise`: where NumPy has extended precision, φ'(0) is computed in it, for 10 to 100 ms,
        with an error of about a thousandth. Without it, or for a model with a matrix operation, a
        recurrence or a function that NumPy has in doubles alone, nothing changes.
        """
        self._binding.require_data()
        end = number("T", T, 0.0, closed=True)
        point = x if self._is_vector(x) else self._point(x)
        along = v if self._is_vector(v) else self._vectors.vector(v, "v")
        rays = self._rays
        if isinstance(rays, str):
            return without_proof(self.value_and_gradient, point, along, end, rays)
        found = rays(point, along, end)
        slopes = self._extended_slopes if precise else None
        return found if slopes is None else slopes.of(found, *map(self._parts, (point, along)))

    def ray_source(self, target: str = "auto") -> str:
        """Source of the kernel of `ray_bounds`: `ray_bounds(x, v, T, data)` for NumPy and the like.

        Raises DomainError, with the reason, where no bounds along rays are known.
        """
        self._binding.require_counts()
        compiled = self._compiled
        if target not in ("auto", compiled.target.name):
            compiled = self._plans.compiled(self._binding, target_of(target))
        try:
            return self._rays_of(compiled, {}).source()
        except MissingRule as error:
            message = f"the model has no bounds along rays: {error}"
            raise DomainError(Diagnostic("E604", message)) from None

    def _is_vector(self, x: object) -> TypeGuard[Vector]:
        """Whether `x` is an array (n,) of doubles, to be read as it is."""
        return type(x) is np.ndarray and x.dtype == _DOUBLE and x.shape == self._vectors.shape

    @cached_property
    def _rays(self) -> Rays | str:
        """The kernel of bounds along rays, or the reason why there is none."""
        try:
            return self._rays_of(self._compiled, self._binding.arrays)
        except MissingRule as error:
            return str(error)

    @cached_property
    def _enclosed_values(self) -> EnclosedValues | None:
        """The kernel of values with their errors; None where these have no bounds."""
        objective, compiled = self._problem.objective, self._compiled
        plain = self._problem.plain.get(objective)
        try:
            return EnclosedValues(compiled, objective, self._binding.arrays, plain)
        except MissingRule:
            return None

    @cached_property
    def _extended_slopes(self) -> ExtendedSlopes | None:
        """φ'(0) of rays in extended precision; None where there is none."""
        problem, binding = self._problem, self._binding
        objective = problem.objective
        data = {one.node: binding.arrays[one.name] for one in problem.data}
        forms = [*filter(None, [problem.plain.get(objective)]), objective]
        return extended_slopes(forms, problem.inputs, data, binding.sizes)

    def _parts(self, x: Vector) -> list[Vector]:
        """The values of each variable in x (n,)."""
        values = self._problem.at(self._vectors.unpack(x))
        return [values[one] for one in self._problem.inputs]

    def _rays_of(self, compiled: Compiled, data: Mapping[str, Vector]) -> Rays:
        objective = self._problem.objective
        return Rays(compiled, objective, data, self._problem.plain.get(objective))

    def sample_bounds(
        self,
        center: Point | Solution,
        radius: float,
        samples: int = 100,
        seed: int = 0,
        method: str = "ascent",
    ) -> Bounds:
        """Lower estimates of the same constants, with source `sampled`.

        `ascent` climbs to points of large curvature, `samples` points in all; `pairs` compares
        gradients at as many random pairs of points, as the paper does. Rounding errors are measured
        at the centre and subtracted: at radii so small that they dominate the differences between
        points, the estimate of L2 is 0. Points are moved into the box around the closed sets of
        variables, if `center` lies in it.
        """
        from slomodel.bounds import sample

        self._binding.require_data()
        eps = float(np.finfo(self._compiled.precision).eps)
        box = None if self._within is None else self._within.limits()
        return sample(self, self._point(center), radius, samples, seed, method, eps, box)

    def bound_formula(self, which: str) -> sp.Expr:
        """Bound on `L1` or `L2` of a polynomial over any ball, as a SymPy expression.

        Its symbols are the radius `r` and, as `norm_U`, the Euclidean norm of each variable at the
        centre; data are numbers. `bounds` is tighter, since it knows the centre itself.
        """
        from slomodel.bounds import bound_formula

        return bound_formula(self._part(np.zeros(self.n)), which)

    def _certificate(self, x: Vector, effort: str, modulo: str) -> PointCertificate:
        """The certificate of x (n,) in the variables of this model."""
        from slomodel.bounds import effort_of
        from slomodel.bounds.certificates.certify import certify
        from slomodel.bounds.certificates.slices import slice_at
        from slomodel.model.free_unknowns import free_unknowns

        chosen = effort_of(effort)
        with waiting(f"certificate of {self.name}"):
            part = replace(self._part(x), effort=chosen)
            unknowns = free_unknowns(self._problem, self._binding, self._within, x)
            if modulo == "invariances":
                across = slice_at(part, self.invariances(), x, unknowns.free)
                unknowns = unknowns if across is None else unknowns.on_slice(across)
            result = certify(part, self._problem.sense == "maximize", unknowns)
        if result.exists or modulo != "invariances" or unknowns.reason or part.n > _MOST_NAMED:
            return result
        return replace(result, undetermined=self._undetermined(x, result.held))

    def _undetermined(self, x: Vector, held: NDArray[np.bool_]) -> tuple[str, ...]:
        """The directions without curvature at x in the unknowns that are not held, elementwise."""
        sign = -1.0 if self._problem.sense == "maximize" else 1.0
        try:
            hessian, gradient = sign * self.hessian(x), sign * self.gradient(x)
            flat = from_hessian(hessian, gradient, x, held, 1.0).undetermined()
        except DomainError:  # negative curvature: not a minimum
            return ()
        return described(flat, named_elements(self.unpack(x), {}))

    def invariances(self) -> tuple[Invariance, ...]:
        """Maps of the variables that are proved to leave the objective as it is.

        They follow from the graph alone, whatever the data: matrices between the layers of a linear
        network, rotations and shifts of points, permutations of units, shifts under softmax. Each
        has a `kind`, the `places` (variables and axes) that it moves, and a `text`. There may be
        more that the rules do not prove. With sets other than the whole space: none.
        """
        from slomodel.bounds.structure.invariances import invariances

        if self._within is not None or self._problem.constraints:
            return ()
        return invariances(self._part(self.x0()))

    def convex_within(self, x: Point | Solution, effort: str = "default") -> float:
        """A radius of a ball round x (n,) on which the objective is proved to be convex.

        For a model that maximises: concave. 0 where it is not proved even at x; inf where it is
        proved everywhere. The largest radius is found to about a quarter.
        """
        from slomodel.bounds import effort_of
        from slomodel.bounds.certificates.certify import convex_within

        chosen = effort_of(effort)
        with waiting(f"convexity of {self.name}"):
            part = replace(self._part(self._point(x)), effort=chosen)
            return convex_within(part, self._problem.sense == "maximize")

    def _part_within(self, center: Vector) -> ObjectivePart:
        """The part at a point (n,), with the least box around the closed sets of variables."""
        return replace(self._part(center), limits=self._limits)

    @cached_property
    def _limits(self) -> dict[Input, Interval]:
        """The elements of each variable over its closed set, where that limits any of them."""
        from slomodel.bounds.arithmetic.interval import Interval

        if self._within is None:
            return {}
        low, high = (self._problem.at(self._vectors.unpack(end)) for end in self._within.limits())
        every = {one: Interval(low[one], high[one]) for one in low}
        return {
            one: a for one, a in every.items() if np.isfinite(a.lo).any() or np.isfinite(a.hi).any()
        }

    def _part(self, center: Vector) -> ObjectivePart:
        from slomodel.model.proofs import part_of

        self._binding.require_data()
        part = part_of(self._problem, self._values(center), self._binding.sizes)
        is_slow = any(isinstance(node, Recur) for node in part.order)
        is_exact = self._compiled.precision == "float64" and not self._compiled.target.on_device
        if is_exact and (is_slow or self._kernels.made("hvp") is not None):
            # Graphs are evaluated step by step, and estimates take dozens of products.
            part = replace(part, product=self.hvp)
        return part
