"""Bounds for a sum of terms that are never in memory together, such as those of blocks of data.

For f = Σ_b f_b over one ball every derivative of f is the sum of those of the terms. A term leaves
numbers whose count does not depend on its data, and which are added with outward rounding:

- its enclosure: norms add up by the triangle inequality, ends of spectra as λ_max(A + B) is at most
  λ_max(A) + λ_max(B);
- arrays that contain H_b at the centre and over the ball, and D³f_b at the centre: their sums
  contain those of f, whose norms are bounded once, so that nothing is lost at the centre;
- for sums over elements Σ_i φ_i(a_i·x), Gram matrices of the rows a_i with certified weights:
  ±H_b <= M in the Loewner order over the ball and, for unit v and w, |D³f_b[v, v, v]| <= vᵀMv and
  D⁴f_b[v, v, w, w]² <= vᵀMv · wᵀMw. They add up, the last by Cauchy–Schwarz, and λ_max(Σ M_b) <=
  Σ λ_max(M_b). A term of another kind has eI in their place, e its bound as a number.

Both constants are closed from the least of these bounds on each derivative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.midpoint_radius import Bounded, midpoint
from slomodel.bounds.arithmetic.rounding import Array, up_add
from slomodel.bounds.centre import centre_hessian, centre_third, has_hessian_at_centre
from slomodel.bounds.closure import Closed, close
from slomodel.bounds.effort import MOST_NUMBERS
from slomodel.bounds.enclosure import DerivativeBounds, Enclosure, Ends, add
from slomodel.bounds.norms.cubic_norm import cubic_norm
from slomodel.bounds.norms.eigenvalues import UNKNOWN, SpectralInterval, spectral_interval
from slomodel.bounds.norms.element_derivatives import (
    Weighted,
    matrix_of_fourth,
    matrix_of_side,
    matrix_of_third,
)
from slomodel.bounds.norms.loewner import upper_end
from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.pipeline import least_enclosure
from slomodel.bounds.result import Bounds, Claim, Constant, checked_radius
from slomodel.bounds.rules.linear_predictors import element_sums
from slomodel.bounds.rules.predictors.dense_rows import sums_at_centre, sums_over
from slomodel.bounds.spectrum import (
    Blocks,
    Sizes,
    hessian_over_ball,
    least_majorant,
    norms_of_blocks,
    sizes_of,
)
from slomodel.bounds.structure.exponentials import with_joined_exponentials
from slomodel.bounds.structure.gram_form import as_written, in_gram_form
from slomodel.bounds.structure.negative_powers import with_negative_powers
from slomodel.bounds.structure.recurrences import written_out
from slomodel.errors import MissingRule
from slomodel.ir.exact import without_rounding

SUM = "sum over blocks"


@dataclass(frozen=True, slots=True)
class FormMajorant:
    """The quadratic form vᵀMv + e vᵀv; the matrix M (n, n) is None for 0."""

    matrix: Bounded[float] | None
    number: float = 0.0

    def plus(self, other: FormMajorant) -> FormMajorant:
        pair = [one.matrix for one in (self, other) if one.matrix is not None]
        both = reduce(Bounded.__add__, pair) if pair else None
        return FormMajorant(both, float(up_add(self.number, other.number)))

    @property
    def end(self) -> float:
        """Upper bound on its largest value at unit v."""
        if self.matrix is None:
            return self.number
        return float(up_add(upper_end(self.matrix), self.number))


@dataclass(frozen=True, slots=True)
class FormMajorants:
    """Majorants of ±H, |D³f| and ±D⁴f, by order."""

    second: tuple[FormMajorant, FormMajorant]
    third: FormMajorant
    fourth: tuple[FormMajorant, FormMajorant]

    def plus(self, other: FormMajorants) -> FormMajorants:
        return FormMajorants(
            _pair_sum(self.second, other.second),
            self.third.plus(other.third),
            _pair_sum(self.fourth, other.fourth),
        )

    @property
    def bounds(self) -> DerivativeBounds:
        above, below = self.second
        fourth = max(self.fourth[0].end, 0.0), max(self.fourth[1].end, 0.0)
        return DerivativeBounds((above.end, below.end), max(self.third.end, 0.0), fourth)


def _pair_sum(
    one: tuple[FormMajorant, FormMajorant], other: tuple[FormMajorant, FormMajorant]
) -> tuple[FormMajorant, FormMajorant]:
    return one[0].plus(other[0]), one[1].plus(other[1])


@dataclass(frozen=True, slots=True)
class TermBounds:
    """What is proved about a term over a ball, or about a sum of terms.

    `hessian` and `entries` (n, n) contain H at the centre and over the ball, `third` (n, n, n)
    D³f at the centre; None where they are not known. `reason` says why a constant is infinite.
    """

    sizes: Sizes
    enclosure: Enclosure
    centre: FormMajorants
    over: FormMajorants
    hessian: Interval | None = None
    entries: Interval | None = None
    third: Bounded[float] | None = None
    reason: str = ""

    def plus(self, other: TermBounds) -> TermBounds:
        """The bounds for the sum of both."""
        third = None
        if self.third is not None and other.third is not None:
            third = self.third + other.third
        return TermBounds(
            self.sizes,
            add([self.enclosure, other.enclosure]),
            self.centre.plus(other.centre),
            self.over.plus(other.over),
            _sum(self.hessian, other.hessian),
            _sum(self.entries, other.entries),
            third,
            self.reason or other.reason,
        )

    @property
    def least(self) -> Enclosure:
        """The least bound on each derivative."""
        own = self.enclosure
        centre = own.centre.least(self.centre.bounds).least(_of_entries(self.hessian))
        if self.third is not None:
            centre = replace(centre, third=min(centre.third, cubic_norm(self.third)))
        over = own.over.least(self.over.bounds).least(_of_entries(self.entries))
        return replace(own, centre=centre, over=over)


def _sum(a: Interval | None, b: Interval | None) -> Interval | None:
    return None if a is None or b is None else a + b


def _of_entries(H: Interval | None) -> DerivativeBounds:
    if H is None:
        return DerivativeBounds()
    result = spectral_interval(H)
    return DerivativeBounds((result.high, -result.low))


@without_rounding()
def term_bounds(part: ObjectivePart, radius: float) -> TermBounds:
    """The bounds for one term over the ball around the part's centre."""
    radius = checked_radius(radius)
    part = with_joined_exponentials(written_out(part))
    part = in_gram_form(with_negative_powers(part))
    with np.errstate(all="ignore"):
        enclosure = least_enclosure(part, radius)
        centre, over = _numbers(enclosure.centre), _numbers(enclosure.over)
        result = TermBounds(sizes_of(part), enclosure, centre, over, reason=enclosure.reason)
        return _with_matrices(result, part, radius) if part.n and radius < math.inf else result


def _numbers(bounds: DerivativeBounds) -> FormMajorants:
    """Bounds that are numbers, as multiples of the identity."""
    second, fourth = (
        (FormMajorant(None, ends[0]), FormMajorant(None, ends[1]))
        for ends in (bounds.second, bounds.fourth)
    )
    return FormMajorants(second, FormMajorant(None, bounds.third), fourth)


def _with_matrices(bounds: TermBounds, part: ObjectivePart, radius: float) -> TermBounds:
    """The bounds with matrices of H and D³f, as far as the effort permits."""
    n = part.n
    if n * n > MOST_NUMBERS:
        return bounds
    try:
        hessian = centre_hessian(part) if has_hessian_at_centre(part) else None
        bounds = replace(bounds, hessian=hessian, entries=hessian_over_ball(part, radius))
        third = centre_third(part)
        if third is not None and n**3 <= MOST_NUMBERS:
            bounds = replace(bounds, third=midpoint(third))
        return _with_gram_matrices(bounds, as_written(part), radius)
    except MissingRule:
        return bounds


def _with_gram_matrices(bounds: TermBounds, part: ObjectivePart, radius: float) -> TermBounds:
    """With the Gram matrices of a sum over elements."""
    parts = element_sums(part)
    if parts is None:
        return bounds
    over = sums_over(part, parts, radius)
    if over.order < 1:
        return bounds
    matrices = replace(bounds.over, second=_sides(over.parts, matrix_of_side))
    if over.order < 2:
        return replace(bounds, over=matrices)
    matrices = replace(matrices, third=FormMajorant(matrix_of_third(over.parts)))
    if over.order > 2:
        matrices = replace(matrices, fourth=_sides(over.parts, matrix_of_fourth))
    at = sums_at_centre(part, parts)
    centre = replace(
        bounds.centre,
        second=_sides(at.parts, matrix_of_side),
        third=FormMajorant(matrix_of_third(at.parts)),
    )
    third = bounds.third if bounds.third is not None else at.third.form
    return replace(bounds, centre=centre, over=matrices, third=third)


def _sides(
    parts: Sequence[Weighted], matrix: Callable[[Sequence[Weighted], float], Bounded[float]]
) -> tuple[FormMajorant, FormMajorant]:
    return FormMajorant(matrix(parts, 1.0)), FormMajorant(matrix(parts, -1.0))


@dataclass(frozen=True, slots=True)
class HessianOfSum:
    """What is proved about the Hessian of a sum beyond its norm."""

    total: TermBounds
    ends: Ends
    L1: float

    def spectrum(self) -> SpectralInterval:
        return UNKNOWN if math.isinf(self.L1) else SpectralInterval(-self.ends[1], self.ends[0])

    def why_large(self) -> str:
        return ""

    def blocks(self) -> Blocks:
        return norms_of_blocks(self._entries, self.total.sizes, self.L1)

    def majorant(self) -> Array:
        upper = self.spectrum().high
        return least_majorant(self._entries, self.total.sizes, upper, self.blocks())

    @property
    def _entries(self) -> Interval | None:
        return self.total.entries if math.isfinite(self.L1) else None


def bounds_of_sum(
    terms: Iterable[TermBounds], radius: float, at_radius: Callable[[float], Bounds]
) -> Bounds:
    """The constants of a sum over the ball for which the bounds of its terms are given."""
    radius = checked_radius(radius)
    total = reduce(TermBounds.plus, terms)
    with np.errstate(all="ignore"):
        enclosure = total.least
        closure = close(enclosure, radius)
    first, second = closure.first, closure.second
    ends = min(closure.ends[0], first.value), min(closure.ends[1], first.value)
    return Bounds(
        L1=first.value,
        L2=second.value,
        source="analytic",
        rigor="certified",
        radius=radius,
        n=sum(total.sizes.values()),
        gradient=_constant(first, total.reason),
        hessian=_constant(second, total.reason),
        at_radius=at_radius,
        curvature=HessianOfSum(total, ends, first.value),
    )


def _constant(closed: Closed, reason: str) -> Constant:
    """The inequalities that were tried, the best first."""
    values = dict(closed.tried)
    claims = [
        Claim(f"{SUM}: {rule}", value, "" if math.isfinite(value) else reason)
        for rule, value in sorted(values.items(), key=lambda pair: pair[1])
    ]
    return Constant(tuple(claims))
