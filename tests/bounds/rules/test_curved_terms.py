"""Curved terms: exact examples, averages under softmax, and no point that shows more."""

import math

import numpy as np
import pytest
from bounds.settings import Claimed, claimed, setting
from scipy.special import logsumexp as reference_logsumexp

import slomodel
from slomodel.bounds import ObjectivePart
from slomodel.bounds.enclosure import norm_of
from slomodel.bounds.ranges.curvature.hessian_ranges import ball_graph
from slomodel.bounds.ranges.hessian import derivatives
from slomodel.bounds.rules import curved_terms as curved_rule
from slomodel.bounds.rules.cells import CellOfBall
from slomodel.bounds.rules.curved_terms import curved_terms
from slomodel.reference import evaluate

CHOICE = """
dim N, K
data A[N, K], B[N, K]
var b[2]
let V[n in N, k in K] = b[0] * A[n, k] + b[1] * B[n, k]
minimize sum(logsumexp(V[n, k] for k in K) - V[n, 0] for n in N)
"""
KINDS = {
    "likelihood": (
        """
        dim N
        data y[N], z[N]
        var a, b, s
        minimize N * s + sumsq(y - a - b * z) / (2 * exp(2 * s))
        """,
        [0.1, -0.3, 0.2],
        {"y": np.sin(np.arange(9.0)), "z": np.cos(np.arange(9.0))},
    ),
    "mixture": (
        """
        dim N
        data y[N]
        var m[2], s[2]
        minimize -sum(logsumexp(-s[k] - ((y[i] - m[k]) * exp(-s[k]))^2 / 2 for k in 2) for i in N)
        """,
        [-0.5, 0.7, 0.1, -0.2],
        {"y": np.linspace(-2.0, 2.0, 7)},
    ),
    "effects": (
        """
        dim N, n
        data y[N], g[N] in n, w[n]
        var m, s, e[n]
        let u = m + exp(s) * e[g]
        minimize sum(softplus(u) - y .* u) + sumsq(e) / 2 + sum(w[i] * (e[i] * s) ^ 3 for i in n)
        """,
        [0.2, 0.3, *(0.2 * (k % 3) for k in range(9))],
        {"y": np.arange(18) % 2, "g": np.arange(18) % 9, "w": np.ones(9)},
    ),
    "horseshoe": (
        """
        dim N, n
        data X[N, n]
        var t, l[n], z[n]
        let b = exp(t) * z .* exp(l) ./ sqrt(1 + exp(2 * t + 2 * l))
        minimize sum(tanh(X @ b)) + sumsq(z) / 2
             + sum(where(X[i, 0] > 0, b[0], 1) * X[i, 1] for i in N)
        """,
        [0.1] * 9 + [0.0] * 8,
        {"X": np.random.default_rng(8).standard_normal((6, 8))},
    ),
    "products": ("var x[2, 2], y[2]\nminimize sum(exp(x @ y)) + sumsq(x) / 2", [0.3] * 6, {}),
    "squares": ("var x[3]\nminimize sqrt(1 + sumsq(x)) * exp(x[0])", [0.2, -0.4, 0.1], {}),
    "negative": ("var x[2]\nminimize -log(sum(exp(x[i] * x[1]) for i in 2))", [0.4, 0.9], {}),
}


def bound(one: ObjectivePart, radius: float) -> Claimed:
    with np.errstate(all="ignore"):
        found = claimed(curved_terms, one, radius)
    assert found is not None
    return found


def hessian(one: ObjectivePart, x: np.ndarray) -> np.ndarray:
    """H(x) (n, n) by the reference interpreter, for a setting with these derivatives."""
    graphs = derivatives(one)
    columns = []
    for e in np.eye(one.n):
        values = {**one.values, **_split(one, one.variables, x), **_split(one, graphs.v, e)}
        columns.append(np.concatenate([np.ravel(a) for a in evaluate(graphs.second, values, {})]))
    return np.array(columns)


def _split(one: ObjectivePart, inputs: tuple, x: np.ndarray) -> dict:
    found, start = {}, 0
    for variable, own in zip(one.variables, inputs, strict=True):
        shape = np.shape(one.values[variable])
        stop = start + math.prod(shape)
        found[own] = x[start:stop].reshape(shape)
        start = stop
    return found


def test_the_example_is_exact() -> None:
    """f = exp(2x) over radius 1: L1 = 4 exp(2), L2 = 8 exp(2)."""
    found = bound(setting("var x\nminimize exp(2 * x)", [0.0]), 1.0)
    assert 4.0 * math.exp(2.0) <= found.L1 <= 4.01 * math.exp(2.0)
    assert 8.0 * math.exp(2.0) <= found.L2 <= 8.01 * math.exp(2.0)


def test_a_common_shift_of_classes_costs_nothing() -> None:
    """log Σ exp depends on differences: Böhning's bound, ½ of the centred Gram matrix."""
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((2, 20, 4))
    shifted = setting(CHOICE, [0.0, 0.0], A=A + 1000.0, B=B)
    plain = setting(CHOICE, [0.0, 0.0], A=A, B=B)
    for radius in (0.1, 10.0):
        one, other = bound(plain, radius), bound(shifted, radius)
        assert other.L1 <= 1.001 * one.L1
    centred = np.stack([A, B], axis=-1)
    centred -= centred.mean(axis=1, keepdims=True)
    gram = np.einsum("nkp,nkq->pq", centred, centred)
    assert 1.3 * 0.5 * np.linalg.norm(gram, 2) >= bound(shifted, 1e3).L1


@pytest.mark.parametrize("name", KINDS)
def test_the_centre_is_that_of_the_entries(name: str) -> None:
    text, centre, data = KINDS[name]
    one = setting(text, centre, **data)
    norm = np.linalg.norm(hessian(one, np.array(centre)), 2)
    found = bound(one, 0.0)
    assert norm * (1 - 1e-12) <= norm_of(found.enclosure.centre.second) <= 1.0001 * norm
    assert 1.01 * norm >= bound(one, 1e-4).L1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("radius", [0.1, 0.7])
def test_no_point_shows_more(name: str, radius: float) -> None:
    text, centre, data = KINDS[name]
    one = setting(text, centre, **data)
    found = bound(one, radius).enclosure
    assert found is not None
    rng = np.random.default_rng(1)
    before, x0 = None, np.array(centre)
    for _ in range(4):
        d = rng.standard_normal(one.n)
        x = x0 + radius * d / np.linalg.norm(d)
        H = hessian(one, x)
        ends = np.linalg.eigvalsh(H)
        slack = 1e-9 * norm_of((ends[-1], -ends[0]))
        assert ends[-1] <= found.over.second[0] + slack
        assert -ends[0] <= found.over.second[1] + slack
        if before is not None:
            rate = np.linalg.norm(H - before[1], 2) / np.linalg.norm(x - before[0])
            assert rate <= found.over.third * (1 + 1e-6)
        before = x, H


def test_elements_share_the_radius() -> None:
    """N effects of length at most r together: four times as many cost twice as much, not four."""
    text, _, _ = KINDS["effects"]
    found = []
    for n in (32, 128):
        y = np.arange(n) % 2
        one = setting(text, [0.0] * (n + 2), y=y, g=np.arange(n), w=np.zeros(n))
        found.append(bound(one, 1.0).L1)
    assert found[1] <= 2.6 * found[0]


def test_weights_far_apart_are_averages() -> None:
    """Two classes 40 apart: all of the weight is on one, and the variance is next to nothing."""
    one = setting("var x[2]\nminimize logsumexp(x[k] + 40 * k for k in 2)", [0.0, 0.0])
    p = np.exp(-40.0 - reference_logsumexp([0.0, -40.0]))
    assert 3.0 * math.exp(math.sqrt(0.5)) * 2.0 * p >= bound(one, 0.5).L1


def test_a_ball_is_divided_where_few_unknowns_are_decisive() -> None:
    """Weights that change over the ball: cells show less than the ball does, and hold."""
    text, centre, data = KINDS["mixture"]
    one = setting(text, centre, **data)
    known = curved_rule._known(one)
    assert known is not None
    graph = ball_graph(known.part, 0.7, known.centre)
    whole = curved_rule._over(known, CellOfBall.whole(one.n), graph)
    found = bound(one, 0.7).enclosure
    assert found is not None
    assert norm_of(found.over.second) < 0.8 * norm_of(whole.ends)
    rng = np.random.default_rng(2)
    for _ in range(20):
        d = rng.standard_normal(one.n)
        H = hessian(one, np.array(centre) + 0.7 * d / np.linalg.norm(d))
        assert np.linalg.norm(H, 2) <= norm_of(found.over.second)


def test_cells_cover_the_ball() -> None:
    rng = np.random.default_rng(3)
    centre, radius = rng.standard_normal(3) * [1.0, 1e6, 1e-6], 0.7
    cells = [CellOfBall.whole(3)]
    for j in (0, 1, 0, 2, 2, 1):
        cells = [half for cell in cells for half in cell.halves(j, radius)]
    regions = [cell.around(centre, radius) for cell in cells]
    for _ in range(200):
        d = rng.standard_normal(3)
        y = radius * d / np.linalg.norm(d) * rng.choice([1.0, 0.3])
        inside = []
        for found in regions:
            if found is None:
                continue
            at, region = found
            moved = np.abs((centre - at) + y)
            inside.append(bool((moved <= region.half * (1 + 1e-12)).all()))
            rows = np.abs(rng.standard_normal((3, 4)))
            if inside[-1]:
                assert (rows.T @ moved <= region.reach(rows) * (1 + 1e-12)).all()
        assert any(inside)


@pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")
@pytest.mark.parametrize(
    "text",
    [
        "sum(where(W @ u > 0.3, 0.5, 1) + cos(W @ u))",
        "sum(where(tanh(W @ u) > 0.3, 0.5 * (W @ u)^2, 0.2 * sin(W @ u)))",
        "sum(where(W @ u > 0.3 and W @ u < 0.9, 0.5, 1) .* cos(W @ u))",
    ],
)
def test_conditions_on_arguments_of_other_functions(text: str) -> None:
    model = slomodel.compile(f"dim n = 2 var u[n], W[n, n] minimize {text}", backend="numpy")
    far = model.bounds(np.full(6, 0.1), 0.1, effort="quick")
    assert 0.0 < far.L1 < 10.0
    assert np.inf == model.bounds(np.full(6, 0.387), 0.1, effort="quick").L1
