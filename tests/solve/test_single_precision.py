"""Objectives computed in float32: their resolution counts, and their minima are a success."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from solve.objectives import Vector

import slomodel
from slomodel.model.objective import CompiledObjective
from slomodel.solve import METHODS, Functions, Solution, solve
from slomodel.solve.directions.newton import dense
from slomodel.solve.directions.table import DIRECTIONS
from slomodel.solve.norms import EPS, norm
from slomodel.solve.objective import Evaluator
from slomodel.solve.plain_functions import CurvedFunctions
from slomodel.solve.run_options import RunOptions
from slomodel.solve.stagnation.curvature import least_eigenvalue, shown_above

MODELS = Path(__file__).parent.parent.parent / "models"
EPS32 = float(np.finfo(np.float32).eps)
_generator = np.random.default_rng(0)
A = _generator.normal(size=(40, 5))
Y = A @ _generator.normal(size=5) + 0.1 * _generator.normal(size=40)
LABELS = np.where(A @ _generator.normal(size=5) + 0.7 * _generator.normal(size=40) > 0.0, 1.0, -1.0)
M = _generator.normal(size=(6, 2)) @ _generator.normal(size=(2, 5))
M_NOISY = M + 0.1 * _generator.normal(size=M.shape)
T3 = np.einsum("ia,ib,ic->abc", *(_generator.normal(size=(2, k)) for k in (3, 4, 5)))
X = _generator.normal(size=(4, 20))
TIMES = np.linspace(0.0, 5.0, 30)
DECAY = 3.0 * np.exp(-0.5 * TIMES) + 0.05 * _generator.normal(size=30)
CODE = _generator.normal(size=4)

# Text or file, dims, data.
PROBLEMS: dict[str, tuple[str, dict[str, int], dict[str, object]]] = {
    "least squares": (
        "dim m, n data A[m, n], y[m] var x[n] minimize sumsq(A @ x - y)",
        {},
        {"A": A, "y": Y},
    ),
    "with a constant": (
        "dim m, n data A[m, n], y[m] var x[n] minimize sumsq(A @ x - y) + 1000",
        {},
        {"A": A, "y": Y},
    ),
    "logistic": (
        "dim m, n data A[m, n], y[m] var w[n] "
        "minimize mean(softplus(-y .* (A @ w))) + 0.01 * sumsq(w)",
        {},
        {"A": A, "y": LABELS},
    ),
    "factorisation": (
        "dim p, q, r = 2 data M[p, q] var U[p, r], V[q, r] init normal(0, 1) "
        "minimize sumsq(U @ V' - M)",
        {},
        {"M": M_NOISY},
    ),
    "decay": (
        "dim n data t[n], y[n] var a, k init 1 "
        "minimize sum((a * exp(-k * t[i]) - y[i])^2 for i in n)",
        {},
        {"t": TIMES, "y": DECAY},
    ),
    "rosenbrock": ("rosenbrock", {"n": 4}, {}),
    "robust_logistic": ("robust_logistic", {}, {"A": A, "y": LABELS}),
    "tukey_regression": ("tukey_regression", {}, {"A": A, "y": Y, "c": np.asarray(1.0)}),
    "phase_retrieval": ("phase_retrieval", {}, {"A": A[:, :4], "y": (A[:, :4] @ CODE) ** 2}),
    "cp_tensor": ("cp_tensor", {"m": 2}, {"T": T3}),
    "matrix_completion": ("matrix_completion", {"r": 2}, {"M": M, "Omega": np.abs(M) > 0.2}),
    "softplus_net": ("softplus_net", {"h": 2}, {"X": X, "y": np.sin(X[0]), "lam": 1e-3}),
    "softplus_toy": ("softplus_toy", {}, {"s": np.asarray(0.7), "y": np.asarray(0.4)}),
    "deep_linear": ("deep_linear", {"h1": 3, "h2": 2, "h3": 2}, {"X": X, "y": X[0] + X[1]}),
    "neural_net": ("neural_net", {"h1": 3, "h2": 3, "h3": 2}, {"X": X, "y": np.tanh(X[0])}),
    "linear_autoencoder": ("linear_autoencoder", {}, {"X": X}),
    "autoencoder": ("autoencoder", {}, {"X": X}),
}
LARGE = ("linear_autoencoder", "autoencoder")
# Not sums of squares.
KEPT_APART = ("robust_logistic", "tukey_regression")
STALLS = ("line_search_stalled", "not_descent")


@cache
def model(name: str, dtype: str) -> slomodel.Model:
    text, dims, data = PROBLEMS[name]
    source = text if " " in text else MODELS / f"{text}.slo"
    return slomodel.compile(source, data=data, dims=dims or None, dtype=dtype)  # type: ignore[arg-type]


def check(found: Solution, name: str) -> None:
    """A stall is none at what float64 calls a minimum to the accuracy of float32."""
    if found.status not in STALLS:
        return
    double = model(name, "float64")
    f, f0 = double.value(found.x), double.value(double.x0(1))
    with np.errstate(all="ignore"):
        lower = double.solve(x0=found.x, gtol=1e-10, max_iter=500).fun
    assert f - lower > 1e-4 * abs(f) + 1e-9 * abs(f0), found.message


DIRECTIONS_OF = [
    (name, direction)
    for name in PROBLEMS
    for direction in (("lbfgs", "newton-cg/lbfgs") if name in LARGE else DIRECTIONS)
]
SMALL = ("least squares", "with a constant", "logistic", "rosenbrock", "tukey_regression", "decay")


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("name", "direction"), DIRECTIONS_OF)
def test_minima_are_not_kinks_along_any_direction(name: str, direction: str) -> None:
    if DIRECTIONS[direction].squares and name in ("logistic", *KEPT_APART):
        return
    x0 = model(name, "float64").x0(1)
    found = model(name, "float32").solve(
        "norm-armijo",
        x0,
        direction=direction,
        max_iter=60 if name in (*LARGE, "neural_net") else 500,
    )
    check(found, name)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", sorted(set(METHODS) - {"bpg"}))
@pytest.mark.parametrize("name", SMALL)
def test_minima_are_not_kinks_for_any_method(name: str, method: str) -> None:
    given = {"lipschitz": "sampled"} if "lipschitz" in METHODS[method].options else {}
    x0 = model(name, "float64").x0(1)
    found = model(name, "float32").solve(method, x0, max_iter=500, max_nfev=5000, **given)
    check(found, name)


@pytest.mark.parametrize("name", ["least squares", "with a constant", "logistic", "decay"])
def test_auto_reaches_the_minimum_as_far_as_f_resolves(name: str) -> None:
    single, double = model(name, "float32"), model(name, "float64")
    found = single.solve(x0=double.x0(1))
    assert found.success, found.message
    least = double.solve(x0=double.x0(1), gtol=1e-10).fun
    assert double.value(found.x) - least <= 32.0 * EPS32 * abs(least)


def test_a_tolerance_below_the_rounding_of_the_gradient_ends_in_precision() -> None:
    found = model("logistic", "float32").solve(gtol=1e-12)
    assert found.status == "precision"
    told = re.search(r"rounding error of the objective about ([0-9.e+-]+\d)", found.message)
    assert told is not None
    assert float(told[1]) >= 0.99 * 32.0 * EPS32 * found.fun


def test_eps_is_that_of_the_kernels() -> None:
    for dtype, eps in (("float64", EPS), ("float32", EPS32)):
        compiled = model("least squares", dtype)
        known = compiled._compiled
        objective = CompiledObjective(
            compiled.n, compiled._function, known.derivatives, True, known.precision
        )
        assert Evaluator(objective, RunOptions()).eps == eps


def single_bowl(x: Vector) -> np.floating:
    """1000 + Σ(x − 1)² in float32."""
    r = x.astype(np.float32) - np.float32(1.0)
    return np.float32(1000.0) + r @ r


def single_slope(x: Vector) -> Vector:
    r: Vector = np.float32(2.0) * (x.astype(np.float32) - np.float32(1.0))
    return r


@pytest.mark.parametrize("method", ["auto", "norm-armijo", "std-armijo", "pgd", "adgd"])
def test_scipy_sees_the_precision_of_plain_functions(method: str) -> None:
    found = minimize(
        single_bowl,
        np.array([3.0, -2.0]),
        jac=single_slope,
        method=slomodel.scipy_method(method),
        tol=1e-12,
    )
    assert found.success, found.message
    # At a minimum f in float32 tells points apart that are √(32·eps) = 2e-3 from it, not nearer.
    assert_allclose(found.x, 1.0, atol=1e-2)


def test_plain_functions_show_their_eps() -> None:
    plain = Functions(single_bowl, single_slope, 2)
    assert plain.eps == EPS
    plain.value(np.zeros(2))
    assert plain.eps == EPS32
    gradient_only = Functions(lambda x: float(x @ x), single_slope, 2)
    gradient_only.value_and_gradient(np.zeros(2))
    assert gradient_only.eps == EPS32
    assert CurvedFunctions(plain, lambda x, v: 2.0 * v).eps == EPS32
    whole = Functions(lambda x: 3, lambda x: np.zeros(2, dtype=int), 2)
    whole.value_and_gradient(np.zeros(2))
    assert whole.eps == EPS


def test_differences_are_as_wide_as_float32_needs() -> None:
    """∇f in float32 has an error of 1e-7: a step of ∛eps of float64 would give noise alone."""
    stiffness = np.float32([1.0, 30.0, 900.0])
    plain = Functions(
        lambda x: np.float32(0.5) * stiffness @ x.astype(np.float32) ** 2,
        lambda x: stiffness * x.astype(np.float32),
        3,
    )
    evaluate = Evaluator(plain, RunOptions())
    x, v, out = np.array([1.3, 0.7, -0.4]), np.array([1.0, 1.0, 1.0]), np.empty(3)
    evaluate.gradient(x, out)
    evaluate.hvp(x, v, out)
    assert_allclose(out, stiffness, rtol=1e-3)


def test_nothing_is_shown_beyond_float32() -> None:
    """The least eigenvalue is −1e-9 beside 1: products in float32 cannot show that it is ≥ 0."""
    plain = Functions(lambda x: np.float32(0.0), lambda x: np.zeros(2, np.float32), 2)
    curved = CurvedFunctions(plain, lambda x, v: np.array([1.0, -1e-9]) * v)
    evaluate = Evaluator(curved, RunOptions())
    H = dense(evaluate.hvp, np.zeros(2))
    assert shown_above(H, -1e-8, evaluate.eps)
    evaluate.gradient(np.zeros(2), np.empty(2))
    assert not shown_above(H, -1e-8, evaluate.eps)
    assert shown_above(H, -1e-4, evaluate.eps)
    found = least_eigenvalue(evaluate, np.zeros(2), np.ones(2))
    assert found is not None
    assert found.noise > 1e-6


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", ["norm-armijo", "pgd", "tgd"])
def test_what_the_theorems_promise_holds_within_float32(method: str) -> None:
    # Without constants to be proved at every step.
    options = {"initial_step": "memory"} if method == "norm-armijo" else {}
    for name in ("with a constant", "rosenbrock"):
        found = model(name, "float32").solve(method, gtol=1e-4, verify=True, max_iter=30, **options)
        assert found.certificate is not None
        assert found.certificate.holds, f"{name}\n{found.certificate.summary}"


def test_a_kink_stalls_in_float32_too() -> None:
    sharp = Functions(
        lambda x: np.abs(x.astype(np.float32)).sum() + np.float32(1.0),
        lambda x: np.sign(x).astype(np.float32),
        2,
    )
    found = solve(sharp, [1.0, -0.3], method="auto")
    assert found.status == "line_search_stalled", found.message
    assert norm(found.x) < 1e-2
