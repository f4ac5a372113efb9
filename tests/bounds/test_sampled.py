"""Estimates from below: close to the results of ascents, repeatable, never called bounds."""

import math

import numpy as np
import pytest

import slomodel
from slomodel.bounds.ball import Ball, norm
from slomodel.bounds.norms.lanczos import largest

METHODS = pytest.mark.parametrize("method", ["ascent", "pairs"])


def test_lanczos_finds_the_eigenvalue_of_largest_size() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 60):
        A = rng.standard_normal((n, n))
        H = A + A.T
        for sign in (1.0, -1.0):
            value, vector = largest(lambda v, M=sign * H: M @ v, rng.standard_normal(n))
            exact = np.linalg.eigvalsh(sign * H)
            extreme = exact[np.argmax(np.abs(exact))]
            assert value == pytest.approx(extreme, rel=2e-3)
            assert norm(vector) == pytest.approx(1.0)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_opposite_eigenvalues_of_any_scale_do_not_mix(scale: float) -> None:
    H = scale * np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.5]])
    value, _ = largest(lambda v: H @ v, np.array([1.0, 0.3, 0.2]))
    assert abs(value) == pytest.approx(scale, rel=1e-6)


def test_lanczos_stops_where_the_operator_is_zero_or_not_finite() -> None:
    assert largest(lambda v: 0.0 * v, np.ones(4))[0] == 0.0
    assert math.isnan(largest(lambda v: math.nan * v, np.ones(4))[0])


@METHODS
@pytest.mark.parametrize("radius", [0.0, 1e-3, 1.0])
def test_estimates_lie_below_the_constants(method: str, radius: float) -> None:
    model = slomodel.compile("var x[3] minimize sum(x^4)")
    center = [1.0, -2.0, 0.5]
    found = model.sample_bounds(center, radius, method=method)
    L1, L2 = 12.0 * (2.0 + radius) ** 2, 24.0 * (2.0 + radius)
    assert found.L1 <= L1 * (1.0 + 1e-9)
    assert found.L2 <= L2 * (1.0 + 1e-6)
    if method == "ascent":
        assert found.L1 >= L1 * (1.0 - 1e-3)
    if method == "ascent" and radius > 0.0:
        assert found.L2 >= L2 * 0.9
    assert (found.source, found.rigor, found.reason) == ("sampled", "estimated", "")
    assert "about" in found.explain()
    assert "≤" not in found.explain()


def test_ascent_sees_more_than_pairs_in_many_unknowns() -> None:
    model = slomodel.compile("models/sym_tensor.slo")
    center = model.x0()
    climbed = model.sample_bounds(center, 1.0)
    paired = model.sample_bounds(center, 1.0, method="pairs")
    assert climbed.L1 > 10.0 * paired.L1


@METHODS
def test_a_seed_repeats_the_estimate(method: str) -> None:
    model = slomodel.compile("var x[4] minimize sum(exp(x)) * sumsq(x)")
    first, same, other = (
        model.sample_bounds(model.x0(), 0.5, 20, seed=seed, method=method) for seed in (1, 1, 2)
    )
    assert (first.L1, first.L2) == (same.L1, same.L2)
    assert first.at(0.5).L1 == first.L1
    assert other.L1 != first.L1 or method == "ascent"


@METHODS
def test_points_outside_the_domain_are_left_out(method: str) -> None:
    found = slomodel.compile("var x minimize log(x)").sample_bounds([1.0], 2.0, method=method)
    assert 0.0 < found.L1 < math.inf


def test_points_of_a_ball() -> None:
    ball, rng = Ball(np.array([1.0, 2.0, 3.0]), 0.5), np.random.default_rng(0)
    points = np.array([ball.random(rng) for _ in range(2000)])
    distances = np.linalg.norm(points - ball.centre, axis=1)
    assert distances.max() <= 0.5 * (1 + 1e-12)
    assert abs(np.mean(distances <= 0.25) - 1 / 8) < 0.04
    outside = ball.inside(ball.centre + 3.0)
    assert norm(outside - ball.centre) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": "guess"}, "method: expected one of ascent, pairs, found 'guess'"),
        ({"samples": 0}, "samples: expected a whole number"),
        ({"samples": 2.5}, "samples: expected a whole number"),
        ({"radius": -1.0}, "radius: expected a number"),
        ({"radius": math.inf}, "finite centre and radius"),
        ({"center": [math.nan, 0.0]}, "finite centre and radius"),
    ],
)
def test_what_cannot_be_sampled(options: dict[str, object], said: str) -> None:
    model = slomodel.compile("var x[2] minimize sumsq(x)")
    with pytest.raises(slomodel.DomainError, match=said):
        model.sample_bounds(**{"center": [0.0, 0.0], "radius": 1.0} | options)
