"""More models of fields that nothing else here holds: the sixth part of the unseen models.

They were written, with their peers in JAX, when the kernels had been tuned on the first five parts,
and before anything was changed for them.
"""

from __future__ import annotations

import numpy as np

from benchmarks.by_hand import Arrays
from benchmarks.unseen_models import Rng, Unseen, pairs, whole


def _reflections(rng: Rng) -> Arrays:
    h = rng.integers(-6, 7, (600, 3)).astype(float)
    size = np.sum(h**2, axis=1) / 40
    seen = rng.uniform(5, 80, 600)
    return {"h": h, "s2": size, "f": rng.uniform(6, 16, 50), "seen": seen}


def _catches(rng: Rng) -> Arrays:
    survey, caught = rng.uniform(0.5, 2, 50), rng.poisson(20, (50, 12)).astype(float)
    return {"W": rng.uniform(0.1, 3, 12), "I": survey, "C": caught}


def _answers(rng: Rng) -> Arrays:
    return {"Y": rng.integers(0, 2, (800, 60)).astype(float)}


def _cart(_: Rng) -> Arrays:
    return {"q0": np.zeros(4)}


def _bonds(rng: Rng) -> Arrays:
    T = np.sort(rng.uniform(0.25, 30, (250, 40)), axis=1)
    return {"T": T, "paid": rng.uniform(1, 5, (250, 40)), "P": rng.uniform(60, 140, 250)}


def _points(rng: Rng) -> Arrays:
    a, b = pairs(rng, 400, 2500)
    X0 = rng.uniform(0, 10, (400, 2))
    dx, dy = (X0[b.astype(int)] - X0[a.astype(int)]).T
    noise = 0.01 * rng.normal(size=(2, 2500))
    far, az = np.hypot(dx, dy) + noise[0], np.arctan2(dy, dx) + noise[1]
    return {"a": a, "b": b, "X0": X0, "far": far, "az": az}


def _reactor(rng: Rng) -> Arrays:
    return {"T": np.linspace(300, 400, 20), "seen": rng.uniform(0, 1, (10, 20, 4))}


def _frames(rng: Rng) -> Arrays:
    Ix, Iy, It = rng.normal(size=(3, 90, 100))
    return {"Ix": Ix, "Iy": Iy, "It": It}


def _text(rng: Rng) -> Arrays:
    return {name: whole(rng, 80, 2000) for name in ("w1", "w2", "w3", "next")}


def _links(rng: Rng) -> Arrays:
    return {"A": (rng.random((200, 200)) < 0.1).astype(float)}


def _visits(rng: Rng) -> Arrays:
    last, wait = rng.uniform(0.1, 2, 5000), rng.uniform(0.1, 1, 5000)
    alive = (rng.random(5000) < 0.3).astype(float)
    return {"X": rng.normal(size=(5000, 6)), "last": last, "wait": wait, "alive": alive}


def _cloth(_: Rng) -> Arrays:
    return {"rest": np.array(0.1)}


def _sound(rng: Rng) -> Arrays:
    return {"V": rng.exponential(1, (160, 240)) + 0.01}


def _genotypes(rng: Rng) -> Arrays:
    return {"G": rng.integers(0, 3, (200, 800)).astype(float)}


def _races(rng: Rng) -> Arrays:
    return {"X": rng.normal(size=(400, 10, 5))}


def _rain(rng: Rng) -> Arrays:
    rain = rng.exponential(3, 400) * (rng.random(400) < 0.3)
    return {"rain": rain, "pet": rng.uniform(0, 2, 400), "q": rng.uniform(0.1, 4, 400)}


def _weather(rng: Rng) -> Arrays:
    return {"Y": 3 * rng.normal(size=(20, 40)), "xb": rng.normal(size=40)}


SIXTH: tuple[Unseen, ...] = (
    Unseen(
        *("structure_factors", "crystallography: atoms of a cell from amplitudes"),
        """dim H, A, xyz = 3
        data h[H, xyz], s2[H], f[A], seen[H]
        var x[A, xyz], B[A], k
        let amp[r in H, a in A] = f[a] * exp(-exp(B[a]) * s2[r])
        let phase[r in H, a in A] = 2 * pi * dot(h[r, :], x[a, :])
        let re[r in H] = sum(amp[r, a] * cos(phase[r, a]) for a in A)
        let im[r in H] = sum(amp[r, a] * sin(phase[r, a]) for a in A)
        minimize sum((exp(k) * sqrt(re[r]^2 + im[r]^2 + 1e-6) - seen[r])^2 for r in H)
            + sumsq(B)""",
        _reflections,
    ),
    Unseen(
        *("fish_stock", "fisheries: numbers at age from catches and a survey"),
        """dim T, A
        data W[A], I[T], C[T, A]
        var rec[T], lf[T], a50, slope, lq, first_ages[A]
        let sel[a in A] = sigmoid(exp(slope) * (a - 4 - a50))
        let F[t in T] = 0.3 * exp(lf[t])
        let N[t in T, a in A] = where(t == 0, 100 * exp(first_ages[a]),
            where(a == 0, 100 * exp(rec[t]), N[t-1, a-1] * exp(-0.2 - F[t-1] * sel[a-1])))
        let B[t in T] = sum(N[t, a] * W[a] * sel[a] for a in A)
        let Z[t in T, a in A] = 0.2 + F[t] * sel[a]
        let caught[t in T, a in A] = F[t] * sel[a] / Z[t, a] * (1 - exp(-Z[t, a])) * N[t, a]
        minimize sum((log(I[t]) - lq + 5 - log(B[t]))^2 / 0.08 for t in T)
            - sum(C[t, a] * log(caught[t, a] / sum(caught[t, b] for b in A)) for t in T, a in A)
            + sumsq(rec) + sumsq(lf) + sumsq(first_ages) + slope^2 + a50^2""",
        _catches,
    ),
    Unseen(
        *("guessed_answers", "psychometrics: items with guessing and three abilities"),
        """dim N, J, d = 3
        data Y[N, J]
        var th[N, d], a[J, d], b[J], g[J]
        let c[j in J] = 0.5 * sigmoid(g[j] - 1)
        let p[i in N, j in J] = c[j] + (1 - c[j]) * sigmoid(dot(th[i, :], a[j, :]) - b[j])
        maximize sum(Y[i, j] * log(p[i, j]) + (1 - Y[i, j]) * log(1 - p[i, j])
                     for i in N, j in J)
            - 0.5 * sumsq(th) - 0.1 * sumsq(a) - 0.1 * sumsq(b) - sumsq(g)""",
        _answers,
    ),
    Unseen(
        *("cart_and_pole", "control: a pole swung up by its cart, by collocation"),
        """dim T = 120, S = 4
        data q0[S]
        var q[T, S], u[T]
        let c[t in T] = cos(q[t, 1])
        let s[t in T] = sin(q[t, 1])
        let w2[t in T] = q[t, 3]^2
        let m[t in T] = 1 + 0.3 * s[t]^2
        let acc[t in T] = (u[t] + 0.3 * s[t] * (0.5 * w2[t] + 9.81 * c[t])) / m[t]
        let ang[t in T] = -(u[t] * c[t] + 0.15 * w2[t] * c[t] * s[t] + 1.3 * 9.81 * s[t])
            / (0.5 * m[t])
        let f[t in T, k in S] = where(k == 0, q[t, 2],
            where(k == 1, q[t, 3], where(k == 2, acc[t], ang[t])))
        minimize 0.02 * sumsq(u)
            + 100 * sum((q[t+1, k] - q[t, k] - 0.01 * (f[t, k] + f[t+1, k]))^2
                        for t in range(T - 1), k in S)
            + 10 * sum((q[0, k] - q0[k])^2 for k in S)
            + 10 * (q[T-1, 0] - 1)^2 + 10 * (q[T-1, 1] - pi)^2""",
        _cart,
    ),
    Unseen(
        *("bond_curve", "finance: a yield curve after Svensson from prices of bonds"),
        """dim N, K
        data T[N, K], paid[N, K], P[N]
        var b0, b1, b2, b3, l1, l2
        fn level(z) = (1 - exp(-z)) / z
        let y[i in N, k in K] = b0 + b1 * level(T[i, k] * exp(l1))
            + b2 * (level(T[i, k] * exp(l1)) - exp(-T[i, k] * exp(l1)))
            + b3 * (level(T[i, k] * exp(l2)) - exp(-T[i, k] * exp(l2)))
        minimize mean((P[i] - sum(paid[i, k] * exp(-0.1 * y[i, k] * T[i, k]) for k in K))^2
                      for i in N)""",
        _bonds,
    ),
    Unseen(
        *("survey_network", "geodesy: points from distances and directions with outliers"),
        """dim n, m, uv = 2
        data a[m] in n, b[m] in n, X0[n, uv], far[m], az[m]
        var D[n, uv], o[n]
        let X = X0 + D
        let dx[k in m] = X[b[k], 0] - X[a[k], 0]
        let dy[k in m] = X[b[k], 1] - X[a[k], 1]
        minimize sum(log(1 + ((sqrt(dx[k]^2 + dy[k]^2) - far[k]) / 0.1)^2) for k in m)
            + 50 * sum(1 - cos(atan2(dy[k], dx[k]) - az[k] - o[a[k]]) for k in m)
            + 0.1 * sumsq(D) + sumsq(o)""",
        _points,
        0.1,
    ),
    Unseen(
        *("rate_constants", "chemistry: rates of four species at twenty temperatures"),
        """dim W = 10, G = 20, S = 4, K = 100, R = 4
        data T[G], seen[W, G, S]
        var A[R], E[R]
        let k[r in R, g in G] = exp(A[r] - (1 + E[r]) * (1000 / T[g] - 2.9))
        let r[t in K, g in G] = k[0, g] * a[t, g] * b[t, g] - k[1, g] * c[t, g]
        and a[t in K, g in G] = a[t-1, g] - 0.02 * r[t-1, g] first 1
        and b[t in K, g in G] = b[t-1, g] - 0.02 * (r[t-1, g] + k[3, g] * b[t-1, g]) first 1
        and c[t in K, g in G] = c[t-1, g] + 0.02 * (r[t-1, g] - k[2, g] * c[t-1, g]) first 0
        and d[t in K, g in G] = d[t-1, g] + 0.02 * (k[2, g] * c[t-1, g] + k[3, g] * b[t-1, g])
            first 0
        minimize sum((a[10*w+9, g] - seen[w, g, 0])^2 + (b[10*w+9, g] - seen[w, g, 1])^2
                + (c[10*w+9, g] - seen[w, g, 2])^2 + (d[10*w+9, g] - seen[w, g, 3])^2
                for w in W, g in G) + 0.1 * sumsq(A) + 0.1 * sumsq(E)""",
        _reactor,
    ),
    Unseen(
        *("optical_flow", "vision: the flow between two frames, smooth up to edges"),
        """dim m, n
        data Ix[m, n], Iy[m, n], It[m, n]
        var u[m, n], v[m, n]
        fn slope(a, right, below) = (below - a)^2 + (right - a)^2
        minimize sum(sqrt((Ix[i, j] * u[i, j] + Iy[i, j] * v[i, j] + It[i, j])^2 + 0.001)
                     for i in m, j in n)
            + 0.5 * sum(sqrt(slope(u[i, j], u[i, j+1], u[i+1, j])
                             + slope(v[i, j], v[i, j+1], v[i+1, j]) + 0.001)
                        for i in range(m-1), j in range(n-1))""",
        _frames,
    ),
    Unseen(
        *("neural_language", "language: the next word from three words by a network"),
        """dim N, V = 80, d = 12, H = 48
        data w1[N] in V, w2[N] in V, w3[N] in V, next[N] in V
        var E[V, d], A[H, d], B[H, d], C[H, d], b[H], O[V, H], c[V]
        let h[i in N, k in H] = tanh(dot(A[k, :], E[w1[i], :]) + dot(B[k, :], E[w2[i], :])
                                     + dot(C[k, :], E[w3[i], :]) + b[k])
        let s[i in N, v in V] = dot(O[v, :], h[i, :]) + c[v]
        minimize mean(logsumexp(s[i, v] for v in V) - s[i, next[i]] for i in N)
            + 1e-3 * (sumsq(E) + sumsq(O))""",
        _text,
    ),
    Unseen(
        *("mixed_membership", "networks: nodes that belong to several blocks"),
        """dim n, K = 6
        data A[n, n]
        var t[n, K], B[K, K]
        let th[i in n] = softmax(t[i, :])
        let L[i in n, j in n] = sum(th[i, k] * exp(B[k, l] - 2) * th[j, l] for k in K, l in K)
        maximize sum(A[i, j] * log(L[i, j]) - L[i, j] for i in n, j in n if i != j)
            - 0.1 * sumsq(t) - sumsq(B)""",
        _links,
    ),
    Unseen(
        *("cured_patients", "survival: times between visits, some patients are cured"),
        """dim N, p
        data X[N, p], last[N], wait[N], alive[N]
        var b[p], g[p], k, c
        let scale[i in N] = exp(dot(X[i, :], b))
        let cured[i in N] = sigmoid(dot(X[i, :], g) + c)
        let S0[i in N] = cured[i] + (1 - cured[i]) * exp(-(last[i] / scale[i])^exp(k))
        let S1[i in N] = cured[i]
            + (1 - cured[i]) * exp(-((last[i] + wait[i]) / scale[i])^exp(k))
        maximize sum(where(alive[i] == 1, log(S0[i]), log(S0[i] - S1[i] + 1e-6)) for i in N)
            - sumsq(b) - sumsq(g) - k^2""",
        _visits,
    ),
    Unseen(
        *("hanging_cloth", "graphics: a cloth of springs held at two corners"),
        """dim n = 40
        data rest
        var x[n, n], y[n, n], z[n, n]
        fn spring(dx, dy, dz, l) = (sqrt(dx^2 + dy^2 + dz^2 + 1e-8) - l)^2
        minimize 50 * sum(spring(x[i+1, j] - x[i, j], y[i+1, j] - y[i, j], z[i+1, j] - z[i, j],
                                 rest) for i in range(n-1), j in n)
            + 50 * sum(spring(x[i, j+1] - x[i, j], y[i, j+1] - y[i, j], z[i, j+1] - z[i, j],
                              rest) for i in n, j in range(n-1))
            + 10 * sum(spring(x[i+1, j+1] - x[i, j], y[i+1, j+1] - y[i, j],
                              z[i+1, j+1] - z[i, j], sqrt(2) * rest)
                       for i in range(n-1), j in range(n-1))
            + 5 * sum(spring(x[i+2, j] - x[i, j], y[i+2, j] - y[i, j], z[i+2, j] - z[i, j],
                             2 * rest) for i in range(n-2), j in n)
            + 0.1 * sum(z) + 100 * (x[0, 0]^2 + y[0, 0]^2 + z[0, 0]^2
                                    + (x[0, n-1] - 4)^2 + y[0, n-1]^2 + z[0, n-1]^2)""",
        _cloth,
    ),
    Unseen(
        *("sound_dictionary", "audio: a spectrogram by few sounds, after Itakura and Saito"),
        """dim F, T, K = 10
        data V[F, T]
        var w[F, K], h[K, T]
        let S = exp(w) @ exp(h)
        minimize sum(V[f, t] / S[f, t] + log(S[f, t]) for f in F, t in T)
            + 0.01 * sumsq(w) + 0.01 * sumsq(h)""",
        _sound,
    ),
    Unseen(
        *("admixture", "genetics: genotypes of individuals of mixed ancestry"),
        """dim N, L, K = 5
        data G[N, L]
        var q[N, K], f[K, L]
        let Q[i in N] = softmax(q[i, :])
        let P = Q @ sigmoid(f)
        maximize sum(G[i, l] * log(P[i, l]) + (2 - G[i, l]) * log(1 - P[i, l])
                     for i in N, l in L) - 0.1 * sumsq(f) - 0.1 * sumsq(q)""",
        _genotypes,
    ),
    Unseen(
        *("horse_races", "sport: the order of arrival of horses, after Plackett and Luce"),
        """dim R, H, p
        data X[R, H, p]
        var b[p], W[p, p]
        let s[r in R, h in H] = dot(b, X[r, h, :])
            + sum(X[r, h, k] * W[k, l] * X[r, h, l] for k in p, l in p)
        maximize sum(s[r, h] - log(sum(exp(s[r, g]) for g in H if g >= h)) for r in R, h in H)
            - sumsq(b) - sumsq(W)""",
        _races,
    ),
    Unseen(
        *("rain_runoff", "hydrology: the flow of a river from rain, by two tanks"),
        """dim T
        data rain[T], pet[T], q[T]
        var k1, k2, kp, cap, e0
        let s[t in T] = where(t == 0, 5, s[t-1] + rain[t] - pet[t] * sigmoid(s[t-1] - e0)
            - exp(k1 - 3) * softplus(s[t-1] - exp(cap)) - exp(kp - 3) * s[t-1])
        let g[t in T] = where(t == 0, 2, g[t-1] * (1 - exp(k2 - 4)) + exp(kp - 3) * s[t])
        let flow[t in T] = exp(k1 - 3) * softplus(s[t] - exp(cap)) + exp(k2 - 4) * g[t]
        minimize sum((log(flow[t] + 0.1) - log(q[t] + 0.1))^2 for t in T)
            + k1^2 + k2^2 + kp^2 + cap^2 + e0^2""",
        _rain,
    ),
    Unseen(
        *("weather_ring", "meteorology: the first state of Lorenz's ring from later ones"),
        """dim n, W, T = 100
        data Y[W, n], xb[n]
        var x0[n]
        fn f(a, b, c, d) = (a - b) * c - d + 8
        let x[t in T, i in n] = where(t == 0, x0[i], x[t-1, i] + 0.05
            * f(m[t-1, (i+1) % n], m[t-1, (i-2) % n], m[t-1, (i-1) % n], m[t-1, i]))
        and m[t in T, i in n] = x[t, i] + 0.025
            * f(x[t, (i+1) % n], x[t, (i-2) % n], x[t, (i-1) % n], x[t, i])
        minimize sum((x[5*w+4, i] - Y[w, i])^2 for w in W, i in n) + sumsq(x0 - xb)""",
        _weather,
    ),
)
"""Seventeen models."""
