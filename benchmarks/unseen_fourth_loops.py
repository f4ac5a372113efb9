"""The fourth part of the unseen models by hand for numba, where a loop is natural."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log, sqrt

import numpy as np
from numba import njit

from benchmarks.by_hand import Array, Arrays

Evaluate = Callable[[Array], tuple[float, Array]]


def soft_cut(d: Arrays) -> Evaluate:
    a, b, w = d["a"].astype(np.int64), d["b"].astype(np.int64), d["w"]
    n, K = 1500, 4
    degree = np.bincount(a, w, n) + np.bincount(b, w, n)

    @njit
    def run(x):
        Z, H, g = x.reshape(n, K), np.empty((n, K)), np.zeros((n, K))
        cut, volume = np.zeros(K), np.zeros(K)
        for i in range(n):
            most, total = Z[i].max(), 0.0
            for k in range(K):
                H[i, k] = exp(Z[i, k] - most)
                total += H[i, k]
            for k in range(K):
                H[i, k] /= total
                volume[k] += degree[i] * H[i, k]
        for e in range(len(a)):
            for k in range(K):
                gap = H[a[e], k] - H[b[e], k]
                cut[k] += w[e] * gap * gap
                g[a[e], k] += 2 * w[e] * gap
                g[b[e], k] -= 2 * w[e] * gap
        total, scale = 0.0, 0.1 / degree.sum() ** 2
        for k in range(K):
            total += cut[k] / volume[k] + scale * volume[k] ** 2
        for i in range(n):
            mean = 0.0
            for k in range(K):
                slope = 2 * scale * volume[k] - cut[k] / volume[k] ** 2
                g[i, k] = g[i, k] / volume[k] + degree[i] * slope
                mean += g[i, k] * H[i, k]
            for k in range(K):
                g[i, k] = H[i, k] * (g[i, k] - mean)
        return total, g.reshape(n * K)

    return run


def spoken_word(d: Arrays) -> Evaluate:
    X, letter, skip = d["X"], d["letter"].astype(np.int64), d["skip"]
    (T, width), S, K = X.shape, len(letter), 20

    @njit
    def run(x):
        W, c = x[: width * K].reshape(width, K), x[width * K :]
        z = X @ W + c
        p, e = np.zeros((T, S)), np.empty((T, S))
        soft = np.empty((T, K))
        for t in range(T):
            most, total = z[t].max(), 0.0
            for k in range(K):
                soft[t, k] = exp(z[t, k] - most)
                total += soft[t, k]
            for k in range(K):
                soft[t, k] /= total
            for s in range(S):
                e[t, s] = soft[t, letter[s]] * exp(3.0)
        p[0, :2] = e[0, :2]
        for t in range(1, T):
            for s in range(S):
                before = p[t - 1, s]
                if s >= 1:
                    before += p[t - 1, s - 1]
                if s >= 2:
                    before += skip[s] * p[t - 1, s - 2]
                p[t, s] = e[t, s] * before
        last = p[T - 1, S - 1] + p[T - 1, S - 2]
        g, new, gz = np.zeros(S), np.zeros(S), np.zeros((T, K))
        g[S - 1] = g[S - 2] = -1 / last
        for t in range(T - 1, -1, -1):
            total = 0.0
            for s in range(S):
                own = g[s] * p[t, s]
                gz[t, letter[s]] += own
                total += own
            for k in range(K):
                gz[t, k] -= total * soft[t, k]
            if t:
                for s in range(S):
                    new[s] = g[s] * e[t, s]
                    if s + 1 < S:
                        new[s] += g[s + 1] * e[t, s + 1]
                    if s + 2 < S:
                        new[s] += skip[s + 2] * g[s + 2] * e[t, s + 2]
                g, new = new, g
        out = 0.02 * x
        out[: width * K] += (X.T @ gz).reshape(width * K)
        for t in range(T):
            for k in range(K):
                out[width * K + k] += gz[t, k]
        return -log(last) + 0.01 * (x * x).sum(), out

    return run


def heated_plate(d: Arrays) -> Evaluate:
    u0, seen = d["u0"], d["seen"]
    n, m = u0.shape
    T = 40

    @njit
    def run(x):
        k, u = x.reshape(n, m), np.empty((T, n, m))
        c = np.exp(k)
        u[0] = u0
        for t in range(1, T):
            u[t] = u[t - 1]
            for i in range(1, n - 1):
                for j in range(1, m - 1):
                    near = u[t - 1, i + 1, j] + u[t - 1, i - 1, j] + u[t - 1, i, j + 1]
                    u[t, i, j] += 0.1 * c[i, j] * (near + u[t - 1, i, j - 1] - 4 * u[t - 1, i, j])
        g, out = 2 * (u[T - 1] - seen), np.zeros((n, m))
        total = ((u[T - 1] - seen) ** 2).sum()
        for t in range(T - 1, 0, -1):
            new = g.copy()
            for i in range(1, n - 1):
                for j in range(1, m - 1):
                    near = u[t - 1, i + 1, j] + u[t - 1, i - 1, j] + u[t - 1, i, j + 1]
                    slope = 0.1 * g[i, j]
                    out[i, j] += slope * (near + u[t - 1, i, j - 1] - 4 * u[t - 1, i, j])
                    slope *= c[i, j]
                    new[i, j] -= 4 * slope
                    new[i + 1, j] += slope
                    new[i - 1, j] += slope
                    new[i, j + 1] += slope
                    new[i, j - 1] += slope
            g = new
        out *= c
        for i in range(n):
            for j in range(m):
                if i + 1 < n:
                    gap = k[i + 1, j] - k[i, j]
                    total += 0.01 * gap * gap
                    out[i + 1, j] += 0.02 * gap
                    out[i, j] -= 0.02 * gap
                if j + 1 < m:
                    gap = k[i, j + 1] - k[i, j]
                    total += 0.01 * gap * gap
                    out[i, j + 1] += 0.02 * gap
                    out[i, j] -= 0.02 * gap
        return total, out.reshape(n * m)

    return run


def spam_words(d: Arrays) -> Evaluate:
    A, spam = d["A"], d["spam"]
    N, n = A.shape
    row, column = np.nonzero(A)
    entry, start = A[row, column], np.searchsorted(row, np.arange(N + 1))

    @njit
    def run(x):
        out, total = np.zeros(n + 1), 0.0
        for i in range(N):
            z = x[n]
            for k in range(start[i], start[i + 1]):
                z += entry[k] * x[column[k]]
            e = exp(-abs(z))
            total += max(z, 0.0) + np.log1p(e) - spam[i] * z
            g = (1 / (1 + e) if z >= 0 else e / (1 + e)) - spam[i]
            out[n] += g
            for k in range(start[i], start[i + 1]):
                out[column[k]] += entry[k] * g
        for j in range(n):
            r = sqrt(x[j] * x[j] + 1e-4)
            total += 0.1 * r
            out[j] += 0.1 * x[j] / r
        return total, out

    return run


def aftershocks(data: Arrays) -> Evaluate:
    t, place, m = data["t"], data["place"], data["m"]
    n = len(t)

    @njit
    def run(x):
        mu, k, alpha, c, p, d = x
        base, steep, c_, p_, d_ = exp(mu), exp(alpha), exp(c), exp(p), exp(d)
        strength = np.exp(k + steep * m - 2)
        out, total = 2 * x, (x * x).sum() + 100 * base
        out[0] += 100 * base
        gm, own, logs = np.zeros(n), np.empty(n), np.empty(n)
        for i in range(n):
            rate = base
            for j in range(i):
                logs[j] = log(t[i] - t[j] + c_)
                square = (place[i, 0] - place[j, 0]) ** 2 + (place[i, 1] - place[j, 1]) ** 2 + d_
                own[j] = strength[j] * exp(-(1 + p_) * logs[j]) / (square * sqrt(square))
                rate += own[j]
            total -= log(rate)
            out[0] -= base / rate
            for j in range(i):
                g = -own[j] / rate
                gm[j] += g
                square = (place[i, 0] - place[j, 0]) ** 2 + (place[i, 1] - place[j, 1]) ** 2 + d_
                out[3] -= g * (1 + p_) * c_ / (t[i] - t[j] + c_)
                out[4] -= g * p_ * logs[j]
                out[5] -= 1.5 * g * d_ / square
        end = exp(-c * p_)
        for j in range(n):
            own_ = strength[j] * end
            total += own_
            out[3] -= own_ * p_
            out[4] -= own_ * c * p_
            gm[j] += own_
            out[1] += gm[j]
            out[2] += gm[j] * steep * m[j]
        return total, out

    return run


FOURTH_LOOPS: dict[str, Callable[[Arrays], Evaluate]] = {
    one.__name__: one for one in (soft_cut, spoken_word, heated_plate, spam_words, aftershocks)
}
