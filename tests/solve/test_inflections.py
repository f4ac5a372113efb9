"""Where the gradient vanishes but the objective decreases further, `auto` goes on."""

import warnings

import numpy as np
import pytest
from solve.objectives import parabola

import slomodel
from slomodel.solve import Functions, solve
from slomodel.solve.objective import Evaluator
from slomodel.solve.run.kinks import combination, stationary_within
from slomodel.solve.run_options import RunOptions
from slomodel.solve.subroutine import Iterate

SAID = "The gradient vanishes, but the objective"
# Of each the run goes to a point that is no minimum; a lower value that second_order finds.
FALLING = {
    "inflection": ("var x, y\nminimize x^3 + x^4/4 + y^2", [1.0, 1.0], -6.74),
    "at the start": ("var x, y\nminimize x^3 + x^4/4 + y^2", [0.0, 0.0], -6.74),
    "one unknown": ("var x\nminimize x^3 + x^4/4", [1.0], -6.74),
    "saddle": ("var x, y\nminimize x^2 - y^2 + y^4/4", [1.0, 0.0], -0.99),
    "monkey saddle": ("var x, y\nminimize x^3 - 3*x*y^2 + (x^2 + y^2)^2", [0.0, 0.0], -0.1),
    "fourth order": ("var x, y\nminimize x^2 - y^4 + y^6", [1.0, 0.0], -0.14),
    "a valley that bends away": (
        "var x, y\nminimize (y - x^2)*(y - 3*x^2) + x^6",
        [0.0, 0.0],
        -0.14,
    ),
    "the same, turned": (
        "var x, y\nlet p = x + y\nlet q = x - y\nminimize (q - p^2)*(q - 3*p^2) + p^6 + p^8",
        [0.0, 0.0],
        -0.07,
    ),
    "far from 1": ("var x, y\nminimize (x/1e4)^3 + (x/1e4)^4/4 + y^2", [1e4, 1.0], -6.74),
}
MINIMA = {
    "quartic": ("var x, y\nminimize x^4 + y^4", [1.0, 2.0]),
    "sixth order": ("var x, y\nminimize x^6 + y^2", [1.0, 2.0]),
    "rosenbrock": ("var x, y\nminimize 100*(y - x^2)^2 + (1 - x)^2", [-1.2, 1.0]),
    "beside a deeper valley": ("var x\nminimize x^4/4 - x^3/3 - 0.1*x^2", [-1.0]),
    "a shallow one": ("var x, y\nminimize 1e-4*x^2 - 1e-2*x^3 + x^4/1e3 + y^2", [-0.5, 1.0]),
    "a valley of minima": ("var x, y\nminimize (x*y - 1)^2", [2.0, 3.0]),
    "flat": ("var x, y\nminimize x^2 + 0*y", [1.0, 1.0]),
    "a sum with a constant": ("var x, y\nminimize x^4 + y^2 + 1e3", [1.0, 1.0]),
    "convex and loose": ("var x, y\nminimize sqrt(1 + x^2) + 1e-5*y^2", [3.0, 100.0]),
}


@pytest.mark.parametrize("name", FALLING)
def test_a_point_that_is_not_a_minimum_is_left_or_reported(name: str) -> None:
    text, x0, lower = FALLING[name]
    model = slomodel.compile(text, backend="numpy")
    for options in ({}, {"second_order": True}):
        left = model.solve("auto", x0, **options)
        assert left.status == "converged"
        assert left.fun < lower
        assert "left" in left.message
    found = model.solve("norm-armijo", x0, direction="newton-cg", gtol=1e-8)
    if found.nit and found.fun > lower:
        assert SAID in found.message
        assert "a saddle or an inflection" in found.message
    assert (found.nit > 0) == ("already stationary" not in found.message)


KINKS = {
    "across": ("var x, y\nminimize 10*abs(x - 3*y) - abs(x + y) + x^2 + y^2", -0.4),
    "three": (
        "var x[3]\nminimize 5*abs(x[0] - 2*x[1]) + 5*abs(x[1] - 2*x[2]) - abs(sum(x)) + sumsq(x)",
        -49 / 84,
    ),
    "many unknowns": (
        "var x[30]\nminimize 10*sum(abs(x[i] - x[i + 10]) for i in 20) - abs(sum(x)) + sumsq(x)",
        -7.5,
    ),
}


@pytest.mark.filterwarnings("ignore::slomodel.errors.NonsmoothWarning")
@pytest.mark.parametrize("name", KINKS)
def test_descent_along_kinks_is_found(name: str) -> None:
    """f rises along all directions of the variables, random ones and gradients beside the start."""
    text, least = KINKS[name]
    model = slomodel.compile(text, backend="numpy")
    found = model.solve(x0=np.zeros(model.n))
    assert found.fun == pytest.approx(least, abs=1e-6)


@pytest.mark.filterwarnings("ignore::slomodel.errors.NonsmoothWarning")
def test_what_was_tried_at_a_kink_is_said() -> None:
    model = slomodel.compile("var x, y\nminimize 2*abs(x - 3*y) + abs(x + y)", backend="numpy")
    found = model.solve(x0=[0.0, 0.0])
    assert found.success
    assert "There is a kink at the point; descents from 4 points" in found.message


@pytest.mark.filterwarnings("ignore::slomodel.errors.NonsmoothWarning")
def test_a_minimum_with_kinks_is_told_from_a_stall() -> None:
    """Least absolute deviations: some residuals are 0 at the minimum."""
    rng = np.random.default_rng(0)
    data = {"A": rng.standard_normal((20, 4)), "b": rng.standard_normal(20)}
    text = "dim m, n data A[m, n], b[m] var x[n] init 1 minimize sum(abs(A @ x - b)) + sumsq(x)/100"
    # A kink that has no epigraph form, far from the others.
    text += " - 0.01*abs(x[0] + 9)"
    model = slomodel.compile(text, data=data, backend="numpy")
    found = model.solve()
    assert found.status == "line_search_stalled"
    assert "with its kinks it is stationary" in found.message
    stopped = model.solve("norm-armijo", direction="gradient", max_iter=5000)
    assert not ("stationary" in stopped.message and stopped.fun > found.fun + 1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_the_least_norm_of_convex_combinations(seed: int) -> None:
    """Compared with a fine grid of weights, and with 0 inside the hull."""
    rows = np.random.default_rng(seed).uniform(-1.0, 1.0, (3, 2))
    steps = np.linspace(0.0, 1.0, 201)
    weights = np.array([(a, b, 1.0 - a - b) for a in steps for b in steps if a + b <= 1.0])
    least = float(np.linalg.norm(weights @ rows, axis=1).min())
    assert np.linalg.norm(combination(rows)) == pytest.approx(least, abs=0.01)
    assert np.linalg.norm(combination(np.vstack([rows, -rows]))) <= 1e-12


def test_a_gradient_that_is_tiny_beside_those_around_it_is_no_combination() -> None:
    steep = Functions(lambda x: float(np.maximum(x, 0.0).sum()), lambda x: 1.0 * (x > 0.0), 2)
    at = Iterate(np.full(2, -1e-12), 0.0, np.full(2, -1e-320), 1e-320)
    with np.errstate(all="ignore"):
        assert stationary_within(Evaluator(steep, RunOptions(), None), at) == ""


IN_SETS = {
    "a bounded unknown": ("var x in [-1, 1] init 0\nminimize x^4 - x^2", -0.25),
    "a bound without a multiplier": ("var x >= 0 init 0\nminimize x^4 - x^2", -0.25),
    "factors that are 0": (
        "var u[3] >= 0 init 0, v[4] >= 0 init 0\n"
        "minimize sum((u[i]*v[j] - (i + 1)*(j + 1))^2 for i in 3, j in 4)",
        0.0,
    ),
    "the centre of a ball": (
        "var x[3] in ball(2) init 0\nminimize sum(cos(x))",
        3 * np.cos(2 / 3**0.5),
    ),
}


@pytest.mark.filterwarnings("ignore::slomodel.errors.ModelWarning")
@pytest.mark.parametrize("name", IN_SETS)
def test_a_stationary_start_in_a_set_is_left(name: str) -> None:
    text, least = IN_SETS[name]
    found = slomodel.compile(text, backend="numpy").solve()
    assert found.fun == pytest.approx(least, abs=1e-9)


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1.0, 1e200])
def test_a_saddle_in_a_set_is_left_in_any_units(scale: float) -> None:
    text = "data a var x[2] in [-2, 3] minimize a*(x[0]^2 - x[1]^2 + x[1]^4)"
    found = slomodel.compile(text, data={"a": scale}, backend="c").solve(x0=[1.0, 0.0])
    assert found.fun == pytest.approx(-0.25 * scale, rel=1e-9)


@pytest.mark.parametrize("name", MINIMA)
@pytest.mark.parametrize("gtol", [1e-2, 1e-6, 1e-10])
def test_minima_are_not_called_otherwise(name: str, gtol: float) -> None:
    text, x0 = MINIMA[name]
    model = slomodel.compile(text, backend="numpy")
    for method in ("auto", "norm-armijo"):
        found = model.solve(method, x0, gtol=gtol, max_iter=2000)
        assert SAID not in found.message, found.message


def test_a_maximum_in_its_own_words() -> None:
    model = slomodel.compile("var x\nmaximize -x^3 - x^4/4")
    assert model.solve("auto", [1.0]).fun == pytest.approx(6.75)
    found = model.solve("norm-armijo", [1.0], direction="newton-cg")
    assert f"{SAID} rises by" in found.message
    assert "no maximum" in found.message


def test_what_it_costs() -> None:
    """Products for up to 20 unknowns, four for more; values only where curvature says little."""
    for n, most in ((1, 1), (20, 20), (500, 4)):
        model = slomodel.compile(f"var x[{n}]\nminimize sumsq(x - 1)", backend="numpy")
        found = model.solve("norm-armijo", np.zeros(n), direction="lbfgs")
        assert found.nhev <= most
        assert found.nfev <= found.nit + 3
    n = 500
    model = slomodel.compile(f"var x[{n}]\nminimize sum(x^4)", backend="numpy")
    plain = model.solve("norm-armijo", np.ones(n), direction="lbfgs")
    assert plain.nhev <= 1 + 6
    assert plain.nfev <= plain.nit + 3


def test_plain_functions_are_not_looked_at() -> None:
    found = solve(parabola(2.0), [3.0, 1.0])
    assert found.success
    assert found.nhev == 0


BENT_IN_SETS = {
    "inside a box": ("x in [-1, 1] init 0, y in [-1, 1] init 0", "0", -1.0 / 3.0),
    "at a bound": ("x in [-1, 1] init 0, y in [0, 1] init 0", "0", -1.0 / 3.0),
    "beside one": ("x in [-1, 1] init 0, y in [-1, 1] init 0, z >= 0 init 0", "z^2", -1.0 / 3.0),
    "away from one": ("x in [-1, 1] init 0, y in [-1, 1] init 0, z >= 0 init 0", "z", -1.0 / 3.0),
    "across a bound": ("x in [-1, 1] init 0, y in [-1, 0] init 0", "0", 0.0),
}


@pytest.mark.parametrize("name", BENT_IN_SETS)
def test_valleys_that_bend_away_in_sets(name: str) -> None:
    """y = 2 x² is the valley of (y − x²)(y − 3x²), which rises along all lines through 0."""
    variables, more, least = BENT_IN_SETS[name]
    text = f"var {variables} minimize (y - x^2)*(y - 3*x^2) + {more}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the start is a saddle
        found = slomodel.compile(text, backend="numpy").solve()
    assert found.success
    assert found.fun == pytest.approx(least, abs=1e-9)
    assert np.abs(found.x).max() <= 1.0
