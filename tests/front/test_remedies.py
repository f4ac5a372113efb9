"""Remedies for the commonest mistakes: they say what was meant, and following them works."""

import pytest

import slomodel

MATRIX_PRODUCTS = [
    ("dim N, d data A[N, d] var w[d]", "A*w", "A @ w"),
    ("dim n data A[n, n] var x[n]", "A*x", "A @ x"),
    ("dim h, N data H[N, h] var v[h]", "v*H", "H @ v"),
    ("dim h, N data H[h, N] var v[h]", "v*H", "v @ H"),
    ("data A[2, 3], B[3, 2] var s", "s * (A*B)", "A @ B"),
]


@pytest.mark.parametrize(("declared", "wrong", "right"), MATRIX_PRODUCTS)
def test_a_star_that_is_meant_as_a_matrix_product(declared: str, wrong: str, right: str) -> None:
    with pytest.raises(slomodel.ShapeError, match="E204") as caught:
        slomodel.compile(f"{declared} minimize sumsq({wrong})")
    assert caught.value.diagnostics[0].help == f"for the matrix product write `{right}`"
    slomodel.compile(f"{declared} minimize sumsq({right})" + (" + s^2" if "s *" in wrong else ""))


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("var x[3] minimize sum(exp x)", "write `exp(x)`"),
        ("var x[3] minimize x'x", "write `x' @ x` for the matrix product"),
        ("var x[3] minimize 2 + (x + 1)'x", "write `(x + 1)' @ x` for the matrix product"),
        (
            "data A[2, 3] var x[3] minimize sumsq(A x)",
            "write `A * x`, or `A @ x` for the matrix product",
        ),
        (
            "dim n var x[n, n] minimize sum(x[i, j]^2 for i, j in n)",
            "write `for i in n, j in n`",
        ),
        (
            "dim n var x[n] minimize sumsq(x) subject to x[i] <= 1 for i in n, b: x[0] == 0",
            "a constraint with `for` ends its statement: begin the next with `subject to`",
        ),
        (
            "dim n var x[n] minimize sumsq(x) subject to x[i] <= 1 for i in n, sum(x) >= 1",
            "a constraint with `for` ends its statement: begin the next with `subject to`",
        ),
        ("var x[2] minimize sumsq(x) subject to sum(x) = 1", "written with `==`"),
        ("var x[2] minimize sumsq(x) subject to: sum(x) >= 1", "without a colon"),
        ("var x[2] minimize sumsq(x) subject to\n x[0] >= 1\n x[1] >= 1", "with `,`"),
        ("dim n data y[n] > 0 var a minimize sum((y - a)^2)", "`check y > 0`"),
        ("dim n data g[n] int var a[3] minimize sum(a[g])", "`data g[n] in K`"),
        ("dim n data g[n] : int var a[3] minimize sum(a[g])", "`data g[n] in K`"),
        ("dim n data m[n] in {0, 1} var a minimize sum(m*a^2)", "as in `data m[n]`"),
        ("var a : real minimize a^2", "all numbers are real"),
        ("var a in {0, 1} minimize a^2", "`in [0, 1]`"),
        ("data { int n; } parameters { real mu; }", "without braces"),
        ("param n var x[n] minimize sumsq(x)", "by `data`, unknowns by `var`"),
        ("dim n, m var a let e[i, j] = a minimize sum(e)", "`e[i in I, j in J] = …`"),
        ("dim n var a let e[0] = a minimize sum(e)", "gives all elements at once"),
        (
            "dim K var B[K, 2], s[K] > 0 init 1, p[K] in open_simplex minimize sumsq(B)",
            "write `var B[K, 2]` and `var s[K] > 0` as two statements",
        ),
        ("dim K, T var x[T] let e[t in K..T] = x[t] minimize sumsq(e)", "`range(a, b)`"),
        (
            "dim T, n var x[n] let u[t in T, i in n] = u[t-1, i] + x[i] minimize sumsq(u)",
            "`… first u0[i]`",
        ),
        ("var x[2] // two\nminimize sumsq(x)", "a comment begins with `#`"),
        ("var P[2, 2] in psd() minimize sumsq(P)", "write `in psd`"),
        ("var a init 0,5 minimize a^2", "a decimal point is a dot, as in `0.5`"),
        (
            "dim n var x[n] minimize sum(i=1..n, x[i]^2)",
            "a range is written `range(a, b)`, and excludes its end",
        ),
        ("data A[2, 3], b[2] var x[3] minimize sumsq(A \\ b - x)", "minimise `sumsq(A @ x - b)`"),
        ("var w[3] minimize np.sum(w^2)", "without the name of a module: write `sum(…)`"),
        ("var w[3] minimize np.linalg.norm(w)", "write `norm(…)`"),
        ("var w minimize math.pi * w^2", "write `pi`"),
        ("var w minimise w^2", "did you mean `minimize`?"),
        ("var w let v = w^2 MAXIMIZE v", "did you mean `maximize`?"),
        ("var w[3, 2] minimize sum(sum(w, dim=1)^2)", "`sum(A, axis=0)`, from 0 on"),
        ("var w[6] minimize sumsq(reshape(w, (2, 3)))", "as in `reshape(x, m, n)`"),
        ("var w[6] minimize sumsq(w.reshape(2, 3))", "write `reshape(w, 2, 3)`"),
        ("var w[6] minimize (w^2 - 1).sum(axis=0)", "write `sum(w^2 - 1, axis=0)`"),
        ("var w[6] minimize max(0, 1 - w).sum()", "write `sum(max(0, 1 - w))`"),
        ("var w[6] minimize w.shape[0] * sumsq(w)", "the size of an axis is its dim"),
        ("var w[6] minimize w.t() @ w", "a transposed matrix is written `A'`"),
        ("var w[6] minimize sum([w[i]^2 for i in 6])", "leave out the brackets"),
        ("var w[6] minimize sum(i=1:6, w[i])", "an index is bound after the term"),
        ("dim m, n data A[m, n], y[m] var w[n] minimize w'*A'*y", "`w' @ A'`"),
        ("dim m, n data y[m] var w[n] minimize sumsq(w) / len(y)", "of `y` write `m`"),
        ("dim m, n data A[m, n + 1] var w minimize w^2 / numel(A)", "write `m * (n + 1)`"),
        ("dim m, n data A[m, n] var w minimize w^2 / size(A, 1)", "of `A` write `m` or `n`"),
        ("dim n var w[n] minimize sum(w[i] for i in range(len(w)))", "of `w` write `n`"),
        ("dim m, n var A[m, n] minimize sumsq(reshape(A, m*n))", "`dim k = m*n`"),
        ("dim m, n var A[m, n] minimize sumsq(reshape(A, -1))", "write every size"),
        ("var x[3] init normal minimize sumsq(x)", "write `normal(0, 1)`"),
        ("var x[3] init uniform minimize sumsq(x)", "write `uniform(0, 1)`"),
        ("dim n data y[n] var x[n] minimize sumsq((x - y) * (x - 1)[:, None])", "write `"),
    ],
)
def test_other_remedies(text: str, remedy: str) -> None:
    with pytest.raises(slomodel.SlomodelError) as caught:
        slomodel.compile(text)
    assert remedy in caught.value.diagnostics[0].help
