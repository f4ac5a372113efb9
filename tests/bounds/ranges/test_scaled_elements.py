"""Ranges of elements over wide boxes, and of functions of any magnitude."""

from __future__ import annotations

import numpy as np
import pytest
from bounds.settings import claimed, setting

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.ranges.elements.element_functions import derivative_graphs
from slomodel.bounds.ranges.elements.element_ranges import element_ranges
from slomodel.bounds.rules.linear_predictors import linear_predictors
from slomodel.bounds.structure.linear_predictors import Elements, elements

SATURATING = "data e var x[3] minimize sum(x^2 / (e^2 + x^2))"


def parts_of(text: str, **data: object) -> Elements:
    one = setting(text, [0.5] * 3, **data)
    found = elements(one.objective, one.variables)
    assert found is not None
    (own,) = found
    return own


def saturating(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """φ'' and φ''' of u²/(1 + u²)."""
    s = 1.0 + u**2
    return (2.0 - 6.0 * u**2) / s**3, 24.0 * u * (u**2 - 1.0) / s**4


@pytest.mark.parametrize("reach", [3.0, 300.0])
def test_wide_boxes_have_close_ranges(reach: float) -> None:
    """The largest sizes of φ'' and φ''' to 6 %, and no value outside."""
    own = parts_of("var x[3] minimize sum(x^2 / (1 + x^2))")
    graphs = derivative_graphs(own.value, own.arguments)
    centres = np.array([0.0, 0.7, -2.0])
    box = Interval(centres - reach, centres + reach)
    found = element_ranges(own.value, graphs, {own.arguments[0]: box}, {}, {})
    for k in range(3):
        u = np.concatenate([np.linspace(box.lo[k], box.hi[k], 20001), np.linspace(-2, 2, 4001)])
        u = u[(u >= box.lo[k]) & (u <= box.hi[k])]
        for values, slots in zip(saturating(u), ((0, 0), (0, 0, 0)), strict=True):
            lo, hi = found.derivatives[slots].lo[k], found.derivatives[slots].hi[k]
            assert lo <= np.min(values)
            assert np.max(values) <= hi
            assert max(-lo, hi) <= 1.06 * np.max(np.abs(values))


@pytest.mark.parametrize("scale", [1e-9, 1e-3])
def test_bounds_of_a_scaled_function_are_those_scaled(scale: float) -> None:
    for centre in (0.0, 2.0):
        plain = claimed(linear_predictors, setting(SATURATING, [centre] * 3, e=1.0), 0.5)
        scaled = claimed(
            linear_predictors, setting(SATURATING, [centre * scale] * 3, e=scale), 0.5 * scale
        )
        assert plain is not None
        assert scaled is not None
        assert scaled.L1 * scale**2 == pytest.approx(plain.L1, rel=1e-9)
        assert scaled.L2 * scale**3 == pytest.approx(plain.L2, rel=1e-9)
