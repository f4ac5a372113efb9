"""Recorded runs of every other method, repeated with models compiled from text."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from solve.objectives import cases, recorded_constants, traces
from test_traces_compiled import recorded_model

import slomodel

RELATIVE = 1e-8
METHODS = ("pgd", "tgd", "agp", "std-armijo", "gd", "ngd", "adgd", "bpg")
CASES = [case for method in METHODS for case in cases(method)]
OPTIONS = ("D", "d", "L", "p", "lam0", "delta_bar", "theta", "sigma")
WITH_BALLS = ("pgd", "tgd", "agp")


def options(case: dict[str, Any]) -> dict[str, Any]:
    """The options of the case's method."""
    params, method = case["params"], case["method"]
    found = {name: params[name] for name in OPTIONS if name in params}
    if method in WITH_BALLS:
        found["lipschitz"] = recorded_constants(case["problem"])
    return found | ({"lift": "paper"} if method == "agp" else {})


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_rows(case: dict[str, Any]) -> None:
    params, states = case["params"], list[Any]()
    found = recorded_model(case["problem"], "numpy").solve(
        case["method"],
        traces()["problems"][case["problem"]]["x0"],
        gtol=params["gtol"],
        scaled=False,
        max_iter=params["max_iter"],
        callback=states.append,
        **options(case),
    )
    assert isinstance(found, slomodel.Solution)
    compared = [row for row in case["rows"] if row["k"] <= case["stability"]["stable_upto_k"]]
    assert len(compared) > 3
    for row in compared:
        k, state = row["k"], states[row["k"]]
        assert_allclose(state.x, row["x"], rtol=RELATIVE, atol=1e-9)
        assert_allclose(state.fun, row["f"], rtol=RELATIVE, atol=1e-12)
        assert_allclose(state.gradient_norm, row["gnorm"], rtol=RELATIVE, atol=1e-8)
        assert state.epoch == row["epoch"] or case["method"] == "std-armijo"
        if "flag" in row:
            call = found.calls[k - 1]
            assert (call["flag"], call["t"], call["chosen"]) == tuple(
                row[name] for name in ("flag", "t", "chosen")
            )
    assert np.isfinite(found.fun)
