"""Ranges by repeated subdivision: steep places far narrower than the ball are detected."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bounds.settings import setting
from hypothesis import given, settings
from hypothesis import strategies as st

import slomodel.functions as table
from slomodel.bounds import bounds
from slomodel.bounds.arithmetic.interval import interval, point
from slomodel.bounds.ranges.elements.element_functions import derivative_graphs
from slomodel.bounds.ranges.elements.element_ranges import element_ranges
from slomodel.ir.expr import Input
from slomodel.reference import evaluate

U, SCALE = Input("u", "variable", ()), Input("d", "data", ())
SMOOTH_SIZE = table.sqrt(table.add(SCALE, table.square(U)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("delta", [1e-2, 1e-8])
@pytest.mark.parametrize("radius", [1.0, 100.0])
def test_smooth_sizes_are_as_steep_as_at_zero(delta: float, radius: float) -> None:
    """(δ + u²)^½ has φ'' = δ (δ + u²)^(-3/2), at 0 δ^(-½), and |φ'''| at most 48/(25 √5) / δ."""
    one = setting(f"var x[3] minimize sum(sqrt({delta} + x .^ 2))", [0.3, -0.2, 0.5])
    found = bounds(one, radius)
    assert delta**-0.5 <= found.L1 <= 1.05 * delta**-0.5
    steepest = 48.0 / (25.0 * math.sqrt(5.0)) / delta
    assert steepest <= found.L2 <= 1.5 * steepest


def test_least_squares_with_a_smooth_penalty() -> None:
    """More rows than unknowns, whose Gram matrix would hide the sum over elements."""
    rng = np.random.default_rng(0)
    A, delta = rng.standard_normal((40, 5)), 1e-4
    text = "dim N, n data A[N, n], y[N] var x[n] minimize sumsq(A @ x - y)"
    one = setting(f"{text} + sum(sqrt({delta} + x.^2))", [0.1] * 5, A=A, y=rng.standard_normal(40))
    exact = 2.0 * np.linalg.norm(A, 2) ** 2
    found = bounds(one, 1.0)
    assert exact <= found.L1 <= exact + 1.05 * delta**-0.5


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.floats(-20.0, 20.0), min_size=1, max_size=4),
    st.floats(1e-3, 30.0),
    st.floats(-9.0, 0.0),
    st.integers(0, 2**32 - 1),
)
def test_all_values_lie_in_the_ranges(
    centres: list[float], radius: float, power: float, seed: int
) -> None:
    graphs = derivative_graphs(SMOOTH_SIZE, (U,), 0)
    c, delta = np.array(centres), 10.0**power
    box = interval(c - radius, c + radius)
    data = {SCALE: point(np.full(len(c), delta))}
    found = element_ranges(SMOOTH_SIZE, graphs, {U: box}, data, {})
    rng = np.random.default_rng(seed)
    for _ in range(10):
        for k, (low, high) in enumerate(zip(box.lo, box.hi, strict=True)):
            at = np.clip(
                rng.choice([rng.uniform(low, high), 0.0, math.sqrt(delta / 4.0)]), low, high
            )
            exact = evaluate(tuple(graphs.values()), {U: at, SCALE: np.array(delta)}, {})
            for slots, value in zip(graphs, exact, strict=True):
                slack = 1e-9 * abs(value) + 1e-9 * delta ** (0.5 - 0.5 * len(slots))
                assert found.derivatives[slots].lo[k] - slack <= value
                assert value <= found.derivatives[slots].hi[k] + slack
