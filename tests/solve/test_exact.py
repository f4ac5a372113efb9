"""Exact line search along polynomials, against all roots of the given polynomial."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.polynomial import Polynomial
from solve.objectives import Vector, parabola

import slomodel
from slomodel.errors import DomainError
from slomodel.solve import Functions, State, solve
from slomodel.solve.line_search.exact import Ray
from slomodel.solve.objective import Evaluator
from slomodel.solve.run_options import RunOptions
from slomodel.solve.subroutine import Iterate

SIGMA = 0.3
COEFFICIENT = st.floats(-1.0, 1.0)


def ray_along(phi: Polynomial, sigma: float, degree: int) -> tuple[Ray, Iterate]:
    """A search along the only axis there is, from 0."""
    objective = Functions(lambda x: float(phi(x[0])), lambda x: np.array([phi.deriv()(x[0])]), 1)
    at = Iterate(np.zeros(1), float(phi(0.0)), np.array([phi.deriv()(0.0)]), abs(phi.deriv()(0.0)))
    return Ray(Evaluator(objective, RunOptions()), degree, sigma, at), at


def best_by_hand(phi: Polynomial, sigma: float, longest: float) -> float:
    """The least value on (0, longest] with Armijo's descent, on a fine grid."""
    t = np.linspace(0.0, longest, 200_001)[1:]
    values = phi(t)
    return float(values[values <= phi(0.0) + sigma * t * phi.deriv()(0.0)].min(initial=np.inf))


@example(rest=[0.75, 0.0, 0.0, 0.0], steepness=0.01171875, stretch=1e-3, longest=3.0)
@example(rest=[0.0625], steepness=0.01171875, stretch=1e-3, longest=0.3)
@given(
    rest=st.lists(COEFFICIENT, min_size=1, max_size=6),
    steepness=st.floats(0.01, 1.0),
    stretch=st.sampled_from([1e-3, 1.0, 1e3]),
    longest=st.sampled_from([0.3, 3.0]),
)
def test_the_least_value_with_enough_descent(
    rest: list[float], steepness: float, stretch: float, longest: float
) -> None:
    plain = Polynomial([1.0, -steepness, *rest])
    phi = Polynomial(plain.coef / stretch ** np.arange(plain.coef.size))
    ray, at = ray_along(phi, SIGMA, phi.degree() + 1)
    found = ray.minimiser(at, np.ones(1), 1.0, float(at.g[0]), longest * stretch)
    expected = best_by_hand(plain, SIGMA, longest)
    if found is None:
        assert not expected < 1.0 - 1e-9
        return
    assert 0.0 < found <= longest * stretch
    assert phi(found) <= expected + 1e-9
    assert phi(found) <= phi(0.0) + SIGMA * found * at.g[0] + 1e-12


def test_evaluations_of_a_quadratic_and_of_a_linear_function() -> None:
    for phi, degree, values, t in (
        (Polynomial([0.0, -1.0, 2.0]), 2, 1, 0.25),
        (Polynomial([5.0, -1.0]), 1, 0, 1.0),
    ):
        ray, at = ray_along(phi, SIGMA, degree)
        evaluate = ray._evaluate
        assert ray.minimiser(at, np.ones(1), 1.0, -1.0, 1.0) == pytest.approx(t, rel=1e-12)
        assert evaluate.nfev == values


def test_a_minimiser_far_below_the_longest_step() -> None:
    phi = Polynomial([3.0, -1.0, 0.0, 0.0, 1e18])
    ray, at = ray_along(phi, SIGMA, 4)
    exact = (1.0 / 4e18) ** (1.0 / 3.0)
    found = ray.minimiser(at, np.ones(1), 1.0, -1.0, 1e3)
    assert found == pytest.approx(exact, rel=1e-6)


def test_a_step_lost_in_rounding_is_forgotten() -> None:
    # Beside 1 a step of 1e-17 is none; the next ray is searched as if it were the first.
    phi = Polynomial([3.0, -1.0, 2.0])
    ray, at = ray_along(phi, SIGMA, 2)
    beside = Iterate(np.ones(1), at.f, at.g, at.gnorm)
    assert ray.minimiser(beside, np.ones(1), 1.0, -1.0, 1e-17) is None
    assert ray.minimiser(at, np.ones(1), 1.0, -1.0, 1.0) == pytest.approx(0.25, rel=1e-12)


def rosenbrock() -> slomodel.Model:
    return slomodel.compile("var x[2]\nminimize (1 - x[0])^2 + 100 * (x[1] - x[0]^2)^2")


@pytest.mark.parametrize("direction", ["gradient", "lbfgs", "cg", "newton", "gauss-newton"])
def test_every_step_ends_where_the_slope_along_it_vanishes(direction: str) -> None:
    model = rosenbrock()
    seen: list[State] = []
    found = model.solve(
        x0=[-1.2, 1.0], direction=direction, line_search="exact", max_iter=40, callback=seen.append
    )
    assert found.parameters["line_search"] == "exact"
    slopes = []
    for one, two in pairwise(seen):
        s: Vector = two.x - one.x
        g = model.gradient(two.x)
        assert two.fun <= one.fun + SIGMA * float(model.gradient(one.x) @ s) + 1e-14
        slopes.append(abs(float(g @ s)) / (abs(float(model.gradient(one.x) @ s)) + 1e-300))
    assert np.median(slopes) <= 1e-6


def test_conjugate_gradients_end_on_a_quadratic_after_n_steps() -> None:
    model = slomodel.compile("dim n = 4\nvar x[n]\nminimize sum((i + 1) * (x[i] - i)^2 for i in n)")
    # No step is cut short, so that each is conjugate to the others.
    found = model.solve(
        x0=np.ones(4), direction="cg", line_search="exact", gtol=1e-10, delta_bar=10.0
    )
    assert found.success
    assert found.nit <= 4
    np.testing.assert_allclose(found.x, np.arange(4.0), atol=1e-8)


@pytest.mark.parametrize(
    ("objective", "words"),
    [("exp(x) - x", "is not seen to be one"), ("x^18", "has degree 18")],
)
def test_what_it_is_not_for(objective: str, words: str) -> None:
    model = slomodel.compile(f"var x\nminimize {objective}")
    with pytest.raises(DomainError, match=words):
        model.solve(x0=[1.0], line_search="exact")
    with pytest.raises(DomainError, match="is not seen to be one"):
        solve(parabola(), [0.0, 0.0], line_search="exact")


def test_a_ray_along_which_every_change_is_lost() -> None:
    ray, at = ray_along(Polynomial([1.0, -1e-300]), SIGMA, 4)
    assert ray.minimiser(at, np.ones(1), 1.0, -1e-300, 1e-30) is None
