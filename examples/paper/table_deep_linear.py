"""Table 3 and Figure 3: the deep linear network 22-15-10-5-1 with planted labels on ijcnn1.

The paper's labels and units are not given. Ours are planted as it says; f is a mean over the 6,000
points, and the labels are scaled to what the table shows near 0, where f is ‖y‖² and bpg stays.

    python examples/paper/table_deep_linear.py --rounds 20 --seconds 10
"""

from __future__ import annotations

import numpy as np
from protocol import MODELS, Case
from report import main

STARTS = ((1e-3, 18.0), (1e-2, 0.23), (0.1, 0.23), (1.0, 0.23))
"""Where a start is drawn from, [0, top], and the value of f at 0."""
PAPER = {
    "U[0, 0.001]": {
        "std-armijo": (3.0e-16, 5.3e-8, 1.3e-30, 8.2),
        "bpg": (0.0, 0.0, 18.0, 18.0),
        "norm-armijo": (3.5e-16, 1.2e-15, 1.3e-30, 3.6e-30),
        "tgd": (2.3e-15, 1.6e-8, 5.1e-30, 2.7),
        "pgd": (1.9e-14, 2.7e-14, 2.7e-28, 5.4e-28),
    },
    "U[0, 0.01]": {
        "std-armijo": (5.5e-17, 5.8e-17, 1.1e-31, 1.3e-31),
        "bpg": (0.0, 0.0, 2.3e-1, 2.3e-1),
        "norm-armijo": (8.7e-18, 2.6e-17, 1.3e-32, 3.1e-32),
        "tgd": (9.3e-16, 1.1e-15, 2.2e-29, 3.3e-29),
        "pgd": (2.1e-16, 2.6e-16, 1.1e-30, 2.0e-30),
    },
    "U[0, 0.1]": {
        "std-armijo": (9.6e-17, 2.2e-14, 1.5e-29, 1.2e-22),
        "bpg": (0.0, 0.0, 3.4e-3, 3.7e-3),
        "norm-armijo": (2.0e-19, 6.7e-19, 3.6e-34, 8.4e-34),
        "tgd": (7.8e-19, 1.3e-18, 9.7e-34, 2.0e-33),
        "pgd": (2.6e-18, 7.8e-18, 7.5e-33, 7.5e-32),
    },
    "U[0, 1]": {
        "std-armijo": (3.8e-15, 3.9e-2, 5.6e-28, 3.5e-2),
        "bpg": (0.0, 0.0, 2.3e-1, 2.3e-1),
        "norm-armijo": (9.8e-15, 7.0e-2, 2.7e-27, 5.0e-2),
        "tgd": (5.0e-2, 8.9e-2, 3.4e-2, 1.3e-1),
        "pgd": (3.8e-2, 7.7e-2, 5.1e-2, 1.1e-1),
    },
}


def cases() -> list[Case]:
    """The four distributions of starts; the least value is 0."""
    X = np.load(MODELS / "data" / "ijcnn1_6000.npz")["X"]
    y = np.load(MODELS / "data" / "planted_labels.npz")["y"]
    X, y = X / np.sqrt(len(y)), y / np.linalg.norm(y)
    return [
        Case(f"U[0, {top:g}]", "deep_linear", (0.0, top), data={"X": X, "y": np.sqrt(size) * y})
        for top, size in STARTS
    ]


if __name__ == "__main__":
    main("table_deep_linear", cases(), PAPER)
