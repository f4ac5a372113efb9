"""The published problems of `data/cutest_public.json` as SymPy expressions, written by hand.

Their formulas count from 1 and an IndexedBase from 0: x_i is `x[i - 1]`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

import slomodel

_FILE = Path(__file__).parent / "data" / "cutest_public.json"
RECORDED: dict[str, dict[str, Any]] = {
    problem["name"]: problem
    for problem in json.loads(_FILE.read_text(encoding="utf-8"))["problems"]
}

x1, x2, x3, x4, x5 = sp.symbols("x1:6")
i, j, n = sp.symbols("i j n", integer=True)
x, y, t, z = map(sp.IndexedBase, "xytz")


@dataclass(frozen=True)
class Written:
    """An expression with the data and sizes that go with it."""

    expr: sp.Expr
    data: dict[str, list[float]] = field(default_factory=dict)
    dims: dict[str, int] = field(default_factory=dict)


Constants = dict[str, list[float]]


def _chebyshev(constants: Constants) -> Written:
    """A series of even polynomials, by their recurrence."""
    s = z[i] / sp.Float("1.570796")
    series = [sp.Integer(1), s]
    while len(series) < 11:
        series.append(2 * s * series[-1] - series[-2])
    weights = sp.symbols("x1:7")
    model = sum(w * term for w, term in zip(weights, series[::2], strict=True))
    return Written(sp.Sum((model - y[i]) ** 2, (i, 0, 11)), constants)


def _surface() -> Written:
    """A square grid p by p, stored by columns in one vector."""
    p = 6

    def at(row: sp.Expr, column: sp.Expr) -> sp.Expr:
        return x[p * (column - 1) + row - 1]

    slopes = (at(i, j) - at(i + 1, j + 1)) ** 2 + (at(i + 1, j) - at(i, j + 1)) ** 2
    area = sp.Sum(sp.sqrt(1 + sp.Rational((p - 1) ** 2, 2) * slopes), (i, 1, p - 1), (j, 1, p - 1))
    total = sp.Sum(at(i, j), (i, 1, p), (j, 1, p))
    return Written(area / (p - 1) ** 2 + total**2 / p**4)


def _penalty() -> Written:
    points = sp.symbols("x1:51")
    squares = sum((point - 1) ** 2 for point in points)
    return Written(squares / 10**5 + (sum(p**2 for p in points) - sp.Rational(1, 4)) ** 2)


def _tridiagonal() -> Written:
    points = dict(enumerate(sp.symbols("x1:201"), start=1))
    terms = [k * (2 * points[k] - points[k - 1]) ** 2 for k in range(2, 201)]
    return Written(sp.Add((points[1] - 1) ** 2, *terms))


PROBLEMS: dict[str, Callable[[Constants], Written]] = {
    "cubic-valley-2": lambda _: Written((x1 - 1) ** 2 + 100 * (x2 - x1**3) ** 2),
    "exp-cliff-2": lambda _: Written(((x1 - 3) / 100) ** 2 - (x1 - x2) + sp.exp(20 * (x1 - x2))),
    "quartic-exp-2": lambda _: Written(x1**4 + (x1 + x2) ** 2 + (sp.exp(x2) - 1) ** 2),
    "exp-fit-2": lambda _: Written(
        sp.Sum((x1 * sp.exp(i * x2 / 4) - i / sp.Integer(4)) ** 2, (i, 1, 10))
    ),
    "hairy-bowl-2": lambda _: Written(
        30 * sp.sin(7 * x1) ** 2 * sp.cos(7 * x2) ** 2
        + 100 * sp.sqrt(0.01 + (x1 - x2) ** 2)
        + 100 * sp.sqrt(0.01 + x1**2)
    ),
    "steep-trench-2": lambda _: Written(
        -2 * (x1 - 1) ** 2 + 10**5 * (-0.02 + 10**4 * (x2 - x1**2) ** 2 + (x1 - 1) ** 2) ** 2
    ),
    "sine-valley-2": lambda _: Written(1000 * (x2 - sp.sin(x1)) ** 2 + x1**2 / 4),
    "five-equations-3": lambda _: Written(
        (x1**2 + x2**2 + x3**2 - 1) ** 2
        + (x1**2 + x2**2 + (x3 - 2) ** 2 - 1) ** 2
        + (x1 + x2 + x3 - 1) ** 2
        + (x1 + x2 - x3 + 1) ** 2
        + (x1**3 + 3 * x2**2 + (5 * x3 - x1 + 1) ** 2 - 36) ** 2
    ),
    "bell-fit-3": lambda constants: Written(
        sp.Sum(
            (x1 * sp.exp(-x2 * ((8 - i) / sp.Integer(2) - x3) ** 2 / 2) - y[i - 1]) ** 2,
            (i, 1, 15),
        ),
        constants,
    ),
    "growth-fit-3": lambda constants: Written(
        sp.Sum(
            (x1 * sp.exp(sp.log(t[i]) * x2 + sp.log(t[i]) ** 2 * x3) - y[i]) ** 2,
            (i, 0, n - 1),
        ),
        constants,
    ),
    "all-terms-4": lambda _: Written(
        (x3 - 1)
        + x1**2
        + x2**2
        + (x3 + x4) ** 2
        + (x4 - 3)
        + 2 * sp.sin(x3) ** 2
        + x1**2 * x2**2
        + (x4 - 1) ** 2
        + x2**4
        + (x3**2 + (x4 + x1) ** 2) ** 2
        + (x1 - 4 + sp.sin(x4) ** 2 + x2**2 * x3**2) ** 2
        + sp.sin(x4) ** 4
    ),
    "chebfit-6": _chebyshev,
    "oscillating-path-5": lambda _: Written(
        (x[0] - 1) ** 2 / 4 + 500 * sp.Sum((x[i] - 2 * x[i - 1] ** 2 + 1) ** 2, (i, 1, n - 1)),
        dims={"n": 5},
    ),
    "surface-36": lambda _: _surface(),
    "penalty-50": lambda _: _penalty(),
    "humps-100": lambda _: Written(
        sp.Sum(
            sp.sin(20 * x[i]) ** 2 * sp.sin(20 * x[i + 1]) ** 2 + (x[i] ** 2 + x[i + 1] ** 2) / 20,
            (i, 0, n - 2),
        ),
        dims={"n": 100},
    ),
    "tridiagonal-200": lambda _: _tridiagonal(),
    "quartic-chain-200": lambda _: Written(
        16
        + sp.Sum(
            (x[i] - 2) ** 4 + (x[i] * x[i + 1] - 2 * x[i + 1]) ** 2 + (x[i + 1] + 1) ** 2,
            (i, 0, 198),
        )
    ),
    "arrow-head-1000": lambda _: Written(
        sp.Sum(3 - 4 * x[i] + (x[i] ** 2 + x[n - 1] ** 2) ** 2, (i, 0, n - 2)),
        dims={"n": 1000},
    ),
    "shared-sine-1000": lambda _: Written(
        sp.Sum(sp.sin(x[0] + x[i] ** 2 - 1), (i, 0, n - 2)) + sp.sin(x[n - 1] ** 2) / 2,
        dims={"n": 1000},
    ),
}
"""By name; each takes the constants of its problem."""


def index_cosines(size: int) -> np.ndarray:
    """cos(1), cos(2), …, against which the gradients of large problems are recorded."""
    return np.cos(np.arange(1.0, size + 1.0))


def model_of(name: str, backend: str = "auto") -> slomodel.Model:
    """The problem compiled."""
    written = PROBLEMS[name](RECORDED[name].get("constants", {}))
    return slomodel.compile(written.expr, data=written.data, dims=written.dims, backend=backend)
