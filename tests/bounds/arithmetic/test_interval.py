"""Interval arithmetic against exact rational arithmetic and at its edges."""

from __future__ import annotations

import operator
from fractions import Fraction

import numpy as np
import pytest

from slomodel.bounds.arithmetic import interval as iv
from slomodel.bounds.arithmetic.interval import Interval, interval, point


def _boxes(rng: np.random.Generator, count: int) -> Interval:
    ends = np.sort(rng.standard_normal((2, count)) * 10.0 ** rng.integers(-3, 3, (2, count)), 0)
    kind = rng.integers(0, 5, count)
    lo = np.where(kind == 0, ends[1], np.where(kind == 1, 0.0, ends[0]))
    hi = np.where(kind == 2, 0.0, ends[1])
    return interval(np.minimum(lo, hi), np.maximum(lo, hi))


def _inside(rng: np.random.Generator, a: Interval) -> np.ndarray:
    inner = a.lo + rng.random(a.shape) * (a.hi - a.lo)
    which = rng.integers(0, 3, a.shape)
    return np.where(which == 0, a.lo, np.where(which == 1, a.hi, np.clip(inner, a.lo, a.hi)))


@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul, operator.truediv])
def test_arithmetic_contains_every_exact_result_and_is_attained(op):
    rng = np.random.default_rng(0)
    a, b = _boxes(rng, 400), _boxes(rng, 400)
    result = op(a, b)
    reached = np.full((2, 400), [[np.inf], [-np.inf]])
    corners = [(x, y) for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
    inner = [(_inside(rng, a), _inside(rng, b)) for _ in range(10)]
    for x, y in corners + inner:
        for k in range(400):
            if op is operator.truediv and y[k] == 0.0:
                continue
            exact = op(Fraction(x[k]), Fraction(y[k]))
            assert np.isinf(result.lo[k]) or Fraction(result.lo[k]) <= exact
            assert np.isinf(result.hi[k]) or exact <= Fraction(result.hi[k])
            reached[0, k] = min(reached[0, k], float(exact))
            reached[1, k] = max(reached[1, k], float(exact))
    finite = np.isfinite(result.lo) & np.isfinite(result.hi) & np.isfinite(reached[0])
    np.testing.assert_allclose(result.lo[finite], reached[0][finite], rtol=1e-15)
    np.testing.assert_allclose(result.hi[finite], reached[1][finite], rtol=1e-15)


@pytest.mark.parametrize("k", [-3, -2, -1, 0, 1, 2, 3, 4, 7])
def test_whole_powers_contain_every_exact_power(k):
    rng = np.random.default_rng(k + 10)
    a = _boxes(rng, 200)
    result = iv.whole_power(a, k)
    for _ in range(10):
        x = _inside(rng, a)
        for i in range(200):
            if x[i] == 0.0 and k < 0:
                continue
            exact = Fraction(x[i]) ** k
            assert np.isinf(result.lo[i]) or Fraction(result.lo[i]) <= exact
            assert np.isinf(result.hi[i]) or exact <= Fraction(result.hi[i])


def test_powers_are_tight():
    assert iv.whole_power(interval(-2.0, 1.0), 2).lo == 0.0
    assert iv.whole_power(interval(-2.0, 1.0), 4).hi == pytest.approx(16.0, rel=3e-15)
    assert iv.whole_power(interval(-2.0, 1.0), 3).lo == pytest.approx(-8.0, rel=3e-15)
    assert iv.whole_power(interval(0.0, 2.0), -1).hi == np.inf
    assert iv.whole_power(interval(0.0, 2.0), -1).lo == pytest.approx(0.5, rel=1e-15)


def test_infinite_ends_and_zeros():
    everything = interval(-np.inf, np.inf)
    zero = point(0.0)
    assert (zero * everything).magnitude == 0.0
    assert (interval(0.0, 1.0) * interval(1.0, np.inf)).lo == 0.0
    assert (interval(1.0, 2.0) / interval(0.0, 1.0)).hi == np.inf
    assert (interval(1.0, 2.0) / interval(-1.0, 0.0)).lo == -np.inf
    assert (interval(1.0, 2.0) / interval(-1.0, 0.0)).hi == pytest.approx(-1.0)
    assert (interval(1.0, 2.0) / interval(-1.0, 1.0)).lo == -np.inf
    assert (interval(1e-200, 1.0) * interval(1e-200, 1.0)).lo == 0.0
    assert (point(1e-200) * point(1e-200)).hi > 0.0
    assert (point(1e200) * point(1e200)).lo < np.inf
    assert (point(1e308) + point(1e308)).lo < np.inf


def test_nan_is_not_a_bound():
    assert point(np.nan).lo == -np.inf
    assert point(np.nan).hi == np.inf
    assert interval(np.nan, 1.0).lo == -np.inf
    assert point(np.inf).lo < np.inf


def test_around_contains_centre_plus_and_minus_radius():
    a = iv.around(1e8, 1e-9)
    assert Fraction(float(a.lo)) <= Fraction(1e8) - Fraction(1e-9)
    assert Fraction(float(a.hi)) >= Fraction(1e8) + Fraction(1e-9)
    assert iv.around(1.0, 1.0).lo == 0.0


def test_mid_and_rad_cover():
    rng = np.random.default_rng(3)
    a = _boxes(rng, 300)
    for k in range(300):
        mid, rad = Fraction(a.mid[k]), Fraction(a.rad[k])
        assert mid - rad <= Fraction(a.lo[k])
        assert Fraction(a.hi[k]) <= mid + rad
    assert interval(-np.inf, np.inf).rad == np.inf
    assert interval(1.0, np.inf).rad == np.inf


def test_comparisons_have_three_values():
    low, high, over = interval(0.0, 1.0), interval(2.0, 3.0), interval(0.5, 2.5)
    assert iv.less(low, high).lo == 1.0
    assert iv.less(high, low).hi == 0.0
    assert (iv.less(low, over).lo, iv.less(low, over).hi) == (0.0, 1.0)
    assert iv.less(interval(0.0, 1.0), interval(1.0, 2.0)).lo == 0.0
    assert iv.less_equal(interval(0.0, 1.0), interval(1.0, 2.0)).lo == 1.0
    assert iv.equal(point(1.0), point(1.0)).lo == 1.0
    assert iv.equal(low, high).hi == 0.0


def test_choice_takes_both_where_the_condition_is_undecided():
    condition = interval([1.0, 0.0, 0.0], [1.0, 0.0, 1.0])
    result = iv.choose(condition, point([1.0, 1.0, 1.0]), point([2.0, 2.0, 2.0]))
    assert result.lo.tolist() == [1.0, 2.0, 1.0]
    assert result.hi.tolist() == [1.0, 2.0, 2.0]


def test_absolute_value_and_square():
    a = interval([-2.0, 1.0, -3.0], [1.0, 2.0, -1.0])
    assert iv.absolute(a).lo.tolist() == [0.0, 1.0, 1.0]
    assert iv.absolute(a).hi.tolist() == [2.0, 2.0, 3.0]
    assert iv.square(a).lo[0] == 0.0


def test_sum_of_intervals():
    a = interval(np.full(10, 0.1), np.full(10, 0.2))
    result = iv.total(a)
    assert Fraction(float(result.lo)) <= 10 * Fraction(0.1)
    assert Fraction(float(result.hi)) >= 10 * Fraction(0.2)
    assert result.hi == pytest.approx(2.0, rel=1e-14)
