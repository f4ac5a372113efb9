"""Few unknowns by power series: near the constant, and no point of the ball that shows more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from bounds.settings import claimed, setting

from slomodel.bounds.arithmetic.power_series import PowerSeries
from slomodel.bounds.pipeline import claims
from slomodel.bounds.rules import power_series as rule
from slomodel.bounds.rules.power_series import _series, power_series

X = np.linspace(-1.0, 2.0, 6)
Y = np.array([0.3, -0.2, 1.0, 0.4, -0.9, 0.1])


def _kernel(x: np.ndarray) -> np.ndarray:
    d = X[:, None] - X[None, :]
    return np.exp(x[0] - d**2 * np.exp(x[1])) + 0.1 * np.eye(6)


def _filter(x: np.ndarray) -> float:
    a, P, total = 0.0, 4.0, 0.0
    for y in Y:
        S = P + np.exp(x[1])
        v = y - a
        total += np.log(S) + v**2 / S
        a, P = a + P / S * v, P * (1.0 - P / S) + np.exp(x[0])
    return total


KERNEL = (
    "dim n\ndata X[n], Y[n]\nvar a, b\nlet K[i in n, j in n] = exp(a - (X[i] - X[j])^2 * exp(b)) + "
)
KERNEL += "where(i == j, 0.1, 0)\n"
MODELS: dict[str, tuple[str, Callable[[np.ndarray], float], tuple[str, ...]]] = {
    "likelihood of a process": (
        KERNEL + "minimize logdet(K) + dot(Y, solve(K, Y))",
        lambda x: np.linalg.slogdet(_kernel(x))[1] + Y @ np.linalg.solve(_kernel(x), Y),
        ("X", "Y"),
    ),
    "factor": (
        KERNEL + "minimize sum(exp(cholesky(K) @ Y))",
        lambda x: np.sum(np.exp(np.linalg.cholesky(_kernel(x)) @ Y)),
        ("X", "Y"),
    ),
    "filter": (
        "dim T\ndata Y[T]\nvar q, r\n"
        "let a[t in T] = a[t-1] + k[t-1] * v[t-1] first 0\n"
        "and P[t in T] = P[t-1] * (1 - k[t-1]) + exp(q) first 4\n"
        "and v[t in T] = Y[t] - a[t]\nand S[t in T] = P[t] + exp(r)\nand k[t in T] = P[t] / S[t]\n"
        "minimize sum(log(S) + v^2 ./ S)",
        _filter,
        ("Y",),
    ),
    "mixture": (
        "dim n\ndata Y[n]\nvar m, s\n"
        "minimize -sum(logaddexp(-(Y[i] - m)^2, -(Y[i] - 1)^2 * exp(s) + s / 2) for i in n)",
        lambda x: (
            -np.sum(np.logaddexp(-((Y - x[0]) ** 2), -((Y - 1) ** 2) * np.exp(x[1]) + x[1] / 2))
        ),
        ("Y",),
    ),
    "index and largest": (
        "dim n\ndata Y[n]\nvar x[2]\nminimize max(x[0] + 9, x[1])^2 + abs(5 - x[0]) * sin(x[1])"
        " + exp(min(x[0], x[1] + 9)) + clip(x[1], -9, 7)^3"
        " + logsumexp(Y[i] * x[min(i, 1)] for i in n)",
        lambda x: (
            (x[0] + 9) ** 2
            + (5 - x[0]) * np.sin(x[1])
            + np.exp(x[0])
            + x[1] ** 3
            + np.log(np.sum(np.exp(Y * x[[0, 1, 1, 1, 1, 1]])))
        ),
        ("Y",),
    ),
}


def _hessian(f: Callable[[np.ndarray], float], x: np.ndarray, h: float = 1e-3) -> np.ndarray:
    e = h * np.eye(len(x))
    four = [f(x + s * a + t * b) * s * t for a in e for b in e for s in (1, -1) for t in (1, -1)]
    return np.reshape(four, (len(x), len(x), 4)).sum(2) / (4 * h * h)


@pytest.mark.filterwarnings("ignore::slomodel.errors.NonsmoothWarning")
@pytest.mark.parametrize("name", MODELS)
def test_bounds_hold_and_are_near(name: str) -> None:
    text, f, names = MODELS[name]
    centre, radius = [0.2, -0.1], 0.1
    data = {key: {"X": X, "Y": Y}[key] for key in names}
    found = claimed(power_series, setting(text, centre, **data), radius)
    assert found is not None
    rng = np.random.default_rng(1)
    best = [0.0, 0.0]
    for _ in range(40):
        v = rng.standard_normal(2)
        x = np.array(centre) + radius * rng.random() ** 0.3 * v / np.linalg.norm(v)
        H = _hessian(f, x)
        d = rng.standard_normal(2)
        d /= np.linalg.norm(d)
        inside = x + (np.array(centre) - x) * 0.02
        G = _hessian(f, inside)
        best[0] = max(best[0], float(np.linalg.norm(H, 2)))
        length = float(np.linalg.norm(inside - x))
        best[1] = max(best[1], float(np.linalg.norm(H - G, 2)) / length)
    assert best[0] <= found.L1 * (1.0 + 1e-4) <= 1.6 * best[0]
    assert best[1] <= found.L2 * (1.0 + 1e-2) + 1e-3


@pytest.mark.filterwarnings("ignore::slomodel.errors.NonsmoothWarning")
def test_a_ball_with_a_kink_or_a_pole_has_no_series() -> None:
    assert claimed(power_series, setting("var x minimize abs(x) + exp(x)", [0.05]), 0.1) is None
    assert claimed(power_series, setting("var x minimize 1/x", [0.5]), 0.6) is None
    near = claimed(power_series, setting("var x minimize 1/x", [0.5]), 0.4)
    assert near is not None
    assert 2e3 <= near.L1 <= 2.5e3
    assert 6e4 <= near.L2 <= 18e4


def test_a_ball_that_no_cells_can_bound_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    regions = []

    def counted(*given: Any) -> PowerSeries:
        regions.append(given)
        return _series(*given)

    monkeypatch.setattr(rule, "_series", counted)
    pole = setting("var x[9] minimize log(sum(exp(x)) - 9 + 1e-9)", [0.0] * 9)
    assert claimed(power_series, pole, 0.1) is None
    assert len(regions) == 2
    # A pole at the edge is no reason: cells are divided towards it.
    near = setting("var x[2] minimize log(x[0] + exp(x[1]))", [-0.8, 0.0])
    assert claimed(power_series, near, 0.12) is not None


def test_cells_of_recurrences_are_tried_where_series_leave_a_gap() -> None:
    text = """dim T data y[T] var a, b
    let s[t in T] = sin(a * s[t-1]) + b * y[t] first 1
    minimize sumsq(s - y)"""
    own = setting(text, [0.5, 0.3], y=Y[:3])

    def rules(radius: float) -> set[str]:
        return {one.rule.split(":")[0] for one in claims(own, radius).L1}

    assert "power series" in rules(0.1)
    assert "interval entries" not in rules(0.1)
    assert "interval entries" in rules(3.0)


def test_many_unknowns_are_left_to_other_rules() -> None:
    many = setting("var x[30] minimize sum(exp(x)) + prod(x)", [0.1] * 30)
    assert claimed(power_series, many, 0.1) is None


@pytest.mark.parametrize(
    ("text", "centre", "radius", "L1", "L2"),
    [
        # At (0, 1, 0): a cell of x and y, whose points are further from its middle than z is long.
        (
            "1 / sqrt(1 + 5*x[0]^2) * sqrt(1.005 - x[1]) + x[2]",
            [0.0, 0.0, 0.0],
            1.0,
            707.106,
            212132.0,
        ),
        # At 6e38, whose tenth power overflows.
        ("x[0]^7.9", [5e38], 1e38, 3.36952404063022e230, 3.313365306619e192),
        # exp(-x) underflows at the centre, and is 1e-17 at the end of the ball.
        ("exp(-x[0])", [760.0], 720.0, 4.248354255e-18, 4.248354255e-18),
    ],
)
def test_bounds_hold_at_the_edges(
    text: str, centre: list[float], radius: float, L1: float, L2: float
) -> None:
    found = claimed(power_series, setting(f"var x[{len(centre)}]\nminimize {text}", centre), radius)
    assert found is not None
    assert found.L1 >= L1
    assert found.L2 >= L2


def test_tails_are_looked_up_where_the_index_says() -> None:
    """The second derivative by the unknown that moves most, at the edge of the ball."""
    text = "dim m\ndata k[m] whole\nvar x[3]\nminimize sum(exp(2 * x[k[i]]) for i in m)"
    own = setting(text, [-4.0, 4.0, -4.0], k=np.array([1, 1]))
    found = claimed(power_series, own, 1.5)
    assert found is not None
    assert 8.0 * np.exp(11.0) <= found.L1 <= 16.0 * np.exp(11.0)
