"""Beyond the paper: networks with activations, tensors of other orders, CP, phases, completion.

The networks of Examples 1.2 and 1.3 on 1,000 points of ijcnn1 and on 600 images of digits, and
seven other models; where the least value is not known, it is the least one seen, as in the paper.

    python examples/paper/table_beyond.py --rounds 3 --seconds 2
"""

from __future__ import annotations

import numpy as np
from planted import orthogonal, sum_of_powers
from protocol import MODELS, PAPER_METHODS, Array, Case
from report import main

ACTIVATIONS = ("softplus", "tanh", "sigmoid")
# A proof over a ball of these networks takes 1 to 13 s; `--methods agp` and the like add them.
UNPROVED = [*PAPER_METHODS, "lbfgs exact", "auto"]
POINTS = {"ijcnn1": ("ijcnn1_6000.npz", 1000), "digits": ("digits.npz", 600)}


def networks() -> list[Case]:
    """Autoencoders and labelled networks; labels are ±1 for tanh, else 0 and 1."""
    found = []
    for data, (file, count) in POINTS.items():
        arrays = np.load(MODELS / "data" / file)
        X, y = arrays["X"][:, :count], arrays["y"][:count]
        for sigma in ACTIVATIONS:
            labels = y if sigma == "tanh" else (y + 1.0) / 2.0
            for model, old, more in (
                ("autoencoder", "softplus", {}),
                ("neural_net", "tanh", {"y": labels}),
            ):
                name, text = f"{model} {sigma} {data}", "sigma(t) = {}(t)"
                swap = (text.format(old), text.format(sigma))
                case = Case(name, model, (-0.5, 0.5), None, {"X": X, **more}, replace=swap)
                found.append(case)
    return found


def others(rng: np.random.Generator) -> list[Case]:
    """The toy; tensors of order 4 and 7, CP, phases, completion, all from planted unknowns."""
    signs = np.array([1.0, -1.0, 1.0, -1.0])
    even = sum_of_powers(orthogonal(rng, 6, 4) * rng.uniform(1, 2, (4, 1)), 4, signs)
    odd = sum_of_powers(orthogonal(rng, 4, 3) * rng.uniform(1, 1.5, (3, 1)), 7)
    factors = (rng.standard_normal((4, size)) for size in (10, 12, 14))
    cp = np.einsum("ia,ib,ic->abc", *factors)
    A, x = rng.standard_normal((400, 50)), rng.standard_normal(50)
    return [
        Case("softplus_toy", "softplus_toy", (0.0, 2.0)),
        Case("sym_tensor4", "sym_tensor4", (-0.5, 0.5), 0.0, {"T": even}, {"m": 4}),
        Case("sym_tensor7", "sym_tensor7", (0.0, 1.0), 0.0, {"T": odd}, {"m": 3}),
        Case("cp_tensor", "cp_tensor", (-0.5, 0.5), 0.0, {"T": cp}, {"m": 4}),
        Case("phase_retrieval", "phase_retrieval", (-1.0, 1.0), 0.0, {"A": A, "y": (A @ x) ** 2}),
        Case("matrix_completion", "matrix_completion", (-0.5, 0.5), None, completion(rng)),
    ]


def completion(rng: np.random.Generator) -> dict[str, Array]:
    """A matrix (60, 50) of rank 5 of which two fifths are known."""
    M = rng.standard_normal((60, 5)) @ rng.standard_normal((5, 50))
    return {"M": M, "Omega": (rng.random(M.shape) < 0.4).astype(float)}


if __name__ == "__main__":
    main("table_beyond", [*networks(), *others(np.random.default_rng(7))], methods=UNPROVED)
