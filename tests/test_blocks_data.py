"""Data and constraints of models over blocks: what is cut, checked and refused, and where."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import slomodel
from slomodel.errors import DomainError, ShapeError, SlomodelError
from slomodel.model.blocks import distributed_blocks
from slomodel.model.blocks.evaluate import BlockKernels
from tests.test_blocks import Client, Task

N, P = 24, 3
RNG = np.random.default_rng(6)
A, Y = RNG.normal(size=(N, P)), RNG.normal(size=N)
CUTS = [5, 11]
HEAD = "dim N, p data A[N, p], y[N] "
TEXT = HEAD + "var w[p] init 1 minimize mean((A @ w - y)^2)"
W = RNG.normal(size=P)


def cut(array: np.ndarray) -> list[np.ndarray]:
    return np.split(array, CUTS)


def over(text: str, **options: Any) -> Any:
    waiting = slomodel.compile(text, backend="numpy")
    return slomodel.over_blocks(waiting, {"A": cut(A), "y": cut(Y)}, **options)


def in_memory(text: str) -> slomodel.Model:
    return slomodel.compile(text, data={"A": A, "y": Y}, backend="numpy")


@pytest.mark.parametrize(
    "constraint", ["sum(w) == 1", "sumsq(w) <= 0.01", "sum(w) >= 1, w[0] <= 0.1"]
)
@pytest.mark.parametrize("sense", ["minimize ", "maximize -"])
def test_constraints_without_samples(constraint: str, sense: str) -> None:
    text = TEXT.replace("minimize ", sense) + f" subject to {constraint}"
    found, expected = over(text).solve(gtol=1e-9), in_memory(text).solve(gtol=1e-9)
    np.testing.assert_allclose(found.x, expected.x, atol=1e-6)
    assert found.fun == pytest.approx(expected.fun, abs=1e-7)


def test_constraints_beside_open_sets() -> None:
    text = TEXT.replace("init 1", "in (0, 1)") + " subject to sum(w) <= 0.5"
    found, expected = over(text).solve(seed=1), in_memory(text).solve(seed=1)
    np.testing.assert_allclose(found.x, expected.x, atol=1e-5)


@pytest.mark.parametrize("constraint", ["A @ w >= 0.5", "sum(y) * w[0] <= 1", "dot(y, A @ w) == 0"])
def test_constraints_on_samples_are_refused(constraint: str) -> None:
    with pytest.raises(DomainError, match=r"the constraint .* depends on samples along `N`"):
        over(f"{TEXT} subject to {constraint}")


def test_checks_are_made_on_every_block() -> None:
    head = HEAD + "check {} var w[p] init 1 minimize sumsq(A @ w - y)"
    expected = in_memory(TEXT.replace("mean((A @ w - y)^2)", "sumsq(A @ w - y)")).value(W)
    for check in ("y < 100 and N > 20", "p == 3", "A > -9"):
        assert over(head.format(check)).value(W) == pytest.approx(expected, rel=1e-13)
    with pytest.raises(DomainError, match=r"needs all samples along `N` at once"):
        over(head.format("sum(y) < 100"))
    failing = np.searchsorted(CUTS, np.argmax(Y), side="right")
    with pytest.raises(DomainError, match=rf"does not hold.*in block {failing}"):
        over(head.format(f"y <= {float(np.sort(Y)[-2])}")).value(W)


def test_arrays_in_memory_are_cut_like_the_blocks() -> None:
    waiting = slomodel.compile(TEXT, data={"y": Y}, backend="numpy")
    blocked = slomodel.over_blocks(waiting, {"A": cut(A)})
    assert blocked.value(W) == over(TEXT).value(W)
    with pytest.raises(DomainError, match="N` is 23 in the blocks, but 24"):
        slomodel.over_blocks(waiting, {"A": [A[:5], A[5:23]]})


def test_empty_blocks_and_numbers_of_other_types() -> None:
    parts: list[Any] = [A[:0], A[:5].astype(">f4"), A[5:5], np.asfortranarray(A[5:]).tolist()]
    ys = [Y[:0], Y[:5], Y[5:5], Y[5:]]
    waiting = slomodel.compile(TEXT, backend="numpy")
    found = slomodel.over_blocks(waiting, {"A": parts[1:], "y": ys[1:]}).value(W)
    assert found == slomodel.over_blocks(waiting, {"A": parts, "y": ys}).value(W)
    assert found == pytest.approx(in_memory(TEXT).value(W), rel=1e-5)
    with pytest.raises(DomainError, match="no block has samples"):
        slomodel.over_blocks(waiting, {"A": [A[:0]], "y": [Y[:0]]})


def test_errors_name_the_block_and_its_files(tmp_path: Path) -> None:
    for name, array in (("A", A), ("y", Y)):
        (tmp_path / name).mkdir()
        for k, part in enumerate(cut(array)):
            np.save(tmp_path / name / f"{k}.npy", part)
    waiting = slomodel.compile(TEXT, backend="numpy")
    folders = {name: tmp_path / name for name in ("A", "y")}
    bad = A[CUTS[1] :].copy()
    bad[2, 1] = np.nan
    np.save(tmp_path / "A" / "2.npy", bad)
    with pytest.raises(DomainError, match=r"`A\[2, 1\]`, which is nan \(in block 2: .*A/2.npy"):
        slomodel.over_blocks(waiting, folders).value(W)
    blocked = slomodel.over_blocks(waiting, folders, memory=0)
    np.save(tmp_path / "A" / "1.npy", A[:5])
    np.save(tmp_path / "y" / "1.npy", Y[:5])
    with pytest.raises(ShapeError, match=r"had 6 samples before, and has 5 \(in block 1"):
        blocked.value(W)
    np.save(tmp_path / "A" / "1.npy", A[CUTS[0] : CUTS[1]])
    np.save(tmp_path / "A" / "2.npy", A[CUTS[1] :])
    np.save(tmp_path / "y" / "1.npy", Y[CUTS[0] : CUTS[1]])

    def lose(state: Any) -> None:
        if state.k == 1:
            (tmp_path / "y" / "1.npy").unlink()

    found = blocked.solve(method="gd", L=100.0, callback=lose)
    assert (found.status, found.nit) == ("interrupted", 1)
    assert "cannot read the block" in found.message
    with pytest.raises(SlomodelError, match=r"cannot read the block .*y/1.npy"):
        blocked.value(W)


def test_labels_are_those_of_the_first_block_or_given() -> None:
    text = (
        "dim N, G data y[N], g[N] in G labels var u[G] init 1 "
        "minimize sum((y[i] - u[g[i]]^2)^2 for i in N) + sumsq(u)"
    )
    labels = np.array(["b", "c"] * 6 + ["a", "b"] * 6)
    blocks = {"y": np.split(Y, 2), "g": np.split(labels, 2)}
    blocked = slomodel.over_blocks(slomodel.compile(text, backend="numpy"), blocks)
    with pytest.raises(DomainError, match=r"`g\[0\]` is `a`, .*in block 1"):
        blocked.value([1.0, 2.0])
    # A worker of a cluster may begin with any block.
    kernels: BlockKernels = pickle.loads(pickle.dumps(BlockKernels(blocked._parts, 0)))
    with pytest.raises(DomainError, match="is not a label"):
        kernels("value", blocked._blocks()[1], np.array([1.0, 2.0]), None)
    waiting = slomodel.compile(text, labels={"G": ["a", "b", "c"]}, backend="numpy")
    u = [1.0, 2.0, 3.0]
    whole = slomodel.compile(text, data={"y": Y, "g": labels}, backend="numpy")
    assert slomodel.over_blocks(waiting, blocks).value(u) == pytest.approx(whole.value(u))


def test_variables_held_and_single_precision() -> None:
    text = HEAD + "var w[p], b init 1 minimize sumsq(A @ w + b - y)"
    held = slomodel.compile(text, dims={"p": P, "N": N}, backend="numpy").fix(b=2.0)
    blocked = slomodel.over_blocks(held, {"A": cut(A), "y": cut(Y)})
    assert blocked.value(W) == pytest.approx(np.sum((A @ W + 2.0 - Y) ** 2), rel=1e-13)
    single = slomodel.compile(text, dtype="float32", backend="numpy")
    eps = slomodel.over_blocks(single, {"A": cut(A), "y": cut(Y)})._users.eps
    assert eps == np.finfo(np.float32).eps


class Lazy:
    """An array of Dask in one block, of a size that may not be known."""

    def __init__(self, array: np.ndarray, shape: tuple[float, ...]) -> None:
        self.array, self.shape = array, shape
        self.blocks = np.array([None])
        self.blocks[0] = self

    def __dask_graph__(self) -> None: ...

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.array


def test_arrays_of_dask_are_computed_by_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed_blocks, "_address", lambda: "tcp://here")
    waiting = slomodel.compile(TEXT, backend="numpy")
    lazy, client = Lazy(A, A.shape), Client(lost=0)
    computed: list[object] = []
    client.compute = lambda one: computed.append(one) or Task(one.array)  # type: ignore[attr-defined]
    there = slomodel.over_blocks(waiting, {"A": lazy, "y": [Y]}, client=client)
    assert [there.value(W) for _ in range(2)] == [pytest.approx(in_memory(TEXT).value(W))] * 2
    assert computed == [lazy]
    with pytest.raises(DomainError, match=r"not known\n help: call its compute_chunk_sizes"):
        slomodel.over_blocks(waiting, {"A": Lazy(A, (np.nan, P)), "y": [Y]})


def test_several_starts() -> None:
    text = TEXT.replace("init 1", "init normal(0, 1)") + " + sum(w^4 - w^2)"
    found, expected = (one(text).solve(starts=3, seed=1) for one in (over, in_memory))
    assert len(found.runs) == 3
    assert found.fun == pytest.approx(expected.fun, rel=1e-9)
    for name in ("workers", "hops", "client"):
        with pytest.raises(DomainError, match=f"{name} cannot be combined with data in blocks"):
            over(text).solve(starts=2, **{name: 2})


def test_wrong_arguments() -> None:
    waiting = slomodel.compile(TEXT, backend="numpy")
    wrong: list[tuple[Any, Any, str]] = [
        (TEXT, {"A": cut(A)}, "takes a compiled model"),
        (waiting, [A, Y], "a dict of data"),
        (waiting, {}, "no data are given in blocks"),
        (waiting, {"A": cut(A)}, "no values for data `y`"),
        (waiting, {"A": [A[:5], A[5:, :2]], "y": [Y[:5], Y[5:]]}, r"shapes \(5, 3\), \(19, 2\)"),
        (waiting, {"A": "/nowhere", "y": cut(Y)}, "there is no folder `/nowhere`"),
        (waiting, {"A": __file__, "y": cut(Y)}, "is a file"),
        (waiting, {"A": cut(A), "y": [Y[:5], Y[5:]]}, r"along `N` \(5, 6, 13\).*`N` \(5, 19\)"),
        (slomodel.compile("var x minimize x^2"), {"A": cut(A)}, "there is none"),
    ]
    for model, data, words in wrong:
        with pytest.raises(SlomodelError, match=words):
            slomodel.over_blocks(model, data)
