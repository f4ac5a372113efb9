"""What agp adds to the paper: units, rounding, and constants that are missing or estimated."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from solve.objectives import Vector, recorded_constants, recorded_problem, rosenbrock, traces

from slomodel.errors import DomainError
from slomodel.solve import Functions, Solution, solve


def in_units(problem: str, scale: float, **options: Any) -> Solution:
    """A run on `scale` times the problem, its tolerance and constants in the same units."""
    inner, constants = recorded_problem(problem), recorded_constants(problem)

    def over(centre: Vector, radius: float) -> tuple[float, float]:
        L1, L2 = constants(centre, radius)
        return scale * L1, scale * L2

    f = Functions(lambda x: scale * inner.fun(x), lambda x: scale * inner.jac(x), inner.n)
    x0 = traces()["problems"][problem]["x0"]
    return solve(f, x0, method="agp", lipschitz=over, gtol=1e-5 * scale, scaled=False, **options)


@pytest.mark.parametrize("problem", ["quartic", "wells", "expsum"])
@pytest.mark.parametrize("scale", [2.0**-30, 2.0**20])
def test_the_units_of_f_do_not_matter(problem: str, scale: float) -> None:
    one, other = in_units(problem, 1.0, D=0.1), in_units(problem, scale, D=0.1)
    assert one.success
    assert one.status == other.status
    assert abs(one.nit - other.nit) <= 1
    assert_allclose(one.x, other.x, atol=1e-6)


def test_with_the_lift_of_the_paper_they_do() -> None:
    small, large = (in_units("quartic", s, D=0.1, lift="paper") for s in (2.0**-12, 1.0))
    assert small.nfev > 1.5 * large.nfev


@pytest.mark.sampled(2)
@pytest.mark.parametrize("problem", ["quartic", "ridge", "wells", "chain"])
def test_without_a_tolerance_it_goes_to_the_floor(problem: str) -> None:
    found = solve(
        recorded_problem(problem),
        traces()["problems"][problem]["x0"],
        method="agp",
        lipschitz=recorded_constants(problem),
        gtol=0.0,
        max_iter=300,
        verify=True,
    )
    assert found.status == "precision", found.message
    assert found.gradient_norm < 1e-13
    assert found.certificate is not None
    assert found.certificate.holds, found.certificate.summary


def test_sampled_constants_are_doubled_where_they_are_too_small() -> None:
    found = solve(rosenbrock(), [-1.2, 1.0], method="agp", safety=0.05, samples=4, gtol=1e-5)
    assert found.success
    assert found.violations > 0
    assert "too small" in found.message
    assert all(epoch.L2 is not None for epoch in found.epochs)
    assert np.all(np.diff(found.history.fun) <= 0.0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"lipschitz": 3.0}, "agp needs L1 and L2"),
        ({"lipschitz": lambda centre, radius: 3.0}, "agp needs L2"),
        ({"lift": "paper", "D": 0.01, "gtol": 1e-4}, "6ε^¼"),
        ({"lift": "both"}, "expected one of scale-free, paper"),
        ({"d": 0.1}, "agp has no option 'd'"),
        ({"D": "auto"}, "D='auto' is for pgd and tgd alone"),
    ],
)
def test_what_it_cannot_do_with(options: dict[str, Any], said: str) -> None:
    with pytest.raises(DomainError, match="(?s)" + said.replace("^", r"\^")):
        solve(rosenbrock(), [-1.2, 1.0], method="agp", scaled=False, **options)


def test_a_flat_ball_is_left_at_once_and_balls_grow() -> None:
    """On a quadratic function L2 = 0: the default ball is not 0.1 but as large as x."""
    f = Functions(lambda x: float(x @ x), lambda x: 2.0 * x, 2)
    found = solve(f, [300.0, 400.0], method="agp", lipschitz=lambda centre, radius: (2.0, 0.0))
    assert found.success
    assert found.nit < 30
    assert found.epochs[0].D > 100.0
