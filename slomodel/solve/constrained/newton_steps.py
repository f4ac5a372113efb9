"""Newton's method for the KKT conditions, with the augmented Lagrangian as its merit function.

A step solves a quadratic program with the Hessian of the Lagrangian and the linearised constraints.
It is taken if it halves the residual of the KKT conditions and the Hessian is positive semidefinite
on the active constraints, so that full steps lead to minima; or else if it lowers the augmented
Lagrangian with the new multipliers, after shortening it if necessary: Birgin & Martínez, *Improving
ultimate convergence of an augmented Lagrangian method*, Optim. Methods Softw. 23 (2008); Gill,
Murray, Saunders & Wright, *Some theoretical properties of an augmented Lagrangian merit function*
(1986). Where no step is taken, the augmented Lagrangian is minimised instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from slomodel.solve.constrained.primal_dual import PrimalDual
from slomodel.solve.constrained.scaled import ScaledConstraints
from slomodel.solve.constrained.tangents import tangents
from slomodel.solve.norms import Vector
from slomodel.solve.quadratics.interior_point import is_convex, quadratic_step
from slomodel.solve.quadratics.quadratic_program import QuadraticProgram, QuadraticStep
from slomodel.solve.sets.convex_set import Mask, Set

LARGEST, LARGEST_QUADRATIC = 300, 1000
"""Most unknowns for which the matrices of a step are formed, and those of quadratic programs, for
which one step is enough."""
FACTOR = 0.5
"""A full step is taken if it multiplies the residual by at most this."""
SIGMA = 1e-4
"""The fraction of the linear decrease of the augmented Lagrangian that a step has to reach."""
SHORTER = 4
"""Most trials of shorter steps."""
SHORT_OF_BOUNDS = 0.9
"""The fraction of a full step that is tried where f or its gradient is not finite at its end: the
step stays in the bounds, so that a shorter one ends inside them, as x log x needs at 0."""
PATIENCE = 12
"""Most steps in a row that do not halve the residual."""
NOTHING, STEEP = 1e-9, 1e-5
"""Changes along a direction count as 0 below this fraction of the largest that they could be, and a
slope as negative from the second on."""
AFAR = 1e8
"""How far the point of an unbounded quadratic program is moved, in units of max(1, |x|)."""
Evaluated = Callable[[int, int], None]
"""Called with the number of points and of Hessian products that were evaluated."""
Took = Callable[[PrimalDual, float], bool]
"""(point, length of its step) -> whether to go on."""


@dataclass(frozen=True, slots=True)
class NewtonSteps:
    """Steps for one objective over a set; `evaluated` counts the evaluations."""

    objective: ScaledConstraints
    within: Set | None
    evaluated: Evaluated

    def run(self, at: PrimalDual, penalty: float, took: Took) -> PrimalDual:
        """The last of a sequence of steps; each is reported to `took`."""
        reached, patience = at.error, PATIENCE
        while at.error > 0.0 and patience:
            new = self._next(at, penalty)
            if new is None:
                return at
            length = float(np.linalg.norm(new.x - at.x))
            at = new
            patience = PATIENCE if at.error <= FACTOR * reached else patience - 1
            reached = min(reached, at.error)
            if not took(at, length):
                break
        return at

    def is_convex_at(self, at: PrimalDual, penalty: float, *, strictly: bool = False) -> bool:
        """Whether the Hessian of the Lagrangian is positive semidefinite on what is active.

        With `strictly`: positive definite.
        """
        if self.objective.n > LARGEST:
            return self.is_convex_around(at)
        step = self._step(at, penalty)
        return step is None or (step[0].convex and not (strictly and step[0].flat))

    def is_convex_around(self, at: PrimalDual) -> bool:
        """Whether the Hessian of the Lagrangian is positive semidefinite in all directions."""
        columns = self._columns(at)
        return columns is None or is_convex(columns[0])

    def recession(self, at: PrimalDual) -> Vector | None:
        """A direction along which a quadratic f falls without end from all feasible points."""
        polyhedron = None if self.within is None else self.within.polyhedron()
        columns = self._columns(at)
        if columns is None or (polyhedron is None and self.within is not None):
            return None
        (H, rows), equations, n = columns, self.objective.equations, self.objective.n
        low, high = np.full(n, -np.inf), np.full(n, np.inf)
        # The slope along d is that of the linear part of f. Near a minimum only rounding errors of
        # it are left in the gradient, and far out it is lost among them.
        self.evaluated(1, 0)
        g = PrimalDual.of(self.objective, np.zeros(n), np.zeros(len(at.y)), self.within).g
        if polyhedron is not None:
            low, high = polyhedron.low, polyhedron.high
            rows = np.concatenate([rows, polyhedron.E])
            equations = np.concatenate([equations, np.ones(len(polyhedron.E), dtype=bool)])
        return recession(H, g, rows, equations, low, high)

    def _next(self, at: PrimalDual, penalty: float) -> PrimalDual | None:
        """The point of an acceptable step; None if there is none."""
        at = self._on_face(at)
        result = self._step(at, penalty)
        if result is None:
            return None
        step, basis, rows = result
        d = basis @ step.d
        penalty = self._merit_penalty(at, step, penalty)
        gradient = at.g + rows.T @ (self._estimate(step.y, at.c, penalty) - at.y)
        slope, before = float(gradient @ d), self._merit(at, step.y, penalty)
        t = 1.0
        for trial in range(SHORTER):
            x = at.x + t * d
            if self.within is not None:
                if t == 1.0:
                    _end_at_bounds(self.within, at.x, d, x)
                self.within.project(x, x)
            self.evaluated(1, 0)
            new = PrimalDual.of(self.objective, x, step.y, self.within)
            if new.is_finite:
                if trial == 0 and step.convex and new.error <= FACTOR * at.error:
                    return new
                after = self._merit(new, step.y, penalty)
                if step.solves and slope < 0.0 and after <= before + SIGMA * t * slope:
                    return new
                if slope >= 0.0 or not step.solves:
                    return None
                curved = 2.0 * (after - before - t * slope)
                t = float(np.clip(-slope * t * t / curved, 0.1 * t, 0.5 * t))
            else:
                t *= SHORT_OF_BOUNDS if trial == 0 else 0.1
        return None

    def _on_face(self, at: PrimalDual) -> PrimalDual:
        """The point on the face of the next step, that of lower rank in a cone of matrices."""
        if self.within is None or self.within.polyhedron() is not None:
            return at
        x = tangents(self.within, at.x, at.g).x
        if np.array_equal(x, at.x):
            return at
        self.evaluated(1, 0)
        return PrimalDual.of(self.objective, x, at.y, self.within)

    def _merit_penalty(self, at: PrimalDual, step: QuadraticStep, penalty: float) -> float:
        """A penalty for which the merit function falls along the step.

        By Gill, Murray, Saunders & Wright: in proportion to the change of the multipliers over the
        violation, and large enough to outweigh negative curvature across the constraints.
        """
        held = self.objective.equations | (step.y != 0.0) | (at.c > 0.0)
        violation = float(np.linalg.norm(at.c[held]))
        if violation == 0.0:
            return penalty
        change = 2.0 * float(np.linalg.norm(step.y - at.y)) / violation
        return max(penalty, change, -2.0 * step.curvature / violation**2)

    def _estimate(self, y: Vector, c: Vector, penalty: float) -> Vector:
        """The multipliers of the gradient of the augmented Lagrangian."""
        estimate = y + penalty * c
        return np.where(self.objective.equations, estimate, np.maximum(estimate, 0.0))

    def _merit(self, at: PrimalDual, y: Vector, penalty: float) -> float:
        """The augmented Lagrangian at a point, with other multipliers than its own."""
        estimate = self._estimate(y, at.c, penalty)
        return at.f + float((estimate - y) @ (estimate + y)) / (2.0 * penalty)

    def _step(self, at: PrimalDual, penalty: float) -> tuple[QuadraticStep, Vector, Vector] | None:
        """A step in the coordinates of a basis (n, k), that basis, and the Jacobian (m, n)."""
        objective, n = self.objective, self.objective.n
        columns = self._columns(at)
        if columns is None:
            return None
        H, rows = columns
        low, high, basis = np.full(n, -np.inf), np.full(n, np.inf), np.eye(n)
        gradient = at.g - rows.T @ at.y
        A, c, equations = rows, at.c, objective.equations
        polyhedron = None if self.within is None else self.within.polyhedron()
        if polyhedron is not None:
            # The equations of the set are those of the program; the multipliers are not needed.
            low, high = polyhedron.low - at.x, polyhedron.high - at.x
            k = len(polyhedron.E)
            A, c = np.concatenate([A, polyhedron.E]), np.concatenate([c, np.zeros(k)])
            equations = np.concatenate([equations, np.ones(k, dtype=bool)])
        elif self.within is not None:
            own_tangents = tangents(self.within, at.x, at.g)
            basis, H = own_tangents.basis, H + own_tangents.curvature
            low, high = np.full(basis.shape[1], -np.inf), np.full(basis.shape[1], np.inf)
        own = (basis.T @ H @ basis, basis.T @ gradient, A @ basis, c)
        program = QuadraticProgram(*own, equations, low, high)
        active = equations.copy()
        active[: len(at.y)] |= at.y + penalty * at.c > 0.0
        step = quadratic_step(program, active, penalty)
        return replace(step, y=step.y[: len(at.y)]), basis, rows

    def _columns(self, at: PrimalDual) -> tuple[Vector, Vector] | None:
        """The Hessian of the Lagrangian (n, n) and the Jacobian (m, n); None if not finite."""
        objective, n = self.objective, self.objective.n
        self.evaluated(0, n)
        columns = [objective.product(at.x, at.y, unit) for unit in np.eye(n)]
        H = np.array([column[0] for column in columns]).reshape(n, n)
        rows = np.array([one[1] for one in columns]).reshape(n, len(at.y)).T
        if not (np.isfinite(H).all() and np.isfinite(rows).all()):
            return None
        return 0.5 * (H + H.T), rows


def _end_at_bounds(within: Set, x: Vector, d: Vector, end: Vector) -> None:
    """Write the bounds that a full step d from x reaches into `end`, all (n,).

    x + (low − x) may differ from low by rounding, and the bound would not count as active.
    """
    polyhedron = within.polyhedron()
    if polyhedron is not None:
        np.copyto(end, polyhedron.low, where=d <= polyhedron.low - x)
        np.copyto(end, polyhedron.high, where=d >= polyhedron.high - x)


def recession(
    H: Vector, g: Vector, rows: Vector, equations: Mask, low: Vector, high: Vector
) -> Vector | None:
    """A direction d (n,) with H d = 0 and ⟨g, d⟩ < 0 along which no constraint is ever violated.

    g (n,) is the gradient of f at x = 0. The constraints have constant gradients, the rows (m, n),
    and are equations or ≤ 0. The bounds (n,) of x leave free what is infinite. From every point at
    which all of them hold f then falls without end, since its slope is that of g. d is the
    projection of −g on the cone of such directions; None if that is 0.
    """
    n, steep = len(g), float(np.linalg.norm(g))
    if steep == 0.0 or not np.isfinite(steep):
        return None
    A = np.concatenate([H, rows])
    sizes = np.linalg.norm(A, axis=1)
    A = A[sizes > 0.0] / sizes[sizes > 0.0, None]
    held = np.concatenate([np.ones(n, dtype=bool), equations])[sizes > 0.0]
    ends = (
        np.where(np.isfinite(low), 0.0, -np.inf),
        np.where(np.isfinite(high), 0.0, np.inf),
    )
    program = QuadraticProgram(np.eye(n), g / steep, A, np.zeros(len(A)), held, *ends)
    d = quadratic_step(program, held.copy(), 1.0).d
    length = float(np.linalg.norm(d))
    if not 0.0 < length < np.inf:
        return None
    d = np.clip(d / length, *ends)
    changes = A @ d
    keeps = (np.where(held, np.abs(changes), changes) <= NOTHING).all()
    # H d = 0 up to NOTHING: what curvature is left must not raise f again that far out.
    curved = 0.5 * AFAR * float(d @ H @ d)
    return d if keeps and float(g @ d) <= -max(STEEP * steep, curved) else None
