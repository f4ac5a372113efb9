"""Intervals that contain all values of a scalar function over intervals of its operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import product
from math import prod
from operator import itemgetter, or_

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
    truths,
    whole_power,
    within,
)
from slomodel.bounds.arithmetic.rounding import (
    Array,
    Truths,
    all_nonzero,
    down_add,
    down_ulps,
    gamma,
    steps_at,
    up_add,
    up_ulps,
)
from slomodel.functions import symbols, to_graph
from slomodel.functions.compound import same, stop_gradient
from slomodel.ir.build import variable
from slomodel.ir.expr import Const, Expr, Input, Map
from slomodel.ir.function import DISCONTINUOUS, Monotonicity, RangeRule, ScalarFunction
from slomodel.ir.walk import postorder

Rule = Callable[..., Interval]

_FAR = 1e6
"""Beyond it critical points of periodic functions are not resolved, and their image is used."""
_FEW = 32
"""Largest number of distinct exponents that are bounded one by one."""
_BLOCK = 2**13
"""Elements that are bounded together, so that temporary arrays stay in the cache."""


def in_blocks(
    rule: Callable[..., Sequence[Interval]], operands: Sequence[Interval]
) -> Sequence[Interval]:
    """The results of an elementwise rule, computed in blocks that fit the cache."""
    first = operands[0].shape
    alike = all(a.shape == first for a in operands)
    shape = first if alike else np.broadcast_shapes(*(a.shape for a in operands))
    size = prod(shape)
    if size <= _BLOCK:
        return rule(*operands)
    flat = [a.broadcast(shape).each(np.ravel) for a in operands]
    parts = [
        rule(*(a.each(itemgetter(slice(k, k + _BLOCK))) for a in flat))
        for k in range(0, size, _BLOCK)
    ]
    whole = map(Interval.concatenated, zip(*parts, strict=True))
    return [one.each(lambda array: array.reshape(shape)) for one in whole]


def value_range(function: ScalarFunction, *operands: Interval) -> Interval:
    """Range over the operands (of shapes that broadcast) within the function's domain.

    All real numbers where the operands lie outside it.
    """

    def rule(*parts: Interval) -> list[Interval]:
        return [_value_range(function, *parts)]

    return in_blocks(rule, operands)[0]


def _value_range(function: ScalarFunction, *operands: Interval) -> Interval:
    if function.ranges is RangeRule.OPERATION:
        return OPERATIONS[function](*operands)
    if function.ranges is RangeRule.UNKNOWN:
        shape = np.broadcast_shapes(*(operand.shape for operand in operands))
        return Interval(np.full(shape, -np.inf), np.full(shape, np.inf))
    if isinstance(function.ranges, Monotonicity):
        return _monotone(function, function.ranges, operands)
    own = symbols(function)
    inputs = tuple(variable(symbol.name, ()) for symbol in own)
    graph = (
        function.stable(*inputs)
        if function.stable is not None
        else to_graph(function.definition(*own), dict(zip(own, inputs, strict=True)))
    )
    return elementwise(graph, dict(zip(inputs, operands, strict=True)))


def elementwise(graph: Expr, operands: Mapping[Input, Interval]) -> Interval:
    """The range of a graph of scalars at arrays of intervals, node by node."""
    result: dict[Expr, Interval] = {}
    for node in postorder(graph):
        if isinstance(node, Input):
            result[node] = operands[node]
        elif isinstance(node, Const):
            result[node] = point(float(node.value))
        else:
            assert isinstance(node, Map)
            result[node] = value_range(node.function, *(result[o] for o in node.operands))
    return result[graph]


def _everything_where(which: Truths, a: Interval) -> Interval:
    if not which.any():
        return a
    return Interval(np.where(which, -np.inf, a.lo), np.where(which, np.inf, a.hi))


def _monotone(
    function: ScalarFunction, monotonicity: Monotonicity, operands: Sequence[Interval]
) -> Interval:
    """Range from the values at endpoints of the operands and at critical points, in the domain."""
    clipped, outside = operands, np.zeros((), dtype=bool)
    if function.domain:
        pairs = list(zip(operands, function.domain, strict=True))
        clipped = [within(a, low, high) for a, (low, high) in pairs]
        outside = np.asarray(
            reduce(or_, ((a.hi < low) | (a.lo > high) for a, (low, high) in pairs))
        )

    def values(*x: Array) -> Interval:
        return _values(function, *x)

    if function.arity == 1:
        ends = _at_both_ends(function, clipped[0])
        result = over_critical_points(values, monotonicity, 0, clipped[0], ends)
    else:
        result = _over_corners(values, monotonicity, clipped)
        for kink in function.kinks:
            if kink.order == DISCONTINUOUS:
                assert kink.at is not None
                result = _everything_where(may_hold(kink.at, *clipped), result)
    return _everything_where(outside, within(result, *monotonicity.image))


def _at_both_ends(function: ScalarFunction, a: Interval) -> Interval | None:
    """The hull of the values at both ends; None where they are to be taken one by one.

    With y <= z the values computed at the ends and m the steps of error, y + 2mu|y| <= z + 2mu|z|,
    as 2mu < 1: the number above z covers both errors, and the number below y as well.
    """
    if a.is_point or function.error_scale is not None:
        return None
    with np.errstate(all="ignore"):
        y, z = function.numpy(a.lo), function.numpy(a.hi)
        low, high = np.asarray(np.minimum(y, z)), np.asarray(np.maximum(y, z))
    if not (all_nonzero(low) and all_nonzero(high)):
        return None  # a value of 0 may be exact
    steps = function.worst_ulps("numpy")
    return interval(down_ulps(low, steps), up_ulps(high, steps)) if steps else interval(low, high)


def _values(function: ScalarFunction, *x: Array) -> Interval:
    """Values at points as intervals, widened by the error of NumPy's functions.

    A value of 0 at operands that are all 0 is exact; tests/functions/test_records.py checks that.
    """
    steps = function.worst_ulps("numpy")
    with np.errstate(all="ignore"):
        y = np.asarray(function.numpy(*x), dtype=np.float64)
        if not steps:
            return interval(y, y)
        if function.error_scale is None:
            low, high = down_ulps(y, steps), up_ulps(y, steps)
        else:
            scale = np.maximum(np.abs(y), function.error_scale(*x))
            slack = steps_at(scale, steps)
            low, high = np.asarray(down_add(y, -slack)), np.asarray(up_add(y, slack))
    if not all_nonzero(y):
        exact = y == 0.0
        for one in x:
            exact = exact & (one == 0.0)
        low, high = np.where(exact, 0.0, low), np.where(exact, 0.0, high)
    return interval(low, high)


def _over_corners(
    values: Callable[..., Interval], monotonicity: Monotonicity, operands: Sequence[Interval]
) -> Interval:
    """Range over a box, from the values on a grid of endpoints and critical points.

    With the other operands fixed, the extremes over operand j are at its endpoints or critical
    points, which do not depend on the others; so, one operand after another, those over the box are
    on the grid.
    """
    choices: list[list[tuple[Array, Truths]]] = []
    for a, critical in zip(operands, monotonicity.by_operand, strict=True):
        always = np.ones((), dtype=bool)
        own = [(a.lo, always)] if a.is_point else [(a.lo, always), (a.hi, always)]
        own += [(np.asarray(p), (a.lo < p) & (p < a.hi)) for p in critical]
        choices.append(own)
    result: Interval | None = None
    for corner in product(*choices):
        inside = np.asarray(np.logical_and.reduce(np.broadcast_arrays(*(one for _, one in corner))))
        if not inside.any():
            continue
        at_corner = values(*(x for x, _ in corner))
        if result is None:
            result = at_corner
        elif inside.all():
            result = hull(result, at_corner)
        else:
            result = _joined(result, at_corner, inside)
    assert result is not None  # the corner of all lower endpoints
    return result


def over_critical_points(
    values: Callable[[Array], Interval],
    monotonicity: Monotonicity,
    k: int,
    a: Interval,
    ends: Interval | None = None,
) -> Interval:
    """Range over `a` of the k-th derivative, from its values at points; `ends`: at both ends.

    Between neighbouring critical points a function is monotone, so its extremes over an interval
    are at the endpoints or at interior critical points. Such a point is known to a relative error
    of 1e-15, which changes the value there by the square of that: less than one ulp, by which the
    value is rounded outward.
    """
    result = ends or values(a.lo)
    if ends is None and not a.is_point:
        result = hull(result, values(a.hi))
    for critical in monotonicity.critical_points[k]:
        if monotonicity.period:
            result = _over_periods(values, critical, monotonicity.period, a, result)
            continue
        at = np.asarray(critical)
        inside = (a.lo <= up_ulps(at)) & (a.hi >= down_ulps(at))
        if inside.any():
            result = _joined(result, values(at), inside)
    for pole in monotonicity.poles:
        if monotonicity.period:
            first, last = _periods(pole, monotonicity.period, a)
            result = _everything_where(np.asarray(first <= last), result)
        else:
            result = _everything_where((a.lo <= pole) & (a.hi >= pole), result)
    return result


def _joined(a: Interval, b: Interval, which: Truths) -> Interval:
    """`a`, or where `which` holds the hull of `a` and of `b` widened by one step."""
    low, high = down_ulps(b.lo, 1), up_ulps(b.hi, 1)
    return Interval(
        np.where(which, np.minimum(a.lo, low), a.lo), np.where(which, np.maximum(a.hi, high), a.hi)
    )


def _periods(at: float, period: float, a: Interval) -> tuple[Array, Array]:
    """The first and last integer m with at + m period in `a`; none where first > last.

    Widened by the error of both quotients, a few rounding errors of numbers of at most about 1 +
    |a| for periods of at least 1; all m where `a` is far from 0.
    """
    with np.errstate(all="ignore"):
        first, last = (a.lo - at) / period, (a.hi - at) / period
        slack = gamma(64) * (1.0 + a.magnitude)
        far = ~(a.magnitude < _FAR)
        first = np.where(far, -np.inf, np.ceil(first - slack))
        return first, np.where(far, np.inf, np.floor(last + slack))


def _over_periods(
    values: Callable[[Array], Interval], critical: float, period: float, a: Interval, ends: Interval
) -> Interval:
    """The hull of the ends and of the values at two neighbouring critical points, where inside.

    One of the two is a maximum; all others repeat their values.
    """
    first, last = _periods(critical, period, a)
    for m, inside in ((first, first <= last), (first + 1.0, first + 1.0 <= last)):
        if inside.any():
            at = critical + np.where(np.isfinite(m), m, 0.0 if m is first else 1.0) * period
            ends = _joined(ends, values(at), inside)
    return ends


def power(x: Interval, p: Interval) -> Interval:
    """All x^p: any x for an integer p, x >= 0 for other p (the part of x below 0 is left out).

    For one p it is monotone in x > 0; otherwise exp(p log x). Integer exponents preserve the sign.
    """
    x, p = _broadcast(x, p)
    if p.lo.size and (p.lo == p.lo.flat[0]).all() and (p.hi == p.lo.flat[0]).all():
        return _one_exponent(x, float(p.lo.flat[0]))
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
    bad = x.lo < 0.0  # an integer exponent inside p admits a negative base
    return interval(np.where(bad, -np.inf, result.lo), np.where(bad, np.inf, result.hi))


def _lnot(a: Interval) -> Interval:
    return Interval(1.0 - a.hi, 1.0 - a.lo)


def may_hold(condition: Callable[..., Expr], *operands: Interval) -> Truths:
    """Where a condition on the operands may hold; an equality also within a few ulps."""
    count = len(operands)
    inputs = tuple(variable(f"x{k}", ()) for k in range(count))
    result: dict[Expr, Interval] = dict(zip(inputs, operands, strict=True))
    graph = condition(*inputs)
    for node in postorder(graph):
        if isinstance(node, Const):
            result[node] = point(float(node.value))
        elif isinstance(node, Map):
            own = [result[operand] for operand in node.operands]
            nearly = node.function is table.eq
            result[node] = _nearly_equal(*own) if nearly else value_range(node.function, *own)
    return np.asarray(result[graph].hi > 0.0)


def _nearly_equal(a: Interval, b: Interval) -> Interval:
    apart = (up_ulps(a.hi) < down_ulps(b.lo)) | (down_ulps(a.lo) > up_ulps(b.hi))
    return truths(np.zeros((), dtype=bool), apart)


OPERATIONS: dict[ScalarFunction, Rule] = {
    table.add: lambda a, b: a + b,
    table.sub: lambda a, b: a - b,
    table.mul: multiply,
    table.div: divide,
    table.neg: lambda a: -a,
    table.square: square,
    table.pow: power,
    table.abs: absolute,
    table.maximum: maximum,
    table.minimum: minimum,
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
    same: meet,
    # The objective does not depend on its value, so any one number may stand for it.
    stop_gradient: lambda a: point(a.mid),
}
"""The functions whose records name an operation of interval arithmetic, with that operation."""
