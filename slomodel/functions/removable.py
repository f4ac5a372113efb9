"""Functions with a removable singularity at 0, such as (exp(x) - 1)/x, and their derivatives.

A member n of a family is the n-th derivative. For |x| up to an edge it is that of the power series,
and beyond it that of the formula, whose terms cancel by a bounded factor there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import sympy as sp

from slomodel.functions import power_series as series
from slomodel.functions.arithmetic import add, div, mul, neg, square, sub
from slomodel.functions.comparison import ge, gt, land, le, lt, where
from slomodel.functions.derivatives import definition, meaning, next_member
from slomodel.functions.elementary import (
    asin,
    asinh,
    atan,
    atanh,
    erf,
    exp,
    expm1,
    log,
    log1p,
    sin,
    sinh,
    tan,
    tanh,
)
from slomodel.functions.ends import acos1m, acosh1p
from slomodel.functions.logarithms import bose, log1mexp
from slomodel.functions.piecewise import abs, relu
from slomodel.functions.power_series import polynomial, recentred
from slomodel.functions.sinc import SINC
from slomodel.functions.translate import partial
from slomodel.ir.build import const, variable
from slomodel.ir.expr import Expr, Map
from slomodel.ir.function import (
    Family,
    Monotonicity,
    RangeRule,
    ScalarFunction,
)
from slomodel.ir.walk import postorder

_EVERYWHERE = (-math.inf, math.inf)
_LARGE = 700.0
_X = variable("x", ())
_S = sp.Symbol("s", real=True)


@dataclass(frozen=True, slots=True)
class _Removable:
    """The description of a family.

    - `formula`: the function as a graph away from 0; `form`: in SymPy.
    - `derivatives`: its derivative of order n >= 1 there, or None for that of the derivative of
      lower order, as a graph.
    - `coefficients`: the coefficients of its power series, times `factor`.
    - `edge`: the |x| up to which the series is used; `derivative_edge`: for derivatives, where the
      terms of the formula cancel further out (0: the same).
    - `alternating`: an interval of -x in which the terms of derivatives cancel, in the series about
      0 as in the formula, if there is one: they are the series about its middle.
    - `ranges`: those of member n.
    """

    name: str
    meaning: str
    formula: Callable[[Expr], Expr]
    form: Callable[[sp.Expr], sp.Expr]
    coefficients: Callable[[], Sequence[Fraction]]
    edge: float
    domain: tuple[float, float] = _EVERYWHERE
    factor: float = 1.0
    derivatives: Callable[[Expr, int], Expr | None] = lambda _x, _n: None
    ranges: Callable[[int], Monotonicity | RangeRule] = lambda _n: RangeRule.FORM
    derivative_edge: float = 0.0
    alternating: tuple[float, float] | None = None
    ulps: tuple[int, ...] = (4, 32)


def _slope(graph: Expr) -> Expr:
    """The derivative by x of a graph of scalars."""
    slopes: dict[Expr, Expr] = {_X: const(1.0)}
    for node in postorder(graph):
        if not isinstance(node, Map):
            continue
        total: Expr | None = None
        for k, operand in enumerate(node.operands):
            inner = slopes.get(operand)
            outer = None if inner is None else partial(node.function, k, node.operands)
            if inner is not None and outer is not None:
                term = mul(outer, inner)
                total = term if total is None else add(total, term)
        if total is not None:
            slopes[node] = total
    return slopes.get(graph, const(0.0))


def _family(given: _Removable) -> Family:
    """The family of a removable singularity."""

    @cache
    def beyond(n: int) -> Expr:
        """The n-th derivative of the formula."""
        if n == 0:
            return given.formula(_X)
        own = given.derivatives(_X, n)
        return _slope(beyond(n - 1)) if own is None else own

    def between(x: Expr, n: int) -> Expr:
        """The series about the middle of the interval where terms alternate."""
        assert given.alternating is not None
        start, end = given.alternating
        middle, width = 0.5 * (start + end), 0.5 * (end - start)
        shifted = recentred(given.coefficients(), Fraction(-middle))
        return polynomial(shifted, n, width, where(lt(x, -start), add(x, middle), 0.0))

    def stable(x: Expr, n: int) -> Expr:
        edge = (given.derivative_edge if n else 0.0) or given.edge
        is_near = le(abs(x), edge)
        if n and given.alternating:
            is_near = land(le(x, edge), ge(x, -given.alternating[1]))
        inner = where(is_near, x, 0.0)
        near = polynomial(given.coefficients(), n, edge, inner)
        if n and given.alternating:
            near = where(lt(inner, -given.alternating[0]), between(inner, n), near)
        if given.factor != 1.0:
            near = mul(given.factor, near)
        return where(is_near, near, _at(beyond(n), where(is_near, edge, x)))

    @cache
    def member(n: int) -> ScalarFunction:
        ulps = given.ulps[min(n, len(given.ulps) - 1)]
        return ScalarFunction(
            f"{given.name}_{n}" if n else given.name,
            1,
            definition=definition(given.form(_S), _S, n),
            numpy=meaning(stable, n),
            partials=(next_member(member, n),),
            stable=lambda x: stable(x, n),
            domain=(given.domain,),
            ranges=given.ranges(n),
            costly=True,
            meaning=f"derivative of order {n} of {given.meaning}" if n else given.meaning,
            ulps={"numpy": ulps, "numexpr": ulps, "c": ulps},
        )

    kind = type(f"{given.name}_derivative", (sp.Function,), {})
    return Family(f"{given.name}_", kind, member)


def _at(graph: Expr, x: Expr) -> Expr:
    """A graph of scalars in x, with another node in place of x."""
    done: dict[Expr, Expr] = {_X: x}
    for node in postorder(graph):
        if node not in done:
            own = [done[operand] for operand in node.operands]
            done[node] = node.function(*own) if isinstance(node, Map) else node
    return done[graph]


def _over_x(function: ScalarFunction, x: Expr) -> Expr:
    return div(function(x), x)


def _exponential_remainder_beyond(x: Expr) -> Expr:
    """(exp(x) - 1 - x)/x², for large x as (exp(x/2)/x)², whose exponential does not overflow."""
    is_large = gt(x, _LARGE)
    large, other = where(is_large, x, _LARGE), where(is_large, 1.0, x)
    root = div(exp(mul(0.5, large)), large)
    return where(is_large, square(root), div(div(sub(expm1(other), other), other), other))


def _first(slope: Callable[[Expr], Expr]) -> Callable[[Expr, int], Expr | None]:
    """The derivatives of a function whose first derivative is given."""
    return lambda x, n: slope(x) if n == 1 else None


def _exponential_derivative(x: Expr, n: int) -> Expr:
    """The n-th derivative of (exp(x) - 1)/x, by one exponential: no infinities are subtracted."""
    r = div(1.0, x)
    factor: Expr = const(float((-1) ** n * math.factorial(n)))
    for j in range(n - 1, -1, -1):
        factor = add(mul(factor, r), float((-1) ** j * math.perm(n, j)))
    power: Expr = r
    for _ in range(n):
        power = mul(power, r)
    rest = mul(float((-1) ** n * math.factorial(n)), power)
    # For n = 1 the factor is (x - 1)/x, whose difference is exact for most x.
    factor = div(div(sub(x, 1.0), x), x) if n == 1 else mul(r, factor)
    return sub(mul(exp(x), factor), rest)


def _log_sinh_beyond(x: Expr) -> Expr:
    """log(sinh(x)/x), which does not overflow."""
    size = abs(x)
    return add(sub(size, log(mul(2.0, size))), log1mexp(mul(-2.0, size)))


def _log_exponential_beyond(x: Expr) -> Expr:
    """log((exp(x) - 1)/x), which does not overflow."""
    size = abs(x)
    return add(relu(x), sub(log1mexp(neg(size)), log(size)))


def _squared_arc_beyond(x: Expr) -> Expr:
    """acos(1 - x)^2, which for x < 0 is -acosh(1 - x)^2."""
    is_below = lt(x, 0.0)
    below = neg(square(acosh1p(where(is_below, neg(x), 1.0))))
    return where(is_below, below, square(acos1m(where(is_below, 1.0, x))))


def _langevin_beyond(x: Expr) -> Expr:
    return sub(div(1.0, tanh(x)), div(1.0, x))


def _all_monotone(image: tuple[float, float]) -> Callable[[int], Monotonicity | RangeRule]:
    """The ranges of a function whose first derivatives are all monotone."""
    return lambda n: Monotonicity(((),) * max(1, 6 - n), image=image if n == 0 else _EVERYWHERE)


_POSITIVE = (0.0, math.inf)


def _sinh_quotient_ranges(n: int) -> Monotonicity:
    """The ranges of derivatives of sinh(x)/x, an even function with positive coefficients."""
    turns = tuple((0.0,) if (n + k) % 2 == 0 else () for k in range(max(1, 6 - n)))
    return Monotonicity(turns, image=_EVERYWHERE if n % 2 else _POSITIVE)


_TURNS = (
    *((), (), ()),
    (1.3722539666244664,),
    (2.360743312007385,),
    (0.8499120260133233, 3.2118821718848733),
    (1.5207792878482119, 3.9936904792435426),
)
"""The positive zeros of the derivatives of log(sinh(x)/x) of order 1, 2, …; those of even functions
of odd order are 0 too. Computed by mpmath with 60 digits.
"""


def _langevin_ranges(scale: float, first: Monotonicity) -> Callable[[int], Monotonicity]:
    """The ranges of derivatives of log(sinh(x/s)/(x/s)) plus a linear function; `first` of f'."""

    def turns(order: int) -> tuple[float, ...]:
        above = tuple(scale * x for x in _TURNS[order - 1])
        return (*(-x for x in reversed(above)), *((0.0,) if order % 2 else ()), *above)

    def from_order(n: int) -> tuple[tuple[float, ...], ...]:
        return tuple(turns(order) for order in range(n, len(_TURNS) + 1))

    def ranges(n: int) -> Monotonicity:
        if n == 0:
            return replace(first, critical_points=(*first.critical_points, *from_order(2)))
        return Monotonicity(
            from_order(n + 1) or ((),), image=(-1.0, 1.0) if n == 1 else _EVERYWHERE
        )

    return ranges


EXP_QUOTIENT = _family(
    _Removable(
        "exp_quotient",
        "(exp(x) - 1)/x, 1 at 0",
        lambda x: _over_x(expm1, x),
        lambda s: (sp.exp(s) - 1) / s,
        series.exponential,
        1.0,
        derivatives=_exponential_derivative,
        derivative_edge=2.0,
        alternating=(1.0, 4.0),
        ranges=_all_monotone(_POSITIVE),
        ulps=(4, 4, 32),
    )
)
EXP_REMAINDER_QUOTIENT = _family(
    _Removable(
        "exp_remainder_quotient",
        "(exp(x) - 1 - x)/x^2, 1/2 at 0",
        _exponential_remainder_beyond,
        lambda s: (sp.exp(s) - 1 - s) / s**2,
        series.exponential_remainder,
        1.5,
        ranges=_all_monotone(_POSITIVE),
        ulps=(8, 64),
    )
)
BERNOULLI = _family(
    _Removable(
        "bernoulli",
        "x/(exp(x) - 1), 1 at 0",
        lambda x: mul(x, bose(x)),
        lambda s: s / (sp.exp(s) - 1),
        series.bernoulli,
        2.0,
        ulps=(8, 64),
    )
)
LOG_QUOTIENT = _family(
    _Removable(
        "log_quotient",
        "log(1 + x)/x, 1 at 0",
        lambda x: _over_x(log1p, x),
        lambda s: sp.log(1 + s) / s,
        series.logarithm,
        0.5,
        domain=(-1.0, math.inf),
    )
)
SINH_QUOTIENT = _family(
    _Removable(
        "sinh_quotient",
        "sinh(x)/x, 1 at 0",
        lambda x: _over_x(sinh, x),
        lambda s: sp.sinh(s) / s,
        series.hyperbolic_sine,
        1.5,
        ranges=_sinh_quotient_ranges,
    )
)
TANH_QUOTIENT = _family(
    _Removable(
        "tanh_quotient",
        "tanh(x)/x, 1 at 0",
        lambda x: _over_x(tanh, x),
        lambda s: sp.tanh(s) / s,
        series.hyperbolic_tangent,
        0.75,
    )
)
TAN_QUOTIENT = _family(
    _Removable(
        "tan_quotient",
        "tan(x)/x, 1 at 0",
        lambda x: _over_x(tan, x),
        lambda s: sp.tan(s) / s,
        series.tangent,
        0.75,
        ranges=lambda _n: RangeRule.UNKNOWN,
    )
)
ATAN_QUOTIENT = _family(
    _Removable(
        "atan_quotient",
        "atan(x)/x, 1 at 0",
        lambda x: _over_x(atan, x),
        lambda s: sp.atan(s) / s,
        series.inverse_tangent,
        0.5,
    )
)
ASIN_QUOTIENT = _family(
    _Removable(
        "asin_quotient",
        "asin(x)/x, 1 at 0",
        lambda x: _over_x(asin, x),
        lambda s: sp.asin(s) / s,
        series.inverse_sine,
        0.5,
        domain=(-1.0, 1.0),
    )
)
ASINH_QUOTIENT = _family(
    _Removable(
        "asinh_quotient",
        "asinh(x)/x, 1 at 0",
        lambda x: _over_x(asinh, x),
        lambda s: sp.asinh(s) / s,
        series.inverse_hyperbolic_sine,
        0.5,
    )
)
ATANH_QUOTIENT = _family(
    _Removable(
        "atanh_quotient",
        "atanh(x)/x, 1 at 0",
        lambda x: _over_x(atanh, x),
        lambda s: sp.atanh(s) / s,
        series.inverse_hyperbolic_tangent,
        0.5,
        domain=(-1.0, 1.0),
    )
)
ERF_QUOTIENT = _family(
    _Removable(
        "erf_quotient",
        "erf(x)/x, 2/sqrt(pi) at 0",
        lambda x: _over_x(erf, x),
        lambda s: sp.erf(s) / s,
        series.error_function,
        1.0,
        factor=2.0 / math.sqrt(math.pi),
    )
)
LOG_SINH_QUOTIENT = _family(
    _Removable(
        "log_sinh_quotient",
        "log(sinh(x)/x), 0 at 0",
        _log_sinh_beyond,
        lambda s: sp.log(sp.sinh(s) / s),
        series.log_sinh,
        1.5,
        derivatives=_first(_langevin_beyond),
        ranges=_langevin_ranges(1.0, Monotonicity(((0.0,),), image=_POSITIVE)),
        ulps=(8, 64),
    )
)
LOG_EXP_QUOTIENT = _family(
    _Removable(
        "log_exp_quotient",
        "log((exp(x) - 1)/x), 0 at 0",
        _log_exponential_beyond,
        lambda s: sp.log((sp.exp(s) - 1) / s),
        series.log_exponential,
        2.0,
        derivatives=_first(lambda x: sub(neg(bose(neg(x))), div(1.0, x))),
        ranges=_langevin_ranges(2.0, Monotonicity()),
        ulps=(8, 64),
    )
)
SINE_REMAINDER_QUOTIENT = _family(
    _Removable(
        "sine_remainder_quotient",
        "(x - sin(x))/x^3, 1/6 at 0",
        lambda x: div(div(div(sub(x, sin(x)), x), x), x),
        lambda s: (s - sp.sin(s)) / s**3,
        series.sine_remainder,
        2.0,
        ulps=(8, 64),
    )
)
SQUARED_ARC = _family(
    _Removable(
        "squared_arc",
        "acos(1 - x)^2, which is 2 x near 0",
        _squared_arc_beyond,
        lambda s: sp.acos(1 - s) ** 2,
        series.squared_arc,
        0.5,
        domain=(-math.inf, 2.0),
        ulps=(8, 64),
    )
)

exp_quotient, exp_quotient_1 = map(EXP_QUOTIENT.member, range(2))
sinh_quotient, log_exp_quotient, log_sinh_quotient = (
    family.member(0) for family in (SINH_QUOTIENT, LOG_EXP_QUOTIENT, LOG_SINH_QUOTIENT)
)

QUOTIENTS = {
    sin: SINC,
    expm1: EXP_QUOTIENT,
    sinh: SINH_QUOTIENT,
    tanh: TANH_QUOTIENT,
    tan: TAN_QUOTIENT,
    atan: ATAN_QUOTIENT,
    asin: ASIN_QUOTIENT,
    asinh: ASINH_QUOTIENT,
    atanh: ATANH_QUOTIENT,
    log1p: LOG_QUOTIENT,
    erf: ERF_QUOTIENT,
}
"""The family of h(x)/x of each function h with a simple zero at 0."""
