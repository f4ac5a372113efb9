"""Sums over elements whose rows have few entries: by norms of matrices >= 0, without n² numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.rounding import Array
from slomodel.bounds.enclosure import (
    NOTHING,
    UNKNOWN,
    Derivation,
    DerivativeBounds,
    Enclosure,
)
from slomodel.bounds.norms.loewner import Slots, by_lengths
from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.ranges.elements.element_sums import ElementSum, part_ranges
from slomodel.bounds.ranges.elements.sparse_rows import SparseRows, largest_eigenvalue_of_sizes
from slomodel.bounds.result import shown
from slomodel.calculus import degree
from slomodel.ir.function import ANALYTIC

Weights = list[tuple[SparseRows, Array]]


def of_sparse(
    part: ObjectivePart, parts: Sequence[ElementSum[SparseRows]], radius: float
) -> Enclosure:
    """The enclosure of a sum whose rows a have few entries.

    ‖Σ d_i a_i a_iᵀ‖ <= ‖Σ d_i |a_i||a_i|ᵀ‖ for the d >= 0 that bound H from above and from below
    in the Loewner order, mixed derivatives by |t x y| <= |t|(δ x² + y²/δ)/2; and D³f likewise with
    Σ |t| |a·v|³ <= Σ |t| ‖a‖ (a·v)². D⁴f is known where it is 0. Hypothesis: each φ_i is C¹ (C² for
    L2).
    """
    sides: tuple[Weights, Weights] = ([], [])
    third: Weights = []
    order, reason = 2, ""
    for summed in parts:
        result = part_ranges(part, summed, radius)
        least = int(np.min(result.smooth.order, initial=2))
        if least < order:
            order, reason = least, result.smooth.reason
        ranges = {slots: summed.weight * a for slots, a in result.derivatives.items()}
        dominating = [summed.weight * a for a in result.dominating]
        for side, sign in zip(sides, (1.0, -1.0), strict=True):
            side += _one_side(summed.rows, ranges, dominating, sign)
        every = product(range(len(summed.rows)), repeat=3)
        sizes = {slots: ranges[tuple(sorted(slots))].magnitude for slots in every}
        weights = by_lengths(summed.rows, sizes)
        third += [(rows, weights[k, k]) for k, rows in enumerate(summed.rows)]
    if order < 1:
        return Enclosure(order=order, reason=reason)
    above, below = sides
    if all((low <= high).all() for (_, high), (_, low) in zip(above, below, strict=True)):
        below = []
    upper = largest_eigenvalue_of_sizes(above, part.n)
    lower = largest_eigenvalue_of_sizes(below, part.n) if below else upper
    slope = largest_eigenvalue_of_sizes(third, part.n) if order > 1 else np.inf
    degrees = [degree(summed.own.value, summed.own.arguments) for summed in parts]
    is_cubic = order > 1 and all(k is not None and k <= 3 for k in degrees)
    over = DerivativeBounds((upper, lower), slope, NOTHING if is_cubic else UNKNOWN)
    order = ANALYTIC if is_cubic else order
    by = (
        Derivation(lines=(f"sparse rows ≤ {shown(max(one))}",))
        for one in ((upper, lower), (slope,))
    )
    return Enclosure(DerivativeBounds(), over, order, reason, *by)


def _one_side(
    rows: Sequence[SparseRows],
    ranges: Mapping[Slots, Interval],
    dominating: Sequence[Interval],
    sign: float,
) -> Weights:
    """Weights d >= 0 with sign · H <= Σ d a aᵀ."""
    result = []
    for p, own in enumerate(rows):
        a = ranges[p, p] if len(rows) == 1 else dominating[p]
        result.append((own, np.maximum(a.hi if sign > 0.0 else -a.lo, 0.0)))
    return result
