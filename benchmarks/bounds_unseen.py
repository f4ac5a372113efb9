"""Tightness of the bounds on small models of ten fields that no other benchmark holds.

The data are random and the centres too: round a random point and round where the default solver
ends from there. Columns are those of `bounds_practice`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

import slomodel
from benchmarks.bounds_practice import RADII, Known, PracticeRow

Array = np.ndarray
MOST_SECONDS = 5.0


def _points(rng: np.random.Generator) -> dict[str, Array]:
    P = rng.standard_normal((8, 2))
    return {"D": np.linalg.norm(P[:, None] - P[None], axis=-1) + 0.1}


def _table(rng: np.random.Generator) -> dict[str, Array]:
    return {"Y": rng.standard_normal((12, 2)) @ rng.standard_normal((2, 8))}


def _answers(rng: np.random.Generator) -> dict[str, Array]:
    return {"y": (rng.random((20, 6)) < 0.5) * 1.0}


def _games(rng: np.random.Generator) -> dict[str, Array]:
    return {"w": rng.integers(0, 6, 40), "l": rng.integers(0, 6, 40)}


def _samples(rows: int, columns: int) -> Callable[[np.random.Generator], dict[str, Array]]:
    def made(rng: np.random.Generator) -> dict[str, Array]:
        X = rng.standard_normal((rows, columns))
        return {"X": X, "y": np.sin(X[:, 0]) + 0.1 * rng.standard_normal(rows)}

    return made


def _labelled(rng: np.random.Generator) -> dict[str, Array]:
    return {"X": rng.standard_normal((20, 3)), "c": rng.integers(0, 3, 20)}


def _tokens(rng: np.random.Generator) -> dict[str, Array]:
    return {"X": rng.standard_normal((6, 4)), "Y": rng.standard_normal((6, 3))}


def _intensities(rng: np.random.Generator) -> dict[str, Array]:
    A = rng.standard_normal((40, 6))
    return {"A": A, "b": (A @ rng.standard_normal(6)) ** 2}


MODELS: Mapping[str, tuple[str, Callable[[np.random.Generator], dict[str, Array]]]] = {
    "attention": (
        "dim T, d, k = 2, m\ndata X[T, d], Y[T, m]\nvar Q[d, k], K[d, k], V[d, m]\n"
        "let S = X @ Q @ K' @ X' / sqrt(2)\n"
        "let E[i in T, j in T] = exp(S[i, j] - logsumexp(S[i, l] for l in T))\n"
        "minimize sumsq(E @ X @ V - Y)",
        _tokens,
    ),
    "metric learning": (
        "dim N, d\ndata X[N, d], c[N] in 3\nvar A[2, d]\nlet Z = X @ A'\n"
        "let D[i in N, j in N] = sumsq(Z[i, :] - Z[j, :])\n"
        "minimize sum(logsumexp(-D[i, j] for j in N if j != i)\n"
        "  - logsumexp(-D[i, j] for j in N if j != i and c[j] == c[i]) for i in N)",
        _labelled,
    ),
    "kernel regression": (
        "dim N, d\ndata X[N, d], y[N]\nvar h[d], g\n"
        "let K[i in N, j in N] = exp(-sum(exp(h[l]) * (X[i, l] - X[j, l])^2 for l in d))\n"
        "minimize sum((y[i] - sum(K[i, j] * y[j] for j in N if j != i)\n"
        "  / (exp(g) + sum(K[i, j] for j in N if j != i)))^2 for i in N)",
        _samples(20, 2),
    ),
    "mixture with covariances": (
        "dim N, d = 2, K = 2\ndata X[N, d], y[N]\nvar m[K, d], L[K, d], o[K], w[K]\n"
        "let a[i in N, k in K] = (X[i, 0] - m[k, 0]) * exp(L[k, 0])\n"
        "let b[i in N, k in K] = (X[i, 1] - m[k, 1]) * exp(L[k, 1]) + o[k] * a[i, k]\n"
        "minimize -sum(logsumexp(w[k] - logsumexp(w) + L[k, 0] + L[k, 1]\n"
        "  - (a[i, k]^2 + b[i, k]^2) / 2 for k in K) for i in N) + sumsq(w)",
        _samples(40, 2),
    ),
    "item responses": (
        "dim J, I\ndata y[J, I]\nvar t[J], a[I], b[I]\n"
        "let u[j in J, i in I] = exp(a[i]) * (t[j] - b[i])\n"
        "minimize sum(softplus(u) - y .* u) + (sumsq(t) + sumsq(a) + sumsq(b)) / 2",
        _answers,
    ),
    "paired comparisons": (
        "dim n = 6, N\ndata w[N] in n, l[N] in n\nvar s[n], tie\n"
        "minimize sum(softplus(s[l[i]] - s[w[i]] + exp(tie)) for i in N) + sumsq(s) / 10 - tie",
        _games,
    ),
    "distances": (
        "dim n\ndata D[n, n]\nvar P[n, 2]\n"
        "minimize sum((sqrt(sumsq(P[i, :] - P[j, :]) + 0.01) - D[i, j])^2\n"
        "  for i in n, j in n if i < j)",
        _points,
    ),
    "normalised layers": (
        "dim N, d, k = 4\ndata X[N, d], y[N]\nvar W[k, d], v[k]\nlet U = X @ W'\n"
        "let c[i in N, j in k] = U[i, j] - mean(U[i, :])\n"
        "let Z[i in N, j in k] = c[i, j] / sqrt(mean(c[i, l]^2 for l in k) + 0.1)\n"
        "minimize sum((sum(v[j] * tanh(Z[i, j]) for j in k) - y[i])^2 for i in N)",
        _samples(20, 3),
    ),
    "robust factors": (
        "dim m, n, k = 2\ndata Y[m, n]\nvar U[m, k], V[n, k]\n"
        "minimize sum(sqrt((Y - U @ V')^2 + 0.01)) + 0.1 * (sumsq(U) + sumsq(V))",
        _table,
    ),
    "phase retrieval": (
        "dim N, n\ndata A[N, n], b[N]\nvar x[n]\nminimize sum(log1p(((A @ x)^2 - b)^2))",
        _intensities,
    ),
}


def unseen_rows(only: str | None, kept: Path | None) -> Iterator[PracticeRow]:
    """Two rows for each model with `only` in its name."""
    known = Known(kept)
    for number, (name, (text, data)) in enumerate(MODELS.items()):
        if only is not None and only not in name:
            continue
        rng = np.random.default_rng(number)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", slomodel.errors.ModelWarning)
            model = slomodel.compile(text, data=data(rng), backend="numpy")
        start = 0.5 * rng.standard_normal(model.n)
        solution = model.solve(x0=start, max_time=MOST_SECONDS, max_iter=2000).x
        for centre, x in (("start", start), ("solution", solution)):
            began = time.process_time()
            first = model.bind().bounds(x, RADII[0])
            found = (first, *(first.at(radius) for radius in RADII[1:]))
            seconds = time.process_time() - began
            lower = known.lower(model, f"{name}/{centre}", x)
            yield PracticeRow(name, centre, model.n, lower, found, seconds)
