"""Polynomial objectives: L1 and L2 as polynomials in the radius, from norms at the centre."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from slomodel.bounds.arithmetic.rounding import up_div, up_mul
from slomodel.bounds.centre import hessian_at_centre, third_at_centre
from slomodel.bounds.enclosure import Enclosure
from slomodel.bounds.norms.polynomial import Polynomial, largest_closely
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.ranges.hessian import derivatives
from slomodel.bounds.refinements import refine
from slomodel.bounds.refinements.aligned import same_directions
from slomodel.bounds.refinements.factor_pairs import pairs_of_factors
from slomodel.bounds.refinements.series import Series, SeriesRefinement
from slomodel.bounds.rules.jets.norm_graph import prepare
from slomodel.bounds.rules.series.chain_norms import chain_parts
from slomodel.bounds.rules.series.majorant import majorants, objective_majorant
from slomodel.calculus.degree import is_polynomial
from slomodel.ir.walk import inputs

REFINEMENTS: tuple[SeriesRefinement, ...] = (pairs_of_factors, same_directions)
"""Their order changes no bound."""


def majorant_series(part: ObjectivePart, radius: float) -> Enclosure | None:
    """L1 and L2 from |f_k(h)| <= s_k ‖h‖^k, by which the symmetric form of f_k has a norm of at
    most s_k (Banach), and so

    ‖D²f_k(h)‖ <= k(k-1) s_k ‖h‖^(k-2), ‖D³f_k(h)‖ <= k(k-1)(k-2) s_k ‖h‖^(k-3).

    For degree 2 at most the Hessian is constant, and the series ends with ‖H(c)‖.
    """
    series = majorant_terms(part)
    return None if series is None else series.enclosure(radius)


@once_per_part
def constant_hessian(part: ObjectivePart) -> float | None:
    """Upper bound on ‖H‖ of a polynomial whose Hessian is constant, from its entries; None for
    others and beyond the effort.

    For a polynomial the graph without a variable is that of the derivative everywhere.
    """
    variables = set(part.variables)
    if part.n == 0 or not is_polynomial(part.objective, variables):
        return None
    if variables.isdisjoint(inputs(*part.gradient)):
        return 0.0
    if not variables.isdisjoint(inputs(*derivatives(part).second)):
        return None
    norm = hessian_at_centre(part)
    return norm if np.isfinite(norm) else None


@once_per_part
def majorant_terms(part: ObjectivePart) -> Series | None:
    """The series of a part; None where the objective is not a (small) polynomial."""
    if part.n == 0:
        return None
    hessian = constant_hessian(part)
    if hessian is not None:
        return Series((), {}, {}, hessian)
    prepared = prepare(part)
    result = majorants(prepared)
    if result is None:
        return None
    names = tuple(sorted(prepared.blocks, key=lambda name: (prepared.blocks[name], name)))
    f = objective_majorant(result)
    if len(names) == prepared.count and (chain := chain_parts(part, names)) is not None:
        f = _lowered(f, chain)
    degrees = sorted({int(k) for k in f.degrees if k >= 2})
    parts = {k: f.part(k) for k in degrees}
    sizes = {k: largest_closely(form) for k, form in parts.items()}
    hessian = min(hessian_at_centre(part), float(up_mul(2.0, sizes.get(2, 0.0))))
    if 3 in sizes:
        sizes[3] = min(sizes[3], float(up_div(third_at_centre(part), 6.0)))
    return refined(part, Series(prepared.block_names, parts, sizes, hessian))


def refined(part: ObjectivePart, series: Series) -> Series:
    return refine(part, series, REFINEMENTS)


def _lowered(f: Polynomial, chain: Mapping[tuple[int, ...], float]) -> Polynomial:
    """The smaller of two bounds on each part; missing entries count as 0."""
    keys = [tuple(int(e) for e in exponent) for exponent in f.exponents]
    least = [0.0 if sum(key) > 2 else np.inf for key in keys]
    other = [chain.get(key, least[k]) for k, key in enumerate(keys)]
    return Polynomial(f.exponents, np.minimum(f.coefficients, other))
