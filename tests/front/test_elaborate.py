"""Every rule of the language's expressions gives what NumPy gives."""

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

from slomodel.ir.expr import Einsum, Map
from slomodel.ir.walk import postorder
from tests.front.elaborated import DECLARED, SIZES, evaluated, gradients, problem_of, values_of

V = SimpleNamespace
# expression, the same in NumPy over v.A, v.x, …
CASES: list[tuple[str, Callable[[V], float]]] = [
    ("-x[0]^2 + 2^3^2", lambda v: -(v.x[0] ** 2) + 512),
    ("s - c - 1", lambda v: v.s - v.c - 1),
    ("c / s / 2", lambda v: v.c / v.s / 2),
    ("pi * c + e", lambda v: np.pi * v.c + np.e),
    ("n * c + (n - 1)", lambda v: 4 * v.c + 3),
    ("sum(z .* x)", lambda v: v.z @ v.x),
    ("sum(z * x)", lambda v: v.z @ v.x),
    ("sum(A * X)", lambda v: np.sum(v.A * v.X)),
    ("sum(B .* C) + sum(B ./ C) + c", lambda v: np.sum(v.B * v.C) + np.sum(v.B / v.C) + v.c),
    ("sum(B .^ 2 @ x)", lambda v: np.sum((v.B**2) @ v.x)),
    ("sum(2 ^ x) + sum(x .^ z)", lambda v: np.sum(2**v.x) + np.sum(v.x**v.z)),
    ("x' @ B @ x", lambda v: v.x @ v.B @ v.x),
    ("x @ B' @ x", lambda v: v.x @ v.B.T @ v.x),
    ("-2 * x' @ B @ x / s", lambda v: -2 * v.x @ v.B @ v.x / v.s),
    ("y' @ A @ z + z @ x", lambda v: v.y @ v.A @ v.z + v.z @ v.x),
    ("sum(A.T @ y)", lambda v: np.sum(v.A.T @ v.y)),
    ("sum(X + y[:, None])", lambda v: np.sum(v.X + v.y[:, None])),
    ("sumsq(X - z[None, :])", lambda v: np.sum((v.X - v.z) ** 2)),
    ("sumsq(y[:, None] + x[None, :])", lambda v: np.sum((v.y[:, None] + v.x) ** 2)),
    ("sum(y[:, None] @ x[None, :])", lambda v: np.sum(np.outer(v.y, v.x))),
    ("sum(x[1:] - x[:-1])", lambda v: v.x[-1] - v.x[0]),
    ("x[-1] + x[2] + X[0, -2]", lambda v: v.x[-1] + v.x[2] + v.X[0, -2]),
    ("sum(X[1, :] + X[0, :])", lambda v: np.sum(v.X[1] + v.X[0])),
    ("sumsq(X[1:, :3])", lambda v: np.sum(v.X[1:, :3] ** 2)),
    ("sum(T[:, 1, :]) * c", lambda v: np.sum(v.T[:, 1]) * v.c),
    ("sum(x[i+1] * x[i] for i in range(n-1))", lambda v: v.x[1:] @ v.x[:-1]),
    ("sum(x[n-1-i] * z[i] for i in n)", lambda v: v.x[::-1] @ v.z),
    ("sum(w[2*i] for i in range(2))", lambda v: v.w[0] + v.w[2]),
    ("sum(B[i,i] * x[i] for i in n)", lambda v: np.diag(v.B) @ v.x),
    ("sum(i * x[i] for i in n)", lambda v: np.arange(4) @ v.x),
    ("sum(i * x[i] for i in range(1, n))", lambda v: np.arange(4) @ v.x),
    ("sum(x[i+j] for i in range(n-1), j in range(2))", lambda v: np.sum(v.x[:-1] + v.x[1:])),
    ("sum(A[i,j] * x[j] for i in m, j in n)", lambda v: np.sum(v.A @ v.x)),
    (
        "sum(sum(A[i,j] * x[j] for j in n) * y[i] for i in m)",
        lambda v: v.y @ v.A @ v.x,
    ),
    (
        "sum(x[i] * x[j] for i in n, j in n if i < j and not (i == 1))",
        lambda v: sum(v.x[i] * v.x[j] for i in (0, 2, 3) for j in range(i + 1, 4)),
    ),
    ("mean(x[i]^2 for i in n if i > 0)", lambda v: np.mean(v.x[1:] ** 2)),
    ("mean(X) + mean(x[i] for i in n)", lambda v: np.mean(v.X) + np.mean(v.x)),
    ("sum(c for i in n, j in m)", lambda v: 12 * v.c),
    ("sum(norm2(X[i,:]) for i in m)", lambda v: np.sum(np.linalg.norm(v.X, axis=1))),
    ("sumsq(sum(X[i,:] for i in m))", lambda v: np.sum(np.sum(v.X, axis=0) ** 2)),
    ("prod(w[i] for i in range(3))", lambda v: np.prod(v.w)),
    ("prod(w) + max(w) + min(w)", lambda v: np.prod(v.w) + np.max(v.w) + np.min(v.w)),
    ("sum(x[i] for i in range(2, 2)) + c", lambda v: v.c),
    (
        "sumsq(sum(X, axis=0)) + sumsq(mean(X, axis=-1))",
        lambda v: np.sum(np.sum(v.X, 0) ** 2) + np.sum(np.mean(v.X, -1) ** 2),
    ),
    (
        "norm2(x) + fro(X) + norm1(X) + sumsq(c)",
        lambda v: np.linalg.norm(v.x) + np.linalg.norm(v.X) + np.sum(np.abs(v.X)) + v.c**2,
    ),
    ("dot(x, z) + trace(B) * c", lambda v: v.x @ v.z + np.trace(v.B) * v.c),
    ("sum(outer(y, x) .* A)", lambda v: np.sum(np.outer(v.y, v.x) * v.A)),
    ("sum(diag(x) @ B) + sum(diag(B) * x)", lambda v: np.sum(v.x @ v.B) + np.diag(v.B) @ v.x),
    ("sum((eye(n) + ones(n, n) - zeros(n, n)) @ x)", lambda v: 5 * np.sum(v.x)),
    ("sum(reshape(T, m, k, n)[:, 1, :]) * c", lambda v: np.sum(v.T.reshape(3, 2, 4)[:, 1]) * v.c),
    (
        "sum(concat(x, z)[3:6] * concat(u[1:], u))",
        lambda v: np.concatenate([v.x, v.z])[3:6] @ np.concatenate([v.u[1:], v.u]),
    ),
    (
        "sumsq(concat(X, A, axis=1) @ concat(x, z))",
        lambda v: np.sum((np.concatenate([v.X, v.A], 1) @ np.concatenate([v.x, v.z])) ** 2),
    ),
    (
        'sum(einsum("ijk,ij->k", T, X) .^ 2)',
        lambda v: np.sum(np.einsum("ijk,ij->k", v.T, v.X) ** 2),
    ),
    (
        "sum(where(x > z and x < 1, x^2, z))",
        lambda v: np.sum(np.where((v.x > v.z) & (v.x < 1), v.x**2, v.z)),
    ),
    (
        "sum(max(x, z) + min(x, 1) + clip(x, 0.5, 1))",
        lambda v: np.sum(np.maximum(v.x, v.z) + np.minimum(v.x, 1) + np.clip(v.x, 0.5, 1)),
    ),
    (
        "sum(huber(x) + huber(x, delta=0.5))",
        lambda v: np.sum(
            np.where(v.x <= 1, v.x**2 / 2, v.x - 0.5)
            + np.where(v.x <= 0.5, v.x**2 / 2, 0.5 * (v.x - 0.25))
        ),
    ),
    ("sum(pow(x, 3) + square(x) + sqrt(x))", lambda v: np.sum(v.x**3 + v.x**2 + np.sqrt(v.x))),
    (
        "sum(softplus(X) + sigmoid(A))",
        lambda v: np.sum(np.log1p(np.exp(v.X)) + 1 / (1 + np.exp(-v.A))),
    ),
]


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[case[0] for case in CASES])
def test_value_is_that_of_numpy(text: str, expected: Callable[[V], float]) -> None:
    problem = problem_of(f"{DECLARED}minimize {text}")
    values = values_of(problem, SIZES)
    assert evaluated(problem, values, SIZES) == pytest.approx(expected(V(**values)), rel=1e-13)


DEFINED: list[tuple[str, Callable[[V], float]]] = [
    (
        "let D[i in m, j in n] = A[i,j] * x[j] + i minimize sumsq(D)",
        lambda v: np.sum((v.A * v.x + np.arange(3)[:, None]) ** 2),
    ),
    ("let D[j in n, i in m] = X[i,j] minimize sum(D @ y)", lambda v: np.sum(v.X.T @ v.y)),
    ("let D[i in range(1, n)] = x[i] minimize sumsq(D)", lambda v: np.sum(v.x[1:] ** 2)),
    ("let D[i in n, j in m] = c minimize sumsq(D)", lambda v: 12 * v.c**2),
    ("let D[i in n, j in n] = x[i] * z[j] minimize trace(D)", lambda v: v.x @ v.z),
    (
        "fn f(t) = t * t / (1 + t^2) minimize sum(f(B) @ x)",
        lambda v: np.sum((v.B**2 / (1 + v.B**2)) @ v.x),
    ),
    (
        "fn f(t, q) = t - q * c minimize sumsq(f(X, A)) + f(c, 2)",
        lambda v: np.sum((v.X - v.A * v.c) ** 2) + v.c - 2 * v.c,
    ),
    (
        "fn p(t) = sum(w[i] * t^2 for i in range(3)) minimize sum(p(X))",
        lambda v: np.sum(v.w) * np.sum(v.X**2),
    ),
    (
        "fn f(t) = 3 minimize sum(f(x)) + sum(f(x[:, None]) + x[None, :])",
        lambda v: 12 + 48 + 4 * np.sum(v.x),
    ),
    ("fn f(t) = t + 1 fn g(t) = f(f(t)) * s minimize sum(g(x))", lambda v: np.sum(v.x + 2) * v.s),
    ("fn f(t) = t^2 minimize sum(f(X[i,:]) @ z * y[i] for i in m)", lambda v: v.y @ v.X**2 @ v.z),
    ("let b = y[:, None] minimize sumsq(X + b)", lambda v: np.sum((v.X + v.y[:, None]) ** 2)),
]


@pytest.mark.parametrize(("text", "expected"), DEFINED, ids=[case[0] for case in DEFINED])
def test_definitions_and_functions(text: str, expected: Callable[[V], float]) -> None:
    problem = problem_of(DECLARED + text)
    values = values_of(problem, SIZES)
    assert evaluated(problem, values, SIZES) == pytest.approx(expected(V(**values)), rel=1e-13)


def nodes_of(text: str) -> list[object]:
    return list(postorder(problem_of(DECLARED + text).objective))


def test_a_sum_of_products_is_one_contraction() -> None:
    text = "let D[a in n, b in n] = sum(X[i,a] * X[i,b] * y[i] * X[i,a] for i in m)"
    found = [n for n in nodes_of(f"{text} minimize D[0, 1]") if isinstance(n, Einsum)]
    assert [len(node.operands) for node in found] == [4]
    assert not any(isinstance(n, Map) for n in nodes_of(f"{text} minimize D[0, 1]"))


def test_the_same_contraction_however_it_is_spelled() -> None:
    spellings = ["sum(A @ x)", "sum(sum(A[i,j] * x[j] for j in n) for i in m)"]
    spellings.append('sum(einsum("ij,j->i", A, x))')
    assert len({problem_of(f"{DECLARED}minimize {s}").objective for s in spellings}) == 1


NORMS = [
    "norm2(x)^2",
    "sqrt(sumsq(x))^2",
    "sumsq(x)",
    "sum(x^2)",
    "square(norm2(x))",
    "x @ x",
    "dot(x, x)",
    "sum(x[i]^2 for i in n)",
    "fro(x) .^ 2",
    "pow(sqrt(x' @ x), 2)",
    "(sumsq(x)^0.5)^2",
]


@pytest.mark.parametrize("text", NORMS)
def test_squares_of_norms_are_one_thing(text: str) -> None:
    assert (
        problem_of(f"{DECLARED}minimize {text}").objective
        is problem_of(f"{DECLARED}minimize sumsq(x)").objective
    )


def test_product_with_zeros_has_the_right_gradient() -> None:
    problem = problem_of("var w[4] minimize prod(w)")
    values = {"w": np.array([2.0, 0.0, 3.0, 5.0])}
    assert gradients(problem, values, {})["w"].tolist() == [0.0, 30.0, 0.0, 0.0]


def test_hand_written_absolute_value_has_derivative_0_at_0() -> None:
    problem = problem_of("var w[2] minimize sum(sqrt(w^2)) + sqrt(sumsq(w))")
    assert gradients(problem, {"w": np.zeros(2)}, {})["w"].tolist() == [0.0, 0.0]


def test_data_called_like_a_function_or_a_sympy_name() -> None:
    names = "sum, N, S, E, I, Q, beta, gamma, lambda_, exp, symmetric, zeros"
    total = names.replace(",", " +")
    problem = problem_of(f"data {names} var x[3] minimize sum(x) * ({total})")
    values = {one.name: np.asarray(float(k)) for k, one in enumerate(problem.data)}
    assert evaluated(problem, values | {"x": np.ones(3)}, {}) == 3 * 66


def test_a_mask_of_numbers_is_not_a_choice() -> None:
    assert evaluated(problem_of("var x minimize masked(x, 2)"), {"x": np.asarray(3.0)}, {}) == 3.0
