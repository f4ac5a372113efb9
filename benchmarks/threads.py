"""Two threads against one, and float32 against float64, on models of a millisecond and more.

    python -m benchmarks.threads [NAME …] [--quick] [--write]

One row for each model: value and gradient, and the product of the Hessian and a vector, at 10
points one after another on target c. `2 threads` is the median over pairs of alternating runs of
the wall-clock time of one thread over that of two; `bits` says whether both find the same.
`float32` is the time of float64 over that of float32, on one thread and at float32 points. `bytes`
are those of data and unknowns in float64: what exceeds the cache is bound by memory, where half of
the bytes should take half of the time. `--write` puts the table in results/threads.md.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numexpr
import numpy as np

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).parent.parent))

import slomodel
from benchmarks.by_hand import Array, Arrays
from benchmarks.cases import MODELS
from benchmarks.evaluate import in_columns
from benchmarks.measure import Call, seconds
from benchmarks.result_page import ResultPage
from benchmarks.targets import mean
from benchmarks.unseen_models import Rng

POINTS = 10
TARGETS = {"2 threads": 1.7, "float32": 1.6}


@dataclass(frozen=True, slots=True)
class Large:
    """A model: its text, its data from a generator, its sizes, a magnitude of its unknowns."""

    name: str
    source: str | Path
    data: Callable[[Rng], Arrays]
    dims: dict[str, int]
    spread: float = 0.1


@dataclass(frozen=True, slots=True)
class Row:
    """One model: milliseconds, ratios of time one / two threads and double / single precision."""

    model: str
    n: int
    ms: float
    hvp_ms: float
    two: float
    hvp_two: float
    same_bits: bool
    single: float
    hvp_single: float
    bytes: int


def _rows(N: int, n: int, labels: Callable[[Rng, int], Array]) -> Callable[[Rng], Arrays]:
    return lambda rng: {"A": rng.normal(size=(N, n)), "y": labels(rng, N)}


def _signs(rng: Rng, N: int) -> Array:
    return np.sign(rng.normal(size=N))


def _numbers(rng: Rng, N: int) -> Array:
    return rng.standard_t(3, size=N)


STUDENT_T = """dim N
data y[N]
var mu, s, k
minimize -sum(student_t_lpdf(y[i], exp(k) + 1, mu, exp(s)) for i in N)"""

TANH = """dim N, d, h
data X[N, d], y[N]
var W[h, d], b[h], w[h], c
minimize mean((tanh(X @ W' + b[None, :]) @ w + c - y).^2)"""

SOFTMAX = """dim N, d, K
data X[N, d], label[N] in K
var W[d, K]
let Z = X @ W
minimize mean(logsumexp(Z[i, :]) - Z[i, label[i]] for i in N) + 0.01 * sumsq(W)"""

VARIATION = """dim n, m
data B[n, m]
var U[n, m]
minimize sumsq(U - B) / 2
       + 0.1 * sum(sqrt((U[i+1, j] - U[i, j])^2 + (U[i, j+1] - U[i, j])^2 + 1e-4)
                   for i in range(n - 1), j in range(m - 1))"""

FACTORS = """dim n, m, r
data T[n, m]
var U[n, r], V[m, r]
minimize sumsq(T - U @ V')"""

KERNEL = """dim N
data X[N, 3], y[N]
var a, l, s
let S[i in N, j in N] = exp(a - exp(l) * sumsq(X[i, :] - X[j, :])) + where(i == j, exp(s), 0)
minimize logdet(S) + quad(inv(S), y)"""

LOOKED_UP = """dim N, G, H
data g[N] in G, h[N] in H, y[N]
var u[G], v[H], m
minimize sum(softplus(-y[i] * (m + u[g[i]] * v[h[i]])) for i in N) + sumsq(u) + sumsq(v)"""


def _student_t(rng: Rng) -> Arrays:
    return {"y": rng.standard_t(4, size=10**6)}


def _network(rng: Rng) -> Arrays:
    return {"X": rng.normal(size=(5000, 64)), "y": rng.normal(size=5000)}


def _labels(rng: Rng) -> Arrays:
    return {"X": rng.normal(size=(20_000, 64)), "label": rng.integers(0, 10, 20_000).astype(float)}


def _picture(rng: Rng) -> Arrays:
    return {"B": rng.normal(size=(1000, 1000))}


def _matrix(rng: Rng) -> Arrays:
    return {"T": rng.normal(size=(2000, 1000))}


def _process(rng: Rng) -> Arrays:
    return {"X": rng.normal(size=(400, 3)), "y": rng.normal(size=400)}


def _pairs(rng: Rng) -> Arrays:
    g, h = rng.integers(0, 5000, 400_000), rng.integers(0, 300, 400_000)
    return {"g": g.astype(float), "h": h.astype(float), "y": _signs(rng, 400_000)}


def _none(rng: Rng) -> Arrays:
    return {}


LARGE = (
    Large("student_t", STUDENT_T, _student_t, {}),
    Large("logistic", MODELS / "robust_logistic.slo", _rows(20_000, 200, _signs), {}),
    Large("tukey", MODELS / "tukey_regression.slo", _rows(100_000, 50, _numbers), {}),
    Large("tanh_network", TANH, _network, {"h": 256}),
    Large("softmax_regression", SOFTMAX, _labels, {"K": 10}),
    Large("rosenbrock", MODELS / "rosenbrock.slo", _none, {"n": 10**6}),
    Large("total_variation", VARIATION, _picture, {}),
    Large("factors", FACTORS, _matrix, {"r": 20}),
    Large("gaussian_process", KERNEL, _process, {}),
    Large("looked_up", LOOKED_UP, _pairs, {"G": 5000, "H": 300}),
)

REASONS: dict[str, str] = {}
"""Why a model misses a target, for the rows that do."""


def measured(one: Large, quick: bool) -> Row:
    rng = np.random.default_rng(0)
    data = one.data(rng)
    double, single = (
        slomodel.compile(one.source, data=data, dims=one.dims, backend="c", dtype=kind)
        for kind in ("float64", "float32")
    )
    xs, vs = ([one.spread * rng.normal(size=double.n) for _ in range(POINTS)] for _ in range(2))
    ys, ws = ([a.astype(np.float32) for a in arrays] for arrays in (xs, vs))

    def on(threads: int, call: Call) -> Call:
        def timed(k: int) -> object:
            numexpr.set_num_threads(threads)
            return call(k)

        return timed

    def gradient(k: int) -> tuple[float, Array]:
        return double.value_and_gradient(xs[k])

    def product(k: int) -> Array:
        return double.hvp(xs[k], vs[k])

    calls = [
        *(on(threads, call) for call in (gradient, product) for threads in (1, 2)),
        on(1, lambda k: single.value_and_gradient(ys[k])),
        on(1, lambda k: single.hvp(ys[k], ws[k])),
    ]
    # The first calls decide whether threads pay, each a few times.
    for call in calls:
        for k in range(POINTS):
            call(k)
    (f, g), (other_f, other_g) = calls[0](0), calls[1](0)  # type: ignore[misc]
    same = f == other_f and np.array_equal(g, other_g)
    same = same and np.array_equal(calls[2](0), calls[3](0))  # type: ignore[call-overload]
    table = seconds(calls, POINTS, 0.02 if quick else 0.1, time.perf_counter)

    def ratio(a: int, b: int) -> float:
        return float(np.median(table[:, a] / table[:, b]))

    size = 8 * (double.n + sum(np.size(array) for array in data.values()))
    return Row(
        *(one.name, double.n, *(1e3 * float(np.median(table[:, k])) for k in (0, 2))),
        *(ratio(0, 1), ratio(2, 3), bool(same), ratio(0, 4), ratio(2, 5), size),
    )


def rows_here(names: Sequence[str], quick: bool) -> list[Row]:
    rows = []
    for one in LARGE:
        if names and one.name not in names:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", slomodel.errors.ModelWarning)
            rows.append(measured(one, quick))
        print(f"{rows[-1].model} {rows[-1].two:.2f}", file=sys.stderr, flush=True)
    return rows


def missed(row: Row) -> list[str]:
    """The targets that a row misses: from a millisecond on, and never slower than one thread."""
    pairs = (("gradient", row.ms, row.two), ("product", row.hvp_ms, row.hvp_two))
    least = TARGETS["2 threads"]
    found = [f"{what} {two:.2f}" for what, ms, two in pairs if two < (least if ms >= 1.0 else 0.97)]
    singles = (("gradient", row.single), ("product", row.hvp_single))
    return [
        *found,
        *(f"float32 {what} {by:.2f}" for what, by in singles if by < TARGETS["float32"]),
        *([] if row.same_bits else ["bits differ"]),
    ]


def page(rows: Sequence[Row]) -> str:
    """One line per model, then what misses the targets."""
    heads = ("model", "n", "bytes", "ms", "2 threads", "float32")
    heads = (*heads, "product ms", "2 threads", "float32", "bits")
    cells = [
        (
            *(row.model, str(row.n), f"{row.bytes:.1e}", f"{row.ms:.3g}"),
            *(f"{row.two:.2f}", f"{row.single:.2f}", f"{row.hvp_ms:.3g}"),
            *(f"{row.hvp_two:.2f}", f"{row.hvp_single:.2f}"),
            "same" if row.same_bits else "differ",
        )
        for row in rows
    ]
    lines = [
        f"- geometric means: 2 threads {mean([r.two for r in rows]):.2f}, products "
        f"{mean([r.hvp_two for r in rows]):.2f}; float32 {mean([r.single for r in rows]):.2f}, "
        f"products {mean([r.hvp_single for r in rows]):.2f}",
    ]
    for row in rows:
        if found := missed(row):
            lines.append(
                f"- {row.model}: {', '.join(found)}. {REASONS.get(row.model, '')}".rstrip()
            )
    return "\n".join((in_columns([heads, *cells], True), "", *lines))


def main(arguments: Sequence[str] | None = None) -> None:
    about = "Time large models on two threads against one, and in single against double precision."
    title = "Threads and single precision"
    ResultPage(__file__, title, about, Row, rows_here, page, threads=2).run(arguments)


if __name__ == "__main__":
    main()
