"""Proved constants: used where they exist, and steps as long as their own ball permits."""

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose
from solve.objectives import Vector

import slomodel
from slomodel.errors import DomainError
from slomodel.solve import Functions, Proof, objective, solve
from slomodel.solve.methods.certified_steps import NEAR, NEAR_OF_MANY, largest_proved
from slomodel.solve.norms import norm
from slomodel.solve.subroutine import Constants, Iterate

METHODS = pytest.mark.parametrize("method", ["pgd", "tgd"])
QUARTIC = Functions(lambda x: float(np.sum(x**4)), lambda x: 4.0 * x**3, 2)


def proof_of_quartic(centre: Vector, radius: float) -> Proof:
    far = float(np.abs(centre).max()) + radius
    return Proof(12.0 * far**2, 24.0 * far)


def proof_near_zero_only(centre: Vector, radius: float) -> Proof:
    if norm(centre) + radius > 1.5:
        return Proof(math.inf, math.inf, "too far out for a proof")
    return proof_of_quartic(centre, radius)


@METHODS
def test_every_epoch_says_where_its_constant_is_from(method: str) -> None:
    found = solve(QUARTIC, [1.0, 1.0], method=method, prove=proof_near_zero_only, D=0.5, gtol=1e-3)
    assert found.status == "converged"
    sources = [epoch.source for epoch in found.epochs]
    assert sources[0] == "sampled"
    assert "analytic" in sources
    for epoch in found.epochs:
        assert (epoch.source == "analytic") == (epoch.centre_norm + epoch.D <= 1.5)
    assert found.parameters["lipschitz"] == "auto"


@METHODS
def test_analytic_is_analytic_or_an_error(method: str) -> None:
    options = {"method": method, "lipschitz": "analytic", "prove": proof_near_zero_only}
    found = solve(QUARTIC, [0.3, 0.2], D=0.5, gtol=1e-3, **options)
    assert {epoch.source for epoch in found.epochs} == {"analytic"}
    assert found.violations == 0
    with pytest.raises(DomainError, match="too far out for a proof") as caught:
        solve(QUARTIC, [2.0, 0.2], D=0.5, **options)
    assert "radius 0.5" in str(caught.value)


def searched(
    g: float, L1: Callable[[float], float], x: float = 0.0, steps: float = 1.0
) -> tuple[float, float, int]:
    """δ, its L1 and the number of balls asked about, for a gradient of norm g at x."""
    asked = []

    def over(centre: Iterate, radius: float) -> Constants:
        asked.append(radius)
        return Constants(L1(radius), None, "analytic", False, "" if L1(radius) < math.inf else "no")

    start = Iterate(np.array([x]), 0.0, np.array([g]), g)
    region = largest_proved(start, over, None, steps)
    assert region.L1 is not None
    return region.D, region.L1, len(asked)


@pytest.mark.parametrize(
    ("L1", "largest"),
    [
        (lambda r: 2.0, 0.5),
        (lambda r: 1.0 + 12.0 * r**2, 0.3715),
        (lambda r: 1e-9 + 1e12 * r**4, 3.981e-3),
        (lambda r: 1.0 if r < 0.02 else math.inf, 0.02),
        (lambda r: 1.0 if r < 3e-14 else math.inf, 3e-14),
        (lambda r: 0.1 if r < 0.3 else 1e6, 0.3),
        (lambda r: max(0.0, r - 0.1), 1.0),
    ],
)
def test_the_step_is_the_longest_that_its_ball_proves(
    L1: Callable[[float], float], largest: float
) -> None:
    delta, constant, asked = searched(1.0, L1)
    assert delta * constant <= 1.0 * (1.0 + 1e-12)
    assert constant >= L1(delta)
    assert largest / (1.0 + NEAR) <= delta * (1.0 + 1e-3) <= largest * (1.0 + 2e-3)
    assert asked <= 30


@pytest.mark.parametrize(
    ("L1", "largest"),
    [
        (lambda r: 2.0, 5e3),
        (lambda r: 1.0 + 12.0 * r**2, 9.4),
        (lambda r: 12.0 * math.exp(min(r * r, 700.0)), 2.4),
        (lambda r: 1.0 if r < 5.0 else math.inf, 5.0),
    ],
)
def test_balls_of_many_steps_are_found_from_small_ones(
    L1: Callable[[float], float], largest: float
) -> None:
    """A bound over a ball that is far too large takes long and says nothing."""
    delta, constant, asked = searched(1.0, L1, steps=1e4)
    assert constant >= L1(delta * (1.0 - 1e-12))
    assert largest / (1.0 + NEAR_OF_MANY) <= delta <= 1.01 * largest
    assert asked <= 7


def test_where_the_gradient_is_constant_the_step_is_capped() -> None:
    assert searched(3.0, lambda r: 0.0)[0] == 1.0
    assert searched(3.0, lambda r: 0.0, x=-50.0)[0] == 50.0


def test_a_point_without_a_proof_is_an_error() -> None:
    with pytest.raises(DomainError, match="no proved bound over the ball of radius 0: no"):
        searched(1.0, lambda r: math.inf)


@METHODS
def test_certified_steps_descend_as_proved(method: str) -> None:
    found = solve(QUARTIC, [1.0, -2.0], method=method, D="auto", prove=proof_of_quartic, gtol=1e-4)
    assert found.status == "converged"
    assert found.violations == 0
    assert found.parameters["D"] == "auto"
    f, g = found.history.fun, found.history.gradient_norm
    # The last epoch was opened where the run ended.
    assert len(found.epochs) == found.nit + 1
    for k, epoch in enumerate(found.epochs[:-1]):
        assert epoch.source == "analytic"
        assert epoch.L1 is not None
        delta = found.history.step[k + 1]
        assert_allclose(delta, epoch.D, rtol=1e-9)
        proved = delta * g[k] - epoch.L1 * delta**2 / 2.0
        assert proved >= 0.5 * delta * g[k] * (1.0 - 1e-9)
        assert f[k + 1] - f[k] <= -proved + 1e-13 * f[k]


@dataclass(slots=True)
class _SlowProof:
    """The proof of the quartic, which takes as long as 100 steps."""

    calls: int = 0
    errors = None
    worth = 100.0

    def __call__(self, centre: Vector, radius: float) -> Proof:
        self.calls += 1
        return proof_of_quartic(centre, radius)

    def quick(self, centre: Vector, radius: float) -> Proof:
        return self(centre, radius)

    def one_of_many(self, centre: Vector, radius: float) -> Proof:
        return self(centre, radius)

    def curvature_above(self, x: Vector, v: Vector) -> float:
        return math.inf

    def stop_by(self, check: Callable[[], None]) -> None:
        pass


@METHODS
def test_steps_share_a_ball_whose_proof_takes_long(method: str) -> None:
    prove = _SlowProof()
    options = {"D": "auto", "prove": prove, "gtol": 1e-4, "verify": True}
    found = solve(QUARTIC, [10.0, -20.0], method=method, **options)
    assert found.status == "converged"
    assert found.certificate is not None
    assert found.certificate.holds, found.certificate.summary
    assert prove.calls <= found.nit / 4
    assert all(epoch.source == "analytic" for epoch in found.epochs)


def test_at_a_stationary_point_there_is_no_step() -> None:
    found = solve(QUARTIC, [0.0, 0.0], method="tgd", D="auto", prove=proof_of_quartic)
    assert (found.status, found.nit) == ("converged", 0)


def test_a_model_proves_its_own_constants() -> None:
    model = slomodel.compile("data a[3]\nvar x[3]\nminimize a' @ x", data={"a": np.arange(3.0)})
    found = model.solve(method="tgd", D="auto", max_iter=100)
    assert found.status == "unbounded"
    assert {epoch.source for epoch in found.epochs} == {"analytic"}


def slowly(centre: Vector, radius: float) -> Proof:
    time.sleep(0.02)
    return proof_of_quartic(centre, radius)


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"method": "tgd", "D": 1e-3}, "With lipschitz='sampled' they are"),
        ({"method": "tgd", "D": "auto"}, "With a D and lipschitz='sampled' they are"),
        (
            {"method": "norm-armijo", "verify": True, "initial_step": "full", "delta_bar": 1e-3},
            "verify and second_order ask for them here",
        ),
    ],
)
def test_time_that_went_to_proofs_is_reported(options: dict[str, object], remedy: str) -> None:
    found = solve(QUARTIC, [30.0, 20.0], prove=slowly, max_time=0.1, gtol=1e-12, **options)
    assert found.status == "max_time"
    told = re.search(r"Of ([\d.]+) s, ([\d.]+) s went to proving .* ([\d.]+) s to", found.message)
    assert told is not None
    whole, spent, longest = map(float, told.groups())
    assert whole >= spent >= longest >= 0.02
    assert whole >= 0.1
    assert remedy in found.message


def test_time_that_went_elsewhere_is_not_laid_on_proofs() -> None:
    def pause(state: object) -> None:
        time.sleep(0.02)

    options = {"method": "tgd", "D": 1e-3, "max_time": 0.05, "callback": pause}
    found = solve(QUARTIC, [30.0, 20.0], prove=proof_of_quartic, gtol=1e-12, **options)
    assert found.status == "max_time"
    assert "proving" not in found.message


@METHODS
def test_time_is_looked_at_between_proofs(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    def prove(centre: Vector, radius: float) -> Proof:
        now[0] += 1.0
        return proof_of_quartic(centre, radius)

    monkeypatch.setattr(objective, "perf_counter", lambda: now[0])
    found = solve(QUARTIC, [1.0, 1.0], method=method, prove=prove, D="auto", max_time=2.5)
    assert (found.status, now[0]) == ("max_time", 3.0)
