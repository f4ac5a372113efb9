"""States of loops as power series, against their values in double precision."""

from __future__ import annotations

import numpy as np
import pytest
from bounds.settings import setting
from random_recurrences import FUNCTIONS, setting_of_seed

from slomodel.bounds import ObjectivePart
from slomodel.bounds.arithmetic.monomials import monomials
from slomodel.bounds.arithmetic.power_series import PowerSeries, variables
from slomodel.bounds.ranges.power_series import loops
from slomodel.bounds.ranges.power_series.propagate import SeriesPass, inputs_of
from slomodel.bounds.ranges.power_series.step_maps import step_map
from slomodel.ir.expr import Recur
from slomodel.ir.walk import postorder
from slomodel.reference import evaluate

SMOOTH = tuple(one for one in FUNCTIONS if "where" not in one)
KALMAN = """
dim T
data y[T]
var q, r
let a[t in T] = a[t-1] + k[t-1] * v[t-1] first 0
and P[t in T] = P[t-1] * (1 - k[t-1]) + exp(q) first 10
and v[t in T] = y[t] - a[t]
and S[t in T] = P[t] + exp(r)
and k[t in T] = P[t] / S[t]
minimize sum(log(S) + v^2 ./ S)
"""


def _series(own: ObjectivePart, degree: int, reach: float) -> dict[Recur, PowerSeries]:
    table = monomials(own.x.size, degree)
    given = inputs_of(own, variables(table, own.x, np.full(own.x.size, reach)))
    values = SeriesPass(table, own.sizes, 1.0).values_of(own.objective, given)
    return {
        node: one
        for node, one in values.items()
        if isinstance(node, Recur) and isinstance(one, PowerSeries)
    }


def _holds(own: ObjectivePart, degree: int, reach: float) -> int:
    """The number of states with bounds; asserts that they hold at points of the region."""
    found, rng = _series(own, degree, reach), np.random.default_rng(0)
    table = monomials(own.x.size, degree)
    nodes = [node for node, one in found.items() if np.isfinite(one.norm).all()]
    for length in (1.0, 0.99, 0.5):
        z = rng.standard_normal(own.x.size)
        z *= length / np.linalg.norm(z)
        values = {**own.values, **own.by_variable(own.x + reach * z)}
        for node, exact in zip(nodes, evaluate(nodes, values, own.sizes), strict=True):
            one = found[node]
            powers = np.prod(z**table.exponents, axis=1)[: len(one.c)]
            off = np.abs(np.tensordot(powers, one.c, 1) - exact)
            rounding = 1e-12 * (1.0 + np.abs(exact))
            assert (off <= one.tail * length ** (degree + 1) + one.error + rounding).all()
    return len(nodes)


@pytest.mark.parametrize("seed", range(8))
def test_states_of_random_loops_hold(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "_SMALL", -1.0)  # all loops in coordinates
    _holds(setting_of_seed(seed, SMOOTH), 2, 0.02)


def _kalman() -> ObjectivePart:
    y = np.cumsum(np.random.default_rng(1).standard_normal(60))
    return setting(KALMAN, [0.0, 0.0], y=y)


def test_what_a_filter_forgets_is_forgotten_by_its_remainders() -> None:
    own = _kalman()
    found = _series(own, 4, 0.3)
    assert all(np.isfinite(own.norm).all() for own in found.values())
    assert _holds(own, 4, 0.3) == len(found)
    # The variances forget their first one: so do their remainders.
    ends = [own.tail[-1] / max(own.tail.max(), 1e-30) for own in found.values()]
    assert max(ends) <= 1.0


def test_gains_are_written_out_in_terms_of_what_is_carried() -> None:
    own = _kalman()
    (loop,) = {node.loop for node in postorder(own.objective) if isinstance(node, Recur)}
    step = step_map(loop, own.sizes)
    assert step is not None
    assert len(step.carried) == 2


def test_a_loop_without_bounds_ends_at_the_step_that_loses_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[int] = []

    class Counted(loops._Execution):
        def execute(self, t: int, follows: loops._Coordinates | None = None) -> bool:
            steps.append(t)
            return super().execute(t, follows)

    monkeypatch.setattr(loops, "_Execution", Counted)
    text = """dim T data y[T] var a
    let s[t in T] = 1 / (s[t-1] - a) + y[t] first 1
    minimize sum(s)"""
    own = setting(text, [0.8], y=np.zeros(50))
    (found,) = _series(own, 3, 0.5).values()
    assert not np.isfinite(found.norm[2:]).any()
    assert len(steps) < 10
