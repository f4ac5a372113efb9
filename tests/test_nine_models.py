"""The nine models, compiled from their files: published values, and hand-written NumPy."""

from functools import cache
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from other_models import OTHER_MODELS

import slomodel
from benchmarks.by_hand import BY_HAND

Array = NDArray[np.float64]
Arrays = dict[str, Array]

MODELS = Path(__file__).parent.parent / "models"
TARGETS = ("numpy", "numexpr")

# Data by declaration: a shape is filled, an array is given, a number is the file's default.
Declared = dict[str, object]
SIGNS = np.array([1.0, -1.0, 1.0, -1.0])
OMEGA = np.arange(12).reshape(3, 4) % 3 != 0
FILLED_M = np.where(OMEGA, np.sin(1 + np.arange(12)).reshape(3, 4), np.nan)

# name, dims that the data does not give, data, value, gradient norm, first gradient entry
PUBLISHED: list[tuple[str, dict[str, int], Declared, tuple[float, float, float]]] = [
    (
        "sym_tensor",
        {"m": 2},
        {"T": (2,) * 5},
        (16.0025832593, 0.0450010634371, -0.0425554841941),
    ),
    (
        "linear_autoencoder",
        {},
        {"X": (3, 4)},
        (6.28386009908, 0.403313544506, -0.00524595374356),
    ),
    (
        "deep_linear",
        {},
        {"X": (3, 4), "y": (4,)},
        (2.33880307572, 0.112390998297, -0.00255677890993),
    ),
    (
        "softplus_net",
        {"h": 2},
        {"X": (3, 4), "y": (4,), "lam": 1e-3},
        (0.772092644882, 1.21372969491, 0.0210970118279),
    ),
    (
        "robust_logistic",
        {},
        {"A": (4, 3), "y": SIGNS, "lam": 0.1, "eps": 1},
        (0.818744146967, 0.718891981125, -0.437971469836),
    ),
    (
        "tukey_regression",
        {},
        {"A": (4, 3), "y": (4,), "c": np.asarray(1.0)},
        (0.420308864622, 0.0486319243781, -0.0390141389716),
    ),
    ("rosenbrock", {"n": 4}, {"a": 1, "b": 100}, (2105.4, 2893.59134641, -1271.6)),
    (
        "phase_retrieval",
        {},
        {"A": (5, 3), "y": (5,)},
        (0.142852221857, 0.162419616726, -0.0586873996561),
    ),
    (
        "matrix_completion",
        {"r": 2},
        {"M": FILLED_M, "Omega": OMEGA, "lam": 1e-2},
        (2.30268351592, 0.823579884739, -0.222251236002),
    ),
]
NAMES = [case[0] for case in PUBLISHED]


def filled(k: int, shape: tuple[int, ...]) -> Array:
    """sin(k + 0, 1, 2, …) in C order."""
    return np.sin(k + np.arange(np.prod(shape, dtype=int))).reshape(shape)


def test_every_model_is_here() -> None:
    assert sorted(NAMES) == sorted(BY_HAND)
    every = {path.stem for path in MODELS.glob("*.slo")}
    assert every == {*NAMES, *OTHER_MODELS}


@pytest.mark.parametrize("backend", TARGETS)
@pytest.mark.parametrize(
    ("name", "dims", "declared", "expected"), PUBLISHED, ids=[case[0] for case in PUBLISHED]
)
def test_published_values(
    name: str,
    dims: dict[str, int],
    declared: Declared,
    expected: tuple[float, float, float],
    backend: str,
) -> None:
    source: str | Path = MODELS / f"{name}.slo"
    if name == "sym_tensor":  # the filled tensor is not symmetric
        text = (MODELS / f"{name}.slo").read_text(encoding="utf-8")
        assert " symmetric from" in text
        source = text.replace(" symmetric from", " from")
    given = {
        key: filled(k, what) if isinstance(what, tuple) else what
        for k, (key, what) in enumerate(declared.items(), start=1)
        if not isinstance(what, (int, float))
    }
    model = slomodel.compile(source, data=given, dims=dims, backend=backend)
    first = len(declared) + 1
    point = {
        key: 0.3 * filled(k, shape) for k, (key, shape) in enumerate(model.variables.items(), first)
    }
    x = np.full(4, -1.2) if name == "rosenbrock" else model.pack(point)
    value, gradient = model.value_and_gradient(x)
    found = (value, float(np.linalg.norm(gradient)), float(gradient[0]))
    assert found == pytest.approx(expected, rel=1e-10)
    assert model.value(x) == pytest.approx(value, rel=1e-14)
    assert np.array_equal(model.gradient(x), gradient)


def symmetric(T: Array) -> Array:
    return np.mean([T.transpose(axes) for axes in permutations(range(T.ndim))], axis=0)


def random_data(name: str, big: bool, draw: np.random.Generator) -> tuple[dict[str, int], Arrays]:
    """Dims and data of different sizes, so that no two axes can be mixed up unnoticed."""
    p, q = (23, 57) if big else (3, 5)

    def normal(*shape: int) -> Array:
        return draw.standard_normal(shape)

    cases: dict[str, tuple[dict[str, int], Arrays]] = {
        "sym_tensor": ({"m": 4 if big else 2}, {"T": symmetric(normal(*[6 if big else 3] * 5))}),
        "linear_autoencoder": ({}, {"X": normal(p, q)}),
        "deep_linear": ({}, {"X": normal(p, q), "y": normal(q)}),
        "softplus_net": (
            {"h": 11 if big else 2},
            {"X": normal(p, q), "y": normal(q), "lam": np.asarray(0.03)},
        ),
        "robust_logistic": (
            {},
            {
                "A": normal(q, p),
                "y": np.sign(normal(q)),
                "lam": np.asarray(0.2),
                "eps": np.asarray(0.7),
            },
        ),
        "tukey_regression": ({}, {"A": normal(q, p), "y": normal(q), "c": np.asarray(2.0)}),
        "rosenbrock": ({"n": q}, {"a": np.asarray(1.5), "b": np.asarray(9.0)}),
        "phase_retrieval": ({}, {"A": normal(q, p), "y": normal(q) ** 2}),
        "matrix_completion": ({"r": 4 if big else 2}, masked_data(normal(p, q), draw)),
    }
    return cases[name]


def masked_data(M: Array, draw: np.random.Generator) -> Arrays:
    """Half of the entries known, NaN in the others."""
    Omega = (draw.random(M.shape) < 0.5).astype(np.float64)
    return {"M": np.where(Omega == 1.0, M, np.nan), "Omega": Omega, "lam": np.asarray(0.3)}


Case = tuple[slomodel.Model, Arrays, Array]


@cache
def random_case(name: str, backend: str, big: bool) -> Case:
    """A compiled model with random data, the data, and a point."""
    draw = np.random.default_rng(NAMES.index(name))
    dims, data = random_data(name, big, draw)
    model = slomodel.compile(MODELS / f"{name}.slo", data=data, dims=dims, backend=backend)
    return model, data, 0.4 * draw.standard_normal(model.n)


def by_hand(name: str, model: slomodel.Model, data: Arrays, x: Array) -> tuple[float, Array]:
    value, gradient = BY_HAND[name](model.unpack(x), data)
    return value, model.pack(gradient)


def differenced(name: str, model: slomodel.Model, data: Arrays, x: Array, v: Array) -> Array:
    """The Hessian at x times v: central differences, fourth order, of the gradient by hand."""
    h = 2e-3 / max(1.0, float(np.linalg.norm(v)))

    def slope(step: float) -> Array:
        ahead = by_hand(name, model, data, x + step * v)[1]
        return (ahead - by_hand(name, model, data, x - step * v)[1]) / (2.0 * step)

    return (4.0 * slope(h) - slope(2.0 * h)) / 3.0


def close(found: Array, expected: Array, relative: float) -> None:
    """Equal to within `relative` of the largest entry."""
    scale = float(np.abs(expected).max())
    assert scale > 0.0
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=relative * scale)


@pytest.mark.parametrize("big", [False, True], ids=["small", "large"])
@pytest.mark.parametrize("backend", TARGETS)
@pytest.mark.parametrize("name", NAMES)
def test_agrees_with_hand_written_numpy(name: str, backend: str, big: bool) -> None:
    model, data, x = random_case(name, backend, big)
    draw = np.random.default_rng(7)
    for scale in (1.0, 0.05, 2.5):
        point = scale * x + 0.01 * draw.standard_normal(model.n)
        expected, slope = by_hand(name, model, data, point)
        value, gradient = model.value_and_gradient(point)
        assert value == pytest.approx(expected, rel=1e-12)
        close(gradient, slope, 1e-11)


@pytest.mark.parametrize("backend", TARGETS)
@pytest.mark.parametrize("name", NAMES)
def test_hessian_vector_products(name: str, backend: str) -> None:
    model, data, x = random_case(name, backend, True)
    u, v = np.random.default_rng(3).standard_normal((2, model.n))
    found = model.hvp(x, v)
    close(found, differenced(name, model, data, x, v), 1e-7)
    size = np.linalg.norm(u) * np.linalg.norm(found)
    assert abs(u @ found - v @ model.hvp(x, u)) <= 1e-13 * size
    close(model.hvp(x, 3.0 * u - v), 3.0 * model.hvp(x, u) - found, 1e-12)


@pytest.mark.parametrize("backend", TARGETS)
@pytest.mark.parametrize("name", NAMES)
def test_hessian(name: str, backend: str) -> None:
    model, data, x = random_case(name, backend, False)
    units = np.eye(model.n)
    products = np.array([model.hvp(x, unit) for unit in units])
    close(products, products.T, 1e-13)
    hessian = model.hessian(x)
    assert np.array_equal(hessian, hessian.T)
    close(hessian, products, 1e-13)
    close(hessian, np.array([differenced(name, model, data, x, unit) for unit in units]), 1e-7)


def test_targets_agree_on_the_shipped_data() -> None:
    for name in ("linear_autoencoder", "deep_linear", "softplus_net", "sym_tensor"):
        path = MODELS / f"{name}.slo"
        plain = slomodel.compile(path, backend="numpy")
        fused = slomodel.compile(path, backend="numexpr")
        x = plain.x0(5)
        assert np.array_equal(x, fused.x0(5))
        expected, slope = plain.value_and_gradient(x)
        value, gradient = fused.value_and_gradient(x)
        assert value == pytest.approx(expected, rel=1e-12)
        close(gradient, slope, 1e-12)
