"""Operations on matrices in Python: calls of functions that the module defines over SciPy's LAPACK.

An array in C order is the transpose of the matrix that LAPACK reads, so no array is copied.
"""

from __future__ import annotations

from slomodel.codegen.program import Step
from slomodel.codegen.python.names import GeneratedNames
from slomodel.ir.expr import MatrixOperation

MATRICES = "_matrix_"
"""Prefix of the names of these functions in a generated module."""


def matrix_lines(step: Step, scope: GeneratedNames) -> list[str]:
    """One call, which fills the array of the result or returns a number."""
    node = step.node
    assert isinstance(node, MatrixOperation)
    target = scope.ref(node)
    operands = [scope.ref(operand) for operand in node.operands]
    if node.rank:
        return [f"{MATRICES}{node.function}({', '.join([*operands, target])})"]
    return [f"{target} = {MATRICES}{node.function}({', '.join(operands)}, np.empty((), real))[()]"]


MATRICES_SOURCE = '''
_potrf, _potri, _getrf, _getrs = lapack.get_lapack_funcs(
    ("potrf", "potri", "getrf", "getrs"), dtype=real
)
(_trsm,) = blas.get_blas_funcs(("trsm",), dtype=real)


def _matrix_cholesky(A, out):
    """L with LL' = A for each matrix, reading lower triangles; NaN if not positive definite."""
    for k in np.ndindex(out.shape[:-2]):
        if out[k].size:
            factor, failed = _potrf(A[k].T, lower=0, clean=1)
            out[k] = np.nan if failed else factor.T


def _triangular(A, B, out, lower):
    """A⁻¹B for each triangular matrix A."""
    for k in np.ndindex(out.shape[:-2]):
        if out[k].size:
            turned = A[k].flags.f_contiguous
            matrix = A[k] if turned else A[k].T
            sides = {"side": 1, "lower": lower if turned else 1 - lower, "trans_a": int(turned)}
            out[k] = _trsm(1.0, matrix, B[k].T, **sides).T


def _matrix_solve_lower(L, B, out):
    _triangular(L, B, out, 1)


def _matrix_solve_upper(U, B, out):
    _triangular(U, B, out, 0)


def _matrix_lu(A, out):
    """LU of the transpose of each matrix, column by column, then the row exchanges."""
    for k in np.ndindex(out.shape[:-2]):
        if out[k].size:
            factors, exchanges, _ = _getrf(A[k].T)
            out[k][:-1], out[k][-1] = factors.T, exchanges


def _solve_lu(F, B, out, trans):
    """The solutions of AX = B from the LU of A'; of A'X = B if `trans` is 0."""
    for k in np.ndindex(out.shape[:-2]):
        if out[k].size:
            out[k] = _getrs(F[k][:-1].T, F[k][-1].astype(np.int32), B[k], trans=trans)[0]


def _matrix_solve_lu(F, B, out):
    _solve_lu(F, B, out, 1)


def _matrix_solve_lu_transposed(F, B, out):
    _solve_lu(F, B, out, 0)


def _matrix_inverse_lu(F, out):
    _solve_lu(F, np.broadcast_to(np.eye(out.shape[-1], dtype=real), out.shape), out, 1)


def _pivots(F):
    """The pivots of each matrix, and the signs of its row exchanges."""
    pivots = np.diagonal(F[..., :-1, :], axis1=-2, axis2=-1)
    odd = np.sum(F[..., -1, :] != np.arange(F.shape[-1]), axis=-1) % 2
    return pivots, 1.0 - 2.0 * odd


def _matrix_det_lu(F, out):
    pivots, signs = _pivots(F)
    out[...] = signs * np.prod(pivots, axis=-1)
    return out


def _matrix_logdet_lu(F, out):
    """log det; NaN if it is negative."""
    pivots, signs = _pivots(F)
    signs = signs * np.prod(np.sign(pivots), axis=-1)
    out[...] = np.where(signs < 0.0, np.nan, np.sum(np.log(np.abs(pivots)), axis=-1))
    return out


def _matrix_solve_cholesky(L, A, B, out):
    """A⁻¹B from A = LL'; by LU where A is not positive definite."""
    half = np.empty(out.shape, real)
    _matrix_solve_lower(L, B, half)
    _matrix_solve_upper(L.swapaxes(-1, -2), half, out)
    for k in np.ndindex(out.shape[:-2]):
        if out[k].size and np.isnan(L[k][0, 0]):
            factors, exchanges, _ = _getrf(A[k].T)
            out[k] = _getrs(factors, exchanges, B[k], trans=1)[0]


def _matrix_inverse_cholesky(L, *others):
    """The inverse of LL'; that of A, if given, by LU where A is not positive definite."""
    *given, out = others
    for k in np.ndindex(out.shape[:-2]):
        if not out[k].size:
            continue
        if not np.isnan(L[k][0, 0]):
            half = _potri(L[k].T, lower=0)[0]
            out[k] = np.triu(half) + np.triu(half, 1).T
        elif given:
            factors, exchanges, _ = _getrf(given[0][k].T)
            out[k] = _getrs(factors, exchanges, np.eye(out.shape[-1]), trans=1)[0]
        else:
            out[k] = np.nan
'''
