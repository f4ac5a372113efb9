"""Times `value_and_gradient` of the models against NumPy written by hand.

Prints one row a model: unknowns, milliseconds to compile and plan, microseconds a call by hand and
on both targets, and the largest deviation from the hand-written gradient relative to its largest
entry.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import slomodel
from benchmarks.by_hand import BY_HAND, Array, Arrays

MODELS = Path(__file__).parent.parent / "models"
SEED = 1
REPEATS = 7
SECONDS_A_REPEAT = 0.1


@dataclass(frozen=True, slots=True)
class Case:
    """A model with what its file leaves open."""

    name: str
    data: Arrays = field(default_factory=dict)
    dims: dict[str, int] = field(default_factory=dict)


def cases(rng: np.random.Generator) -> list[Case]:
    """The nine models; what their files leave open is drawn from `rng`."""
    N, n = 2000, 100
    A = rng.standard_normal((N, n))
    signal = A @ rng.standard_normal(n)
    M = rng.standard_normal((200, 5)) @ rng.standard_normal((5, 150))
    return [
        Case("sym_tensor"),
        Case("linear_autoencoder"),
        Case("deep_linear"),
        Case("softplus_net"),
        Case("robust_logistic", {"A": A, "y": np.sign(signal)}),
        Case("tukey_regression", {"A": A, "y": signal + rng.standard_normal(N)}),
        Case("rosenbrock", dims={"n": 10_000}),
        Case("phase_retrieval", {"A": A, "y": signal**2}),
        Case("matrix_completion", {"M": M, "Omega": (rng.random(M.shape) < 0.3).astype(float)}),
    ]


def file_data(name: str) -> Arrays:
    """The arrays that a model's file names, and the defaults that it states."""
    defaults = {
        "softplus_net": {"lam": 1e-3},
        "robust_logistic": {"lam": 0.1, "eps": 1.0},
        "tukey_regression": {"c": 4.685},
        "rosenbrock": {"a": 1.0, "b": 100.0},
        "matrix_completion": {"lam": 1e-2},
    }
    ijcnn1 = ("data/ijcnn1_6000.npz",)
    files = {
        "sym_tensor": ("data/planted_tensor.npz",),
        "linear_autoencoder": ijcnn1,
        "deep_linear": (*ijcnn1, "data/planted_labels.npz"),
        "softplus_net": ijcnn1,
    }
    found: Arrays = {key: np.asarray(x) for key, x in defaults.get(name, {}).items()}
    for file in files.get(name, ()):
        with np.load(MODELS / file, allow_pickle=False) as archive:
            found.update(archive.items())
    return found


def microseconds(calls: list[Callable[[], object]]) -> list[float]:
    """Least mean time of each call over `REPEATS` runs of about `SECONDS_A_REPEAT`.

    The calls take turns, so that a busy spell of the machine meets all of them.
    """
    numbers = []
    for call in calls:
        start = time.perf_counter()
        call()
        numbers.append(max(1, int(SECONDS_A_REPEAT / max(time.perf_counter() - start, 1e-7))))
    best = [np.inf] * len(calls)
    for _ in range(REPEATS):
        for k, (call, number) in enumerate(zip(calls, numbers, strict=True)):
            start = time.perf_counter()
            for _ in range(number):
                call()
            best[k] = min(best[k], (time.perf_counter() - start) / number)
    return [1e6 * seconds for seconds in best]


def deviation(gradient: Array, by_hand: Array) -> float:
    """Largest difference, relative to the largest entry."""
    return float(np.abs(gradient - by_hand).max() / np.abs(by_hand).max())


def build(case: Case, backend: str) -> tuple[slomodel.Model, Array, float]:
    """The model, a point of it, and the milliseconds until its first gradient there."""
    start = time.perf_counter()
    path = MODELS / f"{case.name}.slo"
    model = slomodel.compile(path, data=case.data, dims=case.dims, backend=backend)
    # Away from the start: some models start at 0, where terms vanish.
    x = model.x0(seed=SEED) + 0.01 * np.random.default_rng(SEED).standard_normal(model.n)
    model.value_and_gradient(x)
    return model, x, 1e3 * (time.perf_counter() - start)


def row(case: Case) -> str:
    """One line of the table."""
    data = file_data(case.name) | case.data
    fast, x, milliseconds = build(case, "numexpr")
    plain, _, _ = build(case, "numpy")
    variables = fast.unpack(x)
    by_hand = fast.pack(BY_HAND[case.name](variables, data)[1])
    worst = max(deviation(m.value_and_gradient(x)[1], by_hand) for m in (fast, plain))
    hand, numexpr, numpy = microseconds(
        [
            lambda: BY_HAND[case.name](variables, data),
            lambda: fast.value_and_gradient(x),
            lambda: plain.value_and_gradient(x),
        ]
    )
    return (
        f"{case.name:20s}{fast.n:7d}{milliseconds:10.0f}{hand:11.1f}{numexpr:11.1f}"
        f"{numpy:11.1f}{hand / numexpr:9.2f}{worst:10.1e}"
    )


def main() -> None:
    """Print the table."""
    print("value and gradient, times in us; speed = hand / numexpr")
    print(
        f"{'model':20s}{'n':>7s}{'build ms':>10s}{'hand':>11s}{'numexpr':>11s}{'numpy':>11s}"
        f"{'speed':>9s}{'deviation':>10s}"
    )
    for case in cases(np.random.default_rng(SEED)):
        print(row(case), flush=True)


if __name__ == "__main__":
    main()
