"""Table 1 and Figure 1: symmetric tensor decomposition, d = 8, k = 5, m = 5, four tensors.

The paper's tensors are not given. Ours are drawn as it says, orthonormal vectors times random
scalars, and scaled to the sizes its table shows: bpg stays near the start, where f is about ‖T‖².

    python examples/paper/table_tensor.py --rounds 20 --seconds 10
"""

from __future__ import annotations

import numpy as np
from planted import orthogonal, sum_of_powers
from protocol import Case
from report import main

SQUARED_SIZES = (1e4, 1.1e-2, 1.4e-5, 2.2e4)
PAPER = {
    "tensor 1": {
        "std-armijo": (5.7e-6, 4.3e-5, 6.5e-1, 5.9e3),
        "bpg": (0.0, 0.0, 2.4e3, 2.4e3),
        "norm-armijo": (5.6e-6, 7.3e-5, 2.2e-1, 6.1e-1),
        "tgd": (5.1e-6, 5.9e-5, 6.5e-1, 8.3e3),
        "pgd": (5.1e-6, 5.9e-5, 6.5e-1, 8.2e3),
    },
    "tensor 2": {
        "std-armijo": (3.7e-7, 5.7e-6, 1.1e-2, 1.1e-2),
        "bpg": (0.0, 0.0, 1.1e-2, 1.1e-2),
        "norm-armijo": (3.8e-8, 5.8e-7, 8.2e-7, 6.5e-4),
        "tgd": (2.1e-8, 9.1e-7, 1.9e-4, 4.3e-3),
        "pgd": (2.7e-8, 1.3e-6, 1.9e-4, 4.3e-3),
    },
    "tensor 3": {
        "std-armijo": (2.3e-8, 1.4e-7, 1.4e-5, 1.4e-5),
        "bpg": (0.0, 0.0, 1.4e-5, 1.4e-5),
        "norm-armijo": (1.8e-10, 1.0e-8, 1.2e-8, 1.7e-7),
        "tgd": (1.7e-9, 3.4e-8, 1.1e-7, 5.6e-6),
        "pgd": (1.9e-9, 2.9e-8, 1.2e-8, 4.8e-6),
    },
    "tensor 4": {
        "std-armijo": (5.3e-7, 3.1e-3, 2.4e-3, 5.6e3),
        "bpg": (0.0, 0.0, 2.2e4, 2.2e4),
        "norm-armijo": (2.5e-7, 4.3e-3, 2.4e-3, 9.1e2),
        "tgd": (2.5e-6, 5.1e-3, 3.6e3, 5.8e3),
        "pgd": (2.5e-6, 5.2e-3, 3.6e3, 5.8e3),
    },
}


def tensor(seed: int, squared_size: float) -> np.ndarray:
    """Σ s_i^5 q_i ⊗ … ⊗ q_i with normal scalars s, scaled so that ‖T‖² = Σ s_i^10 is as given."""
    rng = np.random.default_rng(seed)
    s = rng.standard_normal(5)
    s *= (squared_size / np.sum(s**10)) ** 0.1
    return sum_of_powers(s[:, None] * orthogonal(rng, 8, 5), 5)


def cases() -> list[Case]:
    """The four tensors, from starts uniform in [0, 0.1]."""
    return [
        Case(f"tensor {k}", "sym_tensor", (0.0, 0.1), data={"T": tensor(k, size)})
        for k, size in enumerate(SQUARED_SIZES, start=1)
    ]


if __name__ == "__main__":
    main("table_tensor", cases(), PAPER)
