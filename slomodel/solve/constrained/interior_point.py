"""Convex quadratic programs by a primal-dual interior point method.

Mehrotra's predictor and corrector steps for the optimality conditions with slacks, without a line
search: *On the implementation of a primal-dual interior point method*, SIAM J. Optim. 2 (1992);
Nocedal & Wright, *Numerical Optimization* (2006), Section 16.6. Its minimisers are approximate, but
show which constraints and bounds are active, also where many solutions or multipliers exist.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from slomodel.solve.constrained.quadratic_program import (
    DEPENDENT,
    QuadraticProgram,
    QuadraticStep,
    minimiser,
    pressed_bounds,
    with_guess,
)
from slomodel.solve.norms import EPS, Vector
from slomodel.solve.sets.convex_set import Mask

MOST_STEPS = 60
# Residuals and the mean product of slack and multiplier fall to this fraction of their scale.
ACCURACY = 1e-10
# Fraction of the longest step that keeps slacks and multipliers positive.
INTERIOR = 0.99
# Regularisation of the linear systems, relative to the largest element of the matrix.
REGULAR = 1e-12


@dataclass(frozen=True, slots=True)
class InteriorSolution:
    """A minimiser d (n,) with the multipliers y (m,), and what is active there.

    `active` (m,) marks the equations and the inequalities whose multiplier exceeds the slack;
    `side` (n,) is −1 for variables at the lower end, 1 at the upper end and 0 elsewhere.
    """

    d: Vector
    y: Vector
    active: Mask
    side: Vector


def quadratic_step(program: QuadraticProgram, active: Mask, penalty: float) -> QuadraticStep:
    """A step of the program, from a first guess of the active constraints.

    Where the guesses do not converge, an interior point method finds the active constraints. The
    step is then corrected as little as the conditions there need, so that among many solutions it
    stays away from other constraints. If B is convex only on the active constraints, |B| replaces
    it; if it is not convex there, the last guess is the result.
    """
    result = minimiser(program, active, pressed_bounds(program), penalty)
    if result.solves and not result.falls and _is_feasible(program, result.d):
        return result
    if not len(program.g):
        return result  # at a vertex of the set nothing is left to be found
    if result.falls:
        # A step along which the program falls without end leads nowhere.
        result = replace(result, convex=False, solves=False)
    values, vectors = np.linalg.eigh(program.B)
    convex = bool(values[0] >= -DEPENDENT * max(float(np.abs(values).max()), EPS))
    own = program.B
    if not convex:
        program = replace(program, B=(vectors * np.abs(values)) @ vectors.T)
    inner = interior_solution(program)
    if inner is None:
        return result
    d, y, B = inner.d, inner.y, program.B
    around = replace(
        program,
        g=program.g + B @ d,
        c=program.c + program.A @ d,
        low=program.low - d,
        high=program.high - d,
    )
    # Where B is not convex on what is active, the step may lead to a saddle.
    guess = inner.active, inner.side
    if not (convex or with_guess(replace(around, B=own), *guess).convex):
        return result
    corrected = minimiser(around, *guess, penalty)
    if corrected.solves:
        d, y = d + corrected.d, corrected.y
    d = np.clip(d, program.low, program.high)
    return QuadraticStep(d, y, convex, float(d @ B @ d), solves=True)


def _is_feasible(program: QuadraticProgram, d: Vector) -> bool:
    """Whether d (n,) satisfies the linearised constraints up to rounding."""
    residual = program.c + program.A @ d
    excess = np.where(program.equations, np.abs(residual), residual)
    size = max(1.0, float(np.abs(program.c).max(initial=0.0)))
    return float(excess.max(initial=0.0)) <= DEPENDENT * size


def interior_solution(program: QuadraticProgram) -> InteriorSolution | None:
    """An approximate minimiser of a convex program.

    None if the program seems to have none, or the systems are too ill-conditioned.
    """
    equations = program.equations
    below, above = np.isfinite(program.low), np.isfinite(program.high)
    eye = np.eye(len(program.g))
    C = np.concatenate([program.A[~equations], -eye[below], eye[above]])
    h = np.concatenate([-program.c[~equations], -program.low[below], program.high[above]])
    result = _Iteration(
        program.B, program.g, program.A[equations], -program.c[equations], C, h
    ).run()
    if result is None:
        return None
    d, y_equations, s, z = result
    count = int((~equations).sum())
    y = np.zeros(len(program.c))
    y[equations], y[~equations] = y_equations, z[:count]
    tight = z > s
    active = equations.copy()
    active[~equations] = tight[:count]
    side = np.zeros(len(d))
    at_low, at_high = np.split(tight[count:], [int(below.sum())])
    side[np.flatnonzero(below)[at_low]] = -1.0
    side[np.flatnonzero(above)[at_high]] = 1.0
    return InteriorSolution(d, y, active, side)


@dataclass(frozen=True, slots=True)
class _Iteration:
    """minimise ⟨g, d⟩ + ½⟨d, B d⟩ subject to A d = b, C d ≤ h."""

    B: Vector
    g: Vector
    A: Vector
    b: Vector
    C: Vector
    h: Vector

    def run(self) -> tuple[Vector, Vector, Vector, Vector] | None:
        """d, the multipliers of A d = b, the slacks s of C d ≤ h and their multipliers z."""
        d, y = np.zeros(len(self.g)), np.zeros(len(self.b))
        unit = max(1.0, float(np.abs(self.g).max(initial=0.0)))
        s = np.maximum(self.h - self.C @ d, 1.0)
        z = np.full(len(self.h), unit)
        for _ in range(MOST_STEPS):
            dual = self.B @ d + self.g + self.A.T @ y + self.C.T @ z
            primal, slack = self.A @ d - self.b, self.C @ d + s - self.h
            mu = float(s @ z) / len(s) if len(s) else 0.0
            if self._is_small(d, dual, primal, slack, mu, unit):
                return d, y, s, z
            system = self._system(s, z)
            try:
                dd, dy, ds, dz = self._step(system, s, z, dual, primal, slack, s * z)
                if len(s):
                    ahead = float((s + _length(s, ds) * ds) @ (z + _length(z, dz) * dz)) / len(s)
                    centred = s * z + ds * dz - (ahead / mu) ** 3 * mu
                    dd, dy, ds, dz = self._step(system, s, z, dual, primal, slack, centred)
            except np.linalg.LinAlgError:
                return None
            if not (np.isfinite(dd).all() and np.isfinite(dz).all()):
                return None
            t = min(1.0, INTERIOR * min(_length(s, ds), _length(z, dz)))
            d, y, s, z = d + t * dd, y + t * dy, s + t * ds, z + t * dz
        return None

    def _is_small(
        self, d: Vector, dual: Vector, primal: Vector, slack: Vector, mu: float, unit: float
    ) -> bool:
        """Whether the residuals are small in units of the terms of the conditions."""
        size = max(1.0, float(np.abs(d).max(initial=0.0)))
        far = max(float(np.abs(one).max(initial=0.0)) for one in (primal, slack))
        steep = float(np.abs(dual).max(initial=0.0))
        small = far <= ACCURACY * size and steep <= ACCURACY * unit
        return small and mu <= ACCURACY * unit * size

    def _system(self, s: Vector, z: Vector) -> Vector:
        """[[B + Cᵀ diag(z/s) C, Aᵀ], [A, 0]] (n + k, n + k), regularised."""
        n, k = len(self.g), len(self.b)
        K = np.zeros((n + k, n + k))
        K[:n, :n] = self.B + (self.C.T * (z / s)) @ self.C
        K[n:, :n], K[:n, n:] = self.A, self.A.T
        size = max(float(np.abs(K.diagonal()).max(initial=0.0)), EPS)
        K.flat[:: n + k + 1] += REGULAR * np.where(np.arange(n + k) < n, min(size, 1.0), -1.0)
        return K

    def _step(
        self,
        system: Vector,
        s: Vector,
        z: Vector,
        dual: Vector,
        primal: Vector,
        slack: Vector,
        products: Vector,
    ) -> tuple[Vector, Vector, Vector, Vector]:
        """Newton's step for residuals and products of slacks and multipliers to become 0."""
        n = len(self.g)
        right = np.concatenate([-dual - self.C.T @ ((z * slack - products) / s), -primal])
        solution: Vector = np.linalg.solve(system, right)
        dd, dy = solution[:n], solution[n:]
        ds = -slack - self.C @ dd
        return dd, dy, ds, -(products + z * ds) / s


def _length(v: Vector, dv: Vector) -> float:
    """The longest t ≤ 1 with v + t dv ≥ 0 for v > 0."""
    falling = dv < 0.0
    return min(1.0, float(np.min(-v[falling] / dv[falling], initial=1.0)))
