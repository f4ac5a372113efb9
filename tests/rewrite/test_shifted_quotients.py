"""Quotients of an exponential and a sum of exponentials whose square is beyond the doubles."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

import slomodel

DECLARED = "var x, y[3] let u[k in range(3)] = x * y[k] minimize "
POINT = np.array([1.5, 320.0, 320.4, 319.1])


def _exponents(v: tuple[mp.mpf, ...]) -> list[mp.mpf]:
    return [v[0] * one for one in v[1:]]


def _shares(v: tuple[mp.mpf, ...], double: int) -> list[mp.mpf]:
    """exp(u_k) / sum(exp(u_l) exp(double u_l))."""
    u = _exponents(v)
    total = sum(mp.exp((1 + double) * one) for one in u)
    return [mp.exp(one) / total for one in u]


CASES = {
    "sum((exp(u[k]) / sum(exp(u)) - 0.3)^2 for k in range(3))": lambda v: sum(
        (one - mp.mpf("0.3")) ** 2 for one in _shares(v, 0)
    ),
    "sum(exp(u[k] + log(k + 2)) * u[k] for k in range(3)) / sum(exp(u))": lambda v: sum(
        (k + 2) * one * u
        for k, (one, u) in enumerate(zip(_shares(v, 0), _exponents(v), strict=True))
    ),
    "log(3 * exp(x) / sum(exp(u) .* exp(2 * u)))": lambda v: mp.log(
        3 * mp.exp(v[0]) / sum(mp.exp(3 * one) for one in _exponents(v))
    ),
    "sum((k + 1) * exp(2 * u[k] - 300) / sum(exp(u)) for k in range(3))": lambda v: sum(
        (k + 1) * mp.exp(u - 300) * one
        for k, (one, u) in enumerate(zip(_shares(v, 0), _exponents(v), strict=True))
    ),
    "exp(x + 479) / sum(exp(u))": lambda v: (
        mp.exp(v[0] + 479) / sum(mp.exp(one) for one in _exponents(v))
    ),
}


@pytest.mark.parametrize("text", CASES)
def test_products_with_the_hessian_are_right(text: str) -> None:
    model, exact = slomodel.compile(DECLARED + text, backend="numpy"), CASES[text]
    along = np.array([1.0, -0.5, 2.0, 0.25])
    with mp.workdps(60):
        at = [mp.mpf(one) for one in POINT]

        def line(t: mp.mpf) -> mp.mpf:
            return exact(tuple(a + t * mp.mpf(b) for a, b in zip(at, along, strict=True)))

        value, slope, curvature = (float(mp.diff(line, 0, k)) for k in range(3))
    scale = max(abs(value), abs(slope), abs(curvature))
    assert model.value(POINT) == pytest.approx(value, rel=1e-12)
    assert model.gradient(POINT) @ along == pytest.approx(slope, rel=1e-10, abs=1e-12 * scale)
    assert model.hvp(POINT, along) @ along == pytest.approx(curvature, rel=1e-9, abs=1e-11 * scale)
