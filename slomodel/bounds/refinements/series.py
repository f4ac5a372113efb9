"""A majorant series at the centre, of whose bounds refinements make smaller ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from slomodel.bounds.arithmetic.rounding import up_add, up_mul
from slomodel.bounds.closure import falling_factorial, series_terms, total
from slomodel.bounds.enclosure import Derivation, DerivativeBounds, Enclosure, both_ends
from slomodel.bounds.norms.polynomial import Polynomial, largest_monomials
from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.refinements import Refinement
from slomodel.bounds.result import shown

_SMALL_FRACTION = 1e-3
"""Terms below this fraction of a bound are reported together."""

Growth = Callable[[float, float], float]
"""(radius, upper bound on ‖D³f(c)‖) -> upper bound on ‖H(c) + D³f(c)[h]‖ for ‖h‖ <= radius."""


@dataclass(frozen=True, slots=True)
class Series:
    """‖f_k(h)‖ <= sizes[k] ‖h‖^k for the parts of degree k >= 2, and ‖H(c)‖ <= `hessian`.

    `parts` holds the parts' majorants in the lengths of the blocks `names`. `growth`, if known,
    bounds ‖H(c) + D³f(c)[h]‖ by more than the norms of both terms.
    """

    names: tuple[str, ...]
    parts: dict[int, Polynomial]
    sizes: dict[int, float]
    hessian: float
    growth: Growth | None = None

    def first(self, radius: float) -> float:
        """L1(r) = ‖H(c)‖ + Σ_(k>=3) k(k-1) s_k r^(k-2), or the first two terms at once."""
        terms = series_terms(self.sizes, 2, radius)
        both = self._both(radius)
        whole = total([self.hessian, *terms.values()])
        return min(whole, total([both, *(term for k, term in terms.items() if k > 3)]))

    def _both(self, radius: float) -> float:
        """Upper bound on ‖H(c) + D³f(c)[h]‖ for ‖h‖ <= r, by directions; inf without these."""
        if self.growth is None or 3 not in self.sizes:
            return float(np.inf)
        return self.growth(radius, float(up_mul(6.0, self.sizes[3])))

    def second(self, radius: float) -> float:
        """L2(r) = Σ_(k>=3) k(k-1)(k-2) s_k r^(k-3)."""
        return total(series_terms(self.sizes, 3, radius).values())

    def enclosure(self, radius: float) -> Enclosure:
        """The enclosure over a ball of any radius."""
        third = float(up_mul(6.0, self.sizes.get(3, 0.0)))
        return Enclosure(
            DerivativeBounds(both_ends(self.hessian), third),
            DerivativeBounds(both_ends(self.first(radius)), self.second(radius)),
            second_by=Derivation(
                "‖H(c)‖ + Σ k(k-1) s_k r^(k-2)" if self.sizes else "H is constant",
                self.explanation(2, radius),
            ),
            third_by=Derivation("Σ k(k-1)(k-2) s_k r^(k-3)", self.explanation(3, radius)),
        )

    def explanation(self, order: int, radius: float) -> tuple[str, ...]:
        """The terms that add up, each with its dominant product of blocks; small ones together."""
        every = series_terms(self.sizes, order, radius)
        terms = {k: term for k, term in every.items() if self.sizes[k] > 0.0}
        whole = total([self.hessian if order == 2 else 0.0, *terms.values()])
        by_norms = 2 in self.sizes and self.hessian == float(up_mul(2.0, self.sizes[2]))
        how = f"2 s_2{self._mostly(2)}" if by_norms else "from its entries"
        lines = [f"‖H(c)‖ ≤ {shown(self.hessian)}, {how}"] if order == 2 else []
        both = self._both(radius) if order == 2 else np.inf
        if both < up_add(self.hessian, terms.get(3, 0.0)):
            lines = [f"‖H(c) + D³f(c)[h]‖ ≤ {shown(both)}, along the same directions"]
            terms.pop(3, None)  # absent where it is 0
        small = [term for term in terms.values() if term < _SMALL_FRACTION * whole]
        for k, term in terms.items():
            if term >= _SMALL_FRACTION * whole:
                power = {0: "", 1: " r"}.get(k - order, f" r^{k - order}")
                size = f"s_{k} ≤ {shown(self.sizes[k])}{self._mostly(k)}"
                lines.append(
                    f"{falling_factorial(k, order):g} s_{k}{power} ≤ {shown(term)}, {size}"
                )
        if any(small):
            lines.append(f"{len(small)} smaller terms ≤ {shown(total(small))} together")
        return tuple(lines)

    def _mostly(self, degree: int) -> str:
        """The dominant product of blocks in a part, as `, mostly of U^2 V`."""
        part = self.parts.get(degree)
        if part is None or part.blocks == 1 or not len(part.coefficients):
            return ""
        largest = int(np.argmax(part.coefficients * largest_monomials(part)))
        factors = [
            name if power == 1 else f"{name}^{power}"
            for name, power in zip(self.names, part.exponents[largest], strict=True)
            if power
        ]
        return f", mostly of {' '.join(factors)}"


SeriesRefinement = Refinement[ObjectivePart, Series]
