"""The certificate of a point: critical point, kind, uniqueness, convexity and possible gain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval, point
from slomodel.bounds.arithmetic.interval_einsum import contract
from slomodel.bounds.arithmetic.rounding import (
    Array,
    Truths,
    down_add,
    up_add,
    up_div,
    up_matmul,
    up_mul,
    up_norm,
)
from slomodel.bounds.certificates.critical_point import CriticalPoint, critical_point, of_free
from slomodel.bounds.certificates.neighbourhood import (
    BoundsAt,
    ByBounds,
    ByEntries,
    Neighbourhood,
    largest_radius,
)
from slomodel.bounds.certificates.point_certificate import Kind, PointCertificate
from slomodel.bounds.certificates.slices import OrbitSlice
from slomodel.bounds.effort import less_effort
from slomodel.bounds.lipschitz import bounds
from slomodel.bounds.norms.eigenvalues import UNKNOWN, SpectralInterval, spectral_interval
from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.structure.recurrences import too_long, written_out
from slomodel.errors import MissingRule
from slomodel.ir.exact import without_rounding

_MOST_ENTRIES = 300
"""Largest n for which balls are judged by the entries of the Hessian."""
_NEAR = 0.01
"""Radius of the ball of the gap where no convexity is proved, relative to max(1, ‖x‖)."""


@dataclass(frozen=True, slots=True)
class FreeUnknowns:
    """The unknowns that a proof holds at x, and what the certificate says about them.

    `free` (n,) marks the others. `low` and `high` (n,) are the ends of a closed set of x, and its
    other sets hold all points within `margin` of x. `reason` refuses the proof of a critical point.
    `across` is a slice, if some unknowns choose a point of each orbit of the `invariances`.
    """

    free: Truths
    remarks: tuple[str, ...] = ()
    invariances: tuple[str, ...] = ()
    reason: str = ""
    low: Array | None = None
    high: Array | None = None
    margin: float = math.inf
    across: OrbitSlice | None = None

    def on_slice(self, across: OrbitSlice) -> FreeUnknowns:
        """The unknowns without those that choose one point of each orbit."""
        count = int(across.held.sum())
        said = (f"{count} of {len(self.free)} elements choose a point of each orbit.",)
        return replace(
            self,
            free=self.free & ~across.held,
            remarks=self.remarks + (said if count else ()),
            invariances=tuple(group.text for group in across.groups),
            across=across,
        )


def whole(n: int) -> FreeUnknowns:
    """All n unknowns free."""
    return FreeUnknowns(np.ones(n, dtype=bool))


@without_rounding()
def certify(part: ObjectivePart, maximises: bool, unknowns: FreeUnknowns) -> PointCertificate:
    """The certificate of the part's centre. Every number is rounded outward."""
    x = part.x
    shapes = {v.name: np.shape(part.values[v]) for v in part.variables}
    part = written_out(part)
    sign = -1.0 if maximises else 1.0
    at: BoundsAt = cache(partial(bounds, part))
    with np.errstate(all="ignore"):
        result = _critical_point(part, at, unknowns)
        blocked = _blocked(result, unknowns, x, sign) if result.exists else ""
        if result.exists and unknowns.across and not unknowns.across.is_regular(x, result.error):
            blocked = "the slice is not proved to meet each orbit once"
        if blocked:
            result = _with_reason(result, blocked)
        spectrum = _spectrum(result, unknowns.free)
        scale = max(1.0, float(np.linalg.norm(x)))
        around = _neighbourhood(part, result, unknowns.free, sign)
        convex = _convexity(part, around, sign, scale)
        norm = float(up_norm(result.gradient.magnitude[unknowns.free]))
        gap, within = _gap(around, convex, norm, scale)
        unique = _unique(around, convex, scale) if result.exists else 0.0
        direction, bend = _bent(result.at, unknowns.free, sign)
    return PointCertificate(
        x=x,
        shapes=shapes,
        gradient_norm=float(up_norm(result.gradient.magnitude)),
        exists=result.exists,
        reason=result.reason,
        error=result.error,
        box=result.box,
        unique_within=unique if unique > float(up_norm(result.error)) else 0.0,
        kind=_kind(spectrum, result, unknowns.free),
        eigenvalues=(spectrum.low, spectrum.high),
        convex_within=convex.radius,
        gap=gap,
        gap_within=within,
        direction=direction,
        curvature=bend,
        maximises=maximises,
        held=~unknowns.free,
        remarks=unknowns.remarks,
        invariances=unknowns.invariances,
    )


def _neighbourhood(
    part: ObjectivePart, point: CriticalPoint, free: Truths, sign: float
) -> Neighbourhood:
    """Proofs over balls around x: by entries of the Hessian, or by cheaper bounds for large n."""
    if part.n <= _MOST_ENTRIES:
        return ByEntries(part, free, sign, point.R)
    spectrum = UNKNOWN if point.at is None else spectral_interval(of_free(point.at, free))
    least = spectrum.low if sign > 0.0 else -spectrum.high
    distance = float(up_norm(point.error))
    at = cache(partial(bounds, replace(part, effort=less_effort(part.effort))))
    return ByBounds(at, sign, least, not free.all(), point.inverse, distance)


@dataclass(frozen=True, slots=True)
class Convexity:
    """±f has λ_min >= 0 on the ball of `radius`, and λ_min >= `least` on that of half of it."""

    radius: float
    least: float


def _convexity(part: ObjectivePart, around: Neighbourhood, sign: float, scale: float) -> Convexity:
    """A large radius of a ball on which ±f is proved to be convex in the free unknowns."""
    if not around.least(0.0) > 0.0:
        return Convexity(0.0, -math.inf)
    everywhere = bounds(replace(part, effort=less_effort(part.effort)), math.inf)
    least = everywhere.lower if sign > 0.0 else -everywhere.upper
    if least >= 0.0:
        return Convexity(math.inf, least)
    radius = largest_radius(around.convex, scale)
    return Convexity(radius, around.least(0.5 * radius))


def _unique(around: Neighbourhood, convex: Convexity, scale: float) -> float:
    """A large radius of uniqueness: by strict convexity, or where the Hessian stays regular."""
    radius = convex.radius
    if radius == math.inf and convex.least > 0.0:
        return radius
    if 0.0 < radius < math.inf and around.least(radius) > 0.0:
        return radius
    return largest_radius(around.single, scale)


def _critical_point(part: ObjectivePart, at: BoundsAt, unknowns: FreeUnknowns) -> CriticalPoint:
    """The proof, or why there is none."""
    n = part.n
    nowhere = np.where(unknowns.free, np.inf, 0.0)
    anything = Interval(np.full(n, -np.inf), np.full(n, np.inf))
    nothing = CriticalPoint(anything, nowhere, nowhere, None, None, np.zeros(n))
    reason = too_long(part) or _not_finite(part)
    if reason:
        return _with_reason(nothing, reason)
    try:
        result = critical_point(part, unknowns.free, lambda radius: at(radius).L2)
    except MissingRule as gap:
        return _with_reason(nothing, str(gap))
    return _with_reason(result, unknowns.reason) if unknowns.reason else result


def _blocked(point: CriticalPoint, unknowns: FreeUnknowns, x: Array, sign: float) -> str:
    """Why x* on the face may not be stationary on the whole set; empty if it is.

    The free elements of x* lie between their ends, and the slope of ±f at x* along each held
    element, which differs from that at x by at most |H| |x* - x|, points out of the set.
    """
    if float(up_norm(point.error)) > unknowns.margin:
        return "x is too close to the boundary of its set for the error bars"
    if unknowns.low is None or unknowns.high is None or point.near is None:
        return ""
    e, free = point.error, unknowns.free
    inside = (unknowns.low < down_add(x, -e)) & (up_add(x, e) < unknowns.high)
    if not inside[free].all():
        return "elements of x are too close to their bounds for the error bars"
    moved = np.asarray(up_matmul(point.near.magnitude, e))
    off = float(up_mul(point.slack, float(up_norm(e))))
    moved = np.asarray(up_add(moved, np.full(len(x), off)))
    slope = point.gradient if sign > 0.0 else -point.gradient
    at_low, at_high = ~free & (x <= unknowns.low), ~free & (x >= unknowns.high)
    held = (slope.lo > moved) & at_low | (-slope.hi > moved) & at_high | at_low & at_high
    if not held[~free].all():
        count = int((~held & ~free).sum())
        return f"the multipliers of {count} elements at bounds are not proved to differ from 0"
    return ""


def _with_reason(one: CriticalPoint, reason: str) -> CriticalPoint:
    nowhere = np.full(len(one.error), np.inf)
    return CriticalPoint(one.gradient, nowhere, nowhere, one.at, one.near, one.step, reason)


def _not_finite(part: ObjectivePart) -> str:
    for node, array in part.values.items():
        if not np.all(np.isfinite(array)):
            return f"data `{node.name}` has NaN or inf"
    return ""


def _spectrum(point: CriticalPoint, free: Truths) -> SpectralInterval:
    """The interval of the eigenvalues at x*, of the free unknowns."""
    if not point.exists or point.near is None:
        return UNKNOWN
    return spectral_interval(of_free(point.near, free)).widened(point.slack)


def _kind(spectrum: SpectralInterval, point: CriticalPoint, free: Truths) -> Kind:
    """The kind of x*: a saddle has proved curvature of both signs along two vectors."""
    if not point.exists or point.near is None:
        return "unknown"
    if spectrum.low > 0.0:
        return "minimum"
    if spectrum.high < 0.0:
        return "maximum"
    H = of_free(point.near, free)
    ends = [_curvature_along(H, v, point.slack) for v in _extreme_vectors(H)]
    return "saddle" if ends[0][1] < 0.0 < ends[1][0] else "unknown"


def _extreme_vectors(H: Interval) -> Sequence[Array]:
    """Approximate eigenvectors of the least and the largest eigenvalue."""
    _, V = np.linalg.eigh(0.5 * (H.mid + H.mid.T))
    return V[:, 0], V[:, -1]


def _curvature_along(H: Interval, v: Array, slack: float) -> tuple[float, float]:
    """The ends of vᵀHv / vᵀv, up to `slack`."""
    n, u = len(v), point(v)
    form = contract([(u, (0,)), (H, (0, 1)), (u, (1,))], (), (n, n))
    ratio = form / contract([(u, (0,)), (u, (0,))], (), (n,))
    return -float(up_add(-float(ratio.lo), slack)), float(up_add(float(ratio.hi), slack))


def _bent(H: Interval | None, free: Truths, sign: float) -> tuple[Array | None, float]:
    """A unit vector of proved negative curvature of ±f at x, and vᵀHv there."""
    if H is None or not free.any() or not np.isfinite(H.mid).all():
        return None, 0.0
    own = of_free(H, free)
    v = _extreme_vectors(own)[0 if sign > 0.0 else 1]
    low, high = _curvature_along(own, v, 0.0)
    if not (high < 0.0 if sign > 0.0 else low > 0.0):
        return None, 0.0
    full = np.zeros(len(free))
    full[free] = v
    return full, high if sign > 0.0 else low


def _gap(
    around: Neighbourhood, convex: Convexity, norm: float, scale: float
) -> tuple[float, float]:
    """How far ±f may lie below its value at x, and within which radius.

    With λ_min >= m there, ±f(y) >= ±f(x) - ‖g‖t + m t²/2 at distance t: at least ±f(x) -
    ‖g‖²/(2m) for m > 0, and ±f(x) - ‖g‖r + min(m, 0) r²/2 in any case.
    """
    radius, least = 0.5 * convex.radius, convex.least
    if radius == 0.0:
        radius, least = _NEAR * scale, around.least(_NEAR * scale)
    if not math.isfinite(least):
        return math.inf, radius
    gap = math.inf
    if math.isfinite(radius):
        half = up_mul(0.5 * max(-least, 0.0), up_mul(radius, radius))
        gap = float(up_add(up_mul(norm, radius), half))
    if least > 0.0:
        gap = min(gap, float(up_div(up_mul(norm, norm), 2.0 * least)))
    return gap, radius


@without_rounding()
def convex_within(part: ObjectivePart, maximises: bool) -> float:
    """A radius of a ball round the centre on which ±f is proved to be convex; 0 without a proof."""
    sign = -1.0 if maximises else 1.0
    at: BoundsAt = cache(partial(bounds, part))
    first = at(0.0)
    around = ByBounds(at, sign, first.lower if sign > 0.0 else -first.upper, restricted=False)
    return _convexity(part, around, sign, max(1.0, float(np.linalg.norm(part.x)))).radius
