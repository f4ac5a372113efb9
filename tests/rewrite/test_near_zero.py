"""Compressed sums of squares near the value 0: as accurate as the full sum."""

from pathlib import Path

import numpy as np
import pytest

import slomodel

MODEL = Path(__file__).parent.parent.parent / "models" / "deep_linear.slo"
EPS = float(np.finfo(np.float64).eps)
STEPS = [10.0**-k for k in range(15)]


@pytest.fixture(scope="module", params=[0.3, 0.4])
def planted(request: pytest.FixtureRequest) -> dict[str, np.ndarray]:
    """Data of the model's file, and labels that a network of its shape gives, in long double."""
    with np.load(MODEL.parent / "data" / "ijcnn1_6000.npz", allow_pickle=False) as archive:
        X = archive["X"].astype(float)
    draw = np.random.default_rng(5)
    shapes = {"W1": (15, X.shape[0]), "W2": (10, 15), "W3": (5, 10), "w4": (5,)}
    weights = {name: draw.uniform(0.0, request.param, shape) for name, shape in shapes.items()}
    row = long_row({name: array.astype(np.longdouble) for name, array in weights.items()})
    return {**weights, "X": X, "y": (row @ X.astype(np.longdouble)).astype(float)}


def long_row(weights: dict[str, np.ndarray]) -> np.ndarray:
    return weights["w4"] @ weights["W3"] @ weights["W2"] @ weights["W1"]


def long_reference(
    weights: dict[str, np.ndarray], data: dict[str, np.ndarray]
) -> tuple[float, dict[str, np.ndarray]]:
    """Value and gradient on the full data in long double."""
    w = {name: np.asarray(array).astype(np.longdouble) for name, array in weights.items()}
    X, y = (data[name].astype(np.longdouble) for name in ("X", "y"))
    left = [w["w4"], w["w4"] @ w["W3"], w["w4"] @ w["W3"] @ w["W2"]]
    r = left[2] @ w["W1"] @ X - y
    g1 = 2.0 * (X @ r)
    g2 = w["W1"] @ g1
    g3 = w["W2"] @ g2
    gradient = {
        "W1": np.outer(left[2], g1),
        "W2": np.outer(left[1], g2),
        "W3": np.outer(left[0], g3),
        "w4": w["W3"] @ g3,
    }
    return float(r @ r), gradient


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="long double is no wider here")
@pytest.mark.parametrize("backend", ["numpy", "numexpr", "c"])
def test_planted_weights(planted: dict[str, np.ndarray], backend: str) -> None:
    data = {name: planted[name] for name in ("X", "y")}
    weights = {name: planted[name] for name in ("W1", "W2", "W3", "w4")}
    model = slomodel.compile(MODEL, data=data, backend=backend)
    assert "orthogonal compression" in model.explain()
    x = model.pack(weights)
    v = np.random.default_rng(6).standard_normal(model.n)
    size = float(np.linalg.norm(np.vstack([planted["X"], planted["y"]])))
    reached = []
    for t in STEPS:
        point = x + t * v / np.linalg.norm(v)
        value, gradient = model.value_and_gradient(point)
        expected, parts = long_reference(model.unpack(point), data)
        assert value == model.value(point)
        if expected >= 1e-26:
            assert 0.5 * expected <= value <= 2.0 * expected
            reached.append(expected)
        # The residual rounds by eps ‖M‖ ‖data‖ in any form, however small it is.
        m = float(np.linalg.norm(long_row(model.unpack(point))))
        assert abs(value - expected) <= 1e-13 * expected + 10.0 * EPS * m * size * expected**0.5
        deviation = np.abs(gradient - model.pack({k: a.astype(float) for k, a in parts.items()}))
        assert deviation.max() <= 100.0 * EPS * m * size
    assert min(reached) < 1e-24
    assert max(reached) > 1.0
