"""Ranges of scalar functions and of their derivatives, as graphs in the ends of their operands.

All properties of a function are read from its record: where it and its derivatives are monotone,
its stable form or definition, its domain, kinks and errors. `bounds.ranges` evaluates the same
rules in numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import product

from slomodel.calculus.rays.numbers import (
    UNIT,
    MidRad,
    Range,
    Truth,
    choose,
    enlarged,
    equal,
    known,
    less,
    less_equal,
    outward,
    unit,
)
from slomodel.errors import MissingRule
from slomodel.functions import (
    abs,
    add,
    clip,
    div,
    eq,
    exp,
    ge,
    gt,
    land,
    le,
    lnot,
    log,
    lor,
    lt,
    maximum,
    minimum,
    mul,
    ne,
    neg,
    pow,
    same,
    square,
    stop_gradient,
    sub,
    symbols,
    tan,
    to_graph,
    where,
)
from slomodel.functions.elementary import atan
from slomodel.ir.build import variable
from slomodel.ir.expr import Const, Expr, Input, Map
from slomodel.ir.function import (
    DISCONTINUOUS,
    WORST_ULPS,
    Monotonicity,
    RangeRule,
    ScalarFunction,
)
from slomodel.ir.walk import postorder

Value = MidRad | Range | Truth
_ROUNDING_OF_POWERS = 48.0
"""Error of a power in ulps; its short products have at most 36 roundings."""
_MOST_SCALE = 64.0
"""Upper bound on the terms of a value, relative to the largest of 1, the value and the operands."""
_FAR = 1e6
"""Arguments beyond this do not resolve critical points of periodic functions: the image is used."""
_MOST_EXPONENT = 2.0**53


def steps_of(function: ScalarFunction) -> float:
    """Upper bound, in ulps, on the error of a value on every target, plus one for a sum."""
    return 2.0 * max(WORST_ULPS, *function.ulps.values(), WORST_ULPS) + 2.0


def as_range(value: Value) -> Range:
    """The same numbers as intervals with two ends."""
    assert not isinstance(value, Truth)
    return value.range if isinstance(value, MidRad) else value


def as_midrad(value: Value) -> MidRad:
    """The same numbers by midpoints and radii."""
    assert not isinstance(value, Truth)
    return value.midrad if isinstance(value, Range) else value


def truth_of(value: Value) -> Truth:
    assert isinstance(value, Truth)
    return value


def _absolute(a: Range) -> Range:
    if a.is_point:
        size = abs(a.lo)
        return Range(size, size)
    return Range(maximum(maximum(a.lo, neg(a.hi)), 0.0), a.magnitude)


def _power(x: Range, p: Range) -> Range:
    """x^p: by parity for whole p, for other p monotone in x >= 0, otherwise exp(p log x)."""
    exponent = p.lo
    if not (p.is_point and isinstance(exponent, Const)):
        return as_range(value_range(exp, p * as_range(value_range(log, x))))
    q = exponent.value
    if q.is_integer() and math.fabs(q) < _MOST_EXPONENT:
        return _whole_power(x, q)
    if not math.isfinite(q):
        raise MissingRule("a power has no bounds for an infinite exponent")
    lo, hi = pow(x.lo, exponent), pow(x.hi, exponent)
    result = (
        outward(lo, hi, _ROUNDING_OF_POWERS) if q > 0.0 else outward(hi, lo, _ROUNDING_OF_POWERS)
    )
    return result.within(0.0, math.inf).where((ge if q > 0.0 else gt)(x.lo, 0.0))


def _whole_power(x: Range, q: float) -> Range:
    if q < 0.0:
        return _whole_power(x, -q).reciprocal
    if q == 0.0:
        return Range(Const(1.0), Const(1.0))
    if q in (1.0, 2.0):
        return x if q == 1.0 else x.squared
    base = x if q % 2.0 else _absolute(x)
    result = outward(pow(base.lo, q), pow(base.hi, q), _ROUNDING_OF_POWERS)
    return result if q % 2.0 else result.within(0.0, math.inf)


_RANGES: dict[ScalarFunction, Callable[..., Value]] = {
    add: lambda a, b: a + b,
    sub: lambda a, b: a - b,
    mul: lambda a, b: a * b,
    div: lambda a, b: a / b,
    neg: lambda a: -a,
    square: lambda a: a.squared,
    abs: _absolute,
    pow: _power,
    maximum: lambda a, b: Range(maximum(a.lo, b.lo), maximum(a.hi, b.hi)),
    minimum: lambda a, b: Range(minimum(a.lo, b.lo), minimum(a.hi, b.hi)),
    clip: lambda x, a, b: Range(
        minimum(maximum(x.lo, a.lo), b.lo), minimum(maximum(x.hi, a.hi), b.hi)
    ),
    where: choose,
    lt: less,
    le: less_equal,
    gt: lambda a, b: less(b, a),
    ge: lambda a, b: less_equal(b, a),
    eq: equal,
    ne: lambda a, b: ~equal(a, b),
    land: lambda a, b: a & b,
    lor: lambda a, b: a | b,
    lnot: lambda a: ~a,
    same: lambda a, b: a,
}
"""The functions whose records name an operation of interval arithmetic, with that operation."""

_MIDRAD_RULES: dict[ScalarFunction, Callable[..., MidRad]] = {
    add: lambda a, b: a + b,
    sub: lambda a, b: a - b,
    mul: lambda a, b: a.squared if a == b else a * b,
    div: lambda a, b: a / b,
    neg: lambda a: -a,
    square: lambda a: a.squared,
    abs: lambda a: MidRad(abs(a.mid), a.rad),
    same: lambda a, b: a,
}


def value_range(function: ScalarFunction, *operands: Value) -> Value:
    """The values over the operands; any number where they may leave the function's domain."""
    ends = [o if isinstance(o, Truth) else as_range(o) for o in operands]
    rule = _RANGES.get(function)
    if rule is not None:
        return rule(*ends)
    if function is stop_gradient or function.ranges is RangeRule.UNKNOWN:
        raise MissingRule(f"the values of {function} over an interval are not known")
    numbers = [as_range(o) for o in ends]
    if isinstance(function.ranges, Monotonicity):
        return _monotone(function, function.ranges, numbers)
    if function.ranges is RangeRule.OPERATION:
        raise MissingRule(f"the operation {function} has no rule for intervals here")
    own = symbols(function)
    inputs = tuple(variable(symbol.name, ()) for symbol in own)
    if function.stable is not None:
        graph = function.stable(*inputs)
    else:
        graph = to_graph(function.definition(*own), dict(zip(own, inputs, strict=True)))
    return extended(graph, dict(zip(inputs, numbers, strict=True)))[graph]


def extended(graph: Expr, operands: Mapping[Input, Value]) -> dict[Expr, Value]:
    """The numbers that every node of a graph of scalars may be, from those of its inputs."""
    result: dict[Expr, Value] = {}
    for node in postorder(graph):
        if isinstance(node, Input):
            result[node] = operands[node]
        elif isinstance(node, Const):
            result[node] = known(node) if node.dtype == "bool" else MidRad(node)
        else:
            assert isinstance(node, Map)
            result[node] = applied(node.function, [result[o] for o in node.operands])
    return result


def applied(function: ScalarFunction, operands: Sequence[Value]) -> Value:
    """A function of numbers: by midpoints and radii if all are given that way, else by ends."""
    if function is where and all(isinstance(o, MidRad) for o in operands[1:]):
        condition = truth_of(operands[0])
        if condition.is_known:
            return _either(condition.certain, as_midrad(operands[1]), as_midrad(operands[2]))
    if not all(isinstance(o, MidRad) for o in operands):
        return value_range(function, *operands)
    balls = [as_midrad(o) for o in operands]
    rule = _MIDRAD_RULES.get(function)
    if rule is not None:
        return rule(*balls)
    exact = all(o.rad is None for o in balls)
    stated = function.ranges is RangeRule.FORM or isinstance(function.ranges, Monotonicity)
    if exact and stated and function.result != "bool":
        value = function(*(o.mid for o in balls))
        return _computed(function, value, [o.mid for o in balls])
    result = value_range(function, *balls)
    return result.midrad if isinstance(result, Range) else result


def _either(holds: Expr, a: MidRad, b: MidRad) -> MidRad:
    """`a` where the condition holds, `b` elsewhere."""
    rads = (a.rad, b.rad)
    rad = None if rads == (None, None) else where(holds, *(r or Const(0.0) for r in rads))
    return MidRad(where(holds, a.mid, b.mid), rad)


def _error_scale(function: ScalarFunction, value: Expr, at: Sequence[Expr]) -> Expr:
    """Upper bound on the magnitude in whose ulps errors are counted.

    The magnitude of the terms, where the record states it, is at most `_MOST_SCALE` times the
    largest of 1, the value and the operands: records state constants of at most 40, an operand,
    or |lgamma| of an operand, which exceeds 24 only near 0, where it is the largest part of the
    value.
    tests/calculus/test_rays.py checks this of every record over the range of doubles.
    """
    size = abs(value)
    if function.error_scale is None:
        return size
    return mul(_MOST_SCALE, reduce(maximum, [size, Const(1.0), *map(abs, at)]))


def _computed(function: ScalarFunction, value: Expr, at: Sequence[Expr]) -> MidRad:
    """Enclosure of the exact values of a function where `value` was computed."""
    scale = _error_scale(function, value, at)
    return MidRad(value, enlarged([mul(2.0 * unit() * steps_of(function), scale)]))


def _monotone(function: ScalarFunction, stated: Monotonicity, operands: Sequence[Range]) -> Range:
    """The range from the values at the ends and at critical points in the domain."""
    if function.arity == 1:
        result = over_critical_points(lambda x: _value_at(function, [x]), stated, 0, operands[0])
    else:
        result = _over_corners(function, stated, operands)
        for kink in function.kinks:
            if kink.order == DISCONTINUOUS:
                assert kink.at is not None
                result = result.where(lnot(may_hold(kink.at, operands).possible))
    return result.within(*stated.image).where(inside_domain(function, operands))


def _value_at(function: ScalarFunction, at: Sequence[Expr]) -> Range:
    return _computed(function, function(*at), at).range


def inside_domain(function: ScalarFunction, operands: Sequence[Range]) -> Expr:
    """Where the operands certainly lie in the domain."""
    inside: Expr = Const(True)
    for a, (low, high) in zip(operands, function.domain, strict=False):
        if low > -math.inf:
            inside = land(inside, ge(a.lo, low))
        if high < math.inf:
            inside = land(inside, le(a.hi, high))
    if function.undefined is not None:
        inside = land(inside, lnot(may_hold(function.undefined, operands).possible))
    return inside


def may_hold(condition: Callable[..., Expr], operands: Sequence[Value]) -> Truth:
    inputs = tuple(variable(f"x{k}", ()) for k in range(len(operands)))
    graph = condition(*inputs)
    return truth_of(extended(graph, dict(zip(inputs, operands, strict=True)))[graph])


def _over_corners(
    function: ScalarFunction, stated: Monotonicity, operands: Sequence[Range]
) -> Range:
    """The range from the values on the grid of each operand's ends and critical points inside."""
    choices: list[list[tuple[Expr, Expr]]] = []
    for a, critical in zip(operands, stated.by_operand, strict=True):
        always = Const(True)
        own: list[tuple[Expr, Expr]] = [(a.lo, always)]
        if not a.is_point:
            own.append((a.hi, always))
            own += [(Const(p), land(lt(a.lo, p), gt(a.hi, p))) for p in critical]
        choices.append(own)
    result: Range | None = None
    for corner in product(*choices):
        value = _value_at(function, [x for x, _ in corner])
        inside = reduce(land, [one for _, one in corner])
        result = value if result is None else _joined(result, value, inside)
    assert result is not None
    return result


def _joined(a: Range, b: Range, which: Expr) -> Range:
    """`a`, joined with `b` where `which` holds."""
    if which is Const(True):
        return a.hull(b)
    return Range(where(which, minimum(a.lo, b.lo), a.lo), where(which, maximum(a.hi, b.hi), a.hi))


def over_critical_points(
    values: Callable[[Expr], Range], stated: Monotonicity, k: int, a: Range
) -> Range:
    """Range of the k-th derivative from its values at points.

    A critical point is known to 1e-15, which changes the value there by less than an ulp.
    """
    result = values(a.lo)
    if a.is_point and not stated.poles:
        return result
    result = result if a.is_point else result.hull(values(a.hi))
    for at in stated.critical_points[k]:
        if stated.period:
            for place in (at, at + stated.period):
                inside = _recurs(place, 2.0 * stated.period, a)
                result = _joined(result, _stepped(values(Const(place))), inside)
        else:
            margin = 8.0 * UNIT * math.fabs(at)
            inside = land(le(a.lo, at + margin), ge(a.hi, at - margin))
            result = _joined(result, _stepped(values(Const(at))), inside)
    for pole in stated.poles:
        if stated.period:
            may_be = _recurs(pole, stated.period, a)
        else:
            may_be = lnot(lor(gt(a.lo, pole), lt(a.hi, pole)))
        result = result.where(lnot(may_be))
    return result


def _stepped(a: Range) -> Range:
    return outward(a.lo, a.hi)


def _recurs(at: float, period: float, a: Range) -> Expr:
    """Whether at + m period may lie in the range for some integer m.

    d(x) = (period/π) atan(tan(π(x - at)/period)) is the signed distance of x from the nearest such
    point. One lies in [lo, hi] if and only if d(lo) <= 0 <= d(lo) + w or d(lo) + w >= period, for
    w = hi - lo. In doubles the argument is off by less than 1e-15 (1 + |x|), by which the
    comparisons are widened a thousandfold; for large |x| the answer is always yes.
    """
    turned = mul(math.pi / period, sub(a.lo, at))
    distance = mul(period / math.pi, atan(tan(turned)))
    margin = mul(1e-12, add(1.0, a.magnitude))
    reach = add(distance, sub(a.hi, a.lo))
    near = land(le(distance, margin), ge(reach, neg(margin)))
    next_one = ge(reach, sub(period, margin))
    # Halfway between two points atan(tan) may have either sign.
    middle = ge(abs(distance), sub(0.5 * period, margin))
    around = land(middle, ge(sub(a.hi, a.lo), sub(0.5 * period, mul(2.0, margin))))
    close = lt(a.magnitude, _FAR)
    return lor(lnot(close), lor(around, lor(near, next_one)))
