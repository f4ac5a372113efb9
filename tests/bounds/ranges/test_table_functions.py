"""Derivatives of functions of the table are taken from their records, values beside them or not."""

from __future__ import annotations

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.ranges.elements.element_ranges import element_ranges
from slomodel.calculus import jvp
from slomodel.functions import softplus
from slomodel.ir import build
from slomodel.ir.expr import Expr


def test_values_beside_derivatives_change_no_range() -> None:
    u = build.data("u", ())
    graphs: list[Expr] = [softplus(u)]
    for _ in range(3):
        graphs += jvp((graphs[-1],), {u: build.const(1.0)})
    box = {u: Interval(np.array([-2.0, 0.5]), np.array([3.0, 0.75]))}
    orders = {(0,) * k: graph for k, graph in enumerate(graphs)}
    alone = {slots: graph for slots, graph in orders.items() if slots}
    ranges, others = (element_ranges(graphs[0], own, box, {}, {}) for own in (orders, alone))
    for slots in alone:
        np.testing.assert_array_equal(ranges.derivatives[slots].lo, others.derivatives[slots].lo)
        np.testing.assert_array_equal(ranges.derivatives[slots].hi, others.derivatives[slots].hi)
    # softplus''' is 0.0962 at its critical points ±log(2 + √3), and the record holds these
    assert others.derivatives[0, 0, 0].magnitude[0] < 0.0963
