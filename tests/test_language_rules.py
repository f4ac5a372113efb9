"""The language rule by rule: the value of each, or code and words of the error."""

import warnings

import numpy as np
import pytest

import slomodel
from slomodel.errors import ModelWarning

BACKENDS = ("numpy", "numexpr", pytest.param("c", marks=pytest.mark.slow))
A = np.array([[1.0, 2.0], [3.0, 4.0]])
B = np.array([[0.5, -1.0], [2.0, 1.5]])
X = np.array([0.25, -2.0])
Y = np.array([3.0, 7.0])
U = np.array([[1.0, -2.0, 0.5], [0.0, 3.0, -1.0]])
DECLARED = "dim n = 2, m = 3 data A[n, n], B[n, n], y[n], lam = 3 var x[n], U[n, m], s "
S = 1.75

# rule, expression, value with the numbers above
GIVES: list[tuple[str, str, float]] = [
    ("sums and products are read from the left", "10 - 3 - 2 + 12 / 3 / 2 * 2", 9.0),
    ("a sign binds less than a power", "-s^2 + 2^-1", -(S**2) + 0.5),
    ("powers are read from the right", "2^3^2 + 2**3**2", 1024.0),
    ("a power binds less than what follows a name", "sum(A'.^2) + x[1]^2", 30.0 + 4.0),
    ("@ is the product of matrices", "sum(A @ B)", float(np.sum(A @ B))),
    ("* scales an array by a number", "sum(s * A) + sum(A * s)", 2 * S * 10.0),
    ("* is elementwise where nothing else fits", "sum(x * y)", float(X @ Y)),
    ("* is elementwise between oblong matrices", "sum(U * U)", float(np.sum(U * U))),
    (".* ./ .^ are elementwise", "sum(A .* B) + sum(A ./ A) + sum(A .^ 2)",
     float(np.sum(A * B)) + 34.0),
    ("numbers go with any shape", "sum(A + 1) + sum(2 - x) + sum(x / 2)", 14.0 + 5.75 - 0.875),
    ("an axis made by None broadcasts", "sum(U * x[:, None]) + sum(x[None, :] .* A)",
     float(np.sum(U * X[:, None]) + np.sum(X * A))),
    ("@ of two vectors is their dot product", "x @ y - dot(x, y)", 0.0),
    ("a vector stands on either side of @", "sum(y @ A) + sum(A @ y)",
     float(np.sum(Y @ A) + np.sum(A @ Y))),
    ("' on a vector means nothing to the left of @", "x' @ A @ x - x @ A @ x", 0.0),
    ("' and .T transpose", "sum((A' - A.T) .^ 2) + sum(U' @ x)", float(np.sum(U.T @ X))),
    ("indices count from 0 and may be negative numbers", "x[0] + x[-1] + A[0, -1]",
     0.25 - 2.0 + 2.0),
    ("slices leave out their end", "sum(U[:, 1:]) + sum(U[0, :2]) + sum(x[:-1])", 0.5 - 1 + 0.25),
    ("an index may be moved", "sum((x[i+1] - x[i])^2 for i in range(n - 1))", 2.25**2),
    ("a range has one bound or two", "sum(i for i in range(3)) + sum(i for i in range(1, n + 1))",
     3.0 + 3.0),
    ("a sum has conditions", "sum(1 for i in n, j in m if i < j and not (j == 2))", 1.0),
    ("a condition may be of data", "sum(x[i] for i in n if y[i] > 5 or y[i] != y[i])", -2.0),
    ("prod, mean, max and min take indices", "prod(y[i] for i in n) + mean(y[i] for i in n) + "
     "max(y[i] for i in n) - min(y[i] for i in n)", 21.0 + 5.0 + 7.0 - 3.0),
    ("reductions take an axis", "sum(sum(U, axis=0)) + sum(mean(U, axis=1)) + max(sum(U, axis=-1))",
     1.5 + 0.5 + 2.0),
    ("an empty sum is 0 and an empty product 1",
     "sum(s for i in range(0)) + prod(s for i in range(2, 2))", 1.0),
    ("numbers are floats", "1/2 + 10^20 * 0 + 1_000 + .5 + 1e-3 + 2.", 1003.001),
    ("pi and e are numbers", "pi + e", np.pi + np.e),
    ("where is elementwise", "sum(where(x > 0, 1, y))", 1.0 + 7.0),
    ("functions are elementwise", "sum(exp(x) - expm1(x)) + sum(abs(x)) + sum(sign(y))", 6.25),
    ("huber has its delta", "huber(0.5) + huber(-3) + huber(3, 2) + huber(3, delta=0.5)",
     0.125 + 2.5 + 4.0 + 1.375),
    ("max and min of two are elementwise", "sum(max(x, 0)) + sum(min(y, 5))", 0.25 + 8.0),
    ("clip has two limits", "sum(clip(y, 4, 6)) + clip(s, lo=2, hi=3)", 10.0 + 2.0),
    ("pow is ^", "pow(s, 2) - s^2 + sum(pow(y, 2))", 58.0),
    ("sumsq is the sum of squares", "sumsq(A)", 30.0),
    ("fro is its root", "fro(A)", np.sqrt(30.0)),
    ("norm1 is the sum of magnitudes", "norm1(A) + norm1(x)", 12.25),
    ("norm2 is of vectors", "norm2(y)", np.sqrt(58.0)),
    ("logsumexp takes an axis", "logsumexp(y) + sum(logsumexp(A, axis=0))",
     np.logaddexp(3, 7) + np.logaddexp(1, 3) + np.logaddexp(2, 4)),
    ("softmax is along the last axis", "softmax(y)[1] + sum(softmax(A)[:, 0])",
     1 / (1 + np.exp(-4)) + 2 / (1 + np.exp(1))),
    ("log_softmax is its logarithm", "log_softmax(y)[1] + sum(log_softmax(A, axis=0)[0, :])",
     -np.log1p(np.exp(-4)) - 2 * np.log1p(np.exp(2))),
    ("outer, trace and diag", "sum(outer(x, y)) + trace(A) + sum(diag(diag(A)) @ x)",
     float(np.sum(np.outer(X, Y)) + 5.0 + 0.25 - 8.0)),
    ("eye, zeros and ones", "sum(eye(n) @ x) + sum(zeros(n, m) + U) + sum(ones(m, n) @ y)",
     float(np.sum(X) + np.sum(U) + 30.0)),
    ("reshape keeps the order of C", "sum(reshape(U, m, n)[1, :])", 0.5),
    ("concat joins any number of arrays", "sum(concat([1], x, y, [2, 3])) - sum(x) - sum(y)", 6.0),
    ("concat joins along an axis", "concat(x, y)[2] + sum(concat(A, B, axis=1)[0, :])", 3.0 + 2.5),
    ("einsum is NumPy's", 'einsum("ij,jk->", A, B) + sum(einsum("ij->ji", A)[0, :])',
     float(np.einsum("ij,jk->", A, B)) + 4.0),
    ("reductions stand anywhere", "-sum(x) + 2 * sum(x) + 1", -0.75),
    ("^ has one reading on oblong matrices and above numbers", "sum(U^2) + sum(2^A)",
     float(np.sum(U**2)) + 30.0),
]  # fmt: skip


def compiled(text: str, backend: str = "numpy", **given: object) -> slomodel.Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return slomodel.compile(text, backend=backend, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("expression", "value"), [row[1:] for row in GIVES],
                         ids=[row[0] for row in GIVES])  # fmt: skip
def test_expressions(expression: str, value: float, backend: str) -> None:
    data = {"A": A, "B": B, "y": Y}
    model = compiled(f"{DECLARED}minimize {expression}", backend, data=data)
    assert model.value({"x": X, "U": U, "s": S}) == pytest.approx(value, rel=1e-14, abs=1e-14)


# rule, statements after the declarations, code, words of the message
REFUSED: list[tuple[str, str, str, str]] = [
    ("* of square matrices over one dim", "minimize sum(A * B)", "E206", "A .* B"),
    ("^ of a square matrix", "minimize sum(A^2)", "E206", "A .^ 2` for elementwise powers"),
    ("/ by a square matrix", "minimize sum(1 / A)", "E206", "./"),
    ("@ with a number", "minimize sum(A @ s)", "E205", "write `s * A`"),
    ("x @ x'", "minimize sum(x @ x')", "E207", "`dot(x, x)` or `outer(x, x)`"),
    ("implicit broadcasting", "minimize sum(U + x)", "E204", "x[:, None]"),
    ("no implicit transpose", "minimize sum(U + U')", "E204", "[n, m] [m, n]"),
    ("a literal is no dim", "var z[2] minimize dot(x, z)", "E204", "[n] [2]"),
    ("== on a variable", "minimize where(s == 0, 1, s)", "E219", "isolated points"),
    ("an index outside its axis", "minimize x[n]", "E210", "the index reaches n"),
    ("an index past the end", "minimize sum(x[i+1] for i in n)", "E210", "range(n - 1)"),
    ("an index over another dim", "minimize sum(U[i, i] for i in n)", "E211", "`i` runs over `n`"),
    ("bounds by variables", "minimize sum(s for i in range(x[0]))", "E212", "bounds a range"),
    ("a mean of nothing", "minimize mean(x[i] for i in range(2, 2))", "E212", "of no elements"),
    ("2x", "minimize 2x[0]", "E108", "missing `*`?"),
    ("x²", "minimize sum(x²)", "E109", "x^2"),
    ("norm of a matrix", "minimize norm(A)", "E203", "`fro(A)`, `norm1(x)`, or `sumsq(x)`"),
    ("norm2 of a matrix", "minimize norm2(A)", "E220", "fro(A)"),
    ("an objective that is an array", "minimize x", "E213", "did you mean `sum(x)` or `sumsq(x)`?"),
    ("a reserved word", "let lambda = 1 minimize s", "E103", "lambda"),
    ("a constraint", "minimize s, x >= 0", "E112", "subject to"),
    ("a chain of comparisons", "minimize where(0 < s < 1, s, 1)", "E111", "and"),
    ("three colons in a slice", "minimize sum(x[0:2:1:1])", "E114", "two colons"),
    ("steps back", "minimize sum(x[::-2])", "E212", "from 1 on"),
    ("a remainder of a variable", "minimize sum(x % 2)", "E209", "whole numbers"),
    ("a sorted array", "minimize sum(sort(x))", "E250", "derivatives jump"),
    ("the determinant of a vector", "minimize det(x)", "E220", "a square matrix"),
    ("a system with other rows", "minimize sum(solve(eye(3), ones(2)))", "E220", "as many rows"),
    ("numbers alone count from the end", "minimize x[-n]", "E313", "only a literal"),
    ("a check of variables", "check s > 0 minimize s", "E219", "var x > 0"),
    ("two objectives", "minimize s maximize s", "E214", "one objective"),
    ("code in text", 'minimize __import__("os")', "E203", "__import__"),
    ("an unknown name", "minimize sum(ya)", "E201", "did you mean `y`?"),
    ("a condition of shapes", "minimize sum(where(x > 0, U, 1))", "E204", "[n, m]"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code", "words"), [row[1:] for row in REFUSED],
                         ids=[row[0] for row in REFUSED])  # fmt: skip
def test_refusals(text: str, code: str, words: str) -> None:
    with pytest.raises(slomodel.SlomodelError) as caught:
        compiled(DECLARED + text)
    assert code in {diagnostic.code for diagnostic in caught.value.diagnostics}
    assert words in str(caught.value)


def test_statements() -> None:
    """Newlines are white space, `;` is optional, `#` begins a comment, `model` comes first."""
    text = (
        "model several; dim n # sizes\ndata a[\n n ]; let r[i in n] = a[i] - x0_\n"
        "maximize gain: -sum(r) # end"
    ).replace("let r", "var x0_ let r")
    model = compiled(text, data={"a": [1.0, 2.0]})
    assert model.name == "several"
    assert model.value([5.0]) == 7.0
    assert "maximize gain" in model.explain()


def test_names_are_taken_as_they_are_written() -> None:
    """Before NFKC, which makes a ligature two letters; `e`, `pi` and `ones` as declared."""
    text = "data e = 2, pi = 3, \ufb01 = 5, fi = 7, ones[2], eye var x[2] init ones "
    model = compiled(
        f"{text} minimize (e + pi * \ufb01) * x[0] + fi * eye", data={"ones": [4, 4], "eye": 11}
    )
    assert model.x0().tolist() == [4.0, 4.0]
    assert model.value([1.0, 0.0]) == 17.0 + 77.0


def test_symmetric_data_may_differ_by_eight_roundings() -> None:
    """Of its largest element; steps of a quarter are exact here."""
    text = "dim n data S[n, n] symmetric var x[n] minimize x @ S @ x"
    eps = float(np.finfo(float).eps)
    compiled(text, data={"S": [[1.0, 0.25 + 8.0 * eps], [0.25, -0.5]]})
    with pytest.raises(slomodel.DomainError, match="E312"):
        compiled(text, data={"S": [[1.0, 0.25 + 8.25 * eps], [0.25, -0.5]]})


def test_what_init_and_defaults_bind() -> None:
    text = (
        "dim n = 2000, k, h = 16 data a[n], b = 3 "
        "var P[n] init 0, Q[n], R[n] init normal(5, 1), T[n], V[n] init a, W[n, n] init eye "
        "minimize sumsq(P) + sumsq(Q) + sumsq(R) + sumsq(T) + sumsq(V) + b * sumsq(W)"
    )
    model = compiled(text)
    assert model.missing == ("a",)
    assert "n = 2000, k = ?, h = 16" in model.explain()
    model = compiled(text, data={"a": np.arange(3.0)}, dims={"n": 3, "k": 1})
    starts = model.unpack(model.x0())
    assert starts["P"].tolist() == [0.0] * 3
    assert starts["T"].tolist() == starts["V"].tolist() == [0.0, 1.0, 2.0]
    np.testing.assert_array_equal(starts["W"], np.eye(3))
    assert np.all(np.abs([*starts["Q"], *starts["R"]] - np.float64(5)) < 5)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("expression", "given", "value"),
    [
        ("s * sum(a^-2)", np.array([1, 2, 3]), 1.0 + 0.25 + 1 / 9),
        ("s * sum(a^2)", np.array([50_000], np.int32), 2.5e9),
        ("s * sum(-a)", np.array([1, 255], np.uint8), -256.0),
        ("s * sum(a * 3)", np.array([True, False, True]), 6.0),
        ("s * sum(a * a)", np.array([65_000], np.uint16), 4.225e9),
        ("s * a[1]", np.arange(12.0)[::-4], 7.0),
        ("s * a[2]", np.float32([0.1, 0.2, 0.3]), float(np.float32(0.3))),
        ("s * a[0]", [2**60], 2.0**60),
    ],
)
def test_data_of_any_kind_is_what_float64_gives(
    expression: str, given: object, value: float, backend: str
) -> None:
    text = f"dim n data a[n] var s minimize {expression}"
    model = compiled(text, backend, data={"a": given})
    assert model.value([1.0]) == pytest.approx(value, rel=1e-15)


def test_data_is_copied_and_its_order_does_not_matter() -> None:
    ordered = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    ordered.flags.writeable = False
    text = "dim n, m data A[n, m] var x[m] minimize sum(A @ x)"
    model = compiled(text, data={"A": ordered})
    assert model.value([1.0, 0.0, 0.0]) == 3.0
    own = np.ones((2, 3))
    model = model.bind(A=own)
    own[:] = 9.0
    assert model.value([1.0, 1.0, 1.0]) == 6.0


def test_a_column_for_a_vector_is_refused() -> None:
    """What NumPy would spread to a matrix of all differences."""
    text = "dim n data y[n] var c minimize sumsq(y - c)"
    with pytest.raises(slomodel.DomainError, match=r"(?s)shape \(3, 1\).*pass y.ravel\(\)"):
        compiled(text, data={"y": [[1.0], [2.0], [3.0]]})
    assert compiled(text, data={"y": [1.0, 2.0, 3.0]}).value([0.0]) == 14.0


@pytest.mark.parametrize("backend", BACKENDS)
def test_many_arrays_and_terms_in_one_sum(backend: str) -> None:
    """Past what one kernel takes: 80 arrays, 500 terms with constants of their own, depth 300."""
    names = [f"a{k}" for k in range(80)]
    text = f"data {', '.join(f'{one}[3] = {k}' for k, one in enumerate(names))} var x[3] minimize "
    model = compiled(f"{text} sum(({' + '.join(names)}) .* x)", backend)
    assert model.value([1.0, 1.0, 1.0]) == 3 * 79 * 40
    terms = " + ".join(f"{k}.5 * sin(x + {k})" for k in range(500))
    model = compiled(f"var x minimize {terms}", backend)
    k = np.arange(500)
    assert model.value([0.3]) == pytest.approx(np.sum((k + 0.5) * np.sin(0.3 + k)), rel=1e-11)
    model = compiled(f"var x minimize {'tanh(' * 300}x{')' * 300}", backend)
    expected = 0.5
    for _ in range(300):
        expected = np.tanh(expected)
    assert model.value([0.5]) == pytest.approx(expected, rel=1e-13)
