"""Ranges of functions and their derivatives against 50-digit values on grids."""

from __future__ import annotations

import math
from functools import cache

import mpmath as mp
import numpy as np
import pytest
import sympy as sp
from marks import slow_unless

from slomodel import functions as fn
from slomodel.bounds.arithmetic.interval import interval, point
from slomodel.bounds.ranges.derivatives import derivative_range
from slomodel.bounds.ranges.values import value_range
from slomodel.functions import symbols
from slomodel.functions.compound import hypot, logaddexp, xlogx
from slomodel.ir.function import ANALYTIC, ScalarFunction
from tests.functions.exact_values import FEW_DIGITS

_SMOOTH = [f for f in fn.TABLE.values() if f.arity == 1 and f.smoothness == ANALYTIC]
_SMOOTH = [f for f in _SMOOTH if f.result == "real" and f.name != "stop_gradient"]
_EXACT = [f for f in _SMOOTH if f is not fn.tan and not f.name.startswith("sinc")]
"""Those whose ranges are tight; sin(x)/x and the derivatives of tan are enclosed loosely."""


@cache
def _exact(function: ScalarFunction, k: int):
    (x,) = symbols(function)
    return sp.lambdify(x, sp.diff(function.definition(x), x, k), "mpmath")


def _value(function: ScalarFunction, k: int, x: float) -> mp.mpf | None:
    with mp.workdps(50):
        try:
            value = mp.mpmathify(_exact(function, k)(mp.mpf(float(x))))
        except (ZeroDivisionError, ValueError):
            return None
    return value if mp.im(value) == 0 and mp.isfinite(value) else None


def _boxes(function: ScalarFunction, count: int, edge: float = 0.0):
    rng = np.random.default_rng(0)
    centre = rng.standard_normal(count) * rng.choice([0.3, 1.0, 3.0, 9.0], count)
    width = 10.0 ** rng.uniform(-9, 0.5, count)
    low, high = centre - width, centre + width
    if function.domain:
        first, last = function.domain[0][0] + edge, function.domain[0][1] - edge
        low = np.maximum(low, first)
        high = np.minimum(np.maximum(high, low + 0.1), last)
        low = np.maximum(np.minimum(low, high - 0.1), first)
    return interval(low, high)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("function", _SMOOTH, ids=str)
@pytest.mark.parametrize("k", range(5))
def test_ranges_hold_values_at_the_ends_inside_and_at_turns(function, k):
    a = _boxes(function, 12)
    result = derivative_range(function, k, a)
    turns = [
        t
        for own in (function.monotonicity.critical_points if function.monotonicity else ())
        for t in own
    ]
    for i in range(12):
        inside = [t for t in turns if a.lo[i] <= t <= a.hi[i]]
        for x in (a.lo[i], a.hi[i], *np.linspace(a.lo[i], a.hi[i], 7)[1:-1], *inside):
            value = _value(function, k, x)
            if value is not None:
                assert not value < mp.mpf(float(result.lo[i]))
                assert not value > mp.mpf(float(result.hi[i]))


@pytest.mark.sampled(11)
@pytest.mark.parametrize("function", _EXACT, ids=str)
@pytest.mark.parametrize("k", slow_unless(lambda k: k in (0, 2, 3), range(5)))
def test_ranges_are_attained(function, k):
    """Each end is a value at an end of the operand or at a stationary point, but for rounding."""
    a = _boxes(function, 6, edge=0.01)
    result = derivative_range(function, k, a)
    count = 25 if function in FEW_DIGITS else 200  # the exact values of these take long
    for i in range(6):
        grid = np.linspace(a.lo[i], a.hi[i], count + 1)
        values = [_value(function, k, x) for x in grid]
        known = [v for v in values if v is not None]
        size = max(*map(abs, known), mp.mpf(1e-300))
        # A grid misses a smooth top by at most |f''| h^2 / 8.
        bends = [_value(function, k + 2, x) for x in grid]
        bend = max(abs(b) for b in bends if b is not None)
        miss = bend * mp.mpf(float(a.hi[i] - a.lo[i]) / count) ** 2 / 4
        slack = 2e-14 * size + miss
        if np.isfinite(result.hi[i]):
            assert result.hi[i] <= max(known) + slack
        if np.isfinite(result.lo[i]):
            assert result.lo[i] >= min(known) - slack


def test_derivatives_at_points_are_within_a_few_steps():
    for function in _EXACT:
        for k in range(4):
            for x in (0.37, 1.9, 5.0):
                if function.domain and not x < function.domain[0][1]:
                    x = min(-x, 0.5) if function.domain[0][0] < -1.0 else x / 8.0
                if function.domain and not x > function.domain[0][0]:
                    x += 1.0
                result = derivative_range(function, k, point(x))
                value = _value(function, k, x)
                # A derivative of exp(x^2) erfc(x), or of quotients by it, is a difference of terms
                # that are larger by (2x)^k.
                tails = ("erfcx", "erfcx_tail", "normal_tail", "normratio", "lognormcdf")
                terms = (2.0 + 2.0 * x) ** k if function.name in tails else 1.0
                if function.name in ("normppf", "erfinv"):
                    terms += abs(float(value))  # powers of exp(x^2) enlarge the error of x
                assert float(result.hi - result.lo) <= 3e-14 * (abs(float(value)) + terms)


@pytest.mark.parametrize(
    ("function", "k", "box", "low", "high"),
    [
        (fn.sigmoid, 1, (-1.0, 3.0), None, 0.25),
        (fn.tanh, 1, (-1.0, 3.0), None, 1.0),
        (fn.tanh, 2, (-9.0, 9.0), -4 / math.sqrt(27), 4 / math.sqrt(27)),
        (fn.softplus, 3, (-9.0, 9.0), -math.sqrt(3) / 18, math.sqrt(3) / 18),
        (fn.sin, 0, (1.0, 2.0), None, 1.0),
        (fn.sin, 0, (4.0, 5.0), -1.0, None),
        (fn.cos, 0, (3.0, 7.0), -1.0, 1.0),
        (fn.cosh, 0, (-1.0, 2.0), 1.0, math.cosh(2.0)),
        (fn.atan, 2, (-9.0, 9.0), -3 * math.sqrt(3) / 8, 3 * math.sqrt(3) / 8),
        (fn.erf, 2, (-9.0, 0.0), 0.0, math.sqrt(8 / (math.pi * math.e))),
        (fn.asinh, 2, (-9.0, 9.0), -2 / math.sqrt(27), 2 / math.sqrt(27)),
        (xlogx, 0, (0.1, 1.0), -1 / math.e, 0.0),
    ],
)
def test_known_extremes(function, k, box, low, high):
    result = derivative_range(function, k, interval(*box))
    for found, known in ((result.lo, low), (result.hi, high)):
        if known is not None:
            assert found == pytest.approx(known, rel=1e-13, abs=1e-13)
    if low is not None:
        assert result.lo <= low
    if high is not None:
        assert result.hi >= high * (1 - 1e-16)


def test_far_periods_take_the_whole_image():
    assert value_range(fn.sin, interval(1e15, 1e15)).lo == -1.0
    assert value_range(fn.sin, interval(-np.inf, 0.0)).hi == 1.0
    assert value_range(fn.tan, interval(1.0, 2.0)).hi == np.inf


def test_edges_of_domains():
    reaching = interval(-1e-17, 2.0)
    assert value_range(fn.log, reaching).lo == -np.inf
    assert value_range(fn.sqrt, reaching).lo == 0.0
    assert value_range(fn.log, interval(-2.0, -1.0)).hi == np.inf
    assert derivative_range(fn.sqrt, 1, reaching).hi == np.inf
    assert derivative_range(fn.log, 2, interval(0.0, 2.0)).lo == -np.inf


def test_exponentials_neither_vanish_nor_become_nan():
    assert value_range(fn.exp, point(-800.0)).hi > 0.0
    assert value_range(fn.exp, point(-800.0)).lo == 0.0
    assert value_range(fn.exp, point(800.0)).hi == np.inf
    assert value_range(fn.exp, point(800.0)).lo < np.inf


@pytest.mark.parametrize("p", [-2.0, -1.0, -0.5, 0.0, 0.5, 1.5, 2.5, 3.0, 7.0])
def test_powers_of_one_exponent(p):
    result = value_range(fn.pow, interval(0.5, 2.0), point(p))
    ends = sorted((0.5**p, 2.0**p))
    assert (result.lo, result.hi) == pytest.approx(ends, rel=2e-15)
    assert result.lo <= ends[0] <= ends[1] <= result.hi


def test_powers_at_zero_and_below():
    assert value_range(fn.pow, interval(-2.0, 1.0), point(2.0)).lo == 0.0
    assert value_range(fn.pow, interval(0.0, 1.0), point(-0.5)).hi == np.inf
    assert value_range(fn.pow, interval(-1e-18, 1.0), point(1.5)).lo == 0.0
    assert value_range(fn.pow, interval(-2.0, -1.0), point(0.5)).hi == np.inf
    varying = value_range(fn.pow, interval(0.5, 2.0), interval(-1.0, 2.0))
    assert varying.lo == pytest.approx(0.25, rel=1e-14)
    assert varying.hi == pytest.approx(4.0, rel=1e-14)
    mixed = value_range(fn.pow, interval([2.0, 2.0], [3.0, 3.0]), point([2.0, 0.5]))
    assert mixed.hi == pytest.approx([9.0, math.sqrt(3.0)])


def test_partial_derivatives_of_two_operands():
    a, b = interval(1.0, 2.0), interval(0.5, 4.0)
    assert derivative_range(fn.div, (0, 2), a, b).hi == pytest.approx(32.0)
    assert derivative_range(fn.mul, (1, 1), a, b).hi == 1.0
    assert derivative_range(fn.pow, (2, 0), a, point(1.5)).hi == pytest.approx(0.75)
    assert derivative_range(hypot, (1, 0), a, b).hi <= 2.0 / math.hypot(1.0, 0.5) * 1.0001
    assert derivative_range(logaddexp, (1, 1), point(1.0), point(1.0)).lo == pytest.approx(-0.25)
    with pytest.raises(ValueError, match="has 2 operands"):
        derivative_range(fn.mul, 1, a, b)


def test_pieces_at_a_kink_are_joined():
    across = interval(-1.0, 2.0)
    assert derivative_range(fn.abs, 1, across).lo == -1.0
    assert derivative_range(fn.relu, 1, across).hi == 1.0
    assert derivative_range(fn.abs, 2, across).magnitude == 0.0
    assert value_range(fn.huber, across, point(1.0)).hi == pytest.approx(1.5)
    assert value_range(fn.huber, interval(-3.0, -2.0), point(1.0)).lo == pytest.approx(1.5)
    assert derivative_range(fn.huber, (2, 0), across, point(1.0)).hi == 1.0


@pytest.mark.parametrize(
    ("t", "delta", "values", "slopes"),
    [
        ((-1.0, 2.0), (-3.0, -1.0), (-10.5, -0.5), (-3.0, 3.0)),
        ((1.0, 2.0), (-2.0, 1.0), (-6.0, 1.5), (-2.0, 1.0)),
        ((-3.0, -2.0), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)),
        ((-3.0, -2.0), (-1.0, 0.0), (-3.5, 0.0), (0.0, 1.0)),
    ],
)
def test_huber_falls_in_its_size_for_delta_below_zero(t, delta, values, slopes):
    """delta |t| - delta^2 / 2, which rises in delta, and its slope delta sign(t)."""
    for orders, (low, high) in (((0, 0), values), ((1, 0), slopes)):
        found = derivative_range(fn.huber, orders, interval(*t), interval(*delta))
        assert (found.lo, found.hi) == pytest.approx((low, high), rel=1e-13, abs=1e-300)
        assert found.lo <= low <= high <= found.hi


def test_a_function_without_data_is_enclosed_through_its_definition():
    cube_minus = ScalarFunction(
        "cube_minus", 1, definition=lambda x: x**3 - x, numpy=lambda x: x**3 - x
    )
    result = value_range(cube_minus, interval(-1.0, 2.0))
    assert result.lo <= -2 / math.sqrt(27)
    assert result.hi >= 6.0
    slope = derivative_range(cube_minus, 1, interval(1.0, 2.0))
    assert (slope.lo, slope.hi) == pytest.approx((2.0, 11.0))


def test_ranges_of_many_elements_are_those_of_their_parts():
    rng = np.random.default_rng(3)
    ends = np.sort(rng.standard_normal((2, 4, 1)), axis=0)
    a, b = interval(ends[0], ends[1]), point(rng.standard_normal((1, 7000)))
    whole = value_range(fn.mul, a, b)
    for k in range(4):
        part = value_range(fn.mul, a.each(lambda array, k=k: array[k]), b.each(lambda x: x[0]))
        assert np.array_equal(whole.lo[k], part.lo)
        assert np.array_equal(whole.hi[k], part.hi)
    b = point(np.tile(b.lo, (3, 1)))
    assert (-b).lo.tolist() == value_range(fn.neg, b).lo.tolist()
    assert value_range(fn.neg, b).is_point
