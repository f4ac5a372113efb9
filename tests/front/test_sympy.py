"""Models from scalar SymPy expressions: values, names, numbers, shapes, pickling."""

from __future__ import annotations

import pickle
from functools import reduce

import numpy as np
import pytest
import sympy as sp
from sympy.codegen.cfunctions import expm1, log1p

import slomodel
from slomodel import compile
from slomodel.errors import NonsmoothWarning
from tests.work_counts import counting

x, y = sp.symbols("x y")
p, q = sp.symbols("p q", positive=True)
POINT = {"x": 0.7, "y": -1.3, "p": 0.4, "q": 2.1}
SMOOTH = [
    (1 - x) ** 2 + 100 * (y - x**2) ** 2,
    sp.exp(x * y) - sp.log(p) / q,
    sp.sin(x) * sp.cos(y) + sp.tan(p) - sp.atan(q * x),
    sp.sinh(x) - sp.cosh(y) * sp.tanh(p) + sp.asinh(q) + sp.erf(x),
    log1p(p) + expm1(y),
    sp.sqrt(p) + 1 / sp.sqrt(q) - 1 / p + p ** sp.Rational(7, 3) + p**q + 2**x,
    -x - y - 3 * x * y / (7 * q) + sp.pi * x - sp.E * sp.GoldenRatio,
    x**5 - y**-3 + (x + y) ** -2 + (p * q) ** sp.Float("1.5"),
]
PIECEWISE = [
    (sp.Abs(x - y), 2.0),
    (sp.Max(x, y, p), 0.7),
    (sp.Min(x, y, p) * q, -1.3 * 2.1),
    (sp.sign(y) * x, -0.7),
    (sp.sqrt(y**2), 1.3),
    (sp.Piecewise((x**2, x < y), (q, (x > 0) & (p < 1)), (p, True)), 2.1),
    (sp.Piecewise((x**2, (x < y) | (p > 1)), (p, ~(q > 1)), (1, True)), 1.0),
]


def point_of(model: slomodel.Model) -> np.ndarray:
    return model.pack({name: POINT[name] for name in model.variables})


@pytest.mark.parametrize("expr", SMOOTH, ids=str)
def test_value_and_gradient_in_thirty_digits(expr: sp.Expr) -> None:
    """SymPy's derivatives by one symbol are right; only those by matrices are not."""
    model = compile(expr)
    value, gradient = model.value_and_gradient(point_of(model))
    exact = {symbol: sp.Float(POINT[symbol.name]) for symbol in expr.free_symbols}
    assert value == pytest.approx(float(expr.evalf(30, exact)), rel=1e-14)
    by_name = model.unpack(gradient)
    for symbol in expr.free_symbols:
        want = float(sp.diff(expr, symbol).evalf(30, exact))
        assert by_name[symbol.name] == pytest.approx(want, rel=1e-13)


@pytest.mark.parametrize(("expr", "value"), PIECEWISE, ids=str)
def test_functions_with_kinks(expr: sp.Expr, value: float) -> None:
    with pytest.warns(NonsmoothWarning):
        model = compile(expr)
    assert model.value(point_of(model)) == pytest.approx(value, rel=1e-15)


def test_a_kink_shows_the_part_that_has_it() -> None:
    with pytest.warns(NonsmoothWarning) as caught:
        compile(x**2 + sp.Abs(x - y))
    assert "1 | Abs(x - y)" in str(caught[0].message)
    with pytest.raises(slomodel.ModelSyntaxError, match=r"Abs\(x - y\)"):
        compile(x**2 + sp.Abs(x - y), strict=True)


def test_rosenbrock_is_solved() -> None:
    model = compile((1 - x) ** 2 + 100 * (y - x**2) ** 2)
    solution = model.solve(method="norm-armijo", direction="lbfgs", x0=[-1.2, 1.0], gtol=1e-8)
    np.testing.assert_allclose(solution.x, [1.0, 1.0], rtol=0, atol=1e-6)
    start = {"y": 1.0, "x": -1.2}
    again = model.solve(method="norm-armijo", direction="lbfgs", x0=start, gtol=1e-8)
    np.testing.assert_array_equal(again.x, solution.x)


def test_a_nan_is_traced_to_its_part() -> None:
    solution = compile(x**2 + sp.log(x - 1)).solve(method="norm-armijo", x0=[-1.0])
    assert "`log(x - 1)`" in solution.message


@pytest.mark.parametrize(
    ("number", "double"),
    [
        (sp.Float("0.1", 50), 0.1),
        (sp.Float("0.30000000000000004", 30), 0.1 + 0.2),
        (sp.Rational(1, 3), 1 / 3),
        (sp.Rational(10**40 + 1, 3 * 10**39), (10**40 + 1) / (3 * 10**39)),
        (sp.Integer(2**53 + 1), 2.0**53),
        (sp.Float("2.5e-320"), 2.5e-320),
        (sp.pi, np.pi),
        (sp.sqrt(2), np.sqrt(2.0)),
    ],
    ids=str,
)
def test_numbers_are_rounded_once(number: sp.Expr, double: float) -> None:
    model = compile(number * x)
    assert model.value([1.0]) == double
    assert model.gradient([3.0])[0] == double


def test_names_are_only_names() -> None:
    names = ["E", "I", "N", "S", "Q", "lambda", r"\alpha", "{x}", "__class__", "x0", "np", "λ"]
    weights = range(1, len(names) + 1)
    symbols = [sp.Symbol(name) for name in names]
    model = compile(sp.Add(*[w * s**2 for w, s in zip(weights, symbols, strict=True)]))
    gradient = model.unpack(model.gradient(np.ones(model.n)))
    assert gradient == {name: 2.0 * w for w, name in zip(weights, names, strict=True)}


def test_variables_in_natural_order() -> None:
    numbered = sp.symbols("x1:12")
    model = compile(sp.Add(*(k * s for k, s in enumerate(numbered, start=1)), sp.Symbol("a")))
    assert list(model.variables) == ["a", *(f"x{k}" for k in range(1, 12))]


@pytest.mark.parametrize("order", [[y, x], (y, "x"), sp.Matrix([y, x]), sp.Tuple(y, x)], ids=str)
def test_variables_in_given_order(order: object) -> None:
    model = compile(x + 10 * y, order)
    assert list(model.variables) == ["y", "x"]
    assert model.value([1.0, 2.0]) == 12.0


def test_one_variable_needs_no_list() -> None:
    assert list(compile(x**2, x).variables) == ["x"]


@pytest.mark.parametrize("constant", [sp.Integer(3), 3, 3.0])
def test_a_constant_with_variables_is_a_model(constant: object) -> None:
    model = compile(constant, [x, "z"])
    value, gradient = model.value_and_gradient([1.0, 2.0])
    assert value == 3.0
    np.testing.assert_array_equal(gradient, [0.0, 0.0])


def test_scalar_data_by_name_or_symbol() -> None:
    model = compile((x - y) ** 2, data={y: 3})
    assert list(model.variables) == ["x"]
    assert model.value([1.0]) == 4.0
    assert model.bind(y=2.0).value([1.0]) == 1.0


def test_data_may_be_declared_before_it_has_values() -> None:
    model = compile((x - y) ** 2, data={"y": None})
    assert model.missing == ("y",)
    loaded = pickle.loads(pickle.dumps(model))
    assert loaded.missing == ("y",)
    assert loaded.bind(y=2.0).value([1.0]) == 1.0


def test_a_shared_part_is_read_once() -> None:
    """Written out, the expression has more than 2^80 parts."""
    expr = reduce(lambda part, _: sp.sin(part) + part * x, range(80), y)

    def plain(a: float, b: float) -> float:
        return reduce(lambda part, _: np.sin(part) + part * a, range(80), b)

    assert compile(expr).value([0.3, 0.2]) == pytest.approx(plain(0.3, 0.2), rel=1e-13)


def test_deep_expressions_compile_and_pickle() -> None:
    expr = reduce(lambda part, _: sp.sin(part) + y, range(600), x)
    model = compile(expr)
    want = reduce(lambda part, _: np.sin(part) + 0.2, range(600), 0.1)
    assert model.value([0.1, 0.2]) == pytest.approx(want, rel=1e-13)
    assert pickle.loads(pickle.dumps(model)).value([0.1, 0.2]) == model.value([0.1, 0.2])


def test_deep_roots_compile() -> None:
    model = compile(reduce(lambda part, _: sp.sqrt(part + y), range(600), x))
    want = reduce(lambda part, _: np.sqrt(part + 0.2), range(600), 0.1)
    assert model.value([0.1, 0.2]) == pytest.approx(want, rel=1e-13)


@pytest.mark.parametrize("count", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_sum_of_many_terms(count: int) -> None:
    """The limit is a few times the work needed; only quadratic growth would exceed it."""
    expr = sp.Add(*((s - k) ** 2 for k, s in enumerate(sp.symbols(f"x0:{count}"))))
    with counting() as calls:
        model = compile(expr)
    assert calls.count < 1000 * count
    assert model.value(np.arange(float(count))) == 0.0
    assert model.value(np.arange(float(count)) + 1.0) == count


@pytest.mark.parametrize("expr", [SMOOTH[0], SMOOTH[-1], SMOOTH[5]], ids=str)
def test_models_pickle(expr: sp.Expr) -> None:
    model = compile(expr, sorted(expr.free_symbols, key=lambda s: s.name, reverse=True))
    loaded = pickle.loads(pickle.dumps(model))
    assert list(loaded.variables) == list(model.variables)
    at = point_of(model)
    np.testing.assert_array_equal(loaded.gradient(at), model.gradient(at))
