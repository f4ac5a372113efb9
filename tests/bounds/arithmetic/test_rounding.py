"""Outward rounding against exact rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from slomodel.bounds.arithmetic import rounding as r

_EDGES = [0.0, 5e-324, -5e-324, 2.3e-308, 1e-160, 1.0, -1.0, 1 / 3, 3.0, -1e160, 1e308, -1.7e308]


def _numbers(count: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    wild = rng.standard_normal(count) * 10.0 ** rng.integers(-300, 300, count)
    return np.concatenate([_EDGES, wild, rng.standard_normal(count)])


def _exact(x: float) -> Fraction:
    return Fraction(float(x))


@pytest.mark.parametrize(
    ("above", "below", "exact"),
    [
        (r.up_add, r.down_add, lambda a, b: a + b),
        (r.up_mul, r.down_mul, lambda a, b: a * b),
        (r.up_div, lambda a, b: -r.up_div(-a, b), lambda a, b: a / b),
    ],
)
def test_operations_enclose_the_exact_result_within_two_steps(above, below, exact):
    for a in _numbers(25):
        for b in _numbers(25):
            if above is r.up_div and b == 0.0:
                continue
            truth = exact(_exact(a), _exact(b))
            hi, lo = above(a, b), below(a, b)
            assert np.isinf(hi) or _exact(hi) >= truth
            assert np.isinf(lo) or _exact(lo) <= truth
            if np.isfinite(hi) and np.isfinite(lo):
                assert hi <= np.nextafter(np.nextafter(lo, np.inf), np.inf)


@pytest.mark.parametrize(
    ("above", "below", "exact"),
    [
        (r.up_add, r.down_add, lambda a, b: a + b),
        (r.up_mul, r.down_mul, lambda a, b: a * b),
        (r.up_div, lambda a, b: -r.up_div(-a, b), lambda a, b: a / b if b else None),
    ],
)
def test_operations_of_arrays_enclose_every_exact_result(above, below, exact):
    numbers = _numbers(40)
    a, b = (one.ravel() for one in np.meshgrid(numbers, numbers))
    finite = np.flatnonzero(np.isfinite(above(a, b)) & np.isfinite(below(a, b)))
    for part in (np.arange(len(a)), finite):  # with infinite results among them, and without
        hi, lo = above(a[part], b[part]), below(a[part], b[part])
        for x, y, high, low in zip(a[part], b[part], hi, lo, strict=True):
            truth = exact(_exact(x), _exact(y))
            assert truth is None or np.isinf(high) or _exact(high) >= truth
            assert truth is None or np.isinf(low) or _exact(low) <= truth
        assert (hi[np.isfinite(hi)] <= _steps_above(lo, 4)[np.isfinite(hi)]).all()


def _steps_above(x: np.ndarray, steps: int) -> np.ndarray:
    with np.errstate(all="ignore"):
        for _ in range(steps):
            x = np.nextafter(x, np.inf)
    return x


def test_next_doubles_of_arrays_are_beyond_by_two_steps_at_most():
    edges = np.ldexp(1.0, np.arange(-1074, 1024))
    beside = [edges, np.nextafter(edges, 0.0), np.nextafter(edges, np.inf)]
    x = np.concatenate([*beside, _numbers(1000)])
    x = np.concatenate([x, -x])
    x = x[np.abs(x) < r.LARGEST]
    for part in (x, np.append(x, [np.inf, -np.inf, np.nan])):
        high, low = r.up(part)[: len(x)], r.down(part)[: len(x)]
        assert (high > x).all()
        assert (low < x).all()
        assert (high <= _steps_above(x, 2)).all()
        assert (low >= -_steps_above(-x, 2)).all()
    assert r.up(np.array([-np.inf, np.inf, np.nan])).tolist() == [-r.LARGEST, np.inf, np.inf]
    for ulps in (0, 1, 4, 12):
        with np.errstate(over="ignore"):
            needed = x + ulps * np.spacing(np.abs(x))
        assert (r.up_ulps(x, ulps) >= needed).all()
        assert (r.down_ulps(-x, ulps) <= -needed).all()
        assert (r.up_ulps(x, ulps) <= _steps_above(x, 4 * (ulps + 2))).all()


def test_sums_that_are_doubles_are_exact_and_others_are_moved():
    assert r.up_add(1.0, 2.0) == 3.0
    assert r.down_add(0.75, -0.5) == 0.25
    assert r.up_add(1.0, 1e-30) == np.nextafter(1.0, 2.0)
    assert r.down_add(1.0, 1e-30) == 1.0
    assert r.up_add(1e308, 1e308) == np.inf
    assert r.down_add(1e308, 1e308) == r.LARGEST


def test_zero_times_infinity_is_zero_only_for_a_zero_that_was_not_rounded():
    assert r.up_mul(0.0, np.inf) == 0.0
    assert r.up_mul(1e-200, 1e-200) == r.SMALLEST
    assert r.up_mul(np.nan, 1.0) == np.inf
    assert r.up_add(np.inf, -np.inf) == np.inf
    assert r.up(np.nan) == np.inf
    assert r.down(np.nan) == -np.inf


def test_gamma_is_above_the_exact_value_and_infinite_where_there_is_none():
    for n in (1, 10, 10**6, 2**50):
        exact = Fraction(n, 2**53) / (1 - Fraction(n, 2**53))
        assert exact <= _exact(r.gamma(n)) <= exact * (1 + Fraction(1, 10**15))
    assert r.gamma(2**53) == np.inf


def test_sums_of_many_terms_enclose_the_exact_sum():
    rng = np.random.default_rng(1)
    for count in (1, 2, 7, 1000):
        x = rng.standard_normal((3, count)) * 10.0 ** rng.integers(-8, 8, (3, count))
        high, low = r.up_sum(x, axis=1), r.down_sum(x, axis=1)
        for row, hi, lo in zip(x, high, low, strict=True):
            truth = sum(map(_exact, row))
            size = float(np.sum(np.abs(row)))
            assert _exact(lo) <= truth <= _exact(hi)
            assert hi - lo <= 5 * (count + 2) * 2.0**-53 * size
    assert r.up_sum(np.zeros(5)) == 0.0
    assert r.up_sum(np.array([1.0, np.inf, -np.inf])) == np.inf


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-200, 1e-160, 1.0, 1e160, 1e300])
def test_norms_enclose_at_every_scale(scale):
    rng = np.random.default_rng(2)
    for count in (1, 2, 5, 100):
        x = scale * rng.integers(-9, 9, count).astype(float)
        if not x.any():
            continue
        truth = sum(_exact(v) ** 2 for v in x)
        hi, lo = r.up_norm(x), r.down_norm(x)
        assert _exact(lo) ** 2 <= truth <= _exact(hi) ** 2
        assert float(hi) <= float(lo) * (1 + 8 * (count + 2) * 2.0**-53) + 20 * r.SMALLEST


def test_norms_of_mixed_scales_neither_vanish_nor_raise():
    assert r.up_norm(np.array([1.0, 1e-200])) > 1.0
    assert r.up_norm(np.array([np.inf, 1.0])) == np.inf
    assert r.up_norm(np.array([np.nan, 1.0])) == np.inf
    assert r.up_norm(np.zeros(3)) == 0.0
    assert r.up_norm(np.zeros(0)) == 0.0
    assert r.up_norm(np.array([1.7e308, 1.7e308])) == np.inf
    assert r.down_norm(np.array([1.7e308, 1.7e308])) >= 1.7e308
    assert r.up_norm(np.ones((2, 3)), axis=1).shape == (2,)
    assert r.down_norm(np.array([[3.0, 4.0], [0.0, 0.0]]), axis=1)[1] == 0.0


def test_powers_by_products_are_above():
    for x in (0.0, 0.1, 1.5, 1e100):
        for k in range(6):
            value = r.up_pow(x, k)
            assert np.isinf(value) or _exact(value) >= _exact(x) ** k
    assert r.up_pow(0.1, 3) <= 0.001 * (1 + 1e-15)


def test_steps_of_elementary_functions_move_both_ends():
    x = np.array([1.0, -1.0, 0.0, 1e308, -np.inf, np.nan])
    high, low = r.up_ulps(x, 4), r.down_ulps(x, 4)
    assert high[0] >= 1.0 + 4 * 2.0**-52
    assert low[1] <= -1.0 - 4 * 2.0**-52
    assert high[2] >= 4 * r.SMALLEST
    assert high[4] == -np.inf
    assert high[5] == np.inf
    assert low[5] == -np.inf


def test_numbers_times_powers_of_two_are_rounded_up_only_where_they_are_subnormal():
    x = np.array([1.0, 1 / 3, -1 / 3, 5e-324, 0.0])
    for e in (-1074, -1060, -3, 0, 900):
        found = r.up_ldexp(x, e)
        for one, high in zip(x, found, strict=True):
            truth = _exact(one) * Fraction(2) ** e
            assert _exact(high) >= truth
            assert _exact(high) <= truth + 2 * Fraction(5e-324)
            assert abs(high) < r.SMALLEST_NORMAL or _exact(high) == truth
    assert r.up_ldexp(1.0, 2000) == np.inf
    assert r.up_ldexp(np.nan, 3) == np.inf


@pytest.mark.parametrize("scale", [1.0, 1e-162, 1e-320, 1e150])
def test_products_of_nonnegative_matrices_are_at_least_the_exact_ones(scale):
    rng = np.random.default_rng(0)
    A, B = scale * rng.random((3, 50)), rng.random((50, 2)) * min(scale, 1.0)
    for a, b in ((A, B), (A, B[:, 0])):
        found = r.up_matmul(a, b).reshape(3, -1)
        for i in range(3):
            for j, column in enumerate(b.reshape(50, -1).T):
                truth = sum(_exact(x) * _exact(y) for x, y in zip(a[i], column, strict=True))
                assert truth <= _exact(found[i, j])
                assert _exact(found[i, j]) <= truth * (1 + Fraction(1e-13)) + 200 * Fraction(5e-324)


def test_sums_over_runs_are_at_least_the_exact_ones():
    a = np.random.default_rng(0).random(1000)
    found = r.up_reduceat(a, np.array([0, 300, 301]))
    for high, part in zip(found, np.split(a, [300, 301]), strict=True):
        assert _exact(high) >= sum(map(_exact, part))
    assert (r.up_reduceat(np.zeros(5), np.array([0, 2])) == 0.0).all()


def test_rounding_units_add_up_to_gamma():
    for n in (1, 2, 100, 2**40):
        exact = Fraction(n, 2**53) / (1 - Fraction(n, 2**53))
        assert exact <= _exact(r.gamma(n)) <= exact * (1 + Fraction(1, 2**51))
    assert r.gamma(2**53) == np.inf
