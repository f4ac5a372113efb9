"""Differences that cancel and quotients that overflow, by conjugates of roots, functions for
differences of tails, inverse functions at the ends of their domains, and saturations.
"""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

import slomodel
from tests.marks import only
from tests.rewrite.test_edges import Formula, exact, model_of

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.NonsmoothWarning")

Point = tuple[float, ...]
ROOTS: list[tuple[str, Formula, list[Point]]] = [
    ("log(sqrt(x^2 + 1) - x)", lambda x: -mp.asinh(x), [(1e-9,), (1e8,), (-1e8,)]),
    ("log(x - sqrt(x^2 - 1))", lambda x: -mp.acosh(x), [(1e8,), (1.0 + 2.0**-30,)]),
    ("sqrt(x^2 + 1) - x", lambda x: mp.sqrt(x * x + 1) - x, [(1e8,), (1e3,), (-1e8,), (0.3,)]),
    ("x + sqrt(1 + x^2)", lambda x: x + mp.sqrt(x * x + 1), [(-1e8,), (1e8,)]),
    ("x - sqrt(x^2 - 1)", lambda x: x - mp.sqrt(x * x - 1), [(1e8,), (2.0,)]),
    ("sqrt(x^2 + y^2) - x", lambda x, y: mp.hypot(x, y) - x, [(1e8, 1.0), (1e3, 1e-3)]),
    (
        "(-x + sqrt(x^2 - 4 * y)) / 2",
        lambda x, y: (-x + mp.sqrt(x * x - 4 * y)) / 2,
        [(1e8, 1.0), (-1e8, 1.0), (3.0, 2.0)],
    ),
    (
        "(x - sqrt(x^2 - 4 * 3 * y)) / (2 * y)",
        lambda x, y: (x - mp.sqrt(x * x - 12 * y)) / (2 * y),
        [(1.0, 1e-12), (-1e8, 1.0), (1e8, 1e-3)],
    ),
    (
        "((x + y + 1) - sqrt((x + y + 1)^2 - 4 * x * y)) / 2",
        lambda x, y: (x + y + 1 - mp.sqrt((x + y + 1) ** 2 - 4 * x * y)) / 2,
        [(1e8, 1.0), (1e-12, 1.0), (1e10, 1e-3)],
    ),
]


def _normal(x: object) -> object:
    return mp.erfc(-x / mp.sqrt(2)) / 2  # type: ignore[operator]


def _logistic(x: object) -> object:
    return 1 / (1 + mp.exp(-x))  # type: ignore[operator]


PAIRS: list[Point] = [(10.0, 9.5), (1.0, 1.0 - 1e-9), (-30.0, -29.0), (0.3, -0.4), (2.0, 2.0)]
DISTRIBUTIONS: list[tuple[str, Formula, list[Point]]] = [
    ("normcdf(x) - normcdf(y)", lambda x, y: _normal(x) - _normal(y), PAIRS),
    ("erf(x) - erf(y)", lambda x, y: mp.erf(x) - mp.erf(y), PAIRS[:2] + PAIRS[3:]),
    ("y * erfc(x + y) - y * erfc(x)", lambda x, y: y * (mp.erfc(x + y) - mp.erfc(x)), PAIRS[:1]),
    ("sigmoid(x) - sigmoid(y)", lambda x, y: _logistic(x) - _logistic(y), [*PAIRS, (41.0, 40.0)]),
    (
        "tanh(x + y) - tanh(x)",
        lambda x, y: mp.tanh(x + y) - mp.tanh(x),
        [(20.0, 1.0), (1.0, 2.0**-30), (-20.0, 19.0)],
    ),
    (
        "log(normcdf(x) - normcdf(y))",
        lambda x, y: mp.log(_normal(x) - _normal(y)),
        [(1.0 + 1e-9, 1.0), (39.0, 38.0)],
    ),
    (
        "log(0.5 * (erf(x) - erf(y)))",
        lambda x, y: mp.log((mp.erf(x) - mp.erf(y)) / 2),
        [(1.0 + 1e-9, 1.0)],
    ),
    (
        "log(1 + normcdf(x) - normcdf(y))",
        lambda x, y: mp.log(_normal(x) + _normal(-y)),
        [(-40.0, 20.0), (-9.0, 8.0), (0.5, 0.4), (9.0, 8.0), (-1.0, 0.5)],
    ),
    (
        "log(1 - (sigmoid(y) - sigmoid(x)))",
        lambda x, y: mp.log(_logistic(x) + _logistic(-y)),
        [(-800.0, 700.0), (0.5, 0.4), (-40.0, 0.3)],
    ),
]
ENDS: list[tuple[str, Formula, list[Point]]] = [
    ("acos(1 - x)", lambda x: mp.acos(1 - x), [(1e-30,), (1e-12,), (0.7,), (1.9,)]),
    ("acos(1 - x^2 / 2)", lambda x: mp.acos(1 - x * x / 2), [(1e-6,), (1.0,)]),
    ("acosh(1 + 2 * x^2)", lambda x: mp.acosh(1 + 2 * x * x), [(1e-12,), (3.0,)]),
    ("atanh(1 - x)", lambda x: mp.atanh(1 - x), [(1e-20,), (0.9,), (1.5,)]),
    ("1 - x / tan(x)", lambda x: 1 - x / mp.tan(x), [(1e-12,), (1e-6,), (2.0,)]),
    ("x / sin(x) - 1", lambda x: x / mp.sin(x) - 1, [(1e-12,), (0.3,)]),
    ("log(1 - sqrt(1 - x))", lambda x: mp.log(1 - mp.sqrt(1 - x)), [(1e-20,), (1e-9,), (0.9,)]),
    ("log(sqrt(4 + x) - 2)", lambda x: mp.log(mp.sqrt(4 + x) - 2), [(1e-20,), (1e-9,), (0.9,)]),
]
SQUARED_ARCS: list[tuple[str, Formula, list[Point]]] = [
    ("acos(1 - x)^2", lambda x: mp.acos(1 - x) ** 2, [(1e-20,), (1e-9,), (0.4,), (1.9,)]),
    ("acos(x)^2", lambda x: mp.acos(x) ** 2, [(1 - 2.0**-50,), (0.7,), (0.3,), (-0.99,)]),
    ("acosh(1 + x)^2", lambda x: mp.acosh(1 + x) ** 2, [(1e-20,), (1e-9,), (0.4,), (1e10,)]),
    ("asin(sqrt(x))^2", lambda x: mp.asin(mp.sqrt(x)) ** 2, [(1e-20,), (0.2,), (0.9,)]),
]
POWERS: list[tuple[str, Formula, list[Point]]] = [
    (
        f"{log}(10^(-x) + 10^(-y))",
        lambda x, y, base=base: mp.log(mp.mpf(10) ** -x + mp.mpf(10) ** -y) / mp.log(base),
        [(-400.0, 1.0), (400.0, 350.0), (0.0, 7.0), (3.0, 4.5)],
    )
    for log, base in (("log10", 10), ("log2", 2), ("log", mp.e))
]
QUOTIENTS: list[tuple[str, Formula, list[Point]]] = [
    ("sinh(x) / sinh(2 * x)", lambda x: mp.sinh(x) / mp.sinh(2 * x), [(1e-9,), (0.5,)]),
    ("sinh(x) / sinh(y)", lambda x, y: mp.sinh(x) / mp.sinh(y), [(800.0, 801.0), (-3.0, 0.5)]),
    ("cosh(x) / sinh(y)", lambda x, y: mp.cosh(x) / mp.sinh(y), [(-711.0, -712.0), (3.0, 60.0)]),
    ("3 * exp(x) / cosh(y)", lambda x, y: 3 * mp.exp(x) / mp.cosh(y), [(800.0, -799.0)]),
    (
        "y * x^4 / (3^4 + x^4)",
        lambda x, y: y * x**4 / (81 + x**4),
        [(1e5, 2.0), (1e-3, 2.0), (-3.0, 1.0), (1e60, 2.0)],
    ),
    (
        "x^y / (2^y + x^y)",
        lambda x, y: x**y / (mp.mpf(2) ** y + x**y),
        [(1e5, 4.0), (1e3, 2.5), (0.1, 3.0)],
    ),
]
LARGE: list[tuple[str, Formula, list[Point]]] = [
    (
        "exp(-x) * sinh(y)",
        lambda x, y: mp.exp(-x) * mp.sinh(y),
        [(750.0, 750.0), (800.0, -799.0), (-1.0, 2.0), (800.0, 650.0)],
    ),
    (
        "3 * cosh(y) * exp(-x) / 2",
        lambda x, y: 3 * mp.exp(-x) * mp.cosh(y) / 2,
        [(750.0, 750.0), (800.0, -799.0), (-1.0, 2.0)],
    ),
    (
        "x * (1 - 0.1 * exp(-x)) / (1 - exp(-x))",
        lambda x: x * (1 - mp.mpf(0.1) * mp.exp(-x)) / (1 - mp.exp(-x)),
        [(-800.0,), (800.0,), (-30.0,), (1e-9,)],
    ),
    (
        "x^2 * exp(x) / (exp(x) - 1)^2",
        lambda x: x**2 * mp.exp(x) / mp.expm1(x) ** 2,
        [(1e-9,), (-700.0,), (300.0,), (2.0,)],
    ),
    (
        "x - log(exp(x) + exp(y))",
        lambda x, y: -mp.log1p(mp.exp(y - x)),
        [(800.0, 700.0), (800.0, 900.0)],
    ),
    (
        "log(exp(x) + exp(y)) - y",
        lambda x, y: mp.log1p(mp.exp(x - y)),
        [(800.0, 700.0), (700.0, 800.0)],
    ),
    ("0.5 * x * (1 + erf(x / sqrt(2)))", lambda x: x * _normal(x), [(-9.0,), (-20.0,), (3.0,)]),
    (
        "y - (1 - exp(-x * y)) / x",
        lambda x, y: y + mp.expm1(-x * y) / x,
        [(1e-9, 2.0), (1e-5, 0.3), (3.0, 5.0)],
    ),
    (
        "(1 - x^(1 - y)) / (y - 1)",
        lambda x, y: (1 - x ** (1 - y)) / (y - 1),
        [(3.0, 1.0 + 2.0**-30), (3.0, 2.0)],
    ),
]
CANCELLING = [*LARGE, *ROOTS, *DISTRIBUTIONS, *ENDS, *SQUARED_ARCS, *POWERS, *QUOTIENTS]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("backend", only("numpy", ["numpy", "numexpr", "c"]))
@pytest.mark.parametrize(("text", "formula", "points"), CANCELLING, ids=[t for t, *_ in CANCELLING])
def test_value_and_gradient(text: str, formula: Formula, points: list[Point], backend: str) -> None:
    model = model_of("x" if len(points[0]) == 1 else "x, y", "", text, backend)
    for point in points:
        value, slopes = exact(formula, point)
        with np.errstate(all="ignore"):
            assert model.value(point) == pytest.approx(value, rel=1e-13, abs=0), point
            slack = 1e-12 * max(map(abs, slopes))
            np.testing.assert_allclose(model.gradient(point), slopes, rtol=1e-12, atol=slack)


@pytest.mark.parametrize(("text", "formula", "points"), SQUARED_ARCS)
def test_squared_arcs_are_smooth(text: str, formula: Formula, points: list[Point]) -> None:
    """Their second derivatives too, and at the end where the arc itself has an infinite slope."""
    model = model_of("x", "", text, "numpy")
    for (x,) in points:
        with mp.workdps(100):
            curvature = float(mp.diff(formula, mp.mpf(x), 2, h=mp.mpf(10) ** -40))
        assert model.hvp((x,), (1.0,)) == pytest.approx(curvature, rel=1e-12)
    end = float(text == "acos(x)^2")
    slope, curvature = {
        "acos(1 - x)^2": (2.0, 2 / 3),
        "acos(x)^2": (-2.0, 2 / 3),
        "acosh(1 + x)^2": (2.0, -2 / 3),
        "asin(sqrt(x))^2": (1.0, 2 / 3),
    }[text]
    assert model.gradient((end,)) == pytest.approx(slope, rel=1e-15)
    assert model.hvp((end,), (1.0,)) == pytest.approx(curvature, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "point", "value"),
    [
        ("x^4 / (81 + x^4)", (1e200,), 1.0),
        ("x^2 / (1 + x^2)", (-1e200,), 1.0),
        ("x^y / (1 + x^y)", (1e3, 200.0), 1.0),
        ("x^3 / (1 + x^3)", (0.0,), 0.0),
    ],
)
def test_saturations_have_slope_0_at_their_ends(text: str, point: Point, value: float) -> None:
    model = model_of("x" if len(point) == 1 else "x, y", "", text, "numpy")
    assert model.value(point) == value
    assert not np.any(model.gradient(point))


@pytest.mark.parametrize(
    ("text", "point", "product"),
    [
        ("x^2 / (x^2 + y^2)", (2.0, 0.0), (0.0, -1.0)),
        ("y^2 / (y^2 + (x - 1)^2)", (1.0, 2.0), (-0.5, 0.0)),
        ("x^2 / (y^2 + x^2)", (0.0, 2.0), (0.5, 0.0)),
        ("x^4 / (y^4 + x^4)", (2.0, 0.0), (0.0, 0.0)),
    ],
)
def test_saturations_are_curved_at_their_ends(text: str, point: Point, product: Point) -> None:
    model = model_of("x, y", "", text, "numpy")
    np.testing.assert_allclose(model.gradient(point), 0.0, atol=1e-300)
    np.testing.assert_allclose(model.hvp(point, (1.0, 2.0)), product, atol=1e-300)


def test_saturations_have_no_value_where_a_power_has_none() -> None:
    for text in ("x^2.5 / (y + x^2.5)", "x^y / (1 + x^y)"):
        assert np.isnan(model_of("x, y", "", text, "numpy").value((-1e80, 4.5)))


def test_the_smaller_root_has_a_limit_where_the_equation_is_linear() -> None:
    model = model_of("x, y", "", "(x - sqrt(x^2 - 4 * y * 3)) / (2 * y)", "numpy")
    assert model.value((2.0, 0.0)) == 1.5
    np.testing.assert_allclose(model.gradient((2.0, 0.0)), [-0.75, 1.125])


def test_terms_that_might_cancel_are_left() -> None:
    """1 - y^2 + 2 x y may vanish where sqrt(x^2 + 1) + y - x does not."""
    model = model_of("x, y", "", "sqrt(x^2 + 1) + y - x", "numpy")
    assert model.value((3.0, 0.5)) == np.sqrt(10.0) + 0.5 - 3.0


@pytest.mark.parametrize("text", ["sinh(x) / sinh(y)", "cosh(x) / sinh(y)", "exp(x) / cosh(y)"])
def test_quotients_that_may_overflow_have_no_kink(text: str) -> None:
    slomodel.compile(f"var x, y minimize {text}", backend="numpy", strict=True)
