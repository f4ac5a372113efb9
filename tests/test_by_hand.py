"""The hand-written NumPy of benchmarks/ has the published values: it is a reference for others."""

from itertools import permutations

import numpy as np
import pytest

from benchmarks.by_hand import BY_HAND, Array, Arrays

Shapes = dict[str, tuple[int, ...]]

# name, data shapes in order (a number: a default, which counts but is not filled), variable
# shapes, value, gradient norm, first gradient entry
CASES = [
    (
        "linear_autoencoder",
        {"X": (3, 4)},
        {"W1": (20, 3), "W2": (10, 20), "W3": (4, 10), "W4": (10, 4), "W5": (3, 10)},
        (6.28386009908, 0.403313544506, -0.00524595374356),
    ),
    (
        "deep_linear",
        {"X": (3, 4), "y": (4,)},
        {"W1": (15, 3), "W2": (10, 15), "W3": (5, 10), "w4": (5,)},
        (2.33880307572, 0.112390998297, -0.00255677890993),
    ),
    (
        "softplus_net",
        {"X": (3, 4), "y": (4,), "lam": 1e-3},
        {"W": (2, 3), "b": (2,), "v": (2,), "c": ()},
        (0.772092644882, 1.21372969491, 0.0210970118279),
    ),
    (
        "robust_logistic",
        {"A": (4, 3), "y": np.array([1.0, -1.0, 1.0, -1.0]), "lam": 0.1, "eps": 1.0},
        {"w": (3,)},
        (0.818744146967, 0.718891981125, -0.437971469836),
    ),
    (
        "tukey_regression",
        {"A": (4, 3), "y": (4,), "c": 1.0},
        {"w": (3,)},
        (0.420308864622, 0.0486319243781, -0.0390141389716),
    ),
    (
        "phase_retrieval",
        {"A": (5, 3), "y": (5,)},
        {"x": (3,)},
        (0.142852221857, 0.162419616726, -0.0586873996561),
    ),
    (
        "matrix_completion",
        {
            "M": (3, 4),
            "Omega": (np.arange(12) % 3 != 0).astype(float).reshape(3, 4),
            "lam": 1e-2,
        },
        {"U": (3, 2), "V": (4, 2)},
        (2.30268351592, 0.823579884739, -0.222251236002),
    ),
]


def filled(k: int, shape: tuple[int, ...]) -> Array:
    """sin(k + 0, 1, 2, …) in C order."""
    return np.sin(k + np.arange(np.prod(shape, dtype=int))).reshape(shape)


@pytest.mark.parametrize(
    ("name", "data", "shapes", "expected"), CASES, ids=[case[0] for case in CASES]
)
def test_published_values(
    name: str, data: dict[str, object], shapes: Shapes, expected: tuple[float, ...]
) -> None:
    given: Arrays = {
        key: filled(k, item) if isinstance(item, tuple) else np.asarray(item, float)
        for k, (key, item) in enumerate(data.items(), start=1)
    }
    first = len(data) + 1
    variables = {key: 0.3 * filled(first + k, s) for k, (key, s) in enumerate(shapes.items())}
    value, gradient = BY_HAND[name](variables, given)
    flat = np.concatenate([np.ravel(gradient[key]) for key in shapes])
    assert (value, np.linalg.norm(flat), flat[0]) == pytest.approx(expected, rel=3e-12)


def test_rosenbrock() -> None:
    data = {"a": np.asarray(1.0), "b": np.asarray(100.0)}
    value, gradient = BY_HAND["rosenbrock"]({"x": np.full(4, -1.2)}, data)
    found = (value, np.linalg.norm(gradient["x"]), gradient["x"][0])
    assert found == pytest.approx((2105.4, 2893.59134641, -1271.6), rel=3e-12)


def test_sym_tensor_value_and_gradient() -> None:
    T = filled(1, (2,) * 5)
    X = 0.3 * filled(2, (2, 2))
    value, _ = BY_HAND["sym_tensor"]({"X": X}, {"T": T})
    assert value == pytest.approx(16.0025832593, rel=3e-12)
    symmetric = np.mean([T.transpose(axes) for axes in permutations(range(5))], axis=0)
    _, gradient = BY_HAND["sym_tensor"]({"X": X}, {"T": symmetric})
    # The gradient of ‖T - That‖² sees only the symmetric part of T.
    found = (np.linalg.norm(gradient["X"]), gradient["X"][0, 0])
    assert found == pytest.approx((0.0450010634371, -0.0425554841941), rel=3e-11)
