"""The radius at which L1 doubles: closed forms, and the ends of its range."""

import math

import pytest
from bounds.settings import setting

from slomodel.bounds import bounds
from slomodel.bounds.result import MOST_RADIUS

# Text, centre and the radius at which the largest second derivative is twice that at the centre.
EXACT = {
    "x⁴": ("var x minimize x^4", [3.0], 3.0 * (math.sqrt(2.0) - 1.0)),
    "far": ("var x minimize x^4", [1e5], 1e5 * (math.sqrt(2.0) - 1.0)),
    "exp": ("var x minimize exp(x)", [0.3], math.log(2.0)),
    "steep": ("var x minimize exp(1000 * x)", [0.0], math.log(2.0) / 1000.0),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", EXACT)
def test_within_a_percent_below(name: str) -> None:
    text, centre, exact = EXACT[name]
    found = bounds(setting(text, centre), 1.0).doubling_radius()
    assert 0.98 * exact <= found <= exact * (1.0 + 1e-9)


def test_the_ends() -> None:
    def doubling(text: str, *centre: float) -> float:
        return bounds(setting(text, list(centre)), 1.0).doubling_radius()

    assert doubling("var x, y minimize x * y + x^2", 1.0, 2.0) == math.inf
    assert doubling("var x minimize x^4", 0.0) == 0.0
    assert doubling("var x minimize x * sqrt(x)", 0.0) == 0.0


@pytest.mark.slow
def test_a_constant_that_holds_everywhere_never_doubles() -> None:
    found = bounds(setting("var x[2] minimize logsumexp(x)", [0.0, 0.0]), 1.0).doubling_radius()
    assert found >= MOST_RADIUS / 4.0
