"""Ranges of operations on matrices hold the values of all matrices between the ends."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from matrix_objectives import FUNCTIONS, OF_SYMMETRIC

import slomodel
from slomodel.bounds.arithmetic.interval import Interval, point
from slomodel.bounds.ranges.matrices import range_of_operation, remainder_of_operation
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
    data = {"t": rng.uniform(0, 4, 3), "y": rng.normal(size=3)}
    model, x = slomodel.compile(text, data=data, backend="numpy"), np.ones(2)
    found = model.bounds(x, 1e-3, effort="quick")
    hessian = np.array([model.hvp(x, one) for one in np.eye(2)])
    norm = np.abs(np.linalg.eigvalsh(hessian)).max()
    assert norm <= found.L1 <= 1.2 * norm
    assert np.isfinite(found.L2)
    assert np.inf == model.bounds(x, 2.0, effort="quick").L1  # where s is 0, K may be singular


REMAINDERS = [one for one in FUNCTIONS if one not in ("det", "cholesky")]


@pytest.mark.parametrize("function", REMAINDERS)
def test_remainders_hold_along_rays(function: MatrixFunction) -> None:
    """Operands that move on parabolas t, t² over |t| <= r, with derivatives by complex steps."""
    rng = np.random.default_rng(6)
    box, _ = drawn(rng, function, 0.0)
    A = box.lo
    right = rng.normal(size=(2, 4, 3))
    lines = [rng.normal(size=one.shape) for one in (A, A, right, right)]
    if function in OF_SYMMETRIC:
        lines[:2] = [one + one.swapaxes(1, 2) for one in lines[:2]]
    count = 2 if function.startswith("solve") else 1
    radius = 0.02

    def operands(t: complex) -> list[Array]:
        found = [A + t * lines[0] + t * t * lines[1], right + t * lines[2] + t * t * lines[3]]
        return found[:count]

    shape = range_of_operation(function, [box, point(right)][:count]).shape
    centre = value_of_operation(function, operands(0.0), shape)
    slope = value_of_operation(function, operands(1e-30j), shape).imag / 1e-30
    bends = [radius**2 * np.abs(lines[k]) for k in (1, 3)][:count]
    moves = [radius * np.abs(lines[k]) + radius**2 * np.abs(lines[k + 1]) for k in (0, 2)][:count]
    own = [point(one) for one in operands(0.0)]
    found = remainder_of_operation(function, own, moves, bends, point(centre))
    assert np.isfinite(found).all()
    largest = np.zeros(shape)
    for t in np.linspace(-radius, radius, 41):
        off = np.abs(value_of_operation(function, operands(t), shape) - centre - t * slope)
        largest = np.maximum(largest, off)
        assert (off <= found + 1e-12 * np.abs(centre).max()).all()
    assert found.max() <= 1000 * largest.max()


MODELS = [
    "minimize logdet(A @ A' + eye(n)) + dot(y, solve(A @ A' + eye(n), y))",
    "minimize sumsq(inv(A + 3 * eye(n))) + y[0] * det(A)",
    "minimize sumsq(cholesky(A @ A' + eye(n)) @ y)",
    "minimize sumsq(solve(A + 3 * eye(n), y)) + sumsq(solve(tril(A) + 2 * eye(n), y))",
]


@pytest.mark.parametrize("objective", MODELS)
def test_bounds_hold_over_the_ball(objective: str) -> None:
    rng = np.random.default_rng(8)
    text = f"dim n = 2 data y[n] var A[n, n] init eye {objective}"
    model = slomodel.compile(text, data={"y": rng.normal(size=2)}, backend="numpy")
    x, radius = np.array([1.0, 0.2, -0.3, 1.2]), 0.05
    found = model.bounds(x, radius, effort="quick")

    def hessian(at: Array) -> Array:
        return np.array([model.hvp(at, one) for one in np.eye(4)])

    ends = rng.normal(size=(20, 4))
    ends *= radius / np.linalg.norm(ends, axis=1)[:, None]
    norms = [np.linalg.norm(hessian(x + d), 2) for d in ends]
    assert max(norms) <= found.L1 <= 30 * max(norms)
    slopes = [np.linalg.norm(hessian(x + d) - hessian(x - d), 2) / (2 * radius) for d in ends]
    assert max(slopes) <= found.L2
