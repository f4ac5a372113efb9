"""The data shipped in models/: published invariants, and planted solutions."""

import hashlib
from functools import reduce
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

DATA = Path(__file__).parent.parent / "models" / "data"
Arrays = dict[str, NDArray[np.float64]]


def load(name: str) -> Arrays:
    with np.load(DATA / name, allow_pickle=False) as archive:
        return dict(archive.items())


def test_ijcnn1_is_the_stated_subset() -> None:
    data = load("ijcnn1_6000.npz")
    X = data["X"]
    digest = hashlib.sha256(np.ascontiguousarray(X).tobytes()).hexdigest()
    assert digest == "1d28d82844b7e4f294b5c4769892131108cb4f20202807c7d5a2d329fceb915a"
    assert X.shape == (22, 6000)
    assert np.array_equal(X[:10].sum(axis=0), np.ones(6000))
    assert np.mean(data["y"] == 1) == pytest.approx(0.0948, abs=5e-5)
    drawn = np.random.Generator(np.random.PCG64(20240601)).choice(49990, 6000, replace=False)
    assert np.array_equal(data["index"], np.sort(drawn))


def test_planted_labels_have_residual_zero() -> None:
    data = load("planted_labels.npz")
    X = load("ijcnn1_6000.npz")["X"]
    predicted = reduce(lambda signal, name: data[name] @ signal, ["W1", "W2", "W3", "w4"], X)
    assert np.abs(predicted - data["y"]).max() <= 1e-13 * np.abs(data["y"]).max()


def test_planted_tensor_is_symmetric_and_has_rank_five() -> None:
    data = load("planted_tensor.npz")
    T, X = data["T"], data["X"]
    assert X.shape == (5, 8)
    assert all(np.array_equal(T, T.transpose(axes)) for axes in permutations(range(5)))
    powers = np.einsum("ia,ib,ic,id,ie->abcde", X, X, X, X, X)
    assert np.abs(powers - T).max() <= 1e-14 * np.abs(T).max()
    gram = X @ X.T
    assert np.abs(gram - np.diag(np.diag(gram))).max() <= 1e-15 * gram.max()
