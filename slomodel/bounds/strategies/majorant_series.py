"""Polynomial objectives: L1 and L2 as polynomials in the radius, from norms at the centre."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from slomodel.bounds.center_derivatives import centre_norms
from slomodel.bounds.chains import chain_parts
from slomodel.bounds.majorant import majorants, objective_majorant
from slomodel.bounds.polynomials import Polynomial, largest_value
from slomodel.bounds.prepared import prepare
from slomodel.bounds.result import shown
from slomodel.bounds.rounding import up_add, up_div, up_mul, up_pow
from slomodel.bounds.setting import Candidate, Setting

RULE = "majorant series"


@dataclass(frozen=True, slots=True)
class Series:
    """‖f_k(h)‖ <= sizes[k] ‖h‖^k for the parts of degree k >= 2, and ‖H(c)‖ <= `hessian`.

    `parts` holds the parts' majorants in the lengths of the blocks `names`.
    """

    names: tuple[str, ...]
    parts: dict[int, Polynomial]
    sizes: dict[int, float]
    hessian: float

    def first(self, radius: float) -> float:
        """L1(r) = ‖H(c)‖ + Σ_(k>=3) k(k-1) s_k r^(k-2)."""
        return self._total(self.hessian, 2, radius)

    def second(self, radius: float) -> float:
        """L2(r) = Σ_(k>=3) k(k-1)(k-2) s_k r^(k-3)."""
        return self._total(0.0, 3, radius)

    def _total(self, start: float, order: int, radius: float) -> float:
        total = start
        for k, size in self.sizes.items():
            if k >= 3:
                whole = float(k * (k - 1) * (k - 2 if order == 3 else 1))
                term = up_mul(up_mul(whole, size), up_pow(radius, k - order))
                total = float(up_add(total, float(term)))
        return total


def majorant_series(setting: Setting, radius: float) -> Candidate | None:
    """Banach: |f_k(h)| <= s_k ‖h‖^k gives its symmetric form the norm s_k at most, and so

    ‖D²f_k(h)‖ <= k(k-1) s_k ‖h‖^(k-2), ‖D³f_k(h)‖ <= k(k-1)(k-2) s_k ‖h‖^(k-3).
    """
    series = majorant_terms(setting)
    if series is None:
        return None
    L1, L2 = series.first(radius), series.second(radius)
    trace = [f"‖H(c)‖ ≤ {shown(series.hessian)}"]
    for k, size in series.sizes.items():
        if k >= 3 and size > 0.0:
            whole = k * (k - 1)
            power = "r" if k == 3 else f"r^{k - 2}"
            trace.append(f"{whole} s_{k} {power}, s_{k} ≤ {shown(size)}")
    return Candidate(f"{RULE}: ‖H(c)‖ + Σ k(k-1) s_k r^(k-2)", L1, L2, trace=tuple(trace))


def majorant_terms(setting: Setting) -> Series | None:
    """The series of a setting, made once; None where the objective is no (small) polynomial."""
    if RULE not in setting.kept:
        setting.kept[RULE] = _series(setting)
    kept = setting.kept[RULE]
    return kept if isinstance(kept, Series) else None


def _series(setting: Setting) -> Series | None:
    if setting.n == 0:
        return None
    prepared = prepare(setting)
    found = majorants(prepared)
    if found is None:
        return None
    names = tuple(sorted(prepared.blocks, key=lambda name: (prepared.blocks[name], name)))
    f = objective_majorant(found)
    if len(names) == prepared.count and (chain := chain_parts(setting, names)) is not None:
        f = _lowered(f, chain)
    degrees = sorted({int(k) for k in f.degrees if k >= 2})
    parts = {k: f.part(k) for k in degrees}
    sizes = {k: largest_value(part) for k, part in parts.items()}
    centre = centre_norms(setting)
    hessian = min(centre.hessian, float(up_mul(2.0, sizes.get(2, 0.0))))
    if 3 in sizes:
        sizes[3] = min(sizes[3], float(up_div(centre.third, 6.0)))
    return Series(names, parts, sizes, hessian)


def _lowered(f: Polynomial, chain: Mapping[tuple[int, ...], float]) -> Polynomial:
    """The smaller of two bounds of each part of degree >= 2; what one has not is 0."""
    keys = [tuple(int(e) for e in exponent) for exponent in f.exponents]
    least = [0.0 if sum(key) > 2 else np.inf for key in keys]
    other = [chain.get(key, least[k]) for k, key in enumerate(keys)]
    other = [a if sum(key) > 1 else np.inf for a, key in zip(other, keys, strict=True)]
    return Polynomial(f.exponents, np.minimum(f.coefficients, other))
