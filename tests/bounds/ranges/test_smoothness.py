"""Smoothness that is proved of objectives over boxes."""

from __future__ import annotations

import numpy as np
import pytest
from bounds.settings import setting

from slomodel import functions as fn
from slomodel.bounds.arithmetic.interval import around
from slomodel.bounds.ranges.enclose import boxed, enclose
from slomodel.bounds.ranges.smoothness import OUTSIDE, smoothness
from slomodel.ir import build
from slomodel.ir.dims import literal
from slomodel.ir.expr import Scan
from slomodel.ir.function import ANALYTIC

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.NonsmoothWarning")


def _order(text: str, centre: list[float], radius: float) -> tuple[int, str]:
    asked = setting(text, centre)
    boxes = boxed(asked.values)
    boxes.update({v: around(asked.values[v], radius) for v in asked.variables})
    found = enclose([asked.objective], boxes, asked.sizes)
    result = smoothness(asked.objective, found, spans=asked.spans)
    return int(result.order), result.reason


@pytest.mark.parametrize(
    ("text", "centre", "radius", "order"),
    [
        ("var x minimize abs(x)", [0.5], 1.0, 0),
        ("var x minimize abs(x)", [2.0], 1.0, ANALYTIC),
        ("var x minimize abs(x)", [1.0], 1.0, 0),
        ("var x minimize relu(x)^2", [0.5], 1.0, 1),
        ("var x minimize relu(x)^3", [0.5], 1.0, 2),
        ("var x minimize relu(x)^2.5", [0.5], 1.0, 2),
        ("var x minimize 3 * relu(2 * x - 1)^4", [0.5], 1.0, 3),
        ("var x minimize relu(x) * x", [0.5], 1.0, 1),
        ("var x[3] minimize sumsq(relu(x))", [0.1, 2.0, 2.0], 1.0, 1),
        ("var x[3] minimize sumsq(relu(x))", [3.0, 2.0, 2.0], 1.0, ANALYTIC),
        (
            "dim N = 2 var x[N] minimize sum(relu(x[i]) * relu(x[j]) for i in N, j in N)",
            [0.1, 2.0],
            1.0,
            0,
        ),
        ("var x, y minimize max(x, y)", [1.0, 1.0], 0.5, 0),
        ("var x, y minimize max(x, y)", [3.0, 0.0], 1.0, ANALYTIC),
        ("var x[3] minimize max(x)", [3.0, 0.0, 2.5], 0.5, 0),
        ("var x[3] minimize max(x)", [3.0, 0.0, 1.5], 0.5, ANALYTIC),
        ("var x minimize huber(x)", [0.5], 1.0, 1),
        ("var x minimize huber(x)", [0.0], 0.9, ANALYTIC),
        ("var x minimize huber(x, -1)", [0.3], 0.4, 0),
        ("var x minimize huber(x, -1)", [-0.5], 0.4, ANALYTIC),
        ("var x, d minimize huber(x, d)", [0.0, 0.3], 0.4, 0),
        ("var x, d minimize huber(x, d)", [1.0, 0.0], 0.4, ANALYTIC),
        ("var x, d minimize huber(x, d)", [0.0, 1.0], 0.6, 1),
        ("var x minimize where(x > 0, x^2, 0)", [0.5], 1.0, 1),
        ("var x minimize where(x > 0, x^3, 0)", [0.5], 1.0, 2),
        ("var x minimize where(x > 0, x^2, 1)", [0.5], 1.0, -1),
        ("var x minimize where(x > 0, x, 0)", [0.5], 1.0, 0),
        ("var x minimize where(x > 0, log(x), 0)", [2.0], 1.0, ANALYTIC),
        ("var x minimize where(x > 0, log(x), 0)", [-2.0], 1.0, ANALYTIC),
        ("var x minimize where(x > 0, log(x), 0)", [0.0], 1.0, OUTSIDE),
        # A comparison with what has no value is false: there the choice jumps.
        ("var x minimize where(sqrt(x) > -1, x^2, 5)", [0.0], 1.0, -1),
        ("var x minimize where(not log(x) > 3, x^2, 5)", [0.0], 1.0, -1),
        ("var x minimize where(max(log(x), -3) > -5, x^2, 5)", [0.0], 1.0, -1),
        ("var x minimize where(1/x < 100, x^2, 5)", [0.5], 1.0, -1),
        ("var x minimize where(sqrt(x) > -1, x^2, 5)", [2.0], 1.0, ANALYTIC),
        ("var x minimize where(abs(x) > -1, x^2, 5)", [0.0], 1.0, ANALYTIC),
        ("var x minimize log(x)", [1.0], 1.0, ANALYTIC),
        ("var x minimize log(x)", [1.0], 1.1, OUTSIDE),
        ("var x minimize x^1.5", [1.0], 1.1, OUTSIDE),
        ("var x minimize 1/x", [1.0], 1.1, OUTSIDE),
        ("var x, y minimize sqrt(x^2 + y^2)", [1.0, 1.0], 0.5, ANALYTIC),
        ("var x[2] minimize norm2(x)", [1.0, 0.0], 1.0, 0),
        ("var x[2] minimize logsumexp(x)", [1.0, 1.0], 5.0, ANALYTIC),
    ],
)
def test_order(text, centre, radius, order):
    found, reason = _order(text, centre, radius)
    assert found == order
    assert bool(reason) == (order < ANALYTIC)


def test_the_reason_names_the_part_and_its_line():
    text = "var x\nminimize x^2\n  + abs(x - 1)"
    assert "`abs(x - 1)` in line 3" in _order(text, [0.5], 1.0)[1]
    assert "no value" in _order("var x minimize log(x)", [1.0], 2.0)[1]


def test_cells_are_distinguished():
    asked = setting("var x minimize abs(x)", [0.0])
    (x,) = asked.variables
    found = enclose([asked.objective], {x: around([0.0, 2.0], 1.0)}, {}, 1)
    assert smoothness(asked.objective, found, 1).order.tolist() == [0, ANALYTIC]


def test_operands_that_vary_with_the_cells_and_others_meet():
    """y[i] = a y[i-1] + |x| with data a: only one operand of the scan has cells."""
    n = (literal(3),)
    x, a = build.variable("x", n), build.data("a", n)
    scan = build.sum_over(Scan(a, fn.abs(x), 0), (0,))
    cells = around(np.array([[1.0, 1.0, 2.0], [0.0, 1.0, 2.0]]), 0.5)
    boxes = boxed({a: np.ones(3)}, 1) | {x: cells}
    found = enclose([scan], boxes, {}, 1)
    assert smoothness(scan, found, 1).order.tolist() == [ANALYTIC, 0]
