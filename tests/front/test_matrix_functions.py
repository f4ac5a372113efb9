"""Functions of matrices in models: which factorisation a form leads to, and values by NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import slomodel
from slomodel.ir.expr import MatrixOperation
from slomodel.ir.walk import postorder
from tests.front.elaborated import problem_of

DECLARED = """dim n = 3, p = 2
data y[n], S[n, n] symmetric, X[n, p], g[n] in n
var A[n, n], B[n, p], w[n]
var L[n, n] in cholesky_factor, R[n, n] in correlation, s > 0
"""

BOTH = ["solve_lower", "solve_upper"]
# model, the operations on matrices that it needs
OPERATIONS = [
    ("logdet(A)", ["logdet"]),
    ("logdet(A @ A')", ["logdet_posdef"]),
    ("logdet(B @ B' + s * eye(n))", ["logdet_posdef"]),
    ("logdet(A' @ S @ A)", ["logdet_posdef"]),
    ("logdet(diag(w) @ R @ diag(w))", ["logdet_posdef"]),
    ("logdet(outer(w, w) .* R)", ["logdet_posdef"]),
    ("logdet(S + diag(w))", ["logdet_posdef"]),
    ("logdet(A + S)", ["logdet"]),
    ("sum(cholesky(A))", ["cholesky"]),
    ("logdet(L) + logdet(L @ L') + det(L) + det(tril(A))", []),
    (
        "sum(solve(L, y)) + sum(solve(L', y)) + sum(cholesky(L @ L'))",
        BOTH,
    ),
    (
        "sum(solve(tril(A), y)) + sum(solve(triu(A, k=1) + eye(n), y))",
        BOTH,
    ),
    ("sum(solve(diag(w) @ L @ tril(A), y))", ["solve_lower"]),
    ("sum(solve(L @ L', y))", BOTH),
    ("sum(solve(triu(A, k=-1), y))", ["solve"]),
    ("sum(solve(S, y)) + sum(inv(S))", ["solve_symmetric", "inverse_symmetric"]),
    ("sum(inv(A))", ["inverse"]),
    ("sum(inv(L))", ["solve_lower"]),
    ("det(A)", ["det"]),
]


@pytest.mark.parametrize(("objective", "expected"), OPERATIONS)
def test_the_form_of_a_matrix_decides_how_it_is_factored(
    objective: str, expected: list[str]
) -> None:
    problem = problem_of(f"{DECLARED}minimize {objective}")
    nodes = postorder(problem.objective)
    assert sorted(n.function for n in nodes if isinstance(n, MatrixOperation)) == sorted(expected)


@pytest.mark.parametrize(
    "definition",
    [
        "let K[i in n, j in n] = s * exp(-sumsq(X[i, :] - X[j, :])) + where(i == j, 1, 0)",
        "let K[i in n, j in n] = s * exp(-abs(y[i] - y[j])) + if_same(i, j)",
        "let K[i in n, j in n] = s^abs(i - j)",
        "let K[i in n, j in n] = s * min(y[i], y[j]) + s",
        "let K[i in n, j in n] = s * cos(y[i] - y[j]) * (1 + y[i] * y[j])",
        "let K = (B @ B') .* (S + A @ A')",
        "let K = inv(S) + s * outer(w, w)",
        "let K = S[g, :][:, g]",
        "let K = s * S[:, g][g, :] + diag(exp(w))",
        "let K = S[1:n, :][:, 1:n]",
        "let K = S[::-1, :][:, ::-1][g, :][:, g]",
    ],
)
def test_matrices_that_exchanged_indices_leave_alone_are_symmetric(definition: str) -> None:
    same = "fn if_same(i, j) = where(i == j, 1, 0)\n" if "if_same" in definition else ""
    problem = problem_of(f"{DECLARED}{same}{definition}\nminimize logdet(K)")
    nodes = postorder(problem.objective)
    assert "logdet_posdef" in [n.function for n in nodes if isinstance(n, MatrixOperation)]


def test_values_are_those_of_numpy() -> None:
    rng = np.random.default_rng(0)
    A, B, b = rng.normal(size=(3, 3)), rng.normal(size=(2, 2)), rng.normal(size=3)
    P = A @ A.T + np.eye(3)
    expected = {
        "sumsq(solve(A, b) + c)": np.sum(np.linalg.solve(A, b) ** 2),
        "sumsq(solve(A, P) + c)": np.sum(np.linalg.solve(A, P) ** 2),
        "logdet(P) + c": np.linalg.slogdet(P)[1],
        "det(A) + c": np.linalg.det(A),
        "sum(inv(A) .* P) + c": np.sum(np.linalg.inv(A) * P),
        "sum(cholesky(P) .* A) + c": np.sum(np.linalg.cholesky(P) * A),
        "quad(A, b) + c": b @ A @ b,
        "sum(tril(A, k=1) .* P) + c": np.sum(np.tril(A, 1) * P),
        "sum(triu(A, k=-1) .* P) + c": np.sum(np.triu(A, -1) * P),
        "sum(eye(3, k=1) .* A) + c": np.sum(np.eye(3, k=1) * A),
        "sumsq(kron(B, A) + c)": np.sum(np.kron(B, A) ** 2),
        "kron(B, A)[4, 2] + c": np.kron(B, A)[4, 2],
        'sumsq(conv(b, B[0, :], "full") + c)': np.sum(np.convolve(b, B[0]) ** 2),
        'sumsq(conv(b, B[0, :], "valid") + c)': np.sum(np.convolve(b, B[0], "valid") ** 2),
        'sumsq(conv(b, B[0, :], "same") + c)': np.sum(np.convolve(b, B[0], "same") ** 2),
        'sum(conv(A[i, :], P[i, :], "full")[j] * j for i in 3, j in 5) + c': sum(
            np.convolve(A[i], P[i]) @ np.arange(5.0) for i in range(3)
        ),
        "sumsq(diff(b) + c)": np.sum(np.diff(b) ** 2),
        "sumsq(diff(A, axis=0) + c)": np.sum(np.diff(A, axis=0) ** 2),
        "sum(solve(A, P[i, :])[j] * A[i, j] for i in 3, j in 3) + c": np.sum(
            np.linalg.solve(A, P.T).T * A
        ),
    }
    data = "data A[3, 3], B[2, 2], b[3], P[3, 3] var c init 0 minimize "
    for text, value in expected.items():
        with pytest.warns(slomodel.ModelWarning, match="does not occur"):
            model = slomodel.compile(data + text, data={"A": A, "B": B, "b": b, "P": P})
        assert model.value([0.0]) == pytest.approx(value, rel=1e-12), text


def test_convolutions_have_derivatives_and_messages() -> None:
    rng = np.random.default_rng(2)
    for mode in ("full", "valid", "same"):
        size = "3" if mode == "same" else "m"
        text = f'dim n, m data y[n] var k[{size}] init 1 minimize sumsq(conv(y, k, "{mode}"))'
        data, x = {"y": rng.normal(size=7)}, rng.normal(size=3)
        dims = {} if mode == "same" else {"m": 3}
        for backend in ("numpy", "c"):
            own = text.replace(", m data", " data") if mode == "same" else text
            model = slomodel.compile(own, data=data, dims=dims, backend=backend)
            assert model.value(x) == pytest.approx(np.sum(np.convolve(data["y"], x, mode) ** 2))
            slopes = [(model.value(x + h) - model.value(x - h)) / 2e-6 for h in 1e-6 * np.eye(3)]
            np.testing.assert_allclose(model.gradient(x), slopes, rtol=1e-6, atol=1e-6)
    for call, words in (
        ('conv(x, x, "all")', "not a mode"),
        ("conv(x, x, x)", "last argument"),
        ('conv(x, x, "same")', "number of elements"),
    ):
        with pytest.raises(slomodel.SlomodelError, match=words):
            slomodel.compile(f"dim n var x[n] minimize sum({call})")
    text = 'dim n, m data y[n] var k[m] minimize sumsq(conv(y, k, "valid"))'
    with pytest.raises(slomodel.SlomodelError, match="longer than x"):
        slomodel.compile(text, data={"y": np.ones(2)}, dims={"m": 3})


def test_a_matrix_is_factored_once_for_all_right_sides() -> None:
    text = "dim n, m data A[n, n], B[m, n] var x[n] init 1 minimize "
    text += "sum(sumsq(solve(A + diag(x), B[i, :])) for i in m)"
    nodes = postorder(problem_of(text).objective)
    (found,) = (node for node in nodes if isinstance(node, MatrixOperation))
    assert [str(dim) for dim in found.shape] == ["n", "m"]


def test_an_indefinite_symmetric_system_is_solved() -> None:
    text = "dim n data S[n, n] symmetric, y[n] var x[n] init 1 minimize sum(solve(S, x .* y))"
    S, y = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([2.0, 3.0])
    for backend in ("numpy", "c"):
        model = slomodel.compile(text, data={"S": S, "y": y}, backend=backend)
        assert model.value([1.0, 1.0]) == pytest.approx(5.0)
        np.testing.assert_allclose(model.gradient([1.0, 1.0]), y)


KALMAN = """dim T, d
data Y[T, d], H[d, d]
var A[d, d] init eye
var q > 0, r > 0 init 1
let P[t in T] = A @ (P[t-1, :, :] - P[t-1, :, :] @ H'
      @ solve(H @ P[t-1, :, :] @ H' + r * eye(d), H @ P[t-1, :, :])) @ A' + q * eye(d)  first eye(d)
and m[t in T] = A @ (m[t-1, :] + P[t-1, :, :] @ H'
      @ solve(H @ P[t-1, :, :] @ H' + r * eye(d), Y[t-1, :] - H @ m[t-1, :]))  first zeros(d)
let e[t in T, i in d] = Y[t, i] - dot(H[i, :], m[t, :])
let V[t in T, i in d, j in d] = sum(H[i, k] * P[t, k, l] * H[j, l] for k in d, l in d)
      + where(i == j, r, 0)
minimize -sum(multi_normal_lpdf(e[t, :], 0, V[t, :, :]) for t in T)
"""


def by_loops(Y: np.ndarray, H: np.ndarray, A: np.ndarray, q: float, r: float) -> float:
    """The Kalman filter's negative log likelihood."""
    size, total = len(H), 0.0
    m, P = np.zeros(size), np.eye(size)
    for y in Y:
        V = H @ P @ H.T + r * np.eye(size)
        total -= stats.multivariate_normal(H @ m, V).logpdf(y)
        gain = P @ H.T @ np.linalg.inv(V)
        m, P = A @ (m + gain @ (y - H @ m)), A @ (P - gain @ H @ P) @ A.T + q * np.eye(size)
    return total


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_a_kalman_filter_of_matrices(backend: str) -> None:
    rng = np.random.default_rng(1)
    Y, H = rng.normal(size=(5, 2)), rng.normal(size=(2, 2))
    model = slomodel.compile(KALMAN, data={"Y": Y, "H": H}, backend=backend)
    x = np.concatenate([np.eye(2).ravel() + 0.1 * rng.normal(size=4), [0.7, 1.3]])

    def value(x: np.ndarray) -> float:
        return by_loops(Y, H, x[:4].reshape(2, 2), *x[4:])

    assert model.value(x) == pytest.approx(value(x), rel=1e-12)
    slopes = [(value(x + h) - value(x - h)) / 2e-6 for h in 1e-6 * np.eye(6)]
    np.testing.assert_allclose(model.gradient(x), slopes, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_small_determinants_have_derivatives_at_singular_matrices(n: int) -> None:
    model = slomodel.compile("dim n\nvar A[n, n]\nminimize det(A)", dims={"n": n}, backend="c")
    rng = np.random.default_rng(n)
    A, V = rng.normal(size=(2, n, n))
    A[-1] = A[0]
    at, v = A.ravel(), V.ravel()
    assert model.value(at) == pytest.approx(0.0, abs=1e-14)

    def cofactors(t: float) -> np.ndarray:
        B = A + t * V
        return np.linalg.det(B) * np.linalg.inv(B).T.ravel()

    h = 1e-3
    np.testing.assert_allclose(model.gradient(at), (cofactors(h) + cofactors(-h)) / 2, atol=1e-4)
    slopes = (cofactors(h) - cofactors(-h)) / (2 * h)
    np.testing.assert_allclose(model.hvp(at, v), slopes, atol=1e-4)
