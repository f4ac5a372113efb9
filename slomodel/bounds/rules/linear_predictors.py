"""Sums over elements of functions of a few affine numbers: by dense, spanned or sparse rows.

Such are the losses of regressions, Σ φ(y_i, a_i·x): logistic, Poisson, robust; phase retrieval;
functions of distances in the plane; Rosenbrock's function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slomodel.bounds.effort import MOST_NUMBERS
from slomodel.bounds.enclosure import DerivativeBounds, Enclosure, add, both_ends
from slomodel.bounds.norms.element_derivatives import fourth_order, second_order, third_order
from slomodel.bounds.norms.loewner import Rows
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.ranges.elements.element_sums import (
    MOST_VARIABLES,
    ElementSum,
    affine_of,
    parts_of,
    parts_over_ball,
    with_rows,
)
from slomodel.bounds.ranges.elements.spanned_rows import few_rows
from slomodel.bounds.ranges.elements.sparse_rows import SparseRows, sparse_rows
from slomodel.bounds.rules.predictors.dense_rows import over_ball
from slomodel.bounds.rules.predictors.sparse_rows import of_sparse
from slomodel.bounds.structure.gathers import element_forms
from slomodel.bounds.structure.linear_predictors import Elements, elements
from slomodel.ir.dims import number_of_elements

_FEW_ROWS = 512
"""Largest number of rows whose span is computed, which takes their Gram matrix and its root."""
_MOST_NUMBERS_OF_FEW = 2**24
"""Largest number of entries of those rows: 128 MB."""


@dataclass(frozen=True, slots=True)
class Sums:
    """Evaluated sums over elements: those whose rows are arrays, in all variables or in
    coordinates of their span, and those whose rows have few entries.
    """

    dense: tuple[ElementSum[Rows], ...] = ()
    sparse: tuple[ElementSum[SparseRows], ...] = ()

    def enclosure(self, part: ObjectivePart, radius: float) -> Enclosure:
        """The enclosure over a ball, from the centre too."""
        every = [over_ball(part, self.dense, radius)] if self.dense else []
        return add(every + self._of_sparse(part, radius))

    def over(self, part: ObjectivePart, radius: float) -> Enclosure:
        """The enclosure from the ranges over the ball alone, for sums beside other terms."""
        every = self._of_sparse(part, radius)
        if self.dense:
            own = parts_over_ball(part, self.dense, radius)
            if own.order < 1:
                return Enclosure(order=own.order, reason=own.reason)
            fourth = fourth_order(own.parts) if own.order > 2 and radius else np.inf
            third = min(third_order(own.parts)) if own.order > 1 else np.inf
            ends = both_ends(second_order(own.parts)), both_ends(fourth)
            bounds = DerivativeBounds(ends[0], third, ends[1])
            every.append(Enclosure(over=bounds, order=own.order, reason=own.reason))
        return add(every)

    def _of_sparse(self, part: ObjectivePart, radius: float) -> list[Enclosure]:
        return [of_sparse(part, self.sparse, radius)] if self.sparse else []


def linear_predictors(part: ObjectivePart, radius: float) -> Enclosure | None:
    """Enclosure of f = Σ_i w_i φ_i(u_i), u_pi = a_pi·x + b_pi.

    Norms depend on the inner products of the rows a_i alone, so that a few rows in many variables
    are rows in coordinates of their span. Other rows of many variables must have few entries.
    """
    for own in element_forms(part):
        parts = element_sums(own)
        if parts is not None:
            return over_ball(own, parts, radius)
    for own in _large_forms(part):
        sums = _large_sums(own)
        if sums is not None:
            return sums.enclosure(own, radius)
    return None


def is_large(part: ObjectivePart) -> bool:
    """Whether the objective is such a sum whose rows are not arrays in all variables."""
    if any(element_sums(own) is not None for own in element_forms(part)):
        return False
    return any(_large_sums(own) is not None for own in _large_forms(part))


def _large_forms(part: ObjectivePart) -> Sequence[ObjectivePart]:
    """The forms whose rows may be spanned or sparse; with few variables only those of gathers."""
    forms = element_forms(part)
    return forms if part.n > MOST_VARIABLES else forms[1:]


@once_per_part
def element_sums(part: ObjectivePart) -> tuple[ElementSum[Rows], ...] | None:
    """The parts with dense rows; None where the objective is of another kind or too large."""
    if not 0 < part.n <= MOST_VARIABLES:
        return None
    result = elements(part.objective, part.variables)
    return parts_of(part, result) if result else None


@once_per_part
def _large_sums(part: ObjectivePart) -> Sums | None:
    """The parts with spanned and sparse rows; None where the objective is of another kind."""
    result = elements(part.objective, part.variables)
    return _spanned_or_sparse(part, result, _FEW_ROWS) if result else None


def sums_of(part: ObjectivePart, terms: Sequence[Elements]) -> Sums | None:
    """Evaluated sums beside other terms; None where they are too large.

    In many variables they are mostly penalties, whose rows are unit vectors: coordinates of a span
    would only add errors.
    """
    if not terms:
        return Sums()
    if part.n > MOST_VARIABLES:
        return _spanned_or_sparse(part, terms, 0)
    dense = parts_of(part, terms)
    return None if dense is None else Sums(dense)


def _spanned_or_sparse(
    part: ObjectivePart, terms: Sequence[Elements], most_rows: int
) -> Sums | None:
    """The sums with few rows in coordinates of their span, the others with sparse rows."""
    if not all(number_of_elements(one.shape, part.sizes) for one in terms):
        return None
    few: list[Elements] = []
    for one in sorted(terms, key=lambda one: _numbers([one], part)):
        if _numbers([*few, one], part) <= min(most_rows, part.n):
            few.append(one)
    others = [one for one in terms if one not in few]
    spanned = _spanned(part, few) if few else ()
    sparse = sparse_rows(part, affine_of(others)) if others else {}
    if spanned is None or sparse is None:
        return None
    return Sums(spanned, with_rows(part, others, sparse, orders=3))


def _numbers(terms: Sequence[Elements], part: ObjectivePart) -> int:
    """The number of affine numbers."""
    return sum(number_of_elements(node.shape, part.sizes) for node in affine_of(terms))


def _spanned(part: ObjectivePart, terms: Sequence[Elements]) -> tuple[ElementSum[Rows], ...] | None:
    affine, count = affine_of(terms), _numbers(terms, part)
    sizes = sum(number_of_elements(one.shape, part.sizes) for one in terms)
    if count * part.n > _MOST_NUMBERS_OF_FEW or count * sizes > MOST_NUMBERS:
        return None
    rows = few_rows(part, affine)
    return None if rows is None else with_rows(part, terms, rows)
