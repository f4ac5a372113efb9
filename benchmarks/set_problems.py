"""Larger problems in boxes beside L-BFGS-B, and nonnegative factorisations beside scikit-learn.

Both are parts of the page of `sets.py`, which says what is counted. The problems are random with
fixed seeds: a minimal surface over a hill, logistic terms with a chain in a box, a blurred image
with x ≥ 0, and a Poisson regression with x ≥ 0. Factorisations of 200 × 100 matrices with ten
nonnegative factors begin at one random start.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

import slomodel
from benchmarks.by_hand import Array
from benchmarks.measure import cpu_seconds

SURFACE = """dim n data hill[n, n] var u[n, n] >= hill init 0
let dx = u[1:n, 1:n] - u[0:n-1, 1:n]
let dy = u[1:n, 1:n] - u[1:n, 0:n-1]
let rim = sumsq(u[0, :]) + sumsq(u[n-1, :]) + sumsq(u[:, 0]) + sumsq(u[:, n-1])
minimize sum(sqrt(1 + (n + 1)^2 * (dx .^ 2 + dy .^ 2))) / (n + 1)^2 + rim"""
CHAIN = """dim n data y[n] var x[n] in [-1, 1] init 0
minimize sum(softplus(3 * x) - y .* x) + 2 * sumsq(x[1:n] - x[0:n-1])"""
BLUR = """dim n data K[n, n], y[n, n] var x[n, n] >= 0 init 0
minimize sumsq(K @ x @ K' - y) / 2 + 1e-4 * sumsq(x)"""
POISSON = """dim N, n data X[N, n], y[N] var b[n] >= 0 init 0
let eta = X @ b
minimize sum(exp(eta) - y .* eta) + 0.5 * sum(b)"""
FACTORS = """dim m, n, r = 10 data M[m, n] var W[m, r] >= 0, H[r, n] >= 0
minimize sumsq(W @ H - M) / 2"""
MATRICES = ("uniform", "uniform, another", "sparse factors", "factors and noise")
# Tolerances of coordinate descent, and the most sweeps.
TOLERANCES, SWEEPS = (1e-6, 1e-9), 20_000


def larger() -> dict[str, slomodel.Model]:
    """The models by name; their starts are their own."""
    rng = np.random.default_rng(0)
    s = np.arange(1, 121) / 121 - 0.5
    hill = 0.4 - 3.0 * (s[:, None] ** 2 + s**2)
    y = (np.sin(np.arange(30_000) / 300) + rng.normal(size=30_000)) > 0.0
    t = np.arange(96)
    K = np.exp(-((t[:, None] - t) ** 2) / 8.0)
    K /= K.sum(axis=1, keepdims=True)
    image = np.maximum(rng.normal(size=(96, 96)) - 1.5, 0.0)
    X = rng.uniform(size=(1_500, 750)) * (rng.uniform(size=(1_500, 750)) < 0.04)
    counts = rng.poisson(np.exp(X @ np.maximum(rng.normal(size=750), 0.0))).astype(np.float64)
    blurred = K @ image @ K.T + 0.01 * rng.normal(size=(96, 96))
    return {
        "minimal surface over a hill": slomodel.compile(SURFACE, data={"hill": hill}),
        "logistic terms and a chain": slomodel.compile(CHAIN, data={"y": y.astype(np.float64)}),
        "deblurring, x ≥ 0": slomodel.compile(BLUR, data={"K": K, "y": blurred}),
        "Poisson regression, x ≥ 0": slomodel.compile(POISSON, data={"X": X, "y": counts}),
    }


def matrix(name: str) -> Array:
    """A nonnegative matrix (200, 100)."""
    rng = np.random.default_rng(MATRICES.index(name))
    if name.startswith("uniform"):
        return rng.uniform(size=(200, 100))
    W, H = rng.uniform(size=(200, 10)), rng.uniform(size=(10, 100))
    if name == "sparse factors":
        W *= rng.uniform(size=W.shape) < 0.3
        H *= rng.uniform(size=H.shape) < 0.3
        return np.asarray(W @ H + 0.01 * rng.uniform(size=(200, 100)))
    return np.asarray(W @ H + 0.1 * rng.uniform(size=(200, 100)))


def seconds(call: Callable[[], object], repeats: int) -> float:
    """The least time of the processor."""
    best = np.inf
    for _ in range(repeats):
        began = cpu_seconds()
        call()
        best = min(best, cpu_seconds() - began)
    return float(best)


def larger_table(repeats: int) -> str:
    """Evaluations, products and seconds, and how much higher L-BFGS-B ends."""
    lines = ["| problem | n | auto: evaluations + products | L-BFGS-B | s | its s | its f |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, model in larger().items():
        found = model.solve()
        bounds = model.scipy()["bounds"]
        start = model.solve(max_iter=0).x

        def peer(model: slomodel.Model = model, x0: Array = start, bounds: object = bounds):  # type: ignore[no-untyped-def]
            options = {"maxiter": 15_000, "maxfun": 15_000}
            own = {"jac": True, "method": "L-BFGS-B", "bounds": bounds, "options": options}
            return minimize(model.value_and_gradient, x0, **own)

        other = peer()
        lines.append(
            f"| {name} | {len(start):,} | {found.nfev} + {found.nhev} | {other.nfev} "
            f"| {seconds(model.solve, repeats):.2f} | {seconds(peer, repeats):.2f} "
            f"| {(other.fun - found.fun) / abs(found.fun):+.1e} |"
        )
    return "\n".join(lines)


def factor_table(repeats: int) -> str:
    """Objectives and seconds of `auto` and of coordinate descent; - without scikit-learn."""
    peers = [f"coordinate descent, tol = {tol:g}" for tol in TOLERANCES]
    lines = ["| matrix | auto | " + " | ".join(peers) + " |", "| --- | ---: | ---: | ---: |"]
    for name in MATRICES:
        M, rng = matrix(name), np.random.default_rng(1)
        size = float(np.sqrt(M.mean() / 10.0))
        W, H = (size * np.abs(rng.standard_normal(shape)) for shape in ((200, 10), (10, 100)))
        model = slomodel.compile(FACTORS, data={"M": M})
        start = {"W": W, "H": H}
        found = model.solve(x0=start)
        time = seconds(lambda m=model, x0=start: m.solve(x0=x0), repeats)  # type: ignore[misc]
        cells = [f"{found.fun:.8g} in {time:.2f}"]
        cells += [descent(M, W, H, tol, repeats) for tol in TOLERANCES]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def descent(M: Array, W: Array, H: Array, tol: float, repeats: int) -> str:
    """Objective and seconds of scikit-learn's coordinate descent from W and H."""
    try:
        from sklearn.decomposition import NMF
    except ImportError:
        return "-"
    rule = NMF(10, init="custom", tol=tol, max_iter=SWEEPS)

    def run() -> float:
        left = rule.fit_transform(M, W=W.copy(), H=H.copy())
        return 0.5 * float(np.sum((left @ rule.components_ - M) ** 2))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of sweeps that are not enough
        return f"{run():.8g} in {seconds(run, repeats):.2f}"
