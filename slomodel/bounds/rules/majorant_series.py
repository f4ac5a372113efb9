"""Polynomial objectives: L1 and L2 as polynomials in the radius, from norms at the centre."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from slomodel.bounds.arithmetic.rounding import up_add, up_div, up_mul
from slomodel.bounds.centre import hessian_at_centre, third_at_centre
from slomodel.bounds.close import falling_factorial, series_terms, total
from slomodel.bounds.enclosure import Derivation, DerivativeBounds, Enclosure, both_ends
from slomodel.bounds.norms.polynomial import Polynomial, largest_closely, largest_monomials
from slomodel.bounds.ranges.hessian import derivatives
from slomodel.bounds.refinements.aligned import Aligned, aligned
from slomodel.bounds.refinements.factor_pairs import pair_third
from slomodel.bounds.result import shown
from slomodel.bounds.rules.jets.norm_graph import prepare
from slomodel.bounds.rules.series.chain_norms import chain_parts
from slomodel.bounds.rules.series.majorant import majorants, objective_majorant
from slomodel.bounds.setting import Setting, once_per_setting
from slomodel.calculus.degree import is_polynomial
from slomodel.ir.walk import inputs

_SMALL_FRACTION = 1e-3
"""Terms below this fraction of a bound are reported together."""


@dataclass(frozen=True, slots=True)
class Series:
    """‖f_k(h)‖ <= sizes[k] ‖h‖^k for the parts of degree k >= 2, and ‖H(c)‖ <= `hessian`.

    `parts` holds the parts' majorants in the lengths of the blocks `names`.
    """

    names: tuple[str, ...]
    parts: dict[int, Polynomial]
    sizes: dict[int, float]
    hessian: float
    aligned: Aligned | None = None

    def first(self, radius: float) -> float:
        """L1(r) = ‖H(c)‖ + Σ_(k>=3) k(k-1) s_k r^(k-2), or the first two terms at once."""
        terms = series_terms(self.sizes, 2, radius)
        both = self._both(radius)
        whole = total([self.hessian, *terms.values()])
        return min(whole, total([both, *(term for k, term in terms.items() if k > 3)]))

    def _both(self, radius: float) -> float:
        """Upper bound on ‖H(c) + D³f(c)[h]‖ for ‖h‖ <= r, by directions; inf without these."""
        if self.aligned is None or 3 not in self.sizes:
            return float(np.inf)
        return self.aligned.growth(radius, float(up_mul(6.0, self.sizes[3])))

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


def majorant_series(setting: Setting, radius: float) -> Enclosure | None:
    """L1 and L2 from |f_k(h)| <= s_k ‖h‖^k, by which the symmetric form of f_k has a norm of at
    most s_k (Banach), and so

    ‖D²f_k(h)‖ <= k(k-1) s_k ‖h‖^(k-2), ‖D³f_k(h)‖ <= k(k-1)(k-2) s_k ‖h‖^(k-3).

    For degree 2 at most the Hessian is constant, and the series ends with ‖H(c)‖.
    """
    series = majorant_terms(setting)
    return None if series is None else series.enclosure(radius)


@once_per_setting
def constant_hessian(setting: Setting) -> float | None:
    """Upper bound on ‖H‖ of a polynomial whose Hessian is constant, from its entries; None for
    others and beyond the effort.

    For a polynomial the graph without a variable is that of the derivative everywhere.
    """
    variables = set(setting.variables)
    if setting.n == 0 or not is_polynomial(setting.objective, variables):
        return None
    if variables.isdisjoint(inputs(*setting.gradient)):
        return 0.0
    if not variables.isdisjoint(inputs(*derivatives(setting).second)):
        return None
    norm = hessian_at_centre(setting)
    return norm if np.isfinite(norm) else None


@once_per_setting
def majorant_terms(setting: Setting) -> Series | None:
    """The series of a setting; None where the objective is not a (small) polynomial."""
    if setting.n == 0:
        return None
    hessian = constant_hessian(setting)
    if hessian is not None:
        return Series((), {}, {}, hessian)
    prepared = prepare(setting)
    result = majorants(prepared)
    if result is None:
        return None
    names = tuple(sorted(prepared.blocks, key=lambda name: (prepared.blocks[name], name)))
    f = objective_majorant(result)
    if len(names) == prepared.count and (chain := chain_parts(setting, names)) is not None:
        f = _lowered(f, chain)
    degrees = sorted({int(k) for k in f.degrees if k >= 2})
    parts = {k: f.part(k) for k in degrees}
    sizes = {k: largest_closely(part) for k, part in parts.items()}
    hessian = min(hessian_at_centre(setting), float(up_mul(2.0, sizes.get(2, 0.0))))
    if 3 in sizes:
        third = min(third_at_centre(setting), pair_third(setting))
        sizes[3] = min(sizes[3], float(up_div(third, 6.0)))
    return Series(prepared.block_names, parts, sizes, hessian, aligned(setting))


def _lowered(f: Polynomial, chain: Mapping[tuple[int, ...], float]) -> Polynomial:
    """The smaller of two bounds on each part; missing entries count as 0."""
    keys = [tuple(int(e) for e in exponent) for exponent in f.exponents]
    least = [0.0 if sum(key) > 2 else np.inf for key in keys]
    other = [chain.get(key, least[k]) for k, key in enumerate(keys)]
    return Polynomial(f.exponents, np.minimum(f.coefficients, other))
