"""Orthogonal compression: when it applies and when it must not, with unchanged values."""

import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from strategies import Example, graphs

import slomodel
from slomodel.reference import evaluate
from slomodel.rewrite import PASSES, Facts
from tests.rewrite.compressed import (
    TARGETS,
    K,
    M,
    assert_same,
    compiled,
    drawn,
    told,
)

# Each with the numbers that are left of a column of M.
FIRES = {
    "matrices": ("sumsq(V @ W @ X - Y)", K + 2),
    "right to left": ("sumsq(Y - V @ (W @ (X - m[:, None])))", 2 + K),
    "a row": ("sum((v' @ W @ X + b - y)^2) / 7 + 0.1 * sumsq(W)", K + 2),
    "a product": ("(X' @ w - y)' @ (X' @ w - y)", K + 1),
    "norm": ("norm2(X' @ w - y)^2 / 2", K + 1),
    "mean": ("log(1 + mean((y - X' @ w)^2))", K + 1),
    "indices": ("sum((sum(X[i, j] * w[i] for i in K) - y[j])^2 for j in M)", K + 1),
    "two indices": (
        "sum((Y[a, j] - sum(V[a, h] * W[h, i] * X[i, j] for h in H, i in K))^2 for a in 2, j in M)",
        K + 2,
    ),
    "constant": ("sum((X' @ w + b + 1)^2)", K + 1),
    "weights": ("sum(c .* (X' @ w - y)^2)", K + 1),
    "weighted inside": ("sumsq(c .* (X' @ w - y) ./ (1 + c))", K + 1),
    "weighted rows": ("sum(c[j] * (y[j] - b)^2 for j in M) * exp(b)", 2),
    "masked": ("sumsq(masked(X' @ w - y, c))", K + 1),
    "standardised": ("sumsq(v' @ W @ ((X - m[:, None]) ./ d[:, None]) - y)", K + 1),
    "groups": ("sum(sqrt(1 + sum((W @ X)[h, j]^2 for j in M)) for h in H)", K),
    "all entries": ("sumsq(b * Y - X[:2, :] * w[0])", 2),
    "a factor in front": ("sumsq(exp(b) * (X' @ w) - b * y)", K + 1),
    "chosen": ("sumsq(where(y > 0, X' @ w, b - y))", K + 2),
}

NEVER = {
    "activation": "sumsq(v' @ tanh(W @ X) - y)",
    "absolute values": "sum(abs(X' @ w - y))",
    "a scale of each sample": "sumsq(u .* (X' @ w - y))",
    "weights that vary": "sum(u^2 .* (X' @ w - y)^2)",
    "fourth powers": "sum((X' @ w - y)^4)",
    "an offset of each sample": "sumsq(X' @ w - y - u)",
    "two forms": "sum((X' @ w - y) .* (X' @ w))",
    "squares of squares": "sum(((X' @ w)^2 - y)^2)",
    "more numbers than samples": "sumsq(Z' @ t - y[:5])",
    "a condition that varies": "sumsq(where(X' @ w > 0, X' @ w, y))",
    "negative weights": "sum(y .* (X' @ w - y)^2)",
    "narrow": "sumsq(A @ w - e)",
}


@pytest.mark.parametrize("backend", TARGETS)
@pytest.mark.parametrize("name", FIRES)
def test_fires(name: str, backend: str) -> None:
    objective, rows = FIRES[name]
    model = compiled(objective, backend=backend)
    columns = 2 * M if name == "all entries" else M
    assert [line.split(": ")[1] for line in told(model)] == [f"{columns} columns become {rows}"]
    assert_same(model, compiled(objective, backend=backend, rewrites=False))


@pytest.mark.filterwarnings("ignore::slomodel.NonsmoothWarning")
@pytest.mark.parametrize("name", NEVER)
def test_does_not_fire(name: str) -> None:
    assert told(compiled(NEVER[name])) == []


def sympy_forms() -> dict[str, tuple[sp.Expr, list[object]]]:
    """‖Xᵀ w - y‖² as a sum by index, by the elements of a matrix, and as a trace."""
    i, j = sp.symbols("i j", integer=True)
    X, y, w = sp.IndexedBase("X"), sp.IndexedBase("y"), sp.IndexedBase("w", shape=(K,))
    inner = sp.Sum(X[i, j] * w[i], (i, 0, K - 1)) - y[j]
    wide, column, weights = (
        sp.MatrixSymbol("X", K, M),
        sp.MatrixSymbol("y", M, 1),
        sp.MatrixSymbol("w", K, 1),
    )
    r = wide.T * weights - column
    return {
        "sum": (sp.Sum(inner**2, (j, 0, M - 1)), [w]),
        "elements": (sp.Sum(r[j, 0] ** 2, (j, 0, M - 1)), [weights]),
        "trace": (sp.Trace(r.T * r), [weights]),
    }


@pytest.mark.parametrize("name", ["sum", "elements", "trace"])
def test_fires_on_sympy(name: str) -> None:
    expression, variables = sympy_forms()[name]
    given = drawn()
    data = {"X": given["X"], "y": given["y"] if name == "sum" else given["y"][:, None]}
    model = slomodel.compile(expression, variables, data=data)
    assert [line.split(": ")[1] for line in told(model)] == [f"{M} columns become {K + 1}"]
    assert_same(model, slomodel.compile(expression, variables, data=data, rewrites=False))


@given(example=graphs(max_steps=6))
def test_random_graphs_keep_their_values(example: Example) -> None:
    """The passes give the same number, by the plain interpreter, for any graph and data."""
    data = {node: np.asarray(example.values[node], float) for node in example.data}
    for run in (one.run for one in PASSES if one.run is not None):
        made, _ = run(example.objective, Facts(example.sizes, data))
        (found,) = evaluate([made], example.values, example.sizes)
        (expected,) = evaluate([example.objective], example.values, example.sizes)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
