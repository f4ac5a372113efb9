"""More models of fields that nothing else here holds: the fifth part of the unseen models.

They were written, with their peers in JAX, when the kernels had been tuned on the first four parts,
and before anything was changed for them.
"""

from __future__ import annotations

import numpy as np

from benchmarks.by_hand import Arrays
from benchmarks.unseen_models import Rng, Unseen, pairs, whole


def _views(rng: Rng) -> Arrays:
    group = np.repeat(np.arange(40), 6)
    X = rng.normal(size=(240, 30)) + rng.normal(size=(40, 30))[group]
    return {"X": X, "group": group.astype(float)}


def _documents(rng: Rng) -> Arrays:
    return {"C": rng.poisson(0.8, (120, 300)).astype(float)}


def _patients(rng: Rng) -> Arrays:
    return {"X": rng.normal(size=(1200, 8)), "cause": whole(rng, 3, 1200)}


def _cameras(rng: Rng) -> Arrays:
    P0 = rng.normal(size=(400, 3)) + np.array([0, 0, 8.0])
    cam, pt = whole(rng, 12, 3000), whole(rng, 400, 3000)
    return {"cam": cam, "pt": pt, "seen": 0.2 * rng.normal(size=(3000, 2)), "P0": P0}


def _lens(rng: Rng) -> Arrays:
    return {"image": rng.exponential(1.0, (60, 60))}


def _tensor(rng: Rng) -> Arrays:
    return {"Y": rng.poisson(2.0, (30, 24, 40)).astype(float)}


def _words(rng: Rng) -> Arrays:
    a, b = pairs(rng, 600, 2500)
    return {"a": a, "b": b, "neg": rng.integers(0, 600, (2500, 8)).astype(float)}


def _series(rng: Rng) -> Arrays:
    return {"Y": np.cumsum(rng.normal(size=(8, 60)), 1) * 0.3}


def _gases(rng: Rng) -> Arrays:
    A = rng.integers(0, 3, (9, 4)).astype(float)
    T, total = rng.uniform(0.8, 1.5, 500), rng.uniform(1, 3, (500, 4))
    return {"A": A, "g": rng.normal(size=9), "T": T, "total": total}


def _matches(rng: Rng) -> Arrays:
    home, away = pairs(rng, 20, 3000)
    x, y = rng.poisson(1.5, 3000).astype(float), rng.poisson(1.1, 3000).astype(float)
    return {"home": home, "away": away, "x": x, "y": y, "age": rng.uniform(0, 3, 3000)}


def _scored(rng: Rng) -> Arrays:
    return {"X": rng.normal(size=(600, 12)), "y": (rng.uniform(size=600) < 0.3).astype(float)}


def _weeks(rng: Rng) -> Arrays:
    return {"spend": rng.gamma(1.0, 1.0, (400, 6)), "sales": rng.normal(size=400)}


def _shops(rng: Rng) -> Arrays:
    X, nest = rng.normal(size=(300, 24, 5)), np.sort(whole(rng, 5, 24))
    return {"X": X, "nest": nest, "pick": whole(rng, 24, 300)}


def _panel(rng: Rng) -> Arrays:
    X, y = rng.normal(size=(4000, 6)), rng.normal(size=4000)
    return {"X": X, "y": y, "firm": whole(rng, 300, 4000)}


def _ranked(rng: Rng) -> Arrays:
    return {"X": rng.normal(size=(350, 10)), "y": rng.normal(size=350)}


def _samples(rng: Rng) -> Arrays:
    return {"here": rng.normal(size=(250, 4)), "there": 1 + rng.normal(size=(300, 4))}


def _pupils(rng: Rng) -> Arrays:
    return {"X": rng.normal(size=(5000, 8)), "y": whole(rng, 7, 5000)}


def _spikes(rng: Rng) -> Arrays:
    return {"t": np.sort(rng.uniform(0, 50, 400)), "kind": whole(rng, 3, 400)}


FIFTH: tuple[Unseen, ...] = (
    Unseen(
        *("paired_views", "representation learning: a contrastive loss of several views"),
        """dim N, p, d = 16
        data X[N, p], group[N]
        var W[p, d]
        let Y = X @ W
        let Z[i in N, k in d] = Y[i, k] / sqrt(sumsq(Y[i, :]) + 1e-6)
        let s[i in N, j in N] = sum(Z[i, k] * Z[j, k] for k in d) / 0.2
        let all[i in N] = logsumexp(s[i, j] for j in N if j != i)
        minimize mean(sum(all[i] - s[i, j] for j in N if group[i] == group[j] and i != j) / 5
            for i in N) + 0.01 * sumsq(W)""",
        _views,
    ),
    Unseen(
        *("latent_dirichlet", "documents: the variational bound of latent Dirichlet allocation"),
        """dim D, V, K = 8
        data C[D, V]
        var a[D, K], b[K, V]
        let g = exp(a)
        let l = exp(b)
        let th[d in D, k in K] = digamma(g[d, k]) - digamma(sum(g[d, q] for q in K))
        let be[k in K, v in V] = digamma(l[k, v]) - digamma(sum(l[k, u] for u in V))
        maximize sum(C[d, v] * logsumexp(th[d, k] + be[k, v] for k in K) for d in D, v in V)
            + sum((0.1 - g[d, k]) * th[d, k] + lgamma(g[d, k]) for d in D, k in K)
            - sum(lgamma(sum(g[d, k] for k in K)) for d in D)
            + sum((0.05 - l[k, v]) * be[k, v] + lgamma(l[k, v]) for k in K, v in V)
            - sum(lgamma(sum(l[k, v] for v in V)) for k in K)""",
        _documents,
    ),
    Unseen(
        *("competing_risks", "survival: two causes of death with related coefficients"),
        """dim N, p, K = 2
        data X[N, p], cause[N]
        var B[p, K], c
        let e = X @ B
        let risk[i in N, k in K] = sum(exp(e[j, k]) for j in N if j >= i)
        minimize -sum(e[i, k] - log(risk[i, k]) for i in N, k in K if cause[i] == k + 1)
            + 0.1 * sum((B[j, 0] - tanh(c) * B[j, 1])^2 for j in p) + 0.1 * sumsq(B) + c^2""",
        _patients,
    ),
    Unseen(
        *("bundle_adjustment", "photogrammetry: cameras and points from their images"),
        """dim N, M = 12, n, xyz = 3, uv = 2
        data cam[N] in M, pt[N] in n, seen[N, uv], P0[n, xyz]
        var r[M, xyz], t[M, xyz], f[M], k1[M], Q[n, xyz]
        let P = P0 + Q
        let th[m in M] = sqrt(sumsq(r[m, :]) + 1e-12)
        let c[m in M] = cos(th[m])
        let s[m in M] = sin(th[m]) / th[m]
        let o[m in M] = (1 - cos(th[m])) / th[m]^2
        let dot[i in N] = sum(r[cam[i], x] * P[pt[i], x] for x in xyz)
        let q[i in N, x in xyz] = c[cam[i]] * P[pt[i], x]
            + s[cam[i]] * (r[cam[i], (x+1) % 3] * P[pt[i], (x+2) % 3]
                           - r[cam[i], (x+2) % 3] * P[pt[i], (x+1) % 3])
            + o[cam[i]] * dot[i] * r[cam[i], x] + t[cam[i], x]
        let u[i in N, a in range(2)] = q[i, a] / q[i, 2]
        let rr[i in N] = sumsq(u[i, :])
        minimize sum(huber(exp(f[cam[i]]) * (1 + k1[cam[i]] * rr[i]) * u[i, a] - seen[i, a], 0.5)
                     for i in N, a in range(2))
            + sumsq(Q) + sumsq(r) + sumsq(t) + sumsq(f) + sumsq(k1)""",
        _cameras,
        0.1,
    ),
    Unseen(
        *("galaxy_lens", "astronomy: a galaxy's image bent by masses"),
        """dim H, W, K = 5
        data image[H, W]
        var m[K], x[K], y[K], e[K], sx, sy, sr, bright
        let a[i in H, j in W] = 0.05 * (i - 30)
        let b[i in H, j in W] = 0.05 * (j - 30)
        let d2[i in H, j in W, k in K] =
            (a[i, j] - x[k])^2 * exp(e[k]) + (b[i, j] - y[k])^2 * exp(-e[k]) + 0.01
        let ax[i in H, j in W] =
            a[i, j] - sum(exp(m[k]) * (a[i, j] - x[k]) / sqrt(d2[i, j, k]) for k in K)
        let by[i in H, j in W] =
            b[i, j] - sum(exp(m[k]) * (b[i, j] - y[k]) / sqrt(d2[i, j, k]) for k in K)
        let light[i in H, j in W] = exp(bright
            - sqrt(((ax[i, j] - sx)^2 + (by[i, j] - sy)^2) * exp(-sr) + 0.001))
        minimize sum((light - image) .^ 2) / 2 + sumsq(m) + sumsq(x) + sumsq(y) + sumsq(e)
            + sx^2 + sy^2 + sr^2""",
        _lens,
    ),
    Unseen(
        *("count_tensor", "networks: factors of a tensor of counts in three directions"),
        """dim I, J, T, R = 6
        data Y[I, J, T]
        var A[I, R], B[J, R], C[T, R]
        let a = exp(A)
        let b = exp(B)
        let c = exp(C)
        let mu[i in I, j in J, t in T] = sum(a[i, k] * b[j, k] * c[t, k] for k in R)
        minimize sum(mu[i, j, t] - Y[i, j, t] * log(mu[i, j, t]) for i in I, j in J, t in T)
            + 0.1 * (sumsq(A) + sumsq(B) + sumsq(C))""",
        _tensor,
    ),
    Unseen(
        *("hyperbolic_words", "graphs: points of the hyperbolic plane with negative samples"),
        """dim N, M, n = 600, d = 4
        data a[N] in n, b[N] in n, neg[N, M] in n
        var U[n, d]
        let w[i in n] = 1 / (1 + sumsq(U[i, :]))
        let near[k in N] =
            acosh(1 + 2 * sumsq(U[a[k], :] - U[b[k], :]) * w[a[k]] * w[b[k]] + 1e-6)
        let far[k in N, j in M] =
            acosh(1 + 2 * sumsq(U[a[k], :] - U[neg[k, j], :]) * w[a[k]] * w[neg[k, j]] + 1e-6)
        minimize sum(near[k] + logsumexp(-far[k, j] for j in M) for k in N) + 0.01 * sumsq(U)""",
        _words,
    ),
    Unseen(
        *("warped_average", "time series: the average of series under soft time warping"),
        """dim S, n, m = 40
        data Y[S, n]
        var z[m], gamma
        let soft = exp(gamma - 1)
        let D[s in S, i in n, j in m] = (Y[s, i] - z[j])^2
        let R[i in n, s in S, j in m] = D[s, i, j]
            + where(i == 0, where(j == 0, 0, R[i, s, j-1]),
                where(j == 0, R[i-1, s, j], -soft * logaddexp(logaddexp(
                    -R[i-1, s, j] / soft, -R[i, s, j-1] / soft), -R[i-1, s, j-1] / soft)))
        minimize sum(R[n-1, s, m-1] for s in S) + sumsq(z) + gamma^2""",
        _series,
    ),
    Unseen(
        *("gas_mixtures", "chemistry: equilibria of gases at many temperatures"),
        """dim N, S, E
        data A[S, E], g[S], T[N], total[N, E]
        var L[N, S]
        let x = exp(L)
        let amount[i in N] = sum(x[i, s] for s in S)
        let miss = x @ A - total
        minimize sum(x[i, s] * (g[s] / T[i] + L[i, s] - log(amount[i])) for i in N, s in S)
            + 10 * sumsq(miss)""",
        _gases,
    ),
    Unseen(
        *("football_goals", "sport: goals of two teams with dependent low scores"),
        """dim N, n = 20
        data home[N] in n, away[N] in n, x[N], y[N], age[N]
        var att[n], block[n], h, mu, rho
        let lx[k in N] = exp(mu + h + att[home[k]] - block[away[k]])
        let ly[k in N] = exp(mu + att[away[k]] - block[home[k]])
        let c = 0.2 * tanh(rho)
        let tau[k in N] = where(x[k] == 0,
            where(y[k] == 0, 1 - lx[k] * ly[k] * c, where(y[k] == 1, 1 + lx[k] * c, 1)),
            where(x[k] == 1, where(y[k] == 0, 1 + ly[k] * c, where(y[k] == 1, 1 - c, 1)), 1))
        minimize -sum(exp(-0.3 * age[k]) * (log(max(tau[k], 1e-6))
                + x[k] * log(lx[k]) - lx[k] + y[k] * log(ly[k]) - ly[k]) for k in N)
            + sumsq(att) + sumsq(block) + rho^2""",
        _matches,
        0.2,
    ),
    Unseen(
        *("auc_scores", "classification: a smooth area under the curve"),
        """dim N, p
        data X[N, p], y[N]
        var b[p], c
        let s = tanh(X @ b) + c * (X @ b)
        minimize mean(softplus(s[j] - s[i]) for i in N, j in N if y[i] == 1 and y[j] == 0)
            + 0.01 * sumsq(b) + c^2""",
        _scored,
    ),
    Unseen(
        *("lagged_adverts", "marketing: sales by the advertisements of thirteen weeks"),
        """dim T, K
        data spend[T, K], sales[T]
        var decay[K], power[K], b[K], c
        let stock[t in T, k in K] =
            sum(sigmoid(decay[k])^l * spend[t-l, k] for l in range(13) if l <= t)
        minimize sum((sales[t] - c
            - sum(b[k] * stock[t, k]^(0.5 * sigmoid(power[k]) + 0.3) for k in K))^2 for t in T)
            + sumsq(b)""",
        _weeks,
    ),
    Unseen(
        *("nested_shops", "economics: choices of shops in nests"),
        """dim N, J, p, G = 5
        data X[N, J, p], nest[J] in G, pick[N] in J
        var b[p], l[G]
        let lam = sigmoid(l)
        let v[n in N, j in J] = sum(X[n, j, k] * b[k] for k in p) / lam[nest[j]]
        let inc[n in N, g in G] = logsumexp(v[n, j] for j in J if nest[j] == g)
        minimize -sum(v[n, pick[n]] + (lam[nest[pick[n]]] - 1) * inc[n, nest[pick[n]]]
            - logsumexp(lam[g] * inc[n, g] for g in G) for n in N) + sumsq(l)""",
        _shops,
    ),
    Unseen(
        *("panel_means", "econometrics: effects within the groups of a panel"),
        """dim N, p, G = 300
        data X[N, p], y[N], firm[N] in G
        var b[p], d[p], s
        let e[i in N] = y[i] - sum(tanh(X[i, k] * d[k]) * b[k] for k in p)
        let m[k in G] = mean(e[i] for i in N if firm[i] == k)
        minimize 2 * sum(log(1 + (e[i] - m[firm[i]])^2 * exp(-s)) for i in N) + N * s / 2
            + sumsq(b) + sumsq(d)""",
        _panel,
    ),
    Unseen(
        *("soft_ranks", "statistics: a smooth rank correlation"),
        """dim N, p
        data X[N, p], y[N]
        var b[p], w[p]
        let s = X @ b + tanh(X @ w)
        let rank[i in N] = sum(sigmoid((s[i] - s[j]) / 0.1) for j in N)
        let want[i in N] = sum(sigmoid((y[i] - y[j]) / 0.1) for j in N)
        minimize sumsq(rank - want) / N^2 + sumsq(b) + sumsq(w)""",
        _ranked,
    ),
    Unseen(
        *("two_samples", "statistics: the discrepancy of two samples under a map"),
        """dim n, m, p, q = 3
        data here[n, p], there[m, p]
        var W[p, q], h
        let a = tanh(here @ W)
        let b = tanh(there @ W)
        let s = exp(h)
        fn k(d) = exp(-d * s) + 1 / (1 + d * s)
        maximize sum(k(sumsq(a[i, :] - a[j, :])) for i in n, j in n if i < j) * 2 / n^2
            + sum(k(sumsq(b[i, :] - b[j, :])) for i in m, j in m if i < j) * 2 / m^2
            - 2 * sum(k(sumsq(a[i, :] - b[j, :])) for i in n, j in m) / (n * m)
            - 0.1 * sumsq(W) - h^2""",
        _samples,
    ),
    Unseen(
        *("ordered_grades", "education: a cumulative probit with ordered thresholds"),
        """dim N, p, K = 6
        data X[N, p], y[N]
        var b[p], d[K], a
        let cut[k in K] = a + sum(exp(d[j]) for j in K if j <= k)
        let e = X @ b
        minimize -sum(log(where(y[i] == 0, normcdf(cut[0] - e[i]),
                      where(y[i] == K, normcdf(e[i] - cut[K-1]), 0.5)) + 1e-12) for i in N)
            - sum(log(normcdf(cut[k] - e[i]) - normcdf(cut[k-1] - e[i]))
                  for i in N, k in range(1, K) if y[i] == k) + sumsq(d) + sumsq(b)""",
        _pupils,
        0.1,
    ),
    Unseen(
        *("neural_spikes", "neuroscience: events of three kinds that excite each other"),
        """dim n, K = 3
        data t[n], kind[n] in K
        var mu[K], A[K, K], b
        let beta = exp(b)
        let rate[i in n] = exp(mu[kind[i]]) + sum(
            exp(A[kind[i], kind[j]]) * beta * exp(-beta * (t[i] - t[j])) for j in n if j < i)
        minimize -sum(log(rate)) + 50 * sum(exp(mu))
            + sum(exp(A[k, kind[j]]) * (1 - exp(-beta * (50 - t[j]))) for j in n, k in K)
            + sumsq(A) + b^2""",
        _spikes,
    ),
)
"""Eighteen models, the first ten written first."""
