"""Sums over elements of many variables: exact constants, dense Hessians, rows in their span."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from bounds.fuzz import cases, part_of
from bounds.settings import claimed, setting
from bounds.test_sound import alone
from random_graphs import throw

from slomodel.bounds.arithmetic.interval import point
from slomodel.bounds.norms.fourth_powers import fourth_powers
from slomodel.bounds.norms.loewner import Rows
from slomodel.bounds.ranges.elements.spanned_rows import in_span
from slomodel.bounds.ranges.elements.sparse_rows import largest_eigenvalue_of_sizes, sparse_rows
from slomodel.bounds.rules import linear_predictors
from slomodel.reference import evaluate_all

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")
N = 500


def orthogonal(count: int, rng: np.random.Generator) -> np.ndarray:
    """Orthogonal rows (count, N) of lengths from 1 on."""
    Q, _ = np.linalg.qr(rng.standard_normal((N, count)))
    return Q.T * np.linspace(1.0, 3.0, count)[:, np.newaxis]


def log_second(t: np.ndarray) -> np.ndarray:
    return 2.0 * (1.0 - t**2) / (1.0 + t**2) ** 2


def log_third(t: np.ndarray) -> np.ndarray:
    return 4.0 * t * (t**2 - 3.0) / (1.0 + t**2) ** 3


def softplus_second(t: np.ndarray) -> np.ndarray:
    return 0.25 / np.cosh(t / 2.0) ** 2


def softplus_third(t: np.ndarray) -> np.ndarray:
    return -0.25 * np.tanh(t / 2.0) / np.cosh(t / 2.0) ** 2


Derivative = Callable[[np.ndarray], np.ndarray]
LOSSES: dict[str, tuple[str, Derivative, Derivative]] = {
    "robust": ("sum(log(1 + (A @ x - y).^2))", log_second, log_third),
    "logistic": ("sum(softplus(A @ x - y))", softplus_second, softplus_third),
}


@pytest.mark.parametrize("radius", [0.0, 1e-3, 0.1, 1.0, 20.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_orthogonal_rows_have_known_constants(loss: str, radius: float) -> None:
    """Elements do not touch each other: of each a ball sees all of u_i ± r‖a_i‖."""
    objective, second, third = LOSSES[loss]
    rng = np.random.default_rng(0)
    A, y, centre = orthogonal(6, rng), rng.standard_normal(6), rng.standard_normal(N)
    asked = setting(f"data A[6,{N}], y[6] var x[{N}] minimize {objective}", list(centre), A=A, y=y)
    found = claimed(linear_predictors.linear_predictors, asked, radius)
    assert found is not None
    lengths = np.linalg.norm(A, axis=1)
    t = (A @ centre - y) + radius * lengths * np.linspace(-1.0, 1.0, 200_001)[:, np.newaxis]
    L1 = float(np.max(np.abs(second(t)) * lengths**2))
    L2 = float(np.max(np.abs(third(t)) * lengths**3))
    assert L1 * (1.0 - 1e-12) <= found.L1 <= L1 * 1.05
    # Of pieces of a long range there are no more than some thousands.
    assert L2 * (1.0 - 1e-12) <= found.L2 <= L2 * (1.2 if radius <= 1.0 else 1.3)


SPARSE = {
    "denoising": "sum(log(1 + (x[i] - y[i])^2) for i in n) "
    "+ sum(sqrt(1 + (x[i+1] - x[i])^2) for i in range(n - 1))",
    "chain": "sum(100 * (x[i+1] - x[i]^2)^2 + (1 - x[i])^2 for i in range(n - 1)) + 0 * sum(y)",
    "few and sparse": "log(1 + sum(y * x)^2) + sum(cosh(x / 4))",
    "pairs of variables": "sum(sin(x[i] * y[i] - x[i+2] / 2) for i in range(n - 2))",
    "not convex": "sum(-cos(3 * x[i] + x[i+1]) for i in range(n - 1)) + sum(y)",
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", SPARSE)
def test_no_dense_hessian_in_the_ball_is_above(name: str) -> None:
    """And at the centre, where entries are exact, little is lost to their signs."""
    rng = np.random.default_rng(1)
    y, centre = rng.standard_normal(N), 0.3 * rng.standard_normal(N)
    text = f"dim n data y[n] var x[n] minimize {SPARSE[name]}"
    asked = setting(text, list(centre), y=y)
    model_hessian = hessian_of(text, y)
    for radius in (0.0, 0.5, 3.0):
        found = claimed(linear_predictors.linear_predictors, asked, radius)
        assert found is not None
        for _ in range(3):
            d = rng.standard_normal(N) * (rng.random(N) < 4.0 / N)
            H = model_hessian(centre + radius * d / max(float(np.linalg.norm(d)), 1e-9))
            assert np.linalg.norm(H, 2) <= found.L1 * (1.0 + 1e-9)
        if radius == 0.0:
            assert 1.3 * np.linalg.norm(model_hessian(centre), 2) >= found.L1
        else:
            e = rng.standard_normal(N)
            e *= 1e-4 / np.linalg.norm(e)
            change = model_hessian(centre + e) - model_hessian(centre - e)
            assert np.linalg.norm(change, 2) / 2e-4 <= found.L2 * (1.0 + 1e-6)


def hessian_of(text: str, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The dense Hessian (N, N), banded or of rank one, from products with unit vectors."""
    import slomodel

    model = slomodel.compile(text, data={"y": y})

    def at(x: np.ndarray) -> np.ndarray:
        return np.stack([model.hvp(x, e) for e in np.eye(N)])

    return at


AFFINE = [
    ("x[i+1] - x[i]", "for i in range(n - 1)"),
    ("2 * x[i] / (1 + y[i]^2) - x[n-1-i]", "for i in n"),
    ("x[i] - x[i] * 3", "for i in n"),
    ("where(y[i] > 0, x[i], -4 * x[0])", "for i in n"),
    ("x[i] * y[i] + x[0]", "for i in range(2, n)"),
]


@pytest.mark.parametrize(("term", "over"), AFFINE)
def test_sparse_rows_have_the_sizes_of_the_entries(term: str, over: str) -> None:
    rng = np.random.default_rng(2)
    n = 7
    text = f"dim n data y[n] var x[n] minimize sum(cosh({term}) {over})"
    asked = setting(text, [0.0] * n, y=rng.standard_normal(n))
    (node,) = [
        u
        for one in linear_predictors.elements(asked.objective, asked.variables) or ()
        for u in linear_predictors.affine_of([one])
    ]
    found = sparse_rows(asked, [node])
    assert found is not None
    rows = found[node]
    sizes = np.zeros((len(rows.length), n))
    np.add.at(sizes, (np.arange(len(sizes))[:, np.newaxis], rows.column), rows.size)
    x = asked.variables[0]

    def at(point: np.ndarray) -> np.ndarray:
        return evaluate_all([node], {**asked.values, x: point}, asked.sizes)[node].ravel()

    exact = np.stack([at(e) - at(np.zeros(n)) for e in np.eye(n)], axis=1)
    assert (np.abs(exact) <= sizes * (1.0 + 1e-15)).all()
    assert (np.linalg.norm(exact, axis=1) <= rows.length * (1.0 + 1e-15)).all()
    if "3" not in term and "n-1-i" not in term and "x[0]" not in term:  # no column twice
        np.testing.assert_allclose(sizes, np.abs(exact), rtol=1e-14)
    d = rng.random(len(sizes))
    bound = largest_eigenvalue_of_sizes([(rows, d)], n)
    assert np.linalg.norm((np.abs(exact).T * d) @ np.abs(exact), 2) <= bound * (1.0 + 1e-14)


@pytest.mark.parametrize("strategy", ["few", "sparse"])
def test_no_claim_is_passed_on_random_graphs(strategy: str, monkeypatch) -> None:
    monkeypatch.setattr(linear_predictors, "MOST_VARIABLES", 0)
    if strategy == "sparse":
        monkeypatch.setattr(linear_predictors, "_FEW_ROWS", 0)
    asked = 0
    for number in range(40):
        kind = ("rows", "smooth", "any", "polynomial")[number % 4]
        one = part_of(throw(np.random.default_rng(number), kind, 2))
        if linear_predictors._large_sums(one) is None:
            continue
        ask = alone(linear_predictors.linear_predictors)
        for case in cases(one, np.random.default_rng(number), (0.0, 0.1, 3.0), ask):
            asked += case.bound["L1"] < np.inf
            for which in ("L1", "L2"):
                assert not case.violates(which), (number, case.radius, case.bound)
    assert asked > 10


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_rows_in_their_span_have_the_same_inner_products(scale: float) -> None:
    """With two equal rows, and one of zeros, too."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((6, 300))
    A[4], A[5] = A[3], 0.0
    A *= np.array([1.0, 1e-3, 1e3, 1.0, 1.0, 1.0])[:, np.newaxis] * scale
    found = in_span(Rows.of(point(A)))
    assert found is not None
    assert found.value.shape == (6, 6)
    assert (found.error <= 1e-5 * np.linalg.norm(A / scale, axis=1) * scale + 1e-300).all()
    B = found.value / scale
    np.testing.assert_allclose(B @ B.T, (A / scale) @ (A / scale).T, rtol=1e-9, atol=1e-9)
    assert in_span(Rows.of(point(np.full((2, 9), 1e308)))) is None


def test_the_rows_are_within_their_errors_of_the_given_ones() -> None:
    """The turn that fits best (Procrustes) leaves no more than the errors say."""
    rng = np.random.default_rng(4)
    A = rng.standard_normal((5, 40)) * np.array([1.0, 1e-4, 10.0, 1.0, 1.0])[:, np.newaxis]
    A[4] = A[0] + 1e-9 * A[3]  # nearly of lower rank
    found = in_span(Rows.of(point(A)))
    assert found is not None
    unit = np.linalg.norm(A, axis=1, keepdims=True)
    U, _, Vt = np.linalg.svd((found.value / unit).T @ (A / unit), full_matrices=False)
    off = np.linalg.norm(A - found.value @ (U @ Vt), axis=1)
    assert (off <= found.error).all()


def test_fourth_powers_of_few_rows_in_a_large_space_are_exact() -> None:
    """Of orthogonal rows Σ d_i (a_i·v)⁴ is at most the largest d_i ‖a_i‖⁴. Weights are rounded up
    to 20 binary digits.
    """
    A, d = np.diag([1.0, 2.0, 1.5]), np.array([3.0, 1.0, 2.0])
    assert 16.0 <= fourth_powers(Rows.of(point(A)), d) <= 16.0 * (1.0 + 2.0**-19)
