"""Quadratic programs of a Newton step: by guesses of the active constraints and bounds.

    minimise ⟨g, d⟩ + ½⟨d, B d⟩  subject to  c + A d = 0 or ≤ 0,  low ≤ d ≤ high

The constraints guessed to be active are treated as equations, the variables guessed to be at bounds
are fixed there, and the signs of the multipliers and residuals give the next guess: the primal-dual
active set method of Hintermüller, Ito & Kunisch, SIAM J. Optim. 13 (2002). For an objective that is
not convex on the active constraints, B is replaced there by the matrix of absolute eigenvalues.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from slomodel.solve.norms import EPS, Vector
from slomodel.solve.sets.convex_set import Mask

MOST_GUESSES = 15
# Singular values and eigenvalues below this fraction of the largest count as 0.
DEPENDENT = 1e-10
# Slopes along directions without curvature count as 0 up to this multiple of their rounding error.
ROUNDED = 8.0


@dataclass(frozen=True, slots=True)
class QuadraticProgram:
    """B (n, n), g (n,), A (m, n), c (m,), and bounds on d (n,), which may be infinite."""

    B: Vector
    g: Vector
    A: Vector
    c: Vector
    equations: Mask
    low: Vector
    high: Vector


@dataclass(frozen=True, slots=True)
class QuadraticStep:
    """A step d (n,) with its multipliers y (m,); `convex`: B was positive semidefinite there.

    `flat`: it has a direction without curvature there; `curvature` is ⟨d, B d⟩; `solves`: the guess
    of the active constraints was confirmed; `falls`: the program is unbounded for that guess.
    """

    d: Vector
    y: Vector
    convex: bool
    curvature: float
    solves: bool = False
    falls: bool = False
    flat: bool = False


def pressed_bounds(program: QuadraticProgram) -> Vector:
    """−1 and 1 (n,) for variables at lower and upper bounds that the gradient presses against."""
    side = np.where((program.low >= 0.0) & (program.g > 0.0), -1, 0)
    return np.where((program.high <= 0.0) & (program.g < 0.0), 1, side)


def minimiser(
    program: QuadraticProgram, active: Mask, side: Vector, penalty: float
) -> QuadraticStep:
    """A step of the program, from a first guess of the active constraints and bounds."""
    low, high = program.low, program.high
    seen: set[bytes] = set()
    for _ in range(MOST_GUESSES):
        guess = active.tobytes() + side.tobytes()
        seen.add(guess)
        step = with_guess(program, active, side)
        residual = program.c + program.A @ step.d
        z = program.g + program.B @ step.d + program.A.T @ step.y
        active = program.equations | (step.y + penalty * residual > 0.0)
        below = np.where(side < 0, z > 0.0, step.d < low)
        above = np.where(side > 0, z < 0.0, step.d > high)
        side = np.where(below, -1, np.where(above, 1, 0))
        after = active.tobytes() + side.tobytes()
        if after in seen:
            break
    return replace(step, d=np.clip(step.d, low, high), solves=after == guess)


def with_guess(program: QuadraticProgram, active: Mask, side: Vector) -> QuadraticStep:
    """The minimiser where some constraints are equations and some variables are at bounds."""
    free = side == 0
    d = np.where(side < 0, program.low, np.where(side > 0, program.high, 0.0))
    shifted = program.g + program.B @ d
    B, A = program.B[np.ix_(free, free)], program.A[np.ix_(active, free)]
    g, c = shifted[free], (program.c + program.A @ d)[active]
    # The singular values of A show which constraints depend on others.
    U, s, Vt = np.linalg.svd(A, full_matrices=True)
    rank = int((s > DEPENDENT * max(1.0, s[0])).sum()) if s.size else 0
    U, s, V, Z = U[:, :rank], s[:rank], Vt[:rank].T, Vt[rank:].T
    normal = -V @ ((U.T @ c) / s)
    slopes = g + B @ normal
    along = Z.T @ slopes
    values, vectors = np.linalg.eigh(Z.T @ B @ Z)
    size = max(float(np.abs(B).max(initial=0.0)), EPS)
    convex = not values.size or values[0] >= -DEPENDENT * size
    values = np.abs(values)
    without = bool((values <= DEPENDENT * size).any())
    # A direction without curvature is left out unless f falls along it.
    least = EPS * max(size, ROUNDED * float(np.abs(slopes).sum()))
    flat = values <= EPS * size
    steep = np.abs(vectors.T @ along) > least
    curved = steep | ~flat
    values = np.maximum(values, np.sqrt(EPS) * size if not convex else EPS * size)
    step = -(vectors[:, curved] @ ((vectors[:, curved].T @ along) / values[curved]))
    d[free] = normal + Z @ step
    y = np.zeros(len(program.c))
    y[active] = -U @ ((V.T @ (g + B @ d[free])) / s)
    falls = bool((flat & steep).any())
    return QuadraticStep(d, y, convex, float(d @ program.B @ d), falls=falls, flat=without)
