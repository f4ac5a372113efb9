"""Models of fields that no other benchmark and no file in models/ holds, with their data.

They are written as their users write them, and were written before any kernel was tuned for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.by_hand import Array, Arrays

Rng = np.random.Generator


@dataclass(frozen=True, slots=True)
class Unseen:
    """A model: its text, its data from a generator, and a typical magnitude of its unknowns."""

    name: str
    field: str
    source: str
    data: Callable[[Rng], Arrays]
    spread: float = 0.3

    def point(self, n: int, rng: Rng) -> Array:
        return self.spread * rng.normal(size=n)


def whole(rng: Rng, high: int, size: int) -> Array:
    return rng.integers(0, high, size).astype(float)


def pairs(rng: Rng, nodes: int, count: int) -> tuple[Array, Array]:
    first = rng.integers(0, nodes, count)
    second = (first + rng.integers(1, nodes, count)) % nodes
    return first.astype(float), second.astype(float)


def _ica(rng: Rng) -> Arrays:
    return {"X": rng.laplace(size=(4000, 8)) @ rng.normal(size=(8, 8)) / 3}


def _spectra(rng: Rng) -> Arrays:
    X = rng.normal(size=(2000, 60))
    return {"X": X, "Y": np.eye(10)[rng.integers(0, 10, 2000)]}


def _clusters(rng: Rng) -> Arrays:
    return {"y": rng.normal(size=(3000, 4)) + 3 * rng.integers(0, 3, (3000, 1))}


def _topics(rng: Rng) -> Arrays:
    return {"C": rng.poisson(3.0, size=(300, 200)).astype(float)}


def _images(rng: Rng) -> Arrays:
    images, size = 32, 18
    return {"I": rng.normal(size=(images, size, size)), "y": signs(rng, images)}


def signs(rng: Rng, size: int) -> Array:
    return np.sign(rng.normal(size=size))


def _pulses(rng: Rng) -> Arrays:
    kernel = np.hanning(33)[1:-1]
    return {"y": rng.normal(size=4066), "k": kernel / kernel.sum()}


def _surface(rng: Rng) -> Arrays:
    return {"g": rng.normal(size=(130, 130))}


def _sequence(rng: Rng) -> Arrays:
    return {"E": rng.normal(size=(64, 32)), "Y": rng.normal(size=(64, 16))}


def _neighbours(rng: Rng) -> Arrays:
    labels = rng.integers(0, 4, 250)
    return {"X": rng.normal(size=(250, 12)), "same": (labels[:, None] == labels).astype(float)}


def _lattice(rng: Rng) -> Arrays:
    return {"h": rng.normal(size=(24, 24, 24))}


def _couplings(rng: Rng) -> Arrays:
    J = rng.normal(size=(250, 250)) / 16
    return {"J": J + J.T}


def _distances(rng: Rng) -> Arrays:
    z = rng.normal(size=(150, 3))
    d = np.sqrt(((z[:, None] - z) ** 2).sum(2))
    return {"d": d}


def _sensors(rng: Rng) -> Arrays:
    a, b = pairs(rng, 400, 4000)
    return {"a": a, "b": b, "r": rng.uniform(0.1, 1.0, 4000)}


def _words(rng: Rng) -> Arrays:
    a, b = pairs(rng, 500, 8000)
    return {"a": a, "b": b, "count": rng.uniform(1, 100, 8000)}


def _games(rng: Rng) -> Arrays:
    a, b = pairs(rng, 300, 10000)
    return {"winner": a, "loser": b}


def _units(rng: Rng) -> Arrays:
    return {"X": rng.normal(size=(2000, 5)), "y": rng.normal(size=2000)}


def _tensors(rng: Rng) -> Arrays:
    g = rng.normal(size=(30, 3))
    signal = rng.uniform(0.2, 0.9, size=(800, 30))
    return {"g": g / np.linalg.norm(g, axis=1)[:, None], "S": signal}


def _clouds(rng: Rng) -> Arrays:
    return {"P": rng.normal(size=(5000, 3)), "Q": rng.normal(size=(5000, 3))}


def _states(rng: Rng) -> Arrays:
    return {"y": rng.normal(size=400)}


def _machine(rng: Rng) -> Arrays:
    return {"X": rng.normal(size=(2000, 30)), "y": rng.normal(size=2000)}


def _failures(rng: Rng) -> Arrays:
    X = rng.normal(size=(5000, 6))
    return {"X": X, "t": rng.weibull(1.5, 5000) + 0.01, "died": rng.integers(0, 2, 5000) + 0.0}


def _returns(rng: Rng) -> Arrays:
    return {"R": 0.03 * rng.normal(size=(1500, 40))}


def _quantiles(rng: Rng) -> Arrays:
    return {"X": rng.normal(size=(1500, 6)), "y": rng.normal(size=1500), "q": np.arange(1, 10) / 10}


def _charges(rng: Rng) -> Arrays:
    return {"P0": rng.normal(size=(60, 3))}


def _photons(rng: Rng) -> Arrays:
    A = rng.uniform(size=(500, 400)) * (rng.uniform(size=(500, 400)) < 0.1)
    return {"A": A, "y": rng.poisson(5.0, size=500).astype(float)}


def _choices(rng: Rng) -> Arrays:
    return {"X": rng.normal(size=(20000, 5)), "s": signs(rng, 20000)}


def _series(rng: Rng) -> Arrays:
    return {"u": rng.normal(size=(60, 20, 4)), "y": rng.normal(size=(60, 20))}


def _flow(rng: Rng) -> Arrays:
    a, b = pairs(rng, 1000, 6000)
    return {"a": a, "b": b, "w": rng.uniform(0.5, 2.0, 6000), "s": rng.normal(size=1000)}


def _spikes(rng: Rng) -> Arrays:
    return {"S": rng.normal(size=(2020, 3)), "n": rng.poisson(0.5, 2000).astype(float)}


MODELS: tuple[Unseen, ...] = (
    Unseen(
        *("source_separation", "independent component analysis"),
        """dim N, d
        data X[N, d]
        var W[d, d]
        let S = X @ W'
        minimize mean(sum(log(cosh(S)), axis=1)) + sumsq(W @ W' - eye(d))""",
        _ica,
    ),
    Unseen(
        *("spectral_classes", "softmax regression"),
        """dim N, d, K
        data X[N, d], Y[N, K]
        var B[d, K], b[K]
        let Z = X @ B + b[None, :]
        minimize sum(logsumexp(Z, axis=1)) - sum(Y .* Z) + 0.5 * sumsq(B)""",
        _spectra,
        0.1,
    ),
    Unseen(
        *("cell_clusters", "mixture of normal distributions with diagonal covariances"),
        """dim N, d, K = 6
        data y[N, d]
        var a[K], mu[K, d], s[K, d]
        let l[i in N, k in K] =
            a[k] - sum(s[k, j] + ((y[i, j] - mu[k, j]) * exp(-s[k, j]))^2 / 2 for j in d)
        minimize N * logsumexp(a) - sum(logsumexp(l[i, :]) for i in N)""",
        _clusters,
    ),
    Unseen(
        *("topics", "Poisson factorisation of counts"),
        """dim n, m, r = 8
        data C[n, m]
        var U[n, r], V[r, m]
        let M = exp(U) @ exp(V)
        minimize sum(M - C .* log(M))""",
        _topics,
    ),
    Unseen(
        *("texture_net", "a convolutional network on small images"),
        """dim images, size = 18, out = 16, C = 8, k = 3
        data I[images, size, size], y[images]
        var F[C, k, k], b[C], w[C]
        let H[s in images, c in C, i in out, j in out] =
            tanh(b[c] + sum(F[c, p, q] * I[s, i+p, j+q] for p in k, q in k))
        let z[s in images] = sum(w[c] * H[s, c, i, j] for c in C, i in out, j in out) / out^2
        minimize sum(softplus(-y .* z))""",
        _images,
    ),
    Unseen(
        *("pulse_train", "deconvolution of a signal with sparse pulses"),
        """dim n = 4096, m = 4066, K = 31
        data y[m], k[K]
        var x[n]
        let fit[t in m] = sum(k[j] * x[t+j] for j in K)
        minimize sumsq(fit - y) / 2 + 0.1 * sum(sqrt(x .^ 2 + 1e-4))""",
        _pulses,
    ),
    Unseen(
        *("soap_film", "the area of a surface over a grid, with a penalty on its heights"),
        """dim n = 130
        data g[n, n]
        var u[n, n]
        minimize sum(sqrt(1 + (u[i+1, j] - u[i, j])^2 + (u[i, j+1] - u[i, j])^2)
                     for i in range(n - 1), j in range(n - 1)) + sum((u - g) .^ 2) / 2""",
        _surface,
    ),
    Unseen(
        *("attention_head", "regression on one head of attention"),
        """dim T, e, h = 8, o
        data E[T, e], Y[T, o]
        var Q[e, h], K[e, h], V[e, o]
        let S = (E @ Q) @ (E @ K)' / sqrt(h)
        let A[t in T, s in T] = exp(S[t, s] - logsumexp(S[t, :]))
        minimize sumsq(A @ (E @ V) - Y) / 2""",
        _sequence,
    ),
    Unseen(
        *("metric_learning", "neighbourhood components analysis"),
        """dim n, d, r = 3
        data X[n, d], same[n, n]
        var A[r, d]
        let Z = X @ A'
        let D[i in n, j in n] = sumsq(Z[i, :] - Z[j, :])
        maximize sum(sum(same[i, j] * exp(-D[i, j]) for j in n if j != i)
                     / sum(exp(-D[i, j]) for j in n if j != i) for i in n)""",
        _neighbours,
        0.15,
    ),
    Unseen(
        *("phi4_lattice", "a scalar field on a periodic lattice in three dimensions"),
        """dim L
        data h[L, L, L]
        var f[L, L, L]
        minimize sum((f[(i+1) % L, j, k] - f[i, j, k])^2 + (f[i, (j+1) % L, k] - f[i, j, k])^2
                     + (f[i, j, (k+1) % L] - f[i, j, k])^2 for i in L, j in L, k in L) / 2
                 + sum((f .^ 2 - 1) .^ 2) / 4 - sum(h .* f)""",
        _lattice,
    ),
    Unseen(
        *("spin_glass", "planar spins with random couplings"),
        """dim n
        data J[n, n]
        var theta[n]
        minimize -sum(J[i, j] * cos(theta[i] - theta[j]) for i in n, j in n) / 2""",
        _couplings,
        1.0,
    ),
    Unseen(
        *("perceptual_map", "multidimensional scaling in the plane"),
        """dim n
        data d[n, n]
        var Z[n, 2]
        minimize sum((sqrt(sumsq(Z[i, :] - Z[j, :]) + 1e-6) - d[i, j])^2
                     for i in n, j in range(i))""",
        _distances,
        1.0,
    ),
    Unseen(
        *("sensor_network", "localisation by distances between sensors"),
        """dim N, n = 400
        data a[N] in n, b[N] in n, r[N]
        var P[n, 2]
        minimize sum(log1p((sumsq(P[a[k], :] - P[b[k], :]) - r[k]^2)^2) for k in N)""",
        _sensors,
    ),
    Unseen(
        *("word_vectors", "vectors of words from counts of pairs"),
        """dim N, n = 500, r = 16
        data a[N] in n, b[N] in n, count[N]
        var U[n, r], V[n, r], p[n], q[n]
        let fit[k in N] = dot(U[a[k], :], V[b[k], :]) + p[a[k]] + q[b[k]]
        minimize sum(min(1, (count / 100) .^ 0.75) .* (fit - log(count)) .^ 2)""",
        _words,
    ),
    Unseen(
        *("chess_ratings", "strengths of players from games"),
        """dim N, n = 300
        data winner[N] in n, loser[N] in n
        var s[n]
        minimize sum(softplus(s[loser] - s[winner])) + sumsq(s) / 2""",
        _games,
    ),
    Unseen(
        *("radial_units", "a network of radial basis functions"),
        """dim N, d, M = 30
        data X[N, d], y[N]
        var c[M, d], g[M], w[M]
        let f[i in N] = sum(w[m] * exp(-exp(g[m]) * sumsq(X[i, :] - c[m, :])) for m in M)
        minimize sumsq(y - f) / 2""",
        _units,
    ),
    Unseen(
        *("diffusion_tensors", "magnetic resonance: a symmetric matrix per voxel"),
        """dim V, G
        data g[G, 3], S[V, G]
        var T[V, 3, 3], s[V]
        let fit[v in V, k in G] =
            exp(s[v] - sum(sum(T[v, a, b] * g[k, b] for b in 3)^2 for a in 3))
        minimize sumsq(S - fit) / 2""",
        _tensors,
    ),
    Unseen(
        *("point_clouds", "robust registration of two clouds of points"),
        """dim N
        data P[N, 3], Q[N, 3]
        var R[3, 3], t[3]
        let E = P @ R' + t[None, :] - Q
        minimize sum(log1p(sum(E .^ 2, axis=1))) + sumsq(R' @ R - eye(3))""",
        _clouds,
    ),
    Unseen(
        *("regime_switching", "a hidden Markov chain with three regimes"),
        """dim T, K = 3
        data y[T]
        var A[K, K], mu[K], s[K]
        let P[j in K, k in K] = A[j, k] - logsumexp(A[j, :])
        let e[t in T, k in K] = -s[k] - ((y[t] - mu[k]) * exp(-s[k]))^2 / 2
        let f[t in T, k in K] = e[t, k] + logsumexp(f[t-1, :] + P[:, k])  first e[0, k] - log(K)
        minimize -logsumexp(f[T-1, :])""",
        _states,
    ),
    Unseen(
        *("factorisation_machine", "pairwise interactions of low rank"),
        """dim N, d, r = 5
        data X[N, d], y[N]
        var b, w[d], V[d, r]
        let pairs = sum((X @ V) .^ 2, axis=1) - (X .^ 2) @ sum(V .^ 2, axis=1)
        minimize sumsq(y - b - X @ w - pairs / 2) / 2""",
        _machine,
    ),
    Unseen(
        *("machine_failures", "accelerated failure times with censoring"),
        """dim N, d
        data X[N, d], t[N], died[N]
        var a, b[d], s
        let z = (log(t) - a - X @ b) * exp(-s)
        minimize sum(exp(z) - died .* (z - s))""",
        _failures,
    ),
    Unseen(
        *("growth_portfolio", "expected logarithmic utility of a portfolio"),
        """dim N, d
        data R[N, d]
        var z[d]
        let w = softmax(z)
        maximize sum(log1p(R @ w)) - 0.1 * sumsq(w)""",
        _returns,
    ),
    Unseen(
        *("quantile_bands", "nine smoothed quantiles at once"),
        """dim N, d, K
        data X[N, d], y[N], q[K]
        var B[d, K], b[K]
        let E[i in N, k in K] = y[i] - b[k] - sum(X[i, j] * B[j, k] for j in d)
        minimize mean(sum(q[None, :] .* E + 0.1 * softplus(-E / 0.1), axis=1))""",
        _quantiles,
    ),
    Unseen(
        *("charges_on_sphere", "repelling charges on a sphere"),
        """dim n
        data P0[n, 3]
        var X[n, 3] init P0
        let U[i in n, k in 3] = X[i, k] / norm2(X[i, :])
        minimize sum(1 / norm2(U[i, :] - U[j, :]) for i in n, j in range(i))""",
        _charges,
        1.0,
    ),
    Unseen(
        *("emission_tomography", "Poisson counts of projections"),
        """dim m, n
        data A[m, n], y[m]
        var x[n]
        let rate = A @ exp(x)
        minimize sum(rate - y .* log(rate)) + 0.1 * sum(sqrt((x[1:] - x[:n-1]) .^ 2 + 1e-3))""",
        _photons,
    ),
    Unseen(
        *("probit_choices", "probit regression"),
        """dim N, d
        data X[N, d], s[N]
        var b[d]
        minimize -sum(log(normcdf(s .* (X @ b)))) + sumsq(b) / 2""",
        _choices,
    ),
    Unseen(
        *("echo_network", "a recurrent network over several series"),
        """dim T, S, d, h = 12
        data u[T, S, d], y[T, S]
        var W[h, h], U[h, d], b[h], w[h]
        let H[t in T, s in S, i in h] = tanh(b[i] + sum(W[i, j] * H[t-1, s, j] for j in h)
                + sum(U[i, j] * u[t, s, j] for j in d))  first 0
        minimize sum((sum(w[i] * H[t, s, i] for i in h) - y[t, s])^2 for t in T, s in S)""",
        _series,
    ),
    Unseen(
        *("power_flow", "a potential on the edges of a graph"),
        """dim N, n = 1000
        data a[N] in n, b[N] in n, w[N], s[n]
        var v[n]
        minimize sum(w .* (1 - cos(v[a] - v[b]))) - dot(s, v) + sumsq(v) / 2""",
        _flow,
    ),
    Unseen(
        *("spike_trains", "counts of spikes with filters of stimuli"),
        """dim T = 2000, U = 2020, d = 3, K = 21
        data S[U, d], n[T]
        var f[d, K], b
        let eta[t in T] = b + sum(f[j, k] * S[t+k, j] for j in d, k in K)
        minimize sum(exp(eta) - n .* eta) + sum((f[:, 1:] - f[:, :K-1]) .^ 2)""",
        _spikes,
        0.05,
    ),
)
"""All models, in the order of the table."""
