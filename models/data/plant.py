"""Make the planted data of `sym_tensor.slo` and `deep_linear.slo`: problems whose least value is 0.

Run from the repository's root: `python models/data/plant.py`.
"""

from functools import reduce
from itertools import pairwise, product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).parent
SEED = 20240601
Array = NDArray[np.float64]


def planted_tensor(rng: np.random.Generator, d: int = 8, m: int = 5) -> dict[str, Array]:
    """T (d, d, d, d, d), the sum of the fifth powers of the rows of X (m, d).

    The rows are orthogonal, with lengths uniform in [1, 2].
    """
    basis, _ = np.linalg.qr(rng.standard_normal((d, m)))
    X = rng.uniform(1.0, 2.0, m)[:, None] * basis.T
    T = np.empty((d,) * 5)
    for index in product(range(d), repeat=5):
        # Factors in sorted order: entries that symmetry makes equal are equal to the last bit.
        T[index] = np.prod(X[:, sorted(index)], axis=1).sum()
    return {"T": T, "X": X}


def planted_labels(rng: np.random.Generator, X: Array) -> dict[str, Array]:
    """y (N,) = w4' W3 W2 W1 X for X (d, N), and the weights; sizes d → 15 → 10 → 5 → 1.

    The entries of a weight are normal with variance one over its number of columns.
    """
    sizes = [X.shape[0], 15, 10, 5, 1]
    weights = [
        rng.standard_normal((rows, columns)) / np.sqrt(columns) for columns, rows in pairwise(sizes)
    ]
    y = reduce(lambda signal, weight: weight @ signal, weights, X)[0]
    W1, W2, W3, W4 = weights
    return {"y": y, "W1": W1, "W2": W2, "W3": W3, "w4": W4[0]}


def main() -> None:
    """Write both files beside this one."""
    rng = np.random.default_rng(SEED)
    np.savez_compressed(HERE / "planted_tensor.npz", **planted_tensor(rng))
    X = np.load(HERE / "ijcnn1_6000.npz")["X"]
    np.savez_compressed(HERE / "planted_labels.npz", **planted_labels(rng, X))


if __name__ == "__main__":
    main()
