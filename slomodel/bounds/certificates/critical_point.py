"""A critical point near x: existence, uniqueness and componentwise errors, by Krawczyk's operator.

With g = ∇f(x), a box X of radii ρ round x, intervals H that hold the Hessians on X and any matrix
R, the map N(y) = y - R ∇f(y) satisfies for y in X, by the mean value theorem for a Lipschitz ∇f,

    |N(y) - x| <= |R g| + |I - R H| ρ,    elementwise.

If that is less than ρ, N maps X to itself, and has a fixed point y* there (Brouwer). |I - R H| ρ <
ρ with ρ > 0 shows that every matrix in R H is nonsingular (Perron, Frobenius), so that R is, hence
∇f(y*) = 0; and of two critical points y, z in X, 0 = R (∇f(y) - ∇f(z)) = R M (y - z) with a mean M
of the Hessians between, so that y = z. Krawczyk 1969; Rump, Acta Numerica 19 (2010), section 13.
Where elements of x are held, f is a function of the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval, around, point
from slomodel.bounds.arithmetic.interval_einsum import contract
from slomodel.bounds.arithmetic.rounding import (
    SMALLEST_NORMAL,
    UNIT,
    Array,
    Truths,
    up_add,
    up_div,
    up_matmul,
    up_mul,
    up_norm,
    up_sqrt,
)
from slomodel.bounds.centre import hessian_over
from slomodel.bounds.norms.spectral_norm import spectral_norm
from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.ranges.enclose import boxed, enclose, live_in
from slomodel.bounds.ranges.evaluation_errors import gradient_interval
from slomodel.bounds.ranges.hessian import derivatives
from slomodel.bounds.ranges.smoothness import smoothness_in
from slomodel.ir.walk import dependents, postorder

Lipschitz = Callable[[float], float]
_FLOPS = 4.0
"""Operations per number of the Hessian's graph: many rules share an effort, this is one proof."""
_ATTEMPTS = 6
"""Boxes that are tried; each takes the Hessian over a box."""
_INFLATION = 2.0
"""Factor from the error that a box implies to the radii of the next box (ε-inflation)."""
_LEAST = 8.0 * UNIT
"""Least radius of a box, relative to |x|."""
_MOST_BOXED = 200
"""Beyond it a ball is tried first: boxes of many unknowns are far larger than the ball in them."""
_NO_INVERSE = 0.1
"""‖I - R H‖ at the centre beyond which H is singular up to rounding: R is an inverse in float64."""
_HOPELESS = 1e3
"""Row sums of |I - R H| beyond which larger boxes cannot succeed."""


@dataclass(frozen=True, slots=True)
class HessianBox:
    """H (n, n) over a box, or why there is none."""

    H: Interval | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CriticalPoint:
    """A proof about the critical points near x, or the reason why there is none.

    `error` (n,) bounds |y* - x| elementwise, and `box` (n,) holds radii within which y* is the only
    critical point: both are infinite without a proof. `at` holds H(x); the Hessian at every point
    between x and y* is within `slack` in norm of a matrix in `near`. `step` (n,) approximates y* -
    x. For the free unknowns, R is near H(x)⁻¹ and `inverse` bounds its norm.
    """

    gradient: Interval
    error: Array
    box: Array
    at: Interval | None
    near: Interval | None
    step: Array
    reason: str = ""
    slack: float = 0.0
    inverse: float = math.inf
    R: Array | None = None

    @property
    def exists(self) -> bool:
        """Whether a critical point is proved to exist."""
        return not self.reason


def hessian_in_box(part: ObjectivePart, radii: Array) -> HessianBox:
    """The Hessians on the box of `radii` (n,) round the centre; f is proved to be C¹ there."""
    graphs = derivatives(part)
    order = postorder(part.objective, *graphs.second)
    turning = dependents(order, {*graphs.v}.__contains__)
    fixed = [node for node in order if node not in turning]
    boxes = boxed(part.values) | {
        variable: around(part.values[variable], own)
        for variable, own in part.by_variable(radii).items()
    }
    live = live_in(part, part.objective, *graphs.second)
    result = enclose(fixed, boxes, part.sizes, live=live)
    known = {node: result[node] for node in fixed}
    smooth = smoothness_in(part, known)
    if smooth.least < 1:
        return HessianBox(None, smooth.reason)
    H = hessian_over(part, known, part.effort.count(_FLOPS))
    if H is None:
        return HessianBox(None, f"the Hessian in {part.n} unknowns exceeds the effort")
    if not (np.isfinite(H.lo).all() and np.isfinite(H.hi).all()):
        return HessianBox(None, "the Hessian is not proved to be finite at x")
    return HessianBox(H)


def critical_point(part: ObjectivePart, free: Truths, lipschitz: Lipschitz) -> CriticalPoint:
    """The proof for the unknowns that are `free` (n,), with the others held at the centre.

    `lipschitz` maps a radius to a Lipschitz constant of the Hessian on the ball round the centre.
    """
    gradient = gradient_interval(part)
    unknown = np.where(free, np.inf, 0.0)
    zeros = np.zeros(part.n)
    at = hessian_in_box(part, zeros)
    nothing = CriticalPoint(gradient, unknown, unknown, at.H, at.H, zeros, at.reason)
    if at.H is None:
        return nothing
    own = gradient.each(lambda array: array[free])
    if not np.isfinite(own.magnitude).all():
        return replace(nothing, reason="the gradient is not proved to be finite at x")
    R = _inverse(of_free(at.H, free).mid)
    if R is None:
        return replace(nothing, reason="the Hessian at x is singular in floating point")
    moved = contract([(point(R), (0, 1)), (own, (1,))], (0,), R.shape)
    step = zeros.copy()
    step[free] = -moved.mid
    nothing = replace(nothing, step=step, R=R)
    newton = NewtonMap(R, moved.magnitude, free)
    ways = [partial(_by_boxes, part, newton), partial(_by_ball, newton, lipschitz)]
    if part.n > _MOST_BOXED:
        ways.reverse()
    reasons = []
    for way in ways:
        result = way(nothing)
        if result.exists:
            return result
        reasons.append(result.reason)
    if spectral_norm(distance_from_identity(R, of_free(at.H, free))) > _NO_INVERSE:
        reasons[0] = "the Hessian at x is singular up to rounding; minimisers may not be isolated"
    return replace(nothing, reason=reasons[0])


@dataclass(frozen=True, slots=True)
class NewtonMap:
    """R near H⁻¹ and `first` >= |R g|, both of the free unknowns alone."""

    R: Array
    first: Array
    free: Truths

    def spread(self, free: Array) -> Array:
        """Numbers of the free unknowns among all (n,); 0 for those that are held."""
        full = np.zeros(len(self.free))
        full[self.free] = free
        return full

    def inverse(self, defect: float) -> float:
        """Upper bound on ‖H⁻¹‖ for defect >= ‖I - R H‖: H⁻¹ = (I - (I - R H))⁻¹ R."""
        left = -float(up_add(defect, -1.0))
        return float(up_div(spectral_norm(self.R), left)) if left > 0.0 else math.inf


def _by_boxes(part: ObjectivePart, newton: NewtonMap, nothing: CriticalPoint) -> CriticalPoint:
    """Krawczyk's test on boxes of growing radii."""
    x = part.x[newton.free]
    floor = _LEAST * np.abs(x) + SMALLEST_NORMAL
    radii = np.asarray(_INFLATION * newton.first + floor)
    for _ in range(_ATTEMPTS):
        over = hessian_in_box(part, newton.spread(radii))
        if over.H is None:
            return replace(nothing, reason=over.reason)
        apart = distance_from_identity(newton.R, of_free(over.H, newton.free))
        error = np.asarray(up_add(newton.first, np.asarray(up_matmul(apart, radii))))
        if (error < radii).all():
            inside, box = newton.spread(error), newton.spread(radii)
            beta = newton.inverse(spectral_norm(apart))
            return replace(nothing, error=inside, box=box, near=over.H, inverse=beta)
        if not np.isfinite(error).all() or (apart.sum(axis=1) > _HOPELESS).all():
            break
        radii = _INFLATION * error + floor
    return replace(nothing, reason=_why(newton.first, x))


def _by_ball(newton: NewtonMap, lipschitz: Lipschitz, nothing: CriticalPoint) -> CriticalPoint:
    """The test of Newton and Kantorovich on a ball of radius t, with L2 there. N maps it to itself
    if

        ‖R g‖ + ‖I - R H(x)‖ t + ‖R‖ L2 t²/2 <= t,

    as H averaged from x to y is within L2 t/2 of H(x), and with ‖I - R H(x)‖ + ‖R‖ L2 t < 1 there
    is one critical point. Each element moves by at most the sum of the same terms for its row of R.
    """
    assert nothing.at is not None
    first, R = float(up_norm(newton.first)), newton.R
    apart = distance_from_identity(R, of_free(nothing.at, newton.free))
    defect, size = spectral_norm(apart), spectral_norm(R)
    t = 2.0 * first / max(1.0 - defect, 0.5) + SMALLEST_NORMAL
    L2 = lipschitz(t) if math.isfinite(t) and defect < 0.5 else math.inf
    turned = float(up_mul(up_mul(size, L2), t))
    reached = up_add(first, up_mul(up_add(defect, 0.5 * turned), t))
    if not (reached <= t and up_add(defect, turned) < 1.0):
        return replace(
            nothing, reason="the Hessian is too nearly singular for its variation near x"
        )
    half = np.full(len(R), float(up_mul(0.5 * L2, t)))
    by_row = np.asarray(up_mul(np.asarray(up_norm(R, 1)), half))
    rows = np.asarray(up_add(np.asarray(up_norm(apart, 1)), by_row))
    error = np.asarray(up_add(newton.first, np.asarray(up_mul(rows, np.full(len(R), t)))))
    inside = -float(up_div(-t, float(up_sqrt(float(len(R))))))
    box = newton.spread(np.full(len(R), inside))
    own = float(up_mul(L2, t))
    beta = newton.inverse(defect)
    return replace(nothing, error=newton.spread(error), box=box, slack=own, inverse=beta)


def _why(first: Array, x: Array) -> str:
    """Why no box is mapped to itself: x is too far from a critical point, or H varies too much."""
    far = float(np.max(first / np.maximum(np.abs(x), 1e-3)))
    if far > 1e-4:
        step = f"a Newton step changes an element by {far:.1e} of its size"
        return f"x is too far from a critical point: {step}"
    return "the Hessian is too nearly singular for its variation and rounding near x"


def of_free(H: Interval, free: Truths) -> Interval:
    """The rows and columns of the free unknowns."""
    return H.each(lambda array: array[np.ix_(free, free)])


def _inverse(H: Array) -> Array | None:
    """An approximate inverse; None for a matrix that is singular in floating point."""
    scale = np.sqrt(np.maximum(np.abs(H).max(axis=1, initial=0.0), SMALLEST_NORMAL))
    scale = np.ldexp(1.0, np.frexp(scale)[1])  # powers of two: scaling rounds nothing
    try:
        R = np.linalg.inv(H / scale / scale[:, np.newaxis]) / scale / scale[:, np.newaxis]
    except np.linalg.LinAlgError:
        return None
    return R if np.isfinite(R).all() else None


def distance_from_identity(R: Array, H: Interval) -> Array:
    """Upper bounds on |I - R M|, elementwise, for all M in H (n, n)."""
    n = len(R)
    product = contract([(point(R), (0, 1)), (H, (1, 2))], (0, 2), (n, n, n))
    return np.asarray((point(np.eye(n)) - product).magnitude)
