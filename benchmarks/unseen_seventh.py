"""More models of fields that nothing else here holds: the seventh part of the unseen models.

Their loops have shapes that the first six parts lack: strata, windows, ragged groups, matrices of
each sample, dilated and causal axes. They were written, with their peers in JAX, when the kernels
had been tuned on those parts, and before anything was changed for them.
"""

from __future__ import annotations

import numpy as np

from benchmarks.by_hand import Arrays
from benchmarks.unseen_models import Rng, Unseen, pairs, whole


def _clinics(rng: Rng) -> Arrays:
    died = (rng.random(2000) < 0.4).astype(float)
    time, clinic = rng.exponential(1, 2000), whole(rng, 25, 2000)
    return {"X": rng.normal(size=(2000, 8)), "time": time, "died": died, "clinic": clinic}


def _calls(rng: Rng) -> Arrays:
    t = np.sort(rng.uniform(0, 100, 1500))
    return {"t": t, "size": rng.exponential(1, 1500), "y": rng.normal(size=1500)}


def _stars(rng: Rng) -> Arrays:
    A = rng.normal(size=(600, 3, 3))
    S = A @ A.transpose(0, 2, 1) / 6 + 0.1 * np.eye(3)
    return {"y": rng.normal(size=(600, 3)), "S": S}


def _waves(rng: Rng) -> Arrays:
    return {"X": rng.normal(size=(12, 6, 240)), "Y": rng.normal(size=(12, 224))}


def _notes(rng: Rng) -> Arrays:
    return {"X": rng.normal(size=(4, 48, 12)), "Y": rng.normal(size=(4, 48, 12))}


def _molecules(rng: Rng) -> Arrays:
    src, dst = pairs(rng, 400, 1600)
    bond, Y = rng.normal(size=(1600, 3)), rng.normal(size=400)
    return {"src": src, "dst": dst, "bond": bond, "F": rng.normal(size=(400, 8)), "Y": Y}


def _nothing(_: Rng) -> Arrays:
    return {"L": np.array(6.0)}


def _block(rng: Rng) -> Arrays:
    return {"T": rng.normal(size=(14, 12, 10, 16))}


def _choices(rng: Rng) -> Arrays:
    trip = np.sort(np.concatenate([np.arange(900), rng.integers(0, 900, 5100)])).astype(float)
    chosen = np.concatenate([[1.0], (np.diff(trip) > 0).astype(float)])
    return {"X": rng.normal(size=(6000, 8)), "trip": trip, "chosen": chosen}


def _clicks(rng: Rng) -> Arrays:
    fields = rng.integers(0, 40, (1500, 6)) + 40 * np.arange(6)
    return {"word": fields.astype(float), "y": rng.integers(0, 2, 1500).astype(float)}


def _circuits(rng: Rng) -> Arrays:
    return {"z0": rng.normal(size=(60, 2)), "seen": rng.normal(size=(8, 60))}


def _returns(rng: Rng) -> Arrays:
    return {"e": rng.normal(size=(400, 3)), "H0": np.eye(3)}


def _heights(rng: Rng) -> Arrays:
    cx, cy = whole(rng, 17, 4000), whole(rng, 17, 4000)
    wx, wy = rng.dirichlet(np.ones(4), (2, 4000))
    return {"cx": cx, "cy": cy, "wx": wx, "wy": wy, "z": rng.normal(size=4000)}


def _homes(rng: Rng) -> Arrays:
    return {"house": np.sort(whole(rng, 300, 1500)), "y": rng.normal(size=1500)}


def _light(rng: Rng) -> Arrays:
    return {"t": np.sort(rng.uniform(0, 1, 400)), "y": rng.normal(size=400)}


SEVENTH: tuple[Unseen, ...] = (
    Unseen(
        *("clinic_strata", "survival: proportional hazards within clinics"),
        """dim N, p, S = 25
        data X[N, p], time[N], died[N] mask, clinic[N] in S
        var b[p]
        let eta = X @ b
        minimize sum(log(sum(exp(eta[j]) for j in N
                             if clinic[j] == clinic[i] and time[j] >= time[i])) - eta[i]
                     for i in N if died[i] == 1) + sumsq(b)""",
        _clinics,
    ),
    Unseen(
        *("window_rates", "queueing: load of calls from those of a window around them"),
        """dim N
        data t[N], size[N], y[N]
        var a, k, c, s[N]
        let load[i in N] = sum(size[j] * exp(s[j]) * (1 - (t[i] - t[j])^2)^exp(k) for j in N
                               if abs(t[i] - t[j]) < 1)
        minimize sum((y[i] - c - a * log(load[i]))^2 for i in N) + sumsq(s) + k^2""",
        _calls,
    ),
    Unseen(
        *("star_streams", "astronomy: velocities with an error matrix each, from three streams"),
        """dim N, K = 3, d = 3
        data y[N, d], S[N, d, d]
        var w[K], m[K, d], L[K, d, d]
        let V[k in K] = L[k, :, :] @ L[k, :, :]' + 0.1 * eye(d)
        let lp = log(softmax(w))
        let f[i in N, k in K] = lp[k] - 0.5 * logdet(V[k, :, :] + S[i, :, :])
            - 0.5 * dot(y[i, :] - m[k, :], solve(V[k, :, :] + S[i, :, :], y[i, :] - m[k, :]))
        maximize sum(logsumexp(f[i, :]) for i in N) - sumsq(L) - sumsq(m)""",
        _stars,
    ),
    Unseen(
        *("dilated_waves", "audio: channels filtered at growing distances, then mixed"),
        """dim B, T = 240, C = 6
        data X[B, C, T], Y[B, 224]
        var f[C, 3], M[C, C], g[C, 3], o[C], c[C]
        let u[b in B, i in C, t in range(T - 8)] = sum(f[i, q] * X[b, i, t+4*q] for q in 3)
        let h[b in B, i in C, t in range(T - 8)] = tanh(c[i]
            + sum(M[i, j] * u[b, j, t] for j in C))
        let v[b in B, i in C, t in range(224)] = sum(g[i, q] * h[b, i, t+4*q] for q in 3)
        minimize sum((sum(o[i] * tanh(v[b, i, t]) for i in C) - Y[b, t])^2
                     for b in B, t in range(224)) + sumsq(M)""",
        _waves,
    ),
    Unseen(
        *("causal_notes", "music: the next note by attention to earlier ones, two heads"),
        """dim B, T, d, H = 2, e = 8
        data X[B, T, d], Y[B, T, d]
        var Q[H, d, e], K[H, d, e], V[H, d, d], near[H]
        let q[b in B, h in H, t in T, k in e] = sum(X[b, t, l] * Q[h, l, k] for l in d)
        let r[b in B, h in H, t in T, k in e] = sum(X[b, t, l] * K[h, l, k] for l in d)
        let v[b in B, h in H, t in T, k in d] = sum(X[b, t, l] * V[h, l, k] for l in d)
        let s[b in B, h in H, t in T, u in T] = dot(q[b, h, t, :], r[b, h, u, :]) / sqrt(e)
            - exp(near[h]) * 0.1 * (t - u)
        let z[b in B, h in H, t in T] = logsumexp(s[b, h, t, u] for u in range(t + 1))
        let out[b in B, t in T, k in d] = sum(exp(s[b, h, t, u] - z[b, h, t]) * v[b, h, u, k]
                                              for h in H, u in range(t + 1))
        minimize sumsq(out - Y) + sumsq(Q) + sumsq(K)""",
        _notes,
    ),
    Unseen(
        *("bonded_atoms", "chemistry: charges of atoms by two rounds of messages along bonds"),
        """dim E, A, d, k = 3
        data src[E] in A, dst[E] in A, bond[E, k], F[A, d], Y[A]
        var W[2, d, d], U[2, d, d], G[2, k, d], o[d]
        let m0[e in E, i in d] = tanh(dot(W[0, i, :], F[src[e], :])) * dot(bond[e, :], G[0, :, i])
        let h1[a in A, i in d] = tanh(dot(U[0, i, :], F[a, :])
                                      + sum(m0[e, i] for e in E if dst[e] == a))
        let m1[e in E, i in d] = tanh(dot(W[1, i, :], h1[src[e], :]))
            * dot(bond[e, :], G[1, :, i])
        let h2[a in A, i in d] = tanh(dot(U[1, i, :], h1[a, :])
                                      + sum(m1[e, i] for e in E if dst[e] == a))
        minimize sum((dot(o, h2[a, :]) - Y[a])^2 for a in A) + sumsq(W) + sumsq(U)""",
        _molecules,
    ),
    Unseen(
        *("periodic_liquid", "physics: particles in a periodic box with a short range"),
        """dim n = 160, d = 3
        data L
        var x[n, d]
        fn near(s) = where(s < 1.5, (1.5 - s)^3 / (s + 0.1), 0)
        minimize sum(near(sum((L / pi * sin(pi * (x[i, k] - x[j, k]) / L))^2 for k in d))
                     for i in n, j in n if j < i)""",
        _nothing,
        2.0,
    ),
    Unseen(
        *("tensor_train", "numerical analysis: a tensor of order four as a train of cores"),
        """dim a, b, c, d, r = 5
        data T[a, b, c, d]
        var A[a, r], B[r, b, r], C[r, c, r], D[r, d]
        minimize sum((T[i, j, k, l] - sum(A[i, p] * B[p, j, q] * C[q, k, s] * D[s, l]
                      for p in r, q in r, s in r))^2 for i in a, j in b, k in c, l in d)
            + 0.1 * (sumsq(A) + sumsq(B) + sumsq(C) + sumsq(D))""",
        _block,
    ),
    Unseen(
        *("trip_modes", "transport: choices among as many modes as each trip has"),
        """dim N, G = 900, p
        data X[N, p], trip[N] in G, chosen[N]
        var b[p], c[p]
        let u[i in N] = dot(X[i, :], b) + tanh(dot(X[i, :], c))
        minimize sum(logsumexp(u[i] for i in N if trip[i] == g) for g in G)
            - sum(chosen[i] * u[i] for i in N) + sumsq(b) + sumsq(c)""",
        _choices,
    ),
    Unseen(
        *("field_clicks", "advertising: clicks from pairs of categories"),
        """dim N, F = 6, V = 240, d = 8
        data word[N, F] in V, y[N]
        var E[V, d], w[V], c
        let s[i in N] = c + sum(w[word[i, f]] for f in F)
            + sum(dot(E[word[i, f], :], E[word[i, g], :]) for f in F, g in F if f < g)
        minimize mean(softplus(s[i]) - y[i] * s[i] for i in N) + 1e-3 * (sumsq(E) + sumsq(w))""",
        _clicks,
    ),
    Unseen(
        *("tuned_circuits", "electronics: sixty oscillating circuits by Runge-Kutta"),
        """dim B, W, T = 81
        data z0[B, 2], seen[W, B]
        var mu[B], om[B], k
        fn acc(x, v, m, w, k) = m * (1 - x^2) * v - w * x + k * cos(x)
        let x[t in T, b in B] = where(t == 0, z0[b, 0], x[t-1, b] + 0.05 * (v[t-1, b]
            + 2 * v2[t-1, b] + 2 * v3[t-1, b] + v4[t-1, b]) / 6)
        and v[t in T, b in B] = where(t == 0, z0[b, 1], v[t-1, b] + 0.05 * (a1[t-1, b]
            + 2 * a2[t-1, b] + 2 * a3[t-1, b] + a4[t-1, b]) / 6)
        and a1[t in T, b in B] = acc(x[t, b], v[t, b], exp(mu[b]), exp(om[b]), k)
        and v2[t in T, b in B] = v[t, b] + 0.025 * a1[t, b]
        and a2[t in T, b in B] = acc(x[t, b] + 0.025 * v[t, b], v2[t, b], exp(mu[b]), exp(om[b]), k)
        and v3[t in T, b in B] = v[t, b] + 0.025 * a2[t, b]
        and a3[t in T, b in B] = acc(x[t, b] + 0.025 * v2[t, b], v3[t, b], exp(mu[b]), exp(om[b]),
                                     k)
        and v4[t in T, b in B] = v[t, b] + 0.05 * a3[t, b]
        and a4[t in T, b in B] = acc(x[t, b] + 0.05 * v3[t, b], v4[t, b], exp(mu[b]), exp(om[b]), k)
        minimize sum((x[10*w+10, b] - seen[w, b])^2 for w in W, b in B)
            + sumsq(mu) + sumsq(om) + k^2""",
        _circuits,
    ),
    Unseen(
        *("joint_volatility", "finance: covariances of three assets after Baba, Engle and others"),
        """dim T, d
        data e[T, d], H0[d, d]
        var C[d, d], A[d, d], B[d, d]
        let H[t in T] = C @ C' + 0.1 * eye(d) + outer(A @ e[t-1, :], A @ e[t-1, :])
            + B @ H[t-1, :, :] @ B'  first H0
        minimize sum(logdet(H[t, :, :]) + dot(e[t, :], solve(H[t, :, :], e[t, :])) for t in T)
            + sumsq(A) + sumsq(B)""",
        _returns,
    ),
    Unseen(
        *("terrain_spline", "surveying: heights by splines of two coordinates"),
        """dim N, n = 20, m = 17
        data cx[N] in m, cy[N] in m, wx[N, 4], wy[N, 4], z[N]
        var c[n, n], s
        let f[i in N] = sum(wx[i, a] * wy[i, b] * c[cx[i]+a, cy[i]+b] for a in 4, b in 4)
        minimize sum(log(1 + (z[i] - f[i])^2 / exp(s)) for i in N) + s^2
            + sum((c[i+2, j] - 2 * c[i+1, j] + c[i, j])^2 for i in range(n-2), j in n)
            + sum((c[i, j+2] - 2 * c[i, j+1] + c[i, j])^2 for i in n, j in range(n-2))""",
        _heights,
    ),
    Unseen(
        *("household_types", "sociology: incomes in households of hidden types, mixtures in each"),
        """dim N, H = 300, K = 4, L = 3
        data house[N] in H, y[N]
        var p[K], w[K, L], m[K, L], s[K, L]
        let lw[k in K, l in L] = w[k, l] - logsumexp(w[k, :])
        let one[i in N, k in K] = logsumexp(lw[k, l] - s[k, l]
            - 0.5 * ((y[i] - m[k, l]) / exp(s[k, l]))^2 for l in L)
        let all[h in H, k in K] = sum(one[i, k] for i in N if house[i] == h)
        maximize sum(logsumexp(p[k] - logsumexp(p) + all[h, k] for k in K) for h in H)
            - sumsq(m) - sumsq(s) - sumsq(w) - sumsq(p)""",
        _homes,
    ),
    Unseen(
        *("jittered_samples", "signals: a spectrum from samples whose times are uncertain"),
        """dim N, K = 40
        data t[N], y[N]
        var a[K], b[K], d[N]
        let f[i in N] = sum(a[k] * cos(2 * pi * (k + 1) * (t[i] + 0.01 * d[i]))
            + b[k] * sin(2 * pi * (k + 1) * (t[i] + 0.01 * d[i])) for k in K)
        minimize sumsq(y - f) + sumsq(d) + 0.1 * (sumsq(a) + sumsq(b))""",
        _light,
    ),
)
"""Fifteen models."""
