"""Residuals of sums of squares and their Jacobian."""

from __future__ import annotations

import numpy as np
import pytest

import slomodel
from slomodel.errors import MissingRule

# text, data, residuals written in NumPy
CASES = [
    (
        "dim m\ndata t[m], y[m]\nvar a, k\nminimize sum((a*exp(-k*t[i]) - y[i])^2 for i in m)",
        {"t": np.linspace(0.0, 1.0, 5), "y": np.ones(5)},
        lambda x, d: x[0] * np.exp(-x[1] * d["t"]) - d["y"],
    ),
    (
        "dim m\ndata w[m]\nvar x[3]\nminimize sum(w[i]*(x[0]^2 - i*x[1])^2 for i in m)"
        " + 4*(x[2] - x[1])^2 + 7",
        {"w": np.array([0.0, 0.5, 2.0])},
        lambda x, d: np.append(
            np.sqrt(d["w"]) * (x[0] ** 2 - np.arange(3) * x[1]), 2.0 * (x[2] - x[1])
        ),
    ),
    (
        "dim n = 3\ndim m = 2\ndata A[m, n]\nvar x[n]\nminimize sumsq(A @ x - 1) + 0.25*sumsq(x)",
        {"A": np.arange(6.0).reshape(2, 3)},
        lambda x, d: np.concatenate([d["A"] @ x - 1.0, 0.5 * x]),
    ),
]


@pytest.mark.parametrize("backend", ["c", "numexpr", "numpy"])
@pytest.mark.parametrize(("text", "data", "by_hand"), CASES)
def test_residuals_and_jacobian(text, data, by_hand, backend) -> None:  # type: ignore[no-untyped-def]
    model = slomodel.compile(text, data=data, backend=backend)
    x = np.random.default_rng(3).normal(size=model.n)
    r, J = model.residuals(x), model.jacobian(x)
    wanted = by_hand(x, data)
    np.testing.assert_allclose(np.sort(np.abs(r)), np.sort(np.abs(wanted)), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(2.0 * J.T @ r, model.gradient(x), rtol=1e-11, atol=1e-12)
    steps = 1e-6 * np.eye(model.n)
    columns = [(model.residuals(x + s) - model.residuals(x - s)) / 2e-6 for s in steps]
    np.testing.assert_allclose(J, np.transpose(columns), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    "text", ["var x\nminimize exp(x) + x^2", "var x, y\nminimize x^2 - (x - y)^2"]
)
def test_other_objectives_have_none(text: str) -> None:
    model = slomodel.compile(text, backend="numpy")
    with pytest.raises(MissingRule, match="sum of squares"):
        model.residuals(np.ones(model.n))
