"""The second part of the unseen models by hand for numba, where a loop is natural."""

from __future__ import annotations

from collections.abc import Callable
from math import cos, exp, log, log1p, pi, sin, sqrt

import numpy as np
from numba import njit

from benchmarks.by_hand import Array, Arrays

Evaluate = Callable[[Array], tuple[float, Array]]


def topic_mixture(d: Arrays) -> Evaluate:
    doc, word, count = d["doc"].astype(np.int64), d["word"].astype(np.int64), d["count"]
    D, W, K = 100, 300, 6

    @njit
    def run(x):
        a, b, total = x[: D * K].reshape(D, K), x[D * K :].reshape(K, W), 0.0
        theta, phi = np.empty((D, K)), np.empty((W, K))
        out = np.empty(x.size)
        ga, gb = out[: D * K].reshape(D, K), out[D * K :].reshape(K, W)
        for i in range(D):
            theta[i] = np.exp(a[i] - a[i].max())
            theta[i] /= theta[i].sum()
        for k in range(K):
            own = np.exp(b[k] - b[k].max())
            phi[:, k] = own / own.sum()
        gt, gp = np.zeros((D, K)), np.zeros((W, K))
        for i in range(doc.size):
            m, w, p = doc[i], word[i], 0.0
            for k in range(K):
                p += theta[m, k] * phi[w, k]
            total -= count[i] * log(p)
            e = -count[i] / p
            for k in range(K):
                gt[m, k] += e * phi[w, k]
                gp[w, k] += e * theta[m, k]
        for i in range(D):
            along = 0.0
            for k in range(K):
                along += gt[i, k] * theta[i, k]
            for k in range(K):
                ga[i, k] = theta[i, k] * (gt[i, k] - along) + a[i, k] / 10
                total += a[i, k] ** 2 / 20
        for k in range(K):
            along = 0.0
            for w in range(W):
                along += gp[w, k] * phi[w, k]
            for w in range(W):
                gb[k, w] = phi[w, k] * (gp[w, k] - along) + b[k, w] / 10
                total += b[k, w] ** 2 / 20
        return total, out

    return run


def hidden_states(d: Arrays) -> Evaluate:
    y, T, K = d["y"], len(d["y"]), 5

    @njit
    def run(x):
        A, mu, s = x[:25].reshape(K, K), x[25:35].reshape(K, 2), x[35:45].reshape(K, 2)
        P, scale, g = np.empty((K, K)), np.exp(-s), np.zeros(45)
        for j in range(K):
            P[j] = np.exp(A[j] - A[j].max())
            P[j] /= P[j].sum()
        z, e, alpha, total = np.empty((T, K, 2)), np.empty((T, K)), np.empty((T, K)), 0.0
        c = np.empty(T)
        for t in range(T):
            c[t] = 0.0
            for k in range(K):
                z[t, k, 0] = (y[t, 0] - mu[k, 0]) * scale[k, 0]
                z[t, k, 1] = (y[t, 1] - mu[k, 1]) * scale[k, 1]
                e[t, k] = exp(-(z[t, k, 0] ** 2 + z[t, k, 1] ** 2) / 2)
                e[t, k] *= scale[k, 0] * scale[k, 1]
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
                for i in range(2):
                    g[25 + 2 * k + i] -= w * z[t, k, i] * scale[k, i]
                    g[35 + 2 * k + i] -= w * (z[t, k, i] ** 2 - 1)
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
                g[5 * j + k] = P[j, k] * all_ - GP[j, k]
        return -total, g

    return run


def weekly_cases(d: Arrays) -> Evaluate:
    cases, T = d["cases"], len(d["cases"])
    wave = np.cos(2 * pi * np.arange(T) / 52)

    @njit
    def run(x):
        b, season, g, rho = x
        beta, S, ill = np.exp(b + season * wave) / 10, np.empty(T), np.empty(T)
        recovery, scale, total = exp(g) / 10, 1000 * exp(rho), 0.0
        S[0], ill[0] = 0.95, 0.01
        for t in range(1, T):
            new = beta[t] * S[t - 1] * ill[t - 1]
            S[t] = S[t - 1] - new
            ill[t] = ill[t - 1] + new - recovery * ill[t - 1]
        out = np.zeros(4)
        ds, di, all_ = 0.0, 0.0, 0.0
        for t in range(T - 1, -1, -1):
            rate = scale * ill[t] + 1
            total += rate - cases[t] * log(rate)
            e = (1 - cases[t] / rate) * scale
            out[3] += e * ill[t]
            di += e
            if t:
                w = (di - ds) * beta[t]
                own = w * S[t - 1] * ill[t - 1]
                out[0] += own
                out[1] += own * wave[t]
                all_ -= di * ill[t - 1]
                di, ds = di + w * S[t - 1] - recovery * di, ds + w * ill[t - 1]
        out[2] = all_ * recovery
        return total + (x * x).sum() / 2, out + x

    return run


def label_spread(d: Arrays) -> Evaluate:
    a, b, w = d["a"].astype(np.int64), d["b"].astype(np.int64), d["w"]
    node, own = d["node"].astype(np.int64), d["own"].astype(np.int64)

    @njit
    def run(x):
        F, out = x.reshape(600, 4), (x / 50).reshape(600, 4)
        total = (x * x).sum() / 100
        for i in range(a.size):
            p, q = a[i], b[i]
            for k in range(4):
                e = F[p, k] - F[q, k]
                total += w[i] * e * e / 2
                out[p, k] += w[i] * e
                out[q, k] -= w[i] * e
        for m in range(node.size):
            row, most, sum_ = F[node[m]], F[node[m]].max(), 0.0
            for k in range(4):
                sum_ += exp(row[k] - most)
            total += most + log(sum_) - row[own[m]]
            for k in range(4):
                out[node[m], k] += exp(row[k] - most) / sum_
            out[node[m], own[m]] -= 1
        return total, out.ravel()

    return run


def knowledge_graph(d: Arrays) -> Evaluate:
    head, relation = d["head"].astype(np.int64), d["relation"].astype(np.int64)
    tail, wrong = d["tail"].astype(np.int64), d["wrong"].astype(np.int64)

    @njit
    def run(x):
        E, T, N = x[:4800].reshape(400, 12), x[4800:].reshape(12, 12), head.size
        out, total = np.zeros(x.size), 0.0
        GE, GT = out[:4800].reshape(400, 12), out[4800:].reshape(12, 12)
        for i in range(400):
            for j in range(12):
                total += E[i, j] ** 2 / 1000
                GE[i, j] = E[i, j] / 500
        for i in range(N):
            h, r, t, f = head[i], relation[i], tail[i], wrong[i]
            near, far = 0.0, 0.0
            for j in range(12):
                moved = E[h, j] + T[r, j]
                near += (moved - E[t, j]) ** 2
                far += (moved - E[f, j]) ** 2
            near, far = sqrt(near), sqrt(far)
            z = 1 + near - far
            e = exp(-abs(z))
            total += (max(z, 0.0) + log1p(e)) / N
            s = (1.0 if z >= 0 else e) / (1 + e) / N
            p, q = s / near if near > 0 else 0.0, s / far if far > 0 else 0.0
            for j in range(12):
                moved = E[h, j] + T[r, j]
                u, v = p * (moved - E[t, j]), q * (moved - E[f, j])
                GE[h, j] += u - v
                GT[r, j] += u - v
                GE[t, j] -= u
                GE[f, j] += v
        return total, out

    return run


def squid_axon(d: Arrays) -> Evaluate:
    V, current, T = d["V"], d["I"], len(d["V"])

    @njit
    def run(x):
        z, k, total = np.empty((T, 4)), np.empty((T, 6)), 0.0
        na, kk, leak, shift = 100 * exp(x[0]), 30 * exp(x[1]), 0.3 * exp(x[2]), x[3]
        ea, eh, en = np.empty(T), np.empty(T), np.empty(T)
        z[0, 0], z[0, 1], z[0, 2], z[0, 3] = 0.05, 0.6, 0.3, -65.0
        for t in range(T - 1):
            v = V[t]
            ea[t], eh[t] = exp(-(v + 40 + shift) / 10), exp(-(v + 35 + shift) / 10)
            en[t] = exp(-(v + 55 + shift) / 10)
            k[t, 0] = 0.1 * (v + 40 + shift) / (1 - ea[t])
            k[t, 1] = 4 * exp(-(v + 65) / 18)
            k[t, 2] = 0.07 * exp(-(v + 65) / 20)
            k[t, 3] = 1 / (1 + eh[t])
            k[t, 4] = 0.01 * (v + 55 + shift) / (1 - en[t])
            k[t, 5] = 0.125 * exp(-(v + 65) / 80)
            m, h, n, u = z[t, 0], z[t, 1], z[t, 2], z[t, 3]
            ionic = na * m * m * m * h * (u - 50) + kk * n * n * n * n * (u + 77)
            z[t + 1, 3] = u + 0.02 * (current[t] - ionic - leak * (u + 54))
            z[t + 1, 0] = m + 0.02 * (k[t, 0] * (1 - m) - k[t, 1] * m)
            z[t + 1, 1] = h + 0.02 * (k[t, 2] * (1 - h) - k[t, 3] * h)
            z[t + 1, 2] = n + 0.02 * (k[t, 4] * (1 - n) - k[t, 5] * n)
        gm, gh, gn, gv, out = 0.0, 0.0, 0.0, 0.0, np.zeros(4)
        for t in range(T - 1, -1, -1):
            e = z[t, 3] - V[t]
            total += e * e / 200
            if t < T - 1:
                m, h, n, u = z[t, 0], z[t, 1], z[t, 2], z[t, 3]
                w, c3, n3 = 0.02 * gv, m * m * m, n * n * n
                out[0] -= w * na * c3 * h * (u - 50)
                out[1] -= w * kk * n3 * n * (u + 77)
                out[2] -= w * leak * (u + 54)
                a, o = (V[t] + 40 + shift) / 10, 1 - ea[t]
                out[3] += 0.02 * gm * (1 - m) * 0.1 * (1 / o - a * ea[t] / (o * o))
                a, o = (V[t] + 55 + shift) / 10, 1 - en[t]
                out[3] += 0.02 * gn * (1 - n) * 0.01 * (1 / o - a * en[t] / (o * o))
                out[3] -= 0.02 * gh * h * k[t, 3] * k[t, 3] * eh[t] / 10
                gm = gm * (1 - 0.02 * (k[t, 0] + k[t, 1])) - w * na * 3 * m * m * h * (u - 50)
                gh = gh * (1 - 0.02 * (k[t, 2] + k[t, 3])) - w * na * c3 * (u - 50)
                gn = gn * (1 - 0.02 * (k[t, 4] + k[t, 5])) - w * kk * 4 * n3 * (u + 77)
                gv -= w * (na * c3 * h + kk * n3 * n + leak)
            gv += e / 100
        return total + (x * x).sum(), out + 2 * x

    return run


def protein_couplings(d: Arrays) -> Evaluate:
    X, N, L, q = d["x"].astype(np.int64), *d["x"].shape, 5

    @njit
    def run(x):
        h, J = x[: L * q].reshape(L, q), x[L * q :].reshape(L, q, L, q)
        out, s, total = np.empty(x.size), np.empty(q), 0.0
        gh, gJ = out[: L * q].reshape(L, q), out[L * q :].reshape(L, q, L, q)
        for i in range(x.size):
            c = 1.0 if i < L * q else 5.0
            total += c * x[i] * x[i]
            out[i] = 2 * c * x[i]
        for n in range(N):
            for i in range(L):
                for a in range(q):
                    s[a] = h[i, a]
                    for m in range(L):
                        if m != i:
                            s[a] += J[i, a, m, X[n, m]]
                most, sum_ = s.max(), 0.0
                total -= s[X[n, i]] - most
                for a in range(q):
                    s[a] = exp(s[a] - most)
                    sum_ += s[a]
                total += log(sum_)
                for a in range(q):
                    e = s[a] / sum_ - (1.0 if a == X[n, i] else 0.0)
                    gh[i, a] += e
                    for m in range(L):
                        if m != i:
                            gJ[i, a, m, X[n, m]] += e
        return total, out

    return run


def graded_answers(d: Arrays) -> Evaluate:
    person, item = d["person"].astype(np.int64), d["item"].astype(np.int64)
    grade = d["grade"].astype(np.int64)

    @njit
    def run(x):
        out, total, cuts = x.copy(), 0.0, np.empty((40, 3))
        ec, ed, slope = np.exp(x[280:320]), np.exp(x[320:360]), np.exp(x[200:240])
        for i in range(40):
            cuts[i, 0] = x[240 + i]
            cuts[i, 1] = cuts[i, 0] + ec[i]
            cuts[i, 2] = cuts[i, 1] + ed[i]
        gcut, gslope = np.zeros((40, 3)), np.zeros(40)
        for i in range(x.size):
            total += x[i] * x[i] / 2
        for n in range(person.size):
            p, i, k = person[n], item[n], grade[n]
            low, high, u, v = 1.0, 0.0, 0.0, 0.0
            if k > 0:
                u = x[p] - cuts[i, k - 1]
                low = 1 / (1 + exp(-slope[i] * u))
            if k < 3:
                v = x[p] - cuts[i, k]
                high = 1 / (1 + exp(-slope[i] * v))
            total -= log(low - high)
            e = -1 / (low - high)
            a, b = e * low * (1 - low), -e * high * (1 - high)
            gslope[i] += a * u + b * v
            out[p] += (a + b) * slope[i]
            if k > 0:
                gcut[i, k - 1] -= a * slope[i]
            if k < 3:
                gcut[i, k] -= b * slope[i]
        for i in range(40):
            out[200 + i] += gslope[i] * slope[i]
            out[240 + i] += gcut[i, 0] + gcut[i, 1] + gcut[i, 2]
            out[280 + i] += (gcut[i, 1] + gcut[i, 2]) * ec[i]
            out[320 + i] += gcut[i, 2] * ed[i]
        return total, out

    return run


def fused_centres(d: Arrays) -> Evaluate:
    X, w = d["X"], d["w"]
    a, b = d["a"].astype(np.int64), d["b"].astype(np.int64)

    @njit
    def run(x):
        U, total = x.reshape(300, 5), 0.0
        out = np.empty((300, 5))
        for i in range(300):
            for j in range(5):
                out[i, j] = U[i, j] - X[i, j]
                total += out[i, j] ** 2 / 2
        for k in range(a.size):
            p, q, s = a[k], b[k], 1e-6
            for j in range(5):
                s += (U[p, j] - U[q, j]) ** 2
            r = sqrt(s)
            total += 0.1 * w[k] * r
            e = 0.1 * w[k] / r
            for j in range(5):
                g = e * (U[p, j] - U[q, j])
                out[p, j] += g
                out[q, j] -= g
        return total, out.ravel()

    return run


def coupled_phases(d: Arrays) -> Evaluate:
    y, start = d["y"], d["start"]
    T, n = y.shape

    @njit
    def run(x):
        w, K, p, total = x[:n], x[n], np.empty((T, n)), 0.0
        c, s, C, S = np.empty((T, n)), np.empty((T, n)), np.zeros(T), np.zeros(T)
        p[0] = start
        for t in range(T):
            for i in range(n):
                if t:
                    pull = c[t - 1, i] * S[t - 1] - s[t - 1, i] * C[t - 1]
                    p[t, i] = p[t - 1, i] + 0.05 * (w[i] + K / n * pull)
                c[t, i], s[t, i] = cos(p[t, i]), sin(p[t, i])
                C[t] += c[t, i]
                S[t] += s[t, i]
        out, own, new = np.zeros(n + 1), np.zeros(n), np.empty(n)
        for t in range(T - 1, -1, -1):
            A, B = 0.0, 0.0
            for i in range(n):
                A += own[i] * c[t, i]
                B += own[i] * s[t, i]
            for i in range(n):
                total += 1 - cos(p[t, i] - y[t, i])
                new[i] = own[i] + sin(p[t, i] - y[t, i])
                if t < T - 1:
                    pull = c[t, i] * S[t] - s[t, i] * C[t]
                    out[i] += 0.05 * own[i]
                    out[n] += 0.05 * own[i] * pull / n
                    back = -s[t, i] * S[t] - c[t, i] * C[t]
                    along = A * c[t, i] + B * s[t, i]
                    new[i] += 0.05 * K / n * (own[i] * back + along)
            own[:] = new
        return total + (x * x).sum() / 2, out + x

    return run


MORE_LOOPS: dict[str, Callable[[Arrays], Evaluate]] = {
    one.__name__: one
    for one in (
        *(topic_mixture, hidden_states, weekly_cases, label_spread, knowledge_graph, squid_axon),
        *(protein_couplings, graded_answers, fused_centres, coupled_phases),
    )
}
"""Constructors of value and gradient at x (n,) from the data."""
