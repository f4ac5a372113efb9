"""The Hessian over a ball, one end and one part at a time: spectrum, blocks, diagonal majorant."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.rounding import Array, up_add, up_div, up_sum
from slomodel.bounds.centre import centre_hessian, has_hessian_at_centre, hessian_over
from slomodel.bounds.closure import close
from slomodel.bounds.enclosure import DerivativeBounds, Enclosure, both_ends
from slomodel.bounds.norms.eigenvalues import (
    UNKNOWN,
    SpectralInterval,
    spectral_interval,
    unit_scales,
)
from slomodel.bounds.norms.spectral_norm import spectral_norm, symmetric_norm
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.ranges.smoothness import smoothness_in
from slomodel.bounds.ranges.taylor.taylor_ranges import taylor_ranges
from slomodel.bounds.useless import large_bound
from slomodel.errors import MissingRule
from slomodel.ir.exact import without_rounding

Blocks = Mapping[tuple[str, str], float]
"""Upper bounds on the norms ‖H_vw‖ of blocks of the Hessian, by the names of two variables."""
_FLOPS = 32.0
"""Operations per direction and element of a node that depends on it."""


@once_per_part
def centre_spectrum(part: ObjectivePart) -> SpectralInterval:
    """The interval of the eigenvalues of H(c); unbounded where H(c) exceeds the effort, or where f
    is not proved to have it.
    """
    H = centre_hessian(part) if has_hessian_at_centre(part) else None
    return UNKNOWN if H is None else spectral_interval(H)


@once_per_part
@without_rounding()
def hessian_over_ball(part: ObjectivePart, radius: float) -> Interval | None:
    """H over the ball (n, n) as a symmetric interval matrix; None where there is no proof of C¹, a
    node has no interval rule, or the work exceeds the effort.
    """
    if part.n == 0 or not math.isfinite(radius):
        return None
    most = part.effort.count(_FLOPS)
    try:
        ranges = taylor_ranges(part, radius, most)
        smooth = smoothness_in(part, ranges)
        return hessian_over(part, ranges, most) if smooth.least >= 1 else None
    except MissingRule:
        return None


@once_per_part
def spectral_ends(
    part: ObjectivePart, radius: float, enclosure: Enclosure, L1: float, L2: float
) -> SpectralInterval:
    """λ_min and λ_max of H over the ball, given both constants and the bounds on derivatives.

    Each end is the better of that of `close` and of that of the entries over the ball. Hypothesis:
    f is C¹ where L1 is finite.
    """
    if part.n == 0:
        return SpectralInterval(0.0, 0.0)
    if not math.isfinite(L1):
        return UNKNOWN
    with np.errstate(all="ignore"), without_rounding():
        known = centre_spectrum(part)
        H = hessian_over_ball(part, radius)
        entries = UNKNOWN if H is None else spectral_interval(H)
    centre = enclosure.centre.least(DerivativeBounds((known.high, -known.low)))
    over = enclosure.over.least(DerivativeBounds(both_ends(L1), L2))
    upper, lower = close(Enclosure(centre, over), radius).ends
    return entries.meet(-lower, upper)


@once_per_part
def block_norms(part: ObjectivePart, radius: float, L1: float) -> Blocks:
    """Upper bounds over the ball on ‖H_vw‖ for all pairs of variables v, w, none above L1.

    ‖H_vw‖ <= ‖M‖ + ‖R‖ with the block in M ± R, and ‖H_vw‖ <= ‖H‖ for every block of a matrix.
    """
    H = hessian_over_ball(part, radius) if math.isfinite(L1) else None
    return norms_of_blocks(H, sizes_of(part), L1)


Sizes = Mapping[str, int]
"""The numbers of unknowns of each variable, by name in the order of the variables."""


def sizes_of(part: ObjectivePart) -> Sizes:
    """The number of unknowns of each variable."""
    return {variable.name: int(np.size(part.values[variable])) for variable in part.variables}


def norms_of_blocks(H: Interval | None, sizes: Sizes, L1: float) -> Blocks:
    """`block_norms` from the entries of the Hessian over the ball, where known."""
    names, ends = list(sizes), [0, *accumulate(sizes.values())]
    parts = [slice(a, b) for a, b in pairwise(ends)]
    result: dict[tuple[str, str], float] = {}
    for i, v in enumerate(names):
        for j, w in enumerate(names[: i + 1]):
            norm = L1
            if H is not None:
                mid, rad = H.mid[parts[i], parts[j]], H.rad[parts[i], parts[j]]
                if i == j:
                    own = symmetric_norm(mid, rad)
                else:
                    own = float(up_add(spectral_norm(mid), spectral_norm(rad)))
                norm = min(norm, own)
            result[v, w] = result[w, v] = norm
    return result


def diagonal_majorant(part: ObjectivePart, radius: float, upper: float, blocks: Blocks) -> Array:
    """D (n,) with H ≼ diag(D) over the ball, of the least sum among four; +inf without a proof.

    - λ_max(H) I.
    - By blocks: vᵀHv <= Σ_bc ‖H_bc‖ ‖v_b‖‖v_c‖ <= Σ_b ‖v_b‖² Σ_c ‖H_bc‖, as 2xy <= x² + y².
    - By entries, with d_i = sup H_ii + Σ_(j≠i) sup |H_ij|: diag(D) - H is diagonally dominant.
    - By the diagonal: with A = diag(sup H_ii)^-½ > 0 and t >= λ_max(A H A), H <= t A^-2.
    """
    H = hessian_over_ball(part, radius) if math.isfinite(upper) else None
    return least_majorant(H, sizes_of(part), upper, blocks)


def least_majorant(H: Interval | None, sizes: Sizes, upper: float, blocks: Blocks) -> Array:
    """`diagonal_majorant` from the entries of the Hessian over the ball, where known."""
    n = sum(sizes.values())
    if n == 0:
        return np.zeros(0)
    rows = [float(up_sum(np.array([blocks[v, w] for w in sizes]))) for v in sizes]
    candidates = [np.full(n, upper), np.repeat(rows, list(sizes.values()))]
    if H is not None:
        candidates += _majorants_of(H)
    return min(candidates, key=lambda D: float(np.sum(D)) if np.isfinite(D).all() else math.inf)


def _majorants_of(H: Interval) -> list[Array]:
    """Two majorants of an interval matrix (n, n): by its rows, and by its diagonal."""
    top = np.diag(H.hi).copy()
    off = H.magnitude.copy()
    np.fill_diagonal(off, 0.0)
    result = [np.asarray(up_add(top, np.asarray(up_sum(off, 1))))]
    if (top > 0.0).all() and np.isfinite(top).all():
        a = unit_scales(H.hi)
        scaled = H.each(lambda array: a[:, np.newaxis] * array * a)
        t = spectral_interval(scaled, signs=False).high
        result.append(np.asarray(up_div(np.full(len(a), max(t, 0.0)), a * a)))
    return result


@dataclass(frozen=True, slots=True)
class HessianOverBall:
    """Proved bounds on the Hessian over a ball beyond its norm, computed on demand."""

    part: ObjectivePart
    radius: float
    enclosure: Enclosure
    L1: float
    L2: float

    def spectrum(self) -> SpectralInterval:
        """The interval of its eigenvalues."""
        return spectral_ends(self.part, self.radius, self.enclosure, self.L1, self.L2)

    def why_large(self) -> str:
        """Which sub-expression makes L1 far larger than sampled curvature; empty if it is not."""
        with np.errstate(all="ignore"), without_rounding():
            return large_bound(self.part, self.radius, self.L1)

    def blocks(self) -> Blocks:
        """Upper bounds on the norms of its blocks."""
        return block_norms(self.part, self.radius, self.L1)

    def majorant(self) -> Array:
        """A diagonal majorant (n,)."""
        upper = self.spectrum().high
        return diagonal_majorant(self.part, self.radius, upper, self.blocks())
