"""Stable forms of SymPy expressions are those of text."""

import pytest
import sympy as sp

from slomodel.front.sympy_expressions.elaborate import problem_from_sympy
from tests.rewrite.texts import functions_of, problem_of

X, Y = sp.symbols("x y", real=True)
V = sp.IndexedBase("v", shape=(3,))
INDEX = sp.Symbol("i", integer=True)


@pytest.mark.parametrize(
    ("expr", "functions"),
    [
        (sp.log(1 + sp.exp(X)), {"softplus"}),
        (2 * sp.log(1 + sp.exp(-Y * X)), {"softplus"}),
        (1 / (1 + sp.exp(-X)), {"sigmoid"}),
        (3 / (1 + sp.exp(-X)), {"sigmoid"}),
        (sp.exp(X) / (1 + sp.exp(X)), {"sigmoid"}),
        (1 - sp.tanh(X) ** 2, {"sech2"}),
        (2 * (1 - sp.tanh(X) ** 2), {"sech2"}),
        (sp.log(1 + X), {"log1p"}),
        (2 * (sp.exp(X) - 1), {"expm1"}),
        (sp.log(sp.cosh(X)), {"logcosh"}),
        (X * sp.log(X), {"xlogx"}),
        (sp.sqrt(X**2 + Y**2), {"hypot"}),
        (sp.sqrt(X**2), {"abs"}),
        (sp.Max(X, 0), {"relu"}),
        (sp.Piecewise((X, X >= 0), (0, True)), {"relu"}),
        ((X + sp.Abs(X)) / 2, {"relu"}),
        (sp.log(sp.exp(X) + sp.exp(Y)), {"logaddexp"}),
        (sp.log(1 + sp.exp(X)) - X, {"softplus"}),
        (sp.log(1 + sp.exp(X) ** 2), {"softplus"}),
        (sp.log((sp.exp(X) + sp.exp(-X)) / 2), {"logcosh"}),
        ((sp.exp(X) - sp.exp(-X)) / (sp.exp(X) + sp.exp(-X)), {"tanh"}),
        (2 / (1 + sp.exp(-2 * X)) - 1, {"tanh"}),
        (sp.exp(X) / (1 + sp.exp(X)) ** 2, {"sech2"}),
        (sp.exp(X) ** -1, {"exp"}),
        (
            sp.log(sp.Sum(sp.exp(V[INDEX]), (INDEX, 0, 2))),
            functions_of(problem_of("logsumexp(v)").objective),
        ),
    ],
)
def test_sympy_expressions_too(expr: sp.Expr, functions: set[str]) -> None:
    assert functions_of(problem_from_sympy(expr).objective) == functions


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (sp.log(1 + sp.exp(X)), "softplus(x)"),
        (sp.log(sp.exp(X) + 1) - X, "softplus(-x)"),
        (1 / (1 + sp.exp(-X)), "sigmoid(x)"),
        (sp.exp(X) / (1 + sp.exp(X)), "sigmoid(x)"),
        (sp.log(sp.cosh(X)), "logcosh(x)"),
        (sp.log((sp.exp(X) + sp.exp(-X)) / 2), "logcosh(x)"),
        (sp.log(1 + X), "log1p(x)"),
        (sp.log(1 - X), "log1p(-x)"),
        (sp.exp(X) - 1, "expm1(x)"),
        (1 - sp.tanh(X) ** 2, "1 - tanh(x)^2"),
        ((sp.exp(X) - sp.exp(-X)) / (sp.exp(X) + sp.exp(-X)), "tanh(x)"),
        (X * sp.log(X), "x * log(x)"),
        (sp.sqrt(X**2 + Y**2), "sqrt(x^2 + y^2)"),
        (sp.sqrt(X**2 + Y**2) ** 2, "x^2 + y^2"),
    ],
)
def test_the_graph_is_that_of_text(expr: sp.Expr, text: str) -> None:
    """So the values that are tested of text hold of SymPy too."""
    assert problem_from_sympy(expr).objective is problem_of(text).objective
