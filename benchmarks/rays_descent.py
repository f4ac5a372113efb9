"""Descent of certified runs, confirmed in 60 digits.

    python benchmarks/rays_descent.py [--steps N]

Runs of N steps with `line_search="certified"`. The objective is computed at every iterate by a
formula written here, in 60 digits: the number of steps that do not lower it, and the least descent
of a step in units of the rounding of f in doubles, that is, below which no comparison of computed
values could have confirmed it.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import mpmath
import numpy as np

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).parent.parent))

import slomodel
from benchmarks.by_hand import Array
from benchmarks.machine import description

DIGITS = 60
Number = mpmath.mpf
Exact = Callable[[Sequence[Number]], Number]


@dataclass(frozen=True, slots=True)
class Case:
    """A model with its objective as a function of numbers in many digits."""

    name: str
    text: str
    data: dict[str, Array]
    exact: Exact
    start: Array
    direction: str


def rosenbrock(x: Sequence[Number]) -> Number:
    """Σ 100 (x[i+1] - x[i]²)² + (1 - x[i])²."""
    return mpmath.fsum(100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in pairwise(x))


def cases() -> list[Case]:
    """A valley, regressions and a network; five of the runs go on for long."""
    draw = np.random.default_rng(1)
    n, d, h = 30, 3, 3
    a, y = draw.normal(size=(n, d)), draw.normal(size=n)
    rows = [[mpmath.mpf(one) for one in row] for row in a.tolist()]
    targets = [mpmath.mpf(one) for one in y.tolist()]

    def robust(x: Sequence[Number]) -> Number:
        products = (mpmath.fdot(row, x) for row in rows)
        terms = (mpmath.log1p((p - t) ** 2) for p, t in zip(products, targets, strict=True))
        return mpmath.fsum(terms) + mpmath.fsum(one**2 for one in x) / 10

    def network(x: Sequence[Number]) -> Number:
        weights = [x[d * k : d * k + d] for k in range(h)]
        total = mpmath.mpf(0)
        for row, t in zip(rows, targets, strict=True):
            units = (mpmath.tanh(mpmath.fdot(row, own)) for own in weights)
            total += (mpmath.fdot(units, x[d * h :]) - t) ** 2
        return total

    units = np.array([1.0, 0.03, 0.001])
    scaled = [[mpmath.mpf(one) for one in row] for row in (a * units).tolist()]

    def logistic(x: Sequence[Number]) -> Number:
        products = (mpmath.fdot(row, x) for row in scaled)
        terms = (mpmath.log1p(mpmath.exp(-p * t)) for p, t in zip(products, targets, strict=True))
        return mpmath.fsum(terms) + mpmath.fsum(one**2 for one in x) / 10**6

    def robust_in_units(x: Sequence[Number]) -> Number:
        products = (mpmath.fdot(row, x) for row in scaled)
        terms = (mpmath.log1p((p - t) ** 2) for p, t in zip(products, targets, strict=True))
        return mpmath.fsum(terms) + mpmath.fsum(one**2 for one in x) / 10**6

    data = {"A": a, "y": y}
    valley = "var x[8]\nminimize sum(100*(x[i+1] - x[i]^2)^2 + (1 - x[i])^2 for i in 7)"
    regression = (
        "dim N, d\ndata A[N, d], y[N]\nvar x[d]\nminimize sum(log(1 + (A @ x - y)^2)) + sumsq(x)/10"
    )
    layers = (
        "dim N, d, h = 3\ndata A[N, d], y[N]\nvar W[h, d], v[h]\n"
        "minimize sum((tanh(A @ W') @ v - y)^2)"
    )
    classes = (
        "dim N, d\ndata A[N, d], y[N]\nvar x[d]\n"
        "minimize sum(softplus(-y .* (A @ x))) + sumsq(x)/10^6"
    )
    in_units = {"A": a * units, "y": y}
    return [
        Case("logistic", classes, in_units, logistic, np.zeros(d), "gradient"),
        Case(
            "robust in units",
            regression.replace("/10", "/10^6"),
            in_units,
            robust_in_units,
            np.full(d, 2.0),
            "gradient",
        ),
        Case("rosenbrock", valley, {}, rosenbrock, np.full(8, -1.2), "gradient"),
        Case("rosenbrock", valley, {}, rosenbrock, np.full(8, -1.2), "lbfgs"),
        Case("robust regression", regression, data, robust, np.full(d, 2.0), "gradient"),
        Case("network", layers, data, network, draw.normal(size=d * h + h), "gradient"),
        Case("network", layers, data, network, draw.normal(size=d * h + h), "lbfgs"),
    ]


def row(case: Case, steps: int) -> str:
    """The line of a run."""
    model = slomodel.compile(case.text, data=case.data, backend="numpy")
    points: list[Array] = []
    options = {"direction": case.direction, "line_search": "certified"}
    found = model.solve(
        "norm-armijo",
        x0=case.start,
        gtol=1e-300,
        max_iter=steps,
        callback=lambda state: points.append(state.x.copy()),
        **options,
    )
    with mpmath.workdps(DIGITS):
        values = [case.exact([mpmath.mpf(one) for one in x.tolist()]) for x in points]
        falls = [a - b for a, b in pairwise(values)]
        rises = sum(one <= 0 for one in falls)
        units = (
            one / (mpmath.mpf(2) ** -53 * abs(v)) for one, v in zip(falls, values, strict=False)
        )
        least = float(min(units))
    return (
        f"| {case.name} | {case.direction} | {len(falls)} | {rises} | {least:.2g} | "
        f"{found.fun:.6g} | {found.status} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000)
    steps = parser.parse_args().steps
    warnings.simplefilter("ignore")
    print(f"{description(1)}\n")
    print("| run | direction | steps | rises | least descent / u\\|f\\| | f | ended |")
    print("|---|---|---|---|---|---|---|")
    for case in cases():
        print(row(case, steps), flush=True)


if __name__ == "__main__":
    main()
