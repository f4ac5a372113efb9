"""Rays of models with conditions on data at which rounding decides: the branch of the objective."""

from __future__ import annotations

import math

import numpy as np
import pytest

import slomodel

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")
LENGTHS = [1.1, 0.6, 0.2, 0.7, 0.9, 0.7, 1.0, 0.1]
NORM = float(np.linalg.norm(LENGTHS))
ROWS = [
    ("0.1 * t[i] <= 0.5", [5.0]),
    ("t[i] / 3 == 1 / 3", [1.0]),
    ("exp(t[i]) <= exp(1)", [1.0]),
    ("t[i] >= mean(t)", [0.1, 0.1, 0.1]),
    ("sqrt(t[i])^2 == t[i]", [2.0, 3.0, 4.0, 5.0]),
    *((f"norm2(t) <= {bound!r}", LENGTHS) for bound in (NORM, math.nextafter(NORM, 0.0))),
    *((f"sum(t) <= {s!r}", LENGTHS) for s in (5.3, 5.299999999999999)),
    *((f"logsumexp(t) <= {s!r}", LENGTHS) for s in (2.7960384154418487, 2.796038415441849)),
    ("0.1 * i <= 0.5", [1.0] * 11),
    ("2 * i + 1 <= N - 2", [1.0] * 11),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("precise", [False, True])
@pytest.mark.parametrize(("condition", "t"), ROWS)
def test_slopes_are_those_of_the_branch_that_is_computed(
    condition: str, t: list[float], precise: bool
) -> None:
    text = f"""dim N
        data t[N]
        var x init 1
        minimize sum(where({condition}, (x - 1)^2 + x, 3*(x + 5)^2)
                     for i in N)"""
    model = slomodel.compile(text, data={"t": t}, backend="c")
    x = np.ones(1)
    found = model.ray_bounds(x, np.ones(1), 0.1, precise=precise)
    assert abs(found.slope - model.gradient(x)[0]) <= found.slope_error


@pytest.mark.parametrize("precise", [False, True])
def test_slopes_contain_those_of_jumps_of_data(precise: bool) -> None:
    model = slomodel.compile(
        "dim N\ndata t[N]\nvar x init 1\nminimize sum(sign(0.1*t[i] - 0.5)*x + x for i in N)",
        data={"t": [5.0]},
        backend="numpy",
    )
    found = model.ray_bounds(np.ones(1), np.ones(1), 0.1, precise=precise)
    assert abs(found.slope - model.gradient(np.ones(1))[0]) <= found.slope_error


@pytest.mark.parametrize("t", [[0.0, 0.0], [0.0, 3.0], [-2.0, 2.0]])
def test_sums_of_counts_are_certain(t: list[float]) -> None:
    """Sums of whole numbers are exact, so that 0 is 0 and decides a branch."""
    model = slomodel.compile(
        "dim N\ndata t[N]\nvar x init 1\n"
        "let counts[i in N] = sum(t[j] for j in N)\n"
        "minimize sum(where(counts[i] > 0, (x - 1)^2 + x, 3*(x + 5)^2) for i in N)",
        data={"t": t},
        backend="numpy",
    )
    found = model.ray_bounds(np.ones(1), np.ones(1), 0.1)
    assert not found.reason
    assert abs(found.slope - model.gradient(np.ones(1))[0]) <= found.slope_error


def test_comparisons_of_data_and_positions_are_certain() -> None:
    for condition in ("t[i] <= 1", "t[i] == t[0]", "2*i + 1 <= N - 2", "0.1*i <= 0.5"):
        text = f"""dim N\ndata t[N]\nvar x init 1
            minimize sum(where({condition}, (x - 1)^2 + x, 3*(x + 5)^2) for i in N)"""
        model = slomodel.compile(text, data={"t": [1.0, 2.0, 3.0]}, backend="numpy")
        found = model.ray_bounds(np.ones(1), np.ones(1), 0.1)
        assert found.slope_error < 1e-10, condition
