"""Bounds of functions of matrices along rays, against mpmath's algorithms in 40 digits."""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from calculus.rays_of_graphs import CONSTANTS, END

from slomodel import functions as fn
from slomodel.calculus.rays.ray import ray_graph
from slomodel.errors import MissingRule
from slomodel.ir import build
from slomodel.ir.dims import literal
from slomodel.ir.expr import Expr, MatrixFunction
from slomodel.reference import evaluate

N, COLUMNS, BATCH = 3, 2, 2
X = build.variable("X", (literal(BATCH), literal(N), literal(N)))
B = build.variable("B", (literal(BATCH), literal(N), literal(COLUMNS)))
SHIFT = build.data("S", X.shape)
V, W = build.direction("V", X.shape), build.direction("W", B.shape)
GENERAL = fn.add(X, SHIFT)
DEFINITE = fn.add(build.product(X, build.transposed(X)), SHIFT)


def _system(function: MatrixFunction, matrix: Expr) -> Expr:
    return build.matrix_operation(function, matrix, B)


def _of(function: MatrixFunction, matrix: Expr) -> Expr:
    return build.matrix_operation(function, matrix)


Matrix = mpmath.matrix
Truth = Callable[[Matrix, Matrix], Matrix]


def _lower(a: Matrix) -> Matrix:
    return _kept(a, lambda i, j: i >= j)


def _kept(a: Matrix, which: Callable[[int, int], bool]) -> Matrix:
    return mpmath.matrix(
        [[a[i, j] if which(i, j) else mpmath.mpf(0) for j in range(N)] for i in range(N)]
    )


def _upper(a: Matrix) -> Matrix:
    return _kept(a, lambda i, j: i <= j)


def _log(a: Matrix) -> Matrix:
    return mpmath.matrix([[mpmath.log(abs(mpmath.det(a)))]])


def _solved(a: Matrix, b: Matrix) -> Matrix:
    return mpmath.inverse(a) * b


FACTOR = _of("cholesky", DEFINITE)
KNOWN_DEFINITE = fn.add(
    build.broadcast(_of("logdet_posdef", DEFINITE), (0,), B.shape),
    _system("solve_symmetric", DEFINITE),
)
CASES: dict[str, tuple[Expr, Truth]] = {
    "logdet": (_of("logdet", GENERAL), lambda a, b: _log(a)),
    "inverse": (_of("inverse", GENERAL), lambda a, b: mpmath.inverse(a)),
    "solve": (_system("solve", GENERAL), _solved),
    "solve_lower": (_system("solve_lower", GENERAL), lambda a, b: _solved(_lower(a), b)),
    "solve_upper": (_system("solve_upper", GENERAL), lambda a, b: _solved(_upper(a), b)),
    "logdet_posdef": (_of("logdet_posdef", DEFINITE), lambda a, b: _log(a)),
    "inverse_posdef": (_of("inverse_posdef", DEFINITE), lambda a, b: mpmath.inverse(a)),
    "cholesky": (FACTOR, lambda a, b: mpmath.cholesky(a)),
    "both": (KNOWN_DEFINITE, lambda a, b: _solved(a, b) + _log(a)[0] * mpmath.ones(N, COLUMNS)),
    "lower of factor": (
        _system("solve_lower", FACTOR),
        lambda a, b: _solved(mpmath.cholesky(a), b),
    ),
    "upper of factor": (
        _system("solve_upper", build.transposed(FACTOR)),
        lambda a, b: _solved(mpmath.cholesky(a).T, b),
    ),
}
OF_DEFINITE = ("logdet_posdef", "inverse_posdef", "cholesky", "both", *list(CASES)[-2:])


ILL_CONDITIONED = [pytest.param(name, 1e-5) for name in ("solve", "cholesky")]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "shift"), [*(pytest.param(name, 1.0) for name in CASES), *ILL_CONDITIONED]
)
def test_derivatives_are_enclosed(name: str, shift: float) -> None:
    """Well-conditioned matrices, and matrices near singular ones."""
    result, truth = CASES[name]
    objective = build.sum_over(fn.sin(result), tuple(range(result.rank)))
    rng = np.random.default_rng(7)
    x = rng.normal(size=(BATCH, N, N)) * 0.5
    given = {X: x, B: rng.normal(size=(BATCH, N, COLUMNS))}
    given |= {V: rng.normal(size=x.shape) / 9.0, W: rng.normal(size=(BATCH, N, COLUMNS)) / 9.0}
    given[SHIFT] = np.broadcast_to(
        shift * (1.0 if name in OF_DEFINITE else 3.0) * np.eye(N), x.shape
    )
    end = 0.03 * shift

    def value(t: mpmath.mpf) -> mpmath.mpf:
        total = mpmath.mpf(0)
        for k in range(BATCH):
            s, own, along, b, w = (
                mpmath.matrix(given[one][k].tolist()) for one in (SHIFT, X, V, B, W)
            )
            a = own + t * along
            a = a * a.T + s if name in OF_DEFINITE else a + s
            total += sum(mpmath.sin(one) for one in truth(a, b + t * w))
        return total

    graph = ray_graph(objective, {X: V, B: W}, END)
    numbers = evaluate(graph.numbers, {**given, END: np.asarray(end)}, {})
    found = [float(one) for one in numbers]
    with mpmath.workdps(40):
        start = mpmath.taylor(value, 0, 2)
        for k in range(3):
            off = abs(mpmath.factorial(k) * start[k] - mpmath.mpf(found[2 * k]))
            assert off <= mpmath.mpf(found[2 * k + 1]) * (1 + CONSTANTS)
        for t in (0.6 * end, end):
            second, third = (mpmath.diff(value, t, k) for k in (2, 3))
            assert found[6] <= second <= found[7]
            assert found[8] <= third <= found[9]
    if shift == 1.0:
        assert found[3] <= 1e-10 * abs(found[2])
        assert found[7] - found[6] <= 2.0 * abs(found[4])


def test_a_matrix_that_becomes_singular_leaves_nothing_known() -> None:
    objective = build.sum_over(_of("logdet", GENERAL), (0,))
    graph = ray_graph(objective, {X: V, B: W}, END)
    x = np.broadcast_to(np.eye(N), (BATCH, N, N))
    given = {X: x, V: -x, SHIFT: 0.0 * x, END: np.asarray(1.5)}
    assert not float(evaluate(graph.numbers, given, {})[7]) < np.inf


def test_a_determinant_has_no_rule() -> None:
    with pytest.raises(MissingRule, match="its logarithm has bounds"):
        ray_graph(build.sum_over(_of("det", GENERAL), (0,)), {X: V, B: W}, END)
