"""Sets of vectors along an axis: the open simplex, and increasing elements."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from slomodel.functions import add, exp
from slomodel.functions.shifted import softmax
from slomodel.ir import build
from slomodel.ir.dims import Shape, literal, resized
from slomodel.ir.expr import Affine, Expr
from slomodel.model.open_sets.open_set_map import (
    EDGE_OF_HALF_LINE,
    EDGE_OF_INTERVAL,
    EQUAL,
    Array,
    BoxEnds,
    FreeShape,
    first_element,
    place,
)
from slomodel.problem import DeclaredSet


class OpenSimplex:
    """x = softmax(u, 0): positive elements with sum 1, from one unknown fewer."""

    def free_shape(self, name: str, shape: Shape, declared: DeclaredSet) -> FreeShape:
        return FreeShape(resized(shape, declared.axis, shape[declared.axis] - 1))

    def user(self, u: Expr, shape: Shape, declared: DeclaredSet) -> Expr:
        padded = build.scatter(u, Affine.shifted(len(shape), declared.axis, literal(0)), shape)
        return softmax(padded, (declared.axis,))

    def outside(self, x: Array, declared: DeclaredSet, ends: BoxEnds) -> str:
        inside = np.isfinite(x) & (x > 0.0)
        if not inside.all():
            return first_element(x, ~inside)
        total = np.asarray(x.sum(axis=declared.axis))
        wrong = np.asarray(np.abs(total - 1.0) > EQUAL)
        if not wrong.any():
            return ""
        return f" has the sum {total[wrong][0]:g} along axis {declared.axis}"

    def free(self, x: Array, declared: DeclaredSet, ends: BoxEnds) -> Array:
        logs = np.moveaxis(np.log(x), declared.axis, 0)
        return np.moveaxis(logs[:-1] - logs[-1], 0, declared.axis)

    def logarithmic(self, u: Array, declared: DeclaredSet) -> NDArray[np.bool_]:
        return np.ones(u.shape, dtype=bool)

    def near_edge(self, u: Array, declared: DeclaredSet) -> bool:
        if not u.size:
            return False
        largest = np.maximum(u.max(axis=declared.axis), 0.0)
        least = np.minimum(u.min(axis=declared.axis), 0.0)
        return bool((largest - least > -np.log(EDGE_OF_INTERVAL)).any())

    def at_number(self, number: float, shape: tuple[int, ...], declared: DeclaredSet) -> Array:
        return np.full(shape, 1.0 / shape[declared.axis] if shape[declared.axis] else 0.0)


class Ordered:
    """x_0 = u_0, x_k = x_(k−1) + e^(u_k): increasing elements."""

    def free_shape(self, name: str, shape: Shape, declared: DeclaredSet) -> FreeShape:
        return FreeShape(shape)

    def user(self, u: Expr, shape: Shape, declared: DeclaredSet) -> Expr:
        axis, rank = declared.axis, len(shape)
        first_shape = resized(shape, axis, literal(1))
        rest_shape = resized(shape, axis, shape[axis] - 1)
        head = Affine.shifted(rank, axis, literal(0))
        tail = Affine.shifted(rank, axis, literal(1))
        first = build.scatter(build.gather(u, head, first_shape), head, shape)
        steps = build.scatter(build.apply(exp, build.gather(u, tail, rest_shape)), tail, shape)
        return build.scan(build.ones(shape), build.apply(add, first, steps), axis)

    def outside(self, x: Array, declared: DeclaredSet, ends: BoxEnds) -> str:
        inside = np.isfinite(x)
        if not inside.all():
            return first_element(x, ~inside)
        steps = np.diff(x, axis=declared.axis)
        wrong = ~(steps > 0.0)
        if not wrong.any():
            return ""
        at = [int(k) for k in np.argwhere(wrong)[0]]
        at[declared.axis] += 1
        return f" does not increase at {place(tuple(at))}"

    def free(self, x: Array, declared: DeclaredSet, ends: BoxEnds) -> Array:
        along = np.moveaxis(x, declared.axis, 0)
        steps = np.log(np.diff(along, axis=0))
        return np.moveaxis(np.concatenate([along[:1], steps]), 0, declared.axis)

    def logarithmic(self, u: Array, declared: DeclaredSet) -> NDArray[np.bool_]:
        return np.asarray(np.indices(u.shape)[declared.axis] > 0)

    def near_edge(self, u: Array, declared: DeclaredSet) -> bool:
        """Whether two neighbours coincide, measured against the largest difference too."""
        steps = np.moveaxis(u, declared.axis, 0)[1:]
        if not steps.size:
            return False
        largest = steps.max(axis=0)
        least = np.maximum(largest + math.log(EDGE_OF_INTERVAL), math.log(EDGE_OF_HALF_LINE))
        return bool((steps < least).any())

    def at_number(self, number: float, shape: tuple[int, ...], declared: DeclaredSet) -> Array:
        return np.asarray(number + np.indices(shape, dtype=np.float64)[declared.axis])
