"""Indices inside recurrences: of dims, of data, of the step, and of several of them at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import slomodel

T, K = 5, 4
DATA = {
    "y": np.random.default_rng(2).normal(size=(T, K)),
    "p": np.array([3, 0, 2, 1, 3]),
    "q": np.array([2, 2, 0, 1]),
}

Place = Callable[[int, int], int]

PLACES: dict[str, Place] = {
    "max(k - 1, 0)": lambda t, k: max(k - 1, 0),
    "where(k > 0, k - 1, K - 1)": lambda t, k: k - 1 if k > 0 else K - 1,
    "(k + 1) % K": lambda t, k: (k + 1) % K,
    "(k + t) % K": lambda t, k: (k + t) % K,
    "abs(k - 2)": lambda t, k: abs(k - 2),
    "min(t, K - 1)": lambda t, k: min(t, K - 1),
    "K - 1": lambda t, k: K - 1,
    "max(K - 2, 0)": lambda t, k: K - 2,
    "q[k]": lambda t, k: int(DATA["q"][k]),
    "p[t]": lambda t, k: int(DATA["p"][t]),
    "p[T - 1 - t]": lambda t, k: int(DATA["p"][T - 1 - t]),
    "q[p[t]]": lambda t, k: int(DATA["q"][DATA["p"][t]]),
    "(q[k] + p[t]) % K": lambda t, k: int(DATA["q"][k] + DATA["p"][t]) % K,
}


def _reference(places: list[Place], x: NDArray[np.complex128]) -> complex:
    """The model's objective with the recurrence written as loops."""
    first, c = x[:K], x[K]
    z = np.zeros((T, K), complex)
    z[0] = first
    for t in range(1, T):
        for k in range(K):
            terms = [c * z[t - 1, place(t, k)] * (n + 1) / 50 for n, place in enumerate(places)]
            z[t, k] = DATA["y"][t, k] + np.sin(sum(terms))
    return complex((z**2).sum())


def _gradient(places: list[Place], x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Its gradient by complex steps."""
    steps = x + 1e-30j * np.eye(x.size)
    return np.array([_reference(places, one).imag / 1e-30 for one in steps])


def _compare(texts: list[str], backend: str) -> None:
    terms = " + ".join(f"{n + 1} / 50 * c * z[t-1, {text}]" for n, text in enumerate(texts))
    model = slomodel.compile(
        "dim T, K  data y[T, K], p[T] in K, q[K] in K  var a[K], c\n"
        f"let z[t in T, k in K] = y[t, k] + sin({terms}) first a[k]\n"
        "minimize sum(z^2) + 0 * (sum(p) + sum(q))",
        data=DATA,
        backend=backend,
    )
    places = [PLACES[text] for text in texts]
    rng = np.random.default_rng(5)
    x, v = rng.normal(size=(2, model.n))
    value, gradient = model.value_and_gradient(x)
    assert value == pytest.approx(_reference(places, x.astype(complex)).real, rel=1e-12)
    np.testing.assert_allclose(gradient, _gradient(places, x), rtol=1e-10, atol=1e-12)
    h = 1e-5
    product = (_gradient(places, x + h * v) - _gradient(places, x - h * v)) / (2 * h)
    if len(texts) == 1:
        proved, reached = model.bounds(x, 0.01), model.sample_bounds(x, 0.01, samples=10)
        assert reached.L1 <= proved.L1 * (1 + 1e-9) < np.inf
    np.testing.assert_allclose(model.hvp(x, v), product, rtol=1e-5, atol=1e-5)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("text", PLACES)
def test_one_index_is_that_of_plain_loops(text: str) -> None:
    _compare([text], "numpy")


@pytest.mark.parametrize("backend", ["numpy", pytest.param("numexpr", marks=pytest.mark.slow), "c"])
def test_several_indices_are_those_of_plain_loops(backend: str) -> None:
    _compare(list(PLACES), backend)


def _ratings(x: NDArray[np.complex128]) -> complex:
    """Sum of p² for ratings that a game changes by elements, and that data pick for the next."""
    rate, ratings, total = x[0], x[1:].copy(), 0j
    for t in range(T):
        p = np.sin(ratings[DATA["p"][t]])
        total += p**2
        ratings = ratings + rate * p * DATA["y"][t]
    return complex(total)


def test_a_state_read_by_elements_and_by_data() -> None:
    """The adjoint of the ratings is added to by elements and, where data pick one, as an array."""
    model = slomodel.compile(
        """dim T, K  data y[T, K], p[T] in K  var rate, first[K]
        let r[t in T, k in K] = r[t-1, k] + rate * q[t-1] * y[t-1, k]  first first[k]
        and q[t in T] = sin(r[t, p[t]])
        minimize sumsq(q)""",
        data={"y": DATA["y"], "p": DATA["p"]},
        backend="c",
    )
    x = np.random.default_rng(5).normal(size=K + 1)
    value, gradient = model.value_and_gradient(x)
    assert value == pytest.approx(_ratings(x.astype(complex)).real, rel=1e-12)
    slopes = [_ratings(x + step).imag / 1e-30 for step in 1e-30j * np.eye(x.size)]
    np.testing.assert_allclose(gradient, slopes, rtol=1e-10, atol=1e-12)
