"""How far whole arrays move: no point of the ball shows more; by linear maps exactly so far."""

from __future__ import annotations

import numpy as np
import pytest
from bounds.settings import setting

from slomodel.bounds import ObjectivePart
from slomodel.bounds.arithmetic.interval import point
from slomodel.bounds.ball import Ball
from slomodel.bounds.norms.loewner import Rows
from slomodel.bounds.norms.shared_weights import SharedWeights
from slomodel.bounds.ranges.curvature.centre_graph import centre_graph
from slomodel.bounds.ranges.curvature.hessian_ranges import ball_graph
from slomodel.functions import exp
from slomodel.ir.expr import Expr, Input, Map
from slomodel.reference import evaluate

RNG = np.random.default_rng(5)
DATA = {"X": RNG.standard_normal((5, 6)), "g": np.array([0, 1, 1, 3, 1]), "y": np.arange(5.0)}
HEAD = "dim N, n\ndata X[N, n], g[N] in n, y[N]\nvar s, e[n], c[n]\n"
REST = " + sumsq(e) + sumsq(c) + s^2 + sum(y) + sum(X) + sum(c[g])"
TEXTS = {
    "scale times effects": "minimize sumsq(y - exp(s) * e[g])",
    "matrix": "minimize sum(sin(X @ (e .* c)))",
    "quotients": "minimize sum(log1p((e / (2 + s^2))^2) .* c / (3 + e))",
    "choices": "minimize sum(where(y[i] > 1, exp(e[g[i]]), s * c[g[i]]^2) for i in N)",
    "pairs": "minimize sum(tanh(e[i] * c[j] - s) for i in n, j in n)",
    "contractions": "minimize sum(e .* c) * s + sum(X[i, j] * e[j] * c[j] * s for i in N, j in n)",
    "stencil": "minimize sumsq(e[1:] - e[:n-1]) * cosh(s) + max(c .* e) * c[0]",
}


def made(text: str, seed: int) -> ObjectivePart:
    rng = np.random.default_rng(seed)
    centre = rng.standard_normal(13) * (rng.random(13) < 0.7)
    return setting(HEAD + text + REST, list(centre), **DATA)


def nodes_at(one: ObjectivePart, nodes: list[Expr], x: np.ndarray) -> list[np.ndarray]:
    values = {**one.values, **one.by_variable(x)}
    return [np.asarray(a, dtype=float) for a in evaluate(nodes, values, one.sizes)]


@pytest.mark.filterwarnings("ignore::slomodel.errors.NonsmoothWarning")
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("radius", [1e-3, 0.5, 2.0])
def test_no_array_moves_farther(text: str, radius: float) -> None:
    one = made(text, seed=3)
    run = ball_graph(one, radius, centre_graph(one, ()))
    nodes = [node for node in one.order if node.dtype == "real"]
    shifts = [run.shifts.of(node) for node in nodes]
    at_centre = nodes_at(one, nodes, one.x)
    ball, rng = Ball(one.x, radius), np.random.default_rng(1)
    for k in range(60):
        d = rng.standard_normal(one.n)
        if k % 2:  # along few unknowns
            d *= rng.random(one.n) < 0.3
        x = ball.at(d / max(float(np.linalg.norm(d)), 1e-300) * rng.random() ** 0.2)
        for node, shift, before, after in zip(
            nodes, shifts, at_centre, nodes_at(one, nodes, x), strict=True
        ):
            slack = 1e-12 * (1.0 + float(np.linalg.norm(before)))
            assert np.linalg.norm(after - before) <= shift * (1.0 + 1e-12) + slack, node


@pytest.mark.parametrize(
    ("inner", "factor"),
    [
        ("e", 1.0),
        ("3 * e", 3.0),
        ("e[g]", np.sqrt(3.0)),
        ("X @ e", np.linalg.norm(DATA["X"], 2)),
        ("e[1:] - e[:n-1]", 2.0),
    ],
)
def test_linear_maps_move_arrays_by_their_norms(inner: str, factor: float) -> None:
    one = made(f"let u = {inner}\nminimize sum(exp(u))", seed=4)
    run = ball_graph(one, 0.25, centre_graph(one, ()))
    (u,) = (
        node.operands[0] for node in one.order if isinstance(node, Map) and node.function is exp
    )
    assert run.shifts.of(u) == pytest.approx(0.25 * factor, rel=1e-9)


def test_elements_share_the_radius() -> None:
    """σ e_i moves by (σ + r) r in each element, and all of them together by no more."""
    one = setting("var s, e[50]\nminimize sum(sin(s * e))", [2.0] + [0.0] * 50)
    run = ball_graph(one, 0.1, centre_graph(one, ()))
    arrays = [node for node in one.order if node.shape and not isinstance(node, Input)]
    assert max(run.shifts.of(node) for node in arrays) <= 0.211


@pytest.mark.parametrize("seed", range(20))
def test_shared_weights_dominate(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, n = 7, 4
    a, b = rng.standard_normal((2, m, n)) * (rng.random((2, m, n)) < 0.6)
    if seed % 2:
        b = a
    first, second = (Rows.of(point(rows)) for rows in (a, b))
    d = float(rng.random())
    shared = SharedWeights(point(np.zeros(m)), d)
    M = shared.matrix(first, second).value
    for _ in range(30):
        delta = rng.standard_normal(m)
        delta *= d / np.linalg.norm(delta)
        H = (a.T * delta) @ b
        assert np.linalg.eigvalsh(M - (H + H.T) / 2)[0] >= -1e-12
    # The bound is reached where all rows are one.
    rows = Rows.of(point(np.tile([[0.0, 2.0]], (9, 1))))
    top = SharedWeights(point(np.zeros(9)), 0.5).matrix(rows, rows).value
    assert np.linalg.eigvalsh(top)[-1] == pytest.approx(0.5 * 3.0 * 4.0, rel=1e-9)
