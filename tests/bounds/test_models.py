"""Every model of models/: a bound or a reason at each radius, above all estimates."""

import math
from itertools import pairwise

import numpy as np
import pytest
from marks import only, slow_unless

import slomodel
from benchmarks.bounds import OTHERS, models
from benchmarks.cases import MODELS, cases
from slomodel.bounds.ball import Ball, norm

CASES = {f"{case.model} {case.size}".strip(): case for case in cases(quick=True)}
SLOW = ("autoencoder", "neural_net", "student_t 10000")
SMALL = slow_unless(
    lambda name: name not in SLOW,
    [*(name for name in CASES if "1000000" not in name), *OTHERS],
)
RADII = (0.0, 1e-6, 0.1, 1.0, 100.0)
FEW, PAIRS = 20, 300
# Rounding of a Hessian-vector product, as a share of ‖H‖.
ROUNDING = 1e-11

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")


def compiled(name: str) -> slomodel.Model:
    if name in OTHERS:
        return next(models(name))
    case = CASES[name]
    return slomodel.compile(case.source, data=case.data, dims=case.dims)


def test_every_model_is_queried() -> None:
    asked = {*OTHERS, *(case.model for case in CASES.values())}
    assert {file.stem for file in MODELS.glob("*.slo")} <= asked


LARGE = slow_unless(lambda name: False, [name for name in CASES if "1000000" in name])


# Five radii of a sum of 2,000 terms take seconds; that model is bounded at one radius below.
AT_EVERY_RADIUS = slow_unless(lambda name: name != "tukey_regression 2000x100", SMALL)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", [*AT_EVERY_RADIUS, *LARGE])
def test_a_bound_or_a_reason_at_every_radius(name: str) -> None:
    model = compiled(name)
    first = model.bounds(model.x0(), RADII[0])
    found = [first, *(first.at(radius) for radius in RADII[1:])]
    for radius, one in zip(RADII, found, strict=True):
        assert one.radius == radius
        assert one.L1 >= 0.0
        assert one.L2 >= 0.0
        assert math.isfinite(one.L1 + one.L2) or one.reason
        # Of many unknowns, both ends of the spectrum take seconds.
        assert model.n > 100 or one.explain()
    for small, large in pairwise(found):
        assert small.L1 <= large.L1 * (1.0 + 1e-9)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("radius", only(1.0, [1e-3, 1.0]))
@pytest.mark.parametrize("name", SMALL)
def test_no_estimate_is_above_a_bound(name: str, radius: float) -> None:
    model = compiled(name)
    center = model.x0()
    proved = model.bounds(center, radius)
    seen = model.sample_bounds(center, radius, samples=10)
    assert seen.L1 * (1.0 - 1e-9) <= proved.L1
    assert seen.L2 * (1.0 - 1e-5) <= proved.L2


@pytest.mark.sampled(20)
@pytest.mark.parametrize("pairs", only(FEW, [FEW, PAIRS]))
@pytest.mark.parametrize("name", SMALL)
def test_the_hessian_turns_no_faster_than_the_bound(name: str, pairs: int) -> None:
    """‖H(x)v − H(z)v‖ ≤ L2‖x − z‖ for v of length 1, x and z in the ball."""
    model = compiled(name)
    center, rng = model.x0(), np.random.default_rng(0)
    for radius in (1.0,) if pairs == FEW else (0.01, 1.0):
        found = model.bounds(center, radius)
        ball = Ball(center, radius)
        for _ in range(pairs // 2 if math.isfinite(found.L2) else 0):
            x, z, v = ball.random(rng), ball.random(rng), rng.standard_normal(model.n)
            v /= norm(v)
            at_x, at_z = model.hvp(x, v), model.hvp(z, v)
            slack = ROUNDING * (norm(at_x) + norm(at_z))
            assert norm(at_x - at_z) <= found.L2 * norm(x - z) + slack
