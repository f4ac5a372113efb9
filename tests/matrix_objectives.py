"""Objectives of one operation on matrices each, with values near which all of them are smooth."""

from __future__ import annotations

from typing import get_args

import numpy as np
from numpy.typing import NDArray

from slomodel.functions import add
from slomodel.ir import build
from slomodel.ir.dims import named
from slomodel.ir.expr import Expr, Input, MatrixFunction

Array = NDArray[np.float64]

_ALL = get_args(MatrixFunction)
FUNCTIONS: tuple[MatrixFunction, ...] = _ALL[: _ALL.index("solve_upper") + 1]
"""The functions of graphs that are not lowered."""
OF_SYMMETRIC = (
    *("cholesky", "solve_symmetric", "inverse_symmetric", "inverse_posdef", "logdet_posdef"),
)
_N, _M, _BATCH = named("n"), named("m"), named("b")


def inputs(batched: bool) -> tuple[Input, Input, Input, Input]:
    """Variables A and B, and data W and V of their shapes."""
    front = (_BATCH,) if batched else ()
    square, wide = (*front, _N, _N), (*front, _N, _M)
    A, B = build.variable("A", square), build.variable("B", wide)
    return A, B, build.data("W", square), build.data("V", wide)


def objective(function: MatrixFunction, batched: bool) -> Expr:
    """The sum of the elements of an operation, with data as weights; A + Aᵀ where it reads A."""
    A, B, W, V = inputs(batched)
    matrix: Expr = A
    if function in OF_SYMMETRIC:
        matrix = build.apply(add, A, build.transposed(A))
    if function.startswith("solve"):
        return build.inner(V, build.matrix_operation(function, matrix, B))
    node = build.matrix_operation(function, matrix)
    if node.rank < matrix.rank:
        return build.sum_over(node, tuple(range(node.rank)))
    return build.inner(W, node)


def arrays(rng: np.random.Generator, sizes: dict[str, int], batched: bool) -> list[Array]:
    """Values of A, whose symmetric part is positive definite, and of B, W and V."""
    front = (sizes["b"],) if batched else ()
    n, m = sizes["n"], sizes["m"]
    X = rng.normal(size=(*front, n, n))
    A = X @ X.swapaxes(-1, -2) / n + 0.5 * np.eye(n) + 0.1 * rng.normal(size=(*front, n, n))
    return [A, *(rng.normal(size=(*front, n, k)) for k in (m, n, m))]
