"""Stationary points that are not minima: saddles, inflections and plateaus with descent beyond."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from slomodel.solve.compiled.beyond import first_lower, least_in_box
from slomodel.solve.norms import Vector, norm
from slomodel.solve.objective import Evaluator
from slomodel.solve.quadratics.hessian import OnFace
from slomodel.solve.sets.convex_set import Face, Set, WholeFace
from slomodel.solve.stagnation.curvature import CLOSE, NOISE, Ritz, least_eigenvalue
from slomodel.solve.stagnation.resolution import ROUNDING
from slomodel.solve.stagnation.scaled_descent import CLEAR
from slomodel.solve.subroutine import Iterate

Spectrum = tuple[Vector, Vector]
"""Eigenvalues (n,), ascending, and eigenvectors (n, n), the columns."""

# Largest n for which the full Krylov space is constructed. For larger n it has PRODUCTS vectors,
# starting with the gradient, which at an inflection points along the direction of least curvature.
FEW = 20
PRODUCTS = 4
# The same for few unknowns in a box, as in compiled code (`beyond.c`).
PRODUCTS_IN_BOX = 2
# Directions examined where the Hessian vanishes, beside that into the set.
AT_RANDOM = 8
# Number of random elements that are stored.
DRAWN = 1000
# An eigenvalue below this fraction of the largest one, or of the decrease of f in the run over
# ‖x‖², is not evidence of a minimum: values farther out are examined.
NULL = 1e-2
# Below this fraction the Hessian vanishes, and its eigenvectors say nothing.
VANISHED = 1e-10
# Distances examined, in units of max(1, ‖x0‖, ‖x‖), and those along clearly negative curvature, as
# far as the decrease that it causes is resolved.
REACHES = (1.0, 1.0 / 16.0, 1.0 / 256.0)
SHORTER = tuple(16.0**-k for k in range(3, 8))
# Where rounding hides the decrease at all of these, a distance at which a quadratic with that
# curvature decreases by FARTHER²/2 times what counts.
FARTHER = 2.0
# In a set, a bound whose multiplier is below this fraction of the largest may be left.
SLACK = 1e-6
# A convex f decreases by at most ‖∇f‖t over a distance t, whatever the tolerance. A decrease of
# STEEPER times that requires a slope that grows on the way.
STEEPER = 10.0
# Number of halved steps at which f must not rise: a lower point beyond a barrier does not
# contradict a minimum.
HALVINGS = 20
# Products of the conjugate gradients that bend a direction of little curvature into its valley.
BENDING = 25
# Largest n for which the message shows the direction.
SHOWN = 4


@dataclass(frozen=True, slots=True)
class SoFar:
    """The decrease of f in a run so far, and ‖x0‖."""

    gained: float
    size: float


@dataclass(frozen=True, slots=True)
class Beyond:
    """A lower point x (n,) at `step` (n,) from a stationary point, with no barrier between.

    `curvature` is that along the step at the stationary point, −inf at a kink.
    """

    x: Vector
    f: float
    step: Vector
    fall: float
    curvature: float

    def message(self, sign: float) -> str:
        """A sentence that describes the point; sign −1: for a maximum."""
        kind = "negative" if self.curvature < 0.0 else "little"
        what = f"a direction of {kind} curvature: a saddle or an inflection"
        if self.curvature == -math.inf:
            what = "from a kink"
        along = ""
        if len(self.step) <= SHOWN:
            parts = ", ".join(f"{part + 0.0:.3g}" for part in self.step / norm(self.step))
            along = f" along ({parts})"
        way, sought = ("rises", "maximum") if sign < 0.0 else ("falls", "minimum")
        return (
            f"The gradient vanishes, but the objective {way} by {self.fall:.3g} over a distance of "
            f"{norm(self.step):.3g}{along}, {what}, and no {sought}."
        )


def falls_beyond(
    evaluate: Evaluator,
    at: Iterate,
    so_far: SoFar,
    hessian: Vector | None = None,
    *,
    is_quadratic: bool = False,
    in_valleys: bool = True,
) -> Beyond | None:
    """A lower point along the direction of least curvature at a stationary point; None if none.

    Without the `hessian` (n, n) there the cost is n products, or PRODUCTS for n > FEW, and more
    if an eigenvalue is about 0 and f is not quadratic. Values of f are computed only if the
    curvature is negative, here or farther out, or along bent valleys with `in_valleys`. In a
    set the direction is in the face of the point, without the bounds whose multipliers are 0.
    Where the Hessian vanishes all directions are alike, and some others are tried.
    """
    whole = evaluate.within is None
    spectrum = np.linalg.eigh(hessian) if whole and hessian is not None and len(at.x) else None
    ritz = _least(evaluate, at, spectrum)
    if ritz is None:
        return None
    scale = max(1.0, so_far.size, norm(at.x))
    size = max(ritz.largest, max(so_far.gained, abs(at.f)) / scale / scale)
    if not ritz.value <= NULL * size:
        return None
    reaches: tuple[float, ...] = REACHES
    noise = ROUNDING * evaluate.eps * abs(at.f)
    if ritz.value < -ritz.noise:
        resolved = FARTHER * math.sqrt(CLEAR * noise / -ritz.value) / scale
        if resolved < math.inf:
            reaches = (resolved, *REACHES) if resolved > 1.0 else (*REACHES, resolved)
    if ritz.value < -max(ritz.noise, NULL * size):
        falls = (-0.5 * ritz.value * (reach * scale) ** 2 for reach in SHORTER)
        reaches += tuple(
            reach for reach, fall in zip(SHORTER, falls, strict=True) if fall > CLEAR * noise
        )
    bends = ritz.value >= -NULL * size
    if bends and is_quadratic:
        return None
    ways = np.array([way * reach * scale for reach in reaches for way in (1.0, -1.0)])
    vectors = [ritz.vector, *(_others(evaluate, at) if ritz.largest <= VANISHED * size else [])]
    all_steps = np.concatenate([ways[:, None] * v for v in vectors])
    first = _first_lower(evaluate, at, all_steps, bends=bends) if whole else 0
    steps: Iterable[Vector] = all_steps[first:]
    if not whole:
        steps = (evaluate.inside(at.x + step) - at.x for step in steps)
    if bends:
        steps = (step for step in steps if _bends_down(evaluate, at, step))
    result = (lower_at(evaluate, at, step, ritz.value) for step in steps if step.any())
    seen = next((one for one in result if one is not None), None)
    if seen is not None or not (in_valleys and bends):
        return seen
    within = evaluate.within
    face = WholeFace() if within is None else loosened_face(within, at)
    return _falls_in_valley(evaluate, at, ritz, scale, spectrum, face)


def _first_lower(evaluate: Evaluator, at: Iterate, steps: Vector, *, bends: bool) -> int:
    """The first of several steps (k, n) that `lower_at` may find lower; k if there is none."""
    lengths = np.sqrt(np.einsum("ij,ij->i", steps, steps))
    return first_lower(
        evaluate, at.x, steps, at.f - _clear_fall(evaluate, at, lengths), bends=bends
    )


def _clear_fall(evaluate: Evaluator, at: Iterate, length: Vector | float) -> Vector:
    """The least decrease of f at a distance, or several (k,), that contradicts a minimum."""
    noise = ROUNDING * evaluate.eps * abs(at.f)
    return np.asarray(np.maximum(CLEAR * noise, STEEPER * at.gnorm * length))


def _others(evaluate: Evaluator, at: Iterate) -> list[Vector]:
    """Unit vectors (n,) in the face: the one into the set, if any, and some at random."""
    generator, within = np.random.default_rng(1), evaluate.within
    vectors = list(generator.standard_normal((AT_RANDOM, len(at.x))))
    if within is not None:
        face = loosened_face(within, at)
        inward = within.interior_point() - at.x
        vectors = [face.project(v) for v in (inward, *vectors)]
    return [v / norm(v) for v in vectors if norm(v) > 0.0]


def _falls_in_valley(
    evaluate: Evaluator,
    at: Iterate,
    ritz: Ritz,
    scale: float,
    spectrum: Spectrum | None,
    face: Face,
) -> Beyond | None:
    """A lower point x + tv + t²w along a direction v without curvature; None if none.

    In a polyhedron the curve lies in a face, and its points are moved into the polyhedron.

    The valley of f, whose points are minima along the other directions, is this curve up to O(t³),
    with H w = −D³f[v, v]/2: along v alone (y − x²)(y − 3x²) rises at 0, and along the curve it
    falls. Golubitsky & Schaeffer, Singularities and Groups in Bifurcation Theory (1985), Section
    VII.1 (the Lyapunov–Schmidt reduction).
    """
    v = ritz.vector
    t = _reach_inside(evaluate, at, v, scale)
    if t is None or face.shift is not None:
        return None
    third = np.empty_like(v)
    g = np.empty_like(v)
    # Gradients alone cost less than those of the residuals with their Jacobian.
    own, evaluate.own_gradient = evaluate.own_gradient, None
    for sign in (1.0, -1.0):
        evaluate.gradient(evaluate.inside(at.x + sign * t * v), g)
        third = g.copy() if sign > 0.0 else third + g - 2.0 * at.g
    evaluate.own_gradient = own
    third *= 0.5 / t**2
    third = face.project(third)
    third -= v.dot(third) * v
    if not 0.0 < norm(third) < math.inf:
        return None
    if spectrum is not None:
        values, vectors = spectrum
        kept = values > NULL * ritz.largest
        w = -vectors[:, kept] @ ((vectors[:, kept].T @ third) / values[kept])
    else:
        w = _solved(evaluate, at, v, -third, face)

    def bent(way: float, part: float) -> Vector:
        return np.asarray(part * way * v + (part * way) ** 2 * w)

    ways = np.array([sign * reach * scale for reach in REACHES for sign in (1.0, -1.0)])
    ends = ways[:, None] * v + (ways**2)[:, None] * w
    first = _first_lower(evaluate, at, ends, bends=False) if evaluate.within is None else 0
    for way in ways[first:].tolist():
        seen = lower_at(evaluate, at, bent(way, 1.0), 0.0, partial(bent, way))
        if seen is not None:
            return seen
    return None


def _reach_inside(evaluate: Evaluator, at: Iterate, v: Vector, scale: float) -> float | None:
    """A distance along v (n,), both ways, within the set; None if there is none."""
    within = evaluate.within
    for reach in REACHES[1:]:
        t = reach * scale
        slack = SLACK * t  # v is in a face up to rounding
        if within is None or all(within.contains(at.x + way * v, slack) for way in (t, -t)):
            return t
    return None


def _solved(evaluate: Evaluator, at: Iterate, v: Vector, b: Vector, face: Face) -> Vector:
    """w (n,) in a face with H w = b there, orthogonally to v, by a few conjugate gradients."""
    w, r = np.zeros_like(b), b.copy()
    p, square = r.copy(), float(r.dot(r))
    first, product = square, np.empty_like(b)
    for _ in range(min(len(b), BENDING)):
        evaluate.hvp(at.x, p, product)
        q = face.project(product)
        q = q - v.dot(q) * v
        curvature = float(p.dot(q))
        if not curvature > 0.0:
            break
        w += (square / curvature) * p
        r -= (square / curvature) * q
        before, square = square, float(r.dot(r))
        if not square > NULL**4 * first:
            break
        p *= square / before
        p += r
    return w


def _least(evaluate: Evaluator, at: Iterate, spectrum: Spectrum | None) -> Ritz | None:
    n = len(at.x)
    if n == 0:
        return None
    if spectrum is not None:
        values, vectors = spectrum
        largest = float(np.abs(values).max())
        return Ritz(float(values[0]), vectors[:, 0], 0.0, largest, n, evaluate.eps)
    if evaluate.within is None:
        if n <= FEW:
            return least_eigenvalue(evaluate, at.x, _drawn(n))
        start = at.g / at.gnorm if 0.0 < at.gnorm < math.inf else _drawn(n)
        return least_eigenvalue(evaluate, at.x, start, PRODUCTS)
    g = _loosened(evaluate.within, at)
    noise = NOISE * evaluate.eps * math.sqrt(n)
    found = least_in_box(evaluate, at.x, g, _drawn(n), CLOSE, noise) if n <= FEW else None
    if found is not None:
        own = (found.value, found.vector, found.residual, found.largest, found.steps)
        return Ritz(*own, evaluate.eps) if found.steps and found.value == found.value else None
    most = PRODUCTS_IN_BOX if n <= FEW and evaluate.within.is_box else PRODUCTS
    return least_on_face(evaluate, evaluate.within.face(at.x, g), at, _drawn(n), most)


def least_on_face(
    evaluate: Evaluator, face: Face, at: Iterate, start: Vector, most: int
) -> Ritz | None:
    """The least Ritz value on a face after up to `most` products; None at a vertex."""
    start = face.project(start)
    if not norm(start) > 0.0:
        return None
    products = OnFace(evaluate, face, np.zeros(len(at.x)))
    return least_eigenvalue(products, at.x, start, most)


def loosened_face(within: Set, at: Iterate) -> Face:
    """The face at a stationary point, without the bounds whose multipliers are about 0."""
    return within.face(at.x, _loosened(within, at))


def _drawn(n: int) -> Vector:
    """A random vector (n,), always the same."""
    return _drawn_some()[:n] if n <= DRAWN else np.random.default_rng(0).standard_normal(n)


@cache
def _drawn_some() -> Vector:
    """The first elements of it, which take as long as some evaluations."""
    return np.random.default_rng(0).standard_normal(DRAWN)


def _loosened(within: Set, at: Iterate) -> Vector:
    """A gradient (n,) whose face at a point lacks the bounds whose multipliers are about 0."""
    inward = within.interior_point() - at.x
    longest = float(np.abs(inward).max(initial=0.0)) or 1.0
    slack = SLACK * float(np.abs(at.g).max(initial=0.0)) or 1.0
    return np.asarray(at.g - (slack / longest) * inward)


def _bends_down(evaluate: Evaluator, at: Iterate, step: Vector) -> bool:
    """Whether the curvature along `step` (n,) is negative at its end."""
    v = step / norm(step)
    product = np.empty_like(v)
    evaluate.hvp(at.x + step, v, product)
    return float(v.dot(product)) < 0.0


def lower_at(
    evaluate: Evaluator,
    at: Iterate,
    step: Vector,
    curvature: float,
    path: Callable[[float], Vector] | None = None,
) -> Beyond | None:
    """The point at `step` (n,), if f is significantly lower there and decreases along the way.

    The way is straight, or at.x + path(t) for t from 0 to 1.
    """
    noise = ROUNDING * evaluate.eps * abs(at.f)
    wanted = float(_clear_fall(evaluate, at, norm(step)))
    x = evaluate.inside(at.x + step)
    f = evaluate.value(x)
    if not -math.inf < f < at.f - wanted:
        return None
    last = f
    for k in range(1, HALVINGS + 1):
        part = 0.5**k * step if path is None else path(0.5**k)
        nearer = evaluate.value(evaluate.inside(at.x + part))
        if not last <= nearer + noise or not nearer <= at.f + noise:
            return None
        last = nearer
    return Beyond(x, f, step, at.f - f, curvature)
