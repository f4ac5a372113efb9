"""Sweeps over data, and minibatches, against separate runs and closed forms."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import slomodel
from slomodel.errors import DomainError, SlomodelError
from slomodel.model import sweep as sweeps
from tests.test_blocks import Client, Task

N, P = 40, 3
RNG = np.random.default_rng(4)
A, Y = RNG.normal(size=(N, P)), RNG.normal(size=N)
TEXT = (
    "dim N, p data A[N, p], y[N], lam = 1, train[N] mask = 1 var w[p] init 0 "
    "minimize sumsq(masked(A @ w - y, train)) + lam * sumsq(w)"
)
LAM = [10.0, 1.0, 0.1]


@pytest.fixture(scope="module")
def model() -> slomodel.Model:
    return slomodel.compile(TEXT, data={"A": A, "y": Y}, backend="numpy")


def ridge(lam: float, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
    a = A[rows]
    return np.linalg.solve(a.T @ a + lam * np.eye(P), a.T @ Y[rows])


@pytest.mark.parametrize("warm", [True, False])
def test_a_path(model: slomodel.Model, warm: bool) -> None:
    runs = slomodel.sweep(model, {"lam": LAM}, warm=warm, gtol=1e-9)
    assert [one.values["lam"] for one in runs] == LAM
    for lam, solution in zip(LAM, runs.solutions, strict=True):
        assert solution is not None
        np.testing.assert_allclose(solution.x, ridge(lam), atol=1e-8)
    assert runs.best.values == {"lam": 0.1}
    rows = runs.rows()
    assert [row["lam"] for row in rows] == LAM
    assert {row["status"] for row in rows} == {"converged"}
    assert len(repr(runs).splitlines()) == 4


def test_cross_validation_by_masks(model: slomodel.Model) -> None:
    folds = np.arange(N) % 4
    masks = [(folds != k).astype(float) for k in range(4)]
    runs = slomodel.sweep(model, {"lam": LAM, "train": masks}, gtol=1e-9)
    assert len(runs) == 12
    assert [one.place for one in runs][:5] == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0)]
    for one in runs:
        expected = ridge(LAM[one.place[0]], folds != one.place[1])
        np.testing.assert_allclose(one.solution.x, expected, atol=1e-8)
    assert runs[5].row()["train"] == 1


def test_failures_and_interruptions_leave_the_other_runs(
    model: slomodel.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = slomodel.sweep(model, {"lam": [1.0, float("nan"), 0.1]}, gtol=1e-9)
    assert [one.solution is None for one in runs] == [False, True, False]
    assert "is nan" in runs.rows()[1]["status"]
    whole = sweeps._run

    def interrupted(*arguments: Any) -> Any:
        if arguments[1][0] == (2,):
            raise KeyboardInterrupt
        return whole(*arguments)

    monkeypatch.setattr(sweeps, "_run", interrupted)
    runs = slomodel.sweep(model, {"lam": LAM})
    assert [one.row()["status"] for one in runs] == ["converged", "converged", "not run"]
    with pytest.raises(DomainError, match="no run of the sweep"):
        slomodel.sweep(model, {"lam": [float("nan")]}).best.row()


def test_wrong_grids(model: slomodel.Model) -> None:
    for grid, words in [
        ({"mu": [1.0]}, "no data `mu`"),
        ({"lam": []}, "not a list"),
        ({}, "needs data"),
        ({"lam": 1.0}, "not a list"),
        ([1, 2], "a dict of lists"),
    ]:
        with pytest.raises(DomainError, match=words):
            slomodel.sweep(model, grid)  # type: ignore[arg-type]
    with pytest.raises(DomainError, match="takes a compiled model"):
        slomodel.sweep(TEXT, {"lam": [1.0]})  # type: ignore[arg-type]
    for options, words in [
        ({"foo": 2}, "no option 'foo'"),
        ({"x0": [1.0]}, "x0 has shape"),
        ({"client": "tcp://here:8786"}, "takes a client of dask.distributed, not str"),
    ]:
        with pytest.raises(SlomodelError, match=words):
            slomodel.sweep(model, {"lam": (one for one in LAM)}, **options)
    drawn = slomodel.compile("var x init normal(0, 1) minimize x^2", backend="numpy")
    with pytest.raises(DomainError, match="takes a client of dask"):
        drawn.solve(starts=2, client="local:2")


class Futures(Client):
    """A client whose tasks may depend on others, and have the states of `distributed`."""

    def submit(self, task: Any, *arguments: Any, **options: object) -> Task:
        own = [one.value if isinstance(one, Task) else one for one in arguments]
        done = Future(task(*own))
        return done

    def cancel(self, tasks: list[Task]) -> None:
        assert not tasks


class Future(Task):
    status = "finished"

    def result(self) -> object:
        return self.value

    def done(self) -> bool:
        return True


def test_sweeps_and_starts_on_a_cluster(
    model: slomodel.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", SimpleNamespace(as_completed=reversed))
    here = slomodel.sweep(model, {"lam": LAM}, gtol=1e-9)
    there = slomodel.sweep(model, {"lam": LAM}, gtol=1e-9, client=Futures(lost=0))
    for one, other in zip(here, there, strict=True):
        np.testing.assert_array_equal(one.solution.x, other.solution.x)
    several = slomodel.compile("var x[2] minimize sum(x^4 - x^2) + x[0] / 8", backend="numpy")
    best = several.solve(starts=4, seed=3)
    same = several.solve(starts=4, seed=3, client=Futures(lost=0))
    assert [one.fun for one in same.runs] == [one.fun for one in best.runs]
    np.testing.assert_array_equal(same.x, best.x)
    with pytest.raises(DomainError, match="leave workers out"):
        several.solve(starts=4, workers=2, client=Futures(lost=0))


MEAN = (
    "dim N, p data A[N, p], y[N], g[N] in p one_based, lam = 0.1 var w[p] "
    "minimize mean((A[i, :] @ w - y[i])^2 + w[g[i]] for i in N) + lam * sumsq(w)"
)


def test_minibatches_of_an_epoch_average_to_the_objective() -> None:
    groups = RNG.integers(1, P + 1, N)
    model = slomodel.compile(MEAN, data={"A": A, "y": Y, "g": groups}, backend="numpy")
    batches = slomodel.minibatches(model, 8, seed=3)
    assert (batches.dim, batches.batches, batches.total) == ("N", 5, N)
    x = RNG.normal(size=P)
    for epoch in (0, 5):
        found = [batches.value_and_gradient(x, epoch + k) for k in range(5)]
        assert np.mean([one[0] for one in found]) == pytest.approx(model.value(x), rel=1e-13)
        mean = np.mean([one[1] for one in found], axis=0)
        np.testing.assert_allclose(mean, model.gradient(x), rtol=1e-12)
    assert batches.value(x, 2) == slomodel.minibatches(model, 8, seed=3).value(x, 2)
    assert batches.value(x, 2) != batches.value(x, 7)
    sizes = MEAN.replace("lam = 0.1", "lam = 0.1 dim H = N*p data z[H]") + " + sumsq(z) * w[0]"
    data = {"A": A, "y": Y, "g": groups, "z": np.ones(N * P)}
    model_of_sizes = slomodel.compile(sizes, data=data, backend="numpy")
    found = [slomodel.minibatches(model_of_sizes, 8, dim="N").value(x, k) for k in range(5)]
    assert np.mean(found) == pytest.approx(model_of_sizes.value(x), rel=1e-13)
    whole = slomodel.minibatches(model, N)
    assert whole.value(x, 0) == pytest.approx(model.value(x), rel=1e-14)


def test_minibatches_that_do_not_exist() -> None:
    model = slomodel.compile(MEAN, data={"A": A, "y": Y, "g": np.ones(N)}, backend="numpy")
    with pytest.raises(DomainError, match="larger than `N`"):
        slomodel.minibatches(model, N + 1)
    with pytest.raises(DomainError, match="samples along `p`"):
        slomodel.minibatches(model, 4, dim="p")
    with pytest.raises(DomainError, match="compiled model with data"):
        slomodel.minibatches(MEAN, 4)  # type: ignore[arg-type]
    found = slomodel.minibatches(model, 4)
    assert found.value(model.solve(max_iter=1), 0) == found.value(model.solve(max_iter=1).x, 0)
    other = slomodel.compile("var x[2] minimize sumsq(x)")
    with pytest.raises(DomainError, match="along any dim"):
        slomodel.minibatches(other, 1)
