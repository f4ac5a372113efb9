"""Operations on matrices of power series: fixed points, whose defects prove how near they are.

For matrices of series let ‖M‖ be the largest Σ_j ‖m_ij‖ d_j/d_i with weights d > 0: a norm of
matrices over a Banach algebra, ‖MN‖ <= ‖M‖‖N‖, least for the Perron vector d of the norms. With
constant X and Y, N = XAY = I - G is near I; for positive definite A, X = Λ^(-1/2)Uᵀ and Y = Xᵀ by
its eigenvectors, in which a change of scale is diagonal, and log det A = log det N - log det XXᵀ:

- *Solutions* of NZ = B: Z ← B + GZ raises the degree to which Z is right by one. For any Z with
  D = B - NZ and ρ = ‖G‖ < 1, N⁻¹B - Z = Σ G^k D, at most Σ M^k |D| for the norms M of G, and row i
  of M^k |D| at most d_i ρ^k max|D|/d.
- Where ‖G‖ is larger, P is the power series of N⁻¹ up to degree p and E = I - NP, which has terms
  above p alone: N⁻¹ = P(I - E)⁻¹, and its series may converge though Σ‖G‖^k does not.
- log det N = -Σ tr G^k/k. As (M^j)_li <= ρ^j d_l/d_i, the part above degree p is at most
  Σ_i (M^(p+1) d)_i/d_i / ((p + 1)(1 - ρ)).
- *Cholesky factors* I + L of N solve L = Φ(-G - LLᵀ), Φ the lower triangle with half the diagonal,
  ‖Φ(S)‖_F <= ‖S‖_F/√2 for symmetric S and ‖M‖_F² = Σ‖m_ij‖². If F(L) is within d of L and a ball of
  radius ε >= d + √2(‖L‖_F + ε)ε about it, F maps that ball into itself as a contraction where
  √2(‖L‖_F + ε) < 1, and its fixed point is within ε of L. At each point of the region I + L then
  has a positive diagonal, so that it is the factor. Farther from I, C is the series of the factor
  up to degree p, and C⁻¹NC⁻ᵀ is near I.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval, increasing, point, total
from slomodel.bounds.arithmetic.monomials import Monomials
from slomodel.bounds.arithmetic.power_series import PowerSeries, enlarged, exactly, unknown
from slomodel.bounds.arithmetic.rounding import SMALLEST_NORMAL, UNIT, Array
from slomodel.bounds.ranges.matrices import solution
from slomodel.bounds.structure.near_identity import triangular_inverses
from slomodel.ir.expr import MatrixFunction

_PERRON_STEPS = 12
"""Steps towards the Perron vector, each a product with a matrix: any weights are valid."""
_LEAST_WEIGHT = 1e-3
"""Added to weights, relative to the largest, so that none is near 0."""
_TERMS = 6
"""Terms of geometric sums by products of matrices of norms, smaller than powers of one norm."""
_NEAR = 0.25
"""Norms of G whose powers are summed; beyond, a polynomial inverse takes as many products."""
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
    shape = operands[-1].shape if function.startswith("solve") else A.shape
    if function.startswith(("det", "logdet")):
        shape = A.shape[:-2]
    factors = None if function == "det" else _inverses(A, function)
    if factors is None:
        return unknown(table, shape)
    X, Y, sign = factors
    G = _constant(table, np.eye(A.shape[-1])) - _constant(table, X) @ A @ _constant(table, Y)
    if function.startswith("logdet"):
        is_symmetric = function == "logdet_posdef"
        value = _log_determinant(G, _log_of_gram(X) if is_symmetric else _log_of_diagonal(Y))
        return value if (sign > 0.0).all() else unknown(table, shape)
    if function == "cholesky":
        lower = PowerSeries.constant(table, solution(point(X), point(_eye_like(X))).each(np.tril))
        near = _cholesky(G)
        factor = _cholesky_by_factor(G) if near is None else near
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


def _inverses(A: PowerSeries, function: MatrixFunction) -> tuple[Array, Array, Array] | None:
    """X and Y with XAY near I at the centre, and the sign of det A there; None without them."""
    at_centre = A.c[0]
    if not (at_centre.size and np.isfinite(at_centre).all()):
        return None
    values = vectors = np.zeros(0)
    if function.endswith(("posdef", "symmetric")):
        values, vectors = np.linalg.eigh(at_centre)
    is_definite = values.size > 0 and bool((values > 0.0).all())
    if function.endswith("posdef") and not is_definite:
        return None
    with np.errstate(all="ignore"):
        if is_definite:
            X = np.swapaxes(vectors / np.sqrt(values)[..., np.newaxis, :], -1, -2)
            Y, sign = np.swapaxes(X, -1, -2), np.ones(at_centre.shape[:-2])
        else:
            X, Y, sign = triangular_inverses(at_centre, function == "cholesky")
    if not (np.isfinite(X).all() and np.isfinite(Y).all()):
        return None
    if not is_definite and not np.diagonal(Y, axis1=-2, axis2=-1).all():
        return None
    return X, Y, sign


def _weights(size: Array) -> Array:
    """Positive weights (…, n) near the Perron vectors of matrices of norms."""
    d = np.ones(size.shape[:-1])
    usable = np.where(np.isfinite(size), size, 0.0)
    for _ in range(_PERRON_STEPS):
        d = (usable @ d[..., np.newaxis])[..., 0]
        d = d / np.maximum(d.max(axis=-1, keepdims=True), SMALLEST_NORMAL) + _LEAST_WEIGHT
    return d


def _weighted_norm(size: Array, d: Array) -> float:
    """The largest weighted sum of a row of any matrix of a batch."""
    sums = (size @ d[..., np.newaxis])[..., 0] / d
    return float(enlarged(sums).max(initial=0.0))


def _solved(G: PowerSeries, B: PowerSeries) -> PowerSeries | None:
    """Z with (I - G)Z = B."""
    Z = B
    for _ in range(G.table.degree):
        Z = _polynomial(B + G @ Z)
    defect = B + G @ Z - Z
    parts = defect.tail, enlarged(defect.size_of_coefficients + defect.error)
    d = _weights(G.norm)
    rho = _weighted_norm(G.norm, d)
    if rho < _NEAR:
        tail, error = (_neumann(G.norm, own, d, rho) for own in parts)
        return PowerSeries(Z.table, Z.c, tail, error)
    inverse = _inverse(G)
    if inverse is None:
        return None
    tail, error = (enlarged(inverse.P.norm @ inverse.sums(own)) for own in parts)
    return PowerSeries(Z.table, Z.c, tail, error)


@dataclass(frozen=True, slots=True)
class _PolynomialInverse:
    """A polynomial P with (I - G)P = I - E, weights d and the weighted norm ρ < 1 of E."""

    P: PowerSeries
    E: PowerSeries
    d: Array
    rho: float

    def sums(self, D: Array) -> Array:
        """Bounds on Σ E^k D from those on D."""
        return _neumann(self.E.norm, D, self.d, self.rho)


def _inverse(G: PowerSeries) -> _PolynomialInverse | None:
    """An inverse of I - G that need not be near I, by its power series.

    E has coefficients above the degree alone, but for roundings.
    """
    one = _constant(G.table, np.eye(G.shape[-1]))
    P = one
    for k in range(1, G.table.degree + 1):
        P = _polynomial(one + G @ P)
        P = PowerSeries(P.table, P.c[: P.table.ends[k]], P.tail, P.error)
    E = one + G @ P - P
    d = _weights(E.norm)
    rho = _weighted_norm(E.norm, d)
    at_centre = enlarged(np.abs(G.c[0]) + G.error)
    if not (rho < _MOST_RHO and _weighted_norm(at_centre, np.ones(d.shape)) < _MOST_RHO):
        return None
    return _PolynomialInverse(P, E, d, rho)


def _neumann(M: Array, D: Array, d: Array, rho: float) -> Array:
    """Bounds on Σ M^k D of matrices of norms; the last terms by their weighted norm."""
    total, term, wide = D, D, d[..., np.newaxis]
    for _ in range(_TERMS):
        term = enlarged(M @ term)
        total = enlarged(total + term)
    most = (term / wide).max(axis=-2, keepdims=True, initial=0.0)
    return enlarged(total + wide * most * (rho / (1.0 - rho) * (1.0 + 2.0**-40)))


def _polynomial(u: PowerSeries) -> PowerSeries:
    """The polynomial of the coefficients alone."""
    nothing = np.zeros(u.shape)
    return PowerSeries(u.table, u.c, nothing, nothing)


def _log_of_diagonal(Y: Array) -> Interval:
    """log|det A| - log det(XAY) for X with a unit diagonal, or Yᵀ, and triangular Y."""
    own = np.diagonal(Y, axis1=-2, axis2=-1)
    return -total(increasing(np.log, point(np.abs(own))), -1)


def _log_of_gram(X: Array) -> Interval:
    """-log det XXᵀ, for X whose rows are nearly orthogonal.

    With scaled rows s_i x_i, their products are I + F; |log det(I + F)| <= n‖F‖/(1 - ‖F‖).
    """
    n = X.shape[-1]
    scale = 1.0 / np.sqrt((X * X).sum(axis=-1))
    S = X * scale[..., np.newaxis]
    size = np.abs(S) @ np.swapaxes(np.abs(S), -1, -2)
    off = np.abs(S @ np.swapaxes(S, -1, -2) - np.eye(n)) + (4.0 * (n + 8) * UNIT) * size
    f = enlarged(off.sum(axis=-1).max(axis=-1))
    far = np.where(f < 0.5, enlarged(n * f / np.maximum(1.0 - f, 0.5)), np.inf)
    logs = total(increasing(np.log, point(scale)), -1)
    return logs + logs + Interval(-far, far)


def _log_determinant(G: PowerSeries, rest: Interval) -> PowerSeries:
    """log|det A| = log det(I - G) + rest."""
    table, n = G.table, G.shape[-1]
    d = _weights(G.norm)
    rho = _weighted_norm(G.norm, d)
    result = PowerSeries.constant(table, rest)
    if not rho < _NEAR:
        inverse = _inverse(G)
        if inverse is None:
            return unknown(table, G.shape[:-2])
        return result - _log_determinant_of_inverse(G, inverse)
    power = G
    for k in range(1, table.degree + 1):
        result = result - _trace(power) * PowerSeries.constant(table, _over(k, G.tail.ndim - 2))
        if k < table.degree:
            power = power @ G
    p = table.degree + 1
    last = d[..., np.newaxis]
    for _ in range(p):
        last = enlarged(G.norm @ last)
    rows = (last[..., 0] / d).sum(axis=-1)
    beyond = enlarged(rows / (p * (1.0 - rho)) * (1.0 + 2.0**-40))
    # In the powers above the degree, errors and the constant of G have coefficients of any degree.
    wrong = enlarged(
        np.asarray(n * rho ** (p - 1) / (1.0 - rho) * _weighted_norm(G.error + np.abs(G.c[0]), d))
    )
    return PowerSeries(
        table, result.c, enlarged(result.tail + beyond), enlarged(result.error + wrong)
    )


def _log_determinant_of_inverse(G: PowerSeries, inverse: _PolynomialInverse) -> PowerSeries:
    """log det (I - G)⁻¹ = log det P - log det(I - E).

    With Δu = Σ k u_k for the parts u_k of degree k, Δ log det P = tr((I - E)⁻¹(I - G)ΔP).
    """
    table, P = G.table, inverse.P
    degrees = table.exponents.sum(axis=1)[: len(P.c)].reshape((-1, *(1,) * P.tail.ndim))
    c = P.c * degrees
    none = np.zeros(P.shape)
    moved = PowerSeries(table, c, none, enlarged(UNIT * np.abs(c).sum(axis=0)))
    W = moved - G @ moved
    own = _trace(W)
    # Products with a tail of E are above the degree, those with its errors alone of any degree.
    tail = own.tail + _diagonal_sum(inverse.sums(enlarged(inverse.E.norm @ W.norm)))
    errors = enlarged(inverse.E.size_of_coefficients + inverse.E.error)
    error = own.error + _diagonal_sum(inverse.sums(enlarged(errors @ W.norm)))
    own_degrees = np.maximum(table.exponents.sum(axis=1)[: len(own.c)], 1)
    divided = own.c / own_degrees.reshape((-1, *(1,) * own.tail.ndim))
    rounding = UNIT * np.abs(divided).sum(axis=0)
    # The constants: log det P_0 and that of I - E.
    far = [np.abs(P.c[0] - np.eye(P.shape[-1])), inverse.E.norm, errors]
    logs = [_log_near_one(one) for one in far]
    return PowerSeries(
        table,
        np.concatenate([np.zeros((1, *own.shape)), divided[1:]]),
        enlarged(tail / (table.degree + 1.0) + logs[1]),
        enlarged(error + np.abs(own.c[0]) + rounding + logs[0] + logs[2]),
    )


def _log_near_one(size: Array) -> Array:
    """Bounds on |log det(I - M)| <= Σ tr(|M|^k)/k for matrices M of these norms."""
    d = _weights(size)
    rho = _weighted_norm(size, d)
    if not rho < _MOST_RHO:
        return np.full(size.shape[:-2], np.inf)
    rows = ((size @ d[..., np.newaxis])[..., 0] / d).sum(axis=-1)
    return enlarged(rows / (1.0 - rho) * (1.0 + 2.0**-40))


def _diagonal_sum(size: Array) -> Array:
    return enlarged(np.trace(size, axis1=-2, axis2=-1))


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


def _cholesky_by_factor(G: PowerSeries) -> PowerSeries | None:
    """A Cholesky factor C(I + L') of N = I - G, for the series C of that factor up to the degree.

    C⁻¹NC⁻ᵀ is near I, as N - CCᵀ has terms above the degree alone, but for roundings. C is regular
    over the region, so that its diagonal remains positive.
    """
    table = G.table
    one = PowerSeries.constant(table, exactly(np.eye(G.shape[-1])))
    L = _polynomial(_lower(-G))
    for k in range(1, table.degree + 1):
        L = _polynomial(_step(G, L))
        L = PowerSeries(table, L.c[: table.ends[k]], L.tail, L.error)
    C = one + L
    rest = C @ _transposed(C) - one + G
    half = _solved(-L, rest)
    whole = None if half is None else _solved(-L, _transposed(half))
    factor = None if whole is None else _cholesky(whole)
    return None if factor is None else C @ factor


def _transposed(M: PowerSeries) -> PowerSeries:
    return M.each(lambda array: np.swapaxes(array, -1, -2))


def _frobenius(size: Array) -> Array:
    return enlarged(np.sqrt((size * size).sum(axis=(-2, -1)))) * (1.0 + 2.0**-40)


def _step(G: PowerSeries, L: PowerSeries) -> PowerSeries:
    return _lower(-(G + L @ _transposed(L)))
