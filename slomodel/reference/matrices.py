"""Operations on matrices by elimination, step by step, for real and complex numbers alike.

Nothing is conjugated: the functions are analytic in the elements, as complex steps need.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slomodel.ir.expr import MatrixFunction

Array = NDArray[np.generic]
Matrix = NDArray[Any]


def value_of_operation(
    function: MatrixFunction, operands: Sequence[Array], shape: tuple[int, ...]
) -> Array:
    """The value, of the given shape, of an operation on the last two axes of its operands."""
    kind = np.result_type(*operands, np.float64)
    result = np.empty(shape, kind)
    for place in np.ndindex(operands[0].shape[:-2]):
        result[place] = _value(function, [np.asarray(operand[place], kind) for operand in operands])
    return result


def _value(function: MatrixFunction, operands: Sequence[Matrix]) -> Any:
    A, *others = operands
    match function:
        case "cholesky":
            return cholesky(A)
        case "solve" | "solve_symmetric":
            return _solution(A, others[0])
        case "solve_lower":
            return _forward(A, others[0])
        case "solve_upper":
            return _forward(A[::-1, ::-1], others[0][::-1])[::-1]
        case "inverse" | "inverse_symmetric":
            return _solution(A, np.eye(len(A)))
        case "inverse_posdef":
            L = cholesky(A)
            half = _forward(L, np.eye(len(A)))
            return half.T @ half
        case "det":
            return _determinant(A)
        case "logdet":
            return _logarithm(A)
        case "logdet_posdef":
            return 2.0 * np.sum(np.log(np.diagonal(cholesky(A))))
    raise TypeError(f"`{function}` occurs only in lowered graphs")


def cholesky(A: Matrix) -> Matrix:
    """L, from the lower triangle of A; NaN if a pivot is not positive."""
    L, pivots = _factored(A)
    return L if _is_positive(pivots) else np.full_like(A, np.nan)


def outside_domain(function: MatrixFunction, A: Matrix) -> str:
    """The property that a function needs and a matrix lacks, with the pivot; empty if it has it."""
    if function in ("cholesky", "inverse_posdef", "logdet_posdef"):
        pivots = _factored(A)[1]
        last = len(pivots) - 1
        return "" if _is_positive(pivots) else f"positive definite (pivot {last} is {pivots[-1]})"
    if function in ("solve_lower", "solve_upper"):
        diagonal = np.diagonal(A)
    else:
        diagonal = np.diagonal(_eliminated(A, np.zeros((len(A), 0), A.dtype))[0])
    zeros = np.flatnonzero(diagonal == 0.0)
    if zeros.size:
        return f"regular (pivot {zeros[0]} is 0)"
    return "of positive determinant" if function == "logdet" else ""


def _is_positive(pivots: Sequence[float]) -> bool:
    return all(pivot > 0.0 for pivot in pivots)


def _factored(A: Matrix) -> tuple[Matrix, list[float]]:
    """The columns of L, and their pivots up to the first that is not positive."""
    L, pivots = np.zeros_like(A), []
    for j in range(len(A)):
        row = L[j, :j]
        pivot = A[j, j] - row @ row
        pivots.append(float(pivot.real))
        if not pivots[-1] > 0.0:
            break
        L[j, j] = np.sqrt(pivot)
        L[j + 1 :, j] = (A[j + 1 :, j] - L[j + 1 :, :j] @ row) / L[j, j]
    return L, pivots


def _forward(L: Matrix, B: Matrix) -> Matrix:
    """L⁻¹B, reading only the lower triangle of L."""
    X = np.array(B, dtype=np.result_type(L, B))
    for i in range(len(L)):
        X[i] = (X[i] - L[i, :i] @ X[:i]) / L[i, i]
    return X


def _eliminated(A: Matrix, B: Matrix) -> tuple[Matrix, Matrix, int]:
    """Gaussian elimination with row exchanges: U, the right sides with it, and the sign."""
    U, X, sign = A.copy(), B.copy(), 1
    for k in range(len(U)):
        best = k + int(np.argmax(np.abs(U[k:, k])))
        if best != k:
            U[[k, best]], X[[k, best]] = U[[best, k]], X[[best, k]]
            sign = -sign
        if U[k, k] == 0.0:
            continue
        factor = U[k + 1 :, k] / U[k, k]
        U[k + 1 :, k:] -= np.multiply.outer(factor, U[k, k:])
        X[k + 1 :] -= np.multiply.outer(factor, X[k])
    return U, X, sign


def _solution(A: Matrix, B: Matrix) -> Matrix:
    """A⁻¹B; NaN or infinite if A is singular."""
    U, X, _ = _eliminated(A, np.asarray(B, A.dtype))
    if (np.diagonal(U) == 0.0).any():
        return np.full_like(X, np.nan)
    for i in reversed(range(len(U))):
        X[i] = (X[i] - U[i, i + 1 :] @ X[i + 1 :]) / U[i, i]
    return X


def _determinant(A: Matrix) -> Any:
    U, _, sign = _eliminated(A, np.zeros((len(A), 0), A.dtype))
    return sign * np.prod(np.diagonal(U))


def _logarithm(A: Matrix) -> Any:
    """log det A without overflow of the determinant; NaN if it is negative, -inf if it is 0."""
    U, _, sign = _eliminated(A, np.zeros((len(A), 0), A.dtype))
    pivots = np.diagonal(U)
    signs = np.where(pivots.real < 0.0, -1.0, 1.0)
    if sign * np.prod(signs) < 0.0:
        return np.nan
    return np.sum(np.log(pivots * signs))
