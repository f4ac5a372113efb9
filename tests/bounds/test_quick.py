"""The quick bound: never below the best one, and close to it for polynomials."""

import math

import numpy as np
import pytest

import slomodel
from slomodel.bounds import bounds, quick_bound

TEXTS = {
    "rosenbrock": "var x[3] minimize sum(100 * (x[i+1] - x[i]^2)^2 + (1 - x[i])^2 for i in 2)",
    "quartic": "var x[2] minimize sum(x^4) + sumsq(x - 1)",
    "product": "var u, v minimize (u * v - 1)^2",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("radius", [0.0, 0.3, 10.0])
def test_between_the_least_and_a_little_more(name: str, radius: float) -> None:
    model = slomodel.compile(TEXTS[name])
    setting = model._part(np.zeros(model.n))
    least, quick = bounds(setting, radius).L1, quick_bound(setting, radius)
    assert least <= quick <= 1.3 * least + 1e-12


def test_no_bound_where_no_quick_rule_has_one() -> None:
    model = slomodel.compile("var x minimize sqrt(1 + x^2)")
    assert quick_bound(model._part(np.zeros(1)), 1.5) == math.inf
    assert math.inf > bounds(model._part(np.zeros(1)), 1.5).L1
