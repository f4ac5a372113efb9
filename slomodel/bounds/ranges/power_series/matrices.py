"""Operations on matrices of power series: fixed points, whose defects prove how near they are.

For matrices of series let ‖M‖∞ be the largest sum of the norms of a row: a norm of matrices over a
Banach algebra, ‖MN‖∞ <= ‖M‖∞‖N‖∞. With constant X and Y, N = XAY = I - G is near I:

- *Solutions* of NZ = B: Z ← B + GZ raises the degree to which Z is right by one. For any Z with
  D = B - NZ and ρ = ‖G‖∞ < 1, N⁻¹B - Z = Σ G^k D, each column at most |D| + ρ/(1 - ρ) max|D|.
- log det N = -Σ tr G^k/k, of which the part above degree p is at most m ρ^(p+1)/((p + 1)(1 - ρ)).
- *Cholesky factors* I + L of N solve L = Φ(-G - LLᵀ), Φ the lower triangle with half the diagonal,
  ‖Φ(S)‖_F <= ‖S‖_F/√2 for symmetric S and ‖M‖_F² = Σ‖m_ij‖². If F(L) is within d of L and a ball of
  radius ε >= d + √2(‖L‖_F + ε)ε about it, F maps that ball into itself as a contraction where
  √2(‖L‖_F + ε) < 1, and its fixed point is within ε of L. At each point of the region I + L then
  has a positive diagonal, so that it is the factor.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval, increasing, point, total
from slomodel.bounds.arithmetic.monomials import Monomials
from slomodel.bounds.arithmetic.power_series import PowerSeries, enlarged, exactly, unknown
from slomodel.bounds.arithmetic.rounding import Array
from slomodel.bounds.ranges.matrices import solution
from slomodel.bounds.structure.near_identity import triangular_inverses
from slomodel.ir.expr import MatrixFunction

_MOST_RHO = 0.999
"""Largest ‖G‖: 1 less it is then known to 1e-13."""


def matrix_operation(function: MatrixFunction, operands: list[PowerSeries]) -> PowerSeries:
    """The operation on series; unknown where its matrix is far from that at the centre."""
    A, table = operands[0], operands[0].table
    if function == "solve_lower":
        A = A.each(np.tril)
    elif function == "solve_upper":
        A = A.each(np.triu)
    elif function == "cholesky":
        A = A.each(lambda array: np.tril(array) + np.swapaxes(np.tril(array, -1), -1, -2))
    is_symmetric = function.endswith(("posdef", "symmetric")) or function == "cholesky"
    factors = _inverses(
        A, is_symmetric and function not in ("solve_symmetric", "inverse_symmetric")
    )
    shape = operands[-1].shape if function.startswith("solve") else A.shape
    if function.startswith(("det", "logdet")):
        shape = A.shape[:-2]
    if factors is None or function == "det":
        return unknown(table, shape)
    X, Y, sign = factors
    G = _constant(table, np.eye(A.shape[-1])) - _constant(table, X) @ A @ _constant(table, Y)
    if function.startswith("logdet"):
        value = _log_determinant(G, Y, function == "logdet_posdef")
        return value if (sign > 0.0).all() else unknown(table, shape)
    if function == "cholesky":
        lower = PowerSeries.constant(table, solution(point(X), point(_eye_like(X))).each(np.tril))
        factor = _cholesky(G)
        return unknown(table, shape) if factor is None else lower @ factor
    right = _constant(table, X)
    if function.startswith("solve"):
        right = right @ operands[1]
    solved = _solved(G, right)
    return unknown(table, shape) if solved is None else _constant(table, Y) @ solved


def _constant(table: Monomials, x: Array) -> PowerSeries:
    return PowerSeries.constant(table, exactly(x))


def _eye_like(X: Array) -> Array:
    return np.broadcast_to(np.eye(X.shape[-1]), X.shape)


def _inverses(A: PowerSeries, is_symmetric: bool) -> tuple[Array, Array, Array] | None:
    at_centre = A.c[0]
    if not (at_centre.size and np.isfinite(at_centre).all()):
        return None
    with np.errstate(all="ignore"):
        X, Y, sign = triangular_inverses(at_centre, is_symmetric)
    if not (np.isfinite(X).all() and np.isfinite(Y).all()):
        return None
    return (X, Y, sign) if np.diagonal(Y, axis1=-2, axis2=-1).all() else None


def _row_norm(size: Array) -> float:
    """The largest sum of a row of any matrix of a batch."""
    return float(enlarged(size.sum(axis=-1)).max(initial=0.0))


def _solved(G: PowerSeries, B: PowerSeries) -> PowerSeries | None:
    """Z with (I - G)Z = B."""
    rho = _row_norm(G.norm)
    if not rho < _MOST_RHO:
        return None
    Z = B
    for _ in range(G.table.degree):
        Z = _polynomial(B + G @ Z)
    defect = B + G @ Z - Z
    factor = enlarged(np.asarray(rho / (1.0 - rho) * (1.0 + 2.0**-40)))
    tail, error = (
        own + factor * own.max(axis=-2, keepdims=True, initial=0.0)
        for own in (defect.tail, enlarged(defect.size_of_coefficients + defect.error))
    )
    return PowerSeries(Z.table, Z.c, enlarged(tail), enlarged(error))


def _polynomial(u: PowerSeries) -> PowerSeries:
    """The polynomial of the coefficients alone."""
    nothing = np.zeros(u.shape)
    return PowerSeries(u.table, u.c, nothing, nothing)


def _log_determinant(G: PowerSeries, Y: Array, is_symmetric: bool) -> PowerSeries:
    """log|det A| = log det(I - G) - log|det X| - log|det Y|, X with a unit diagonal or Yᵀ."""
    table, n = G.table, G.shape[-1]
    rho = _row_norm(G.norm)
    shape = G.shape[:-2]
    if not rho < _MOST_RHO:
        return unknown(table, shape)
    own = np.diagonal(Y, axis1=-2, axis2=-1)
    pivots = total(increasing(np.log, point(np.abs(own))), -1)
    if is_symmetric:
        pivots = pivots + pivots
    result = PowerSeries.constant(table, -pivots)
    power = G
    for k in range(1, table.degree + 1):
        result = result - _trace(power) * PowerSeries.constant(table, _over(k, len(shape)))
        if k < table.degree:
            power = power @ G
    p = table.degree + 1
    rest = enlarged(np.asarray(n * rho**p / (p * (1.0 - rho)) * (1.0 + 2.0**-40)))
    # In the powers above the degree, errors and the constant of G have coefficients of any degree.
    wrong = enlarged(
        np.asarray(n * rho ** (p - 1) / (1.0 - rho) * _row_norm(G.error + np.abs(G.c[0])))
    )
    return PowerSeries(
        table, result.c, enlarged(result.tail + rest), enlarged(result.error + wrong)
    )


def _over(k: int, rank: int) -> Interval:
    return point(np.full((1,) * rank, 1.0)) / point(np.full((1,) * rank, float(k)))


def _trace(M: PowerSeries) -> PowerSeries:
    n = M.shape[-1]
    diagonal = M.each(lambda array: np.diagonal(array, axis1=-2, axis2=-1))
    ones = _constant(M.table, np.ones((n, 1)))
    return (diagonal.each(lambda array: array[..., np.newaxis, :]) @ ones).each(
        lambda array: array[..., 0, 0]
    )


def _lower(S: PowerSeries) -> PowerSeries:
    """The lower triangle with half the diagonal, exactly."""
    n = S.shape[-1]
    weight = np.tril(np.ones((n, n)), -1) + 0.5 * np.eye(n)
    return S.each(lambda array: array * weight)


def _cholesky(G: PowerSeries) -> PowerSeries | None:
    """I + L, a Cholesky factor of I - G."""
    table, n = G.table, G.shape[-1]
    L = _polynomial(_lower(-G))
    for _ in range(table.degree):
        L = _polynomial(_step(G, L))
    change = _step(G, L) - L
    error_norm = enlarged(change.size_of_coefficients + change.error)
    d = float(_frobenius(change.tail + error_norm).max(initial=0.0))
    size = float(_frobenius(L.norm).max(initial=0.0))
    # ε <= d + √2(size + ε)ε holds with equality for ε near d/(1 - √2 size).
    left = 1.0 - sqrt(2.0) * size
    if not left > 0.0 or not d < np.inf:
        return None
    ball = d / left
    for _ in range(4):
        ball = (d + sqrt(2.0) * (size + ball) * ball) * (1.0 + 2.0**-30)
    rate = sqrt(2.0) * (size + ball) * (1.0 + 2.0**-30)
    if not (rate < 1.0 and d + rate * ball <= ball and size + ball < 1.0):
        return None
    # Up to the degree of the table, the fixed point is that of the equation in the algebra of
    # series cut off there, with the same contraction, where the defect is that of errors alone.
    d_error = float(_frobenius(error_norm).max(initial=0.0))
    error = enlarged(np.asarray(d_error / (1.0 - rate) * (1.0 + 2.0**-30)))
    one = PowerSeries.constant(table, exactly(np.eye(n)))
    whole = one + L
    shape = np.tril(np.ones((n, n)))
    return PowerSeries(
        table,
        whole.c,
        np.broadcast_to(ball * shape, whole.shape),
        enlarged(whole.error + error * shape),
    )


def _frobenius(size: Array) -> Array:
    return enlarged(np.sqrt((size * size).sum(axis=(-2, -1)))) * (1.0 + 2.0**-40)


def _step(G: PowerSeries, L: PowerSeries) -> PowerSeries:
    return _lower(-(G + L @ L.each(lambda array: np.swapaxes(array, -1, -2))))
