"""Sums of powers of norms of affine arrays, ‖Ax + b‖^p with p >= 2, and a quadratic remainder."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from slomodel.bounds.arithmetic.rounding import up_add, up_mul, up_sqrt, up_ulps
from slomodel.bounds.enclosure import DerivativeBounds, Enclosure, both_ends
from slomodel.bounds.ranges.enclose import boxed, enclose
from slomodel.bounds.rules.majorant_series import constant_hessian
from slomodel.bounds.setting import Setting, once_per_setting
from slomodel.bounds.structure.norm_powers import norm_powers_of


@dataclass(frozen=True, slots=True)
class _NormTerm:
    """Upper bounds on |w|, ‖A‖² and ‖A c + b‖ of a term w ‖A x + b‖^p."""

    weight: float
    stretch: float
    length: float
    exponent: float


def norm_powers(setting: Setting, radius: float) -> Enclosure | None:
    """L1 and L2 of f = Σ_k w_k ‖A_k x + b_k‖^p_k, p_k >= 2, plus a quadratic function.

    With g(u) = ‖u‖^p, t the cosine between u and v, and ‖v‖ = 1,

        D²g[v, v] = p ‖u‖^(p-2) (1 + (p - 2) t²),
        D³g[v, v, v] = p (p - 2) ‖u‖^(p-3) (3 t + (p - 4) t³),

    so that |D²g| <= p (p - 1) ‖u‖^(p-2) and, for p >= 3, |D³g| <= p (p - 1)(p - 2) ‖u‖^(p-3), as
    |3 t + (p - 4) t³| is at most p - 1 on [-1, 1]. Over the ball ‖u‖ <= ‖A c + b‖ + r ‖A‖; along
    u = A x + b each derivative grows by a factor ‖A‖ per order, and ‖A‖² is half the norm of the
    Hessian of ‖A x + b‖². g is C¹, and C² for p > 2, at 0 too; its Hessian is Lipschitz for p >= 3.
    """
    result = _powers(setting)
    if result is None:
        return None
    powers, remainder = result
    first, second = remainder, 0.0
    for power in powers:
        p = power.exponent
        reach = up_add(power.length, up_mul(radius, float(up_sqrt(power.stretch))))
        weight = up_mul(power.weight, up_mul(p, p - 1.0))
        own = up_mul(up_mul(weight, _power(reach, p - 2.0)), power.stretch)
        first = up_add(first, own)
        slope = np.inf if p < 3.0 else up_mul(weight, up_mul(p - 2.0, _power(reach, p - 3.0)))
        cubed = up_mul(power.stretch, float(up_sqrt(power.stretch)))
        second = up_add(second, up_mul(slope, cubed))
    reason = (
        "" if np.isfinite(second) else "a power of a norm below 3 has no Lipschitz Hessian at 0"
    )
    over = DerivativeBounds(both_ends(float(first)), float(second))
    return Enclosure(over=over, reason=reason)


def _power(x: float, p: float) -> float:
    """Upper bound on x^p, x >= 0 and p >= 0."""
    return 1.0 if p == 0.0 else float(up_ulps(np.power(np.asarray(x), p)))


@once_per_setting
def _powers(setting: Setting) -> tuple[tuple[_NormTerm, ...], float] | None:
    """The powers of norms, and an upper bound on the curvature of the quadratic remainder."""
    terms = norm_powers_of(setting.objective, setting.variables)
    if terms is None:
        return None
    powers, rest = terms
    remainder = constant_hessian(replace(setting, objective=rest))
    if remainder is None:
        return None
    roots = [node for power in powers for node in (power.weight, power.squared)]
    at_centre = enclose(roots, boxed(setting.values), setting.sizes)
    result = []
    for one in powers:
        curvature = constant_hessian(replace(setting, objective=one.squared))
        if curvature is None:
            return None
        weight, squared = (float(at_centre[node].magnitude) for node in (one.weight, one.squared))
        length = float(up_sqrt(squared))
        result.append(_NormTerm(weight, up_mul(0.5, curvature), length, one.exponent))
    return tuple(result), remainder
