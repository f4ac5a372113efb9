"""Logarithms of 1 - p, and 1 - p itself, for p = w + (1 - w) F: value and slopes against mpmath."""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest

import slomodel

Exact = Callable[[mp.mpf, mp.mpf], mp.mpf]
POINTS = ((0.2, -40.0), (1e-12, -3.0), (0.25, 0.4), (0.9, 5.0), (0.3, 30.0), (0.3, 700.0))


def _sigmoid(x: mp.mpf) -> mp.mpf:
    return 1 / (1 + mp.exp(-x))


def _normal(x: mp.mpf) -> mp.mpf:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def _guessing(w: mp.mpf, x: mp.mpf) -> mp.mpf:
    return mp.log((1 - w) * _sigmoid(-x))


def _probit(w: mp.mpf, x: mp.mpf) -> mp.mpf:
    return mp.log((1 - w) * _normal(-x))


CASES: list[tuple[str, Exact]] = [
    ("log(1 - (w + (1 - w) * sigmoid(x)))", _guessing),
    ("log1p(-(sigmoid(x) * (1 - w) + w))", _guessing),
    ("log(1 - w - (1 - w) / (1 + exp(-x)))", _guessing),
    ("log(1 - ((1 - v) + v * sigmoid(x)))", _guessing),
    ("1 - (w + (1 - w) * sigmoid(x))", lambda w, x: (1 - w) * _sigmoid(-x)),
    ("log(1 - (w + (1 - w) * normcdf(x)))", _probit),
    ("log(1 - (w + (1 - w) * (0.5 + 0.5 * erf(x / sqrt(2)))))", _probit),
    ("log(1 - (w + (1 - w) * (0.5 * erfc(-x / sqrt(2)))))", _probit),
    (
        "log(1 - (w + (1 - w) * (1 - exp(-(x / 50)^2))))",
        lambda w, x: mp.log(1 - w) - (x / 50) ** 2,
    ),
]


@pytest.mark.parametrize(("text", "exact"), CASES, ids=[text for text, _ in CASES])
def test_values_and_slopes_where_p_is_near_1(text: str, exact: Exact) -> None:
    model = slomodel.compile(f"var w, x let v = 1 - w minimize {text}", backend="numpy")
    with mp.workdps(60):
        for point in POINTS:
            at = tuple(map(mp.mpf, point))
            wanted = exact(*at)
            # v is a rounded 1 - w, which moves the value by an ulp of its slope.
            assert model.value(point) == pytest.approx(float(wanted), rel=1e-14, abs=1e-300)
            slope = float(mp.diff(exact, at, (0, 1)))
            assert model.gradient(point)[1] == pytest.approx(slope, rel=1e-12, abs=1e-300)
            along = float(mp.diff(exact, at, (1, 1)))
            product = model.hvp(point, np.array([0.0, 1.0]))
            assert product[0] == pytest.approx(along, rel=1e-9, abs=1e-15)
