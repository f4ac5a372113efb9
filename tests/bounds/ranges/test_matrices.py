"""Ranges of operations on matrices hold the values of all matrices between the ends."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from matrix_objectives import FUNCTIONS, OF_SYMMETRIC

import slomodel
from slomodel.bounds.arithmetic.interval import Interval, point
from slomodel.bounds.ranges.matrices import range_of_operation
from slomodel.ir.expr import MatrixFunction
from slomodel.reference import Array
from slomodel.reference.matrices import value_of_operation


def drawn(rng: np.random.Generator, function: str, radius: float) -> tuple[Interval, Array]:
    """A box of matrices [2, 4, 4], and fifty of them."""
    X = rng.normal(size=(2, 4, 4))
    mid = X @ X.swapaxes(1, 2) + np.eye(4)
    off = radius * rng.uniform(size=mid.shape)
    moves = rng.choice([-1.0, 0.0, 1.0, 0.4], size=(50, *mid.shape))
    if function in OF_SYMMETRIC:
        off = np.maximum(off, off.swapaxes(1, 2))
        moves = np.maximum(moves, moves.swapaxes(2, 3))
    elif function == "det":
        mid[0, 0] *= -1.0
    return Interval(mid - off, mid + off), np.clip(mid + off * moves, mid - off, mid + off)


@pytest.mark.parametrize("radius", [0.0, 1e-6, 0.02])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_values_lie_in_the_range(function: MatrixFunction, radius: float) -> None:
    rng = np.random.default_rng(4)
    box, matrices = drawn(rng, function, radius)
    right = rng.normal(size=(1, 4, 2))
    operands = [box, point(right)] if function.startswith("solve") else [box]
    found = range_of_operation(function, operands)
    assert np.isfinite(found.lo).all()
    assert np.isfinite(found.hi).all()
    for own in matrices:
        given = [own, np.broadcast_to(right, (2, 4, 2))][: len(operands)]
        value = value_of_operation(function, given, found.shape)
        slack = 1e-12 * np.abs(value).max()
        assert (found.lo - slack <= value).all()
        assert (value <= found.hi + slack).all()
    if not radius:
        assert np.max(found.hi - found.lo) <= 1e-11 * np.abs(found.hi).max()


@pytest.mark.parametrize("function", ["inverse", "solve", "logdet", "logdet_posdef", "det"])
def test_ranges_of_single_ill_conditioned_matrices_are_sound(function: MatrixFunction) -> None:
    hilbert = 1.0 / (np.arange(6)[:, None] + np.arange(6) + 1.0)
    operands = [point(hilbert), point(np.ones((6, 1)))][: 1 + (function == "solve")]
    found = range_of_operation(function, operands)
    with mpmath.workdps(50):
        A = mpmath.matrix(hilbert.tolist())
        if function == "solve":
            exact = A**-1 * mpmath.ones(6, 1)
        elif function == "inverse":
            exact = A**-1
        else:
            det = mpmath.det(A)
            exact = mpmath.matrix([[det if function == "det" else mpmath.log(det)]])
        for k, value in enumerate(exact):
            assert found.lo.flat[k] <= value <= found.hi.flat[k]
            assert found.hi.flat[k] - found.lo.flat[k] <= 1e-6 * abs(value)


@pytest.mark.parametrize("function", ["inverse", "solve", "logdet", "cholesky", "logdet_posdef"])
def test_ranges_over_singular_matrices_are_unbounded(function: MatrixFunction) -> None:
    box = Interval(np.eye(2) - 1.0, np.eye(2) + 1.0)
    operands = [box, point(np.ones((2, 1)))][: 1 + (function == "solve")]
    found = range_of_operation(function, operands)
    assert np.isinf(found.lo).any()
    assert np.isinf(found.hi).any()


def test_bounds_of_a_gaussian_process_hold_and_are_near_the_truth() -> None:
    rng = np.random.default_rng(0)
    text = """dim n data t[n], y[n] var l, s init 1
    let K[i in n, j in n] = exp(-(t[i] - t[j])^2 / (2 * l^2)) + where(i == j, s^2, 0)
    minimize -multi_normal_lpdf(y, 0, K)"""
    data = {"t": rng.uniform(0, 4, 4), "y": rng.normal(size=4)}
    model, x = slomodel.compile(text, data=data, backend="numpy"), np.ones(2)
    found = model.bounds(x, 1e-3, effort="quick")
    hessian = np.array([model.hvp(x, one) for one in np.eye(2)])
    norm = np.abs(np.linalg.eigvalsh(hessian)).max()
    assert norm <= found.L1 <= 1.2 * norm
    assert np.isfinite(found.L2)
    assert np.inf == model.bounds(x, 2.0).L1  # where s is 0, K may be singular
