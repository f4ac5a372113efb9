"""Runs that end where the gradient vanishes but the objective decreases further report it."""

import numpy as np
import pytest
from solve.objectives import parabola

import slomodel
from slomodel.solve import solve

SAID = "The gradient vanishes, but the objective"
# Of each the run goes to a point that is no minimum; a lower value that second_order finds.
FALLING = {
    "inflection": ("var x, y\nminimize x^3 + x^4/4 + y^2", [1.0, 1.0], -6.74),
    "at the start": ("var x, y\nminimize x^3 + x^4/4 + y^2", [0.0, 0.0], -6.74),
    "one unknown": ("var x\nminimize x^3 + x^4/4", [1.0], -6.74),
    "saddle": ("var x, y\nminimize x^2 - y^2 + y^4/4", [1.0, 0.0], -0.99),
    "monkey saddle": ("var x, y\nminimize x^3 - 3*x*y^2 + (x^2 + y^2)^2", [0.0, 0.0], -0.1),
    "fourth order": ("var x, y\nminimize x^2 - y^4 + y^6", [1.0, 0.0], -0.14),
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


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FALLING)
def test_a_point_that_is_not_a_minimum_is_reported_and_left(name: str) -> None:
    text, x0, lower = FALLING[name]
    model = slomodel.compile(text, backend="numpy")
    found = model.solve("auto", x0)
    assert found.status == "converged"
    if found.nit:
        assert SAID in found.message
        assert "a saddle or an inflection" in found.message
    else:
        assert "The start is already stationary: it may be a saddle" in found.message
    left = model.solve("auto", x0, second_order=True)
    assert left.fun < lower
    assert "left" in left.message


@pytest.mark.parametrize("name", MINIMA)
@pytest.mark.parametrize("gtol", [1e-2, 1e-6, 1e-10])
def test_minima_are_not_called_otherwise(name: str, gtol: float) -> None:
    text, x0 = MINIMA[name]
    model = slomodel.compile(text, backend="numpy")
    for method in ("auto", "norm-armijo"):
        found = model.solve(method, x0, gtol=gtol, max_iter=2000)
        assert SAID not in found.message, found.message


def test_a_maximum_in_its_own_words() -> None:
    found = slomodel.compile("var x\nmaximize -x^3 - x^4/4").solve("auto", [1.0])
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
