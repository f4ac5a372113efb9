"""Convex quadratic programs by a primal-dual interior point method.

Mehrotra's predictor and corrector steps for the optimality conditions with slacks, without a line
search: *On the implementation of a primal-dual interior point method*, SIAM J. Optim. 2 (1992);
Nocedal & Wright, *Numerical Optimization* (2006), Section 16.6. Its minimisers are approximate, but
show which constraints and bounds are active, also where many solutions or multipliers exist.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from slomodel.solve.norms import EPS, Vector
from slomodel.solve.quadratics.quadratic_program import (
    DEPENDENT,
    QuadraticProgram,
    QuadraticStep,
    minimiser,
    pressed_bounds,
    with_guess,
)
from slomodel.solve.sets.convex_set import Mask

MOST_STEPS = 60
# Residuals and the mean product of slack and multiplier fall to this fraction of their scale, and
# as far as FINEST unless PATIENCE steps in a row do not halve them: the least squares of an
# ill-conditioned matrix are resolved far below their slopes.
ACCURACY, FINEST, PATIENCE = 1e-10, 1e-15, 3
# Fraction of the longest step that keeps slacks and multipliers positive.
INTERIOR = 0.99
# Most variables for which spectra on guesses of what is active take no longer than the method.
CORRECTED = 300
# Regularisation of the linear systems, relative to the largest element of the matrix.
REGULAR = 1e-12
Places = NDArray[np.intp]
Solve = Callable[[Vector], Vector]
"""A right side (n + k,) -> the solution of a linear system."""


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
    it; if it is not convex there, the last guess is the result. For more than CORRECTED variables
    there are no guesses.
    """
    if len(program.g) > CORRECTED:
        return _of_many(program)
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
    guess = inner.active, inner.side
    # Where B is not convex on what is active, the step may lead to a saddle.
    if not (convex or with_guess(replace(_around(program, inner.d), B=own), *guess).convex):
        return result
    return _corrected(program, inner, penalty, convex)


def convex_step(program: QuadraticProgram) -> QuadraticStep | None:
    """The step of a convex program by the interior point method alone.

    None if the program seems to have none. What is active is corrected for up to CORRECTED
    variables; of more the variables at bounds are moved onto them.
    """
    inner = interior_solution(program)
    if inner is None:
        return None
    if len(program.g) <= CORRECTED:
        return _corrected(program, inner, 1.0, True)
    d = np.where(inner.side < 0.0, program.low, np.where(inner.side > 0.0, program.high, inner.d))
    return QuadraticStep(d, inner.y, True, float(d @ program.B @ d), solves=True)


def _of_many(program: QuadraticProgram) -> QuadraticStep:
    """The step of a program, of that with |B| if B is not convex; no step if it has none."""
    convex = is_convex(program.B)
    if not convex:
        values, vectors = np.linalg.eigh(program.B)
        program = replace(program, B=(vectors * np.abs(values)) @ vectors.T)
    step = convex_step(program)
    if step is None:
        return QuadraticStep(np.zeros_like(program.g), np.zeros_like(program.c), False, 0.0)
    return replace(step, convex=convex)


def is_convex(B: Vector) -> bool:
    """Whether B (n, n) is positive semidefinite up to rounding, by a factorisation."""
    size = max(float(np.abs(B).max(initial=0.0)), EPS)
    try:
        np.linalg.cholesky(B + DEPENDENT * size * np.eye(len(B)))
    except np.linalg.LinAlgError:
        return False
    return True


def _around(program: QuadraticProgram, d: Vector) -> QuadraticProgram:
    """The program for steps from d (n,)."""
    return replace(
        program,
        g=program.g + program.B @ d,
        c=program.c + program.A @ d,
        low=program.low - d,
        high=program.high - d,
    )


def _corrected(
    program: QuadraticProgram, inner: InteriorSolution, penalty: float, convex: bool
) -> QuadraticStep:
    """The minimiser that the active constraints of an approximate one define.

    Variables at bounds are exactly there, or they would not count as active.
    """
    y, around = inner.y, _around(program, inner.d)
    low, high = inner.side < 0.0, inner.side > 0.0
    corrected = minimiser(around, inner.active, inner.side, penalty)
    d = inner.d
    if corrected.solves:
        low, high = corrected.d <= around.low, corrected.d >= around.high
        d, y = d + corrected.d, corrected.y
    d = np.where(low, program.low, np.where(high, program.high, d))
    d = np.clip(d, program.low, program.high)
    return QuadraticStep(d, y, convex, float(d @ program.B @ d), solves=True)


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
    below, above = (
        np.flatnonzero(np.isfinite(program.low)),
        np.flatnonzero(np.isfinite(program.high)),
    )
    rows = program.A[~equations]
    h = np.concatenate([-program.c[~equations], -program.low[below], program.high[above]])
    own = (program.B, program.g, program.A[equations], -program.c[equations])
    result = _Iteration(*own, _Inequalities(rows, below, above), h).run()
    if result is None:
        return None
    d, y_equations, s, z = result
    count = len(rows)
    y = np.zeros(len(program.c))
    y[equations], y[~equations] = y_equations, z[:count]
    tight = z > s
    active = equations.copy()
    active[~equations] = tight[:count]
    side = np.zeros(len(d))
    at_low, at_high = np.split(tight[count:], [len(below)])
    side[below[at_low]] = -1.0
    side[above[at_high]] = 1.0
    return InteriorSolution(d, y, active, side)


@dataclass(frozen=True, slots=True)
class _Inequalities:
    """The matrix C of C d ≤ h: `rows` (k, n), and ∓1 for variables with lower and upper ends."""

    rows: Vector
    below: Places
    above: Places

    def times(self, d: Vector) -> Vector:
        return np.concatenate([self.rows @ d, -d[self.below], d[self.above]])

    def transposed(self, z: Vector) -> Vector:
        own, at_low, at_high = self._split(z)
        result: Vector = own @ self.rows
        result[self.below] -= at_low
        result[self.above] += at_high
        return result

    def add_squares(self, weights: Vector, B: Vector) -> None:
        """Add Cᵀ diag(weights) C to B (n, n)."""
        own, at_low, at_high = self._split(weights)
        if len(own):
            B += (self.rows.T * own) @ self.rows
        B[self.below, self.below] += at_low
        B[self.above, self.above] += at_high

    def _split(self, z: Vector) -> list[Vector]:
        k = len(self.rows)
        return np.split(z, [k, k + len(self.below)])


@dataclass(frozen=True, slots=True)
class _Iteration:
    """minimise ⟨g, d⟩ + ½⟨d, B d⟩ subject to A d = b, C d ≤ h."""

    B: Vector
    g: Vector
    A: Vector
    b: Vector
    C: _Inequalities
    h: Vector

    def run(self) -> tuple[Vector, Vector, Vector, Vector] | None:
        """d, the multipliers of A d = b, the slacks s of C d ≤ h and their multipliers z."""
        d, y = np.zeros(len(self.g)), np.zeros(len(self.b))
        unit = max(1.0, float(np.abs(self.g).max(initial=0.0)))
        s = np.maximum(self.h, 1.0)
        z = np.full(len(self.h), unit)
        reached, idle, best = np.inf, 0, None
        for _ in range(MOST_STEPS):
            dual = self.B @ d + self.g + self.A.T @ y + self.C.transposed(z)
            primal, slack = self.A @ d - self.b, self.C.times(d) + s - self.h
            mu = float(s @ z) / len(s) if len(s) else 0.0
            worst = self._worst(d, dual, primal, slack, mu, unit)
            idle = 0 if worst <= 0.5 * reached else idle + 1
            if worst < min(reached, ACCURACY):
                best = d, y, s, z
            reached = min(reached, worst)
            if reached <= FINEST or (best is not None and idle == PATIENCE):
                break
            try:
                system = self._system(s, z)
                dd, dy, ds, dz = self._step(system, s, z, dual, primal, slack, s * z)
                if len(s):
                    ahead = float((s + _length(s, ds) * ds) @ (z + _length(z, dz) * dz)) / len(s)
                    centred = s * z + ds * dz - (ahead / mu) ** 3 * mu
                    dd, dy, ds, dz = self._step(system, s, z, dual, primal, slack, centred)
            except (np.linalg.LinAlgError, ValueError):
                break
            t = min(1.0, INTERIOR * min(_length(s, ds), _length(z, dz)))
            d, y, s, z = d + t * dd, y + t * dy, s + t * ds, z + t * dz
        return best

    def _worst(
        self, d: Vector, dual: Vector, primal: Vector, slack: Vector, mu: float, unit: float
    ) -> float:
        """The largest residual in units of the terms of the conditions."""
        size = max(1.0, float(np.abs(d).max(initial=0.0)))
        far = max(float(np.abs(one).max(initial=0.0)) for one in (primal, slack))
        steep = float(np.abs(dual).max(initial=0.0))
        return max(far / size, steep / unit, mu / (unit * size))

    def _system(self, s: Vector, z: Vector) -> Solve:
        """Solutions with [[B + Cᵀ diag(z/s) C, Aᵀ], [A, 0]] (n + k, n + k), regularised."""
        from scipy.linalg import cho_factor, cho_solve, lu_factor, lu_solve

        n, k = len(self.g), len(self.b)
        K = np.zeros((n + k, n + k))
        K[:n, :n] = self.B
        self.C.add_squares(z / s, K[:n, :n])
        K[n:, :n], K[:n, n:] = self.A, self.A.T
        size = max(float(np.abs(K.diagonal()).max(initial=0.0)), EPS)
        K.flat[:: n + k + 1] += REGULAR * np.where(np.arange(n + k) < n, min(size, 1.0), -1.0)
        if not k:
            try:
                factor = cho_factor(K)
                return lambda right: cho_solve(factor, right)
            except np.linalg.LinAlgError:
                pass
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an exactly singular matrix gives steps that are inf
            factors = lu_factor(K)
        return lambda right: lu_solve(factors, right)

    def _step(
        self,
        solve: Solve,
        s: Vector,
        z: Vector,
        dual: Vector,
        primal: Vector,
        slack: Vector,
        products: Vector,
    ) -> tuple[Vector, Vector, Vector, Vector]:
        """Newton's step for residuals and products of slacks and multipliers to become 0.

        Raises LinAlgError if it is not finite.
        """
        n = len(self.g)
        shifted = self.C.transposed((z * slack - products) / s)
        solution = solve(np.concatenate([-dual - shifted, -primal]))
        dd, dy = solution[:n], solution[n:]
        ds = -slack - self.C.times(dd)
        dz = -(products + z * ds) / s
        if not (np.isfinite(dd).all() and np.isfinite(dz).all()):
            raise np.linalg.LinAlgError
        return dd, dy, ds, dz


def _length(v: Vector, dv: Vector) -> float:
    """The longest t ≤ 1 with v + t dv ≥ 0 for v > 0."""
    falling = dv < 0.0
    return min(1.0, float(np.min(-v[falling] / dv[falling], initial=1.0)))
