"""Formulas near their edges as people spell them: values and gradients from 500 digits.

Weighted sums of exponentials that over- or underflow, x log y at 0, tails, powers of one base at 0,
norms at 0, differences of exponentials.
"""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest

import slomodel
from slomodel.rewrite import stable
from tests.marks import only
from tests.rewrite.texts import functions_of

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")

DATA = {
    "w": np.array([0.25, 0.75]),
    "W": np.array([[0.25, 0.75], [0.5, 0.5]]),
    "S": np.array([[2.0, 1.0], [1.0, 3.0]]),
    "y": np.array([0.0, 2.0]),
    "X": np.array([[0.0, 1.0], [2.0, 0.0]]),
    "t": np.array(50.0),
    "b": np.array(0.0),
}
SHAPES = {
    "w": "w[2]",
    "W": "W[2, 2]",
    "S": "S[2, 2]",
    "y": "y[2]",
    "X": "X[2, 2]",
    "t": "t",
    "b": "b",
}
Formula = Callable[..., object]
E, L, S = mp.exp, mp.log, mp.sqrt


def lse(weights: tuple[object, ...], *exponents: object) -> object:
    return L(sum(w * E(z) for w, z in zip(weights, exponents, strict=True)))


def _quarters(a: object, b: object) -> object:
    return lse((mp.mpf("0.25"), mp.mpf("0.75")), a, b)


def _mixture(p: object, q: object, m: object, n: object, s: object, t: object) -> object:
    first, second = E(-((50 - m) ** 2) / (2 * s**2)), E(-((50 - n) ** 2) / (2 * t**2))
    return L(p * first / s + q * second / t)


def _softmax_mixture(p: object, q: object, a: object, b: object) -> object:
    return lse((E(p) / (E(p) + E(q)), E(q) / (E(p) + E(q))), a, b)


def tail(x: object) -> object:
    return -L(mp.erfc(-x / S(2)) / 2)


FAR, DEEP = (800.0, 900.0), (-900.0, -1000.0)
MIXED = (0.3, 0.7, 0.0, 1.0, 1.0, 1.0)

# variables, data, what is minimised, a point, the formula in the elements of the variables
ROWS: list[tuple[str, str, str, tuple[float, ...], Formula]] = [
    *(("z[2]", "w", "log(sum(w .* exp(z)))", at, _quarters) for at in (FAR, DEEP)),
    ("z[2]", "w", "log(w @ exp(z))", FAR, _quarters),
    ("z[2]", "w", "log(dot(w, exp(z)))", DEEP, _quarters),
    ("z[2]", "w", "log(sum(w[k] * exp(z[k]) for k in 2))", FAR, _quarters),
    ("z[2]", "w", "log(w[0] * exp(z[0]) + w[1] * exp(z[1]))", FAR, _quarters),
    *(("a, b", "", "log(0.25 * exp(a) + 0.75 * exp(b))", at, _quarters) for at in (FAR, DEEP)),
    ("a, b", "", "log(exp(a) / 4 + 3 * exp(b) / 4)", FAR, _quarters),
    (
        "a, b",
        "",
        "log(exp(a) + exp(b) + 2 * exp(a + b))",
        (500.0, 500.0),
        lambda a, b: lse((1, 1, 2), a, b, a + b),
    ),
    ("a, b", "", "log(2 + 3 * exp(a) + exp(b))", FAR, lambda a, b: lse((2, 3, 1), 0, a, b)),
    (
        "a, b",
        "",
        "log(1e-9 * exp(a) + 1e5 * exp(b))",
        DEEP,
        lambda a, b: lse((mp.mpf(1e-9), 1e5), a, b),
    ),
    ("a, b", "", "log((exp(a) + exp(b)) / 2)", FAR, lambda a, b: lse((0.5, 0.5), a, b)),
    ("p[2], z[2]", "", "log(sum(softmax(p) .* exp(z)))", (0.3, -0.2, *FAR), _softmax_mixture),
    (
        "p, z[2]",
        "",
        "log(p * exp(z[0]) + (1 - p) * exp(z[1]))",
        (0.3, *FAR),
        lambda p, a, b: lse((p, 1 - p), a, b),
    ),
    (
        "p[2], m[2], s[2]",
        "t",
        "log(sum(p[k] * exp(-(t - m[k])^2 / (2 * s[k]^2)) / s[k] for k in 2))",
        MIXED,
        _mixture,
    ),
    ("p[2], m[2], s[2]", "t", "log(sum(p .* exp(-(t - m)^2 ./ (2 * s^2)) ./ s))", MIXED, _mixture),
    (
        "z[2]",
        "W",
        "sum(log(W @ exp(z)))",
        FAR,
        lambda a, b: _quarters(a, b) + lse((0.5, 0.5), a, b),
    ),
    ("z[2]", "w", "log(sum(exp(z) ./ w))", FAR, lambda a, b: lse((4, mp.mpf(4) / 3), a, b)),
    ("z[2]", "w", "log(mean(w .* exp(z)))", FAR, lambda a, b: _quarters(a, b) - L(2)),
    ("z[2]", "w", "log1p(sum(w .* exp(z)))", FAR, lambda a, b: lse((1, 0.25, 0.75), 0, a, b)),
    ("a, b", "", "log(exp(a) * (1 + exp(b)))", FAR, lambda a, b: a + L(1 + E(b))),
    ("a, b", "", "log(exp(a) * exp(b) + exp(a))", (800.0, 100.0), lambda a, b: a + L(1 + E(b))),
    *(
        ("a, b", "", text, (800.0, 799.0), lambda a, b: E(a - b))
        for text in ("exp(a) * exp(-b)", "exp(a) / exp(b)", "3 * exp(-b) / exp(-a) / 3")
    ),
    ("a, b", "", "expm1(a) * b * exp(-a)", (800.0, 2.0), lambda a, b: b * (1 - E(-a))),
    *(
        ("a, b, c", "", "(a^c - b^c) / c", (2.0, 3.0, c), lambda a, b, c: (a**c - b**c) / c)
        for c in (1e-9, 0.25, 1.5)
    ),
    ("a", "", "log(sqrt(1 + exp(2 * a)))", (800.0,), lambda a: L(1 + E(2 * a)) / 2),
    (
        "a",
        "",
        "log(3 * a * (cosh(a) + 2)^1.5)",
        (800.0,),
        lambda a: L(3 * a * (mp.cosh(a) + 2) ** 1.5),
    ),
    *(
        ("a", "", text, (800.0,), lambda a: a)
        for text in ("asinh(sinh(a))", "atanh(tanh(a))", "normppf(normcdf(a))", "erfinv(erf(a))")
    ),
    ("a", "", "sigmoid(a) / exp(a)", (-760.0,), lambda a: 1 / (1 + E(a))),
    (
        "a",
        "",
        "normcdf(a) / exp(-a^2 / 2)",
        (-45.0,),
        lambda a: mp.erfc(-a / S(2)) * E(a**2 / 2) / 2,
    ),
    ("a", "", "log(cosh(a) * cosh(a) + 2)", (800.0,), lambda a: L(mp.cosh(a) ** 2 + 2)),
    ("a, b", "", "log(exp(a) / (exp(a) + exp(b)))", FAR, lambda a, b: a - lse((1, 1), a, b)),
    (
        "a, b",
        "",
        "log(3 * exp(a) / (exp(a) + 2 * exp(b)))",
        FAR,
        lambda a, b: L(3) + a - lse((1, 2), a, b),
    ),
    ("m[2]", "y", "sum(y .* log(y ./ m))", (1.0, 0.5), lambda m, n: 2 * L(2 / n)),
    ("m[2]", "y", "sum(y .* log(m))", (0.0, 0.5), lambda m, n: 2 * L(n)),
    ("m[2]", "y", "dot(y, log(m))", (0.0, 0.5), lambda m, n: 2 * L(n)),
    ("m[2]", "y", "y @ log(m)", (0.0, 0.5), lambda m, n: 2 * L(n)),
    ("m[2]", "y", "sum(y[i] * log(m[i]) for i in 2)", (0.0, 0.5), lambda m, n: 2 * L(n)),
    ("m[2]", "y", "sum(y .* (log(y) - log(m)))", (1.0, 0.5), lambda m, n: 2 * L(2 / n)),
    ("t", "b", "b * log(t) + (1 - b) * log(1 - t)", (0.0,), lambda t: L(1 - t)),
    ("x", "", "-log(0.5 * (1 + erf(x / sqrt(2))))", (-10.0,), tail),
    ("x", "", "-log(0.5 * (1 + erf(x / sqrt(2))))", (-40.0,), tail),
    ("x", "", "-log((1 + erf(x / sqrt(2))) / 2)", (-40.0,), tail),
    ("x", "", "-log(0.5 + 0.5 * erf(x / sqrt(2)))", (-40.0,), tail),
    ("x", "", "-log(0.5 * erfc(-x / sqrt(2)))", (-40.0,), tail),
    ("x", "", "-log(normcdf(x))", (-40.0,), tail),
    ("x", "", "-log(1 - normcdf(-x))", (-40.0,), tail),
    ("x", "", "log(1 - erf(x))", (30.0,), lambda x: L(mp.erfc(x))),
    ("x", "", "1 - erf(x)", (10.0,), mp.erfc),
    ("x", "", "exp(x^2) * erfc(x)", (30.0,), lambda x: E(x * x) * mp.erfc(x)),
    *(
        ("x", "", text, (0.0,), lambda x: mp.mpf(0))
        for text in (
            *("(x^2)^0.75", "x * sqrt(x)", "sqrt(x) * x^2", "x^0.5 * x^0.7", "(x^3)^0.5"),
            *("sqrt(x)^3", "sqrt(x^3)", "x^2 / sqrt(x)", "x * x / x^0.25"),
        )
    ),
    *(
        ("x[2]", data, text, (0.0, 0.0), lambda x, y: mp.mpf(0))
        for data, text in (
            ("w", "sqrt(sum(w .* x^2))"),
            ("w", "sqrt(sum(w[i] * x[i]^2 for i in 2))"),
            ("W", "sqrt(x @ (W @ W') @ x)"),
            ("S", "sqrt(x' @ S @ x)"),
            ("", "sqrt(2 * x[0]^2 + 3 * x[1]^2)"),
            ("", "(x[0]^2 + x[1]^2)^0.5"),
            ("", "sqrt(mean(x^2))"),
        )
    ),
    ("x", "", "sqrt(3 * exp(-877 * x))", (1.0,), lambda x: S(3 * E(-877 * x))),
    ("x", "", "exp(-1300 * x)^0.5", (1.0,), lambda x: E(-650 * x)),
    ("x", "", "1 / exp(-800 * x) * exp(-790 * x)", (1.0,), lambda x: E(10 * x)),
    ("x", "", "exp(800 * x) / exp(790 * x)", (1.0,), lambda x: E(10 * x)),
    ("x", "", "exp(800 * x) * exp(-790 * x)", (1.0,), lambda x: E(10 * x)),
    ("x", "", "log(exp(x) - 1)", (800.0,), lambda x: L(E(x) - 1)),
    ("x", "", "log(expm1(x))", (800.0,), lambda x: L(E(x) - 1)),
    ("a, b", "", "log(exp(a) - exp(b))", (800.0, 799.0), lambda a, b: L(E(a) - E(b))),
    ("a, b", "", "log(exp(a) - exp(b))", (-800.0, -801.0), lambda a, b: L(E(a) - E(b))),
    ("a, b", "", "log(2 * exp(a) - exp(b))", (800.0, 799.0), lambda a, b: L(2 * E(a) - E(b))),
    *(
        ("x", "", text, (-1e-20,), lambda x: L(1 - E(x)))
        for text in (
            "log1p(-exp(x))",
            "log(1 - exp(x))",
            "log(-expm1(x))",
            "log(2 - 2 * exp(x)) - log(2)",
        )
    ),
    ("x", "", "log(sinh(x))", (800.0,), lambda x: L(mp.sinh(x))),
    (
        "a, b",
        "",
        "log(sigmoid(a) - sigmoid(b))",
        (-800.0, -801.0),
        lambda a, b: L(1 / (1 + E(-a)) - 1 / (1 + E(-b))),
    ),
    *(
        ("x", "", text, (0.5 + 1e-12,), lambda x: L(x / (1 - x)))
        for text in ("log(x / (1 - x))", "log(x) - log(1 - x)", "logit(x)")
    ),
]

# Tails and quotients as likelihoods and physics have them.
TAILS: list[tuple[str, str, str, tuple[float, ...], Formula]] = [
    *(
        ("x", "", "log(1 / (1 - exp(-x)) - 1)", (at,), lambda x: -L(E(x) - 1))
        for at in (800.0, 3.0)
    ),
    *(
        ("x", "", text, (at,), lambda x: x**3 / (E(x) - 1))
        for at in (800.0, 2.0)
        for text in ("x^3 / (exp(x) - 1)", "-x^3 / (1 - exp(x))", "x^3 * exp(-x) / (1 - exp(-x))")
    ),
    *(
        ("x", "", text, (at,), lambda x: L(1 - E(-E(x))))
        for at in (-800.0, -20.0, 2.0)
        for text in ("log(1 - exp(-exp(x)))", "log(-expm1(-exp(x)))", "log1p(-exp(-exp(x)))")
    ),
    *(
        ("a, b", "", text, at, lambda a, b: L((mp.erfc(b / S(2)) - mp.erfc(a / S(2))) / 2))
        for at in ((40.0, 39.0), (-38.0, -39.0), (1e-5, -1e-5), (9.0, -3.0))
        for text in (
            "log(normcdf(a) - normcdf(b))",
            "log(normcdf(-b) - normcdf(-a))",
            "log((erf(a / sqrt(2)) - erf(b / sqrt(2))) / 2)",
            "log(0.5 * erfc(b / sqrt(2)) - 0.5 * erfc(a / sqrt(2)))",
        )
    ),
    *(
        ("x", "", text, (at,), lambda x: E(-x * x / 2) / mp.erfc(-x / S(2)) * 2)
        for at in (-50.0, -3.0)
        for text in (
            "exp(-x^2 / 2) / normcdf(x)",
            "exp(-x^2 / 2) / (1 - normcdf(-x))",
            "2 * exp(-x^2 / 2) / erfc(-x / sqrt(2))",
        )
    ),
    *(
        ("x", "", text, (9.0,), lambda x: L(mp.erfc(x / S(2)) / 2))
        for text in ("log(1 - 0.5 * (1 + erf(x / sqrt(2))))", "log(1 - (erf(x / sqrt(2)) + 1) / 2)")
    ),
    *(
        ("z, e", "", text, at, lambda z, e: L((1 + E(-z - E(e))) / (1 + E(-z))))
        for at in ((-800.0, 7.0), (-3.0, 2.0), (800.0, 2.0))
        for text in (
            "log(sigmoid(z) + (1 - sigmoid(z)) * exp(-exp(e)))",
            "log(sigmoid(z) + sigmoid(-z) * exp(-exp(e)))",
        )
    ),
    (
        "a, b",
        "",
        "log(normcdf(a) + exp(2 * b) * normcdf(-a - b))",
        (-2.0, 400.0),
        lambda a, b: L(mp.erfc(-a / S(2)) / 2 + E(2 * b) * mp.erfc((a + b) / S(2)) / 2),
    ),
    # Constants and other factors at any place.
    *(
        ("x", "", text, (-50.0,), lambda x: 2 * E(-x * x / 2) / mp.erfc(-x / S(2)) / mp.mpf(5))
        for text in (
            "exp(-x^2 / 2) / 5 / normcdf(x)",
            "exp(-x^2 / 2) / (5 * normcdf(x))",
            "1 / (5 * normcdf(x) / exp(-x^2 / 2))",
            "3 * (exp(-x^2 / 2) / (15 * normcdf(x)))",
            "exp(-x^2 / 2) * (0.4 / erfc(-x / sqrt(2)))",
        )
    ),
    *(
        ("x, y", "", text, (-50.0, 3.0), lambda x, y: 2 * E(-x * x / 2) / mp.erfc(-x / S(2)) / y)
        for text in ("exp(-x^2 / 2) / y / normcdf(x)", "exp(-x^2 / 2) / (y * normcdf(x))")
    ),
    *(
        ("a, b", "", text, at, lambda a, b: 1 / (1 + E(b - a)) / 3)
        for at in ((800.0, 799.0), (-800.0, -801.0))
        for text in (
            "exp(a) / (3 * (exp(a) + exp(b)))",
            "exp(a) / 3 / (exp(a) + exp(b))",
            "5 * exp(a) / ((exp(a) + exp(b)) * 15)",
            "exp(a) / 7 * (7 / (3 * exp(a) + 3 * exp(b)))",
            "exp(a) * (1 / (3 * exp(a) + 3 * exp(b)))",
        )
    ),
    *(
        ("x, y", "", text, (340.0, 1e-100), lambda x, y, f=f: y * E(x) * f(x))
        for text, f in (("exp(x) * y * cosh(x)", mp.cosh), ("exp(x) * y * sinh(x)", mp.sinh))
    ),
    (
        "a, b, y",
        "",
        "exp(a) * (y / (exp(a) + exp(b)))",
        (800.0, 799.0, 2.0),
        lambda a, b, y: y / (1 + E(b - a)),
    ),
    *(
        ("x", "", text, (30.0,), lambda x: E(x * x) * mp.erfc(x) / 3)
        for text in ("exp(x^2) / 3 * erfc(x)", "5 * exp(x^2) * (erfc(x) / 15)")
    ),
    *(
        ("x", "", text, (800.0,), lambda x: 1 / (1 + E(-x)) / 3)
        for text in ("(exp(x) / 3) / (1 + exp(x))", "exp(x) / (3 * (1 + exp(x)))")
    ),
    (
        "a, b",
        "",
        "(3 * exp(800 * a) + b * exp(800 * b)) / (exp(800 * a) + exp(800 * b))",
        (1.0, 1.001),
        lambda a, b: (3 * E(800 * a) + b * E(800 * b)) / (E(800 * a) + E(800 * b)),
    ),
    *(
        ("r, m", "", text, (1e10, 3.0), lambda r, m: -L(1 + m / r))
        for text in ("log(r / (r + m))", "log(r) - log(m + r)")
    ),
    ("x", "", "log(x + sqrt(x^2 + 1))", (-1e5,), mp.asinh),
    ("x", "", "log(x + sqrt(x^2 - 1))", (1e180,), mp.acosh),
    *(
        ("x", "", text, (1e-9,), mp.atanh)
        for text in ("log((1 + x) / (1 - x)) / 2", "0.5 * (log(1 + x) - log(1 - x))")
    ),
]


def model_of(variables: str, data: str, text: str, backend: str) -> slomodel.Model:
    declared = f"data {SHAPES[data]}\n" if data else ""
    given = {data: DATA[data]} if data else None
    return slomodel.compile(
        f"{declared}var {variables}\nminimize {text}", data=given, backend=backend
    )


def exact(formula: Formula, point: tuple[float, ...]) -> tuple[float, list[float]]:
    """Value and gradient."""
    with mp.workdps(500):
        numbers = [mp.mpf(x) for x in point]
        slopes = []
        for k in range(len(point)):
            h = mp.mpf(10) ** -60
            ends = [
                formula(*(x + s * h * (j == k) for j, x in enumerate(numbers))) for s in (1, -1)
            ]
            slopes.append(float(mp.re((ends[0] - ends[1]) / (2 * h))))
        return float(mp.re(formula(*numbers))), slopes


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("variables", "data", "text", "point", "formula"), ROWS)
def test_value_and_gradient(
    variables: str, data: str, text: str, point: tuple[float, ...], formula: Formula
) -> None:
    value, slopes = exact(formula, point)
    model = model_of(variables, data, text, "numpy")
    assert model.value(point) == pytest.approx(value, rel=1e-13, abs=0)
    np.testing.assert_allclose(model.gradient(point), slopes, rtol=1e-12, atol=1e-58)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("backend", only("numpy", ["numpy", "numexpr", "c"]))
@pytest.mark.parametrize(("variables", "data", "text", "point", "formula"), TAILS)
def test_tails(
    variables: str, data: str, text: str, point: tuple[float, ...], formula: Formula, backend: str
) -> None:
    value, slopes = exact(formula, point)
    model = model_of(variables, data, text, backend)
    assert model.value(point) == pytest.approx(value, rel=1e-13, abs=0)
    np.testing.assert_allclose(model.gradient(point), slopes, rtol=1e-12, atol=1e-58)


@pytest.mark.parametrize("backend", ["numexpr", "c"])
def test_other_targets_agree(backend: str) -> None:
    for variables, data, text, point, formula in ROWS[1::14]:
        value, slopes = exact(formula, point)
        model = model_of(variables, data, text, backend)
        assert model.value(point) == pytest.approx(value, rel=1e-13, abs=0)
        np.testing.assert_allclose(model.gradient(point), slopes, rtol=1e-12, atol=1e-58)


@pytest.mark.parametrize(
    ("text", "slope"),
    [
        ("x * log(x)", -np.inf),
        ("0.5 * x * log(x)", -np.inf),
        ("x * (log(x) - 1)", -np.inf),
        ("x * log(2 * x)", -np.inf),
        ("x * log(x / 3)", -np.inf),
        ("-x * log2(x)", np.inf),
        ("x * log(x) + (1 - x) * log(1 - x)", -np.inf),
        ("(1 - x) * log1p(-x) + x * log(x)", -np.inf),
    ],
)
def test_entropies_are_0_at_0(text: str, slope: float) -> None:
    model = slomodel.compile(f"var x minimize {text}", backend="numpy")
    assert model.value([0.0]) == 0.0
    assert model.gradient([0.0]) == slope


POSITIVE: list[tuple[str, Formula]] = [
    ("exp(a[k]) + 1e-9", lambda a, b: E(a) + mp.mpf(1e-9)),
    ("a[k]^2 + 1e-9", lambda a, b: a**2 + mp.mpf(1e-9)),
    ("1e-9 + 2 * exp(a[k]) + exp(b)", lambda a, b: mp.mpf(1e-9) + 2 * E(a) + E(b)),
    ("sqrt(a[k]) + 1", lambda a, b: S(a) + 1),
]


@pytest.mark.parametrize(("inside", "formula"), POSITIVE)
def test_logarithms_of_what_is_never_0_do_not_depend_on_weights(
    inside: str, formula: Formula
) -> None:
    text = f"dim N, K data y[N] var a[K], b minimize -sum(y[i] * log({inside}) for i in N, k in K)"
    data, dims = {"y": [0.0, 0.0, 3.0]}, {"K": 3}
    model = slomodel.compile(text, data=data, dims=dims, backend="numpy")
    assert "xlogy" not in functions_of(stable(model._problem.objective))
    point = np.array([900.0, 0.25, 2.0, 0.5])
    wanted = sum(-3 * L(formula(mp.mpf(a), mp.mpf(0.5))) for a in point[:3])
    value, slopes = model.value_and_gradient(point)
    assert value == pytest.approx(float(wanted), rel=1e-14)
    assert np.isfinite(slopes).all()


def test_the_divergence_of_a_report() -> None:
    model = slomodel.compile(
        "data X[2, 2] var M[2, 2] minimize sum(X .* log(X ./ M) - X + M)", data={"X": DATA["X"]}
    )
    assert model.value([1.0, 0.5, 0.5, 2.0]) == pytest.approx(4.465735902799727, rel=1e-15)
    np.testing.assert_allclose(model.gradient([1.0, 0.5, 0.5, 2.0]), [1, -1, -3, 1], rtol=1e-15)
