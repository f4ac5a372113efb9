"""Corollary 3.2 and its theorem: the two inequalities of norm-armijo, and its total travel."""

from typing import Any

import numpy as np
import pytest
from paper.recorded import PROBLEMS, Recorded, run
from solve.objectives import recorded_constants

from slomodel.solve import METHODS, Functions, Proof, solve

SIGMA, THETA, ROOT = 0.3, 0.5, 1e-4
EACH = pytest.mark.parametrize("problem", PROBLEMS)
KINDS: dict[str, dict[str, Any]] = {
    "full": {"initial_step": "full"},
    "bb": {"initial_step": "bb"},
    "memory": {"initial_step": "memory"},
    "lbfgs": {"direction": "lbfgs"},
    "cg": {"direction": "cg"},
}


def run_of(problem: str, kind: str) -> Recorded:
    constants = recorded_constants(problem)

    def prove(centre: Any, radius: float) -> Proof:
        return Proof(*constants(centre, radius))

    return run(problem, "norm-armijo", ROOT, 60, prove=prove, **KINDS[kind])


@pytest.mark.parametrize("kind", KINDS)
@EACH
def test_first_inequality_and_travel(problem: str, kind: str) -> None:
    one = run_of(problem, kind)
    f = one.found.history.fun
    alpha = 1e-4 if "direction" in KINDS[kind] else 1.0
    for k in range(1, len(f)):
        length = np.linalg.norm(one.points[k] - one.points[k - 1])
        error = one.error(f[k - 1], f[k])
        assert f[k] - f[k - 1] <= -SIGMA * alpha * ROOT * length + error
        away = np.linalg.norm(one.points[k] - one.points[0])
        assert SIGMA * alpha * ROOT * away <= f[0] - f[k] + one.error(f[0])
        assert length <= one.found.parameters["delta_bar"] * (1.0 + 1e-12)
    assert one.found.nit > 3
    assert one.found.rounding_steps == 0
    assert one.found.certificate is not None
    assert one.found.certificate.holds, one.found.certificate.summary


@pytest.mark.parametrize("kind", ["full", "bb"])
@EACH
def test_second_inequality(problem: str, kind: str) -> None:
    one, constants = run_of(problem, kind), recorded_constants(problem)
    f, delta_bar = one.found.history.fun, float(one.found.parameters["delta_bar"])
    before = 0.0
    for k in range(1, len(f)):
        L1, _ = constants(one.points[k - 1], delta_bar)
        over = max(L1, before if kind == "bb" else 0.0, (1.0 - SIGMA) * ROOT / delta_bar)
        least = THETA * SIGMA * (1.0 - SIGMA) * ROOT**2 / (2.0 * over)
        assert f[k] - f[k - 1] <= -least + one.error(f[k - 1], f[k])
        before = L1
    line = one.found.certificate.lines[-1]
    assert (line.state, line.checked) == ("held", one.found.nit)


@pytest.mark.parametrize("kind", ["memory", "lbfgs"])
def test_the_second_is_promised_for_full_and_bb_alone(kind: str) -> None:
    line = run_of("quartic", kind).found.certificate.lines[-1]
    assert (line.state, line.checked) == ("not promised", 0)


@pytest.mark.parametrize("method", ["ngd", "adgd"])
def test_methods_that_promise_nothing(method: str) -> None:
    assert method in METHODS
    f = Functions(lambda x: float(x @ x), lambda x: 2.0 * x, 2)
    found = solve(f, [1.0, 2.0], method=method, verify=True, max_iter=20)
    assert found.certificate is not None
    assert [line.state for line in found.certificate.lines] == ["not promised"]
