"""The chains that compile times are measured on: their lengths, and a derivative of each."""

from __future__ import annotations

import numpy as np
import pytest

import slomodel
from benchmarks.chains import CHAINS, chain
from benchmarks.compile_time import Growth
from slomodel.ir.walk import postorder


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_is_as_long_as_it_says_and_has_a_gradient(name: str) -> None:
    made = chain(name, 300)
    model = slomodel.compile(made.source, data=made.data, backend="numexpr")
    nodes = len(postorder(model._problem.objective))
    # What rolling gathers is short whatever its length.
    assert nodes < 600
    assert nodes > 150 or model._problem.remarks
    x = np.full(model.n, made.at)
    v = np.cos(np.arange(model.n))
    h = 1e-6
    slope = (model.value(x + h * v) - model.value(x - h * v)) / (2.0 * h)
    gradient = model.gradient(x)
    assert gradient @ v == pytest.approx(slope, rel=1e-5, abs=1e-5 * np.linalg.norm(gradient))


def test_the_exponent_of_growth() -> None:
    row = Growth({100: 0.5, 1_000: 1.0, 10_000: 100.0})
    assert row.exponent == pytest.approx(2.0)
    assert row.expected(100_000) == pytest.approx(10_000.0)
