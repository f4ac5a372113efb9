"""Operations on matrices in C: LAPACK for large ones, loops for small ones."""

from __future__ import annotations

from collections.abc import Sequence

from slomodel.codegen.loops.names import Names
from slomodel.codegen.loops.nest import Element, MatrixCall, Scalar, strides_of
from slomodel.codegen.loops.text import indented

LAPACK = "slo_matrix_"
"""Prefix of the names of the functions in `MATRICES`."""


def matrix_call_lines(node: MatrixCall, names: Names) -> list[str]:
    """One call for every index of the batch."""
    if 0 in node.batch:
        return []
    strides = [strides_of(operand, len(node.batch) + 2) for operand in node.operands]
    texts = [_address(one, names) for one in node.operands]
    arguments = ["blas", str(node.rows), *([str(node.columns)] if node.columns is not None else [])]
    for text, own in zip(texts, strides, strict=True):
        arguments += [text + _moved(own[:-2]), *map(str, own[-2:])]
    call = f"{LAPACK}{node.function}"
    if node.function == "inverse_cholesky" and len(node.operands) > 1:
        call = f"{LAPACK}inverse_symmetric_cholesky"
    if isinstance(node.result, Scalar):
        return [f"{names.number(node.result.node)} = {call}({', '.join(arguments)});"]
    own = node.result.position.strides[: len(node.batch)]
    target = names.base(node.result.array) + _moved(own)
    if node.is_number:
        lines = [f"*({target}) = {call}({', '.join(arguments)});"]
    else:
        lines = [f"{call}({', '.join([*arguments, target])});"]
    for k, size in reversed(list(enumerate(node.batch))):
        lines = [f"for (long q{k} = 0; q{k} < {size}; q{k}++) {{", *indented(lines), "}"]
    return lines


def _moved(strides: Sequence[int]) -> str:
    """The offset of matrix q of the batch, as a term to be added."""
    return "".join(f" + q{k} * {step}" for k, step in enumerate(strides) if step)


def _address(one: Element | Scalar, names: Names) -> str:
    if isinstance(one, Scalar):
        return f"&(const real){{{names.number(one.node)}}}"
    offset = f" + {one.position.offset}" if one.position.offset else ""
    return f"({names.base(one.array)}){offset}"


MATRICES = r"""
/* Operations on matrices. An operand comes with the distances between its rows and its columns;
   results are in C order, so that LAPACK, which orders by columns, sees their transposes. `blas`
   holds gemm, gemv, a number of threads, trsm, potrf, potri, getrf and slo_alone. */
typedef void trsm_call(char *, char *, char *, char *, int *, int *, real *, const real *, int *,
                       real *, int *);
typedef void factor_call(char *, int *, real *, int *, int *);
typedef void getrf_call(int *, int *, real *, int *, int *, int *);
#define SLO_SMALL 12
static void slo_gather_matrix(int n, int m, const real *a, long rows, long columns, real *c) {
    for (long i = 0; i < n; i++)
        for (long j = 0; j < m; j++) c[i * m + j] = a[i * rows + j * columns];
}
/* X' = X' T^-1 for X of n rows and m columns, and the transpose or inverse that LAPACK names. */
static void slo_trsm(void *const *blas, char upper, char turned, char unit, int n, int m,
                     const real *t, int ld, real *x) {
    char right = 'R';
    real one = 1;
    if (!n || !m) return;
    slo_begin(blas);
    ((trsm_call *)blas[3])(&right, &upper, &turned, &unit, &m, &n, &one, t, &ld, x, &m);
    slo_end(blas);
}
static void slo_triangular(void *const *blas, int lower, int unit, int n, int m, const real *a,
                           long rows, long columns, real *x) {
    const char diagonal = unit ? 'U' : 'N';
    if (n > SLO_SMALL && columns == 1) {
        slo_trsm(blas, lower ? 'U' : 'L', 'N', diagonal, n, m, a, rows, x);
        return;
    }
    if (n > SLO_SMALL && rows == 1) {
        slo_trsm(blas, lower ? 'L' : 'U', 'T', diagonal, n, m, a, columns, x);
        return;
    }
    for (long k = 0; k < n; k++) {
        const long i = lower ? k : n - 1 - k;
        const long from = lower ? 0 : i + 1, to = lower ? i : n;
        for (long j = from; j < to; j++) {
            const real factor = a[i * rows + j * columns];
            for (long l = 0; l < m; l++) x[i * m + l] -= factor * x[j * m + l];
        }
        const real pivot = unit ? 1 : a[i * rows + i * columns];
        for (long l = 0; l < m && !unit; l++) x[i * m + l] /= pivot;
    }
}
static void slo_matrix_solve_lower(void *const *blas, int n, int m, const real *a, long ar, long ac,
                                   const real *b, long br, long bc, real *x) {
    slo_gather_matrix(n, m, b, br, bc, x);
    slo_triangular(blas, 1, 0, n, m, a, ar, ac, x);
}
static void slo_matrix_solve_upper(void *const *blas, int n, int m, const real *a, long ar, long ac,
                                   const real *b, long br, long bc, real *x) {
    slo_gather_matrix(n, m, b, br, bc, x);
    slo_triangular(blas, 0, 0, n, m, a, ar, ac, x);
}
static void slo_matrix_cholesky(void *const *blas, int n, const real *a, long rows, long columns,
                                real *c) {
    int failed = 0;
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) c[i * n + j] = j <= i ? a[i * rows + j * columns] : 0;
    if (n > SLO_SMALL) {
        char upper = 'U';
        slo_begin(blas);
        ((factor_call *)blas[4])(&upper, &n, c, &n, &failed);
        slo_end(blas);
    } else {
        for (long i = 0; i < n && !failed; i++)
            for (long j = 0; j <= i; j++) {
                real t = c[i * n + j];
                for (long k = 0; k < j; k++) t -= c[i * n + k] * c[j * n + k];
                if (j < i) {
                    c[i * n + j] = t / c[j * n + j];
                } else {
                    failed = !(t > 0);
                    c[i * n + i] = __builtin_sqrt(t);
                }
            }
    }
    if (failed)
        for (long i = 0; i < (long)n * n; i++) c[i] = NAN;
}
/* What getrf computes of few rows: each pivot is the largest element that is left of its column. */
static void slo_small_lu(int n, real *c, int *places) {
    for (int k = 0; k < n; k++) {
        int p = k;
        for (int i = k + 1; i < n; i++)
            if (__builtin_fabs(c[k * n + i]) > __builtin_fabs(c[k * n + p])) p = i;
        places[k] = p + 1;
        for (int j = 0; j < n && p != k; j++) {
            const real t = c[j * n + k];
            c[j * n + k] = c[j * n + p], c[j * n + p] = t;
        }
        const real pivot = c[k * n + k];
        if (pivot == 0) continue;
        for (int i = k + 1; i < n; i++) c[k * n + i] /= pivot;
        for (int j = k + 1; j < n; j++)
            for (int i = k + 1; i < n; i++) c[j * n + i] -= c[k * n + i] * c[j * n + k];
    }
}
/* LU of A', column by column, then the row of each exchange. */
static void slo_matrix_lu(void *const *blas, int n, const real *a, long rows, long columns,
                          real *c) {
    int failed, places[n + 1];
    slo_gather_matrix(n, n, a, rows, columns, c);
    if (n > SLO_SMALL) {
        slo_begin(blas);
        ((getrf_call *)blas[6])(&n, &n, c, &n, places, &failed);
        slo_end(blas);
    } else {
        slo_small_lu(n, c, places);
    }
    for (long i = 0; i < n; i++) c[(long)n * n + i] = places[i] - 1;
}
static void slo_exchange(int m, real *x, long i, long j) {
    if (i != j)
        for (long l = 0; l < m; l++) {
            const real t = x[i * m + l];
            x[i * m + l] = x[j * m + l], x[j * m + l] = t;
        }
}
static void slo_solve_lu(void *const *blas, int turned, int n, int m, const real *f, real *x) {
    const real *places = f + (long)n * n;
    if (turned) {
        for (long i = 0; i < n; i++) slo_exchange(m, x, i, (long)places[i]);
        slo_triangular(blas, 1, 1, n, m, f, 1, n, x);
        slo_triangular(blas, 0, 0, n, m, f, 1, n, x);
    } else {
        slo_triangular(blas, 1, 0, n, m, f, n, 1, x);
        slo_triangular(blas, 0, 1, n, m, f, n, 1, x);
        for (long i = n; i-- > 0;) slo_exchange(m, x, i, (long)places[i]);
    }
}
static void slo_matrix_solve_lu(void *const *blas, int n, int m, const real *f, long fr, long fc,
                                const real *b, long br, long bc, real *x) {
    slo_gather_matrix(n, m, b, br, bc, x);
    slo_solve_lu(blas, 0, n, m, f, x);
}
static void slo_matrix_solve_lu_transposed(void *const *blas, int n, int m, const real *f, long fr,
                                           long fc, const real *b, long br, long bc, real *x) {
    slo_gather_matrix(n, m, b, br, bc, x);
    slo_solve_lu(blas, 1, n, m, f, x);
}
static void slo_identity(int n, real *c) {
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) c[i * n + j] = i == j;
}
static void slo_matrix_inverse_lu(void *const *blas, int n, const real *f, long fr, long fc,
                                  real *c) {
    slo_identity(n, c);
    slo_solve_lu(blas, 0, n, n, f, c);
}
static double slo_matrix_det_lu(void *const *blas, int n, const real *f, long fr, long fc) {
    double product = 1;
    for (long i = 0; i < n; i++)
        product *= (long)f[(long)n * n + i] == i ? f[i * n + i] : -f[i * n + i];
    return product;
}
static double slo_matrix_logdet_lu(void *const *blas, int n, const real *f, long fr, long fc) {
    double total = 0, sign = 1;
    for (long i = 0; i < n; i++) {
        const double pivot = f[i * n + i];
        sign = ((long)f[(long)n * n + i] == i) == (pivot > 0) ? sign : -sign;
        total += __builtin_log(__builtin_fabs(pivot));
    }
    return sign < 0 && total == total && total > -INFINITY ? NAN : total;
}
/* A^-1 B for a symmetric A that is not positive definite, B in x. */
static void slo_indefinite(void *const *blas, int n, int m, const real *a, long rows, long columns,
                           real *x) {
    real *f = __builtin_malloc(((long)n + 1) * n * sizeof(real));
    if (!f) __builtin_trap();
    slo_matrix_lu(blas, n, a, rows, columns, f);
    slo_solve_lu(blas, 0, n, m, f, x);
    __builtin_free(f);
}
static void slo_matrix_solve_cholesky(void *const *blas, int n, int m, const real *t, long tr,
                                      long tc, const real *a, long ar, long ac, const real *b,
                                      long br, long bc, real *x) {
    slo_gather_matrix(n, m, b, br, bc, x);
    if (n && t[0] != t[0]) {
        slo_indefinite(blas, n, m, a, ar, ac, x);
        return;
    }
    slo_triangular(blas, 1, 0, n, m, t, tr, tc, x);
    slo_triangular(blas, 0, 0, n, m, t, tc, tr, x);
}
static void slo_inverse(void *const *blas, int n, const real *t, const real *a, long ar, long ac,
                        real *c) {
    char upper = 'U';
    int failed;
    if (n && t[0] != t[0]) {
        if (a) {
            slo_identity(n, c);
            slo_indefinite(blas, n, n, a, ar, ac, c);
        } else {
            for (long i = 0; i < (long)n * n; i++) c[i] = NAN;
        }
        return;
    }
    for (long i = 0; i < (long)n * n; i++) c[i] = t[i];
    slo_begin(blas);
    if (n) ((factor_call *)blas[5])(&upper, &n, c, &n, &failed);
    slo_end(blas);
    for (long i = 0; i < n; i++)
        for (long j = 0; j < i; j++) c[j * n + i] = c[i * n + j];
}
static void slo_matrix_inverse_cholesky(void *const *blas, int n, const real *t, long tr, long tc,
                                        real *c) {
    slo_inverse(blas, n, t, 0, 0, 0, c);
}
static void slo_matrix_inverse_symmetric_cholesky(void *const *blas, int n, const real *t, long tr,
                                                  long tc, const real *a, long ar, long ac,
                                                  real *c) {
    slo_inverse(blas, n, t, a, ar, ac, c);
}
"""
"""Definitions for texts with operations on matrices."""
