"""log Σ exp of nodes: means, variances and third cumulants of the derivatives of what is averaged.

Let F_k = log Σ_j exp w_jk with the weights π_k = exp(w_jk - F_k), and let o_i bound
‖D^i(w_jk - w_lk)‖. For unit v, with σ² the variance under π_k,

    ∇F_k = Σπ∇w,   D²F_k[v, v] = Σπ D²w[v, v] + σ²(∇w·v),   σ² <= o₁²/4 (Popoviciu),
    |D³F_k| <= Σπ|D³w| + 3 o₁o₂/4 + o₁³/(6 √3).

Where w_jk = u_j + a_jk, two of these weights are close: their total variation is at most τ =
tanh(Δ/4), Δ the largest (w_jk - w_lk) - (w_jm - w_lm), in which u cancels (Birkhoff 1957). As
∇F_k - ∇F_m = Σ(π_k - π_m)∇u + Σπ_k∇a_k - Σπ_m∇a_m, its norm is at most τ times the spread of the
∇u_j plus that of all ∇a_jk: what lies back is forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

import slomodel.functions as table
from slomodel.bounds.arithmetic.interval import Interval, point, total
from slomodel.bounds.arithmetic.rounding import (
    Array,
    down_mul,
    down_sqrt,
    down_sum,
    up_add,
    up_div,
    up_mul,
    up_norm,
    up_sqrt,
)
from slomodel.bounds.ranges.curvature.log_sum_exp import (
    SummedClasses,
    growths,
    largest_mean,
    largest_spread,
    scaled_weights,
    shares,
)
from slomodel.bounds.ranges.derivative_norms.node_norms import (
    NodeNorms,
    PathNorms,
    Spread,
    Triple,
    family,
    sum_of,
    with_path,
)
from slomodel.bounds.ranges.derivatives import derivative_range
from slomodel.bounds.ranges.values import value_range
from slomodel.ir.expr import Axes
from slomodel.reference import aligned

_THIRD = float(up_div(1.0, down_mul(6.0, down_sqrt(3.0))))
_MOST_OF_PAIRS = 2**22
"""Largest number of differences of slopes of pairs of elements: about 0.05 s."""
_ONE = Fraction(1)


def spread_of(u: NodeNorms, axes: frozenset[int]) -> Triple:
    """Bounds on ‖D^k(u_a - u_b)‖ for elements that differ along the axes, which have length 1."""
    own = tuple(sorted(axes))
    if u.is_constant or all(u.shape[axis] == 1 for axis in own):
        zero = np.zeros([1 if k in axes else size for k, size in enumerate(u.shape)])
        return zero, zero, zero
    upper, lower = (np.max(end, axis=own, keepdims=True) for end in u.ends)
    result = [_two_largest(u.slope, own), up_add(upper, lower), _two_largest(u.third, own)]
    if u.spread is not None and axes <= u.spread.axes:
        known = [np.max(one, axis=own, keepdims=True) for one in u.spread.norms]
        result = [np.minimum(a, b) for a, b in zip(result, known, strict=True)]
    if u.terms:
        sums = _spread_of_terms(u.terms, axes, u.slope.ndim)
        result = [np.minimum(a, b) for a, b in zip(result, sums, strict=True)]
    if u.slopes is not None:
        result[0] = np.minimum(result[0], _by_pairs(u, own, result[1]))
    first, second, third = result
    return first, second, third


def _spread_of_terms(
    terms: Sequence[tuple[NodeNorms, Axes]], axes: frozenset[int], rank: int
) -> Triple:
    """The sum of the spreads of terms, each of them with its own axes."""
    sums = [np.zeros((1,) * rank) for _ in range(3)]
    for one, along in terms:
        own = frozenset(k for k, axis in enumerate(along) if axis in axes)
        parts = spread_of(one, own)
        sums = [
            np.asarray(up_add(a, aligned(b, along, rank))) for a, b in zip(sums, parts, strict=True)
        ]
    return sums[0], sums[1], sums[2]


def _two_largest(a: Array, axes: Axes) -> Array:
    """The sum of the two largest elements along the axes."""
    flat = _flat(a, axes)
    flat = np.partition(flat, flat.shape[-1] - 2, axis=-1)[..., -2:]
    return np.expand_dims(up_add(flat[..., 1], flat[..., 0]), axes)


def _flat(a: Array, axes: Axes, front: int = 0) -> Array:
    """The axes as one last axis; `front` axes come before those of the node."""
    moved = tuple(axis + front for axis in axes)
    kept = [size for k, size in enumerate(a.shape) if k not in moved]
    return np.moveaxis(a, moved, range(-len(moved), 0)).reshape((*kept, -1))


def _by_pairs(u: NodeNorms, axes: Axes, turn: Array) -> Array:
    """‖∇u_a - ∇u_b‖ at the centre plus the radius times that of D²u."""
    assert u.slopes is not None
    low, high = (_flat(a, axes, 1) for a in (u.slopes.lo, u.slopes.hi))
    count = low.shape[-1]
    whole = np.full(low.shape[1:-1], np.inf)
    if low.size * count <= _MOST_OF_PAIRS:
        whole = np.zeros(low.shape[1:-1])
        for k in range(count):
            above = up_add(high, -low[..., k : k + 1])
            below = up_add(high[..., k : k + 1], -low)
            apart = up_norm(np.maximum(np.maximum(above, below), 0.0), 0)
            whole = np.maximum(whole, np.max(apart, axis=-1))
    whole = np.expand_dims(np.where(np.isnan(whole), np.inf, whole), axes)
    return np.asarray(up_add(whole, up_mul(np.asarray(u.radius), turn)))


def _crossed(u: NodeNorms, first: frozenset[int], second: frozenset[int]) -> Array:
    """At least (u_jk - u_lk) - (u_jm - u_lm) over the ball, j, l along `first`, k, m `second`."""
    both = first | second
    shape = [1 if k in both else size for k, size in enumerate(u.shape)]
    if not first or not second:
        return np.zeros(shape)
    result = np.full(shape, np.inf)
    if u.terms:
        sums = np.zeros((1,) * len(shape))
        for one, along in u.terms:
            parts = (frozenset(k for k, a in enumerate(along) if a in x) for x in (first, second))
            sums = np.asarray(up_add(sums, aligned(_crossed(one, *parts), along, len(shape))))
        result = np.minimum(result, sums)
    if u.value is not None:
        at_centre = _crossed_at_centre(u, tuple(sorted(first)), tuple(sorted(second)))
        result = np.minimum(result, at_centre)
    return np.where(np.isnan(result), np.inf, result)


def _crossed_at_centre(u: NodeNorms, first: Axes, second: Axes) -> Array:
    """`_crossed` at the centre, and twice the spread of the slopes times the radius."""
    assert u.value is not None
    both = (*second, *first)
    places = [k for k in range(len(u.shape)) if k not in both]
    order = (*places, *both)
    kept, wide = ([u.shape[k] for k in own] for own in (places, second))

    def view(array: Array) -> Array:
        array = np.transpose(np.broadcast_to(array, u.shape), order)
        return array.reshape((*kept, int(np.prod(wide, dtype=int)), -1))

    low, high = view(u.value.lo), view(u.value.hi)
    count = low.shape[-2]
    if low.size * count > _MOST_OF_PAIRS:
        return np.asarray(np.inf)
    most = np.zeros(low.shape[:-2])
    for k in range(count):
        above = np.max(up_add(high, -low[..., k : k + 1, :]), axis=-1)
        below = np.max(up_add(high[..., k : k + 1, :], -low), axis=-1)
        most = np.maximum(most, np.max(up_add(above, below), axis=-1))
    spread = np.expand_dims(most, tuple(sorted(both)))
    moved = spread_of(u, frozenset(both))[0]
    return np.asarray(up_add(spread, up_mul(np.asarray(2.0 * u.radius), moved)))


def _cumulants(first: Array, second: Array, variance: Array | None = None) -> tuple[Array, Array]:
    """The variance, and what D³F has beside the mean of the D³w, from spreads of ∇w and D²w.

    A `variance` that is known counts where it is smaller.
    """
    known = np.asarray(up_mul(np.asarray(0.25), up_mul(first, first)))
    if variance is not None:
        known = np.minimum(known, variance)
    mixed = up_mul(np.asarray(1.5), up_mul(up_sqrt(known), second))
    skew = up_mul(np.asarray(_THIRD), up_mul(first, up_mul(first, first)))
    return known, np.asarray(up_add(mixed, np.minimum(skew, up_mul(first, known))))


@dataclass(frozen=True, slots=True, eq=False)
class _Weights:
    """The weights (N, k) of log Σ exp w at the centre and over the ball, and upper bounds `far` on
    ‖∇w_j - m‖ over the ball, m the mean of the slopes at the centre.
    """

    classes: SummedClasses
    at_centre: Interval
    over: Interval
    far: Array


def _weights(w: NodeNorms, summed: Axes, turn: Array) -> _Weights | None:
    """Weights, where values and slopes at the centre are known; `turn` is the spread of D²w."""
    if w.value is None or w.slopes is None:
        return None
    kept = tuple(axis for axis in range(len(w.shape)) if axis not in summed)
    count = int(np.prod([w.shape[axis] for axis in summed], dtype=int))
    classes = SummedClasses(w.shape, (*kept, *summed), len(kept), count)
    p = shares(w.value.each(classes.rows).each(np.transpose)).each(np.transpose)
    slopes = w.slopes.each(lambda a: np.stack([classes.rows(one) for one in a]))
    mean = total(slopes * p.each(lambda a: a[np.newaxis]), 2).each(lambda a: a[..., np.newaxis])
    length = up_norm((slopes - mean).magnitude, 0)
    radius = np.asarray(w.radius)
    moved = up_mul(radius, classes.rows(np.broadcast_to(turn, w.shape)))
    bent = up_mul(np.asarray(0.5), up_mul(radius, moved))
    growth = growths(p, up_add(up_mul(radius, length), bent), bent[:, :1])
    over = scaled_weights(p, growth)
    over = Interval(np.fmax(over.lo, 0.0), np.fmin(over.hi, 1.0))
    return _Weights(classes, p, over, up_add(length, moved))


def log_sum(w: NodeNorms, summed: Axes) -> NodeNorms:
    """The bounds for log Σ exp w over the axes `summed`."""
    along = frozenset(summed)
    kept = tuple(size for k, size in enumerate(w.shape) if k not in along)
    first, second, _ = spread_of(w, along)
    weights = _weights(w, summed, second)
    known = None
    if weights is not None:
        classes = weights.classes
        spread = classes.sums(largest_spread(weights.over.hi, weights.far))
        known = np.expand_dims(spread, summed)
    variance, last = _cumulants(first, second, known)

    def largest(array: Array) -> Array:
        if weights is None:
            return np.asarray(np.max(array, axis=summed))
        return weights.classes.sums(largest_mean(weights.over.hi, weights.classes.rows(array)))

    result = NodeNorms(
        largest(w.slope),
        (up_add(largest(w.ends[0]), variance.reshape(kept)), largest(w.ends[1])),
        up_add(largest(w.third), last.reshape(kept)),
    )
    own = [np.asarray(np.max(array, axis=summed)) for array in family(w, _ONE)]
    result = with_path(result, PathNorms(_ONE, (own[0], own[1], own[2])))
    slopes = None
    if weights is not None and w.slopes is not None:
        p = weights.at_centre.each(weights.classes.array)
        slopes = total(w.slopes * p.each(lambda a: a[np.newaxis]), tuple(k + 1 for k in summed))
    value = None if w.value is None else _log_sum_value(w.value, summed)
    spread_over = _spread_of_sum(w, along, variance, last, weights)
    return replace(result, spread=spread_over, slopes=slopes, value=value, radius=w.radius)


def _log_sum_value(u: Interval, summed: Axes) -> Interval:
    """log Σ exp u."""
    top = np.max(u.hi, axis=summed, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    parts = value_range(table.exp, u - point(np.broadcast_to(top, u.shape)))
    logarithm = value_range(table.log, total(parts, summed))
    return logarithm + point(np.squeeze(top, summed))


def _spread_of_sum(
    w: NodeNorms,
    summed: frozenset[int],
    variance: Array,
    last: Array,
    weights: _Weights | None,
) -> Spread | None:
    """The spread along axes that a term of w lacks which has all axes of the sum."""
    rank = w.slope.ndim
    terms = _flattened(w)
    whole = frozenset(range(rank))
    shared = next(
        (along for one, along in terms if not one.is_constant and summed <= set(along) < whole),
        None,
    )
    if shared is None:
        return None
    other = whole.difference(shared)
    apart = [(one, along) for one, along in terms if other.isdisjoint(along)]
    rest = [(one, along) for one, along in terms if not other.isdisjoint(along)]
    before = _spread_of_terms(apart, summed, rank)
    own = _spread_of_terms(rest, summed | other, rank)
    cross = np.zeros((1,) * rank)
    for one, along in rest:
        parts = (frozenset(k for k, a in enumerate(along) if a in axes) for axes in (summed, other))
        cross = np.asarray(up_add(cross, aligned(_crossed(one, *parts), along, rank)))
    forgotten = np.minimum(1.0, value_range(table.tanh, point(np.asarray(0.25 * cross))).hi)
    own_axes = tuple(sorted(other))
    if weights is not None:
        least = np.min(weights.classes.array(weights.over.lo), axis=own_axes, keepdims=True)
        common = down_sum(least, tuple(sorted(summed)))
        apart_by = np.clip(up_add(np.ones(()), -common), 0.0, 1.0)
        forgotten = np.minimum(forgotten, np.expand_dims(apart_by, tuple(sorted(summed))))

    def most(array: Array) -> Array:
        wide = np.broadcast_to(array, _reduced(w.shape, summed))
        return np.asarray(np.max(wide, axis=own_axes, keepdims=True))

    more = (np.zeros((1,) * rank), most(variance), up_mul(np.asarray(2.0), most(last)))
    kept = tuple(k for k in range(rank) if k not in summed)
    shape = tuple(w.shape[k] for k in kept)
    norms = []
    for k in range(3):
        sums = up_add(up_add(up_mul(forgotten, before[k]), own[k]), more[k])
        norms.append(np.broadcast_to(sums, _reduced(w.shape, summed)).reshape(shape))
    axes = frozenset(kept.index(k) for k in other)
    return Spread(axes, (norms[0], norms[1], norms[2]))


def _reduced(shape: tuple[int, ...], axes: frozenset[int]) -> tuple[int, ...]:
    return tuple(1 if k in axes else size for k, size in enumerate(shape))


def _flattened(w: NodeNorms) -> list[tuple[NodeNorms, Axes]]:
    """The terms of terms of a node, with their axes in it."""
    if not w.terms:
        return [(w, tuple(range(w.slope.ndim)))]
    result = []
    for one, along in w.terms:
        result += [(inner, tuple(along[k] for k in own)) for inner, own in _flattened(one)]
    return result


def pair_sum(a: NodeNorms, b: NodeNorms) -> NodeNorms:
    """The bounds for log(exp a + exp b)."""
    apart = sum_of(a, b, -1)
    far, known, radius = apart.slope, None, np.asarray(max(a.radius, b.radius))
    if a.slopes is not None and b.slopes is not None:
        length = up_norm((a.slopes - b.slopes).magnitude, 0)
        turn = up_mul(radius, apart.curvature)
        far = np.minimum(far, up_add(length, turn))
        if a.value is not None and b.value is not None:
            moved = up_mul(radius, up_add(length, up_mul(np.asarray(0.5), turn)))
            most = derivative_range(table.softplus, 2, (a.value - b.value).widened(moved)).hi
            known = up_mul(most, up_mul(far, far))
    variance, last = _cumulants(far, apart.curvature, known)
    result = NodeNorms(
        np.maximum(a.slope, b.slope),
        (up_add(np.maximum(a.ends[0], b.ends[0]), variance), np.maximum(a.ends[1], b.ends[1])),
        up_add(np.maximum(a.third, b.third), last),
    )
    first, second, third = map(np.maximum, family(a, _ONE), family(b, _ONE))
    return with_path(result, PathNorms(_ONE, (first, second, third)))
