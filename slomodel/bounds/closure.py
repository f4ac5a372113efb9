"""The Taylor closure: from derivatives at the centre and over a ball to the two constants.

Let f be C² with H = D²f on the closed ball of radius r around c. On the segment from c to x, with
ρ = ‖x - c‖ <= r, Taylor's formula with integral remainder gives for every unit v

    vᵀH(x)v  <=  vᵀH(c)v + ρ sup ‖D³f‖,
    vᵀH(x)v  <=  vᵀH(c)v + ρ ‖D³f(c)‖ + ρ²/2 sup D⁴f[v, v, w, w],
    ‖D³f(x)‖ <=  ‖D³f(c)‖ + ρ sup ‖D⁴f‖,

w the unit vector along x - c, and the same for -f. So each extreme eigenvalue of H may be bounded
separately, and L1 is the larger bound. The second and third lines need D³f to be Lipschitz: the
bound on D⁴f is inf where that is not proved. For a polynomial f = Σ f_k in h = x - c with
|f_k(h)| <= s_k ‖h‖^k, the symmetric form of f_k has a norm of at most s_k (Banach 1938), and so

    L1 <= ‖H(c)‖ + Σ_(k>=3) k(k-1) s_k r^(k-2),    L2 <= Σ_(k>=3) k(k-1)(k-2) s_k r^(k-3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from slomodel.bounds.arithmetic.rounding import Real, up_add, up_mul, up_pow
from slomodel.bounds.enclosure import Enclosure, Ends, norm_of

OVER_FIRST, OVER_SECOND = "sup ‖H‖", "sup ‖D³f‖"
BY_SLOPE = "‖H(c)‖ + r L2"
BY_FOURTH = "‖H(c)‖ + r ‖D³f(c)‖ + r²/2 sup ‖D⁴f‖"
THIRD_BY_FOURTH = "‖D³f(c)‖ + r sup ‖D⁴f‖"


@dataclass(frozen=True, slots=True)
class Closed:
    """A constant and the inequality that gave it, with all inequalities that were tried."""

    value: float
    rule: str
    tried: tuple[tuple[str, float], ...]

    @classmethod
    def least(cls, tried: Mapping[str, float]) -> Closed:
        rule = min(tried, key=lambda name: tried[name])
        return cls(tried[rule], rule, tuple(tried.items()))


@dataclass(frozen=True, slots=True)
class Closure:
    """Both constants over a ball, and upper bounds on λ_max(H) and λ_max(-H) over it."""

    first: Closed
    second: Closed
    ends: Ends


def moved(start: Real, radius: Real, slope: Real) -> Real:
    """Upper bound over the ball on a quantity with Lipschitz constant `slope` that is at most
    `start` at the centre.
    """
    return up_add(start, up_mul(radius, slope))


def ends_by_slope(centre: Ends, radius: float, slope: float) -> Ends:
    """Both ends of H over the ball from those of H(c) and a Lipschitz constant of H."""
    upper, lower = (float(moved(end, radius, slope)) for end in centre)
    return upper, lower


def ends_by_fourth(centre: Ends, radius: float, third: float, fourth: Ends) -> Ends:
    """Both ends of H over the ball from those of H(c), ‖D³f(c)‖ and both ends of D⁴f over it."""
    halves = (float(up_mul(0.5, up_mul(radius, last))) for last in fourth)
    upper, lower = (
        float(moved(end, radius, up_add(third, half)))
        for end, half in zip(centre, halves, strict=True)
    )
    return upper, lower


def close(enclosure: Enclosure, radius: float) -> Closure:
    """The least L1 and L2 that an enclosure gives over a ball of any radius, 0 and inf included."""
    centre, over = enclosure.centre, enclosure.over
    L2 = Closed.least(
        {
            OVER_SECOND: over.third,
            THIRD_BY_FOURTH: float(moved(centre.third, radius, norm_of(over.fourth))),
        }
    )
    third = min(centre.third, L2.value)
    ends = {
        OVER_FIRST: over.second,
        BY_SLOPE: ends_by_slope(centre.second, radius, L2.value),
        BY_FOURTH: ends_by_fourth(centre.second, radius, third, over.fourth),
    }
    L1 = Closed.least({name: norm_of(both) for name, both in ends.items()})
    upper, lower = (min(both[k] for both in ends.values()) for k in (0, 1))
    return Closure(L1, L2, (upper, lower))


def series_terms(sizes: Mapping[int, float], order: int, radius: float) -> dict[int, float]:
    """The terms of the series for the derivative of this order, by degree k >= 3.

    They are k(k-1) s_k r^(k-2) for order 2, and k(k-1)(k-2) s_k r^(k-3) for order 3.
    """
    result = {}
    for k, size in sizes.items():
        if k >= 3 and size > 0.0:
            power = up_pow(radius, k - order)
            result[k] = float(up_mul(up_mul(falling_factorial(k, order), size), power))
    return result


def falling_factorial(k: int, order: int) -> float:
    """k(k-1) or k(k-1)(k-2): the factor of x^(k - order) in a derivative of x^k."""
    return float(k * (k - 1) * (k - 2 if order == 3 else 1))


def total(terms: Iterable[float]) -> float:
    """Upper bound on a sum."""
    result = 0.0
    for term in terms:
        result = float(up_add(result, float(term)))
    return result
