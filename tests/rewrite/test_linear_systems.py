"""Inverses become systems, and logarithms of determinants one function, with the same values."""

from __future__ import annotations

import numpy as np
import pytest

import slomodel
from slomodel.ir.expr import MatrixOperation
from slomodel.ir.walk import postorder
from slomodel.rewrite.stable_forms.rules import stable
from tests.front.elaborated import problem_of

DECLARED = """dim n = 4, m = 3, p = 2
data S[n, n] symmetric, y[n], Y[n, m], G[p, n, n]
var A[n, n] init eye, x[n] init 1, L[n, n] in cholesky_factor init eye
let K = S + diag(x)
"""

# objective, operations after rewriting, value by NumPy
CASES = [
    ("sumsq(inv(A) @ y)", ["solve"], lambda d: np.sum(np.linalg.solve(d["A"], d["y"]) ** 2)),
    ("sumsq(y' @ inv(A))", ["solve"], lambda d: np.sum(np.linalg.solve(d["A"].T, d["y"]) ** 2)),
    ("sumsq(inv(A) @ Y)", ["solve"], lambda d: np.sum(np.linalg.solve(d["A"], d["Y"]) ** 2)),
    ("quad(inv(K), y)", ["solve_symmetric"], lambda d: d["y"] @ np.linalg.solve(d["K"], d["y"])),
    (
        "quad(inv(L @ L'), y)",
        ["solve_lower", "solve_upper"],
        lambda d: d["y"] @ np.linalg.solve(d["L"] @ d["L"].T, d["y"]),
    ),
    ("sumsq(inv(L) @ y)", ["solve_lower"], lambda d: np.sum(np.linalg.solve(d["L"], d["y"]) ** 2)),
    (
        "trace(inv(K) @ S)",
        ["solve_symmetric"],
        lambda d: np.trace(np.linalg.solve(d["K"], d["S"])),
    ),
    (
        "sumsq(inv(S) @ x)",
        ["inverse_symmetric"],
        lambda d: np.sum(np.linalg.solve(d["S"], d["x"]) ** 2),
    ),
    ("log(det(A))", ["logdet"], lambda d: np.linalg.slogdet(d["A"])[1]),
    (
        "sum(log(det(G[k, :, :] + diag(x))) for k in p)",
        ["logdet"],
        lambda d: np.linalg.slogdet(d["G"] + np.diag(d["x"]))[1].sum(),
    ),
    (
        "sum(sumsq(inv(G[k, :, :] + diag(x)) @ y) for k in p)",
        ["solve"],
        lambda d: (np.linalg.solve(d["G"] + np.diag(d["x"]), d["y"][:, None]) ** 2).sum(),
    ),
]


@pytest.mark.filterwarnings("ignore::slomodel.errors.ModelWarning")
@pytest.mark.parametrize(("objective", "operations", "by_numpy"), CASES)
def test_inverses_become_systems(objective: str, operations: list[str], by_numpy: object) -> None:
    text = f"{DECLARED}minimize {objective}"
    nodes = postorder(stable(problem_of(text).objective))
    found = [node.function for node in nodes if isinstance(node, MatrixOperation)]
    assert sorted(found) == operations
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3, 4, 4))
    data = {"S": X[0] @ X[0].T + np.eye(4), "y": rng.normal(size=4), "Y": rng.normal(size=(4, 3))}
    data["G"] = X[1:] @ X[1:].swapaxes(1, 2) + np.eye(4)
    model = slomodel.compile(text, data=data, backend="numpy")
    own = {
        "A": np.eye(4) + X[1] / 8,
        "x": rng.uniform(1, 2, 4),
        "L": np.eye(4) + np.tril(X[2], -1),
    }
    point = np.concatenate([own[name].ravel() for name in ("A", "x", "L")])
    every = {**data, **own, "K": data["S"] + np.diag(own["x"])}
    assert model.value(point) == pytest.approx(float(by_numpy(every)), rel=1e-11)  # type: ignore[operator]


def test_the_logarithm_of_a_determinant_does_not_underflow() -> None:
    text = "dim n = 300 var s init 1 minimize log(det(1e-2 * s * (eye(n) + 1e-3 * ones(n, n))))"
    model = slomodel.compile(text, backend="numpy")
    assert model.value([1.0]) == pytest.approx(300 * np.log(1e-2) + np.log(1.3))
    assert model.gradient([1.0]) == pytest.approx([300.0])
