"""Removable singularities: values, gradients and Hessian products near them, from many digits."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
import sympy as sp

import slomodel
from slomodel import functions as fn
from slomodel.ir import build
from slomodel.rewrite.elementwise.matching import whole
from slomodel.rewrite.singularities.factored_products import factored

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")

Formula = Callable[..., object]
E, L, S = mp.exp, mp.log, mp.sqrt
NEAR = (0.0, 1e-100, -1e-12, 1e-6, -0.01, 0.4, -1.3, 2.5)
SMALL = (0.0, 1e-100, -1e-12, 1e-6, -0.01, 0.4, -0.7)


def quotient(text: str, function: Formula, points: tuple[float, ...] = NEAR) -> tuple[object, ...]:
    return text, lambda x: function(x) / x, points


ONE: list[tuple[object, ...]] = [
    quotient("(exp(x) - 1) / x", mp.expm1, (*NEAR, -800.0, 300.0)),
    quotient("(1 - exp(-x)) / x", lambda x: -mp.expm1(-x), (*NEAR, 800.0)),
    quotient("expm1(2 * x) / x", lambda x: mp.expm1(2 * x)),
    quotient("sinh(3 * x) / (3 * x)", lambda x: mp.sinh(3 * x) / 3),
    quotient("tanh(x) / x", mp.tanh, (*NEAR, 1e100)),
    quotient("tan(x) / x", mp.tan, SMALL),
    quotient("atan(x) / x", mp.atan),
    quotient("asin(x) / x", mp.asin, SMALL),
    quotient("asinh(x) / x", mp.asinh),
    quotient("atanh(x) / x", mp.atanh, SMALL),
    quotient("log(1 + x) / x", mp.log1p, SMALL),
    quotient("erf(x) / x", mp.erf),
    quotient("(1 - cos(x)) / x", lambda x: 2 * mp.sin(x / 2) ** 2),
    quotient("(1 - cos(3 * x)) / x^2", lambda x: 2 * mp.sin(3 * x / 2) ** 2 / x),
    quotient("(cosh(x) - 1) / x^2", lambda x: 2 * mp.sinh(x / 2) ** 2 / x),
    quotient("(x - sin(x)) / x^3", lambda x: (x - mp.sin(x)) / x**2),
    quotient("(exp(x) - 1 - x) / x^2", lambda x: (E(x) - 1 - x) / x),
    ("sin(x) / expm1(x)", lambda x: mp.sin(x) / mp.expm1(x), NEAR),
    ("x / (exp(x) - 1)", lambda x: x / mp.expm1(x), (*NEAR, 720.0, -800.0)),
    ("x / (1 - exp(-x))", lambda x: -x / mp.expm1(-x), (*NEAR, 800.0)),
    ("x * exp(x) / (exp(x) - 1)", lambda x: -x / mp.expm1(-x), (*NEAR, 800.0)),
    (
        "0.1 * (x + 40) / (1 - exp(-(x + 40) / 10))",
        lambda x: -(x + 40) / 10 / mp.expm1(-(x + 40) / 10),
        (-40.0, -40.0000001, -65.0, 20.0),
    ),
    ("x^2 * exp(x) / (exp(x) - 1)^2", lambda x: (x / 2 / mp.sinh(x / 2)) ** 2, (0.0, 0.3, -4.0)),
    ("x / tanh(x)", lambda x: x / mp.tanh(x), (*NEAR, 1e100)),
    ("x / sinh(x)", lambda x: x / mp.sinh(x), NEAR),
    ("x / log(1 + x)", lambda x: x / mp.log1p(x), (*SMALL, 1e200)),
    ("1 / tanh(x) - 1 / x", lambda x: 1 / mp.tanh(x) - 1 / x, (*NEAR, 800.0)),
    ("cosh(2 * x) / sinh(2 * x) - 1 / (2 * x)", lambda x: 1 / mp.tanh(2 * x) - 1 / (2 * x), NEAR),
    ("1 / (exp(x) - 1) - 1 / x", lambda x: 1 / mp.expm1(x) - 1 / x, (*NEAR, 30.0)),
    ("log(sinh(x) / x)", lambda x: L(mp.sinh(x) / x), (*NEAR, 800.0)),
    ("log((1 - exp(-x)) / x)", lambda x: L(-mp.expm1(-x) / x), (*NEAR, 800.0, -800.0)),
    ("log(1 - exp(-x)) - log(x)", lambda x: L(-mp.expm1(-x) / x), (1e-100, 1e-9, 0.3, 800.0)),
    (
        "(1 - exp(-x)) / x - exp(-x)",
        lambda x: -mp.expm1(-x) / x - E(-x),
        (1e-100, -1e-12, 1e-6, 0.4, -1.3, 30.0),
    ),
    ("exp(x) - x - 1", lambda x: E(x) - 1 - x, (1e-12, -1e-6, 0.4, -3.0, 30.0)),
    ("x - log(1 + x)", lambda x: x - mp.log1p(x), (1e-12, -1e-6, 0.4, -0.9, 30.0)),
    ("log1p(0.3 * expm1(x))", lambda x: mp.log1p(mp.mpf(0.3) * mp.expm1(x)), (1e-12, 3.0, 800.0)),
]
SHARES = (0.0, 1e-12, -1e-6, 1e-3, 0.2, 1.5)
CLOSE = [(a, a * (1.0 + q)) for a in (1e-5, 300.0) for q in SHARES]
TWO: list[tuple[object, ...]] = [
    ("(x^y - 1) / y", lambda x, y: (x**y - 1) / y, [(a, q) for a in (0.3, 7.0) for q in SHARES]),
    (
        "(x^(1 - y) - 1) / (1 - y)",
        lambda x, y: (x ** (1 - y) - 1) / (1 - y),
        [(a, 1.0 + q) for a in (0.3, 7.0) for q in SHARES],
    ),
    ("log(1 + y * x) / y", lambda x, y: mp.log1p(y * x) / y, [(0.3, q) for q in SHARES]),
    ("(1 + y * x)^(-1 / y)", lambda x, y: (1 + y * x) ** (-1 / y), [(0.3, q) for q in SHARES]),
    ("(1 - exp(-x * y)) / (x * y)", lambda x, y: -mp.expm1(-x * y) / (x * y), [(2.0, 0.0)]),
    ("(x - y) / log(x / y)", lambda x, y: (x - y) / L(x / y), CLOSE),
    ("(x - y) / (log(x) - log(y))", lambda x, y: (x - y) / L(x / y), CLOSE),
    ("(log(y) - log(x)) / (x - y)", lambda x, y: -L(x / y) / (x - y), CLOSE),
    (
        "x * (exp(-x) - exp(-y)) / (y - x)",
        lambda x, y: x * (E(-x) - E(-y)) / (y - x),
        [(2.0, 2.0 + q) for q in SHARES],
    ),
]
CASES = [
    *((text, formula, [(x,) for x in points]) for text, formula, points in ONE),  # type: ignore[attr-defined]
    *TWO,
]


def exact(formula: Formula, point: tuple[float, ...], v: tuple[float, ...]) -> list[float]:
    """The value and its first two derivatives along v, at the limit where it is 0/0."""
    with mp.workdps(700):
        h = mp.mpf(10) ** -60 * min([abs(mp.mpf(x)) for x in point if x] or [mp.mpf(1)])
        shifts = [mp.mpf(k) * h for k in (-3, -1, 1, 3)]
        at = [formula(*(mp.mpf(x) + t * e for x, e in zip(point, v, strict=True))) for t in shifts]
        value = (9 * (at[1] + at[2]) - at[0] - at[3]) / 16
        slope = (27 * (at[2] - at[1]) - at[3] + at[0]) / (48 * h)
        second = (at[3] + at[0] - at[1] - at[2]) / (8 * h * h)
        return [float(mp.re(one)) for one in (value, slope, second)]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("backend", ["numpy", "numexpr"])
@pytest.mark.parametrize(("text", "formula", "points"), CASES, ids=[str(one[0]) for one in CASES])
def test_values_and_derivatives(
    text: str, formula: Formula, points: list[tuple[float, ...]], backend: str
) -> None:
    names = ("x", "y")[: len(points[0])]
    model = slomodel.compile(f"var {', '.join(names)}\nminimize {text}", backend=backend)
    v = (1.0,) if len(names) == 1 else (0.6, -0.8)
    for point in points:
        value, slope, second = exact(formula, point, v)
        size = max(abs(x) for x in point)
        assert model.value(point) == pytest.approx(value, rel=1e-13, abs=1e-200)
        # Derivatives of even functions vanish at 0: their terms have the size of the point.
        assert model.gradient(point) @ v == pytest.approx(slope, rel=1e-12, abs=1e-15 * size)
        product = model.hvp(point, v) @ v
        assert product == pytest.approx(second, rel=1e-11, abs=1e-15)


def test_sums_over_arrays_and_other_targets() -> None:
    """A yield curve of Nelson and Siegel, whose first maturity is 0, and gating rates."""
    text = (
        "dim n\ndata t[n], y[n]\nvar b[3], s init 1\n"
        "let u = t / s\nlet level = (1 - exp(-u)) ./ u\n"
        "minimize sumsq(y - b[0] - b[1] * level - b[2] * (level - exp(-u)))"
    )
    data = {"t": np.array([0.0, 1e-9, 0.5, 2.0, 30.0]), "y": np.arange(5.0)}
    with mp.workdps(50):
        levels = [-mp.expm1(-mp.mpf(t)) / t if t else mp.mpf(1) for t in data["t"]]
        rest = [
            y - 1 - 2 * level - 3 * (level - E(-mp.mpf(t)))
            for y, t, level in zip(data["y"], data["t"], levels, strict=True)
        ]
        want = float(sum(one**2 for one in rest))
    for backend in ("numpy", "numexpr"):
        model = slomodel.compile(text, data=data, backend=backend)
        assert model.value([1.0, 2.0, 3.0, 1.0]) == pytest.approx(want, rel=1e-14)
        assert np.isfinite(model.gradient([1.0, 2.0, 3.0, 1.0])).all()


def test_bounds_and_sympy() -> None:
    """The second derivative of (exp(x) - 1)/x increases: on [-1, 1] it is largest at 1."""
    x = sp.Symbol("x", real=True)
    model = slomodel.compile((sp.exp(x) - 1) / x, variables=[x])
    found = model.bounds([0.0], 1.0)
    largest = float(mp.e - 2)
    assert largest <= found.L1 <= 1.5 * largest
    assert 6.0 - 2.0 * float(mp.e) <= found.L2
    assert np.isfinite(found.L2)


def test_what_has_a_pole_stays() -> None:
    for text in ("sin(x) / x^3", "1 / (exp(x) - 1)", "(x^2 - 1) / x", "log(x) / x"):
        model = slomodel.compile(f"var x init 1\nminimize {text}", backend="numpy")
        assert not np.isfinite(model.value([0.0]))


def test_the_number_of_a_product_is_exact() -> None:
    x, y = build.variable("x", ()), build.variable("y", ())
    product = factored(whole(fn.div(fn.div(x, fn.neg(y)), 0.1)))
    assert product is not None
    assert product.number == -1 / Fraction(0.1) != -10
