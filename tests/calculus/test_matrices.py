"""Operations on matrices: values by mpmath, derivatives by complex steps."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from matrix_objectives import FUNCTIONS, OF_SYMMETRIC, arrays, inputs, objective

from slomodel.calculus.gradient import gradient
from slomodel.calculus.jvp import hessian_vector, jvp
from slomodel.ir import build
from slomodel.ir.dims import named
from slomodel.ir.expr import MatrixFunction
from slomodel.reference import evaluate

SIZES = {"n": 4, "m": 2, "b": 3}
STEP = 1e-30


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_derivatives_are_those_of_complex_steps(function: MatrixFunction, batched: bool) -> None:
    rng = np.random.default_rng(1)
    A, B, W, V = inputs(batched)
    value = objective(function, batched)
    directions = {node: build.direction(f"d{node.name}", node.shape) for node in (A, B)}
    slopes = gradient(value, [A, B])
    products = hessian_vector(value, directions)
    (along,) = jvp([value], directions)
    known = dict(zip((A, B, W, V), arrays(rng, SIZES, batched), strict=True))
    moves = {d: rng.normal(size=known[node].shape) for node, d in directions.items()}
    stepped = known | {node: known[node] + 1j * STEP * moves[d] for node, d in directions.items()}
    found = evaluate([along, *slopes, *products], known | moves, SIZES)
    (moved, *gradients) = evaluate([value, *slopes], stepped, SIZES)
    expected = moved.imag / STEP
    pairs = zip(found[1:3], moves.values(), strict=True)
    np.testing.assert_allclose(found[0], expected, rtol=1e-12)
    np.testing.assert_allclose(sum((g * v).sum() for g, v in pairs), expected, rtol=1e-12)
    for product, slope in zip(found[3:], gradients, strict=True):
        scale = np.abs(slope).max(initial=0.0)
        np.testing.assert_allclose(product, slope.imag / STEP, rtol=1e-11, atol=1e-12 * scale)


def _exact(function: MatrixFunction, A: mpmath.matrix, B: mpmath.matrix) -> mpmath.matrix:
    if function == "cholesky":
        return mpmath.cholesky(A)
    if function.startswith("inverse"):
        return A**-1
    if function.startswith("solve"):
        return A**-1 * B
    found = mpmath.det(A)
    return mpmath.matrix([[mpmath.log(found) if function != "det" else found]])


@pytest.mark.parametrize("function", FUNCTIONS)
def test_values_of_ill_conditioned_matrices_are_exact_to_their_condition(
    function: MatrixFunction,
) -> None:
    n, m = named("n"), named("m")
    A, B = build.variable("A", (n, n)), build.variable("B", (n, m))
    size = 5
    hilbert = 1.0 / (np.arange(size)[:, None] + np.arange(size) + 1.0)
    matrix = {"solve_lower": np.tril(hilbert), "solve_upper": np.triu(hilbert)}.get(
        function, hilbert
    )
    right = np.random.default_rng(2).normal(size=(size, 2))
    operands = [A, B] if function.startswith("solve") else [A]
    node = build.matrix_operation(function, *operands)
    (found,) = evaluate([node], {A: matrix, B: right}, {"n": size, "m": 2})
    with mpmath.workdps(40):
        exact = _exact(function, mpmath.matrix(matrix.tolist()), mpmath.matrix(right.tolist()))
        wanted = np.array(exact.tolist(), float)
    condition = np.linalg.cond(matrix)
    error = np.abs(found.reshape(wanted.shape) - wanted).max() / np.abs(wanted).max()
    assert error <= 4 * size * condition * np.finfo(float).eps


@pytest.mark.parametrize("function", FUNCTIONS)
def test_values_outside_the_domain_are_not_finite(function: MatrixFunction) -> None:
    n, m = named("n"), named("m")
    A, B = build.variable("A", (n, n)), build.variable("B", (n, m))
    operands = [A, B] if function.startswith("solve") else [A]
    node = build.matrix_operation(function, *operands)
    outside = np.zeros((3, 3))
    if function in ("cholesky", "inverse_posdef", "logdet_posdef"):
        outside = np.diag([1.0, -1.0, -2.0])
    (found,) = evaluate([node], {A: outside, B: np.ones((3, 1))}, {"n": 3, "m": 1})
    if function == "det":
        assert found == 0.0
    else:
        assert not np.isfinite(found).any()


def test_every_function_of_symmetric_matrices_is_named() -> None:
    assert set(OF_SYMMETRIC) < set(FUNCTIONS)
