"""Sums of squares along axes over a ball: no value below their ranges, and exact for W x."""

from __future__ import annotations

import numpy as np
import pytest
from bounds.settings import setting as part_of

from slomodel.bounds import ObjectivePart
from slomodel.bounds.ranges.curvature.centre_graph import centre_graph
from slomodel.bounds.ranges.curvature.hessian_ranges import BallGraph, ball_graph, is_sum_of_squares
from slomodel.ir.expr import Einsum
from slomodel.ir.walk import postorder
from slomodel.reference import evaluate

RNG = np.random.default_rng(5)
X = RNG.standard_normal((4, 3))
HEAD = "dim N, p\ndata X[N, p]\nvar W[5, p]\nlet u = X @ W'\n"
TEXTS = {
    "affine": "let z = u\n",
    "less the mean": "let z[i in N, j in 5] = u[i, j] - mean(u[i, :])\n",
    "curved": "let z[i in N, j in 5] = sin(u[i, j]) + u[i, j]^2\n",
}
TAIL = "minimize sum(u[i, 0] / sqrt(sumsq(z[i, :]) + 0.1) for i in N)"
CENTRE = RNG.standard_normal(15)


def graph(text: str, radius: float) -> tuple[ObjectivePart, BallGraph, Einsum]:
    setting = part_of(HEAD + TEXTS[text] + TAIL, CENTRE.tolist(), X=X)
    run = ball_graph(setting, radius, centre_graph(setting, ()))
    (node,) = (one for one in postorder(setting.objective) if is_sum_of_squares(one))
    return setting, run, node


@pytest.mark.parametrize("radius", [1e-9, 0.03, 0.3])
@pytest.mark.parametrize("text", TEXTS)
def test_no_norm_is_below_its_range(text: str, radius: float) -> None:
    setting, run, node = graph(text, radius)
    (variable,) = setting.variables
    for direction in RNG.standard_normal((200, 15)):
        d = (radius * (1.0 - 1e-12) / np.linalg.norm(direction)) * direction
        at = {**setting.values, variable: (CENTRE + d).reshape(5, 3)}
        (q,) = evaluate((node,), at, setting.sizes)
        assert (run.ranges[node].lo <= q * (1.0 + 1e-12)).all()
        assert (q <= run.ranges[node].hi * (1.0 + 1e-12)).all()


def test_the_least_norm_of_a_product_is_exact() -> None:
    """‖W x‖ >= ‖W(c) x‖ - r‖x‖, attained at W(c) - r y xᵀ/‖x‖."""
    _, run, node = graph("affine", 0.3)
    exact = np.linalg.norm(X @ CENTRE.reshape(5, 3).T, axis=1) - 0.3 * np.linalg.norm(X, axis=1)
    least = np.maximum(exact, 0.0) ** 2
    assert (run.ranges[node].lo <= least * (1.0 + 1e-12)).all()
    np.testing.assert_allclose(run.ranges[node].lo, least, rtol=1e-9)
