"""How far a whole array moves over a region, in the Euclidean norm of all its elements.

Each element of e may move by ρ over a ball of this radius, but ‖Δe‖ <= ρ for all of them together:
where N elements share the radius, ranges of the elements lose a factor of up to √N. With Δu =
u(c + d) - u(c), sizes |u| over the region, and ‖u‖ <= ‖u(c)‖ + ‖Δu‖,

    ‖Δφ(u_1, ..)‖ <= Σ_p max |φ_p| ‖Δu_p‖,   ‖Δ(u w)‖ <= ‖Δu · w‖ + ‖u(c) · Δw‖,

and a contraction of one array in its norm with others by their sizes is a linear map L of it:
‖L‖² is at most the largest sum of a row of |L| times that of a column (Schur), and ‖L‖ the spectral
norm of a matrix; a contraction of two arrays is at most the product of their norms (Cauchy and
Schwarz). What moves no farther by the ranges of its elements keeps that bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from math import inf, prod, sqrt
from operator import itemgetter

import numpy as np

import slomodel.functions as table
from slomodel.bounds.arithmetic.interval import Interval, point
from slomodel.bounds.arithmetic.interval_einsum import largest_sum
from slomodel.bounds.arithmetic.rounding import Array, up_add, up_mul, up_norm, up_sqrt
from slomodel.bounds.effort import MOST_NUMBERS
from slomodel.bounds.norms.spectral_norm import spectral_norm
from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.ranges.derivatives import derivative_range
from slomodel.bounds.ranges.kinks import order_near, outside
from slomodel.bounds.ranges.values import value_range
from slomodel.functions.compound import same, stop_gradient
from slomodel.ir.dims import concrete
from slomodel.ir.expr import (
    Axes,
    Const,
    Einsum,
    Expr,
    Extreme,
    Gather,
    Map,
    Reshape,
    Scatter,
    tables,
)
from slomodel.ir.walk import postorder
from slomodel.reference import positions

FEW_ELEMENTS = 8
"""Least number of elements for which the bounds pay: they gain at most its root."""
_UP = 1.0 + 2.0**-50
"""More than the root of a whole number loses by rounding."""


@dataclass(frozen=True, slots=True)
class MovedArray:
    """An array with its range over a region and at the centre, and an upper bound on ‖Δu‖."""

    over: Interval
    centre: Interval
    shift: float

    @property
    def size(self) -> Array:
        return self.over.magnitude

    @property
    def far(self) -> Array:
        """Upper bounds on how far each element moves."""
        above, below = up_add(self.over.hi, -self.centre.lo), up_add(self.centre.hi, -self.over.lo)
        far = np.maximum(np.maximum(above, below), 0.0)
        return np.where(np.isnan(far), inf, far)

    @property
    def at_centre(self) -> MovedArray:
        return MovedArray(self.centre, self.centre, 0.0)

    @property
    def norm(self) -> float:
        """An upper bound on ‖u‖ over the region."""
        by_centre = up_add(float(up_norm(self.centre.magnitude)), self.shift)
        return min(float(up_norm(self.size)), float(by_centre))


@dataclass(slots=True)
class ArrayShifts:
    """Upper bounds on ‖Δu‖ for nodes with known ranges over a region and at the centre.

    `given` are those of inputs; those of other inputs follow from their ranges. Of graphs of
    scalars that stand for elements, `over` and `centre` hold one number for each element.
    """

    part: ObjectivePart
    over: Mapping[Expr, Interval]
    centre: Mapping[Expr, Interval]
    known: dict[Expr, float]

    def of(self, root: Expr) -> float:
        """The bound for a node, from those for the nodes below it."""
        with np.errstate(all="ignore"):
            for node in postorder(root):
                if node not in self.known and node.dtype == "real":
                    self.known[node] = self._shift(node)
        return self.known[root]

    def array(self, node: Expr) -> MovedArray:
        """A node of its own shape; of elements, with an axis for these."""
        over, centre = self.over[node], self.centre[node]
        shape = concrete(node.shape, self.part.sizes)
        if node.rank:
            over, centre = over.broadcast(shape), centre.broadcast(shape)
        return MovedArray(over, centre, self.known.get(node, inf))

    def _shift(self, node: Expr) -> float:
        own = self.array(node)
        by_elements = float(up_norm(own.far))
        if by_elements == 0.0 or not node.operands:
            return by_elements
        by_rule = shift_of(node, self)
        return by_elements if np.isnan(by_rule) else min(by_elements, by_rule)


def shifts_of_elements(
    part: ObjectivePart,
    graphs: Sequence[Expr],
    boxes: tuple[Mapping[Expr, Interval], Mapping[Expr, Interval]],
    known: Mapping[Expr, float],
) -> list[tuple[Interval, float]]:
    """Graphs of scalars at the centre for all elements (m,), and how far these move together.

    `boxes` hold the inputs over the region and at the centre, `known` how far they move.
    """
    over, centre = (dict(own) for own in boxes)
    with np.errstate(all="ignore"):
        for node in postorder(*graphs):
            for ranges in (over, centre):
                if isinstance(node, Const):
                    ranges[node] = point(float(node.value))
                elif isinstance(node, Map):
                    ranges[node] = value_range(node.function, *(ranges[o] for o in node.operands))
        run = ArrayShifts(part, over, centre, dict(known))
        return [(centre[graph], run.of(graph)) for graph in graphs]


@singledispatch
def shift_of(node: Expr, run: ArrayShifts) -> float:
    """‖Δu‖ of a node from its operands; inf without a rule."""
    return inf


@shift_of.register(Reshape)
@shift_of.register(Extreme)
def _(node: Reshape | Extreme, run: ArrayShifts) -> float:
    """The largest element of a set moves by no more than the elements of the set together."""
    return run.known[node.operands[0]]


@shift_of.register(Gather)
@shift_of.register(Scatter)
def _(node: Gather | Scatter, run: ArrayShifts) -> float:
    """An element that is read k times counts k times; a sum of k elements is at most √k ‖·‖."""
    sizes, operand = run.part.sizes, node.operands[0]
    inner, outer = concrete(operand.shape, sizes), concrete(node.shape, sizes)
    read, written = (outer, inner) if isinstance(node, Gather) else (inner, outer)
    own = {one: run.part.tables[one] for one in tables(node.index)}
    if any(one not in run.part.tables for one in own) or not prod(read):
        return inf
    where = positions(node.index, read, written, sizes, own)
    flat = np.ravel_multi_index(where, written).ravel() if written else np.zeros(prod(read), int)
    most = float(np.bincount(flat).max(initial=0))
    return float(up_mul(sqrt(most) * _UP, run.known[operand]))


@shift_of.register
def _(node: Einsum, run: ArrayShifts) -> float:
    own = [(run.array(o), axes) for o, axes in zip(node.operands, node.inputs, strict=True)]
    return _of_product(own, node.output, concrete(node.dims, run.part.sizes))


@shift_of.register
def _(node: Map, run: ArrayShifts) -> float:
    function = node.function
    if any(operand.dtype != "real" for operand in node.operands):
        return _of_choice(node, run) if function is table.where else inf
    own = [run.array(operand) for operand in node.operands]
    laid, dims = _laid(node, own, run)
    if function in (same, table.add, table.sub):
        total = 0.0
        for one, axes in zip(own, laid, strict=True):
            total = float(up_add(total, up_mul(_repeats(axes, dims), one.shift)))
        return total
    output = tuple(range(len(dims)))
    if function is table.mul:
        return _of_product(list(zip(own, laid, strict=True)), output, dims)
    if function is table.div:
        own[1] = _reciprocal(own[1])
        return _of_product(list(zip(own, laid, strict=True)), output, dims)
    if function is stop_gradient or function.result != "real":
        return inf
    return _of_function(node, own, laid, dims)


def _laid(
    node: Map, own: Sequence[MovedArray], run: ArrayShifts
) -> tuple[Sequence[Axes], tuple[int, ...]]:
    """The axes of each operand among those of the node, with an axis for elements if these have
    one.
    """
    if node.rank:
        return node.axes, concrete(node.shape, run.part.sizes)
    m = max((one.over.lo.size for one in own), default=1)
    return [(0,) if one.over.lo.ndim else () for one in own], (m,)


def _repeats(axes: Axes, dims: Sequence[int]) -> float:
    """√k for an array that is repeated k times along the axes that it lacks."""
    count = prod(size for axis, size in enumerate(dims) if axis not in axes)
    return sqrt(count) * _UP


def _of_choice(node: Map, run: ArrayShifts) -> float:
    """A choice that is the same over the region: each element is that of one operand."""
    condition = run.over[node.operands[0]]
    if not (condition.lo == condition.hi).all():
        return inf
    total, dims = 0.0, concrete(node.shape, run.part.sizes)
    for operand, axes in zip(node.operands[1:], node.axes[1:], strict=True):
        repeats = _repeats(axes, dims) if node.rank else 1.0
        total = float(up_add(total, up_mul(repeats, run.known[operand])))
    return total


def _reciprocal(one: MovedArray) -> MovedArray:
    """1/u, whose derivative is at most 1/u² in size."""
    unit = point(1.0)
    over, centre = (value_range(table.div, unit, a) for a in (one.over, one.centre))
    steepest = float(np.max(up_mul(over.magnitude, over.magnitude), initial=0.0))
    result = MovedArray(over, centre, float(up_mul(steepest, one.shift)))
    by_elements = float(up_norm(result.far))
    return MovedArray(over, centre, float(np.fmin(result.shift, by_elements)))


def _of_function(
    node: Map, own: Sequence[MovedArray], laid: Sequence[Axes], dims: tuple[int, ...]
) -> float:
    """Σ_p max |φ_p| ‖Δu_p‖, or ‖|φ_p| |Δu_p|‖, for continuous and piecewise smooth φ."""
    function, arity = node.function, len(own)
    wide = [_wide(axes, dims) for axes in laid]
    ranges = [
        one.over.each(itemgetter(where)) if one.over.lo.ndim else one.over
        for one, where in zip(own, wide, strict=True)
    ]
    if np.any(outside(function, *ranges) | (order_near(function, *ranges) < 0)):
        return inf
    total = 0.0
    for p, (one, axes) in enumerate(zip(own, laid, strict=True)):
        far = one.far
        if not far.any():
            continue
        orders = tuple(int(k == p) for k in range(arity))
        steep = derivative_range(function, orders, *ranges).magnitude
        each = up_mul(steep, far[wide[p]] if far.ndim else far)
        most = float(np.max(steep, initial=0.0))
        together = up_mul(most, up_mul(_repeats(axes, dims), one.shift))
        by_elements = float(up_norm(np.broadcast_to(each, dims)))
        total = float(up_add(total, np.fmin(together, by_elements)))
    return total


def _wide(axes: Axes, dims: Sequence[int]) -> tuple[slice | None, ...]:
    return tuple(slice(None) if axis in axes else None for axis in range(len(dims)))


Factors = Sequence[tuple[MovedArray, Axes]]


def _of_product(factors: Factors, output: Axes, dims: tuple[int, ...]) -> float:
    """Σ_k of the contraction with Δu_k in place of u_k, each by its least bound."""
    labels = [axes for _, axes in factors] + [output]
    if any(len(set(axes)) < len(axes) for axes in labels) or prod(dims) > MOST_NUMBERS:
        return inf
    return min(_in_turn(own, output, dims) for own in (factors, factors[::-1]))


def _in_turn(factors: Factors, output: Axes, dims: tuple[int, ...]) -> float:
    """The same where factors move one after another: those before are at the centre."""
    total = 0.0
    for k, (one, _) in enumerate(factors):
        if one.shift > 0.0:
            before = [(own.at_centre, axes) for own, axes in factors[:k]]
            own = [*before, *factors[k:]]
            total = float(up_add(total, _with_moved(own, k, output, dims)))
    return total


def _with_moved(factors: Factors, k: int, output: Axes, dims: tuple[int, ...]) -> float:
    """Upper bound on the contraction with Δu_k, one or two arrays by their norms."""
    moved, own = factors[k]
    sizes = [(one.size, axes) for one, axes in factors]
    others = [*sizes[:k], *sizes[k + 1 :]]
    found = [float(up_mul(moved.shift, _map_norm(others, own, output, dims)))]
    if len(factors) == 2:
        other, axes = factors[1 - k]
        found.append(float(up_mul(moved.shift, _matrix_norm(other.over, axes, own, output))))
    changed = [*sizes[:k], (moved.far, own), *sizes[k + 1 :]]
    for j, (one, axes) in enumerate(factors):
        if j == k:
            continue
        rest = [*changed[:j], *changed[j + 1 :]]
        found.append(float(up_mul(one.norm, _map_norm(rest, axes, output, dims))))
        both = up_mul(up_mul(moved.shift, one.norm), _pairs(own, axes, output, dims))
        for i, (third, _) in enumerate(factors):
            if i not in (j, k):
                both = up_mul(both, float(np.max(third.size, initial=0.0)))
        found.append(float(both))
    return min(one for one in found if not np.isnan(one)) if not np.isnan(found).all() else inf


def _map_norm(
    others: Sequence[tuple[Array, Axes]], own: Axes, output: Axes, dims: tuple[int, ...]
) -> float:
    """Schur's bound on the contraction with the others as a linear map of an array."""
    rows = largest_sum(others, output, dims)
    return float(up_sqrt(up_mul(rows, largest_sum(others, own, dims))))


def _matrix_norm(a: Interval, axes: Axes, own: Axes, output: Axes) -> float:
    """The norm of a as a matrix from what it shares with an array alone to the rest of the output.

    inf where it is no such matrix.
    """
    inner = [axis for axis in axes if axis in own and axis not in output]
    outer = [axis for axis in axes if axis not in own and axis in output]
    is_whole = len(inner) + len(outer) == len(axes) and inner and outer
    if not is_whole or set(own) - set(inner) - set(output) or set(output) - set(outer) - set(own):
        return inf
    order = [axes.index(axis) for axis in (*outer, *inner)]
    count = prod(a.shape[axes.index(axis)] for axis in outer)
    mid, rad = (np.transpose(array, order).reshape(count, -1) for array in (a.mid, a.rad))
    return float(up_add(spectral_norm(mid), spectral_norm(rad)))


def _pairs(first: Axes, second: Axes, output: Axes, dims: tuple[int, ...]) -> float:
    """What sums and copies along labels that not both arrays have multiply ‖u‖‖w‖ by, at most."""
    result = 1.0
    for label, size in enumerate(dims):
        count = (label in first) + (label in second)
        if label in output:
            result *= sqrt(size) * _UP if not count else 1.0
        elif count < 2:
            result *= size if not count else sqrt(size) * _UP
    return result * _UP
