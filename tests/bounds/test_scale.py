"""Bounds scale with f and with the units of x: no absolute number enters."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from bounds.fuzz import part_of, scaled
from bounds.objective_graph import ObjectiveGraph
from bounds.rules.test_layered_networks import NETS, asked
from bounds.settings import claimed, setting
from bounds.witness import seek
from marks import only
from random_graphs import KINDS, throw

from slomodel.bounds import ObjectivePart, bounds
from slomodel.bounds.enclosure import Enclosure
from slomodel.bounds.rules.layered_networks import layered_networks
from slomodel.bounds.rules.table import RULES

pytestmark = [
    pytest.mark.filterwarnings("ignore::slomodel.ModelWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
Bound = Callable[[ObjectivePart, float], Enclosure | None]
POWERS = (-30, 30)
"""Of 2: a product with one is exact."""
USUAL = (1e-60, 1e60)
"""Sizes of bounds whose squares and fourth powers neither overflow nor come near to 0."""
of_every = pytest.mark.parametrize(
    "strategy",
    [rule.bound for rule in RULES if not rule.closes_gaps],
    ids=lambda one: one.__name__,
)


def check(strategy: Bound, one: ObjectivePart, radius: float) -> bool:
    """Whether the strategy has a bound that could be compared."""
    with np.errstate(all="ignore"):
        found = claimed(strategy, one, radius)
        others = {power: claimed(strategy, scaled(one, power), radius) for power in POWERS}
    if found is None:
        return False
    compared = False
    for power, other in others.items():
        assert other is not None
        for own, its in ((found.L1, other.L1), (found.L2, other.L2)):
            if not USUAL[0] < own < USUAL[1]:
                continue
            compared = True
            assert math.ldexp(its, -power) == pytest.approx(own, rel=1e-6), (strategy, power)
    return compared


@pytest.mark.sampled(5)
@pytest.mark.parametrize("radius", only(1.0, [0.01, 1.0]))
@pytest.mark.parametrize("name", NETS)
@of_every
def test_networks(strategy: Bound, name: str, radius: float) -> None:
    check(strategy, asked(name), radius)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("number", only(0, range(3)))
@pytest.mark.parametrize("kind", KINDS)
@of_every
def test_random_graphs(strategy: Bound, kind: str, number: int) -> None:
    with np.errstate(all="ignore"):
        example = throw(np.random.default_rng(number), kind, 2)
    check(strategy, part_of(example), 0.1)


def test_a_network_whose_loss_is_large() -> None:
    """Bounds once took a stand-in of 1 for a norm that was not known yet."""
    one = asked("one output")
    assert check(layered_networks, one, 0.1)
    large = scaled(one, 500)
    with np.errstate(all="ignore"):
        found, other = claimed(layered_networks, one, 0.1), claimed(layered_networks, large, 0.1)
    assert found is not None
    assert other is not None
    assert math.ldexp(other.L1, -500) >= found.L1 * (1.0 - 1e-9)


WRITTEN = {
    "var x minimize where(x > 0, x^2, 0)": [0.2],
    "var x minimize 1e13*where(x > 0, 1e-13*x, 0)": [0.2],
    "var x minimize where(abs(x) <= 1.345, x^2/2, 1.345*abs(x) - 0.9045125)": [1.0],
    "var x minimize abs(x)^3 + x*abs(x)": [0.3],
    "var x minimize relu(x) + x^2": [0.3],
    "var x, y minimize huber(x - y) + exp(x)": [0.3, 0.4],
    "var x, y minimize (x*y - 1)^2 + log(1 + x^2)": [0.3, 0.4],
    "var x, y minimize sqrt(x^2 + y^2 + 1) + cos(x)": [0.3, 0.2],
    "var x[2] minimize x[0]^2/x[1] + logsumexp(x)": [1.0, 3.0],
    "var u[2], v[2] minimize sumsq(outer(u, v) - 1)": [1.0, 0.5, 0.3, 2.0],
    "var x[3] minimize norm2(x) + tanh(x[0])*sigmoid(x[1])": [1.0, 0.5, 0.3],
}
SCALES = ((400, 0), (-400, 0), (0, 60), (0, -60), (0, 400), (0, -400), (300, -200))
"""Exponents of the units of f and of x."""
LOOSER = 1.25
"""Near the ends of the range of doubles other rules win, so that a bound is near the scaled one."""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::slomodel.NonsmoothWarning")
@pytest.mark.parametrize("radius", [0.1, 1.0])
@pytest.mark.parametrize("text", WRITTEN)
def test_all_rules_together_in_other_units(text: str, radius: float) -> None:
    """Bounds scale, up to 2^±400, and are infinite where they were, whatever the numbers are."""
    one = setting(text, WRITTEN[text])
    own = bounds(one, radius)
    with np.errstate(all="ignore"):
        seen = seek(ObjectiveGraph(one), radius, np.random.default_rng(0))
    for power, unit in SCALES:
        its = bounds(scaled(one, power, unit), math.ldexp(radius, -unit))
        first = (own.L1, its.L1, seen.L1.value, power + 2 * unit)
        second = (own.L2, its.L2, seen.L2.value, power + 3 * unit)
        for expected, found, reached, exponent in (first, second):
            if expected == 0.0 or math.isinf(expected):
                assert found == expected, (power, unit)
            elif abs(exponent + math.frexp(expected)[1]) < 1000:
                back = math.ldexp(found, -exponent)
                assert reached * (1.0 - 1e-9) <= back, (power, unit)
                assert expected / LOOSER <= back <= expected * LOOSER, (power, unit)
