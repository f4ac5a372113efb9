"""Intervals that are computed once: the same as without a cache, whatever was computed before."""

from __future__ import annotations

import numpy as np
import pytest

import slomodel.functions as table
from slomodel.bounds.arithmetic.interval import Interval, interval, point
from slomodel.bounds.ranges import range_cache
from slomodel.bounds.ranges.enclose import enclose
from slomodel.bounds.ranges.range_cache import caching_ranges
from slomodel.functions.compound import stop_gradient
from slomodel.ir import build

X = build.variable("x", ())
GRAPH = table.exp(table.mul(X, table.add(X, build.const(0.1))))
STILL = stop_gradient(X)


def _box(rng: np.random.Generator) -> Interval:
    return interval(*np.sort(rng.normal(size=(2, 7)), axis=0))


def _found(box: Interval) -> Interval:
    return enclose([GRAPH], {X: box}, {}, 1)[GRAPH]


@pytest.mark.parametrize("most", [2**22, 40])
def test_ranges_are_those_without_a_cache(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Also where entries are dropped, so that new objects take the identity of old ones."""
    monkeypatch.setattr(range_cache, "MOST_NUMBERS", most)
    with caching_ranges():
        for seed in [*range(30), *range(30)]:
            box = _box(np.random.default_rng(seed))
            found = _found(box)
            expected = np.exp(box.lo * (box.lo + 0.1))
            assert (found.lo <= expected).all()
            assert (expected <= found.hi).all()
    for seed in (3, 29):
        box = _box(np.random.default_rng(seed))
        with caching_ranges():
            again = _found(box)
        np.testing.assert_array_equal(again.lo, _found(box).lo)
        np.testing.assert_array_equal(again.hi, _found(box).hi)


def test_equal_boxes_give_the_same_object_and_others_do_not() -> None:
    with caching_ranges():
        first = _found(_box(np.random.default_rng(0)))
        assert _found(_box(np.random.default_rng(0))) is first
        assert _found(_box(np.random.default_rng(1))) is not first
    assert _found(_box(np.random.default_rng(0))) is not first


def test_a_result_shares_no_array_with_its_operand() -> None:
    """Another node may have the operand's interval later, and is not the same factor."""
    box = point(np.arange(7.0))
    with caching_ranges():
        found = enclose([STILL], {X: box}, {}, 1)[STILL]
    assert found.is_point
    assert found.lo is not box.lo
