"""Bounds as formulas: above the constants, as large as the series they come from, readable."""

import math

import numpy as np
import pytest
import sympy as sp
from bounds.settings import claimed, setting

import slomodel
from slomodel.bounds.ball import Ball, norm
from slomodel.bounds.rules.majorant_series import majorant_series

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")


def value(formula: sp.Expr, radius: float, **norms: float) -> float:
    known = {"r": radius} | {f"norm_{name}": size for name, size in norms.items()}
    return float(formula.subs({symbol: known[symbol.name] for symbol in formula.free_symbols}))


# L1 and L2 over the ball of radius r round a point at distance a of 0, with e = a + r.
EXACT = {
    "var x minimize x^4": (lambda e: 12 * e**2, lambda e: 24 * e),
    "var x minimize 2 * x^3 - x": (lambda e: 12 * e, lambda e: 12.0),
    "var x[3] minimize sumsq(x)^2 + 3 * sumsq(x)": (lambda e: 12 * e**2 + 6, lambda e: 24 * e),
    "data w[3] var x[3] minimize sum(w * x^3)": (lambda e: 6 * e, lambda e: 6.0),
    "var x, y minimize 3 * x * y": (lambda e: 3.0, lambda e: 0.0),
    "var x[2] minimize 5": (lambda e: 0.0, lambda e: 0.0),
    "var y[0] minimize sumsq(y)": (lambda e: 0.0, lambda e: 0.0),
}


@pytest.mark.parametrize("text", EXACT)
@pytest.mark.parametrize(("a", "radius"), [(0.0, 0.0), (0.0, 2.0), (3.0, 0.5), (1e-3, 1e3)])
def test_exact_constants(text: str, a: float, radius: float) -> None:
    """A formula that is 1 % smaller would be below the truth."""
    data = {"w": np.array([1.0, 0.5, 0.25])} if "data" in text else {}
    model = slomodel.compile(text, data=data)
    for which, exact in zip(("L1", "L2"), EXACT[text], strict=True):
        found = value(model.bound_formula(which), radius, x=a, y=0.0)
        assert 0.99 * found <= exact(a + radius) <= found


POLYNOMIALS = {
    "factors": """data M[3, 4], lam = 0.1 var U[3, 2], V[4, 2]
        minimize sumsq(M - U @ V') / 2 + lam * (sumsq(U) + sumsq(V))""",
    "chain": "data X[3, 4], y[4] var W1[3, 3], W2[2, 3], w[2] minimize sumsq(y - w' @ W2 @ W1 @ X)",
    "phases": "data A[5, 3], y[5] var x[3] minimize mean(((A @ x)^2 - y)^2)",
    "rosenbrock": "var x[4] minimize sum((1 - x[i])^2 + 100*(x[i+1] - x[i]^2)^2 for i in range(3))",
}


def filled(name: str) -> slomodel.Model:
    rng = np.random.default_rng(0)
    open_model = slomodel.compile(POLYNOMIALS[name])
    data = {"M": (3, 4), "X": (3, 4), "y": (5,) if name == "phases" else (4,), "A": (5, 3)}
    used = {key: rng.standard_normal(shape) for key, shape in data.items()}
    return open_model.bind(**{k: used[k] for k in used if f"{k}[" in POLYNOMIALS[name]})


def norms_of(model: slomodel.Model, center: np.ndarray) -> dict[str, float]:
    return {key: norm(np.ravel(part)) for key, part in model.unpack(center).items()}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_the_number_of_the_series(name: str) -> None:
    """With ‖c‖ put in the formula is the series round 0 at ‖c‖ + r, its numbers rounded up."""
    model = filled(name)
    formulas = model.bound_formula("L1"), model.bound_formula("L2")
    center = np.random.default_rng(1).standard_normal(model.n)
    at_zero = model._part(np.zeros(model.n))
    for radius in (0.0, 0.1, 10.0):
        series = claimed(majorant_series, at_zero, norm(center) + radius)
        assert series is not None
        for formula, exact in zip(formulas, (series.L1, series.L2), strict=True):
            found = value(formula, radius, **norms_of(model, center))
            assert exact * (1 - 1e-12) <= found <= exact * (1 + 2e-5)


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_above_every_curvature_of_the_ball(name: str) -> None:
    model, rng = filled(name), np.random.default_rng(0)
    formulas = model.bound_formula("L1"), model.bound_formula("L2")
    for scale, radius in ((1.0, 0.1), (0.1, 1.0), (3.0, 10.0)):
        center = scale * rng.standard_normal(model.n)
        L1, L2 = (value(formula, radius, **norms_of(model, center)) for formula in formulas)
        seen = model.sample_bounds(center, radius, samples=10)
        assert seen.L1 <= L1
        assert seen.L2 <= L2
        x = Ball(center, radius).random(rng)
        assert np.linalg.norm(model.hessian(x), 2) <= L1


def test_symbols_and_latex() -> None:
    model = slomodel.compile("var W1[2, 2], v[2] minimize sumsq(W1 @ v)^2 / 7")
    formula = model.bound_formula("L1")
    assert {symbol.name for symbol in formula.free_symbols} == {"r", "norm_W1", "norm_v"}
    assert all(symbol.is_nonnegative for symbol in formula.free_symbols)
    latex = sp.latex(formula)
    assert latex.count(r"\left\lVert W_{1} \right\rVert^{2}") == 1
    assert "norm" not in latex
    L2 = model.bound_formula("L2")
    assert sp.simplify(sp.diff(formula, sp.Symbol("r", nonnegative=True)) / L2 - 1).subs(
        dict.fromkeys(formula.free_symbols, 1.5)
    ) == pytest.approx(0.0, abs=1e-4)


def test_data_are_numbers_of_the_formula() -> None:
    text = "data a var x minimize a * x^3"
    two = slomodel.compile(text, data={"a": 2.0}).bound_formula("L2")
    assert float(two) == pytest.approx(12.0, rel=1e-5)
    with pytest.raises(slomodel.ShapeError, match="no values for data `a`"):
        slomodel.compile(text).bound_formula("L2")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("var x\nminimize x^4\n  + exp(2 * x)", r"`exp\(2 \* x\)` in line 3 is not a polynomial"),
        ("var x minimize x^1.5", r"`x\^1\.5` in line 1 is not a polynomial"),
        ("var x[2] minimize max(x)", r"`max\(x\)` in line 1 is not a polynomial"),
        ("var x minimize (((x^8)^8) + 1)^2", "a polynomial with too many terms"),
    ],
)
@pytest.mark.filterwarnings("ignore::slomodel.NonsmoothWarning")
def test_where_there_is_none(text: str, told: str) -> None:
    with pytest.raises(slomodel.MissingRule, match=told):
        slomodel.compile(text).bound_formula("L1")


def test_another_constant_is_requested() -> None:
    with pytest.raises(slomodel.DomainError, match="expected 'L1' or 'L2', found 'L3'"):
        slomodel.compile("var x minimize x^4").bound_formula("L3")


def test_the_centre_of_the_formula_is_zero() -> None:
    """Of x³ + x² the curvature at 0 is 2, whatever x is later."""
    found = claimed(majorant_series, setting("var x minimize x^3 + x^2", [0.0]), 0.0)
    assert found is not None
    assert math.isclose(found.L1, 2.0, rel_tol=1e-12)


ROOT = (
    r"\left(r + \sqrt{\left\lVert A \right\rVert^{2} + \left\lVert B \right\rVert^{2}}\right)^{2}"
)
READ = {
    "power": (
        "data T[2,2,2] var x[2] "
        "minimize sum((x[a] * x[b] * x[c] - T[a,b,c])^2 for a in 2, b in 2, c in 2)",
        r"30.0001 \left(\left\lVert x \right\rVert + r\right)^{4}",
    ),
    "chain": (
        "data X[1,1], Y[1,1] var A[1,1], B[1,1] minimize sumsq(B @ A @ X - Y)",
        f"3.00001 {ROOT} + 2.00001",
    ),
    "bilinear": ("data M[2,2] var A[2,1], B[1,2] minimize sumsq(A @ B - M)", f"3.00001 {ROOT}"),
}


@pytest.mark.parametrize("name", READ)
def test_how_it_reads_in_print(name: str) -> None:
    text, expected = READ[name]
    shapes = {"T": (2, 2, 2), "X": (1, 1), "Y": (1, 1), "M": (2, 2)}
    data = {key: np.zeros(shape) for key, shape in shapes.items() if f"{key}[" in text}
    if name == "chain":
        data = {"X": np.ones((1, 1)), "Y": -np.ones((1, 1))}
    assert sp.latex(slomodel.compile(text, data=data).bound_formula("L1")) == expected


def test_sums_of_powers_have_the_formula_by_vectors() -> None:
    """At 0, f = ‖T‖² - 2 Σ T(x_i, x_i, x_i) + Σ (x_i·x_j)³: with one axis 12 ‖T‖ ρ + 30 ρ⁴."""
    text = "data T[1,1,1] var x[1] "
    text += "minimize sum((x[a] * x[b] * x[c] - T[a,b,c])^2 for a in 1, b in 1, c in 1)"
    model = slomodel.compile(text, data={"T": np.full((1, 1, 1), -2.0)})
    for radius in (0.5, 3.0):
        exact = 24.0 * radius + 30.0 * radius**4
        assert exact <= value(model.bound_formula("L1"), radius, x=0.0) <= exact * (1.0 + 1e-5)
