"""D³f at the centre of ‖U V - M‖²: exact for vectors, close to ascents for matrices."""

from __future__ import annotations

import math

import numpy as np
import pytest

import slomodel
from slomodel.bounds.centre import centre_third
from slomodel.bounds.refinements.factor_pairs import third_of_pair

TEXT = "dim p, q, k data M[p, q] var U[p, k], V[k, q] minimize sumsq(U @ V - M)"
WRITTEN = (
    "dim p, q, k data M[p, q] var U[p, k], V[k, q] minimize sumsq(M' - V' @ U')",
    "dim p, q, k data M[p, q] var U[p, k], V[k, q]\n"
    "minimize sum((M[i, j] - sum(U[i, a] * V[a, j] for a in k))^2 for i in p, j in q)",
    "dim p, q, k data M[p, q] var U[p, k], V[k, q] minimize sumsq(U @ V - M) + sumsq(U)",
)


def third(centre: np.ndarray, shape: tuple[int, int, int], text: str = TEXT) -> float:
    p, q, k = shape
    M = np.random.default_rng(0).standard_normal((p, q))
    model = slomodel.compile(text, data={"M": M}, dims={"k": k})
    return third_of_pair(model._part(centre))


@pytest.mark.parametrize("length", [1e-150, 1.0, 1e150])
def test_vectors_of_one_length(length: float) -> None:
    """6 |f_3| = 12 l y z (y + z) at most, l the length of both: 6 √2 l at y = z."""
    u, v = np.array([3.0, 4.0]) / 5.0, np.array([2.0, 2.0, 1.0]) / 3.0
    found = third(length * np.concatenate([u, v]), (2, 3, 1))
    exact = 6.0 * math.sqrt(2.0) * length
    assert 0.995 * found < exact <= found


def test_a_vector_beside_zero() -> None:
    """6 |f_3| = 12 l y² z at most: 12 · 2/√27 l."""
    found = third(np.array([3.0, 4.0, 0.0, 0.0, 0.0]), (2, 3, 1))
    assert 0.99 * found < 5.0 * 24.0 / math.sqrt(27.0) <= found
    assert third(np.zeros(5), (2, 3, 1)) == 0.0


@pytest.mark.parametrize("seed", range(4))
def test_close_to_what_ascents_reach(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = (4, 5, 1 + seed % 3)
    centre = rng.standard_normal(shape[2] * 9) * np.repeat([1.0, 10.0**-seed], [4, 5]).repeat(
        shape[2]
    )
    M = np.random.default_rng(0).standard_normal(shape[:2])
    model = slomodel.compile(TEXT, data={"M": M}, dims={"k": shape[2]})
    T = centre_third(model._part(centre))
    assert T is not None
    most = 0.0
    for v in rng.standard_normal((30, model.n)):
        for _ in range(200):
            image = T.mid @ v @ v
            most = max(most, float(np.linalg.norm(image)) / float(v @ v))
            v = image / np.linalg.norm(image) + 0.3 * v / np.linalg.norm(v)
    found = third(centre, shape)
    assert most * (1.0 - 1e-9) <= found <= 1.01 * most
    for text in WRITTEN:
        assert third(centre, shape, text) == pytest.approx(found, rel=1e-3)


@pytest.mark.parametrize(
    "text",
    [
        "dim p, q, k data M[p, q] var U[p, k], V[k, q] minimize sum(M .* (U @ V - M).^2)",
        "dim p, k data M[p, p] var U[p, k], V[1] minimize sumsq(U @ U' - M) + sumsq(V)",
    ],
)
def test_others_are_left_to_others(text: str) -> None:
    M = np.ones((3, 3))
    model = slomodel.compile(text, data={"M": M}, dims={"k": 2})
    assert third_of_pair(model._part(np.ones(model.n))) == math.inf
