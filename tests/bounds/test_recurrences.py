"""Bounds of recurrences that remain loops, against the same steps written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bounds.settings import setting

from slomodel.bounds import ObjectivePart
from slomodel.bounds.arithmetic.interval import Interval, around
from slomodel.bounds.closure import close
from slomodel.bounds.ranges import enclose as enclosures
from slomodel.bounds.ranges.enclose import boxed, enclose
from slomodel.bounds.ranges.hessian import derivatives
from slomodel.bounds.ranges.range_cache import caching_ranges
from slomodel.bounds.ranges.taylor.taylor_ranges import taylor_ranges
from slomodel.bounds.rules.entries_over_ball import entries_over_the_ball
from slomodel.bounds.structure.recurrences import written_out
from slomodel.ir.expr import Expr, Recur
from slomodel.ir.walk import postorder
from slomodel.reference import evaluate
from tests.marks import slow_unless
from tests.random_recurrences import SMOOTH, setting_of_seed

MOST = 2**24
SEEDS = range(24)


def _numbers(found: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.ravel(one) for one in found])


def _at(one: ObjectivePart, x: np.ndarray) -> dict[Expr, np.ndarray]:
    """The inputs of a setting at a point (n,)."""
    values, start = dict(one.values), 0
    for variable in one.variables:
        size = np.size(values[variable])
        values[variable] = x[start : start + size].reshape(np.shape(values[variable]))
        start += size
    return values


def _centre(one: ObjectivePart) -> np.ndarray:
    return np.concatenate([np.ravel(one.values[v]) for v in one.variables])


def _contains(a: Interval, value: np.ndarray) -> bool:
    slack = 1e-9 * (1.0 + np.abs(value))
    return bool(((a.lo <= value + slack) & (value - slack <= a.hi)).all())


@pytest.mark.parametrize("seed", slow_unless(lambda seed: seed < 3, SEEDS))
def test_values_and_gradients_stay_in_their_ranges(seed: int) -> None:
    """Over a box by intervals, over the ball by Taylor forms, and at the centre almost exactly."""
    loop = setting_of_seed(seed, SMOOTH)
    steps = written_out(loop, 10**6)
    assert any(isinstance(node, Recur) for node in postorder(loop.objective))
    assert not any(isinstance(node, Recur) for node in postorder(steps.objective))
    draw, centre, radius = np.random.default_rng(seed), _centre(loop), 0.05
    roots = (loop.objective, *loop.gradient)
    boxes = boxed(loop.values)
    at_centre = enclose(roots, boxes, loop.sizes)
    boxes.update({v: around(loop.values[v], radius) for v in loop.variables})
    over_box = enclose(roots, boxes, loop.sizes)
    over_ball = taylor_ranges(loop, radius, MOST)
    found = evaluate([steps.objective, *steps.gradient], steps.values, steps.sizes)
    for root, value in zip(roots, found, strict=True):
        assert _contains(at_centre[root], value)
        wide = at_centre[root].hi - at_centre[root].lo
        assert (wide <= 1e-6 * (1.0 + np.abs(value))).all()
    for _ in range(6):
        d = draw.normal(size=centre.size)
        values = _at(steps, centre + radius * d / np.linalg.norm(d))
        found = evaluate([steps.objective, *steps.gradient], values, steps.sizes)
        for root, value in zip(roots, found, strict=True):
            assert _contains(over_box[root], value)
            assert _contains(over_ball[root], value)


def _hessian(one: ObjectivePart, x: np.ndarray) -> np.ndarray:
    graphs, values = derivatives(one), _at(one, x)
    rows = []
    for unit in np.eye(one.n):
        along, start = {}, 0
        for v, variable in zip(graphs.v, one.variables, strict=True):
            size = np.size(values[variable])
            along[v] = unit[start : start + size].reshape(np.shape(values[variable]))
            start += size
        rows.append(_numbers(evaluate(graphs.second, {**values, **along}, one.sizes)))
    return np.array(rows)


@pytest.mark.parametrize("seed", slow_unless(lambda seed: seed < 2, SEEDS))
def test_no_hessian_in_the_ball_exceeds_the_bounds(seed: int) -> None:
    loop, radius = setting_of_seed(seed, SMOOTH), 0.02
    steps, centre = written_out(loop, 10**6), _centre(loop)
    enclosure = entries_over_the_ball(loop, radius)
    assert enclosure is not None
    found = close(enclosure, radius)
    L1, L2 = found.first.value, found.second.value
    assert np.isfinite(L1), enclosure.reason
    draw = np.random.default_rng(seed)
    d = draw.normal(size=centre.size)
    other = centre + radius * d / np.linalg.norm(d)
    first, second = _hessian(steps, centre), _hessian(steps, other)
    largest = max(np.linalg.norm(first, 2), np.linalg.norm(second, 2))
    assert largest <= L1 * (1 + 1e-9)
    assert np.linalg.norm(second - first, 2) <= L2 * radius * (1 + 1e-6)
    assert largest >= L1 / 20


def test_the_states_of_an_inner_recurrence_are_enclosed_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once for each step of the outer one, whichever states its updates read."""
    one = setting(
        "dim m = 3, n = 4\nvar a, b\n"
        "let P[i in m, j in n] = where(j == 0, a, sin(a * P[i, j-1] + Q[i, j-1])"
        " + where(i == 0, 0, P[i-1, j]))\n"
        "and Q[i in m, j in n] = where(j == 0, b, cos(b * Q[i, j-1] * P[i, j-1]))\n"
        "minimize sumsq(P) + sumsq(Q)",
        [0.3, 0.4],
    )
    known, lengths = enclosures.states_over, []

    def counted(node: Recur, *rest: Any) -> list[Interval]:
        lengths.append(node.loop.length.size(one.sizes))
        return known(node, *rest)

    monkeypatch.setattr(enclosures, "states_over", counted)
    with caching_ranges():
        enclose([one.objective], boxed(one.values), one.sizes)
    assert sorted(lengths) == [3, 4, 4, 4]
