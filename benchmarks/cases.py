"""The timed cases: the models of models/ with data, from two unknowns to a million."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.by_hand import BY_HAND, Array, Arrays, Evaluate, deep_linear, student_t

MODELS = Path(__file__).parent.parent / "models"

STUDENT_T = """
model student_t
dim  N
data t[N], y[N], nu = 3
var  a, w, p init 1
minimize sum(log(1 + (y - a * sin(w * t + p))^2 / nu))
"""


STANDARDISED = """
model deep_linear_standardised
dim  d, N, h1 = 15, h2 = 10, h3 = 5
data X[d, N], y[N]
var  W1[h1, d], W2[h2, h1], W3[h3, h2], w4[h3] init uniform(0, 0.1)
let  m[i in d] = mean(X[i, j] for j in N)
let  s[i in d] = sqrt(1e-6 + mean((X[i, j] - m[i])^2 for j in N))
let  Z[i in d, j in N] = (X[i, j] - m[i]) / s[i]
minimize sumsq(y - w4' @ W3 @ W2 @ W1 @ Z)
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A model with data, and its hand-written value and gradient.

    `stated` are the arrays and defaults of the file, which only the hand-written version needs.
    """

    model: str
    size: str
    source: Path | str
    hand: Evaluate
    data: Arrays = field(default_factory=dict)
    dims: dict[str, int] = field(default_factory=dict)
    stated: Arrays = field(default_factory=dict)

    @property
    def known(self) -> Arrays:
        return self.stated | self.data


def cases(quick: bool = False, only: str | None = None) -> Iterator[Case]:
    """The cases one after another, so that only one holds memory; `quick` omits large ones.

    `only` names a model. Data without a file are drawn for each case from the same seed.
    """
    for model, small, large in _SIZES:
        if only not in (None, model):
            continue
        for sizes in small if quick else (*small, *large):
            yield _case(model, sizes)


def standardised_case() -> Case:
    """The deep linear network with the standardisation of its data in the objective."""
    found = stated("deep_linear")
    data = {name: found[name] for name in ("X", "y")}

    def hand(v: Arrays, known: Arrays) -> tuple[float, Arrays]:
        X = known["X"]
        centred = X - X.mean(axis=1, keepdims=True)
        scale = np.sqrt(1e-6 + (centred * centred).mean(axis=1, keepdims=True))
        return deep_linear(v, {"X": centred / scale, "y": known["y"]})

    return Case("deep_linear_standardised", "", STANDARDISED, hand, data)


# model, sizes of the quick run, sizes of the full run beyond those
_SIZES: tuple[tuple[str, tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]], ...] = (
    ("sym_tensor", ((),), ()),
    ("linear_autoencoder", ((),), ()),
    ("deep_linear", ((),), ()),
    ("softplus_net", ((),), ()),
    ("robust_logistic", ((2_000, 100),), ((10_000, 100), (100_000, 3))),
    ("tukey_regression", ((2_000, 100),), ((100_000, 3),)),
    ("rosenbrock", ((2,), (1_000,), (1_000_000,)), ()),
    ("phase_retrieval", ((2_000, 100),), ()),
    ("matrix_completion", ((200, 150),), ((1_000, 800),)),
    ("student_t", ((10_000,),), ((1_000_000,),)),
)


def _case(model: str, sizes: tuple[int, ...]) -> Case:
    source = STUDENT_T if model == "student_t" else MODELS / f"{model}.slo"
    hand = student_t if model == "student_t" else BY_HAND[model]
    dims = {"n": sizes[0]} if model == "rosenbrock" else {}
    size = "x".join(str(length) for length in sizes)
    return Case(model, size, source, hand, _drawn(model, sizes), dims, stated(model))


def _drawn(model: str, sizes: tuple[int, ...]) -> Arrays:
    """The data that a model's file needs."""
    rng = np.random.default_rng(1)
    if model == "matrix_completion":
        M = rng.standard_normal((sizes[0], 5)) @ rng.standard_normal((5, sizes[1]))
        return {"M": M, "Omega": (rng.random(M.shape) < 0.3).astype(float)}
    if model == "student_t":
        t = np.linspace(0.0, 10.0, sizes[0])
        return {"t": t, "y": np.sin(t) + 0.1 * rng.standard_t(3.0, t.size)}
    if len(sizes) < 2:
        return {}
    A = rng.standard_normal(sizes)
    signal = A @ rng.standard_normal(sizes[1])
    targets: dict[str, Array] = {
        "robust_logistic": np.sign(signal),
        "tukey_regression": signal + rng.standard_normal(sizes[0]),
        "phase_retrieval": signal**2,
    }
    return {"A": A, "y": targets[model]}


def stated(model: str) -> Arrays:
    """The arrays and the defaults that a model's file states."""
    defaults = {
        "softplus_net": {"lam": 1e-3},
        "robust_logistic": {"lam": 0.1, "eps": 1.0},
        "tukey_regression": {"c": 4.685},
        "rosenbrock": {"a": 1.0, "b": 100.0},
        "matrix_completion": {"lam": 1e-2},
        "student_t": {"nu": 3.0},
    }
    ijcnn1 = ("data/ijcnn1_6000.npz",)
    files = {
        "sym_tensor": ("data/planted_tensor.npz",),
        "linear_autoencoder": ijcnn1,
        "deep_linear": (*ijcnn1, "data/planted_labels.npz"),
        "softplus_net": ijcnn1,
    }
    found: Arrays = {key: np.asarray(x) for key, x in defaults.get(model, {}).items()}
    for file in files.get(model, ()):
        with np.load(MODELS / file, allow_pickle=False) as archive:
            found.update(archive.items())
    return found
