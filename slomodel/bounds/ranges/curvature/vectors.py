"""Arrays of elements as vectors: bounds on ‖v‖, ‖Dv‖ and ‖D²v‖, and on what is made of these.

Bounds of single elements let all of them change at once. For a vector v(x) with ‖Dv‖ <= m and
‖D²v‖ <= h, and its length s = (‖v‖² + e)^½ >= l, e >= 0 constant,

    ‖Ds‖ <= m,  ‖D²s‖ <= h + m²/l,   ‖D(v/s)‖ <= m/l,  ‖D²(v/s)‖ <= h/l + (2/√3) m²/l²,

as the third derivative of ‖·‖ at a point of length l has the norm 2/(√3 l²); and for a second one

    ‖D(v·w)‖ <= ‖v‖m_w + ‖w‖m,   ‖D²(v·w)‖ <= ‖v‖h_w + ‖w‖h + 2 m m_w.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, prod
from operator import attrgetter

import numpy as np

import slomodel.functions as table
from slomodel.bounds.arithmetic.interval import Interval, from_zero, point
from slomodel.bounds.arithmetic.interval_einsum import contract
from slomodel.bounds.arithmetic.rounding import (
    Array,
    down_mul,
    down_sqrt,
    up_add,
    up_div,
    up_mul,
    up_norm,
)
from slomodel.bounds.norms.spectral_norm import stack_norm
from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.ranges.affine_norms import lengths_over_ball
from slomodel.bounds.ranges.curvature.centre_graph import CentreGraph
from slomodel.bounds.ranges.curvature.slopes import Forms, numbers
from slomodel.bounds.ranges.values import value_range
from slomodel.bounds.structure.lengths import (
    Factors,
    Squares,
    SumOfSquaredArrays,
    UnitVectors,
    lengths_in,
)
from slomodel.ir.dims import concrete, number_of_elements
from slomodel.ir.expr import Axes, Einsum, Expr

_THIRD = float(up_div(2.0, float(down_sqrt(3.0))))
_ONE = point(np.ones(()))

Vector = tuple[Expr, Axes]
"""A node and the axes along which its elements are one vector, in order."""


@dataclass(frozen=True, slots=True)
class VectorBounds:
    """Upper bounds on ‖v‖, ‖Dv‖ and ‖D²v‖; the axes of the vectors have length 1."""

    size: Array
    slope: Array
    curvature: Array


def vectors_of(part: ObjectivePart, most: int) -> tuple[Expr, ...]:
    """The nodes whose elements are taken as vectors, up to so many elements times unknowns."""
    found = lengths_in(part.order, part.varying)
    nodes = [one.node for own in found.sums.values() for one in own.squares]
    nodes += [one.vector for one in found.units.values()]
    if found.units:
        nodes += [o for one in part.order for o in _contracted(one) if o in part.varying]
    result, left = [], most
    for node in dict.fromkeys(nodes):
        left -= number_of_elements(node.shape, part.sizes) * part.n
        if left < 0:
            break
        result.append(node)
    return tuple(result)


def _contracted(node: Expr) -> tuple[Expr, ...]:
    """The two operands of a sum of products over axes that both have; none for other nodes."""
    if not isinstance(node, Einsum) or len(node.operands) != 2:
        return ()
    if any(len(set(labels)) < len(labels) for labels in (*node.inputs, node.output)):
        return ()
    summed = set(range(len(node.dims))).difference(node.output)
    is_shared = summed and all(summed <= set(labels) for labels in node.inputs)
    return node.operands if is_shared else ()


@dataclass(frozen=True, slots=True)
class Vectors:
    """Vectors of a graph over a region of this radius, from bounds on the derivatives of elements.

    Hypothesis: the region surrounds the centre, whose distance is at most the radius.
    """

    part: ObjectivePart
    radius: float
    ranges: Mapping[Expr, Interval]
    forms: Mapping[Expr, Forms]
    centre: CentreGraph
    known: dict[Vector, VectorBounds]

    def elements_of(self, node: Expr) -> tuple[Array, Array] | None:
        """Bounds on ‖∇u‖ and ‖D²u‖ of the elements of lengths, quotients by them and products."""
        vectors = self.centre.vectors
        if node in vectors.units:
            unit = vectors.units[node]
            own = self._of_unit(unit)
            if own is None:
                return None
            slope, curvature = (np.expand_dims(a, unit.axes) for a in (own.slope, own.curvature))
            return slope, curvature
        if node in vectors.roots:
            one = self._joined(vectors.roots[node])
            least = down_sqrt(np.maximum(self.ranges[node.operands[0]].lo, 0.0))
            if one is None:
                return None
            with np.errstate(all="ignore"):
                curve = up_div(up_mul(one.slope, one.slope), least)
                bent = np.asarray(up_add(one.curvature, curve))
            return one.slope, numbers(bent, bent.shape)
        if node in vectors.sums:
            one = self._joined(vectors.sums[node])
            return None if one is None else _product(up_mul, one, one)
        return self._of_contraction(node) if vectors.units else None

    def range_of(self, node: Expr) -> Interval | None:
        """A range of Σ u², or of the elements of u divided by their length, over the region."""
        found, unit = self.centre.vectors.sums.get(node), self.centre.vectors.units.get(node)
        if unit is not None:
            own = self._of_unit(unit)
            size = None if own is None else np.expand_dims(own.size, unit.axes)
            return None if size is None else Interval(-size, size)
        if found is None:
            return None
        joined, J, u = self._joined(found), self._slopes(found), self._at_centre(found)
        if joined is None or J is None or u is None:
            return None
        far = np.asarray(self.radius)
        bend = up_mul(np.asarray(0.5), up_mul(far, up_mul(far, np.ravel(joined.curvature))))
        near = lengths_over_ball(u, J, self.radius)[0].widened(bend)
        low = np.maximum(near.lo, 0.0)
        shape = concrete(node.shape, self.part.sizes)
        high = np.full(shape, inf) if found.rest else up_mul(near.hi, near.hi).reshape(shape)
        return Interval(down_mul(low, low).reshape(shape), high)

    def of(self, vector: Vector) -> VectorBounds:
        """The bounds of vectors along some axes of a node, which the results lack."""
        if vector not in self.known:
            self.known[vector] = self._of(*vector)
        return self.known[vector]

    def _of(self, node: Expr, axes: Axes) -> VectorBounds:
        shape = concrete(node.shape, self.part.sizes)
        size = _length(numbers(self.ranges[node].magnitude, shape), axes)
        if node not in self.forms:
            nothing = np.zeros(size.shape)
            return VectorBounds(size, nothing, nothing)
        own = self.forms[node]
        slope = _length(numbers(own.first, shape), axes)
        curvature = _length(numbers(own.curvature, shape), axes)
        unit = self.centre.vectors.units.get(node)
        if unit is not None and unit.axes == axes:
            closer = self._of_unit(unit)
            if closer is not None:
                pairs = ((size, closer.size), (slope, closer.slope), (curvature, closer.curvature))
                size, slope, curvature = (np.minimum(a, b) for a, b in pairs)
        J = self._jacobian(Squares(node, axes))
        if J is not None:
            slope = np.minimum(slope, self._moved(J, curvature))
        return VectorBounds(size, slope, curvature)

    def _moved(self, J: Interval, curvature: Array) -> Array:
        """Bounds on ‖Dv‖ over the region from Dv(c) (G, k, n) and ‖D²v‖."""
        at_centre: Array = up_add(stack_norm(J.mid), np.asarray(up_norm(J.rad, (1, 2))))
        turn = up_mul(np.asarray(self.radius), curvature)
        return np.asarray(up_add(at_centre.reshape(curvature.shape), turn))

    def _of_unit(self, unit: UnitVectors) -> VectorBounds | None:
        """Those of v/s, w the weight of v in s: √w v/s has a length of at most 1."""
        (one,) = self.centre.vectors.roots[unit.length].squares
        weight = self._root_of(one.weight)
        if weight is None:
            return None
        own, s = self.of((unit.vector, unit.axes)), np.maximum(self.ranges[unit.length].lo, 0.0)
        with np.errstate(all="ignore"):
            slope = np.asarray(up_div(own.slope, s))
            squared = up_mul(up_mul(np.asarray(_THIRD), weight.hi), up_mul(slope, slope))
            curvature = np.asarray(up_add(up_div(own.curvature, s), squared))
            size = np.broadcast_to(up_div(np.ones(()), weight.lo), own.size.shape)
        return VectorBounds(size, *(numbers(a, own.size.shape) for a in (slope, curvature)))

    def _joined(self, found: SumOfSquaredArrays) -> VectorBounds | None:
        """Those of the vector of all arrays under a sum of squares, times the roots of weights."""
        roots = [self._root_of(one.weight) for one in found.squares]
        parts = [self.of((one.node, one.axes)) for one in found.squares]
        if any(root is None for root in roots) or not self._is_nonnegative(found.rest):
            return None
        pairs = [(part, root.hi) for part, root in zip(parts, roots, strict=True) if root]

        def norm(which: Callable[[VectorBounds], Array]) -> Array:
            arrays = [up_mul(which(part), root) for part, root in pairs]
            return np.asarray(up_norm(np.stack(np.broadcast_arrays(*arrays)), 0))

        size, slope, curvature = (norm(attrgetter(k)) for k in ("size", "slope", "curvature"))
        J = self._slopes(found)
        if J is not None and len(parts) > 1:
            slope = np.minimum(slope, self._moved(J, curvature))
        return VectorBounds(size, slope, curvature)

    def _is_nonnegative(self, rest: Sequence[Expr]) -> bool:
        return all(bool((self.ranges[node].lo >= 0.0).all()) for node in rest)

    def _root_of(self, weight: Factors) -> Interval | None:
        """√w; None where w is not seen to be positive."""
        result = _ONE
        for factor, divides in weight:
            own = self.ranges[factor]
            if not (own.lo > 0.0).all():
                return None
            result = value_range(table.div if divides else table.mul, result, own)
        return value_range(table.sqrt, result)

    def _slopes(self, found: SumOfSquaredArrays) -> Interval | None:
        """The Jacobians (G, k, n) at the centre of the vector of all arrays."""
        return self._beside([self._jacobian(one) for one in found.squares], found)

    def _at_centre(self, found: SumOfSquaredArrays) -> Interval | None:
        """The vectors (G, k) at the centre."""
        parts = []
        for one in found.squares:
            shape = concrete(one.node.shape, self.part.sizes)
            value = self.centre.values[one.node].broadcast(shape)
            parts.append(value.each(partial(_grouped, axes=one.axes)))
        return self._beside([*parts], found)

    def _beside(
        self, parts: Sequence[Interval | None], found: SumOfSquaredArrays
    ) -> Interval | None:
        """The parts times the roots of their weights, one after the other."""
        scaled = []
        for part, one in zip(parts, found.squares, strict=True):
            root = self._root_of(one.weight)
            if part is None or root is None:
                return None
            scaled.append(part * root if one.weight else part)
        return Interval.concatenated(scaled, axis=1)

    def _jacobian(self, one: Squares) -> Interval | None:
        """Dv(c) (G, k, n) for the vectors along some axes of a node; None where it is not kept."""
        slopes = self.centre.slopes.get(one.node)
        if slopes is None:
            return None
        shape = concrete(one.node.shape, self.part.sizes)
        wide = slopes.broadcast((self.part.n, *shape))
        return wide.each(lambda a: _grouped(np.moveaxis(a, 0, -1), one.axes, 1))

    def _of_contraction(self, node: Expr) -> tuple[Array, Array] | None:
        """Products of two vectors along the axes that both have."""
        pair = _contracted(node)
        if not pair or not isinstance(node, Einsum) or not set(pair) & set(self.forms):
            return None
        summed = set(range(len(node.dims))).difference(node.output)
        axes = [tuple(k for k, one in enumerate(own) if one in summed) for own in node.inputs]
        labels = [tuple(one for one in own if one not in summed) for own in node.inputs]
        dims = concrete(node.dims, self.part.sizes)

        def product(a: Array, b: Array) -> Array:
            both = list(zip(map(from_zero, (a, b)), labels, strict=True))
            return contract(both, node.output, dims).hi

        return _product(product, *map(self.of, zip(pair, axes, strict=True)))


def _product(
    times: Callable[[Array, Array], Array], v: VectorBounds, w: VectorBounds
) -> tuple[Array, Array]:
    """Bounds on the first two derivatives of v·w."""
    slope = up_add(times(v.size, w.slope), times(v.slope, w.size))
    bent = up_add(times(v.size, w.curvature), times(v.curvature, w.size))
    return slope, np.asarray(up_add(bent, up_mul(np.asarray(2.0), times(v.slope, w.slope))))


def _length(array: Array, axes: Axes) -> Array:
    return np.asarray(up_norm(array, axes)) if axes else array


def _grouped(array: Array, axes: Axes, more: int = 0) -> Array:
    """The array as (G, k, ..), k the number of elements along `axes`, with `more` axes at last."""
    own = array.ndim - more
    kept = [axis for axis in range(own) if axis not in axes]
    turned = np.transpose(array, (*kept, *axes, *range(own, array.ndim)))
    count = prod(array.shape[axis] for axis in axes)
    return np.ascontiguousarray(turned.reshape(-1, count, *array.shape[own:]))
