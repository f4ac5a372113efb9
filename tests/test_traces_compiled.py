"""Recorded runs of norm-armijo, repeated with models compiled from text, as far as each is stable.

tests/solve/test_traces.py does the same with SymPy's functions: here text, kernels and solver
have to work together, through public names alone.
"""

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from solve.objectives import cases, traces

import slomodel

# Ours and the recording evaluate f by different formulas; the stable rows hold to 1e-9.
RELATIVE = 1e-8
# x agrees to about 1e-13 and no stable part has a Hessian norm above 100; δ is δ̄/‖g‖.
GRADIENT_ERROR = 1e-11
PARAMETERS = ("delta_bar", "theta", "sigma", "initial_step")
TARGETS = ("numpy", "numexpr")
CASES = cases("norm-armijo")


@cache
def recorded_model(name: str, backend: str) -> slomodel.Model:
    """The recorded problem as a model: its expression is in the language as it stands."""
    problem = traces()["problems"][name]
    text = f"var {', '.join(problem['variables'])}\nminimize {problem['expr']}"
    return slomodel.compile(text, backend=backend)


def run(case: dict[str, Any], backend: str) -> tuple[slomodel.Solution, list[Any]]:
    """The solution, and the state after every step from k = 1."""
    params = case["params"]
    states: list[Any] = []
    found = recorded_model(case["problem"], backend).solve(
        "norm-armijo",
        traces()["problems"][case["problem"]]["x0"],
        gtol=params["gtol"],
        scaled=False,
        max_iter=params["max_iter"],
        callback=states.append,
        **{name: params[name] for name in PARAMETERS},
    )
    return found, [state for state in states if state.k > 0]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("backend", TARGETS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_rows(case: dict[str, Any], backend: str) -> None:
    found, states = run(case, backend)
    stable = case["stability"]["stable_upto_k"]
    norms = found.history.gradient_norm
    compared = [row for row in case["rows"] if row["k"] <= stable]
    assert len(compared) > 3
    for row in compared:
        k = row["k"]
        assert_allclose(found.history.fun[k], row["f"], rtol=RELATIVE, atol=1e-14)
        assert_allclose(norms[k], row["gnorm"], rtol=RELATIVE, atol=GRADIENT_ERROR)
        if k == 0:
            continue
        state = states[k - 1]
        assert (state.k, state.nfev, state.njev) == (k, row["nfev"], row["ngev"])
        assert_allclose(state.x, row["x"], rtol=RELATIVE, atol=1e-12)
        assert_allclose(state.step, row["step"], rtol=RELATIVE, atol=1e-14)
        # The step is δ times the gradient norm where it began.
        share = RELATIVE + GRADIENT_ERROR / norms[k - 1]
        assert_allclose(state.step / norms[k - 1], row["delta"], rtol=share)
        if k > 1:
            assert state.nfev - states[k - 2].nfev == row["trials"]


@pytest.mark.parametrize("backend", TARGETS)
@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case["stability"]["stable_upto_k"] == case["nit"]],
    ids=lambda case: case["id"],
)
def test_end(case: dict[str, Any], backend: str) -> None:
    found, _ = run(case, backend)
    assert found.status == {"gtol": "converged"}.get(case["status"], case["status"])
    assert (found.nit, found.nfev, found.njev) == (case["nit"], case["nfev"], case["ngev"])
    assert_allclose(found.x, case["x_final"], rtol=RELATIVE, atol=1e-12)
    assert_allclose(found.fun, case["f_final"], rtol=RELATIVE, atol=1e-14)
    assert_allclose(np.hstack(list(found.variables.values())), found.x, rtol=0.0)
