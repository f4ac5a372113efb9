"""Bounds for a model and its solvers: the arguments of `bounds`, and proofs about a centre."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds import (
    ObjectivePart,
    bounds,
    effort_of,
    gradient_error,
    quick_bound,
    stopped_by,
    value_error,
)
from slomodel.bounds.centre import curvature_above
from slomodel.bounds.ranges.enclose import boxed, elements_read
from slomodel.functions import neg
from slomodel.ir.expr import Input
from slomodel.ir.walk import dependents, inputs, postorder
from slomodel.model.plans import known_of
from slomodel.problem import Problem
from slomodel.reference import evaluate
from slomodel.rewrite.work import prepared
from slomodel.solve import Proof
from slomodel.solve.constants.proved import PROOF_STEPS

Array = NDArray[np.float64]
Values = Mapping[Input, Array]


def part_of(problem: Problem, values: Values, sizes: Mapping[str, int]) -> ObjectivePart:
    """The objective with its centre and data.

    In data that may be missing, entries that a mask hides may have any value: NaN and infinities
    there are replaced by 0.
    """
    part = _with_tables(
        ObjectivePart(
            objective=problem.plain.get(problem.objective, problem.objective),
            variables=problem.inputs,
            values=values,
            sizes=sizes,
            known=known_of(problem),
            spans=problem.spans,
            forms={plain: form for form, plain in problem.plain.items()},
        )
    )
    missing = {d.node for d in problem.data if d.may_be_missing} & values.keys()
    unknown = [node for node in missing if not np.isfinite(values[node]).all()]
    if not unknown:
        return part
    live = elements_read([part.objective], boxed(part.values), sizes)
    used = set(inputs(part.objective))
    hidden = {
        node: np.where(np.isfinite(values[node]) | live.get(node, node in used), values[node], 0.0)
        for node in unknown
    }
    return replace(part, values={**part.values, **hidden})


def _with_tables(part: ObjectivePart) -> ObjectivePart:
    """The objective with expressions prepared from data, such as index tables, as further data."""
    order = postorder(part.objective)
    varying = dependents(order, lambda node: node in part.variables)
    named = [node for node in part.spans if node in varying]
    forms = [part.forms[part.objective]] if part.objective in part.forms else []
    (objective, *rest), made = prepared((part.objective, *forms, *named), ())
    if not made:
        return part
    result = evaluate(list(made.values()), part.values, part.sizes)
    values = {**part.values, **dict(zip(made, map(_reals, result), strict=True))}
    known = replace(part.known, finite=part.known.finite.union(made))
    spans = {node: part.spans[old] for old, node in zip(named, rest[len(forms) :], strict=True)}
    return replace(
        part,
        objective=objective,
        values=values,
        known=known,
        spans=spans,
        forms={objective: rest[0]} if forms else {},
    )


def _reals(array: NDArray[np.generic]) -> Array:
    return np.asarray(array, dtype=np.float64)


class Prover:
    """Proved bounds about a point (n,), for a solver; computations at a centre are done once.

    `sign` is -1 where the solver minimises the negative of the objective.
    """

    def __init__(self, part_at: Callable[[Array], ObjectivePart], sign: float = 1.0) -> None:
        self._part_at = part_at
        self._sign = sign
        self._last: tuple[Array, ObjectivePart] | None = None
        self._last_quick: tuple[ObjectivePart, ObjectivePart] | None = None
        self._check: Callable[[], None] | None = None

    @property
    def worth(self) -> float:
        return PROOF_STEPS

    @property
    def errors(self) -> Prover:
        """The bounds on the errors of evaluation: the prover itself."""
        return self

    def stop_by(self, check: Callable[[], None]) -> None:
        """Call `check` regularly during proofs; an exception that it raises ends the proof."""
        self._check = check

    def __call__(self, centre: Array, radius: float) -> Proof:
        with stopped_by(self._check):
            result = bounds(self._part(centre), radius)
        return Proof(result.L1, result.L2, result.reason)

    def quick(self, centre: Array, radius: float) -> Proof:
        """An upper bound on L1 alone, computed quickly where a quick rule applies."""
        with stopped_by(self._check):
            result = quick_bound(self._part(centre), radius)
        return Proof(result, math.inf) if math.isfinite(result) else self(centre, radius)

    def one_of_many(self, centre: Array, radius: float) -> Proof:
        """Upper bounds on L1, and L2 where it is known, at a lower effort if that suffices for L1.

        Polynomials lose at most a fifth by it over small balls and 1 % over unit balls, other
        functions up to a third there, and the proofs take a third of the time.
        """
        part = self._part(centre)
        if self._last_quick is None or self._last_quick[0] is not part:
            self._last_quick = part, replace(part, effort=effort_of("quick"))
        with stopped_by(self._check):
            result = bounds(self._last_quick[1], radius)
        proof = Proof(result.L1, result.L2)
        return proof if math.isfinite(result.L1) else self(centre, radius)

    def curvature_above(self, x: Array, v: Array) -> float:
        """Upper bound on vᵀHv / vᵀv of the function that is minimised, at x (n,) along v (n,)."""
        with stopped_by(self._check):
            part = self._part(x)
            if self._sign < 0.0:
                part = replace(part, objective=neg(part.objective))
            return curvature_above(part, v)

    def value_error(self, x: Array, f: float) -> float:
        """Upper bound on |f − objective at x (n,)|, with the objective as the model states it."""
        with stopped_by(self._check):
            return value_error(self._part(x), f)

    def gradient_error(self, x: Array, g: Array) -> float:
        """Upper bound on ‖g − gradient at x‖, both (n,)."""
        with stopped_by(self._check):
            return gradient_error(self._part(x), g)

    def _part(self, centre: Array) -> ObjectivePart:
        if self._last is None or not np.array_equal(self._last[0], centre):
            self._last = (centre.copy(), self._part_at(centre))
        return self._last[1]
