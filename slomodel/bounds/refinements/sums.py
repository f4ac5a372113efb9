"""A sum over elements over a ball and the bounds on it, of which refinements make smaller ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slomodel.bounds.arithmetic.midpoint_radius import Bounded
from slomodel.bounds.closure import ends_by_fourth
from slomodel.bounds.enclosure import DerivativeBounds, Ends, norm_of
from slomodel.bounds.norms.element_derivatives import Weighted
from slomodel.bounds.norms.loewner import Rows
from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.ranges.elements.element_sums import ElementSum
from slomodel.bounds.refinements import Refinement

WORTH = 0.98
"""Factor by which a bound must improve for the work to pay."""
BY_ENDS = "H(c) + r D³f(c) + r²/2 D⁴f by ends"


@dataclass(frozen=True, slots=True)
class Third:
    """D³f at the centre, with its error in norm, and an upper bound on its norm."""

    form: Bounded[float] | None
    norm: float


@dataclass(frozen=True, slots=True)
class SumAtCentre:
    """The parts at the centre, upper bounds on λ_max(± H(c)), and D³f(c)."""

    parts: Sequence[Weighted]
    ends: Ends
    third: Third

    @property
    def bounds(self) -> DerivativeBounds:
        return DerivativeBounds(self.ends, self.third.norm)


@dataclass(frozen=True, slots=True)
class SumOverBall:
    """A sum over elements, its parts over a ball and at the centre.

    `ends` are upper bounds on λ_max(± H) over the ball, and `third` is one on ‖D³f‖, both from the
    ranges of the parts alone.
    """

    part: ObjectivePart
    parts: tuple[ElementSum[Rows], ...]
    over: Sequence[Weighted]
    centre: SumAtCentre
    radius: float
    ends: Ends
    third: float

    def by_ends(self, fourth: Ends) -> float:
        """L1 from the centre, by bounds on D⁴f at both ends."""
        return norm_of(
            ends_by_fourth(self.centre.ends, self.radius, self.centre.third.norm, fourth)
        )


@dataclass(frozen=True, slots=True)
class SumBounds:
    """Bounds over the ball: on L1 by each inequality, on L2 from the centre, and on D⁴f[v, v, w, w]
    and its negative.
    """

    first: Mapping[str, float]
    second: float
    fourth: Ends


SumRefinement = Refinement[SumOverBall, SumBounds]
