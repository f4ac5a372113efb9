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
from slomodel.bounds.ranges.smoothness import smoothness_in
from slomodel.bounds.ranges.taylor.taylor_ranges import taylor_ranges
from slomodel.bounds.setting import Setting, once_per_setting
from slomodel.bounds.useless import large_bound
from slomodel.errors import MissingRule
from slomodel.ir.exact import without_rounding

Blocks = Mapping[tuple[str, str], float]
"""Upper bounds on the norms ‖H_vw‖ of blocks of the Hessian, by the names of two variables."""
_FLOPS = 32.0
"""Operations per direction and element of a node that depends on it."""


@once_per_setting
def centre_spectrum(setting: Setting) -> SpectralInterval:
    """The interval of the eigenvalues of H(c); unbounded where H(c) exceeds the effort, or where f
    is not proved to have it.
    """
    H = centre_hessian(setting) if has_hessian_at_centre(setting) else None
    return UNKNOWN if H is None else spectral_interval(H)


@once_per_setting
@without_rounding()
def hessian_over_ball(setting: Setting, radius: float) -> Interval | None:
    """H over the ball (n, n) as a symmetric interval matrix; None where there is no proof of C¹, a
    node has no interval rule, or the work exceeds the effort.
    """
    if setting.n == 0 or not math.isfinite(radius):
        return None
    most = setting.effort.count(_FLOPS)
    try:
        ranges = taylor_ranges(setting, radius, most)
        smooth = smoothness_in(setting, ranges)
        return hessian_over(setting, ranges, most) if smooth.least >= 1 else None
    except MissingRule:
        return None


@once_per_setting
def spectral_ends(
    setting: Setting, radius: float, enclosure: Enclosure, L1: float, L2: float
) -> SpectralInterval:
    """λ_min and λ_max of H over the ball, given both constants and the bounds on derivatives.

    Each end is the better of that of `close` and of that of the entries over the ball. Hypothesis:
    f is C¹ where L1 is finite.
    """
    if setting.n == 0:
        return SpectralInterval(0.0, 0.0)
    if not math.isfinite(L1):
        return UNKNOWN
    with np.errstate(all="ignore"), without_rounding():
        known = centre_spectrum(setting)
        H = hessian_over_ball(setting, radius)
        entries = UNKNOWN if H is None else spectral_interval(H)
    centre = enclosure.centre.least(DerivativeBounds((known.high, -known.low)))
    over = enclosure.over.least(DerivativeBounds(both_ends(L1), L2))
    upper, lower = close(Enclosure(centre, over), radius).ends
    return entries.meet(-lower, upper)


@once_per_setting
def block_norms(setting: Setting, radius: float, L1: float) -> Blocks:
    """Upper bounds over the ball on ‖H_vw‖ for all pairs of variables v, w, none above L1.

    ‖H_vw‖ <= ‖M‖ + ‖R‖ with the block in M ± R, and ‖H_vw‖ <= ‖H‖ for every block of a matrix.
    """
    H = hessian_over_ball(setting, radius) if math.isfinite(L1) else None
    return norms_of_blocks(H, sizes_of(setting), L1)


Sizes = Mapping[str, int]
"""The numbers of unknowns of each variable, by name in the order of the variables."""


def sizes_of(setting: Setting) -> Sizes:
    """The number of unknowns of each variable."""
    return {variable.name: int(np.size(setting.values[variable])) for variable in setting.variables}


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


def diagonal_majorant(setting: Setting, radius: float, upper: float, blocks: Blocks) -> Array:
    """D (n,) with H ≼ diag(D) over the ball, of the least sum among four; +inf without a proof.

    - λ_max(H) I.
    - By blocks: vᵀHv <= Σ_bc ‖H_bc‖ ‖v_b‖‖v_c‖ <= Σ_b ‖v_b‖² Σ_c ‖H_bc‖, as 2xy <= x² + y².
    - By entries, with d_i = sup H_ii + Σ_(j≠i) sup |H_ij|: diag(D) - H is diagonally dominant.
    - By the diagonal: with A = diag(sup H_ii)^-½ > 0 and t >= λ_max(A H A), H <= t A^-2.
    """
    H = hessian_over_ball(setting, radius) if math.isfinite(upper) else None
    return least_majorant(H, sizes_of(setting), upper, blocks)


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

    setting: Setting
    radius: float
    enclosure: Enclosure
    L1: float
    L2: float

    def spectrum(self) -> SpectralInterval:
        """The interval of its eigenvalues."""
        return spectral_ends(self.setting, self.radius, self.enclosure, self.L1, self.L2)

    def why_large(self) -> str:
        """Which sub-expression makes L1 far larger than the curvature seen; empty if it is not."""
        with np.errstate(all="ignore"), without_rounding():
            return large_bound(self.setting, self.radius, self.L1)

    def blocks(self) -> Blocks:
        """Upper bounds on the norms of its blocks."""
        return block_norms(self.setting, self.radius, self.L1)

    def majorant(self) -> Array:
        """A diagonal majorant (n,)."""
        upper = self.spectrum().high
        return diagonal_majorant(self.setting, self.radius, upper, self.blocks())
