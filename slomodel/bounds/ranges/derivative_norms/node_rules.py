"""Rules for the derivatives of single nodes: linear maps, products, functions and averages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial, reduce, singledispatch
from itertools import combinations, permutations
from math import inf, isfinite, prod
from operator import add

import numpy as np

import slomodel.functions as table
from slomodel.bounds.arithmetic.interval import Interval, from_zero, point
from slomodel.bounds.arithmetic.interval_einsum import contract
from slomodel.bounds.arithmetic.rounding import Array, up_mul, up_total
from slomodel.bounds.effort import NUMBERS_AT_ONCE
from slomodel.bounds.ranges.derivative_norms.averages import pair_sum, spread_of
from slomodel.bounds.ranges.derivative_norms.node_norms import (
    NodeNorms,
    PathNorms,
    Spread,
    family,
    multiple,
    sum_of,
    with_path,
)
from slomodel.bounds.ranges.derivatives import derivative_range
from slomodel.bounds.ranges.enclose import range_of
from slomodel.bounds.ranges.kinks import order_near, outside
from slomodel.bounds.ranges.values import value_range
from slomodel.functions.compound import same
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Affine, Axes, Einsum, Expr, Gather, Map, Reshape, Scatter
from slomodel.ir.function import ScalarFunction
from slomodel.reference import aligned

_MOST_FACTORS = 4
"""Largest number of variable factors of a product, which give up to 64 terms for D³."""

Sizes = Mapping[str, int]


def _unknown(shape: tuple[int, ...]) -> NodeNorms:
    far = np.full(shape, inf)
    return NodeNorms(far, (far, far), far)


@singledispatch
def norms_of(node: Expr, operands: Sequence[NodeNorms], sizes: Sizes) -> NodeNorms:
    """The bounds of a node from those of its operands; inf without a rule."""
    return _unknown(concrete(node.shape, sizes))


@norms_of.register(Gather)
@norms_of.register(Reshape)
@norms_of.register(Scatter)
def _(node: Gather | Reshape | Scatter, operands: Sequence[NodeNorms], sizes: Sizes) -> NodeNorms:
    u, *others = operands
    tables = [one.value for one in others]
    if any(one is None for one in tables):
        return _unknown(concrete(node.shape, sizes))
    given = [one for one in tables if one is not None]

    def view(array: Array) -> Array:
        return range_of(node, [from_zero(array), *given], sizes, 0).hi

    result = u.each(view)
    if u.spread is not None and isinstance(node, Gather):
        axes = _gathered_axes(node, u.spread.axes)
        if axes is not None:
            first, second, third = map(view, u.spread.norms)
            result = replace(result, spread=Spread(axes, (first, second, third)))
    return result


def _gathered_axes(node: Gather, axes: frozenset[int]) -> frozenset[int] | None:
    """The axes along which elements of a gather differ in these axes of the operand alone."""
    reads: dict[int, set[int]] = {axis: set() for axis in range(node.rank)}
    for k, index in enumerate(node.index):
        if isinstance(index, Affine):
            along = [axis for axis, factor in enumerate(index.coefficients) if factor]
        else:
            along = list(getattr(index, "axes", range(node.rank)))
        for axis in along:
            reads[axis].add(k)
    return frozenset(axis for axis, own in reads.items() if own and own <= axes) or None


@norms_of.register
def _(node: Einsum, operands: Sequence[NodeNorms], sizes: Sizes) -> NodeNorms:
    varying = [k for k, one in enumerate(operands) if not one.is_constant]
    if len(varying) == 1:
        return _linear(node, varying[0], operands, sizes)
    if len(varying) > _MOST_FACTORS or any(one.range is None for one in operands):
        return _unknown(concrete(node.shape, sizes))
    dims = concrete(node.dims, sizes)
    magnitudes = [one.range.magnitude if one.range is not None else one.slope for one in operands]

    def product(orders: dict[int, int]) -> Array:
        factors = [
            from_zero(operands[k].norms[orders[k] - 1] if k in orders else magnitude)
            for k, magnitude in enumerate(magnitudes)
        ]
        return contract(list(zip(factors, node.inputs, strict=True)), node.output, dims).hi

    twice, thrice, six = (np.asarray(number) for number in (2.0, 3.0, 6.0))
    pairs = [product({k: 1, j: 1}) for k, j in combinations(varying, 2)]
    mixed = [product({k: 2, j: 1}) for k, j in permutations(varying, 2)]
    triples = [product({k: 1, j: 1, i: 1}) for k, j, i in combinations(varying, 3)]
    second = [product({k: 2}) for k in varying] + [up_mul(twice, one) for one in pairs]
    third = [product({k: 3}) for k in varying] + [up_mul(thrice, one) for one in mixed]
    third += [up_mul(six, one) for one in triples]
    curvature = up_total(second)
    return NodeNorms(
        up_total([product({k: 1}) for k in varying]), (curvature, curvature), up_total(third)
    )


def _linear(node: Einsum, k: int, operands: Sequence[NodeNorms], sizes: Sizes) -> NodeNorms:
    """A contraction in which operand k alone depends on x."""
    u, dims = operands[k], concrete(node.dims, sizes)
    others = {j: one.range for j, one in enumerate(operands) if j != k}
    if any(one is None for one in others.values()):
        return _unknown(concrete(node.shape, sizes))
    known = {j: one for j, one in others.items() if one is not None}

    def contracted(array: Array, own: dict[int, Interval]) -> Array:
        factors = [from_zero(array) if j == k else own[j] for j in range(len(operands))]
        return contract(list(zip(factors, node.inputs, strict=True)), node.output, dims).hi

    sizes_of = {j: from_zero(one.magnitude) for j, one in known.items()}
    slope, third = contracted(u.slope, sizes_of), contracted(u.third, sizes_of)
    ends = contracted(u.ends[0], sizes_of), contracted(u.ends[1], sizes_of)
    signs = {j: _sign(one) for j, one in known.items()}
    if all(signs.values()):
        if np.prod([signs[j] for j in signs]) < 0:
            ends = ends[1], ends[0]
    else:
        larger = np.maximum(*ends)
        ends = larger, larger
    factor = Fraction(1)
    for one in known.values():
        factor *= _number(one) or 0
    result = NodeNorms(slope, ends, third)
    if factor and u.path is not None:
        ones = {j: from_zero(np.ones(one.shape)) for j, one in known.items()}
        first, second, last = (contracted(one, ones) for one in u.path.norms)
        result = with_path(result, PathNorms(u.path.scale * factor, (first, second, last)))
    (own,) = (labels for j, labels in enumerate(node.inputs) if j == k)
    is_view = not known and len(node.output) == len(node.dims) and len(set(own)) == len(own)
    if u.spread is not None and is_view:
        axes = frozenset(node.output.index(own[axis]) for axis in u.spread.axes)
        first, second, last = (contracted(one, {}) for one in u.spread.norms)
        result = replace(result, spread=Spread(axes, (first, second, last)))
    return result


def _sign(a: Interval) -> int:
    """1 or -1 where all numbers have that sign or are 0, otherwise 0."""
    if (a.lo >= 0.0).all():
        return 1
    return -1 if (a.hi <= 0.0).all() else 0


def _number(a: Interval) -> Fraction | None:
    """The number that all elements are, exactly; None where they differ."""
    if a.lo.size == 0 or not (a.lo == a.hi).all() or not (a.lo == a.lo.flat[0]).all():
        return None
    number = float(a.lo.flat[0])
    return Fraction(number) if isfinite(number) and number != 0.0 else None


@norms_of.register
def _(node: Map, operands: Sequence[NodeNorms], sizes: Sizes) -> NodeNorms:
    shape = concrete(node.shape, sizes)
    wide = [_broadcast(one, axes, shape) for one, axes in zip(operands, node.axes, strict=True)]
    function = node.function
    if function is same:
        return wide[0]
    if function in (table.add, table.sub, table.neg):
        signs = (1, -1 if function is table.sub else 1)
        if function is table.neg:
            result = multiple(wide[0], Fraction(-1))
        else:
            result = sum_of(wide[0], wide[1], signs[1])
        return _with_terms(result, operands, node)
    if function is table.where:
        return _choice(wide, operands[0])
    if function is table.logaddexp:
        return pair_sum(*wide)
    if function is table.softplus:
        return pair_sum(wide[0], NodeNorms.constant(shape))
    if function in (table.mul, table.div):
        known = [k for k, one in enumerate(wide) if one.is_constant and one.range is not None]
        if known and (function is table.mul or known == [1]):
            return _scaled(wide[1 - known[0]], wide[known[0]], function is table.div)
    if function.result != "real" or "bool" in function.operand_types:
        return _unknown(shape)
    return _function(function, wide, shape)


def _scaled(u: NodeNorms, constant: NodeNorms, is_divisor: bool) -> NodeNorms:
    """The product with a constant, or the quotient by it."""
    factor = constant.range
    assert factor is not None
    number = _number(factor)
    if number is not None:
        return multiple(u, 1 / number if is_divisor else number)
    if is_divisor:
        factor = value_range(table.div, point(np.ones(())), factor)
    size, rise, fall = factor.magnitude, np.maximum(factor.hi, 0.0), np.maximum(-factor.lo, 0.0)
    upper, lower = (
        np.maximum(up_mul(rise, one), up_mul(fall, other)) for one, other in (u.ends, u.ends[::-1])
    )
    return NodeNorms(up_mul(size, u.slope), (upper, lower), up_mul(size, u.third))


def _broadcast(u: NodeNorms, axes: Axes, shape: tuple[int, ...]) -> NodeNorms:
    """The bounds of an operand whose axis k is axis `axes[k]` of a node."""
    rank = len(shape)
    if axes == tuple(range(rank)) and u.shape == shape:
        return u

    def view(array: Array) -> Array:
        return np.broadcast_to(aligned(array, axes, rank), shape)

    return replace(
        u.each(view),
        slopes=None if u.slopes is None else u.slopes.each(lambda a: _under(a, axes, shape)),
        value=None if u.value is None else u.value.each(view),
        range=None if u.range is None else u.range.each(view),
    )


def _with_terms(result: NodeNorms, operands: Sequence[NodeNorms], node: Map) -> NodeNorms:
    """A sum with its terms, and the spread along axes along which that of a term is known."""
    terms = tuple(zip(operands, node.axes, strict=True))
    radius = max((one.radius for one in operands if not one.is_constant), default=0.0)
    result = replace(result, terms=terms, radius=radius)
    known = [
        frozenset(range(node.rank)).difference(axes) | {axes[k] for k in one.spread.axes}
        for one, axes in terms
        if one.spread is not None
    ]
    if not known:
        return result
    norms = spread_of(result, known[0])
    first, second, third = (np.broadcast_to(one, result.shape) for one in norms)
    return replace(result, spread=Spread(known[0], (first, second, third)))


def _choice(wide: Sequence[NodeNorms], condition: NodeNorms) -> NodeNorms:
    """Those of the branch that is certainly taken."""
    known, (_, first, second) = wide[0].range, wide
    if known is None:
        return _unknown(first.shape)
    true, false = known.lo == 1.0, known.hi == 0.0

    def chosen(a: Array, b: Array) -> Array:
        return np.where(true, a, np.where(false, b, inf))

    if true.all():
        return first
    if false.all():
        return second
    result = NodeNorms(
        chosen(first.slope, second.slope),
        (chosen(first.ends[0], second.ends[0]), chosen(first.ends[1], second.ends[1])),
        chosen(first.third, second.third),
    )
    scales = [one.path.scale for one in (first, second) if one.path is not None]
    if not scales:
        return result
    pairs = zip(family(first, scales[0]), family(second, scales[0]), strict=True)
    norms = [chosen(a, b) for a, b in pairs]
    return with_path(result, PathNorms(scales[0], (norms[0], norms[1], norms[2])))


def _function(
    function: ScalarFunction, wide: Sequence[NodeNorms], shape: tuple[int, ...]
) -> NodeNorms:
    """φ(u_1, ..): Faà di Bruno's formula, where φ is smooth over the ranges."""
    known = [one.range for one in wide]
    ranges = [one for one in known if one is not None]
    if len(ranges) < len(known):
        return _unknown(shape)
    varying = [k for k, one in enumerate(wide) if not one.is_constant]

    def by(*places: int) -> Interval:
        orders = tuple(places.count(k) for k in range(function.arity))
        return derivative_range(function, orders, *ranges)

    slopes: list[Array] = []
    upper: list[Array] = []
    lower: list[Array] = []
    third: list[Array] = []
    for i in varying:
        first, own = by(i), wide[i]
        size = first.magnitude
        slopes.append(up_mul(size, own.slope))
        third.append(up_mul(size, own.third))
        rise, fall = np.maximum(first.hi, 0.0), np.maximum(-first.lo, 0.0)
        for ends, a, b in ((upper, 0, 1), (lower, 1, 0)):
            ends += [up_mul(rise, own.ends[a]), up_mul(fall, own.ends[b])]
        for j in varying:
            second, other = by(i, j), wide[j]
            both = up_mul(own.slope, other.slope)
            high, low = second.hi, -second.lo
            if i != j:
                high = low = second.magnitude
            upper.append(up_mul(np.maximum(high, 0.0), both))
            lower.append(up_mul(np.maximum(low, 0.0), both))
            mixed = up_mul(own.slope, other.curvature)
            third.append(up_mul(np.asarray(3.0), up_mul(second.magnitude, mixed)))
            for k in varying:
                third.append(up_mul(by(i, j, k).magnitude, up_mul(both, wide[k].slope)))
    smooth = np.broadcast_to(~outside(function, *ranges), shape)
    order = np.broadcast_to(order_near(function, *ranges), shape)

    def least(terms: Sequence[Array], needed: int) -> Array:
        total = np.broadcast_to(up_total(terms), shape)
        return np.where(smooth & (order >= needed) & ~np.isnan(total), total, inf)

    return NodeNorms(least(slopes, 1), (least(upper, 1), least(lower, 1)), least(third, 2))


def slopes_at_centre(
    node: Expr, operands: Sequence[NodeNorms], sizes: Sizes, n: int
) -> Interval | None:
    """∇u at the centre (n, *shape) by those of the operands; None where they are not known."""
    varying = [k for k, one in enumerate(operands) if not one.is_constant]
    slopes = {k: own for k in varying if (own := operands[k].slopes) is not None}
    known = [one.value for one in operands]
    values = [one for one in known if one is not None]
    if len(slopes) < len(varying) or n * prod(concrete(node.shape, sizes)) > NUMBERS_AT_ONCE:
        return None
    if isinstance(node, Map):
        return _slopes_of_map(node, operands, slopes, concrete(node.shape, sizes))
    if len(values) < len(known) or not isinstance(node, (Gather, Reshape, Scatter, Einsum)):
        return None
    parts = []
    for k in varying:
        wide = [
            slopes[k] if j == k else one.each(lambda array: array[np.newaxis])
            for j, one in enumerate(values)
        ]
        parts.append(range_of(node, wide, sizes, 1))
    return reduce(add, parts) if parts else None


def _slopes_of_map(
    node: Map,
    operands: Sequence[NodeNorms],
    slopes: Mapping[int, Interval],
    shape: tuple[int, ...],
) -> Interval | None:
    function = node.function
    wide = {
        k: own.each(partial(_under, axes=node.axes[k], shape=shape)) for k, own in slopes.items()
    }
    linear = {table.add: (1, 1), table.sub: (1, -1), table.neg: (-1,), same: (1,)}
    if function in linear:
        parts = [own if linear[function][k] > 0 else -own for k, own in wide.items()]
        return reduce(add, parts)
    values = [
        _broadcast(one, axes, shape).value for one, axes in zip(operands, node.axes, strict=True)
    ]
    known = [one for one in values if one is not None]
    if len(known) < len(values) or function.result != "real":
        return None
    parts = []
    for k, own in wide.items():
        orders = tuple(int(j == k) for j in range(function.arity))
        factor = derivative_range(function, orders, *known)
        parts.append(own * factor.each(lambda array: array[np.newaxis]))
    return reduce(add, parts)


def _under(array: Array, axes: Axes, shape: tuple[int, ...]) -> Array:
    """An array (n, ..) whose axis k + 1 is axis `axes[k]` of a node, for all its elements."""
    return np.broadcast_to(aligned(array, axes, len(shape), 1), (len(array), *shape))
