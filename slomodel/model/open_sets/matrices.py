"""Sets of matrices: Cholesky factors, and correlation matrices by their Cholesky factors."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from slomodel.functions import add, div, exp, mul, sqrt, sub, tanh
from slomodel.functions.elementary import sech2
from slomodel.ir import build
from slomodel.ir.dims import Dim, Shape, literal, named
from slomodel.ir.expr import Affine, Const, Expr, Lookup
from slomodel.model.open_sets.open_set_map import (
    EDGE_OF_INTERVAL,
    EQUAL,
    Array,
    BoxEnds,
    FreeShape,
    first_element,
)
from slomodel.problem import DeclaredSet, TupleCount


class CholeskyFactor:
    """Lower triangular matrices with a positive diagonal, by its log and the elements below it.

    u is the log of the diagonal, then the elements below the diagonal in row-major order.
    """

    def free_shape(self, name: str, shape: Shape, declared: DeclaredSet) -> FreeShape:
        below, count = _below(name, shape[0])
        return FreeShape((shape[0] + below,), (count,))

    def user(self, u: Expr, shape: Shape, declared: DeclaredSet) -> Expr:
        size = shape[0]
        diagonal = build.apply(exp, build.gather(u, [Affine(Dim(), (1,))], (size,)))
        below = build.gather(u, [Affine(size, (1,))], (u.shape[0] - size,))
        return build.apply(add, _on_diagonal(diagonal), _lower(below, size))

    def outside(self, x: Array, declared: DeclaredSet, ends: BoxEnds) -> str:
        inside = np.isfinite(x) & ((x == 0.0) | np.tri(len(x), dtype=bool))
        inside &= (x > 0.0) | ~np.eye(len(x), dtype=bool)
        return "" if inside.all() else first_element(x, ~inside)

    def free(self, x: Array, declared: DeclaredSet, ends: BoxEnds) -> Array:
        return np.concatenate([np.log(np.diag(x)), x[np.tril_indices(len(x), -1)]])

    def logarithmic(self, u: Array, declared: DeclaredSet) -> NDArray[np.bool_]:
        size = math.isqrt(2 * u.size)  # u has n(n + 1)/2 elements, the diagonal first
        return np.arange(u.size) < size

    def near_edge(self, u: Array, declared: DeclaredSet) -> bool:
        return False

    def at_number(self, number: float, shape: tuple[int, ...], declared: DeclaredSet) -> Array:
        return number * np.eye(shape[0])


class Correlation:
    """C = L Lᵀ with rows of L of length 1, by tanh of the partial correlations.

    L_ij = tanh(u_ij) ∏_{k<j} sech(u_ik) for j < i, and L_ii = ∏_{k<i} sech(u_ik); u is in
    row-major order. For two rows C_01 = tanh(u).
    """

    def free_shape(self, name: str, shape: Shape, declared: DeclaredSet) -> FreeShape:
        below, count = _below(name, shape[0])
        return FreeShape((below,), (count,))

    def user(self, u: Expr, shape: Shape, declared: DeclaredSet) -> Expr:
        size = shape[0]
        angles = _lower(u, size)
        partial = build.apply(add, build.apply(tanh, angles), build.identity(size))
        rest = build.apply(sqrt, build.apply(sech2, angles))
        factor = build.apply(mul, partial, _product_before(rest))
        return build.matmul(factor, build.transpose(factor, (1, 0)))

    def outside(self, x: Array, declared: DeclaredSet, ends: BoxEnds) -> str:
        finite = np.isfinite(x)
        if not finite.all():
            return first_element(x, ~finite)
        wrong = np.eye(len(x), dtype=bool) & (np.abs(x - 1.0) > EQUAL)
        if wrong.any():
            return first_element(x, wrong)
        if (np.abs(x - x.T) > EQUAL).any():
            return " is not symmetric"
        try:
            np.linalg.cholesky(x)
        except np.linalg.LinAlgError:
            return " is not positive definite"
        return ""

    def free(self, x: Array, declared: DeclaredSet, ends: BoxEnds) -> Array:
        factor = np.linalg.cholesky(x)
        # The norm of each row from column j on: the rest of its length 1.
        left = np.sqrt(np.cumsum((factor**2)[:, ::-1], axis=1)[:, ::-1])
        below = np.tril_indices(len(x), -1)
        return np.asarray(np.arctanh(factor[below] / left[below]))

    def logarithmic(self, u: Array, declared: DeclaredSet) -> NDArray[np.bool_]:
        return np.ones(u.shape, dtype=bool)

    def near_edge(self, u: Array, declared: DeclaredSet) -> bool:
        return bool((np.abs(u) > np.arctanh(1.0 - EDGE_OF_INTERVAL)).any())

    def at_number(self, number: float, shape: tuple[int, ...], declared: DeclaredSet) -> Array:
        return number * np.eye(shape[0])


def _below(name: str, size: Dim) -> tuple[Dim, TupleCount]:
    """The number of elements below the diagonal, n(n − 1)/2, as a dim of its own."""
    dim = f"below[{name}]"
    n = build.size_of(size)
    count = build.apply(div, build.apply(mul, n, build.apply(sub, n, Const(1.0))), Const(2.0))
    return named(dim), TupleCount(dim, count)


def _on_diagonal(vector: Expr) -> Expr:
    return build.einsum([vector], [(0,)], (0, 0), vector.shape)


def _lower(below: Expr, size: Dim) -> Expr:
    """The matrix (n, n) with elements below its diagonal in row-major order, zero elsewhere."""
    rows = build.listing("parent", (build.iota(size),), below.shape[0])
    columns = build.listing("offset", (build.iota(size),), below.shape[0])
    return build.scatter(below, [Lookup((0,), rows), Lookup((0,), columns)], (size, size))


def _product_before(factors: Expr) -> Expr:
    """In each row, the product of the elements before: P_i0 = 1, P_ij = P_i(j−1) f_i(j−1)."""
    ones = build.broadcast(Const(1.0), (), (factors.shape[0], literal(1)))
    begin = [Affine(Dim(), (1, 0)), Affine(Dim(), (0, 1))]
    first = build.scatter(ones, begin, factors.shape)
    shifted = build.shifted(factors, 1, 1)
    return build.scan(shifted, first, 1)
