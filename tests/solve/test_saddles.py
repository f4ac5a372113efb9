"""Leaving saddles: least eigenvalues against dense ones, and the report of a run."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from solve.objectives import parabola
from solve.test_second_derivatives import Quadratic, Rosenbrock, symmetric

import slomodel
from slomodel.errors import DomainError
from slomodel.solve import Proof, solve
from slomodel.solve.objective import Evaluator
from slomodel.solve.run.saddle_escape import SaddleWatch
from slomodel.solve.run_options import RunOptions
from slomodel.solve.stagnation.curvature import least_eigenvalue, shown_above
from slomodel.solve.subroutine import Iterate

# f = x² − y² + y⁴/4: a saddle at 0, minimisers (0, ±√2) with f = −1 and eigenvalues 2 and 4.
TWO_VALLEYS = "var x, y\nminimize x^2 - y^2 + y^4 / 4"


def of(H: np.ndarray) -> Evaluator:
    return Evaluator(Quadratic(H), RunOptions())


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 30))
def test_least_eigenvalues(seed: int, n: int) -> None:
    generator = np.random.default_rng(seed)
    B = generator.normal(size=(n, n))
    H = B + B.T
    found = least_eigenvalue(of(H), np.zeros(n), generator.normal(size=n))
    assert found is not None
    eigenvalues = np.linalg.eigvalsh(H)
    least = eigenvalues[0]
    assert np.linalg.norm(found.vector) == pytest.approx(1.0)
    assert found.value == pytest.approx(found.vector @ H @ found.vector, abs=1e-9 * n)
    assert found.value >= least - 1e-9 * n
    if least < 0.0:
        assert found.value < 0.0
    # An eigenvalue is near; the first negative one to converge need not be the least.
    assert np.abs(eigenvalues - found.value).min() <= found.residual + 1e-9 * n


@given(
    seed=st.integers(0, 2**32 - 1),
    least=st.floats(-2.0, 2.0),
    bound=st.floats(-2.0, 2.0),
)
def test_what_is_shown_is_true_and_what_is_plain_is_shown(
    seed: int, least: float, bound: float
) -> None:
    H = symmetric(seed, [least, 2.0, 3.0, 5.0])
    shown = shown_above(H, bound, np.finfo(float).eps)
    if np.linalg.eigvalsh(H)[0] < bound - 1e-15:
        assert not shown
    if least > bound + 1e-9:
        assert shown


@pytest.mark.sampled(3)
@pytest.mark.parametrize("direction", ["gradient", "lbfgs", "newton"])
def test_a_stationary_start_is_left(direction: str) -> None:
    model = slomodel.compile(TWO_VALLEYS)
    stays = model.solve("norm-armijo", [0.0, 0.0], direction=direction)
    assert stays.fun == 0.0
    found = model.solve("norm-armijo", [0.0, 0.0], direction=direction, second_order=True)
    assert found.success
    assert found.fun == pytest.approx(-1.0, abs=1e-9)
    assert abs(found.variables["y"]) == pytest.approx(np.sqrt(2.0), abs=1e-5)
    assert "1 saddle left. λ ≥ −√(L2·gtol)" in found.message
    assert "is shown" in found.message
    assert found.nhev > 0


def test_a_maximum_is_left_downwards_whatever_the_sense() -> None:
    text = "var x, y\nmaximize y^2 - x^2 - y^4 / 4"
    found = slomodel.compile(text).solve(x0=[0.0, 0.0], second_order=True)
    assert found.fun == pytest.approx(1.0, abs=1e-9)


def test_the_step_has_the_certified_decrease() -> None:
    """2|λ|³/(3·L2²), with L2 = 6·|y| ≤ 6 on the unit ball round 0 and λ = −2."""
    model = slomodel.compile(TWO_VALLEYS)
    evaluate = Evaluator(model, RunOptions())
    watch = SaddleWatch(evaluate, lambda centre, radius: Proof(10.0, 6.0 * max(radius, 1.0)), 0)
    at = Iterate(np.zeros(2), 0.0, np.zeros(2), 0.0)
    found = watch.leave(at)
    assert found is not None
    assert found.f <= -2.0 * 2.0**3 / (3.0 * 6.0**2)
    assert watch.left == 1


def test_nothing_is_proved_where_a_trial_step_descends() -> None:
    def prove(centre: object, radius: float) -> Proof:
        raise AssertionError("a proof takes longer than the whole run may")

    watch = SaddleWatch(Evaluator(slomodel.compile(TWO_VALLEYS), RunOptions()), prove, 0)
    assert watch.leave(Iterate(np.zeros(2), 0.0, np.zeros(2), 0.0)) is not None


def test_without_a_proof_it_is_not_refuted() -> None:
    found = solve(Rosenbrock(), np.full(6, -1.2), direction="lbfgs", second_order=True)
    assert found.success
    assert "λ < 0 is not refuted: 6 Lanczos steps found" in found.message


def test_a_minimum_stays_what_it_is() -> None:
    found = solve(Quadratic(symmetric(1, [1.0, 2.0])), [1.0, 1.0], second_order=True)
    assert found.success
    assert "saddle" not in found.message


def test_a_run_that_lingers_near_a_saddle_leaves_it() -> None:
    """From (1, 1e-12) gradient steps come to 0 long before y has grown."""
    model = slomodel.compile("var x, y\nminimize 100 + x^2 - y^2 / 1000 + y^4 / 4")
    found = model.solve("norm-armijo", [1.0, 1e-12], second_order=True, gtol=1e-8)
    least = 100.0 - 1e-6
    assert found.success
    assert found.fun == pytest.approx(least, abs=1e-9)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", ["norm-armijo", "std-armijo", "adgd"])
def test_other_methods_leave_saddles_too(method: str) -> None:
    found = slomodel.compile(TWO_VALLEYS).solve(method, [0.0, 0.0], second_order=True)
    assert found.fun == pytest.approx(-1.0, abs=1e-9)


def test_a_checkpoint_holds_the_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slomodel.solve.run.checkpoint.SECONDS", 0.0)
    monkeypatch.setattr("slomodel.solve.run.checkpoint.FRACTION", 1e9)
    model = slomodel.compile(TWO_VALLEYS)
    asked: dict[str, object] = {"second_order": True, "direction": "gradient", "gtol": 1e-10}
    whole = model.solve("norm-armijo", [0.0, 0.0], **asked)
    path = tmp_path / "run.npz"
    model.solve("norm-armijo", [0.0, 0.0], checkpoint=path, max_iter=3, **asked)
    found = model.solve(resume=path)
    assert found.x.tobytes() == whole.x.tobytes()
    assert found.message == whole.message


def test_what_it_needs() -> None:
    with pytest.raises(DomainError, match="needs products with the Hessian"):
        solve(parabola(), [1.0, 1.0], second_order=True)
    with pytest.raises(DomainError, match="True or False"):
        solve(Rosenbrock(), np.zeros(6), second_order="yes")
    with pytest.raises(DomainError, match="leave one of the two out"):
        solve(Rosenbrock(), np.zeros(6), second_order=True, verify=True)


@pytest.mark.parametrize("limits", [{"max_iter": 3}, {"max_nfev": 4}])
def test_a_run_cut_short_says_that_its_end_is_not_judged(limits: dict[str, int]) -> None:
    found = solve(Rosenbrock(), np.full(6, -1.2), second_order=True, **limits)
    assert not found.success
    assert "ended before second_order had judged its last point" in found.message


def test_time_that_ends_in_the_look_is_reported() -> None:
    """The point is what it is, and nothing is said to be known of its Hessian."""

    class Slow(Quadratic):
        def hvp(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
            time.sleep(0.02)
            return super().hvp(x, v)

    H = symmetric(1, [1.0 + k for k in range(30)])
    found = solve(Slow(H), np.zeros(30), second_order=True, max_time=0.01)
    assert found.success
    assert "ended before second_order had judged its last point" in found.message


@pytest.mark.parametrize("method", ["std-armijo", "norm-armijo"])
def test_stops_come_before_a_saddle_is_left(method: str, tmp_path: Path) -> None:
    """Those of max_iter and callbacks, at any step; resumed runs are the whole one."""
    model = slomodel.compile("var x[3]\nminimize x[0]^2 - x[1]^2 + x[1]^4/4 + x[2]^4")
    x0, path = [1.0, 1e-9, -1e-9], tmp_path / "run.npz"
    whole = model.solve(method, x0, second_order=True, max_iter=200)
    assert "left" in whole.message
    for most in range(0, whole.nit, 1 + whole.nit // 40):
        part = model.solve(method, x0, second_order=True, max_iter=most, checkpoint=path)
        assert part.nit == most
        again = model.solve(resume=path, max_iter=200)
        np.testing.assert_array_equal(again.history.fun, whole.history.fun)
        # At a stationary point the run has converged, not judged.
        stopped = model.solve(
            method, x0, second_order=True, callback=lambda state, most=most: state.k == most
        )
        assert stopped.nit == most


@pytest.mark.parametrize(
    ("constant", "term", "x0", "least"),
    [
        (1e14, "x*y + 1e-4*(x^4 + y^4) + z^2", [1e-9, 2e-9, 1.0], -1250.0),
        (1e10, "y^2 - x^2 + x^4 + z^2", [1e-12, 1.0, 1.0], -0.25),
    ],
    ids=["longer steps", "shorter steps"],
)
def test_a_constant_that_hides_the_descent_near_a_saddle_does_not_end_a_run(
    constant: float, term: str, x0: list[float], least: float
) -> None:
    model = slomodel.compile(f"var x, y, z\nminimize {constant} + {term}", backend="numpy")
    found = model.solve(x0=x0)
    assert found.success, found.message
    assert found.fun - constant == pytest.approx(least, abs=1e-14 * constant)
