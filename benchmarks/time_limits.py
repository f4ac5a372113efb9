"""How far runs of all methods go past `max_time`, on models of 10 to a million unknowns.

    python benchmarks/time_limits.py [--limit S] [--only TEXT] [--ways TEXT]

A run has a limit of S seconds (default 0.5) and a tolerance of 0, so that few end before. A row has
the seconds beyond the limit that the whole call took, by the clock and of the processor: of the
first call, in which kernels are compiled and bounds are loaded, and of the second. The table at the
end has, for each method, the largest by the clock among calls that the limit ended.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).parent.parent))

import slomodel

VALLEY = """dim n
var x[n] init -1.2
minimize sum(100*(x[i+1] - x[i]^2)^2 + (1 - x[i])^2 for i in range(n-1))"""
VARIATION = """dim m, n
data y[m, n], w
var u[m, n]
minimize sumsq(u - y)/2 + sum(sqrt(w + (u[i+1, j] - u[i, j])^2 + (u[i, j+1] - u[i, j])^2) \
for i in range(m-1), j in range(n-1))/5"""
SURFACE = """dim n
data e[n]
var u[n, n]
minimize sum(sqrt(1 + (u[i+1, j] - u[i, j])^2 + (u[i, j+1] - u[i, j])^2) \
for i in range(n-1), j in range(n-1)) \
+ 10*sum((u[0, j] - e[j])^2 + (u[n-1, j] - e[j])^2 for j in n)"""
NETWORK = """dim d, N, h
data X[d, N], y[N]
var W[h, d] init normal(0, 0.5), b[h] init normal(0, 0.5), v[h] init normal(0, 0.5)
minimize sumsq(v' @ softplus(W @ X + b[:, None]) - y)/N + 1e-3*(sumsq(W) + sumsq(v))"""
FACTORS = """dim m, n, k
data A[m, n]
var P[m, k] init normal(0, 1), Q[n, k] init normal(0, 1)
minimize sumsq(P @ Q' - A)/2 + (sumsq(P) + sumsq(Q))/100"""
LOGISTIC = """dim m, n
data A[m, n], y[m]
var w[n] init 0
minimize mean(softplus(-y .* (A @ w))) + sumsq(w)/1e6"""
CLUSTER = """dim n
var x[n, 3] init normal(0, 1.5)
let r2[i in n, j in n] = sumsq(x[i, :] - x[j, :])
minimize sum(4*(r2[i, j]^-6 - r2[i, j]^-3) for i in n, j in n if i < j)"""
KINKS = """dim n
var x[n] init 1
minimize sum(abs(x[i+1] - 2*x[i]) for i in range(n-1)) + sumsq(x - 1)/10"""
BOX = """dim n
var x[n] >= 0 init 1
minimize sum(exp(x) - 3*x) + sum((x[i+1] - x[i])^2 for i in range(n-1))*50"""
CIRCLE = "dim n\nvar x[n] init 0.3\nminimize sum(x^4 - x)\nsubject to sumsq(x) == 2"

FIRST = ("gradient", "lbfgs", "cg", "newton-cg")
PROVED = ("pgd", "tgd", "agp")


def models() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Names, texts and data."""
    rng = np.random.default_rng(0)
    for n in (10, 1_000, 100_000, 1_000_000):
        yield f"valley {n:,}", VALLEY, {"n": n}
    for n in (30, 300, 1000):
        y = rng.random((n, n))
        yield f"total variation {n * n:,}", VARIATION, {"y": y, "w": 1e-3}
    for n in (30, 300):
        yield f"surface {n * n:,}", SURFACE, {"e": np.sin(np.linspace(0.0, 3.0, n)), "n": n}
    X = rng.standard_normal((4, 200))
    yield "network 60", NETWORK, {"X": X, "y": np.sin(X.sum(0)), "h": 10}
    X = rng.standard_normal((30, 2000))
    yield "network 1,280", NETWORK, {"X": X, "y": np.sin(X.sum(0)), "h": 40}
    yield "factors 60", FACTORS, {"A": rng.standard_normal((10, 10)), "k": 3}
    yield "factors 20,000", FACTORS, {"A": rng.standard_normal((1000, 1000)), "k": 10}
    A = rng.standard_normal((2000, 300))
    yield "logistic 300", LOGISTIC, {"A": A, "y": np.sign(A[:, 0] + rng.random(2000))}
    yield "cluster 39", CLUSTER, {"n": 13}
    yield "kinks 50", KINKS, {"n": 50}
    yield "box 100", BOX, {"n": 100}
    yield "box 100,000", BOX, {"n": 100_000}
    yield "sphere 50", CIRCLE, {"n": 50}


def ways(name: str, n: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Methods with their options that a model is solved by."""
    yield "auto", {}
    yield "auto, second_order", {"second_order": True}
    if name.startswith(("box", "sphere")):
        yield "starts", {"starts": 2, "workers": 1}
        return
    for direction in FIRST:
        yield f"norm-armijo {direction}", {"method": "norm-armijo", "direction": direction}
    if n <= 300:
        yield "norm-armijo newton", {"method": "norm-armijo", "direction": "newton"}
    yield "certified", {"method": "norm-armijo", "line_search": "certified"}
    yield "verify", {"method": "norm-armijo", "verify": True}
    for method in PROVED:
        yield method, {"method": method}
    yield "tgd auto", {"method": "tgd", "D": "auto"}
    yield "pgd sampled", {"method": "pgd", "lipschitz": "sampled", "D": 1.0}
    yield "gd", {"method": "gd"}
    yield "hops", {"hops": 100}
    yield "starts", {"starts": 3, "workers": 1}


@dataclass(frozen=True, slots=True)
class Row:
    """The seconds of both calls beyond the limit, by the clock and of the processor."""

    model: str
    way: str
    first: tuple[float, float]
    second: tuple[float, float]
    end: str


def timed(model: slomodel.Model, limit: float, options: dict[str, Any]) -> tuple[float, float, str]:
    """Seconds of the clock and of the processor beyond the limit, and how the run ended."""
    start, busy = time.perf_counter(), time.process_time()
    try:
        status = str(model.solve(max_time=limit, gtol=0.0, **options).status)
    except slomodel.SlomodelError as error:
        return 0.0, 0.0, f"refused: {type(error).__name__}"
    clock, processor = time.perf_counter() - start, time.process_time() - busy
    return clock - limit, processor - limit, status


def summary(rows: list[Row]) -> str:
    """For each method the calls that the limit ended, and the largest excess of them."""
    lines = ["| method | calls | largest, first call | second | on |"]
    lines.append("| --- | ---: | ---: | ---: | --- |")
    for way in dict.fromkeys(row.way for row in rows):
        own = [row for row in rows if row.way == way and row.end == "max_time"]
        if own:
            last = max(own, key=lambda row: row.second[0])
            first = max(row.first[0] for row in own)
            lines.append(
                f"| {way} | {len(own)} | {first:+.2f} s | {last.second[0]:+.2f} s | {last.model} |"
            )
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Print a row for each model and method, and the summary."""
    parser = argparse.ArgumentParser(description="Time limits of runs.")
    parser.add_argument("--limit", type=float, default=0.5)
    parser.add_argument("--only", default="", help="models whose names contain this")
    parser.add_argument("--ways", default="", help="methods whose names contain this")
    options = parser.parse_args(arguments)
    print("| model | method | first call | processor | second | processor | end |")
    print("| --- | --- | ---: | ---: | ---: | ---: | --- |")
    rows = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, text, data in models():
            if options.only not in name:
                continue
            dims = {key: value for key, value in data.items() if isinstance(value, int)}
            arrays = {key: value for key, value in data.items() if key not in dims}
            model = slomodel.compile(text, data=arrays, dims=dims)
            for way, how in ways(name, model.n):
                if options.ways not in way:
                    continue
                first = timed(model, options.limit, how)
                again = timed(model, options.limit, how)
                rows.append(Row(name, way, first[:2], again[:2], again[2]))
                numbers = " | ".join(f"{s:+.2f}" for s in (*first[:2], *again[:2]))
                print(f"| {name} | {way} | {numbers} | {again[2]} |", flush=True)
    print(f"\n{summary(rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
