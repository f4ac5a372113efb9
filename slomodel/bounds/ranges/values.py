"""Intervals that hold all values of a scalar function over intervals of its operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from operator import itemgetter

import numpy as np

import slomodel.functions as table
from slomodel.bounds.arithmetic.interval import (
    Interval,
    absolute,
    choose,
    divide,
    equal,
    hull,
    interval,
    less,
    less_equal,
    maximum,
    meet,
    minimum,
    multiply,
    point,
    square,
    whole_power,
    within,
)
from slomodel.bounds.arithmetic.rounding import Array, Truths, down_add, down_ulps, up_add, up_ulps
from slomodel.functions import partials, to_graph
from slomodel.functions.compound import hypot, logaddexp, same, still
from slomodel.ir.build import variable
from slomodel.ir.expr import Const, Expr, Input, Map
from slomodel.ir.function import Monotony, ScalarFunction
from slomodel.ir.walk import postorder

Rule = Callable[..., Interval]

_FAR = 1e6
"""Beyond it, turns of a periodic function are no longer told apart: all its image is taken."""
_SURE = 1e-12
_FEW = 32
"""So many different exponents are bounded one by one."""
_BLOCK = 2**13


def in_blocks(
    rule: Callable[..., Sequence[Interval]], operands: Sequence[Interval]
) -> Sequence[Interval]:
    """What a rule by elements gives, found for parts that are small enough for fast memory."""
    shape = np.broadcast_shapes(*(a.shape for a in operands))
    size = prod(shape)
    if size <= _BLOCK:
        return rule(*operands)
    flat = [a.each(lambda array: np.broadcast_to(array, shape).reshape(-1)) for a in operands]
    parts = [
        rule(*(a.each(itemgetter(slice(k, k + _BLOCK))) for a in flat))
        for k in range(0, size, _BLOCK)
    ]
    return [_joined_parts(found, shape) for found in zip(*parts, strict=True)]


def _joined_parts(found: Sequence[Interval], shape: tuple[int, ...]) -> Interval:
    lo = np.concatenate([a.lo for a in found]).reshape(shape)
    if all(a.is_point for a in found):
        return Interval(lo, lo)
    return Interval(lo, np.concatenate([a.hi for a in found]).reshape(shape))


def value_range(function: ScalarFunction, *operands: Interval) -> Interval:
    """All values over the operands (of shapes that broadcast) inside the function's domain.

    Where the operands lie outside of it: all numbers.
    """

    def rule(*parts: Interval) -> list[Interval]:
        return [_value_range(function, *parts)]

    return in_blocks(rule, operands)[0]


def _value_range(function: ScalarFunction, *operands: Interval) -> Interval:
    if function in _RULES:
        return _RULES[function](*operands)
    if function.arity == 1 and function.monotony is not None:
        (a,) = operands
        inside, outside = _clipped(function, a)
        result = within(_turning(function, function.monotony, inside), *function.monotony.image)
        return _everything_where(outside, result)
    symbols = partials.symbols(function)
    inputs = tuple(variable(symbol.name, ()) for symbol in symbols)
    graph = (
        function.stable(*inputs)
        if function.stable is not None
        else to_graph(function.definition(*symbols), dict(zip(symbols, inputs, strict=True)))
    )
    return elementwise(graph, dict(zip(inputs, operands, strict=True)))


def elementwise(graph: Expr, operands: Mapping[Input, Interval]) -> Interval:
    """The range of a graph of scalars at arrays of intervals, node by node."""
    found: dict[Expr, Interval] = {}
    for node in postorder(graph):
        if isinstance(node, Input):
            found[node] = operands[node]
        elif isinstance(node, Const):
            found[node] = point(float(node.value))
        else:
            assert isinstance(node, Map)
            found[node] = value_range(node.function, *(found[o] for o in node.operands))
    return found[graph]


def _clipped(function: ScalarFunction, a: Interval) -> tuple[Interval, Truths]:
    """The part of the operand in the domain, and where there is none."""
    if not function.domain:
        return a, np.zeros((), dtype=bool)
    low, high = function.domain[0]
    return within(a, low, high), (a.hi < low) | (a.lo > high)


def _everything_where(which: Truths, a: Interval) -> Interval:
    if not which.any():
        return a
    return Interval(np.where(which, -np.inf, a.lo), np.where(which, np.inf, a.hi))


def _turning(function: ScalarFunction, monotony: Monotony, a: Interval) -> Interval:
    """Monotone between turns: the values at the ends and at the turns inside."""

    def values(x: Array) -> Interval:
        with np.errstate(all="ignore"):
            y = np.asarray(function.numpy(x), dtype=np.float64)
        return interval(down_ulps(y, monotony.ulps), up_ulps(y, monotony.ulps))

    return over_turns(values, monotony, 0, a)


def over_turns(
    values: Callable[[Array], Interval], monotony: Monotony, k: int, a: Interval
) -> Interval:
    """All values over `a` of the k-th derivative, by its values at points.

    Between two neighbouring turns a function is monotone, so its extremes over an interval are
    at the ends or at turns inside. A turn is known to 1e-15 relatively, which moves the value
    there by the square of that: less than the last place, by which it is moved outward.
    """
    result = values(a.lo)
    if not a.is_point:
        result = hull(result, values(a.hi))
    for turn in monotony.turns[k]:
        if monotony.period:
            result = _with_periodic_turns(values, turn, monotony.period, a, result)
            continue
        inside = (a.lo <= up_ulps(np.asarray(turn))) & (a.hi >= down_ulps(np.asarray(turn)))
        if inside.any():
            result = _joined(result, values(np.asarray(turn)), inside)
    for pole in monotony.poles:
        first, last = _periods(pole, monotony.period, a)
        result = _everything_where(np.asarray(first <= last), result)
    return result


def _joined(a: Interval, b: Interval, which: Truths) -> Interval:
    """`a`, with `b` moved outward by a step in the hull where `which` holds."""
    low, high = down_ulps(b.lo, 1), up_ulps(b.hi, 1)
    return Interval(
        np.where(which, np.minimum(a.lo, low), a.lo), np.where(which, np.maximum(a.hi, high), a.hi)
    )


def _periods(turn: float, period: float, a: Interval) -> tuple[Array, Array]:
    """The first and last whole m with turn + m period in `a`; none where first > last.

    Widened by the error of both quotients; all m where `a` is far from 0.
    """
    with np.errstate(all="ignore"):
        first, last = (a.lo - turn) / period, (a.hi - turn) / period
        slack = _SURE * (1.0 + a.magnitude)
        far = ~(a.magnitude < _FAR)
        first = np.where(far, -np.inf, np.ceil(first - slack))
        return first, np.where(far, np.inf, np.floor(last + slack))


def _with_periodic_turns(
    values: Callable[[Array], Interval], turn: float, period: float, a: Interval, ends: Interval
) -> Interval:
    """Two neighbouring turns are a top and a bottom, and all are like one of them."""
    first, last = _periods(turn, period, a)
    for m, inside in ((first, first <= last), (first + 1.0, first + 1.0 <= last)):
        if inside.any():
            at = turn + np.where(np.isfinite(m), m, 0.0 if m is first else 1.0) * period
            ends = _joined(ends, values(at), inside)
    return ends


def power(x: Interval, p: Interval) -> Interval:
    """All x^p: any x for a whole p, x >= 0 for another p (the part of x below 0 is left out).

    For one p it is monotone in x > 0; else exp(p log x). Whole exponents keep the sign.
    """
    x, p = _broadcast(x, p)
    exponents = np.unique(p.lo) if np.array_equal(p.lo, p.hi) else np.empty(0)
    if not 0 < exponents.size <= _FEW:
        return _by_logarithm(x, p)
    results = [_one_exponent(x, float(q)) for q in exponents]
    lo, hi = results[0].lo, results[0].hi
    for q, other in zip(exponents[1:], results[1:], strict=True):
        lo, hi = np.where(p.lo == q, other.lo, lo), np.where(p.lo == q, other.hi, hi)
    return Interval(lo, hi)


def _broadcast(x: Interval, p: Interval) -> tuple[Interval, Interval]:
    shape = np.broadcast_shapes(x.shape, p.shape)

    def wide(array: Array) -> Array:
        return np.broadcast_to(array, shape)

    return x.each(wide), p.each(wide)


def _one_exponent(x: Interval, q: float) -> Interval:
    if q.is_integer() and abs(q) < 2**53:
        return whole_power(x, int(q))
    if not np.isfinite(q):
        return interval(np.full(x.shape, -np.inf), np.full(x.shape, np.inf))
    low, high = (x.lo, x.hi) if q > 0.0 else (x.hi, x.lo)
    with np.errstate(all="ignore"):
        lo = down_ulps(np.power(np.maximum(low, 0.0), q))
        hi = up_ulps(np.power(np.maximum(high, 0.0), q))
    outside = x.hi < 0.0
    at_zero = high == 0.0 if q > 0.0 else np.zeros(x.shape, dtype=bool)
    lo = np.where(outside, -np.inf, np.maximum(lo, 0.0))
    return interval(lo, np.where(outside, np.inf, np.where(at_zero, 0.0, hi)))


def _by_logarithm(x: Interval, p: Interval) -> Interval:
    result = value_range(table.exp, p * value_range(table.log, x))
    bad = x.lo < 0.0  # a whole exponent inside p may take a negative base
    return interval(np.where(bad, -np.inf, result.lo), np.where(bad, np.inf, result.hi))


def _sign(a: Interval) -> Interval:
    return Interval(np.sign(a.lo), np.sign(a.hi))


def _relu(a: Interval) -> Interval:
    return Interval(np.maximum(a.lo, 0.0), np.maximum(a.hi, 0.0))


def _clip(x: Interval, low: Interval, high: Interval) -> Interval:
    return minimum(maximum(x, low), high)


def _huber(t: Interval, delta: Interval) -> Interval:
    """Increasing in delta; in |t| increasing for delta >= 0, else decreasing."""
    size = absolute(t)

    def at(x: Array, d: Array) -> Interval:
        x, d = np.broadcast_arrays(x, d)
        half = point(0.5)
        inner = half * square(point(np.minimum(x, d)))
        outer = point(d) * (point(np.maximum(x, d)) - half * point(d))
        return Interval(np.where(x <= d, inner.lo, outer.lo), np.where(x <= d, inner.hi, outer.hi))

    low, high = delta.lo, delta.hi
    least = at(np.where(low < 0.0, size.hi, size.lo), low)
    largest = at(np.where(high < 0.0, size.lo, size.hi), high)
    return Interval(least.lo, largest.hi)


def _root(a: Interval) -> Interval:
    return value_range(table.sqrt, a)


def _hypot(a: Interval, b: Interval) -> Interval:
    """Increasing in |a| and |b|."""
    with np.errstate(all="ignore"):
        lo = np.asarray(np.hypot(a.mignitude, b.mignitude))
        hi = np.asarray(np.hypot(a.magnitude, b.magnitude))
    return interval(np.maximum(down_ulps(lo), 0.0), np.where(hi == 0.0, 0.0, up_ulps(hi)))


def _logaddexp(a: Interval, b: Interval) -> Interval:
    """Increasing in both; off by steps of the larger operand, as the two parts may cancel."""
    with np.errstate(all="ignore"):
        lo, hi = np.logaddexp(a.lo, b.lo), np.logaddexp(a.hi, b.hi)
        low_slack = 8.0 * np.spacing(np.maximum(np.abs(np.maximum(a.lo, b.lo)), 1.0))
        high_slack = 8.0 * np.spacing(np.maximum(np.abs(np.maximum(a.hi, b.hi)), 1.0))
        return interval(down_add(lo, -low_slack), up_add(hi, high_slack))


def _lnot(a: Interval) -> Interval:
    return Interval(1.0 - a.hi, 1.0 - a.lo)


_RULES: dict[ScalarFunction, Rule] = {
    table.add: lambda a, b: a + b,
    table.sub: lambda a, b: a - b,
    table.mul: multiply,
    table.div: divide,
    table.neg: lambda a: -a,
    table.square: square,
    table.pow: power,
    table.abs: absolute,
    table.sign: _sign,
    table.relu: _relu,
    table.maximum: maximum,
    table.minimum: minimum,
    table.clip: _clip,
    table.huber: _huber,
    table.root: _root,
    table.where: choose,
    table.lt: less,
    table.le: less_equal,
    table.gt: lambda a, b: less(b, a),
    table.ge: lambda a, b: less_equal(b, a),
    table.eq: equal,
    table.ne: lambda a, b: _lnot(equal(a, b)),
    table.land: minimum,
    table.lor: maximum,
    table.lnot: _lnot,
    hypot: _hypot,
    same: meet,
    logaddexp: _logaddexp,
    # The objective does not depend on its value, so any one number may stand for it.
    still: lambda a: point(a.mid),
}
