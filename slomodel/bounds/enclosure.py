"""Upper bounds on the derivatives of an objective or of a part, at the centre and over a ball."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from slomodel.bounds.arithmetic.rounding import up_add
from slomodel.ir.expr import Input
from slomodel.ir.function import ANALYTIC

Ends = tuple[float, float]
"""Upper bounds on a form and on its negative, such as λ_max(H) and λ_max(-H)."""
UNKNOWN: Ends = (math.inf, math.inf)
NOTHING: Ends = (0.0, 0.0)


def both_ends(norm: float) -> Ends:
    """The ends of a form of which only a norm bound is known."""
    return norm, norm


def norm_of(ends: Ends) -> float:
    """Upper bound on the norm of a symmetric form, from both ends."""
    return max(*ends, 0.0)


@dataclass(frozen=True, slots=True)
class DerivativeBounds:
    """Upper bounds on the derivatives of order 2, 3 and 4, at a point or over a ball.

    `second` bounds λ_max(H) and λ_max(-H), `third` ‖D³f‖, and `fourth` D⁴f[v, v, w, w] and
    -D⁴f[v, v, w, w] over unit v and w, both at least 0. inf where none is known.
    """

    second: Ends = UNKNOWN
    third: float = math.inf
    fourth: Ends = UNKNOWN

    def plus(self, other: DerivativeBounds) -> DerivativeBounds:
        """Bounds for a sum of two functions, by the triangle inequality and per end."""
        return DerivativeBounds(
            _sum(self.second, other.second),
            float(up_add(float(self.third), float(other.third))),
            _sum(self.fourth, other.fourth),
        )

    def largest(self, other: DerivativeBounds) -> DerivativeBounds:
        """The larger of each bound."""
        return DerivativeBounds(
            (max(self.second[0], other.second[0]), max(self.second[1], other.second[1])),
            max(self.third, other.third),
            (max(self.fourth[0], other.fourth[0]), max(self.fourth[1], other.fourth[1])),
        )

    def least(self, other: DerivativeBounds) -> DerivativeBounds:
        """The smaller of two bounds on each quantity of one function."""
        return DerivativeBounds(
            (min(self.second[0], other.second[0]), min(self.second[1], other.second[1])),
            min(self.third, other.third),
            (min(self.fourth[0], other.fourth[0]), min(self.fourth[1], other.fourth[1])),
        )


ZERO = DerivativeBounds(NOTHING, 0.0, NOTHING)


def _sum(a: Ends, b: Ends) -> Ends:
    return float(up_add(float(a[0]), float(b[0]))), float(up_add(float(a[1]), float(b[1])))


@dataclass(frozen=True, slots=True)
class Derivation:
    """How a rule bounded a derivative over the ball: the inequality, where the rule has several,
    and lines that explain the number.
    """

    inequality: str = ""
    lines: tuple[str, ...] = ()

    def beside(self, other: Derivation) -> Derivation:
        """How the sum of both was bounded."""
        return Derivation(lines=(*self.lines, *other.lines))


@dataclass(frozen=True, slots=True)
class Enclosure:
    """Bounds at the centre and over the ball, and how often f is proved to be differentiable there.

    Hypothesis on every instance: f is C^(k-1) on the ball, and C^k almost everywhere, for each
    order k whose bound over the ball is finite, so that this bound is a Lipschitz constant of
    D^(k-1)f. `reason` says why f is not proved to be smoother. `second_by` and `third_by` explain
    the bounds on H and D³f over the ball.
    """

    centre: DerivativeBounds = DerivativeBounds()
    over: DerivativeBounds = DerivativeBounds()
    order: int = ANALYTIC
    reason: str = ""
    second_by: Derivation = Derivation()
    third_by: Derivation = Derivation()


NO_BOUNDS = Enclosure()


def add(parts: Sequence[Enclosure]) -> Enclosure:
    """The enclosure of a sum: norms by the triangle inequality, spectra by λ_max(A + B) <= λ_max(A)
    + λ_max(B); the sum is as smooth as its least smooth part.
    """
    total = Enclosure(ZERO, ZERO)
    for part in parts:
        rougher = part.order < total.order
        total = Enclosure(
            total.centre.plus(part.centre),
            total.over.plus(part.over),
            min(part.order, total.order),
            part.reason if rougher else total.reason or part.reason,
            total.second_by.beside(part.second_by),
            total.third_by.beside(part.third_by),
        )
    return total


def add_by_variables(
    parts: Sequence[tuple[Enclosure, Collection[Input]]], variables: Collection[Input]
) -> Enclosure:
    """The enclosure of a sum of parts that each read some of the variables.

    With v_p the components of a unit vector v that part p reads, vᵀHv <= Σ_p e_p ‖v_p‖², which is
    Σ_b ‖v_b‖² Σ_(p reads b) e_p over the variables b, at most the largest inner sum. The same holds
    for D³f and D⁴f, as ‖v_p‖³ <= ‖v_p‖². The bounds of parts without common variables do not add
    up.
    """
    by_variable = [add([one for one, read in parts if variable in read]) for variable in variables]
    total = add([one for one, _ in parts])
    for k, one in enumerate(by_variable):
        centre, over = one.centre, one.over
        if k:
            centre, over = centre.largest(total.centre), over.largest(total.over)
        total = replace(total, centre=centre, over=over)
    return total


def least(enclosures: Sequence[Enclosure]) -> Enclosure:
    """The smallest bound on each quantity of one function, from several rules."""
    best = enclosures[0]
    for one in enclosures[1:]:
        smoother = one if one.order > best.order else best
        best = Enclosure(
            best.centre.least(one.centre),
            best.over.least(one.over),
            smoother.order,
            smoother.reason,
        )
    return best
