"""Condition 2.1, Lemma 2.1 and Theorem 2.1 on runs of pgd, tgd and agp."""

import math
from itertools import pairwise

import numpy as np
import pytest
from paper.recorded import PROBLEMS, Recorded, recorded
from solve.objectives import recorded_constants

METHODS = pytest.mark.parametrize("method", ["pgd", "tgd", "agp"])
EACH = pytest.mark.parametrize("problem", PROBLEMS)
GTOL = {"pgd": 1e-3, "tgd": 1e-3, "agp": 1e-4}
STEPS = {"pgd": 400, "tgd": 400, "agp": 40}


def run_of(problem: str, method: str) -> Recorded:
    one: Recorded = recorded(problem, method, GTOL[method], STEPS[method])
    return one


def C1_C2(method: str, L1: float, L2: float | None, root: float) -> tuple[float, float]:
    """eq:C1C2:AGP, lemma:condition-GP, lemma:condition-TG."""
    if method == "agp":
        assert L2 is not None
        quarter = math.sqrt(root)
        return math.sqrt(L2) * quarter / 24.0, quarter**3 / (10.0 * math.sqrt(L2))
    return L1 / 2.0, root**2 / (2.0 * L1)


@METHODS
@EACH
def test_sufficient_descent(problem: str, method: str) -> None:
    one = run_of(problem, method)
    f, records = one.found.history.fun, one.found.epochs
    for record, ks in zip(records, one.epochs(), strict=False):
        assert record.L1 is not None
        C1, C2 = C1_C2(method, record.L1, record.L2, one.root)
        for j, k in pairwise(ks):
            error = one.error(f[j], f[k])
            length = np.linalg.norm(one.points[k] - one.points[j])
            assert f[k] - f[j] <= -C1 * length**2 + error
            if k != ks[-1]:
                assert f[k] - f[j] <= -C2 + error
    assert one.found.nit > 3
    assert one.found.rounding_steps == one.found.violations == 0


@METHODS
@EACH
def test_constants_are_those_over_the_ball(problem: str, method: str) -> None:
    one, constants = run_of(problem, method), recorded_constants(problem)
    for record, ks in zip(one.found.epochs, one.epochs(), strict=False):
        L1, L2 = constants(one.points[ks[0]], (3.0 if method == "agp" else 1.0) * record.D)
        assert record.L1 is not None
        assert record.L1 >= L1 * (1.0 - 1e-12)
        assert method != "agp" or (record.L2 is not None and record.L2 >= L2 * (1.0 - 1e-12))


@METHODS
@EACH
def test_travel_and_descent_of_every_epoch(problem: str, method: str) -> None:
    one, share = run_of(problem, method), 32.0 if method == "agp" else 4.0
    f, ended = one.found.history.fun, 0
    epochs = one.epochs()
    for record, ks in zip(one.found.epochs, epochs, strict=False):
        centre = one.points[ks[0]]
        for k in ks:
            distance = np.linalg.norm(one.points[k] - centre)
            assert distance <= record.D * (1.0 + 1e-12) + 8e-16 * np.linalg.norm(centre)
        if ks is not epochs[-1]:
            ended += 1
            error = one.error(f[ks[0]], f[ks[-1]])
            assert f[ks[-1]] - f[ks[0]] <= -one.root * record.D / share + error
    assert ended == len(epochs) - 1


@METHODS
@EACH
def test_number_of_epochs(problem: str, method: str) -> None:
    one, share = run_of(problem, method), 32.0 if method == "agp" else 4.0
    D = min(record.D for record in one.found.epochs)
    most = share * (one.found.history.fun[0] - one.f_lower) / (one.root * D) + 1.0
    assert len(one.found.epochs) <= math.ceil(most)


def test_many_epochs_were_seen() -> None:
    """The tests above would say nothing of runs within one ball."""
    for method in ("pgd", "tgd"):
        assert sum(len(run_of(problem, method).found.epochs) for problem in PROBLEMS) > 12
    several = [problem for problem in PROBLEMS if len(run_of(problem, "agp").found.epochs) > 2]
    assert len(several) >= 5


@EACH
def test_constants_of_agp(problem: str) -> None:
    """α, κ, d and the lift of L2: eqn:para-AGP-UPG in units of its own."""
    one = run_of(problem, "agp")
    for record, ks in zip(one.found.epochs, one.epochs(), strict=False):
        assert record.L1 is not None
        assert record.L2 is not None
        quarter = math.sqrt(one.root)
        alpha = 2.0 * math.sqrt(record.L2) * quarter
        assert 36.0 * one.root / record.D**2 * (1.0 - 1e-12) <= record.L2
        d = alpha / record.L2
        assert 3.0 * d * (1.0 - 1e-12) <= record.D
        for k in ks[1:]:
            call = one.found.calls[k - 1]
            assert call["alpha"] == pytest.approx(alpha, rel=1e-12)
            assert call["kappa"] == pytest.approx((record.L1 + 2.0 * alpha) / alpha, rel=1e-12)
            if call["flag"] in (1, 3):
                distance = np.linalg.norm(one.points[k] - one.points[ks[0]])
                assert distance == pytest.approx(record.D - d, rel=1e-12)
