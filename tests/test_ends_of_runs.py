"""How runs end where there is no minimum, at saddles of the violation, at kinks, near bounds."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import slomodel
from slomodel.errors import NonsmoothWarning
from slomodel.solve import Status
from slomodel.solve.objective import Evaluator
from slomodel.solve.run.ending import judge_end
from slomodel.solve.run.kinks import MOST_UNKNOWNS
from slomodel.solve.run.run_state import RunState
from slomodel.solve.run_options import RunOptions
from slomodel.solve.stagnation.pole import PoleWatch
from slomodel.solve.stagnation.unbounded import Drift
from slomodel.solve.subroutine import Iterate

TENDS = {
    "reciprocal": ("var x\nminimize 1/x", [1.0]),
    "on a half-line": ("var x in [0.01, inf]\nminimize 1/x", [1.0]),
    "hyperbola": ("var x\nminimize sqrt(1 + x^2) - x", [0.0]),
    "maximum": ("var x\nmaximize -1/x", [1.0]),
    "along a parabola": ("var x, y\nminimize 1/x subject to y == x^2", [1.0, 1.0]),
    "on a logarithmic scale": ("var x > 0, y\nminimize 1/x subject to y == x^2", [1.0, 1.0]),
    "towards two bounds": (
        "var x, y\nminimize x subject to x*y >= 1, x >= 0, y >= 0",
        [1.0, 1.0],
    ),
    "arc": ("var x, y\nminimize -atan(x) subject to y <= x", [0.5, 0.0]),
}


@pytest.mark.parametrize("name", TENDS)
def test_a_limit_that_is_not_reached_is_no_minimum(name: str) -> None:
    text, x0 = TENDS[name]
    # Without constraints `auto` goes on until the limit is nearly reached, if its test is scaled.
    found = slomodel.compile(text, backend="numpy").solve(x0=x0, scaled="subject" in text)
    assert found.status is Status.no_minimum, found.message
    assert not found.success
    assert ("no maximum" if "maximize" in text else "no minimum") in found.message


NEARLY_REACHED = {
    "exponential": "var x\nminimize exp(-x)",
    "reciprocal": "var x init 1\nminimize 1/x",
    "separable": """var a, b
        minimize softplus(b - 2*a) + softplus(b - a) + softplus(-a - b) + softplus(-3*a - b)""",
    "bell": "var x init 1\nminimize exp(-x^2)",
}


@pytest.mark.parametrize("name", NEARLY_REACHED)
def test_a_limit_that_is_nearly_reached_is_convergence(name: str) -> None:
    found = slomodel.compile(NEARLY_REACHED[name], backend="numpy").solve(gtol=1e-9)
    assert found.status is Status.converged, found.message
    assert found.fun < 1e-6


def test_convergence_to_a_limit_is_said() -> None:
    found = slomodel.compile(NEARLY_REACHED["reciprocal"], backend="numpy").solve()
    assert found.status is Status.converged
    assert "tends to a limit" in found.message


@pytest.mark.parametrize("sign", ["minimize", "maximize -"])
def test_a_limit_of_a_product_as_one_factor_vanishes_is_said(sign: str) -> None:
    text = f"""var B[2], a[3]
        {sign}(sum((a[i]*B[j] - (i + j + 1))^2 for i in 3, j in 2) + 0.1*sumsq(B))"""
    found = slomodel.compile(text, backend="numpy").solve(x0=[1, 0.5, 0.2, 1, 0.3])
    # The least sum of squares of a matrix of rank 1, by the singular values of the data.
    data = np.add.outer(np.arange(3.0), np.arange(2.0)) + 1.0
    least = np.linalg.svd(data, compute_uv=False)[1] ** 2
    assert found.status is Status.converged, found.message
    assert "nearly reached a limit" in found.message
    assert_allclose(abs(found.fun), least, rtol=1e-9)


def test_a_sum_of_squares_that_vanishes_in_a_valley_has_converged() -> None:
    text = "var a, b\nminimize (exp(a)*b - 2)^2 + 0.1*b^2"
    found = slomodel.compile(text, backend="numpy").solve(x0=[1.0, 1.0])
    assert found.status is Status.converged, found.message
    assert found.fun <= 1e-12


def test_an_end_far_from_the_start_advises_bounds() -> None:
    # f tends to a limit as b and exp(a) grow in proportion.
    text = """dim m
        data t[m], y[m]
        var a, b
        minimize sum((y - b*t/(exp(a) + t))^2)"""
    t = np.arange(1.0, 4.0)
    model = slomodel.compile(text, data={"t": t, "y": [1.0, 2.1, 3.3]}, backend="numpy")
    found = model.solve()
    assert not found.success or "bound the variables" in found.message, found.message
    stopped = model.solve(max_iter=200)
    assert stopped.status is Status.max_iter
    assert "Raise max_iter" in stopped.message
    assert "limit there, bound the variables" in stopped.message
    assert "bound the variables" not in model.solve(max_iter=2).message


def test_a_local_minimum_before_a_limit_is_one() -> None:
    model = slomodel.compile("var x init 1\nminimize 1/x + 0.01*sin(x)/x", backend="numpy")
    found = model.solve()
    assert found.status is Status.converged, found.message
    assert "limit" not in found.message


REACHED = {
    "far": ("var x\nminimize (x - 1e6)^2/1e6", 0.0),
    "far under a constraint": ("var x, y\nminimize (x - 1e6)^2 subject to y == x", 0.0),
    "flat from there on": ("var x\nminimize relu(1 - x/1000)^2", 0.0),
    "a valley": ("var x, y\nminimize (x + y - 1e4)^2", 0.0),
}


@pytest.mark.parametrize("name", REACHED)
def test_a_minimum_that_is_far_is_one(name: str) -> None:
    text, least = REACHED[name]
    found = slomodel.compile(text, backend="numpy").solve()
    assert found.status is Status.converged, found.message
    assert_allclose(found.fun, least, atol=1e-6)


def test_points_of_open_sets_are_finite() -> None:
    model = slomodel.compile("var x > 0\nminimize 1/log(1 + x)", backend="numpy")
    found = model.solve("adgd")
    assert np.isfinite(found.x).all()
    assert not found.success


SADDLES = {
    "hyperbola": ("var x, y\nminimize x^2 + y^2 subject to x*y == 1", [0.0, 0.0], 2.0),
    "from its axis": ("var x, y\nminimize x^2 + y^2 subject to x*y == 1", [-1.0, 1.0], 2.0),
    "outside a disc": ("var x, y\nminimize x^2 + 4*y^2 subject to x^2 + y^2 >= 1", [0.0, 0.0], 1.0),
    "of fourth order": (
        "var x[2] in [-2, 2]\nminimize sum(x) subject to sum(x^4) >= 1, sum(x) >= -3",
        [0.0, 0.0],
        -3.0,
    ),
    "by a fixed step": (
        "var x, y\nminimize x + y subject to x^2*y^2 == 1, x + y >= 2",
        [0, 0],
        2.0,
    ),
    "of determinants": (
        "var A[2, 2]\nminimize sumsq(A) subject to A[0, 0]*A[1, 1] - A[0, 1]*A[1, 0] == 1",
        [0.0] * 4,
        2.0,
    ),
}


@pytest.mark.parametrize("name", SADDLES)
@pytest.mark.parametrize("method", ["auto", "norm-armijo"])
def test_saddles_of_the_violation_are_not_infeasible(name: str, method: str) -> None:
    text, x0, least = SADDLES[name]
    found = slomodel.compile(text, backend="numpy").solve(method, x0, max_iter=3000)
    assert found.status is not Status.infeasible, found.message
    if method == "auto":
        assert found.success, found.message
        assert_allclose(found.fun, least, rtol=1e-5)


@pytest.mark.parametrize(
    "text",
    [
        "var x, y\nminimize x subject to x^2 + y^2 == -1",
        "var x, y\nminimize x subject to x*y == 1, x^2 <= -1",
        "var x in [-1, 1], y in [-1, 1]\nminimize x subject to x*y == 2",
    ],
)
def test_contradictions_are_infeasible_also_from_saddles(text: str) -> None:
    found = slomodel.compile(text, backend="numpy").solve(x0=[0.0, 0.0])
    assert found.status is Status.infeasible, found.message


KINKS = {
    "one": ("var x\nminimize x^2 - abs(x)", [0.0], -0.25),
    "reached by a run": ("var x, y\nminimize x^2 - abs(x) + y^2", [0.0, 1.0], -0.25),
    "one for each": ("var x[3]\nminimize sumsq(x) - sum(abs(x))", [0.0] * 3, -0.75),
    "a norm": ("var x[25]\nminimize sumsq(x) - norm2(x)", [0.0] * 25, -0.25),
    "one side": ("var x\nminimize x^2 - relu(x)", [0.0], -0.25),
    "rotated": ("var x, y\nminimize x^2 + y^2 + 9*abs(x - y) - abs(x + y)", [0.0, 0.0], -0.5),
    "in a set": ("var x in [-1, 1], y\nminimize y^2 - abs(x)", [0.0, 1.0], -1.0),
}


@pytest.mark.parametrize("name", KINKS)
def test_kinks_at_maxima_are_left(name: str) -> None:
    text, x0, least = KINKS[name]
    with pytest.warns(slomodel.errors.NonsmoothWarning):
        model = slomodel.compile(text, backend="numpy")
    found = model.solve(x0=x0)
    assert found.success, found.message
    assert_allclose(found.fun, least, rtol=1e-5)


def test_a_kink_at_a_minimum_is_one() -> None:
    with pytest.warns(slomodel.errors.NonsmoothWarning):
        model = slomodel.compile("var x, y\nminimize abs(x) + 2*abs(x - y)", backend="numpy")
    found = model.solve(x0=[0.0, 0.0])
    assert (found.status, found.fun) == (Status.converged, 0.0)
    assert found.nfev < 40


@pytest.mark.parametrize("factor", [1.0, 1e3, 1e6])
def test_bounds_that_a_steep_objective_falls_to_are_reached(factor: float) -> None:
    text = f"var x[3] >= 0\nminimize sum(x .* log(x)) + {factor}*sum(x)"
    found = slomodel.compile(text, backend="numpy").solve(x0=np.ones(3))
    assert found.success, found.message
    least = -3.0 * np.exp(-1.0 - factor)
    assert found.fun - least <= 1e-10 * 3.0 * factor


@pytest.mark.parametrize("declared", ["in [0, 1] init 2", ">= 1 init 0", "in [2, 3] init zeros"])
def test_a_start_outside_a_closed_set_is_projected(declared: str) -> None:
    model = slomodel.compile(f"var x[2] {declared}\nminimize sumsq(x - 0.5)", backend="numpy")
    with pytest.warns(slomodel.errors.StartWarning, match="x0 is outside"):
        found = model.solve()
    assert found.success, found.message


def test_a_slope_that_no_search_follows_is_not_success() -> None:
    """Where full steps of the model end far away, backtracking may stop at points of no minimum."""
    text = "data w, at[3] var x[3] in [-w, w] init at minimize sum(exp(x)) - sum(x)"
    model = slomodel.compile(text, data={"w": 1e4, "at": np.ones(3)})
    for width in (1e4, 1e300, np.inf):
        for start in (700.0, 300.0, 50.0):
            found = model.bind(w=width, at=np.full(3, start)).solve(max_iter=300)
            assert not found.success or found.fun < 3.0 + 1e-9, found.message


def test_a_ravine_from_an_unstable_start_is_not_stationary() -> None:
    """Feedback that hardly stabilises: curvatures of 1e10 along the ravine's walls, f of 6."""
    text = """dim n, m, T = 8
        data A[n, n], B[n, m], x0[n]
        var K[m, n]
        let x[t in range(T + 1)] = (A - B @ K) @ x[t-1, :]  first x0
        minimize sumsq(x) + 0.1*sum(sumsq(K @ x[t, :]) for t in T)"""
    A = [[1.2, -0.26, 0.04], [-0.06, 0.95, -0.02], [-0.2, -0.02, 0.91]]
    B = [[3.3, 0.2], [-0.4, -0.3], [-0.7, -1.1]]
    model = slomodel.compile(text, data={"A": A, "B": B, "x0": np.ones(3)}, backend="numpy")
    for seed in (1, 2, 4):
        found = model.solve(seed=seed, max_iter=300)
        assert not found.success or found.fun <= 5.985534173923 * (1.0 + 1e-9), found.message


ROUNDED = {
    "along a diagonal": ("var x[3]\nminimize sum(x)^2 + 1e-9*x[0]", [1.0, 2.0, 3.0]),
    "steeply": ("var x[3]\nmaximize -sum(x)^2 + 1e-3*x[0]", [1.0, 2.0, 3.0]),
}


@pytest.mark.parametrize("name", ROUNDED)
def test_a_flat_direction_without_end_is_unbounded(name: str) -> None:
    """Far out, rounding errors of the squares that cancel are larger than the descent."""
    text, x0 = ROUNDED[name]
    found = slomodel.compile(text, backend="numpy").solve(x0=np.array(x0))
    assert found.status is Status.unbounded, found.message


def test_the_end_of_a_curved_valley_is_found(tmp_path: Path) -> None:
    """Steps along a direction alone take 29,000 iterations."""
    text = "var x, y\nminimize 10 + sqrt(1 + (x - 300)^2) + 1e4*(y - x^2)^2"
    model = slomodel.compile(text, backend="c")
    found = model.solve(x0=[1.0, 1.0])
    assert found.success, found.message
    assert_allclose(found.fun, 11.0, rtol=1e-9)
    assert found.nit < 3000
    assert "along a valley" in str(found.parameters["steps"])
    watched = model.solve(x0=[1.0, 1.0], callback=lambda state: None)
    assert_array_equal(watched.x, found.x)
    path = tmp_path / "run.npz"
    for most in (512, 1024, found.nit - 1):
        assert model.solve(x0=[1.0, 1.0], max_iter=most, checkpoint=path).nit == most
        again = model.solve(resume=path, max_iter=10_000)
        assert_array_equal(again.history.fun, found.history.fun)
        assert again.nfev == found.nfev


@pytest.mark.parametrize("valley", ["1/x + 1e6*", "1/x + 1e4*", "1/log(1 + x) + 1e6*"])
def test_the_limit_of_a_curved_valley_is_nearly_reached_or_no_success(valley: str) -> None:
    model = slomodel.compile(f"var x, y\nminimize 1 + {valley}(y - x^2)^2", backend="c")
    found = model.solve(x0=[1.0, 1.0], max_iter=2000)
    assert not found.success or found.fun < 1.0 + 1e-4, found.message
    assert found.status is not Status.max_iter
    if found.status is Status.converged:
        assert "tends to a limit" in found.message


def test_a_run_that_only_drifts_away_is_at_no_minimum() -> None:
    """Its decreases are negligible for many doublings of its steps, while it goes ever farther."""

    def ends(distances: list[float], fall: float) -> bool:
        # Only the sign of the objective and its set are used.
        evaluate = cast(Evaluator, SimpleNamespace(sign=1.0, within=None))
        drift, f = Drift(evaluate, np.zeros(2)), 1.0
        halt = None
        for k, distance in enumerate(distances):
            f -= fall
            at = Iterate(np.array([distance, 0.0]), f, np.zeros(2), 1.0)
            halt = drift.in_valley(64 * 2**k, at, 2.0)
        return halt is not None and halt.status is Status.no_minimum

    assert ends([200.0, 400.0, 800.0, 1600.0, 3200.0], 1e-6)
    assert not ends([200.0, 201.0, 202.0, 202.5, 202.7], 1e-6)
    assert not ends([2.0, 4.0, 8.0, 16.0, 32.0], 1e-6)
    assert not ends([200.0, 400.0, 800.0, 1600.0, 3200.0], 1e-2)


@pytest.mark.parametrize(("text", "status"), [("abs(x)", "stalled"), ("abs(x - 9)", "precision")])
def test_a_kink_of_many_unknowns_is_no_limit_of_precision(text: str, status: str) -> None:
    """Between kinks f changes as its gradients imply, however far the minimum is."""
    n = MOST_UNKNOWNS + 1
    with pytest.warns(NonsmoothWarning):
        model = slomodel.compile(f"var x[{n}]\nminimize sum({text})", backend="numpy")
    objective = model.unconstrained._objective(None)
    evaluate = Evaluator(objective, RunOptions.of({})[0])
    x, g = np.zeros(n), np.empty(n)
    x[0] = 1e-13
    at = Iterate(x, evaluate.value(x), g, evaluate.gradient(x, g))
    run = RunState(at, RunOptions.of({})[0], facts=objective.facts)
    run.end(Status.precision)
    start = np.zeros(n)
    judge_end(evaluate, run, Drift(evaluate, start), PoleWatch(evaluate))
    assert status in str(run.status)


@pytest.mark.parametrize(("x", "status"), [(60.0, "converged"), (10.0, "line_search_stalled")])
def test_a_loss_that_has_vanished_is_a_success(x: float, status: str) -> None:
    """Its values have no digits left by which a search could go on."""
    model = slomodel.compile("var x\nminimize softplus(-x)", backend="numpy")
    objective = model.unconstrained._objective(None)
    evaluate, g = Evaluator(objective, RunOptions.of({})[0]), np.empty(1)
    at = Iterate(np.array([x]), model.value(np.array([x])), g, evaluate.gradient(np.array([x]), g))
    run = RunState(at, RunOptions.of({})[0], facts=objective.facts, first_f=0.7, first_gnorm=0.5)
    run.end(Status.line_search_stalled)
    judge_end(evaluate, run, Drift(evaluate, np.zeros(1)), PoleWatch(evaluate))
    assert run.status is Status(status)


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("var x in [0, 1e9] init 1 minimize -log(1 + x)", -np.log1p(1e9)),
        ("var x in [0, 1e6] init 1 minimize 1/log(2 + x)", 1 / np.log(2 + 1e6)),
        ("var x in [0, 1e12] init 1 minimize -sqrt(x)", -1e6),
        ("var x in [-1e8, 3] init 1 maximize log(5 - x)", np.log(5 + 1e8)),
        ("var x[2] in ball(1e8) init 1 minimize -log(1 + sumsq(x))", -np.log1p(1e16)),
    ],
)
def test_a_bounded_set_has_a_border(text: str, least: float) -> None:
    """However far: a function that is nearly flat there is neither unbounded nor at its limit."""
    model = slomodel.compile(text, backend="numpy")
    found = model.solve()
    assert found.status is Status.converged
    assert found.fun == pytest.approx(least, rel=1e-12)
    plain = model.solve(method="norm-armijo", max_iter=2000)
    assert plain.status in (Status.converged, Status.max_iter)


@pytest.mark.filterwarnings("ignore::slomodel.NonsmoothWarning")
def test_the_advice_at_a_minimum_with_a_kink() -> None:
    model = slomodel.compile("var x[2]\nminimize norm2(x - [1, 2]) + 0.1*sumsq(x)", backend="numpy")
    found = model.solve()
    assert_allclose(found.x, [1, 2], atol=1e-9)
    if not found.success:
        assert "a minimum at a kink is likely" in found.message
        assert "check_gradient" not in found.message
