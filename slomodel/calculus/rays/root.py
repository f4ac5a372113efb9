"""The bounds on an objective along a ray, from the jet of its root."""

from __future__ import annotations

from dataclasses import dataclass

from slomodel.calculus.rays.jets import Jet, known, quotient_of_length
from slomodel.calculus.rays.numbers import LARGE, UNIT, MidRad, Range, raised
from slomodel.functions import abs, gt, le, maximum, minimum, mul, neg
from slomodel.ir.expr import Const, Expr

_ZERO = Const(0.0)


@dataclass(frozen=True, slots=True)
class RayGraph:
    """Scalars of φ(t) = f(x + t v): enclosures at t = 0, and ranges over [0, end].

    `at` are φ, φ', φ'' with radii; `over` are the ends of φ'' and φ''', then those of the
    remainders of order 2 and 3, 2(φ(t) - φ - φ't)/t² and 6(φ(t) - φ - φ't - φ''t²/2)/t³.
    """

    at: tuple[MidRad, MidRad, MidRad]
    over: tuple[Range, Range, Range, Range]

    @property
    def numbers(self) -> tuple[Expr, ...]:
        """Midpoints and radii of φ, φ', φ'', then the ends of `over`."""
        at = [one for n in self.at for one in (n.mid, _ZERO if n.rad is None else n.rad)]
        return (*at, *(end for one in self.over for end in (one.lo, one.hi)))


def of_root(jet: Jet, end: Expr) -> RayGraph:
    """The bounds on φ'' = 2c_2 and φ''' = 6c_3, and on the remainders, from the jet of the root."""
    value, slope, second, _ = (one or MidRad(_ZERO) for one in jet.at)
    curvature = MidRad(mul(2.0, second.mid), None if second.rad is None else mul(2.0, second.rad))
    if jet.at[2] is None and jet.over is None:
        none = Range(_ZERO, _ZERO)
        return RayGraph((value, slope, curvature), (none, none, none, none))
    seconds = _near(jet, end, 3.0, 6.0)
    remainders = _near(jet, end, 1.0, 1.0)
    thirds = _of_third(jet, end, 4.0).times(6.0)
    known_everywhere = le(jet.fourth or _ZERO, LARGE)
    own = [] if jet.over is None else [known(jet.over[2]).range]
    own += [] if jet.second is None else [jet.second]
    for one in own:
        seconds = seconds.where(known_everywhere).meet(one)
    # A remainder is an average of the derivative between 0 and t.
    remainders = remainders.where(known_everywhere).meet(seconds)
    third_remainders = _of_third(jet, end, 1.0).times(6.0)
    return RayGraph(
        (value, slope, curvature),
        (seconds.times(2.0), thirds, remainders.times(2.0), third_remainders),
    )


def _near(jet: Jet, end: Expr, linear: float, quadratic: float) -> Range:
    """The numbers c_2 + `linear` c_3 t ± `quadratic` r t² over the ray, r >= |φ''''|/24.

    They are c_2(t) with 3 and 6, and with 1 and 1 the remainder of order 2. The ends are convex and
    concave in t, so that their extrema are at an end of the ray. Over long rays the largest |c_3|
    may say more.
    """
    second, third = (one or MidRad(_ZERO) for one in jet.at[2:])
    rest = jet.fourth or _ZERO
    change = mul(mul(linear, end), third.mid)
    growth = [mul(8.0 * UNIT, abs(change))]
    growth.append(quotient_of_length(mul(quadratic, rest), mul(end, end)))
    growth += [] if third.rad is None else [mul(mul(linear, end), third.rad)]
    moved = MidRad(change, raised(growth)).range
    moved = Range(minimum(moved.lo, 0.0), maximum(moved.hi, 0.0))
    if jet.third is not None:
        reach_ = raised([quotient_of_length(mul(linear, jet.third), mul(end, end))])
        moved = moved.where(le(rest, LARGE)).meet(Range(neg(reach_), reach_))
    return second.range + moved


def _of_third(jet: Jet, end: Expr, factor: float) -> Range:
    """The numbers c_3 ± `factor` r t over the ray: c_3(t) with 4, the remainder with 1."""
    third, rest = jet.at[3] or MidRad(_ZERO), jet.fourth or _ZERO
    cube = mul(mul(end, end), end)
    own = [] if third.rad is None else [third.rad]
    result = MidRad(third.mid, raised([*own, quotient_of_length(mul(factor, rest), cube)])).range
    if jet.third is None:
        return result
    size = raised([quotient_of_length(jet.third, cube)])
    everywhere = Range(neg(size), size).where(gt(end, 0.0))
    return result.where(le(rest, LARGE)).meet(everywhere)
