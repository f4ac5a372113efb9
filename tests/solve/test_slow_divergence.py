"""Objectives that tend to minus infinity ever more slowly, and bounded ones that resemble them."""

import numpy as np
import pytest

import slomodel

METHODS = ("auto", "norm-armijo", "std-armijo", "tgd", "gd", "ngd", "adgd")
WITHOUT_BOUND = {
    "log": ("var x\nminimize -log(x)", [1.0]),
    "log of a shift": ("var x\nminimize 3 - 0.01*log(x + 50)", [1.0]),
    "root": ("var x\nminimize -sqrt(x)", [1.0]),
    "small power": ("var x\nminimize -x^0.1", [1.0]),
    "maximum": ("var x\nmaximize log(x)", [2.0]),
    "log of a sum": ("var x[3]\nminimize -log(sum(x))", [1.0, 2.0, 0.5]),
    "barrier": ("var x[3]\nminimize -sum(log(x)) + (x[0] - x[1])^2", [1.0, 2.0, 0.5]),
    "log of a square": ("var x, y\nminimize -log(1 + x^2) + y^2", [1.0, 1.0]),
}
BOUNDED = {
    "exp": ("var x\nminimize exp(-x)", [0.0]),
    "reciprocal": ("var x\nminimize 1/x", [1.0]),
    "reciprocal of a root": ("var x\nminimize x^(-0.1)", [1.0]),
    "bump": ("var x\nminimize x/(1 + x^2)", [3.0]),
    "reciprocal of a log": ("var x\nminimize 1/log(x + 2)", [1.0]),
    "softplus": ("var x\nminimize softplus(-x)", [0.0]),
    "arc": ("var x\nminimize -atan(x)", [0.0]),
    "hyperbola": ("var x\nminimize sqrt(1 + x^2) - x", [0.0]),
    "logs that stop": ("var x\nminimize log(1/x + 1e-9)", [1.0]),
    "a barrier that ends": ("var x\nminimize -log(x) + 1e-9*x", [1.0]),
    "far away": ("var x\nminimize (x - 1e6)^2/1e6", [0.0]),
}


# Steps of a fixed size go to and fro across the barrier's valley, and no ray follows them.
CASES = [(n, m) for n in WITHOUT_BOUND for m in METHODS if (n, m) != ("barrier", "std-armijo")]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "method"), CASES)
def test_unbounded_within_reasonable_time(name: str, method: str) -> None:
    text, x0 = WITHOUT_BOUND[name]
    model = slomodel.compile(text, backend="numpy")
    options = {"lipschitz": "sampled", "D": 0.5} if method in ("tgd", "gd") else {}
    found = model.solve(method, x0, max_iter=5000, **options)
    assert found.status == "unbounded", found.message
    assert found.nit <= 4096
    assert found.nfev <= 12_000
    assert "at a distance of" in found.message or "The objective seems" in found.message


@pytest.mark.sampled(4)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", BOUNDED)
def test_bounded_ones_are_not_called_unbounded(name: str, method: str) -> None:
    text, x0 = BOUNDED[name]
    model = slomodel.compile(text, backend="numpy")
    options = {"lipschitz": "sampled", "D": 0.5} if method in ("tgd", "gd") else {}
    found = model.solve(method, x0, max_iter=600, gtol=1e-8, **options)
    assert found.status != "unbounded", found.message


@pytest.mark.slow
def test_separable_logistic_regression_is_bounded() -> None:
    generator = np.random.default_rng(0)
    A = generator.normal(size=(30, 3))
    y = np.sign(A @ [1.0, -2.0, 0.5])
    text = "dim m, n data A[m, n], y[m] var w[n] minimize mean(softplus(-y .* (A @ w)))"
    model = slomodel.compile(text, data={"A": A, "y": y})
    for method in METHODS:
        found = model.solve(method, np.zeros(3), max_iter=600, gtol=1e-9)
        assert found.status != "unbounded", found.message


def test_the_divergence_is_reported() -> None:
    told = slomodel.compile("var x\nminimize -log(x)").solve("std-armijo", [1.0]).message
    assert "it fell by 0.693 in the last of" in told
    told = slomodel.compile("var x\nmaximize log(x)").solve("std-armijo", [1.0]).message
    assert "it rose by 0.693 in the last of" in told
    assert "unbounded above" in told


FAR_BELOW = {
    "quadratic": ("var x\nminimize -x + 1e-18*x^2", -2.5e17),
    "quartic": ("var x\nminimize -x + 1e-60*x^4", -4.7247039371057632e19),
    "maximum": ("var x\nmaximize 1e17*x - x^2", 2.5e33),
    "many": ("var x[30]\nminimize 1e-20*sumsq(x) - sum(x)", -7.5e20),
    "curved bound": ("var y >= 0, x\nminimize -x\nsubject to x^2 + y <= 1e34", -1e17),
}


@pytest.mark.parametrize("name", FAR_BELOW)
def test_minima_far_below_the_start_are_found(name: str) -> None:
    """f is below −1/eps on the way; it is followed to its end before it counts as unbounded."""
    text, least = FAR_BELOW[name]
    found = slomodel.compile(text, backend="numpy").solve()
    assert found.success, found.message
    assert found.fun == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize("slope", [1.0, 1e-4])
def test_a_step_limited_by_its_length_is_not_convergence_far_out(slope: float) -> None:
    """The Hessian says nothing about the plane along which f falls without end."""
    found = slomodel.compile(f"var x[3] minimize sum(x)^2 + {slope}*x[0]").solve(x0=[1.0, 2.0, 3.0])
    assert found.status == "unbounded"


@pytest.mark.filterwarnings("ignore::slomodel.errors.NonsmoothWarning")
def test_sums_of_squares_are_not_unbounded() -> None:
    """Towards a cusp f falls by steady amounts, as towards the pole of a logarithm."""
    model = slomodel.compile("var x\nminimize ((x^2)^0.002)^2", backend="numpy")
    found = model.solve("norm-armijo", [1.0], initial_step="memory", max_iter=400)
    assert found.status != "unbounded"


def test_fits_whose_parameters_tend_to_infinity_say_so() -> None:
    """Rates that grow in proportion: V s/(K + s) tends to (V/K) s, and rounding hides the rest."""
    s = np.linspace(0.1, 2.0, 12)
    noise = 0.02 * np.cos(7.0 * np.arange(12))
    text = "dim m\ndata s[m], v[m]\nvar V init 1, K init 1\nminimize sumsq(v - V*s/(K + s))"
    for bend in (0.02, -0.03):
        v = 0.5 * s * (1.0 + noise) + bend * s**2
        found = slomodel.compile(text, data={"s": s, "v": v}, backend="numpy").solve()
        assert ("tends to a limit" in found.message) == (bend > 0.0), found.message


def test_constraints_that_do_not_hold_far_out_are_no_descent_without_end() -> None:
    """A truss by its displacements: a·u == f fails at a = 0, however long u is."""
    data = {
        "B": np.array([*np.eye(4), [1.0, 1.0, 0.0, 0.0], [1.0, -1.0, 0.0, 0.0]]),
        "f": np.eye(4)[0],
    }
    text = (
        "dim b, d data B[b, d], f[d] var a[b] >= 0 init 0.2, u[d] init 0.1 minimize dot(f, u) "
        "subject to sum(a[e]*(B[e, :] @ u)*B[e, i] for e in b) == f[i] for i in d "
        "subject to sum(a) <= 1"
    )
    found = slomodel.compile(text, data=data, backend="numpy").solve()
    assert found.status == "converged"
    assert found.fun == pytest.approx(1.0, rel=1e-9)
