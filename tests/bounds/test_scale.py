"""The bounds of s·f are s times those of f: a number that is no part of f would show here."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from bounds.fuzz import setting_of
from bounds.test_layered_networks import NETS, asked
from random_graphs import KINDS, throw

import slomodel.functions as table
from slomodel.bounds import Setting
from slomodel.bounds.lipschitz import STRATEGIES, Strategy
from slomodel.bounds.strategies.layered_networks import layered_networks
from slomodel.ir import build

pytestmark = [
    pytest.mark.filterwarnings("ignore::slomodel.ModelWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
POWERS = (-30, 30)
"""Of 2: a product with one is exact."""
USUAL = (1e-60, 1e60)
"""Sizes of bounds whose squares and fourth powers neither overflow nor come near to 0."""
of_every = pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda one: one.__name__)


def scaled(one: Setting, power: int) -> Setting:
    factor = build.const(math.ldexp(1.0, power))
    return replace(one, objective=table.mul(factor, one.objective), kept={})


def check(strategy: Strategy, one: Setting, radius: float) -> bool:
    """Whether the strategy has a bound that could be compared."""
    with np.errstate(all="ignore"):
        found = strategy(one, radius)
        others = {power: strategy(scaled(one, power), radius) for power in POWERS}
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


@pytest.mark.parametrize("radius", [0.01, 1.0])
@pytest.mark.parametrize("name", NETS)
@of_every
def test_networks(strategy: Strategy, name: str, radius: float) -> None:
    check(strategy, asked(name), radius)


@pytest.mark.parametrize("kind", KINDS)
@of_every
def test_random_graphs(strategy: Strategy, kind: str) -> None:
    for number in range(3):
        with np.errstate(all="ignore"):
            example = throw(np.random.default_rng(number), kind, 2)
        check(strategy, setting_of(example), 0.1)


def test_a_network_whose_loss_is_large() -> None:
    """Bounds once took a stand-in of 1 for a norm that was not known yet."""
    one = asked("one output")
    assert check(layered_networks, one, 0.1)
    large = scaled(one, 500)
    with np.errstate(all="ignore"):
        found, other = layered_networks(one, 0.1), layered_networks(large, 0.1)
    assert found is not None
    assert other is not None
    assert math.ldexp(other.L1, -500) >= found.L1 * (1.0 - 1e-9)
