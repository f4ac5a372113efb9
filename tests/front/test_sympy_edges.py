"""Edge cases of SymPy expressions: value, gradient and Hessian agree with those of text."""

import warnings

import numpy as np
import pytest
import sympy as sp

import slomodel

x, y, p = sp.symbols("x y p")
n, i, k = sp.symbols("n i k", integer=True)
X = sp.IndexedBase("X")
M = sp.MatrixSymbol("M", 2, 1)
ZERO = [[0.0, 0.0], [0.0, 0.0]]
TWICE = [[2.0, 0.0], [0.0, 2.0]]
SQUARES = sp.Sum(X[i] ** 2, (i, 0, n - 1))

Case = tuple[sp.Expr, list[float], float, list[float], list[list[float]]]
CASES: list[Case] = [
    (sp.sqrt(SQUARES), [0.0, 0.0], 0.0, [0.0, 0.0], ZERO),
    (SQUARES, [0.0, 0.0], 0.0, [0.0, 0.0], TWICE),
    (sp.sqrt(sp.Trace(M.T * M)), [0.0, 0.0], 0.0, [0.0, 0.0], ZERO),
    (sp.Trace(M.T * M), [0.0, 0.0], 0.0, [0.0, 0.0], TWICE),
    (sp.sqrt(x**2 + y**2), [0.0, 0.0], 0.0, [0.0, 0.0], ZERO),
    (sp.sqrt(x**2 + y**2) ** 2, [0.0, 0.0], 0.0, [0.0, 0.0], TWICE),
    *(
        (kinked, [0.0], 0.0, [0.0], [[0.0]])
        for kinked in (
            *(sp.Abs(x), sp.sqrt(x**2), sp.Max(x, 0), sp.Max(0, x), -sp.Min(-x, 0)),
            *(sp.Piecewise((x, x > 0), (0, True)), sp.Piecewise((x, x >= 0), (0, True))),
            (x + sp.Abs(x)) / 2,
        )
    ),
    (sp.Abs(x), [7.0], 7.0, [1.0], [[0.0]]),
    (sp.Max(x, 0) ** 2, [-1.0], 0.0, [0.0], [[0.0]]),
    (sp.Sum(x**k, (k, 0, 2)), [0.0], 1.0, [1.0], [[2.0]]),
    (x ** sp.Rational(15, 8), [0.0], 0.0, [0.0], [[np.inf]]),
    (x**2.0, [-3.0], 9.0, [-6.0], [[2.0]]),
    (sp.Piecewise((sp.sqrt(x), x > 0), (0, True)), [-1.0], 0.0, [0.0], [[0.0]]),
    (sp.Piecewise((x, x < 1), (sp.sqrt(x), True)), [0.0], 0.0, [1.0], [[0.0]]),
    (sp.Product(X[i], (i, 0, n - 1)), [0.0, 3.0], 0.0, [3.0, 0.0], [[0.0, 1.0], [1.0, 0.0]]),
    (sp.log(1 + sp.exp(x)), [1000.0], 1000.0, [1.0], [[0.0]]),
    (
        sp.log(sp.Sum(sp.exp(X[i]), (i, 0, n - 1))),
        [1000.0, 1000.0], 1000.6931471805599, [0.5, 0.5], [[0.25, -0.25], [-0.25, 0.25]],
    ),
    (sp.Trace(M.T * M) + x**2 + y**2, [1.0, 2.0, 3.0, 4.0], 30.0, [2.0, 4.0, 6.0, 8.0],
     (2.0 * np.eye(4)).tolist()),
]  # fmt: skip


@pytest.mark.parametrize("backend", ["numpy", "numexpr"])
@pytest.mark.parametrize("case", CASES, ids=[f"{case[0]} at {case[1]}" for case in CASES])
def test_value_gradient_and_hessian(case: Case, backend: str) -> None:
    expr, at, value, gradient, hessian = case
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", slomodel.NonsmoothWarning)
        dims = {"n": len(at)} if n in expr.free_symbols else {}
        model = slomodel.compile(expr, dims=dims, backend=backend)
    assert model.value(at) == pytest.approx(value, rel=1e-15, abs=0)
    np.testing.assert_allclose(model.gradient(at), gradient, rtol=1e-15, atol=0)
    columns = [model.hvp(at, unit) for unit in np.eye(len(at))]
    np.testing.assert_allclose(np.transpose(columns), hessian, rtol=1e-14, atol=0)


def test_a_power_by_base_and_exponent() -> None:
    model = slomodel.compile(x**p, [x, p])
    assert model.value([0.0, 1.0]) == 0.0
    assert model.gradient([0.0, 1.0]).tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    "expr",
    [
        sp.Piecewise((sp.sin(x) / x, sp.Ne(x, 0)), (1, True)),
        sp.Piecewise((0, sp.Eq(x, 0)), (x, True)),
    ],
)
def test_a_choice_by_equality_of_a_variable_is_refused(expr: sp.Expr) -> None:
    """Its derivative by branches would be that of the single point."""
    with pytest.raises(slomodel.ModelSyntaxError, match="only holds at isolated points"):
        slomodel.compile(expr)
