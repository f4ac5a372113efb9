"""Sums over elements in many variables: by the span of their rows, or by rows with few entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.rounding import Array
from slomodel.bounds.enclosure import (
    Derivation,
    DerivativeBounds,
    Enclosure,
    add,
    both_ends,
    norm_of,
)
from slomodel.bounds.norms.element_derivatives import fourth_order, second_order, third_order
from slomodel.bounds.norms.loewner import Rows, Slots, by_lengths
from slomodel.bounds.ranges.element_sums import (
    MOST_NUMBERS,
    MOST_VARIABLES,
    ElementSum,
    affine_of,
    part_ranges,
    parts_of,
    parts_over_ball,
    with_rows,
)
from slomodel.bounds.ranges.spanned_rows import few_rows
from slomodel.bounds.ranges.sparse_rows import (
    SparseRows,
    largest_eigenvalue_of_sizes,
    sparse_rows,
)
from slomodel.bounds.result import shown
from slomodel.bounds.rules.separable_sums import has_parts, over_ball
from slomodel.bounds.setting import Setting, once_per_setting
from slomodel.bounds.structure.gathers import element_forms
from slomodel.bounds.structure.separable import Elements, elements
from slomodel.calculus import degree
from slomodel.ir.dims import concrete
from slomodel.ir.function import ANALYTIC

_FEW_ROWS = 512
_MOST_NUMBERS_OF_FEW = 2**24
Weights = list[tuple[SparseRows, Array]]


@dataclass(frozen=True, slots=True)
class Sums:
    """The parts with few rows, in coordinates of their common span, and those with sparse rows."""

    few: tuple[ElementSum[Rows], ...]
    sparse: tuple[ElementSum[SparseRows], ...]


@dataclass(frozen=True, slots=True)
class Rest:
    """The remaining parts beside those of another rule: with dense rows or with sparse ones.

    `is_cubic`: the sparse ones have degree 3 at most.
    """

    few: tuple[ElementSum[Rows], ...] = ()
    sparse: tuple[ElementSum[SparseRows], ...] = ()
    is_cubic: bool = True

    def over(self, setting: Setting, radius: float) -> tuple[tuple[float, float, float], int, str]:
        """Upper bounds on sup ‖D^k‖, k = 2, 3, 4, the order of smoothness and what limits it."""
        if self.sparse:
            found = of_sparse(setting, self.sparse, radius)
            first, second = norm_of(found.over.second), found.over.third
            order = int(np.isfinite(first)) + int(np.isfinite(second))
            smooth = ANALYTIC if order == 2 and self.is_cubic else order
            return (first, second, 0.0 if self.is_cubic else np.inf), smooth, found.reason
        if not self.few:
            return (0.0, 0.0, 0.0), ANALYTIC, ""
        own = parts_over_ball(setting, self.few, radius)
        if own.order < 1:
            return (np.inf, np.inf, np.inf), own.order, own.reason
        fourth = fourth_order(own.parts) if own.order > 2 and radius else np.inf
        bounds = second_order(own.parts), min(third_order(own.parts)), fourth
        return bounds, own.order, own.reason


def rest_of(setting: Setting, found: Sequence[Elements]) -> Rest | None:
    """The parts of the objective in numbers; None where they are too large."""
    if setting.n <= MOST_VARIABLES:
        few = parts_of(setting, found)
        return None if few is None else Rest(few)
    sparse = sparse_parts(setting, found)
    if sparse is None:
        return None
    degrees = [degree(one.value, one.arguments) for one in found]
    return Rest(sparse=sparse, is_cubic=all(k is not None and k <= 3 for k in degrees))


def sums_over_many_variables(setting: Setting, radius: float) -> Enclosure | None:
    """`separable_sums` without arrays of n² numbers: f = f_few + f_sparse, their bounds added.

    The norms of a part with few rows a_i depend on their inner products alone. For one with sparse
    rows, ‖Σ d_i a_i a_iᵀ‖ <= ‖Σ d_i |a_i||a_i|ᵀ‖ for the d >= 0 that bound H from above and from
    below in the Loewner order, mixed derivatives by |t x y| <= |t|(δ x² + y²/δ)/2; and D³f likewise
    with Σ |t| |a·v|³ <= Σ |t| ‖a‖ (a·v)². Hypothesis: each φ_i is C¹ (C² for L2).
    """
    sums = _sums(setting) if setting.n > MOST_VARIABLES else None
    for own in element_forms(setting)[1:]:
        if sums is None and not has_parts(own):
            setting, sums = own, _sums(own)
    if sums is None:
        return None
    every = [over_ball(setting, sums.few, radius)] if sums.few else []
    every += [of_sparse(setting, sums.sparse, radius)] if sums.sparse else []
    return add(every)


def of_sparse(
    setting: Setting, parts: Sequence[ElementSum[SparseRows]], radius: float
) -> Enclosure:
    """The bounds of `large_sums` for parts with sparse rows."""
    sides: tuple[Weights, Weights] = ([], [])
    third: Weights = []
    order, reason = 2, ""
    for part in parts:
        found = part_ranges(setting, part, radius)
        least = int(np.min(found.smooth.order, initial=2))
        if least < order:
            order, reason = least, found.smooth.reason
        ranges = {slots: part.weight * a for slots, a in found.derivatives.items()}
        dominating = [part.weight * a for a in found.dominating]
        for side, sign in zip(sides, (1.0, -1.0), strict=True):
            side += _one_side(part.rows, ranges, dominating, sign)
        every = product(range(len(part.rows)), repeat=3)
        sizes = {slots: ranges[tuple(sorted(slots))].magnitude for slots in every}
        weights = by_lengths(part.rows, sizes)
        third += [(rows, weights[k, k]) for k, rows in enumerate(part.rows)]
    if order < 1:
        return Enclosure(order=order, reason=reason)
    above, below = sides
    if all((low <= high).all() for (_, high), (_, low) in zip(above, below, strict=True)):
        below = []
    first = max(largest_eigenvalue_of_sizes(side, setting.n) for side in (above, below))
    second = largest_eigenvalue_of_sizes(third, setting.n) if order > 1 else np.inf
    over = DerivativeBounds(both_ends(first), second)
    by = (Derivation(lines=(f"sparse rows ≤ {shown(one)}",)) for one in (first, second))
    return Enclosure(DerivativeBounds(), over, order, reason, *by)


def _one_side(
    rows: Sequence[SparseRows],
    ranges: Mapping[Slots, Interval],
    dominating: Sequence[Interval],
    sign: float,
) -> Weights:
    """Weights d >= 0 with sign · H <= Σ d a aᵀ."""
    found = []
    for p, own in enumerate(rows):
        a = ranges[p, p] if len(rows) == 1 else dominating[p]
        found.append((own, np.maximum(a.hi if sign > 0.0 else -a.lo, 0.0)))
    return found


@once_per_setting
def _sums(setting: Setting) -> Sums | None:
    """The sums; None where the objective is of another kind or too large."""
    found = elements(setting.objective, setting.variables)
    if not found or not all(prod(concrete(one.shape, setting.sizes)) for one in found):
        return None
    few: list[Elements] = []
    for one in sorted(found, key=lambda one: _numbers([one], setting)):
        if _numbers([*few, one], setting) <= min(_FEW_ROWS, setting.n):
            few.append(one)
    others = [one for one in found if one not in few]
    parts = _few_parts(setting, few) if few else ()
    if parts is None:
        return None
    sparse = sparse_parts(setting, others)
    return None if sparse is None else Sums(parts, sparse)


def sparse_parts(
    setting: Setting, found: Sequence[Elements]
) -> tuple[ElementSum[SparseRows], ...] | None:
    """The parts with sparse rows in numbers, without fourth derivatives; None if not sparse."""
    sparse = sparse_rows(setting, affine_of(found)) if found else {}
    if sparse is None:
        return None
    return tuple(
        replace(one, graphs={slots: graph for slots, graph in one.graphs.items() if len(slots) < 4})
        for one in with_rows(setting, found, sparse)
    )


def _numbers(found: Sequence[Elements], setting: Setting) -> int:
    """The number of affine numbers."""
    return sum(prod(concrete(node.shape, setting.sizes)) for node in affine_of(found))


def _few_parts(setting: Setting, found: Sequence[Elements]) -> tuple[ElementSum[Rows], ...] | None:
    affine, count = affine_of(found), _numbers(found, setting)
    sizes = sum(prod(concrete(one.shape, setting.sizes)) for one in found)
    if count * setting.n > _MOST_NUMBERS_OF_FEW or count * sizes > MOST_NUMBERS:
        return None
    rows = few_rows(setting, affine)
    return None if rows is None else with_rows(setting, found, rows)
