"""Recurrences of averages: hidden Markov models, sequence labels, alignments, mixtures per step."""

from __future__ import annotations

import numpy as np
import pytest
from bounds.settings import claimed

import slomodel
from slomodel.bounds import ObjectivePart
from slomodel.bounds.ranges.derivative_norms.propagate import norms_over_ball
from slomodel.bounds.ranges.hessian import derivatives
from slomodel.bounds.rules.averages import averages
from slomodel.reference import evaluate

HIDDEN_MARKOV = """dim T, K data y[T], w[T] var mu[K], s, A[K, K]
let l = A - logsumexp(A, axis=1)[:, None]
let e[t in T, k in K] = -w[t] * ((y[t] - mu[k]) * exp(-s))^2 - s
let f[t in T, k in K] = where(t == 0, e[0, k], logsumexp(f[t-1, j] + l[j, k] for j in K) + e[t, k])
minimize -logsumexp(f[T-1, :]) + 0.1 * sumsq(mu)"""
LABELS = """dim N, T, K, P data X[N, T, P], c[N] var W[K, P], A[K, K]
let u[i in N, t in T, k in K] = sum(W[k, j] * X[i, t, j] for j in P)
let f[t in T, i in N, k in K] =
  where(t == 0, u[i, 0, k], u[i, t, k] + logsumexp(f[t-1, i, j] + A[j, k] for j in K))
minimize sum(c[i] * logsumexp(f[T-1, i, k] for k in K) for i in N) - sum(sin(W))"""
ALIGNMENT = """dim M, N data y[N], g = 0.5 var x[M]
let R[i in M, j in N] = (x[i] - y[j])^2 + where(i == 0, where(j == 0, 0, R[0, j-1]), where(j == 0,
  R[i-1, 0], -g*log(exp(-R[i-1, j]/g) + exp(-R[i, j-1]/g) + exp(-R[i-1, j-1]/g))))
minimize R[M-1, N-1]"""
MIXED = """dim T, K, Q data y[T] var m[K, Q], a[Q], b
let e[t in T, k in K] = logsumexp(a[q] - (y[t] - m[k, q])^2 for q in Q)
let f[t in T, k in K] =
  where(t == 0, e[0, k], logsumexp(f[t-1, j] + where(j == k, b, 0) for j in K) + e[t, k])
minimize sum(f[T-1, k]^2 for k in K) + tanh(f[2, 0]) + logaddexp(f[1, 0], 2*f[1, 1])"""


TEXTS = {
    "hidden Markov": HIDDEN_MARKOV,
    "labels": LABELS,
    "alignment": ALIGNMENT,
    "mixed": MIXED,
}


def _made(text: str, seed: int, steps: int) -> tuple[slomodel.Model, np.ndarray]:
    """A model with random data, and a point."""
    draw = np.random.default_rng(seed)
    data: dict[str, np.ndarray] = {"y": draw.normal(size=steps)}
    dims = {"K": 2}
    if text is HIDDEN_MARKOV:
        data["w"] = draw.random(steps) - 0.2
    if text is LABELS:
        data = {"X": draw.normal(size=(3, steps, 2)), "c": draw.random(3)}
    if text is ALIGNMENT:
        dims = {"M": 4}
    if text is MIXED:
        dims["Q"] = 2
    model = slomodel.compile(text, data=data, dims=dims, backend="numpy")
    return model, draw.choice([0.3, 1.0]) * draw.normal(size=model.n)


def _setting(model: slomodel.Model, x: np.ndarray) -> ObjectivePart:
    found = model._part(x)
    assert isinstance(found, ObjectivePart)
    return found


def _in_ball(draw: np.random.Generator, x: np.ndarray, radius: float) -> np.ndarray:
    """A point of the ball: at its edge, along an axis, or inside."""
    d = draw.normal(size=x.size)
    if draw.random() < 0.3:
        d = np.eye(x.size)[draw.integers(x.size)] * draw.choice([-1.0, 1.0])
    far = radius if draw.random() < 0.7 else radius * draw.random()
    return x + far * (1.0 - 1e-12) * d / np.linalg.norm(d)


def require_above(text: str, seed: int, radius: float, points: int) -> int:
    """Both ends and D³f over the ball are not below what is seen at points of it.

    D³f[d, v, v] along the line from the centre, v where a quotient of Hessians is largest, is that
    of the graph by the reference interpreter, which agrees with the quotient.
    """
    model, x = _made(text, seed, 4)
    draw = np.random.default_rng(seed)
    part = _setting(model, x)
    with np.errstate(all="ignore"):
        found = norms_over_ball(part, radius)
    assert found is not None
    upper, lower, third = (float(one) for one in (*found.ends, found.third))
    assert np.isfinite([upper, lower, third]).all()
    for _ in range(points):
        at = _in_ball(draw, x, radius)
        H = model.hessian(at)
        ends = np.linalg.eigvalsh(H)
        slack = 1e-12 * (1.0 + np.abs(ends).max())
        assert -lower - slack <= ends[0]
        assert ends[-1] <= upper + slack
        step = 1e-5 * (at - x)
        values, vectors = np.linalg.eigh((H - model.hessian(at - step)) / np.linalg.norm(step))
        largest = int(np.argmax(np.abs(values)))
        seen = _third(part, at, step / np.linalg.norm(step), vectors[:, largest])
        assert abs(seen) <= third * (1.0 + 1e-12)
        assert seen == pytest.approx(values[largest], rel=1e-2, abs=1e-4 * third)
    return points


def _third(part: ObjectivePart, at: np.ndarray, d: np.ndarray, v: np.ndarray) -> float:
    """D³f[d, v, v] at a point, by the reference interpreter."""
    graphs = derivatives(part)
    values = {**part.values, **part.by_variable(at)}
    for own, direction in ((graphs.v, v), (graphs.w, d)):
        values.update(zip(own, part.by_variable(direction).values(), strict=True))
    parts = evaluate(graphs.third, values, part.sizes)
    return float(np.concatenate([np.ravel(one) for one in parts]) @ v)


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_hessians_in_the_ball_are_below(name: str, seed: int) -> None:
    for k, radius in enumerate((0.05, 1.0)):
        require_above(TEXTS[name], 10 * seed + k, radius, 8)


@pytest.mark.parametrize(
    ("name", "few", "power"), [("hidden Markov", 5, 1.3), ("alignment", 3, 2.3)]
)
def test_bounds_grow_like_powers_of_the_steps(name: str, few: int, power: float) -> None:
    """Where the weights of a step forget the one before, like T; along paths, like T² and T³."""
    found = {}
    for steps in (few, 3 * few):
        model, x = _made(TEXTS[name], 3, steps)
        with np.errstate(all="ignore"):
            bounds = norms_over_ball(_setting(model, x), 0.3)
        assert bounds is not None
        found[steps] = float(bounds.curvature), float(bounds.third)
    assert found[3 * few][0] <= 3.0**power * found[few][0]
    assert found[3 * few][1] <= 3.0 ** (1.5 * power) * found[few][1]


def test_the_curvature_at_the_centre_is_that_of_averages() -> None:
    """As r tends to 0 the bound tends to the sum over samples of what is seen of each."""
    model, x = _made(LABELS, 4, 4)
    alone = claimed(averages, _setting(model, x), 1e-9)
    assert alone is not None
    H = np.linalg.norm(model.hessian(x), 2)
    assert H <= alone.L1 <= 8.0 * H


def test_other_models_are_left_to_other_rules() -> None:
    model = slomodel.compile("var x[3] minimize logsumexp(x)")
    assert averages(_setting(model, np.zeros(3)), 0.1) is None
