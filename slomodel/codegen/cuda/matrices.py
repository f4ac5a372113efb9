"""Operations on matrices on a device: functions of the generated module over CuPy's cuSOLVER."""

from __future__ import annotations

from slomodel.codegen.cuda.names import DeviceNames
from slomodel.codegen.cuda.products import Call
from slomodel.codegen.loops.names import constant
from slomodel.codegen.loops.nest import Element, MatrixCall, Scalar
from slomodel.ir.expr import Expr

MATRICES = "_matrix_"
"""Prefix of the names of these functions in a generated module."""


def matrix_call(node: MatrixCall, names: DeviceNames) -> Call:
    """The call for a batch of matrices."""
    square, sides = (node.rows, node.rows), (node.rows, node.columns or 0)
    factors = (node.rows + 1, node.rows)
    shapes = [square] * len(node.operands)
    if node.columns is not None:
        shapes[-1] = sides
    if node.function.endswith(("_lu", "_lu_transposed")):
        shapes[0] = factors
    result = () if node.is_number else factors if node.function == "lu" else square
    result = sides if node.columns is not None else result
    return Call(
        f"{MATRICES}{node.function}",
        tuple(
            _view(one, (*node.batch, *shape), names)
            for one, shape in zip(node.operands, shapes, strict=True)
        ),
        _view(node.result, (*node.batch, *result), names),
    )


def _view(one: Element | Scalar, shape: tuple[int, ...], names: DeviceNames) -> str:
    """The host's text for an array over a shape, in which a number is the same everywhere."""
    if isinstance(one, Element):
        assert isinstance(one.array, Expr)
        name, begin = names.located(one.array)
        strides = one.position.strides[: len(shape)]
        return f"_view({name}, {begin + one.position.offset}, {shape}, {strides})"
    known = constant(one.node, names.numbers)
    if known is not None:
        return f"cp.full({shape}, {known}, real)"
    name, begin = names.located(one.node)
    return f"_view({name}, {begin}, {shape}, {(0,) * len(shape)})"


MATRICES_SOURCE = '''
def _matrix_cholesky(A, out):
    """L with LL' = A for each matrix, reading lower triangles; NaN if not positive definite."""
    for k in np.ndindex(out.shape[:-2]):
        if out[k].size:
            try:
                with cupyx.errstate(linalg="raise"):
                    out[k] = cp.linalg.cholesky(A[k])
            except np.linalg.LinAlgError:
                out[k] = np.nan


def _triangular(A, B, out, lower):
    """A⁻¹B for each triangular matrix A."""
    for k in np.ndindex(out.shape[:-2]):
        if out[k].size:
            out[k] = linalg.solve_triangular(A[k], B[k], lower=lower)


def _matrix_solve_lower(L, B, out):
    _triangular(L, B, out, True)


def _matrix_solve_upper(U, B, out):
    _triangular(U, B, out, False)


def _lu(A):
    """LU and row exchanges of a matrix, which may be singular."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return linalg.lu_factor(A, check_finite=False)


def _matrix_lu(A, out):
    """LU of the transpose of each matrix, column by column, then the row exchanges."""
    for k in np.ndindex(out.shape[:-2]):
        if out[k].size:
            factors, exchanges = _lu(A[k].T)
            out[k][:-1], out[k][-1] = factors.T, exchanges


def _solve_lu(F, B, out, trans):
    """The solutions of AX = B from the LU of A'; of A'X = B if `trans` is 0."""
    for k in np.ndindex(out.shape[:-2]):
        if out[k].size:
            factors = F[k][:-1].T, F[k][-1].astype(np.int32)
            out[k] = linalg.lu_solve(factors, B[k], trans, check_finite=False)


def _matrix_solve_lu(F, B, out):
    _solve_lu(F, B, out, 1)


def _matrix_solve_lu_transposed(F, B, out):
    _solve_lu(F, B, out, 0)


def _matrix_inverse_lu(F, out):
    _solve_lu(F, cp.broadcast_to(cp.eye(out.shape[-1], dtype=real), out.shape), out, 1)


def _pivots(F):
    """The pivots of each matrix, and the signs of its row exchanges."""
    pivots = cp.diagonal(F[..., :-1, :], axis1=-2, axis2=-1)
    odd = cp.sum(F[..., -1, :] != cp.arange(F.shape[-1]), axis=-1) % 2
    return pivots, 1.0 - 2.0 * odd


def _matrix_det_lu(F, out):
    pivots, signs = _pivots(F)
    out[...] = signs * cp.prod(pivots, axis=-1)


def _matrix_logdet_lu(F, out):
    """log det; NaN if it is negative."""
    pivots, signs = _pivots(F)
    signs = signs * cp.prod(cp.sign(pivots), axis=-1)
    out[...] = cp.where(signs < 0.0, np.nan, cp.sum(cp.log(cp.abs(pivots)), axis=-1))


def _matrix_solve_cholesky(L, A, B, out):
    """A⁻¹B from A = LL'; by LU where A is not positive definite."""
    for k in np.ndindex(out.shape[:-2]):
        if not out[k].size:
            continue
        if cp.isnan(L[k][0, 0]):
            out[k] = linalg.lu_solve(_lu(A[k]), B[k], check_finite=False)
        else:
            half = linalg.solve_triangular(L[k], B[k], lower=True)
            out[k] = linalg.solve_triangular(L[k], half, 1, lower=True)


def _matrix_inverse_cholesky(L, *others, out):
    """The inverse of LL'; that of A, if given, by LU where A is not positive definite."""
    for k in np.ndindex(out.shape[:-2]):
        if not out[k].size:
            continue
        unit = cp.eye(out.shape[-1], dtype=real)
        if not cp.isnan(L[k][0, 0]):
            half = linalg.solve_triangular(L[k], unit, lower=True)
            out[k] = half.T @ half
        elif others:
            out[k] = linalg.lu_solve(_lu(others[0][k]), unit, check_finite=False)
        else:
            out[k] = np.nan
'''
