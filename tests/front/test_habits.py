"""Habits of MATLAB, NumPy, Python, GENO, AMPL and CVX: messages say what to write instead."""

import numpy as np
import pytest

import slomodel
from slomodel.front.elaboration.foreign_names import FOREIGN_FUNCTIONS
from slomodel.front.elaboration.functions.array_functions import ARRAY_FUNCTIONS
from slomodel.functions import FUNCTIONS

DECLARED = """dim m, n
data A[m, n], B[n, n], y[m], s, W[m, n] mask
var x[n], X[m, n]
"""

# objective, code, words of the remedy
OBJECTIVES = [
    ("||A @ x - y||^2", "E102", "`norm2(x)`"),
    ("|s|", "E102", "`abs(x)`"),
    ("s | 2", "E102", "write `or`"),
    ("sum(B^-1 @ x)", "E206", "`inv(B)` for the inverse"),
    ("sum(A^T @ y)", "E201", "a transposed matrix is written `A'`"),
    ("sum(ln(x))", "E203", "`log(x)`"),
    ("sum(inv_logit(x))", "E203", "`sigmoid(x)`"),
    ("sum(masked(W, X))", "E208", "write `masked(X, W)`"),
    ("norm(X)", "E203", "`fro(A)`"),
    ("norm2", "E203", "write `norm2(…)`"),
    ("sum(x .* ones)", "E203", "write `ones(…)`"),
    ("sumsq(x) // comment", "E101", "begins with `#`"),
    ("sumsq(x) /* comment */", "E101", "begins with `#`"),
    ("sumsq(x) % comment", "E201", "begins with `#`"),
    ("sum(x[i] for i in 1:n)", "E101", "`range(a, b)`"),
    ("sum(x[i] for i in 0..n)", "E126", "`range(a, b)`"),
    ("sum(x[i] for i = 1)", "E122", "bound by `in`"),
    ("sum(x[i], i in n)", "E101", "`sum(x[i] for i in n)`"),
    ("sum{i in n} x[i]", "E102", "`sum(x[i] for i in n)`"),
    ("x[i]", "E201", "`sum(… for i in n)`"),
    ("x_i^2", "E201", "`x[i]`"),
    ("x[end]", "E201", "`x[-1]`"),
    ("x(1)^2", "E203", "`x[0]`"),
    ("sum(x(1:2))", "E101", "`x[1:3]`"),
    ("x[0:n:2:1]", "E114", "x[start:stop:step]"),
    ("sumsq(A.dot(x))", "E126", "`A @ x`"),
    ("sumsq(A*x - y)", "E204", "`A @ x`"),
    ("sumsq(transpose(A) @ y)", "E203", "`A'`"),
    ("sum_squares(x)", "E203", "`sumsq(x)`"),
    ("sum(logistic(x))", "E203", "`softplus(x)`"),
    ("s > 0 ? s : 0", "E117", "`a if condition else b`"),
    ("if s > 0 then s else 0", "E103", "`a if condition else b`"),
    ("sum(x) + s!", "E102", "factorial"),
    ("sumsq(x) = 3", "E101", "`sumsq(left - right)`"),
    ("{1, 2} @ x", "E102", ""),
    ("sumsq(x);\nsuch that x >= 0", "E112", "subject to g(x) <= h"),
    ("√2", "E109", "`sqrt(…)`"),
]

# model, code, words of the remedy
MODELS = [
    (
        "dim T data y[T] var c let p[t in range(1, T)] = c * y[t-1] "
        "minimize sum((y[t] - p[t])^2 for t in range(1, T))",
        "E210",
        "write `t - 1`",
    ),
    ("var x[3] init (1, 2) minimize sumsq(x)", "E101", "write `init x0`"),
    ("var x[3] init {1, 2} minimize sumsq(x)", "E102", "write `init x0`"),
    ("var x = 1 minimize x", "E122", "`init`"),
    ("var x in [0, 1) minimize x", "E128", "write `in (lo, hi)`"),
    ("var 0 <= x <= 1 minimize x", "E128", "var x in [0, 1]"),
    ("var x >= 0, <= 1 minimize x", "E128", "x in [0, 1]"),
    ("var x init 1 > 0 minimize x", "E128", "x > 0 init 1"),
    ("var x == 3 minimize x", "E128", "model.fix(x=…)"),
    ("var x positive minimize x", "E101", "a set is written `x > 0`"),
    ("var x in (0, 1)^3 minimize x", "E101", "x[3] in [0, 1]"),
    ("var x<lower=0> minimize x", "E128", "write `x > 0`"),
    ("var x in [0 1] minimize x", "E128", "in (0, 1)"),
    ("var x in (0; 1) minimize x", "E128", "in (0, 1)"),
    ("var x in (0, Inf) minimize x", "E224", "`inf`"),
    ("var x in (-oo, 1) minimize x", "E224", "`-inf`"),
    ("var x in (0, ∞) minimize x", "E109", "write `inf`"),
    ("var x in positive minimize x", "E224", "`> 0`"),
    ("var x in interval(0, 1) minimize x", "E224", "`in (lo, hi)`"),
    ("var S[3, 3] in cov_matrix minimize sumsq(S)", "E224", "cholesky_factor"),
    ("var u[3] in unit_vector minimize sumsq(u)", "E224", "in sphere"),
    ("var x in R minimize x", "E224", "a set is `> 0`"),
    ("var x(3) minimize sumsq(x)", "E101", "`x[3]`"),
    ("var x : 3 minimize sumsq(x)", "E101", "`x[3]`"),
    ("var x[3][4] minimize sumsq(x)", "E101", "`A[m, n]`"),
    ("dim n var x[n*n] minimize sumsq(x)", "E101", "declare others by `dim k = m*n`"),
    ("dim n var x[n n] minimize sumsq(x)", "E101", "separated by commas"),
    ("data A[2] = [1, 2] var x minimize x", "E216", "with data="),
    ("data y[3] from y.npy var x minimize x", "E101", 'from "y.npy"'),
    ("dim n := 3 var x minimize x", "E101", "with `=`"),
    ("dim n = 3, var x[n] minimize sumsq(x)", "E113", "remove it"),
    ("f(t) = t^2\nvar x minimize f(x)", "E104", "`fn f(…) = …`"),
    ("let f(t) = t^2 var x minimize f(x)", "E101", "`fn name(t) = …`"),
    ("import numpy as np\nvar x minimize x", "E103", "`slomodel functions`"),
    ("for i in n: x[i]", "E101", "`let y[i in n] = x[i]^2`"),
    ("int n = 3 var x minimize x", "E104", "`dim`"),
    ("model my model\nvar x minimize x", "E120", "one word"),
]


@pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")
@pytest.mark.parametrize(
    ("text", "code", "words"),
    [(f"{DECLARED}minimize {text}", code, words) for text, code, words in OBJECTIVES] + MODELS,
)
def test_habits(text: str, code: str, words: str) -> None:
    with pytest.raises(slomodel.SlomodelError) as caught:
        slomodel.compile(text)
    first = caught.value.diagnostics[0]
    assert (first.code, words in first.help) == (code, True), first.render()


def test_names_from_elsewhere_are_none_of_the_language() -> None:
    assert not FOREIGN_FUNCTIONS.keys() & {*FUNCTIONS, *ARRAY_FUNCTIONS}


# A habit of Python or NumPy that the language shares, and the same written out
SHARED = [
    ("sum(x if s > 0 else x^2)", "sum(where(s > 0, x, x^2))"),
    ("sum(x[i] if y[i] > 0.5 else 2 * x[i]^2 for i in n)", "sum(where(y > 0.5, x, 2 * x^2))"),
    ("sum(x[i] if y[i] else 7 for i in n if y[i] < 9)", "sum(where(y != 0, x, 7))"),
    ("2 * (x[0] if x[0] > 0 else -x[0]) + x[1]", "2 * where(x[0] > 0, x[0], -x[0]) + x[1]"),
    ("x[0] if s > 9 else x[1] if s > 0 and y[0] < 1 else x[0] * x[1]", "x[1]"),
    ("h(x[0], 2) + x[(0 if s > 9 else 1)] + x[0 if s > 9 else 1]", "h(x[0], 2) + 2 * x[1]"),
    ("sum([x[0] if s < 9 else 1, x[1]])", "x[0] + x[1]"),
    ("f(x[0], 2) + sum(f(x, 1))", "h(x[0], 2) + sum(h(x, 1))"),
    ("sum(r)", "sum(q)"),
    ("sumsq(A[0] - A[1]) * sum(X[1] * x)", "sumsq(A[0, :] - A[1, :]) * sum(X[1, :] * x)"),
    (
        "sum(norm2(X[i] - A[j]) for i in n, j in n)",
        "sum(norm2(X[i, :] - A[j, :]) for i in n, j in n)",
    ),
    ("sum(Y[1] @ x) + sum(Y[0][1] .* x)", "sum(Y[1, :, :] @ x) + sum(Y[0, 1, :] .* x)"),
    (
        "sum(X[-1]) + sum(X[0:1][0]) + sum(X[g[i]] @ x for i in n)",
        "sum(X[1]) + sum(X[0]) + (X[0] + X[1]) @ x",
    ),
    ("sum(e[2])", "sum(e[2, :])"),
]
TEXT = """dim n = 2
data A[n, n], Y[n, n, n], y[n], s = 1, g[n] in n
var x[n], X[n, n]
fn f(a, b) = a if a > b else b * a^2
fn h(a, b) = where(a > b, a, b * a^2)
let r[t in 4] = x[0] if t == 0 else x[1] * r[t-1] + t
let q[t in 4] = where(t == 0, x[0], x[1] * q[t-1] + t)
let e[t in 3] = x if t == 0 else tanh(X @ e[t-1])
minimize """


@pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")
@pytest.mark.parametrize(("text", "same"), SHARED)
def test_shared_habits(text: str, same: str) -> None:
    rng = np.random.default_rng(0)
    data = {"A": rng.random((2, 2)), "Y": rng.random((2, 2, 2)), "y": [0.0, 0.7], "g": [1, 0]}
    first, second = (slomodel.compile(TEXT + one, data=data) for one in (text, same))
    for x in rng.standard_normal((2, 6)):
        assert first.value(x) == pytest.approx(second.value(x), rel=1e-14)
        np.testing.assert_allclose(first.gradient(x), second.gradient(x), rtol=1e-13, atol=1e-14)


@pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")
def test_a_name_from_elsewhere_may_be_declared() -> None:
    model = slomodel.compile("data end = 2, i = 3 fn ln(t) = t * end var x minimize ln(x) + i")
    assert model.value([1.0]) == 5.0


@pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")
def test_a_mask_may_be_masked_by_data() -> None:
    text = "data W[2] mask = 1, V[2] mask = 1 var x[2] minimize sum(masked(W, V) .* x)"
    assert slomodel.compile(text).value([1.0, 2.0]) == 3.0
