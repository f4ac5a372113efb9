"""Models over blocks of samples, against the same model with all data in memory."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import slomodel
from slomodel.errors import DomainError, SlomodelError
from slomodel.model import cluster
from slomodel.model.blocks import distributed_blocks
from slomodel.model.blocks.data import BlockOfSamples
from slomodel.model.blocks.evaluate import added
from slomodel.solve.objective import EvaluationLost

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.errors.ModelWarning")

N, P = 50, 4
RNG = np.random.default_rng(2)
A, Y = RNG.normal(size=(N, P)), RNG.normal(size=N)
G = RNG.integers(0, 3, N)
FULL: dict[str, np.ndarray] = {"A": A, "y": Y, "g": G, "X": A.T}
CUTS = [7, 8, 30]
AXES = {"A": 0, "y": 0, "g": 0, "X": 1}

SUMS = {
    "dim N, p data A[N, p], y[N] var w[p], b init 0.1 "
    "minimize mean(softplus(-y .* (A @ w + b))) + 0.1 * sumsq(w)": "Ay",
    "dim p, N data X[p, N] var W[3, p], V[p, 3] init normal(0, 0.5) "
    "minimize sumsq(X - V @ (W @ X)) / N": "X",
    "dim N, p, G = 3 data A[N, p], y[N], g[N] in G var w[p], a[G] init 0 var s > 0 init 2 "
    "let r = (y - A @ w - a[g]) / s minimize sumsq(r) / 2 + N * log(s) - 3 + sumsq(a)": "Ayg",
    "dim N, p, G = 3 data A[N, p], y[N], g[N] in G var w[p] in [-1, 1] "
    "let t[k in G] = sum((A[i, 0] * w[0] - y[i])^2 for i in N if g[i] == k) "
    "minimize 2 * sum(t) - sum(logsumexp(A[i, j] * w[j] for j in p) for i in N)": "Ayg",
    "dim N, p data A[N, p], y[N], c[p] = 0.5 var w[p] let Q = A' @ (A .* y[:, None]) "
    "minimize w @ Q @ w - dot(c, w) + exp(w[0]) * mean(A @ w) "
    "+ sum(w[j]^4 for i in N, j in p)": "Ay",
    "dim N, p, H = N*p, M = N*N - N data A[N, p], y[N] var w[p], v[H], u[M] init 0.5 "
    "minimize sumsq(y - A @ w) / N + sumsq(v - 1) / H + sumsq(u)": "Ay",
    "dim N, p data A[N, p], y[N] var w[p] "
    "maximize -sum(where(y[i] > 0, max(A[i, j] * w[j] for j in p), w[1]^2) for i in N)": "Ay",
}
"""Objectives that are sums over samples, and their data."""


def pair(text: str, names: str, backend: str = "numpy") -> tuple[slomodel.Model, Any]:
    """The model with all data, and over blocks."""
    full = {name: FULL[name] for name in names}
    blocks = {name: np.split(FULL[name], CUTS, axis=AXES[name]) for name in names}
    waiting = slomodel.compile(text, backend=backend)
    return slomodel.compile(text, data=full, backend=backend), slomodel.over_blocks(waiting, blocks)


@pytest.mark.parametrize("text", SUMS)
def test_value_gradient_and_products(text: str) -> None:
    model, blocked = pair(text, SUMS[text])
    assert blocked.samples == ("N", N)
    assert blocked.variables == model.variables
    x = model.x0(4)
    np.testing.assert_array_equal(blocked.x0(4), x)
    v = RNG.normal(size=model.n)
    assert blocked.value(x) == pytest.approx(model.value(x), rel=1e-13)
    scale = np.abs(model.gradient(x)).max()
    np.testing.assert_allclose(blocked.gradient(x), model.gradient(x), atol=1e-13 * scale)
    np.testing.assert_allclose(blocked.hvp(x, v), model.hvp(x, v), rtol=1e-11, atol=1e-11)


def test_solve_in_open_and_closed_sets() -> None:
    for text in list(SUMS)[2:4]:
        model, blocked = pair(text, SUMS[text], "numpy")
        ours, whole = blocked.solve(gtol=1e-8), model.solve(gtol=1e-8)
        assert ours.fun == pytest.approx(whole.fun, rel=1e-10)
        assert set(ours.variables) == set(model.variables)


NOT_SUMS = {
    "sqrt(sumsq(A @ w - y) + 1)": "is not linear",
    "sumsq((A - mean(A, axis=0)[None, :]) @ w - y)": "combines samples",
    "sumsq(A @ w - y) + sum(A[i, 0] * y[i + 1] * w[0] for i in range(N - 1))": "neighbouring",
    "logsumexp(A @ w - y)": "sum over",
    "sum((A[i, 0] - A[k, 0])^2 * w[0] * y[i] for i in N, k in N)": "pairs",
    "sum(i * A[i, 0] * y[i] for i in N) * w[0]": "all samples",
    "sumsq(z .* (A @ w) - y)": "has elements for every sample",
    "max(A @ w - y)": "needs all samples",
    "sum(y[i] * w[0] for i in N if A[i, 0] > max(A[:, 0]) - 1)": "all samples",
    "dot(A[::2, 0], y[::2]) * w[0]": "computed places",
}


@pytest.mark.parametrize("text", NOT_SUMS)
def test_other_objectives_are_refused_with_the_reason(text: str) -> None:
    head = "dim N, p data A[N, p], y[N] var w[p], z[N] minimize "
    waiting = slomodel.compile(head + text, dims={"N": N})
    with pytest.raises(SlomodelError, match=NOT_SUMS[text]) as caught:
        slomodel.over_blocks(waiting, {"A": np.split(A, CUTS), "y": np.split(Y, CUTS)})
    assert "is not a sum over blocks of `N`" in str(caught.value)


TEXT = next(iter(SUMS))


def test_folders_and_memory_change_no_bit(tmp_path: Path) -> None:
    for name in ("A", "y"):
        (tmp_path / name).mkdir()
        for k, part in enumerate(np.array_split(FULL[name], 11)):
            np.save(tmp_path / name / f"part_{k}.npy", part)  # part_10 follows part_9
    given = {name: tmp_path / name for name in ("A", "y")}
    waiting = slomodel.compile(TEXT)
    x = RNG.normal(size=P + 1)
    found = [
        slomodel.over_blocks(waiting, given, memory=memory).value_and_gradient(x)
        for memory in (0, 1000, 10**9)
    ]
    assert found[0][0] == pytest.approx(slomodel.compile(TEXT, data={"A": A, "y": Y}).value(x))
    for value, gradient in found[1:]:
        assert value == found[0][0]
        np.testing.assert_array_equal(gradient, found[0][1])


def test_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    waiting = slomodel.compile(TEXT)
    parts = {"A": np.split(A, CUTS), "y": np.split(Y, CUTS)}
    wrong: list[tuple[Mapping[str, object], str]] = [
        ({**parts, "y": np.split(Y, [8, 9, 30])}, "do not agree"),
        ({**parts, "A": [A[:7], A[7:8], A[8:, :2], A[30:]]}, "do not agree"),
        ({**parts, "B": [Y]}, "no data `B`"),
        ({**parts, "y": tmp_path}, "not a folder with npy files"),
        ({**parts, "y": Y}, "not given in blocks"),
        ({**parts, "y": [Y[:7, None], *parts["y"][1:]]}, "number"),
    ]
    for given, words in wrong:
        with pytest.raises(SlomodelError, match=words):
            slomodel.over_blocks(waiting, given)
    (tmp_path / "0.npy").write_bytes(b"no array")
    with pytest.raises(SlomodelError, match="cannot read the block"):
        slomodel.over_blocks(waiting, {**parts, "y": tmp_path})


def test_a_square_partition_needs_the_dim() -> None:
    text = "dim n, m data B[n, m] var x minimize sum(B) * x + x^2"
    blocks = {"B": [np.ones((3, 3))]}
    with pytest.raises(DomainError, match="give dim='n'"):
        slomodel.over_blocks(slomodel.compile(text), blocks)
    blocked = slomodel.over_blocks(slomodel.compile(text), blocks, dim="m")
    assert blocked.value([2.0]) == 22.0


def test_compressed_blocks_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(6, 3000)), rng.normal(size=3000)
    text = (
        "dim p, N data X[p, N], y[N] var W[2, p], V[p, 2], w[p], c init normal(0, 0.5) "
        "minimize sumsq(X - V @ (W @ X)) / N + sumsq(w @ X + c - y) + sumsq(w)"
    )
    whole = slomodel.compile(text, data={"X": X, "y": y})
    cuts = [900, 1800, 2996]  # the last block has fewer samples than the factor has rows
    blocks = {"X": np.split(X, cuts, axis=1), "y": np.split(y, cuts)}
    blocked = slomodel.over_blocks(slomodel.compile(text), blocks, compress=True)
    x, v = whole.x0(1), rng.normal(size=whole.n)
    monkeypatch.setattr(BlockOfSamples, "read", None)
    assert blocked.value(x) == pytest.approx(whole.value(x), rel=1e-13)
    np.testing.assert_allclose(blocked.gradient(x), whole.gradient(x), rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(blocked.hvp(x, v), whole.hvp(x, v), rtol=1e-9, atol=1e-8)


def test_what_cannot_be_compressed() -> None:
    waiting = slomodel.compile(TEXT)
    blocks = {"A": np.split(A, CUTS), "y": np.split(Y, CUTS)}
    with pytest.raises(DomainError, match="can be compressed"):
        slomodel.over_blocks(waiting, blocks, compress=True)


def test_the_order_of_addition_depends_on_the_count_alone() -> None:
    numbers = RNG.normal(size=700) * 10.0 ** RNG.integers(-8, 8, 700)

    def by_eights(values: list[float]) -> float:
        while len(values) > 1:
            groups = [values[k : k + 8] for k in range(0, len(values), 8)]
            values = [_plain(group) for group in groups]
        return values[0]

    for count in (1, 7, 8, 9, 64, 65, 700):
        found = added((one, np.array([one])) for one in numbers[:count].tolist())
        assert found[0] == by_eights(numbers[:count].tolist())
        assert found[1] is not None
        assert found[1][0] == found[0]


def _plain(group: list[float]) -> float:
    total = group[0]
    for one in group[1:]:
        total += one
    return total


class Task:
    """A future of the client below."""

    def __init__(self, value: object) -> None:
        self.value = value

    def release(self) -> None:
        pass


def _values(arguments: tuple[Any, ...]) -> list[Any]:
    return [one.value if isinstance(one, Task) else one for one in arguments]


class KilledWorker(Exception):
    """The exception of `distributed` for a task whose workers died, by name."""


class Client:
    """A client in this process: what it sends is pickled, and some evaluations lose a worker."""

    def __init__(self, lost: int) -> None:
        self.lost = lost
        self.sent = 0
        self.tasks = 0

    def submit(self, task: Any, *arguments: Any, **options: object) -> Task:
        if task is cluster._same:
            self.sent += 1
            return Task(pickle.loads(pickle.dumps(arguments[0])))
        self.tasks += 1
        return Task(task(*_values(arguments)))

    def nthreads(self) -> dict[str, int]:
        return {"tcp://here": 1}

    def gather(self, tasks: list[Task]) -> list[object]:
        if self.lost:
            self.lost -= 1
            raise KilledWorker
        return [task.value for task in tasks]


def test_a_cluster_gives_the_same_bits_and_survives_lost_workers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(distributed_blocks, "_address", lambda: "tcp://here")
    blocks = {"A": np.array_split(A, 9), "y": np.array_split(Y, 9)}
    waiting = slomodel.compile(TEXT, backend="numpy")
    x, v = RNG.normal(size=P + 1), RNG.normal(size=P + 1)
    here = slomodel.over_blocks(waiting, blocks)
    client = Client(lost=2)
    there = slomodel.over_blocks(waiting, blocks, client=client)
    np.testing.assert_array_equal(there.gradient(x), here.gradient(x))
    np.testing.assert_array_equal(there.hvp(x, v), here.hvp(x, v))
    assert there.value(x) == here.value(x)
    assert client.sent == 30  # the kernels and 9 blocks, once for each loss more
    client.lost = 3
    with pytest.raises(EvaluationLost, match="does not answer any more"):
        there.value(x)
    with pytest.raises(DomainError, match="client of dask"):
        slomodel.over_blocks(waiting, blocks, client="tcp://…")


def test_blocks_in_files_go_to_a_cluster_by_groups(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(distributed_blocks, "_address", lambda: "tcp://here")
    rows, there = [np.full((2, P), k + 0.1) for k in range(36)], Client(lost=1)
    for name, parts in (("A", rows), ("y", [one[:, 0] for one in rows])):
        (tmp_path / name).mkdir()
        for k, part in enumerate(parts):
            np.save(tmp_path / name / f"{k}.npy", part)
    given = {name: tmp_path / name for name in ("A", "y")}
    waiting = slomodel.compile(LEAST_SQUARES, backend="numpy")
    x = RNG.normal(size=P)
    here = slomodel.over_blocks(waiting, given).value_and_gradient(x)
    found = slomodel.over_blocks(waiting, given, client=there).value_and_gradient(x)
    assert found[0] == here[0]
    np.testing.assert_array_equal(found[1], here[1])
    assert there.tasks == 2 * 5  # groups of eight blocks, once more for the loss


def test_blocks_are_compressed_on_a_cluster_to_the_same_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(distributed_blocks, "_address", lambda: "tcp://here")
    rng = np.random.default_rng(9)
    blocks = {"A": np.array_split(rng.normal(size=(900, P)), 3), "y": np.split(np.ones(900), 3)}
    waiting = slomodel.compile(LEAST_SQUARES)
    here = slomodel.over_blocks(waiting, blocks, compress=True)
    there = slomodel.over_blocks(waiting, blocks, compress=True, client=Client(lost=1))
    x = rng.normal(size=P)
    np.testing.assert_array_equal(there.gradient(x), here.gradient(x))
    plain = slomodel.over_blocks(waiting, blocks).gradient(x)
    np.testing.assert_allclose(here.gradient(x), plain, rtol=1e-12)


LEAST_SQUARES = (
    "dim N, p data A[N, p], y[N] var w[p] init 0 minimize sumsq(A @ w - y) / N + sumsq(w)"
)


def test_a_task_carries_its_own_block_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed_blocks, "_address", lambda: "tcp://here")
    sizes = []
    for count in (2, 20):
        blocks = {"A": [A] * count, "y": [Y] * count}
        blocked = slomodel.over_blocks(slomodel.compile(TEXT, backend="numpy"), blocks)
        sizes += [len(pickle.dumps(one)) for one in blocked._blocks()]
    assert max(sizes) < 1.1 * min(sizes)
    assert max(sizes) < 1.5 * (A.nbytes + Y.nbytes)


def test_without_the_package_a_message_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(DomainError, match=r"pip install slomodel\[dask\]"):
        cluster.client_of("local:2")


@pytest.mark.slow
def test_local_workers_and_a_killed_one() -> None:
    distributed = pytest.importorskip("distributed")
    del distributed
    import os
    import signal

    blocks = {"A": np.array_split(A, 9), "y": np.array_split(Y, 9)}
    waiting = slomodel.compile(TEXT)
    here = slomodel.over_blocks(waiting, blocks).solve(gtol=1e-8)
    with cluster.connected("local:2") as client:
        assert client is not None
        there = slomodel.over_blocks(waiting, blocks, client=client)
        x = here.x + 0.1
        expected = slomodel.over_blocks(waiting, blocks).gradient(x)
        np.testing.assert_array_equal(there.gradient(x), expected)
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        np.testing.assert_array_equal(there.gradient(x), expected)
        np.testing.assert_array_equal(there.solve(gtol=1e-8).x, here.x)
