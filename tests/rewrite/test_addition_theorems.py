"""Differences of one function at two arguments, and of fractions, in 1,100 digits."""

from __future__ import annotations

import warnings

import mpmath as mp
import numpy as np
import pytest

import slomodel
from slomodel.errors import ModelWarning
from tests.rewrite.exact import EVERYWHERE, POSITIVE, Exact, allowed, as_double, derivatives

MODERATE = tuple(x for x in EVERYWHERE if abs(x) < 1e6)
NORMAL = tuple(x for x in EVERYWHERE if abs(x) > 1e-160 and abs(x) != 1.0)


def _sigmoid(x: mp.mpf) -> mp.mpf:
    return 1 / (1 + mp.exp(-x)) if x > 0 else mp.exp(x) / (1 + mp.exp(x))


def _cbrt(x: mp.mpf) -> mp.mpf:
    return mp.sign(x) * mp.cbrt(abs(x))


CASES: list[tuple[str, Exact, tuple[float, ...]]] = [
    ("sqrt(x + 1) - sqrt(x)", lambda x: mp.sqrt(x + 1) - mp.sqrt(x), POSITIVE),
    ("3*sqrt(x) - 3*sqrt(x + 0.5)", lambda x: 3 * (mp.sqrt(x) - mp.sqrt(x + 0.5)), POSITIVE),
    ("cbrt(x + 1) - cbrt(x)", lambda x: _cbrt(x + 1) - _cbrt(x), (*POSITIVE, -30.0, -1e20)),
    ("(x + 1)^0.25 - x^0.25", lambda x: mp.root(x + 1, 4) - mp.root(x, 4), POSITIVE),
    ("1/sqrt(x) - 1/sqrt(x + 1)", lambda x: 1 / mp.sqrt(x) - 1 / mp.sqrt(x + 1), POSITIVE),
    ("x^-1.5 - (x + 1)^-1.5", lambda x: x ** mp.mpf(-1.5) - (x + 1) ** mp.mpf(-1.5), POSITIVE[3:]),
    ("log(x + 3) - log(x + 1)", lambda x: mp.log(x + 3) - mp.log(x + 1), (0.0, *POSITIVE)),
    ("log1p(x) - log(x)", lambda x: mp.log(x + 1) - mp.log(x), POSITIVE),
    ("exp(x + 0.25) - exp(x)", lambda x: mp.exp(x + 0.25) - mp.exp(x), EVERYWHERE),
    ("tanh(x + 1) - tanh(x)", lambda x: mp.tanh(x + 1) - mp.tanh(x), EVERYWHERE),
    ("sigmoid(x + 1) - sigmoid(x)", lambda x: _sigmoid(x + 1) - _sigmoid(x), EVERYWHERE),
    (
        "log(tanh(x + 1) - tanh(x))",
        lambda x: (
            mp.log(-2 * mp.expm1(-2)) - mp.log1p(mp.exp(-2 * x - 2)) - mp.log1p(mp.exp(2 * x))
        ),
        EVERYWHERE,
    ),
    (
        "softplus(x) - softplus(x + 2)",
        lambda x: mp.log1p(mp.exp(x)) - mp.log1p(mp.exp(x + 2)),
        EVERYWHERE,
    ),
    ("sin(x + 0.125) - sin(x)", lambda x: mp.sin(x + 0.125) - mp.sin(x), MODERATE),
    ("cos(x + 0.125) - cos(x)", lambda x: mp.cos(x + 0.125) - mp.cos(x), MODERATE),
    ("tan(x + 0.125) - tan(x)", lambda x: mp.tan(x + 0.125) - mp.tan(x), MODERATE),
    ("cosh(x + 0.125) - cosh(x)", lambda x: mp.cosh(x + 0.125) - mp.cosh(x), EVERYWHERE),
    ("sinh(x + 0.125) - sinh(x)", lambda x: mp.sinh(x + 0.125) - mp.sinh(x), EVERYWHERE),
    ("atan(x + 1) - atan(x)", lambda x: mp.atan(x + 1) - mp.atan(x), MODERATE),
    ("0.5 - atan(x)/pi", lambda x: 0.5 - mp.atan(x) / mp.pi, EVERYWHERE),
    ("1/x - 1/(x + 1)", lambda x: 1 / x - 1 / (x + 1), NORMAL),
    ("1/(x - 1) - 2/x + 1/(x + 1)", lambda x: 1 / (x - 1) - 2 / x + 1 / (x + 1), NORMAL),
    ("1 - x/(x + 1)", lambda x: 1 - x / (x + 1), NORMAL),
    ("x/(x + 2) - 1", lambda x: x / (x + 2) - 1, NORMAL),
]


@pytest.mark.sampled(10)
@pytest.mark.parametrize(("text", "exact", "points"), CASES, ids=[case[0] for case in CASES])
def test_values_and_slopes(text: str, exact: Exact, points: tuple[float, ...]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # the cube root has a kink
        model = slomodel.compile(f"var x minimize {text}", backend="numpy")
    for x in points[::3]:
        wanted = derivatives(exact, (x,), 2)
        with np.errstate(all="ignore"):
            results = model.value(np.array([x])), float(model.gradient(np.array([x]))[0])
        for order, got in enumerate(results):
            want, limit = as_double(wanted[order]), allowed(wanted, order, (x,))
            assert got == want or abs(got - want) <= limit, (order, x, got, want)


@pytest.mark.parametrize(
    "text",
    [
        "sum(y[i] * (sqrt(x[i] + 2) - sqrt(x[i])) for i in n)",
        "sum(y[i] * (sqrt(x[i] + 2) + x[i] - 5 - sqrt(x[i]) - x[i] + 5) for i in n)",
        "sum((y[i] * sqrt((x[i] + 1)^2 + 2) - y[i] * sqrt(x[i]^2 + 2 * x[i] + 1)) "
        "* (x[i] + 1) / sqrt(x[i]) for i in n)",
    ],
)
def test_common_factors_and_other_terms(text: str) -> None:
    model = slomodel.compile(f"dim n data y[n] var x[n] minimize {text}", data={"y": [2.0, 3.0]})
    x = [1e12, 3e12]
    with mp.workdps(50):
        if "^" in text:
            terms = [y / mp.sqrt(z) for y, z in zip((2, 3), x, strict=True)]
        else:
            terms = [2 * y / (mp.sqrt(z + 2) + mp.sqrt(z)) for y, z in zip((2, 3), x, strict=True)]
        wanted = as_double(sum(terms))
    assert model.value(np.array(x)) == pytest.approx(
        wanted, rel=1e-11 if "^" in text else 1e-15, abs=0.0
    )


@pytest.mark.parametrize("text", ["sqrt(3 * 0.58 * x) - sqrt(1.74 * x)", "sqrt(2 * x) - sqrt(x)"])
def test_arguments_that_differ_by_no_number_are_left(text: str) -> None:
    """3 times the double 0.58 is not the double 1.74."""
    model = slomodel.compile(f"var x minimize {text}", backend="numpy")
    c, d = (3 * 0.58, 1.74) if "58" in text else (2.0, 1.0)
    for x in (0.3, 7.0, 1e12):
        assert model.value([x]) == np.sqrt(c * x) - np.sqrt(d * x)
