"""Unseen models whose natural form is a loop, by hand for numba: pairs, grids, lists of edges."""

from __future__ import annotations

from collections.abc import Callable
from math import cos, exp, log, log1p, sin, sqrt

import numpy as np
from numba import njit

from benchmarks.by_hand import Array, Arrays

Evaluate = Callable[[Array], tuple[float, Array]]


def soap_film(d: Arrays) -> Evaluate:
    h, n = d["g"], len(d["g"])

    @njit
    def run(x):
        u, total, out = x.reshape(n, n), 0.0, np.empty((n, n))
        for i in range(n):
            for j in range(n):
                e = u[i, j] - h[i, j]
                total += e * e / 2
                out[i, j] = e
        for i in range(n - 1):
            for j in range(n - 1):
                a, b = u[i + 1, j] - u[i, j], u[i, j + 1] - u[i, j]
                s = sqrt(1 + a * a + b * b)
                total += s
                a, b = a / s, b / s
                out[i + 1, j] += a
                out[i, j + 1] += b
                out[i, j] -= a + b
        return total, out.ravel()

    return run


def phi4_lattice(d: Arrays) -> Evaluate:
    h, n = d["h"], len(d["h"])

    @njit
    def run(x):
        f, total, out = x.reshape(n, n, n), 0.0, np.zeros((n, n, n))
        for i in range(n):
            ip = i + 1 if i + 1 < n else 0
            for j in range(n):
                jp = j + 1 if j + 1 < n else 0
                for k in range(n):
                    kp = k + 1 if k + 1 < n else 0
                    c = f[i, j, k]
                    a, b, e = f[ip, j, k] - c, f[i, jp, k] - c, f[i, j, kp] - c
                    q = c * c - 1
                    total += (a * a + b * b + e * e) / 2 + q * q / 4 - h[i, j, k] * c
                    out[ip, j, k] += a
                    out[i, jp, k] += b
                    out[i, j, kp] += e
                    out[i, j, k] += q * c - h[i, j, k] - a - b - e
        return total, out.ravel()

    return run


def perceptual_map(d: Arrays) -> Evaluate:
    D, n = d["d"], len(d["d"])

    @njit
    def run(x):
        Z, total, out = x.reshape(n, 2), 0.0, np.zeros((n, 2))
        for i in range(n):
            gx, gy = 0.0, 0.0
            for j in range(i):
                a, b = Z[i, 0] - Z[j, 0], Z[i, 1] - Z[j, 1]
                r = sqrt(a * a + b * b + 1e-6)
                e = r - D[i, j]
                total += e * e
                w = 2 * e / r
                gx += w * a
                gy += w * b
                out[j, 0] -= w * a
                out[j, 1] -= w * b
            out[i, 0] += gx
            out[i, 1] += gy
        return total, out.ravel()

    return run


def charges_on_sphere(d: Arrays) -> Evaluate:
    n = len(d["P0"])

    @njit
    def run(x):
        X, total = x.reshape(n, 3), 0.0
        length, U, G = np.empty(n), np.empty((n, 3)), np.zeros((n, 3))
        for i in range(n):
            length[i] = sqrt(X[i, 0] ** 2 + X[i, 1] ** 2 + X[i, 2] ** 2)
            for k in range(3):
                U[i, k] = X[i, k] / length[i]
        for i in range(n):
            for j in range(i):
                a, b, c = U[i, 0] - U[j, 0], U[i, 1] - U[j, 1], U[i, 2] - U[j, 2]
                s = 1 / (a * a + b * b + c * c)
                r = sqrt(s)
                total += r
                w = r * s
                for k, e in enumerate((a, b, c)):
                    G[i, k] -= w * e
                    G[j, k] += w * e
        for i in range(n):
            along = U[i, 0] * G[i, 0] + U[i, 1] * G[i, 1] + U[i, 2] * G[i, 2]
            for k in range(3):
                G[i, k] = (G[i, k] - along * U[i, k]) / length[i]
        return total, G.ravel()

    return run


def sensor_network(d: Arrays) -> Evaluate:
    a, b, r = d["a"].astype(np.int64), d["b"].astype(np.int64), d["r"]

    @njit
    def run(x):
        P, total, out = x.reshape(400, 2), 0.0, np.zeros((400, 2))
        for k in range(a.size):
            i, j = a[k], b[k]
            u, v = P[i, 0] - P[j, 0], P[i, 1] - P[j, 1]
            e = u * u + v * v - r[k] * r[k]
            total += log1p(e * e)
            w = 4 * e / (1 + e * e)
            out[i, 0] += w * u
            out[i, 1] += w * v
            out[j, 0] -= w * u
            out[j, 1] -= w * v
        return total, out.ravel()

    return run


def word_vectors(d: Arrays) -> Evaluate:
    a, b = d["a"].astype(np.int64), d["b"].astype(np.int64)
    weight, wanted = np.minimum(1, (d["count"] / 100) ** 0.75), np.log(d["count"])

    @njit
    def run(x):
        U, V, p, q = x[:8000].reshape(500, 16), x[8000:16000].reshape(500, 16), x[16000:], x[16500:]
        total, g = 0.0, np.zeros(17000)
        GU, GV = g[:8000].reshape(500, 16), g[8000:16000].reshape(500, 16)
        for k in range(a.size):
            i, j, fit = a[k], b[k], 0.0
            for m in range(16):
                fit += U[i, m] * V[j, m]
            e = fit + p[i] + q[j] - wanted[k]
            total += weight[k] * e * e
            e *= 2 * weight[k]
            for m in range(16):
                GU[i, m] += e * V[j, m]
                GV[j, m] += e * U[i, m]
            g[16000 + i] += e
            g[16500 + j] += e
        return total, g

    return run


def chess_ratings(d: Arrays) -> Evaluate:
    won, lost = d["winner"].astype(np.int64), d["loser"].astype(np.int64)

    @njit
    def run(x):
        total, g = 0.0, np.empty(x.size)
        for i in range(x.size):
            total += x[i] * x[i] / 2
            g[i] = x[i]
        for k in range(won.size):
            t = x[lost[k]] - x[won[k]]
            e = exp(-abs(t))
            total += max(t, 0.0) + log1p(e)
            s = (1.0 if t >= 0 else e) / (1 + e)
            g[lost[k]] += s
            g[won[k]] -= s
        return total, g

    return run


def power_flow(d: Arrays) -> Evaluate:
    a, b, w, s = d["a"].astype(np.int64), d["b"].astype(np.int64), d["w"], d["s"]

    @njit
    def run(v):
        total, g = 0.0, np.empty(v.size)
        for i in range(v.size):
            total += v[i] * v[i] / 2 - s[i] * v[i]
            g[i] = v[i] - s[i]
        for k in range(a.size):
            t = v[a[k]] - v[b[k]]
            total += w[k] * (1 - cos(t))
            e = w[k] * sin(t)
            g[a[k]] += e
            g[b[k]] -= e
        return total, g

    return run


def regime_switching(d: Arrays) -> Evaluate:
    y, T, K = d["y"], d["y"].size, 3

    @njit
    def run(x):
        A, mu, s = x[:9].reshape(K, K), x[9:12], x[12:15]
        P, scale, g = np.empty((K, K)), np.exp(-s), np.zeros(15)
        for j in range(K):
            P[j] = np.exp(A[j] - A[j].max())
            P[j] /= P[j].sum()
        z, e, alpha, total = np.empty((T, K)), np.empty((T, K)), np.empty((T, K)), 0.0
        c = np.empty(T)
        for t in range(T):
            c[t] = 0.0
            for k in range(K):
                z[t, k] = (y[t] - mu[k]) * scale[k]
                e[t, k] = exp(-z[t, k] * z[t, k] / 2) * scale[k]
                before = 1.0 / K
                if t:
                    before = 0.0
                    for j in range(K):
                        before += alpha[t - 1, j] * P[j, k]
                alpha[t, k] = before * e[t, k]
                c[t] += alpha[t, k]
            for k in range(K):
                alpha[t, k] /= c[t]
            total += log(c[t])
        beta, new, GP = np.ones(K), np.empty(K), np.zeros((K, K))
        for t in range(T - 1, -1, -1):
            for k in range(K):
                w = alpha[t, k] * beta[k]
                g[9 + k] -= w * z[t, k] * scale[k]
                g[12 + k] -= w * (z[t, k] * z[t, k] - 1)
            if t:
                for j in range(K):
                    new[j] = 0.0
                    for k in range(K):
                        one = e[t, k] * beta[k] / c[t]
                        new[j] += P[j, k] * one
                        GP[j, k] += alpha[t - 1, j] * P[j, k] * one
                beta[:] = new
        for j in range(K):
            all_ = GP[j].sum()
            for k in range(K):
                g[3 * j + k] = P[j, k] * all_ - GP[j, k]
        return -total, g

    return run


LOOPS: dict[str, Callable[[Arrays], Evaluate]] = {
    one.__name__: one
    for one in (
        *(soap_film, phi4_lattice, perceptual_map, charges_on_sphere, sensor_network),
        *(word_vectors, chess_ratings, power_flow, regime_switching),
    )
}
"""Constructors of value and gradient at x (n,) from the data."""
