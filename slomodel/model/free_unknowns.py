"""Which unknowns of a model with sets a certificate lets vary: those off their bounds."""

from __future__ import annotations

import math

import numpy as np

from slomodel.bounds.certificates.certify import FreeUnknowns, whole
from slomodel.front.data.bind import Binding
from slomodel.front.data.points import Vector, vector_layout
from slomodel.ir.expr import Expr
from slomodel.ir.walk import inputs
from slomodel.problem import Problem, Variable
from slomodel.reference import evaluate
from slomodel.solve.sets.ball import EuclideanBall
from slomodel.solve.sets.box import Box
from slomodel.solve.sets.convex_set import Set
from slomodel.solve.sets.product import ProductSet, SetPart

_MARGIN = 1e-6
"""Least distance from the boundary of a ball, relative to max(1, ‖x‖)."""
_ROUNDED = 1e-13
"""Relative error of the ends of open intervals, which are expressions of data."""


def free_unknowns(
    problem: Problem, binding: Binding, within: Set | None, x: Vector
) -> FreeUnknowns:
    """The face of the sets of all variables on which x (n,) lies, as the unknowns that vary there.

    Elements at a bound of a closed interval are held there. Other closed sets have no such face: a
    point inside a ball is free, and for others the slice states why a proof is refused.
    """
    n = len(x)
    low, high, margin = np.full(n, -np.inf), np.full(n, np.inf), math.inf
    reason = "constraints are not taken into account" if problem.constraints else ""
    parts = within.parts if isinstance(within, ProductSet) else ()
    if within is not None and not parts:
        parts = (SetPart(0, n, within),)
    for part in parts:
        own, one = x[part.of], part.set
        if isinstance(one, Box):
            low[part.of], high[part.of] = one.low, one.high
            if not one.contains(own):
                reason = "x is outside the set of its variables"
        elif isinstance(one, EuclideanBall):
            room = _MARGIN * max(1.0, float(np.linalg.norm(own)))
            margin = min(margin, room)
            if not one.in_interior(own) or one.in_margin(own, room):
                reason = "x is at the boundary of a ball, whose curvature is not taken into account"
        else:
            reason = "only intervals and balls are supported among closed sets"
    _raise_open_ends(problem, binding, low, high)
    if (low == -np.inf).all() and (high == np.inf).all() and margin == math.inf and not reason:
        return whole(n)
    free = (low < x) & (x < high)
    held = int(n - free.sum())
    remarks = (f"{held} of {n} elements are held at bounds.",) if held else ()
    return FreeUnknowns(free, remarks, reason=reason, low=low, high=high, margin=margin)


def has_fixed_ends(variable: Variable) -> bool:
    """Whether a variable has no open set, or an open interval whose ends are numbers or data."""
    own = variable.set
    if own is None or not own.is_open:
        return True
    return own.kind == "open_box" and all(one.role == "data" for one in inputs(*own.numbers))


def _raise_open_ends(problem: Problem, binding: Binding, low: Vector, high: Vector) -> None:
    """Put the ends of open intervals, moved inwards by their rounding, into `low` and `high`."""
    known = {d.node: binding.arrays[d.name] for d in problem.data if d.name in binding.arrays}
    start = 0
    for variable in problem.variables:
        shape = vector_layout(problem, binding.sizes).shapes[variable.name]
        of = slice(start, start + math.prod(shape))
        start = of.stop
        own = variable.set
        if own is None or own.kind != "open_box":
            continue
        for end, to, inwards in ((own.low, low, 1.0), (own.high, high, -1.0)):
            if isinstance(end, Expr):
                (value,) = evaluate([end], known, binding.sizes)
                ends = np.broadcast_to(np.asarray(value, dtype=np.float64), shape).ravel()
                finite = np.isfinite(ends)
                moved = ends + inwards * _ROUNDED * np.abs(np.where(finite, ends, 0.0))
                to[of] = np.where(finite, moved, ends)
