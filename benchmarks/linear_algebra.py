"""Likelihoods that factor matrices: against JAX and against SciPy by hand.

    python -m benchmarks.linear_algebra [NAME …] [--write]

- gaussian_process: 200 observations at points of three numbers; log marginal likelihood by the
  logarithms of scale, three lengths and noise.
- factor_analysis: 60 variables, 6 factors, by the sample covariance.
- vector_autoregression: 8 series, two lags, 300 times; the innovations' covariance by its Cholesky
  factor, with a diagonal of exponentials.

SciPy by hand evaluates value and gradient with formulas for the derivatives: both must agree with
those of slomodel and of JAX to 1e-9. Times are those of value and gradient on target c, on one
thread; a ratio is the median over pairs of alternating runs, peer / slomodel: above 1
slomodel is faster. `--write` puts the table in results/linear_algebra.md.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from scipy import linalg

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).parent.parent))

import slomodel
from benchmarks.by_hand import Array, Arrays
from benchmarks.evaluate import in_columns
from benchmarks.measure import Call, seconds
from benchmarks.result_page import ResultPage

POINTS = 20
TOLERANCE = 1e-9

Evaluate = Callable[[Array], tuple[float, Array]]

GAUSSIAN_PROCESS = """
dim n, p
data X[n, p], y[n]
var a, l[p], s
let Z[i in n, k in p] = X[i, k] * exp(-l[k])
let K[i in n, j in n] = exp(2 * a - sumsq(Z[i, :] - Z[j, :]) / 2) + where(i == j, exp(2 * s), 0)
minimize -multi_normal_lpdf(y, 0, K)
"""
FACTOR_ANALYSIS = """
dim p, k = 6
data S[p, p] symmetric
var W[p, k], u[p]
let C = W @ W' + diag(exp(u))
minimize (logdet(C) + trace(solve(C, S))) / 2
"""
VECTOR_AUTOREGRESSION = """
dim T, d
data Y[T, d]
var A[d, d], B[d, d], c[d], u[d], M[d, d]
let L = tril(M, k=-1) + diag(exp(u))
let E[t in range(2, T), i in d] = Y[t, i] - c[i] - dot(A[i, :], Y[t-1, :]) - dot(B[i, :], Y[t-2, :])
minimize sumsq(solve(L, E')) / 2 + (T - 2) * sum(u)
"""


def gaussian_process(d: Arrays) -> Evaluate:
    """The gradient by K̄ = (K⁻¹ - ααᵀ)/2, with α = K⁻¹y."""
    squares = (d["X"][:, None] - d["X"]) ** 2
    y, n = d["y"], d["y"].size

    def run(x: Array) -> tuple[float, Array]:
        scales = np.exp(-2 * x[1:-1])
        smooth = np.exp(2 * x[0] - squares @ scales / 2)
        noise = np.exp(2 * x[-1])
        factor = linalg.cho_factor(smooth + noise * np.eye(n), lower=True)
        alpha = linalg.cho_solve(factor, y)
        inverse = linalg.cho_solve(factor, np.eye(n))
        value = y @ alpha / 2 + np.log(np.diag(factor[0])).sum() + n * np.log(2 * np.pi) / 2
        adjoint = (inverse - np.outer(alpha, alpha)) / 2
        weighted = adjoint * smooth
        lengths = scales * np.einsum("ij,ijk->k", weighted, squares)
        return value, np.array([2 * weighted.sum(), *lengths, 2 * noise * np.trace(adjoint)])

    return run


def factor_analysis(d: Arrays) -> Evaluate:
    S, p = d["S"], len(d["S"])

    def run(x: Array) -> tuple[float, Array]:
        W, variances = x[:-p].reshape(p, -1), np.exp(x[-p:])
        factor = linalg.cho_factor(W @ W.T + np.diag(variances), lower=True)
        solved = linalg.cho_solve(factor, S)
        value = np.log(np.diag(factor[0])).sum() + np.trace(solved) / 2
        inverse = linalg.cho_solve(factor, np.eye(p))
        adjoint = (inverse - solved @ inverse) / 2
        return value, np.concatenate(
            [((adjoint + adjoint.T) @ W).ravel(), adjoint.diagonal() * variances]
        )

    return run


def vector_autoregression(d: Arrays) -> Evaluate:
    Y = d["Y"]
    count, size = Y.shape

    def run(x: Array) -> tuple[float, Array]:
        A, B = x[: 2 * size**2].reshape(2, size, size)
        c, u = x[2 * size**2 :][: 2 * size].reshape(2, size)
        L = np.tril(x[-(size**2) :].reshape(size, size), -1) + np.diag(np.exp(u))
        E = Y[2:] - c - Y[1:-1] @ A.T - Y[:-2] @ B.T
        Z = linalg.solve_triangular(L, E.T, lower=True)
        value = (Z**2).sum() / 2 + (count - 2) * u.sum()
        back = linalg.solve_triangular(L, Z, lower=True, trans=1)
        factor = -np.tril(back @ Z.T)
        slopes = [-back @ Y[1:-1], -back @ Y[:-2], -back.sum(axis=1)]
        slopes += [factor.diagonal() * np.exp(u) + count - 2, np.tril(factor, -1)]
        return value, np.concatenate([one.ravel() for one in slopes])

    return run


@dataclass(frozen=True, slots=True)
class Likelihood:
    """A model, its data and start, and its value and gradient by SciPy."""

    text: str
    data: Arrays
    start: Array
    by_hand: Callable[[Arrays], Evaluate]


def likelihoods() -> dict[str, Likelihood]:
    """The three, with data that are drawn from such models."""
    rng = np.random.default_rng(7)
    X = rng.uniform(-2, 2, size=(200, 3))
    y = np.sin(X).sum(axis=1) + 0.3 * rng.normal(size=200)
    W = rng.normal(size=(60, 6))
    drawn = rng.normal(size=(500, 6)) @ W.T + rng.normal(size=(500, 60))
    Y = np.zeros((300, 8))
    step, mixed = 0.4 * np.eye(8) + 0.05 * rng.normal(size=(8, 8)), np.tril(rng.normal(size=(8, 8)))
    for t in range(2, 300):
        Y[t] = step @ Y[t - 1] - 0.2 * Y[t - 2] + mixed @ rng.normal(size=8)
    return {
        "gaussian_process": Likelihood(
            GAUSSIAN_PROCESS, {"X": X, "y": y}, np.array([0, 0, 0, 0, -1.0]), gaussian_process
        ),
        "factor_analysis": Likelihood(
            FACTOR_ANALYSIS,
            {"S": drawn.T @ drawn / 500},
            np.concatenate([W.ravel(), np.zeros(60)]),
            factor_analysis,
        ),
        "vector_autoregression": Likelihood(
            VECTOR_AUTOREGRESSION, {"Y": Y}, 0.1 * rng.normal(size=208), vector_autoregression
        ),
    }


@dataclass(frozen=True, slots=True)
class Timed:
    """One likelihood: microseconds of slomodel, ratios of time by peer."""

    model: str
    n: int
    microseconds: float
    ratios: dict[str, float]


def differs(one: tuple[float, Array], other: tuple[float, Array]) -> float:
    """The larger of the relative differences of two values and of two gradients."""
    slope = np.linalg.norm(one[1] - other[1]) / np.linalg.norm(other[1])
    return max(abs(one[0] - other[0]) / abs(other[0]), float(slope))


def measured(name: str) -> Timed:
    """One row; raises ValueError if two computations differ."""
    own = likelihoods()[name]
    model = slomodel.compile(own.text, data=own.data, backend="c")
    calls: dict[str, Evaluate] = {
        "slomodel": model.value_and_gradient,
        "SciPy": own.by_hand(own.data),
    }
    if find_spec("jax") is not None:
        from benchmarks import linear_algebra_jax

        calls["JAX"] = linear_algebra_jax.compiled(name, own.data)
    xs = own.start + 0.02 * np.random.default_rng(1).normal(size=(POINTS, model.n))
    for peer, evaluate in calls.items():
        if differs(evaluate(xs[0]), calls["SciPy"](xs[0])) > TOLERANCE:
            raise ValueError(f"{peer} differs from SciPy by hand on {name}")
    timed: list[Call] = [lambda k, run=run: run(xs[k]) for run in calls.values()]
    table = seconds(timed, POINTS, 5e-3, time.process_time)
    ratios = np.median(table[:, 1:] / table[:, :1], axis=0)
    found = dict(zip(list(calls)[1:], map(float, ratios), strict=True))
    return Timed(name, model.n, 1e6 * float(np.median(table[:, 0])), found)


def table(rows: Sequence[Timed]) -> str:
    """One line per likelihood."""
    heads = ("model", "n", "us", "SciPy", "JAX")
    cells = [
        (
            *(row.model, str(row.n), f"{row.microseconds:.3g}"),
            *(f"{row.ratios[p]:.2f}" if p in row.ratios else "-" for p in heads[3:]),
        )
        for row in rows
    ]
    return in_columns([heads, *cells], True)


def rows_here(names: Sequence[str], quick: bool) -> list[Timed]:
    return [measured(name) for name in names or likelihoods()]


def main(arguments: list[str] | None = None) -> int:
    """Print the table, or write it."""
    about = "Time likelihoods that factor matrices."
    ResultPage(__file__, "Linear algebra", about, Timed, rows_here, table).run(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
