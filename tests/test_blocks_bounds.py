"""Bounds of models over blocks, against closed forms, and Hessians computed in the ball."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import slomodel
from slomodel.errors import DomainError
from slomodel.model.blocks import distributed_blocks
from slomodel.model.blocks.evaluate import bounds_of
from slomodel.solve.objective import EvaluationLost
from tests.test_blocks import Client, KilledWorker

N, P = 24, 3
RNG = np.random.default_rng(11)
A, Y = RNG.normal(size=(N, P)), RNG.normal(size=N)
# Blocks whose Gram matrices differ, so that bounds of blocks do not simply add up to those of f.
A[:8] *= [3.0, 1.0, 0.3]
A[8:16] *= [0.3, 3.0, 1.0]
CUTS = [8, 16, 17]
HEAD = "dim N, p data A[N, p], y[N] "
LEAST_SQUARES = HEAD + "var w[p] minimize sumsq(A @ w - y) + sumsq(w)"
ROBUST = HEAD + "var w[p] minimize sum(log(1 + (A @ w - y)^2)) + w[0]^4"
NETWORK = HEAD + ("var W[2, p], v[2] minimize mean((tanh(A @ W') @ v - y)^2) + 0.1 * sumsq(W)")


def pair(text: str, **options: Any) -> tuple[slomodel.Model, Any]:
    waiting = slomodel.compile(text, backend="numpy")
    blocks = {"A": np.split(A, CUTS), "y": np.split(Y, CUTS)}
    model = slomodel.compile(text, data={"A": A, "y": Y}, backend="numpy")
    return model, slomodel.over_blocks(waiting, blocks, **options)


def test_least_squares_are_exact_and_not_the_sum_over_blocks() -> None:
    model, blocked = pair(LEAST_SQUARES)
    values = np.linalg.eigvalsh(2.0 * A.T @ A + 2.0 * np.eye(P))
    found = blocked.bounds(model.x0(), 5.0, "quick")
    assert values[-1] <= found.L1 <= (1.0 + 1e-9) * values[-1]
    assert (found.L2, found.rigor, found.convex) == (0.0, "certified", True)
    assert values[0] >= found.lower >= (1.0 - 1e-9) * values[0]
    apart = sum(np.linalg.eigvalsh(2.0 * a.T @ a)[-1] for a in np.split(A, CUTS))
    assert 0.8 * apart > found.L1
    assert found.at(1.0).L1 == found.L1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("text", [ROBUST, NETWORK])
def test_curvature_in_the_ball_is_bounded(text: str) -> None:
    model, blocked = pair(text)
    x, radius = 0.5 * RNG.normal(size=model.n), 0.2
    found, whole = blocked.bounds(x, radius, effort="quick"), model.bounds(x, radius, "quick")
    at_centre = blocked.bounds(x, 0.0, effort="quick")
    H = np.array([model.hvp(x, e) for e in np.eye(model.n)])
    norm = np.abs(np.linalg.eigvalsh(H)).max()
    assert norm <= at_centre.L1 <= (1.0 + 1e-9) * norm
    assert found.L1 < 2.0 * whole.L1
    assert found.L2 < 2.0 * whole.L2
    for _ in range(8):
        d = RNG.normal(size=(2, model.n))
        a, b = x + radius * d / np.linalg.norm(d, axis=1, keepdims=True)
        (Ha, Hb) = (np.array([model.hvp(one, e) for e in np.eye(model.n)]) for one in (a, b))
        values = np.linalg.eigvalsh(Ha)
        assert found.lower - 1e-12 <= values[0] <= values[-1] <= found.upper + 1e-12
        assert np.abs(values).max() <= found.L1
        slope = np.linalg.norm(Ha - Hb, 2) / np.linalg.norm(a - b)
        assert slope <= (1.0 + 1e-9) * found.L2
        assert (np.linalg.eigvalsh(np.diag(found.majorant) - Ha) >= -1e-9).all()
        for (v, w), most in found.blocks.items():
            rows, columns = (
                model.pack({k: np.full(s, k == one) for k, s in model.variables.items()}).astype(
                    bool
                )
                for one in (v, w)
            )
            assert np.linalg.norm(Ha[np.ix_(rows, columns)], 2) <= most


@pytest.mark.filterwarnings("ignore::slomodel.errors.NonsmoothWarning")
def test_no_bound_has_a_reason_and_a_centre_is_finite() -> None:
    _, blocked = pair(HEAD + "var w[p] minimize sum(abs(A @ w - y))")
    found = blocked.bounds(np.zeros(P), 1.0, "quick")
    assert np.isinf(found.L1)
    assert "kink" in found.reason
    with pytest.raises(DomainError, match="not finite"):
        blocked.bounds([np.nan, 0.0, 0.0], 1.0)
    assert np.isfinite(pair(LEAST_SQUARES)[1].bounds(np.zeros(P), np.inf).L1)


def test_the_bounds_of_a_block_do_not_grow_with_it() -> None:
    sizes = []
    for m in (20, 2000):
        data = {"A": RNG.normal(size=(m, P)), "y": RNG.normal(size=m)}
        model = slomodel.compile(LEAST_SQUARES, data=data, backend="numpy")
        sizes.append(len(pickle.dumps(bounds_of(model, np.zeros(P), 0.1, "quick"))))
    assert sizes[1] < 1.1 * sizes[0]


def test_bounds_on_a_cluster_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed_blocks, "_address", lambda: "tcp://here")
    _, here = pair(ROBUST)
    _, there = pair(ROBUST, client=Client(lost=1))
    x = np.full(P, 0.3)
    found, expected = (one.bounds(x, 0.1, effort="quick") for one in (there, here))
    assert (found.L1, found.L2) == (expected.L1, expected.L2)


@pytest.mark.slow
def test_methods_with_proofs_run_over_blocks() -> None:
    _, blocked = pair(LEAST_SQUARES)
    x = np.full(P, 0.3)
    proved = blocked.solve("agp", x, lipschitz="analytic", max_iter=3)
    assert proved.fun < blocked.value(x)


class Gone(Client):
    """A client whose cluster ends after some evaluations."""

    def __init__(self, evaluations: int) -> None:
        Client.__init__(self, lost=0)
        self.left = evaluations
        self.status = "running"

    def gather(self, tasks: list[Any]) -> list[object]:
        self.left -= 1
        if self.left < 0:
            self.status = "closed"
            raise KilledWorker
        return Client.gather(self, tasks)


@pytest.mark.parametrize("constraint", ["", " subject to sum(w) == 1"])
def test_a_lost_cluster_ends_a_run_at_its_best_point(
    constraint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distributed_blocks, "_address", lambda: "tcp://here")
    _, blocked = pair(ROBUST + constraint, client=Gone(6))
    found = blocked.solve(x0=np.ones(P))
    assert found.status == "interrupted"
    assert "the cluster does not answer any more" in found.message
    assert np.isfinite(found.fun)
    with pytest.raises(EvaluationLost, match="start it again"):
        blocked.value(found.x)
    with pytest.raises(EvaluationLost):
        blocked.solve(x0=np.ones(P))
