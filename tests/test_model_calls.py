"""Calls of a model with every kind of point, alone and from several threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import slomodel

BACKENDS = ("numpy", "numexpr", "c")
TEXT = "dim n var x[n] minimize sum((x[i+1] - x[i]^2)^2 + exp(x[i]) for i in range(n - 1))"


def expected(x: np.ndarray) -> tuple[float, np.ndarray]:
    rest = x[1:] - x[:-1] ** 2
    g = np.zeros_like(x)
    g[1:] += 2.0 * rest
    g[:-1] += np.exp(x[:-1]) - 4.0 * rest * x[:-1]
    return float(np.sum(rest**2 + np.exp(x[:-1]))), g


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("n", [2, 500, 5000])
def test_every_kind_of_point(backend: str, n: int) -> None:
    model = slomodel.compile(TEXT, dims={"n": n}, backend=backend)
    x = np.random.default_rng(n).uniform(-1.0, 1.0, n)
    value, gradient = expected(x)
    wide = np.zeros((n, 2))
    wide[:, 0] = x
    given = [x, wide[:, 0], x[::-1].copy()[::-1], x.tolist(), {"x": x}, x.astype(">f8"), x[:]]
    found = []
    # The first call has nothing made yet; later ones may take a shorter way.
    for point in (*given, *given):
        f, g = model.value_and_gradient(point)
        assert type(f) is float
        assert f == pytest.approx(value, rel=1e-13)
        np.testing.assert_allclose(g, gradient, rtol=1e-12, atol=1e-12)
        found.append(g)
    # Every gradient is an array of its own, and x is left alone.
    for one in found:
        one += 1.0
    np.testing.assert_allclose(model.value_and_gradient(x)[1], gradient, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(wide[:, 0], x)
    for wrong in (x[:-1], np.zeros((n, 1)), np.zeros((1, n))):
        with pytest.raises(slomodel.ShapeError):
            model.value_and_gradient(wrong)
    with pytest.raises(slomodel.DomainError):
        model.value_and_gradient(x + 1j)


@pytest.mark.parametrize("backend", BACKENDS)
def test_many_threads_have_arrays_of_their_own(backend: str) -> None:
    model = slomodel.compile(TEXT, dims={"n": 300}, backend=backend)
    points = np.random.default_rng(0).uniform(-1.0, 1.0, (200, 300))
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(model.value_and_gradient, points))
    for x, (f, g) in zip(points, answers, strict=True):
        value, gradient = expected(x)
        assert f == pytest.approx(value, rel=1e-13)
        np.testing.assert_allclose(g, gradient, rtol=1e-12, atol=1e-12)


def test_float32_gives_float32() -> None:
    model = slomodel.compile(TEXT, dims={"n": 9}, backend="c", dtype="float32")
    x = np.linspace(-1.0, 1.0, 9)
    for _ in range(2):
        f, g = model.value_and_gradient(x)
        assert g.dtype == np.float32
        assert f == pytest.approx(expected(x)[0], rel=1e-5)
        np.testing.assert_allclose(g, expected(x)[1], rtol=1e-4, atol=1e-4)
