"""Recognition of sums of squares in objectives, and the Gauss–Newton matrix against Jacobians."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import slomodel
from slomodel.calculus import degree, squares
from slomodel.errors import SourceText
from slomodel.front.elaboration.elaborate import elaborate
from slomodel.front.text.parse import parse
from slomodel.model.objective import CompiledObjective
from slomodel.problem import Problem

RNG = np.random.default_rng(5)
A, B, W = RNG.normal(size=(5, 3)), RNG.normal(size=5), RNG.uniform(size=5)
HEAD = "dim m, n\ndata A[m, n], b[m], w[m]\nvar x[n], s\nminimize "
Residual = Callable[[np.ndarray, np.ndarray], np.ndarray]

# The objective, and residuals whose squares sum to it up to a constant.
SUMS: dict[str, Residual] = {
    "sumsq(A @ x - b)": lambda x, s: A @ x - B,
    "0.5 * sumsq(A @ x - s * b) + 3": lambda x, s: (A @ x - s * B) / np.sqrt(2.0),
    "sum((exp(s * b[i]) - w[i])^2 for i in m) / 4": lambda x, s: (np.exp(s * B) - W) / 2.0,
    "sum(w[i] * sin(x[0] * b[i])^2 for i in m)": lambda x, s: np.sqrt(W) * np.sin(x[0] * B),
    "sum(w[i] / 2 * (b[i] - s)^4 for i in m) + s^2": lambda x, s: np.append(
        np.sqrt(W / 2.0) * (B - s) ** 2, s
    ),
    "norm2(x)^2 + (s - 1)^6": lambda x, s: np.append(x, (s - 1.0) ** 3),
    "sum((A[i, j] - b[i] * x[j])^2 for i in m, j in n)": lambda x, s: (A - np.outer(B, x)).ravel(),
}
NO_SUMS = (
    "sum(log(1 + (b[i] - s)^2) for i in m)",
    "sum(exp(s * b[i]) for i in m)",
    "s * sumsq(x)",
    "sumsq(x) + s",
    "sumsq(x)^2 * s^2",
    "norm2(x)",
    "max(s, 1)^3",
)


def problem_of(objective: str) -> Problem:
    source = SourceText(HEAD + objective)
    return elaborate(parse(source), source)


def split(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return x[:3], x[3]


def jacobian(residual: Residual, x: np.ndarray) -> np.ndarray:
    """The Jacobian by complex steps, column by column."""
    columns = [
        residual(*split(x + 1e-30j * unit)).imag / 1e-30 for unit in np.eye(x.size, dtype=complex)
    ]
    return np.array(columns).T


# Not every objective reads all data.
@pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")
@pytest.mark.parametrize("objective", SUMS)
def test_products_are_those_of_the_jacobian(objective: str) -> None:
    model = slomodel.compile(HEAD + objective, data={"A": A, "b": B, "w": W})
    compiled = CompiledObjective(model.n, model._function, model._compiled.derivatives, True)
    assert compiled.facts.squares
    x, v = RNG.normal(size=(2, 4))
    J = jacobian(SUMS[objective], x)
    np.testing.assert_allclose(compiled.gauss_newton(x, v), 2.0 * J.T @ (J @ v), rtol=1e-10)
    r = SUMS[objective](*split(x))
    np.testing.assert_allclose(model.gradient(x), 2.0 * J.T @ r, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("objective", NO_SUMS)
def test_what_is_not_a_sum_of_squares(objective: str) -> None:
    problem = problem_of(objective)
    assert squares(problem.objective, [v.node for v in problem.variables]) == ()


@pytest.mark.parametrize(
    ("objective", "expected"),
    [
        ("s", 1),
        ("sumsq(A @ x - b)", 2),
        ("sum(w[i] * (b[i] - s)^4 for i in m) / 3 + s^2 * x[0]", 4),
        ("s^7 - exp(2) * s", 7),
        ("(sumsq(x) * s)^2", 6),
        ("sum(where(b[i] > 0, s^3, s) for i in m)", 3),
        ("1 / s", None),
        ("s^0.5", None),
        ("s^-2", None),
        ("abs(s)", None),
        ("sum(exp(x[j]) for j in n)", None),
        ("where(s > 0, s^2, 0)", None),
    ],
)
def test_degrees(objective: str, expected: int | None) -> None:
    problem = problem_of(objective)
    assert degree(problem.objective, [v.node for v in problem.variables]) == expected
