"""Single precision, threads, the check of gradients, and SciPy's minimize."""

from __future__ import annotations

import numexpr
import numpy as np
import pytest
import scipy.optimize
from threadpoolctl import threadpool_info

import slomodel

REGRESSION = """
dim N, n   data A[N, n], y[N], lam = 0.1   var w[n] init normal(0, 1), c init 0
minimize sum(softplus(-y .* (A @ w + c))) / N + lam * sumsq(w)
"""
RNG = np.random.default_rng(4)
A = RNG.standard_normal((60, 5))
DATA = {"A": A, "y": np.sign(A @ np.arange(1.0, 6.0) + RNG.standard_normal(60))}


def by_hand(x: np.ndarray) -> tuple[float, np.ndarray]:
    w, c, y = x[:5], x[5], DATA["y"]
    t = -y * (A @ w + c)
    s = -y / (1 + np.exp(-t)) / 60
    value = np.log1p(np.exp(t)).sum() / 60 + 0.1 * w @ w
    return value, np.concatenate([A.T @ s + 0.2 * w, [s.sum()]])


@pytest.mark.parametrize("backend", ["numexpr", "numpy"])
def test_single_precision_end_to_end(backend: str) -> None:
    model = slomodel.compile(REGRESSION, data=DATA, backend=backend, dtype="float32")
    x = model.x0(1)
    value, gradient = model.value_and_gradient(x)
    expected, slope = by_hand(x)
    assert value == pytest.approx(expected, rel=1e-6)
    assert gradient.dtype == model.hvp(x, x).dtype == np.float32
    np.testing.assert_allclose(gradient, slope, atol=1e-6)
    assert abs(value - expected) > 0.0
    solution = model.solve(x0=x, gtol=1e-5)
    assert solution.success
    assert solution.x.dtype == np.float64
    assert np.linalg.norm(by_hand(solution.x)[1]) < 1e-4
    assert "real = np.float32" in model.source()


@pytest.mark.parametrize("backend", ["numexpr", "numpy"])
def test_single_precision_solves_what_is_flat_at_the_start(backend: str) -> None:
    text = "var x[2] minimize sum((x[i] - 1.5)^2 for i in 2)"
    model = slomodel.compile(text, dtype="float32", backend=backend)
    for start in (np.zeros(2, np.float32), np.zeros(2)):
        solution = model.solve(x0=start)
        assert solution.success
        np.testing.assert_allclose(solution.x, 1.5, atol=1e-3)


def test_single_precision_is_kept_by_bind_and_pickle() -> None:
    import pickle

    model = slomodel.compile(REGRESSION, data=DATA, dtype="float32")
    x = model.x0()
    for other in (model.bind(lam=0.1), pickle.loads(pickle.dumps(model))):
        assert other.gradient(x).dtype == np.float32
        np.testing.assert_array_equal(other.gradient(x), model.gradient(x))


def test_data_too_large_for_single_precision_is_reported_at_the_start() -> None:
    text = "data a[2] var x[2] init 1 minimize sum(a .* x)"
    model = slomodel.compile(text, data={"a": [1.0, 1e300]}, dtype="float32")
    solution = model.solve()
    assert solution.status is slomodel.Status.nonfinite_start


def test_threads_for_the_time_of_a_run() -> None:
    model = slomodel.compile(REGRESSION, data=DATA)
    before = numexpr.get_num_threads()
    seen = set()

    def note(state: object) -> None:
        blas = {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
        seen.add((numexpr.get_num_threads(), *blas))

    model.solve(threads=1, max_iter=3, callback=note)
    assert seen == {(1, 1)}
    assert numexpr.get_num_threads() == before
    for wrong in (0, -1, 1.5, True, 10**6):
        with pytest.raises(slomodel.DomainError, match="threads must be a whole number"):
            model.solve(threads=wrong)


def test_the_gradient_is_checked_against_complex_steps() -> None:
    model = slomodel.compile(REGRESSION, data=DATA)
    worst = model.check_gradient()
    assert set(worst) == {"w", "c"}
    assert max(worst.values()) < 1e-13
    single = slomodel.compile(REGRESSION, data=DATA, dtype="float32").check_gradient(model.x0(3))
    assert 1e-10 < max(single.values()) < 1e-5


@pytest.mark.parametrize("method", ["BFGS", "CG", "L-BFGS-B", "Newton-CG", "trust-ncg"])
def test_scipy_minimises_a_model(method: str) -> None:
    model = slomodel.compile(REGRESSION, data=DATA)
    asked = model.scipy()
    if method in ("BFGS", "CG", "L-BFGS-B"):
        del asked["hessp"]
    found = scipy.optimize.minimize(**asked, x0=model.x0(), method=method)
    assert np.linalg.norm(model.gradient(found.x)) < 1e-3


def test_scipy_gets_the_negative_of_a_model_to_maximise() -> None:
    model = slomodel.compile("var x[3] init 2 maximize 5 - sum((x[i] - 1)^2 for i in 3)")
    found = scipy.optimize.minimize(**model.scipy(), x0=model.x0(), method="trust-ncg")
    np.testing.assert_allclose(found.x, 1.0, atol=1e-6)
    assert model.value(found.x) == pytest.approx(5.0)


def test_the_public_name_works_for_plain_functions() -> None:
    found = scipy.optimize.minimize(
        scipy.optimize.rosen,
        [-1.2, 1.0],
        jac=scipy.optimize.rosen_der,
        method=slomodel.scipy_method("norm-armijo"),
        options={"direction": "lbfgs"},
    )
    np.testing.assert_allclose(found.x, 1.0, atol=1e-4)


def test_the_graph_as_text_needs_no_sizes() -> None:
    text = slomodel.compile("dim n var x[n] minimize sumsq(x)").source("graph")
    assert text.splitlines() == [
        "%0 = variable x [n]",
        "%1 = einsum[0,0 -> ](%0, %0) scalar",
        "%2 = 2.0 scalar",
        "%3 = mul(%2, %0) [n]",
    ]


def test_generated_functions_take_plain_data_and_check_it() -> None:
    from slomodel.codegen.runtime import load

    model = slomodel.compile(REGRESSION, data=DATA)
    module = load(model.source("numpy"), "standalone")
    x = model.x0(2)
    expected = by_hand(x)[0]
    for data in (DATA, {**DATA, "lam": 0.1}, {"A": A.tolist(), "y": DATA["y"].astype(int)}):
        assert module["make_value"](data)(x) == pytest.approx(expected, rel=1e-13)
        assert module["value"](x, data) == pytest.approx(expected, rel=1e-13)
    for wrong in (1.0, [1.0], x[:-1]):
        with pytest.raises(ValueError, match=r"x has shape .* expected \(6,\)"):
            module["value"](wrong, DATA)
    with pytest.raises(ValueError, match=r"data needs y of shape \(60,\)"):
        module["value"](x, {"A": A})
    with pytest.raises(ValueError, match=r"A has shape \(5, 60\), expected \(60, 5\)"):
        module["make_value"]({**DATA, "A": A.T})


def test_a_start_is_not_what_a_user_drew_with_the_same_seed() -> None:
    model = slomodel.compile("dim n var x[n] init normal(0, 1) minimize sumsq(x)", dims={"n": 5})
    for seed in (0, 1):
        drawn = np.random.default_rng(seed).normal(size=5)
        assert np.abs(model.x0(seed) - drawn).min() > 1e-6
        np.testing.assert_array_equal(model.x0(seed), model.x0(seed))
    assert np.any(model.x0(0) != model.x0(1))
    for wrong in (-1, 1.5, "a", True, None):
        with pytest.raises(slomodel.DomainError, match="seed"):
            model.x0(wrong)


@pytest.mark.parametrize("target", ["numpy", "numexpr"])
def test_a_standalone_module_refuses_names_that_it_does_not_know(target: str) -> None:
    """A misspelt name would leave a default where a value was given."""
    from slomodel.codegen.runtime import load

    module = load(slomodel.compile(REGRESSION, data=DATA).source(target), "standalone")
    x = np.zeros(6)
    expected = r"data has \['lamb'\], and the names are \['A', 'y', 'lam'\]"
    for function in ("value", "gradient", "value_and_gradient"):
        with pytest.raises(TypeError, match=expected):
            module[function](x, {**DATA, "lamb": 0.5})
    for make in ("make_value", "make_value_and_gradient", "make_hvp"):
        with pytest.raises(TypeError, match=expected):
            module[make]({**DATA, "lamb": 0.5})
