"""Ranges of scalar functions and of their derivatives, as graphs in the ends of their operands.

All properties of a function are read from its record: where it and its derivatives are monotone,
its stable form or definition, its domain, kinks and errors. `bounds.ranges` evaluates the same
rules in numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from itertools import product

from slomodel.calculus.jvp import jvp
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
    still,
    sub,
    symbols,
    tan,
    to_graph,
    where,
)
from slomodel.functions.elementary import atan
from slomodel.ir.build import variable
from slomodel.ir.exact import as_doubles, without_rounding
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
_SECOND_ORDER = 0.125
"""Ulps that cover the products of errors of a product of two numbers."""
_ROOM = 1.0 + 2.0**-44
"""Factor that covers 200 roundings."""


def steps_of(function: ScalarFunction) -> float:
    """Upper bound, in ulps, on the error of a value on every target, plus one for a sum."""
    return 2.0 * max(WORST_ULPS, *function.ulps.values(), WORST_ULPS) + 2.0


def as_range(value: Value) -> Range:
    """The same numbers by their ends."""
    assert not isinstance(value, Truth)
    return value.range if isinstance(value, MidRad) else value


def as_midrad(value: Value) -> MidRad:
    """The same numbers by midpoints and radii."""
    assert not isinstance(value, Truth)
    return value.midrad if isinstance(value, Range) else value


def _truth(value: Value) -> Truth:
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
    found = (
        outward(lo, hi, _ROUNDING_OF_POWERS) if q > 0.0 else outward(hi, lo, _ROUNDING_OF_POWERS)
    )
    return found.within(0.0, math.inf).where((ge if q > 0.0 else gt)(x.lo, 0.0))


def _whole_power(x: Range, q: float) -> Range:
    if q < 0.0:
        return _whole_power(x, -q).reciprocal
    if q == 0.0:
        return Range(Const(1.0), Const(1.0))
    if q in (1.0, 2.0):
        return x if q == 1.0 else x.squared
    base = x if q % 2.0 else _absolute(x)
    found = outward(pow(base.lo, q), pow(base.hi, q), _ROUNDING_OF_POWERS)
    return found if q % 2.0 else found.within(0.0, math.inf)


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
    if function is still or function.ranges is RangeRule.UNKNOWN:
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
    found: dict[Expr, Value] = {}
    for node in postorder(graph):
        if isinstance(node, Input):
            found[node] = operands[node]
        elif isinstance(node, Const):
            found[node] = known(node) if node.dtype == "bool" else MidRad(node)
        else:
            assert isinstance(node, Map)
            found[node] = applied(node.function, [found[o] for o in node.operands])
    return found


def applied(function: ScalarFunction, operands: Sequence[Value]) -> Value:
    """A function of numbers: by midpoints and radii if all are given that way, else by ends."""
    if function is where and all(isinstance(o, MidRad) for o in operands[1:]):
        condition = _truth(operands[0])
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
    found = value_range(function, *balls)
    return found.midrad if isinstance(found, Range) else found


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
    return MidRad(value, enlarged([mul(2.0 * UNIT * steps_of(function), scale)]))


def _monotone(function: ScalarFunction, stated: Monotonicity, operands: Sequence[Range]) -> Range:
    """The range from the values at the ends and at critical points in the domain."""
    if function.arity == 1:
        found = _over_critical_points(lambda x: _value_at(function, [x]), stated, 0, operands[0])
    else:
        found = _over_corners(function, stated, operands)
        for kink in function.kinks:
            if kink.order == DISCONTINUOUS:
                assert kink.at is not None
                found = found.where(lnot(_may_hold(kink.at, operands).possible))
    return found.within(*stated.image).where(_inside(function, operands))


def _value_at(function: ScalarFunction, at: Sequence[Expr]) -> Range:
    return _computed(function, function(*at), at).range


def _inside(function: ScalarFunction, operands: Sequence[Range]) -> Expr:
    """Where the operands certainly lie in the domain."""
    inside: Expr = Const(True)
    for a, (low, high) in zip(operands, function.domain, strict=False):
        if low > -math.inf:
            inside = land(inside, ge(a.lo, low))
        if high < math.inf:
            inside = land(inside, le(a.hi, high))
    if function.undefined is not None:
        inside = land(inside, lnot(_may_hold(function.undefined, operands).possible))
    return inside


def _may_hold(condition: Callable[..., Expr], operands: Sequence[Value]) -> Truth:
    inputs = tuple(variable(f"x{k}", ()) for k in range(len(operands)))
    graph = condition(*inputs)
    return _truth(extended(graph, dict(zip(inputs, operands, strict=True)))[graph])


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
    found: Range | None = None
    for corner in product(*choices):
        value = _value_at(function, [x for x, _ in corner])
        inside = reduce(land, [one for _, one in corner])
        found = value if found is None else _joined(found, value, inside)
    assert found is not None
    return found


def _joined(a: Range, b: Range, which: Expr) -> Range:
    """`a`, joined with `b` where `which` holds."""
    if which is Const(True):
        return a.hull(b)
    return Range(where(which, minimum(a.lo, b.lo), a.lo), where(which, maximum(a.hi, b.hi), a.hi))


def _over_critical_points(
    values: Callable[[Expr], Range], stated: Monotonicity, k: int, a: Range
) -> Range:
    """Range of the k-th derivative from its values at points.

    A critical point is known to 1e-15, which changes the value there by less than an ulp.
    """
    found = values(a.lo)
    if a.is_point and not stated.poles:
        return found
    found = found if a.is_point else found.hull(values(a.hi))
    for at in stated.critical_points[k]:
        if stated.period:
            for place in (at, at + stated.period):
                inside = _recurs(place, 2.0 * stated.period, a)
                found = _joined(found, _stepped(values(Const(place))), inside)
        else:
            margin = 8.0 * UNIT * math.fabs(at)
            inside = land(le(a.lo, at + margin), ge(a.hi, at - margin))
            found = _joined(found, _stepped(values(Const(at))), inside)
    for pole in stated.poles:
        if stated.period:
            may_be = _recurs(pole, stated.period, a)
        else:
            may_be = lnot(lor(gt(a.lo, pole), lt(a.hi, pole)))
        found = found.where(lnot(may_be))
    return found


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


@dataclass(frozen=True, slots=True)
class PartialFunction:
    """A function of operand `moving` alone; the other operands are known numbers."""

    function: ScalarFunction
    moving: int
    constants: tuple[Const | None, ...]


@cache
def derivative_graph(one: PartialFunction, k: int) -> tuple[tuple[Input, ...], Expr]:
    """The inputs that stand for the operands, and the k-th derivative as a graph of scalars."""
    inputs = tuple(variable(f"x{j}", ()) for j in range(one.function.arity))
    arguments = [own if c is None else c for c, own in zip(one.constants, inputs, strict=True)]
    with without_rounding():
        graph = one.function(*arguments)
        for _ in range(k):
            (graph,) = jvp((graph,), {inputs[one.moving]: Const(1.0)})
    return inputs, graph


def derivative_at(one: PartialFunction, k: int, operands: Sequence[MidRad]) -> MidRad | None:
    """The k-th derivative at numbers; None for 0 everywhere."""
    inputs, graph = derivative_graph(one, k)
    if isinstance(graph, Const):
        return None if graph.value == 0.0 else MidRad(graph)
    if all(operand.rad is None for operand in operands):
        steps = _relative_steps(graph)
        if steps is not None:
            given = {x: operand.mid for x, operand in zip(inputs, operands, strict=True)}
            value = _computed_value(graph, given)
            return MidRad(value).rounded(steps=steps) if steps else MidRad(value)
    return as_midrad(extended(graph, dict(zip(inputs, operands, strict=True)))[graph])


def _computed_value(graph: Expr, operands: Mapping[Input, Expr]) -> Expr:
    """A graph of scalars at other numbers."""
    found: dict[Expr, Expr] = {}
    for node in postorder(graph):
        if isinstance(node, Map):
            found[node] = node.function(*(found[one] for one in node.operands))
        else:
            found[node] = operands[node] if isinstance(node, Input) else node
    return found[graph]


def _relative_steps(node: Expr) -> float | None:
    """The relative error in ulps of a product of functions of exact numbers; None for others.

    Of k factors with errors of d_j ulps it is Σ d_j + k - 1 ulps, less than one more with all
    products of errors.
    """
    if isinstance(node, (Const, Input)):
        return 0.0
    assert isinstance(node, Map)
    function, operands = node.function, node.operands
    if function.result == "bool" or any(one.dtype == "bool" for one in operands):
        return None
    steps = [_relative_steps(one) for one in operands]
    if any(one is None for one in steps):
        return None
    lost = sum(one for one in steps if one is not None)
    if function is neg:
        return lost
    if function in (mul, div):
        return lost + 1.0 + _SECOND_ORDER
    if function is square:
        return 2.0 * lost + 1.0 + _SECOND_ORDER
    if lost:
        return None
    if function in (add, sub):
        return 1.0
    stated = function.ranges is RangeRule.FORM or isinstance(function.ranges, Monotonicity)
    return steps_of(function) if stated and function.error_scale is None else None


def coefficient_at(one: PartialFunction, k: int, operands: Sequence[MidRad]) -> MidRad | None:
    """The k-th derivative over k! at numbers; None for 0 everywhere."""
    found = derivative_at(one, k, operands)
    if found is None or k < 2:
        return found
    count = float(math.factorial(k))
    rad = None if found.rad is None else div(found.rad, count)
    return MidRad(div(found.mid, count)).rounded(rad)


def coefficient_range(one: PartialFunction, k: int, operands: Sequence[Range]) -> Range | None:
    """The range of the k-th derivative over k!, as `derivative_range` bounds the derivative."""
    found = derivative_range(one, k, operands)
    return found if found is None or k < 2 else found.times(1.0 / math.factorial(k))


def largest_coefficient(one: PartialFunction, k: int, operands: Sequence[Range]) -> Expr | None:
    """Upper bound on |k-th derivative|/k! over the operands; None for 0 everywhere.

    It is unbounded where the operands may leave the domain, or the (k - 1)-th derivative may be
    discontinuous.
    """
    inputs, graph = derivative_graph(one, k)
    if one.function.kinks:
        found = derivative_range(one, k, operands)
        size: Expr = Const(0.0) if found is None else found.magnitude
    elif isinstance(graph, Const) and graph.value == 0.0:
        return None
    else:
        size = _Sizes(dict(zip(inputs, operands, strict=True))).largest(graph)
        size = where(_inside(one.function, operands), size, math.inf)
    return mul(_ROOM / math.factorial(k), size)


class _Sizes:
    """Bounds on the magnitudes of nodes of a graph of scalars, those of products by their factors.

    The products are rounded to nearest: `_ROOM` covers their errors.
    """

    def __init__(self, operands: Mapping[Input, Value]) -> None:
        self._operands = operands
        self._found: dict[Expr, Value] = {}

    def _range(self, node: Expr) -> Range:
        if node not in self._found:
            self._found.update(extended(node, self._operands))
        return as_range(self._found[node])

    def largest(self, node: Expr) -> Expr:
        """The largest magnitude of a node."""
        if isinstance(node, Const):
            return Const(math.fabs(node.value))
        if isinstance(node, Map):
            function, operands = node.function, node.operands
            if function is mul:
                return mul(*map(self.largest, operands))
            if function is div:
                return mul(self.largest(operands[0]), self.inverse(operands[1]))
            if function is square:
                return square(self.largest(operands[0]))
            if function is neg:
                return self.largest(operands[0])
            if function is where:
                return self._largest_of_either(node)
            stated = function.monotonicity
            if stated is not None and stated.image[0] >= 0.0:
                return self._range(node).hi
        return self._range(node).magnitude

    def _largest_of_either(self, node: Map) -> Expr:
        condition, *branches = node.operands
        a, b = map(self.largest, branches)
        if condition not in self._found:
            self._found.update(extended(condition, self._operands))
        holds = _truth(self._found[condition])
        if holds.is_known:
            return where(holds.certain, a, b)
        # The magnitude of a branch that is not taken may be NaN.
        return where(holds.certain, a, where(lnot(holds.possible), b, maximum(a, b)))

    def inverse(self, node: Expr) -> Expr:
        """The largest magnitude of the reciprocal of a node."""
        if isinstance(node, Map):
            function, operands = node.function, node.operands
            if function is mul:
                return mul(*map(self.inverse, operands))
            if function is square:
                return square(self.inverse(operands[0]))
            if function is neg:
                return self.inverse(operands[0])
        over = self._range(node)
        distance = maximum(over.lo, neg(over.hi))
        return where(gt(distance, 0.0), div(1.0, distance), math.inf)


def derivative_range(one: PartialFunction, k: int, operands: Sequence[Range]) -> Range | None:
    """The range of the k-th derivative over the operands, of which one varies; None for 0.

    It is unbounded where the (k - 1)-th derivative may be discontinuous.
    """
    found = _derivative_range(one, k, operands)
    if not k or not one.function.kinks:
        return found
    found = Range(Const(0.0), Const(0.0)) if found is None else found
    return found.where(_smooth(one.function, k - 1, operands))


def _derivative_range(one: PartialFunction, k: int, operands: Sequence[Range]) -> Range | None:
    inputs, graph = derivative_graph(one, k)
    if isinstance(graph, Const):
        return None if graph.value == 0.0 else Range(graph, graph)
    if not k:
        return as_range(value_range(one.function, *operands))
    stated = one.function.monotonicity
    if one.function.arity == 1 and stated and k < len(stated.critical_points):
        (argument,) = inputs

        def values(x: Expr) -> Range:
            return as_range(extended(graph, {argument: MidRad(x)})[graph])

        found = _over_critical_points(values, stated, k, operands[0])
    else:
        found = as_range(extended(graph, dict(zip(inputs, operands, strict=True)))[graph])
    return found.where(_inside(one.function, operands))


def _smooth(function: ScalarFunction, order: int, operands: Sequence[Range]) -> Expr:
    """Where the function is certainly C^order over the operands."""
    holds: Expr = Const(True)
    for kink in function.kinks:
        if kink.order < order:
            if kink.at is None:
                return Const(False)
            holds = land(holds, lnot(_may_hold(kink.at, operands).possible))
    return holds


@cache
def largest_derivative(function: ScalarFunction, k: int) -> float | None:
    """Upper bound on |k-th derivative| of a function of one number everywhere; None if unknown.

    From the images of the functions in its graph, or from its stated critical points: beyond the
    outermost ones it is monotone, hence bounded by its values there and at infinity. That it tends
    to 0 is indicated by its magnitudes at 1e3 and 1e6, and proved for every function to which this
    applies by SymPy's limits in tests/calculus/test_rays.py.
    """
    if function.arity != 1 or function.kinks or any(map(math.isfinite, sum(function.domain, ()))):
        return None
    (argument,), graph = derivative_graph(PartialFunction(function, 0, (None,)), k)
    stated = function.monotonicity
    if stated is None or stated.poles:
        return None
    if stated.period or k >= len(stated.critical_points):
        return _size_by_images(graph)

    def size(x: float) -> float:
        with as_doubles():
            found = as_midrad(extended(graph, {argument: MidRad(Const(x))})[graph]).magnitude
        return found.value if isinstance(found, Const) else math.inf

    if not all(size(1e6 * sign) <= size(1e3 * sign) + 1e-100 for sign in (1.0, -1.0)):
        return None
    points = (*stated.critical_points[k], 1e3, -1e3)
    largest = max(map(size, points)) * (1.0 + 1e-9)
    return largest if math.isfinite(largest) else None


def _size_by_images(graph: Expr) -> float | None:
    """Upper bound on the magnitude of a product of constants and functions with bounded images."""
    if isinstance(graph, Const):
        return math.fabs(graph.value)
    if not isinstance(graph, Map):
        return None
    if graph.function in (neg, mul):
        sizes = [_size_by_images(operand) for operand in graph.operands]
        known_sizes = [one for one in sizes if one is not None]
        return math.prod(known_sizes) if len(known_sizes) == len(sizes) else None
    stated = graph.function.monotonicity
    image = (-math.inf, math.inf) if stated is None else stated.image
    largest = max(map(math.fabs, image))
    return largest if math.isfinite(largest) else None
