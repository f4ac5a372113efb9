"""Expressions in upper bounds against exact rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slomodel.bounds.arithmetic import upper_bounds
from slomodel.bounds.arithmetic.upper_bounds import FLOOR, floored, rounded_up

_BOUNDS = (
    st.floats(0.0, 1e60)
    | st.floats(0.0, 1e-300)
    | st.floats(0.0, 4.0)
    | st.sampled_from([0.0, 5e-324, FLOOR, 1 / 3, 1e-200])
)


@settings(deadline=None)
@given(st.lists(_BOUNDS, min_size=6, max_size=6))
def test_products_sums_and_roots_are_at_least_the_exact_ones(own):
    a, b, c, d, e, f = floored(np.array(own))
    A, B, C, D, E, F = map(Fraction, own)
    results = [
        (a * b * c * d, A * B * C * D),
        (a * b + c * d + e * f, A * B + C * D + E * F),
        ((a + b) * (c + d) * e, (A + B) * (C + D) * E),
    ]
    for x, exact in results:
        found = rounded_up(np.asarray(x))
        assert Fraction(float(found)) >= exact
        assert found == 0.0 if exact == 0 else found >= FLOOR
        assert Fraction(float(rounded_up(np.sqrt(found)))) ** 2 >= exact
        assert float(found) <= max(float(x) * (1.0 + 1e-13), FLOOR)


@settings(deadline=None)
@given(st.lists(_BOUNDS, min_size=2, max_size=40))
def test_long_sums_by_the_number_of_their_roundings(own):
    x = floored(np.array(own))
    total = np.cumsum(x)[-1]  # one after another
    assert Fraction(float(rounded_up(np.asarray(total), len(own)))) >= sum(map(Fraction, own))


def test_no_bound_stays_none_and_zeros_stay_exact():
    found = rounded_up(np.array([np.nan, np.inf, 0.0, 5e-324, -0.0]))
    assert list(found) == [np.inf, np.inf, 0.0, FLOOR, 0.0]
    assert floored(np.array(np.nan)) == np.inf


def test_without_its_factor_or_its_floor_the_rule_does_not_hold(monkeypatch: pytest.MonkeyPatch):
    x = np.full(3, 1 / 3 + 1e-15)
    exact = Fraction(float(x[0])) ** 2 + 2 * Fraction(float(x[0])) ** 3

    def holds() -> bool:
        growing = Fraction(float(rounded_up(x[0] * x[1] + 2.0 * x[0] * x[1] * x[2]))) >= exact
        small = floored(np.array([1e-200]))[0] * floored(np.array([1e-150]))[0] > 0.0
        return growing and small

    assert holds()
    with monkeypatch.context() as context:
        context.setattr(upper_bounds, "_GROWTH", 1.0)
        context.setattr(upper_bounds, "_factor", lambda roundings: 1.0)
        broken = [
            Fraction(float(rounded_up(np.asarray(a * a)))) >= Fraction(float(a)) ** 2
            for a in np.random.default_rng(0).random(20)
        ]
        assert not all(broken)
    with monkeypatch.context() as context:
        context.setattr(upper_bounds, "FLOOR", 0.0)
        assert not holds()
