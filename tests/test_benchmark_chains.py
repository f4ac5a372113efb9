"""The chains that compile times are measured on: their lengths, and a derivative of each."""

from __future__ import annotations

import sys
from types import FrameType

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


def _calls_and_nodes(name: str, nodes: int) -> tuple[int, int]:
    """Calls of Python functions to the problem of a chain, and its nodes after the rules."""
    made, calls = chain(name, nodes), 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        model = slomodel.compile(made.source, data=made.data, backend="numpy")
    finally:
        sys.setprofile(None)
    return calls, len(postorder(model._problem.objective))


def test_a_node_takes_a_limited_number_of_calls() -> None:
    """A rule that follows each path down, and not each node, takes several thousand a node."""
    (few, short), (many, long) = (_calls_and_nodes("Runge–Kutta", nodes) for nodes in (75, 150))
    assert many - few < 1500 * (long - short)


def test_the_exponent_of_growth() -> None:
    row = Growth({100: 0.5, 1_000: 1.0, 10_000: 100.0})
    assert row.exponent == pytest.approx(2.0)
    assert row.expected(100_000) == pytest.approx(10_000.0)
