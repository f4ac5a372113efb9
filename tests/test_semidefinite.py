"""Semidefinite matrices with equations: nearest correlation matrices, relaxations of cuts."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import slomodel
from slomodel.solve import Status

NEAREST = """dim n data A[n, n] var X[n, n] in psd minimize sumsq(X - A)
subject to unit: X[i, i] == 1 for i in n"""
CUT = """dim n data W[n, n] var X[n, n] in psd
maximize sum(W[i, j] * (1 - X[i, j]) for i in n, j in n) / 4
subject to X[i, i] == 1 for i in n"""
# Burer and Monteiro's factors of X.
FACTORED = """dim n, k = 4 data W[n, n] var V[n, k] in sphere(axis=1) init normal(0, 1)
maximize sum(W[i, j] * (1 - dot(V[i, :], V[j, :])) for i in n, j in n) / 4"""


def cycle(n: int) -> np.ndarray:
    return np.roll(np.eye(n), 1, axis=0) + np.roll(np.eye(n), -1, axis=0)


def petersen() -> np.ndarray:
    inner = np.roll(np.eye(5), 2, axis=0) + np.roll(np.eye(5), -2, axis=0)
    return np.block([[cycle(5), np.eye(5)], [np.eye(5), inner]])


def nearest(A: np.ndarray) -> slomodel.Solution:
    found = slomodel.compile(NEAREST, data={"A": A}).solve()
    assert found.status is Status.converged, found.message
    # The optimality conditions: X is the projection of A + diag(y)/2 on the cone.
    values, Q = np.linalg.eigh(A + np.diag(found.multipliers["unit"]) / 2.0)
    assert_allclose(found["X"], (Q * np.maximum(values, 0.0)) @ Q.T, atol=1e-6)
    assert_allclose(np.diag(found["X"]), 1.0, atol=1e-9)
    return found


def test_nearest_correlation_matrices() -> None:
    """Those of Higham, *Computing the nearest correlation matrix*, IMA J. Numer. Anal. (2002)."""
    found = nearest(np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]]))
    assert_allclose(found["X"][0], [1.0, 0.7607, 0.1573], atol=1e-4)
    assert_allclose(found.fun**0.5, 0.5278, atol=1e-4)
    found = nearest(2.0 * np.eye(4) - np.eye(4, k=1) - np.eye(4, k=-1))
    assert_allclose(found.fun**0.5, 2.1337, atol=1e-4)


def test_a_nearest_correlation_matrix_of_low_rank_takes_few_steps() -> None:
    rng = np.random.default_rng(0)
    noise = 0.3 * rng.normal(size=(12, 12))
    A = np.corrcoef(rng.normal(size=(12, 6))) + (noise + noise.T) / 2.0
    found = nearest(A - np.diag(np.diag(A)) + np.eye(12))
    assert found.nfev <= 40


@pytest.mark.parametrize(
    ("W", "value"), [(cycle(5), 2.5 * (1 + np.cos(np.pi / 5))), (petersen(), 12.5)]
)
def test_relaxations_of_the_largest_cut(W: np.ndarray, value: float) -> None:
    """By the matrix itself, a linear objective over the cone, and by factors on spheres."""
    found = slomodel.compile(CUT, data={"W": W}).solve()
    assert found.status is Status.converged, found.message
    assert_allclose(found.fun, value, rtol=1e-8)
    assert found.nfev <= 60
    factored = slomodel.compile(FACTORED, data={"W": W}).solve()
    assert factored.status is Status.converged
    assert_allclose(factored.fun, value, rtol=1e-8)
