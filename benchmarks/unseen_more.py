"""Further models of fields that nothing else here holds: the second part of the unseen models.

They were written, with their peers, after the kernels had been tuned on the first part, and before
anything was changed for them.
"""

from __future__ import annotations

import numpy as np

from benchmarks.by_hand import Arrays
from benchmarks.unseen_models import Rng, Unseen, pairs, signs, whole


def _documents(rng: Rng) -> Arrays:
    count = rng.integers(1, 6, 6000).astype(float)
    return {"doc": whole(rng, 100, 6000), "word": whole(rng, 300, 6000), "count": count}


def _emissions(rng: Rng) -> Arrays:
    return {"y": rng.normal(size=(400, 2)) + rng.integers(0, 2, (400, 1))}


def _spins(rng: Rng) -> Arrays:
    return {"S": signs(rng, 1500 * 30).reshape(1500, 30)}


def _cases(rng: Rng) -> Arrays:
    return {"cases": rng.poisson(20.0, 300).astype(float)}


def _graph(rng: Rng) -> Arrays:
    a, b = pairs(rng, 600, 5000)
    labelled = {"node": np.sort(rng.permutation(600)[:60]).astype(float), "own": whole(rng, 4, 60)}
    return {"a": a, "b": b, "w": rng.uniform(size=5000), **labelled}


def _triples(rng: Rng) -> Arrays:
    names = ("head", "tail", "wrong")
    entities = {name: whole(rng, 400, 4000) for name in names}
    return {**entities, "relation": whole(rng, 12, 4000)}


def _contexts(rng: Rng) -> Arrays:
    return {"before": whole(rng, 200, 1200).reshape(400, 3), "next": whole(rng, 200, 400)}


def _visits(rng: Rng) -> Arrays:
    t, s = np.linspace(0, 1, 900), np.linspace(0.05, 0.8, 15)
    waves = 2 * np.pi * 4 * np.outer(t, np.arange(1, 6))
    return {
        **{"t": t, "s": s, "A": (t[:, None] >= s).astype(float)},
        "X": np.hstack([np.sin(waves), np.cos(waves)]),
        "y": 1 / (1 + np.exp(-6 * (t - 0.4))) + 0.05 * rng.normal(size=900),
    }


def _potential(rng: Rng) -> Arrays:
    return {"V": -60 + 20 * rng.normal(size=600), "I": 10.0 * (np.arange(600) > 100)}


def _sequences(rng: Rng) -> Arrays:
    return {"x": whole(rng, 5, 300 * 20).reshape(300, 20)}


def _grades(rng: Rng) -> Arrays:
    answers = {"person": whole(rng, 200, 5000), "item": whole(rng, 40, 5000)}
    return {**answers, "grade": whole(rng, 4, 5000)}


def _neighbours(rng: Rng) -> Arrays:
    a, b = pairs(rng, 300, 3000)
    return {"X": rng.normal(size=(300, 5)), "a": a, "b": b, "w": rng.uniform(size=3000)}


def _table(rng: Rng) -> Arrays:
    return {"X": rng.normal(size=(400, 50)) @ rng.normal(size=(50, 50)) / 7}


def _phases(rng: Rng) -> Arrays:
    return {"y": rng.normal(size=(60, 16)), "start": rng.uniform(-3, 3, 16)}


def _blurred(rng: Rng) -> Arrays:
    return {"y": rng.normal(size=300)}


def _costs(rng: Rng) -> Arrays:
    a, b = rng.normal(size=(300, 2)), rng.normal(size=(200, 2))
    return {"C": ((a[:, None] - b) ** 2).sum(2), "q": rng.dirichlet(np.ones(200))}


MORE: tuple[Unseen, ...] = (
    Unseen(
        *("topic_mixture", "topics of documents, by words and their counts"),
        """dim N, D = 100, W = 300, K = 6
        data doc[N] in D, word[N] in W, count[N]
        var a[D, K], b[K, W]
        let theta[d in D, k in K] = exp(a[d, k] - logsumexp(a[d, :]))
        let phi[k in K, w in W] = exp(b[k, w] - logsumexp(b[k, :]))
        minimize -sum(count[i] * log(sum(theta[doc[i], k] * phi[k, word[i]] for k in K))
                      for i in N) + (sumsq(a) + sumsq(b)) / 20""",
        _documents,
    ),
    Unseen(
        *("hidden_states", "a hidden Markov chain with five states in the plane"),
        """dim T, d = 2, K = 5
        data y[T, d]
        var A[K, K], mu[K, d], s[K, d]
        let P[j in K, k in K] = A[j, k] - logsumexp(A[j, :])
        let e[t in T, k in K] =
            -sum(s[k, i] + ((y[t, i] - mu[k, i]) * exp(-s[k, i]))^2 / 2 for i in d)
        let f[t in T, k in K] =
            e[t, k] + logsumexp(f[t-1, j] + P[j, k] for j in K)  first e[0, k] - log(K)
        minimize -logsumexp(f[T-1, :])""",
        _emissions,
    ),
    Unseen(
        *("binary_network", "pseudo-likelihood of an Ising model"),
        """dim N, p
        data S[N, p]
        var J[p, p], h[p]
        let field = S @ (J .* (1 - eye(p))) + h[None, :]
        minimize sum(softplus(-2 * S .* field)) + 5 * sum(sqrt(J .^ 2 + 1e-4))""",
        _spins,
        0.1,
    ),
    Unseen(
        *("weekly_cases", "an epidemic with a season, by steps of Euler"),
        """dim T
        data cases[T]
        var b, season, g, rho
        let beta[t in T] = exp(b + season * cos(2 * pi * t / 52))
        fn step(v[2], r) = [v[0] - r * v[0] * v[1] / 10, v[1] + (r * v[0] - exp(g)) * v[1] / 10]
        let v[t in T] = step(v[t-1, :], beta[t])  first [0.95, 0.01]
        let rate = 1000 * exp(rho) * v[:, 1] + 1
        minimize sum(rate - cases .* log(rate)) + (b^2 + season^2 + g^2 + rho^2) / 2""",
        _cases,
    ),
    Unseen(
        *("label_spread", "labels of a few nodes of a graph, smooth along its edges"),
        """dim N, M, n = 600, K = 4
        data a[N] in n, b[N] in n, w[N], node[M] in n, own[M] in K
        var F[n, K]
        minimize sum(w[i] * (F[a[i], k] - F[b[i], k])^2 for i in N, k in K) / 2
                 + sum(logsumexp(F[node[m], :]) - F[node[m], own[m]] for m in M)
                 + sumsq(F) / 100""",
        _graph,
    ),
    Unseen(
        *("knowledge_graph", "translations between entities, against corrupted triples"),
        """dim N, n = 400, R = 12, d = 12
        data head[N] in n, relation[N] in R, tail[N] in n, wrong[N] in n
        var E[n, d], T[R, d]
        let near[i in N] = norm2(E[head[i], :] + T[relation[i], :] - E[tail[i], :])
        let far[i in N] = norm2(E[head[i], :] + T[relation[i], :] - E[wrong[i], :])
        minimize mean(softplus(1 + near - far)) + sumsq(E) / 1000""",
        _triples,
    ),
    Unseen(
        *("next_word", "a log-bilinear model of the next word"),
        """dim N, C = 3, V = 200, d = 16
        data before[N, C] in V, next[N] in V
        var R[V, d], Q[V, d], c[C, d], b[V]
        let q[i in N, j in d] = sum(c[k, j] * R[before[i, k], j] for k in C)
        let Z = q @ Q' + b[None, :]
        minimize sum(logsumexp(Z[i, :]) - Z[i, next[i]] for i in N) + sumsq(R) + sumsq(Q)""",
        _contexts,
    ),
    Unseen(
        *("site_visits", "logistic growth with changes of the rate, and seasons"),
        """dim T, C, F
        data t[T], s[C], A[T, C], X[T, F], y[T]
        var k, m, delta[C], beta[F], log_sigma
        let trend = sigmoid((k + A @ delta) .* (t - m - A @ (s .* delta)))
        let fit = trend .* (1 + X @ beta)
        minimize sumsq(y - fit) * exp(-2 * log_sigma) / 2 + T * log_sigma
                 + sum(sqrt(delta .^ 2 + 1e-6)) / 0.05 + sumsq(beta) / 2""",
        _visits,
    ),
    Unseen(
        *("squid_axon", "conductances of a membrane from its potential, by Hodgkin and Huxley"),
        """dim T
        data V[T], I[T]
        var gna, gk, gl, shift
        let am = 0.1 * (V + 40 + shift) ./ (1 - exp(-(V + 40 + shift) / 10))
        let bm = 4 * exp(-(V + 65) / 18)
        let ah = 0.07 * exp(-(V + 65) / 20)
        let bh = 1 ./ (1 + exp(-(V + 35 + shift) / 10))
        let an = 0.01 * (V + 55 + shift) ./ (1 - exp(-(V + 55 + shift) / 10))
        let bn = 0.125 * exp(-(V + 65) / 80)
        let m[t in T] = m[t-1] + 0.02 * (am[t-1] * (1 - m[t-1]) - bm[t-1] * m[t-1])  first 0.05
        let h[t in T] = h[t-1] + 0.02 * (ah[t-1] * (1 - h[t-1]) - bh[t-1] * h[t-1])  first 0.6
        let n[t in T] = n[t-1] + 0.02 * (an[t-1] * (1 - n[t-1]) - bn[t-1] * n[t-1])  first 0.3
        let v[t in T] = v[t-1] + 0.02 * (I[t-1]
            - 100 * exp(gna) * m[t-1]^3 * h[t-1] * (v[t-1] - 50)
            - 30 * exp(gk) * n[t-1]^4 * (v[t-1] + 77) - 0.3 * exp(gl) * (v[t-1] + 54))  first -65
        minimize sumsq(v - V) / 200 + gna^2 + gk^2 + gl^2 + shift^2""",
        _potential,
    ),
    Unseen(
        *("protein_couplings", "pseudo-likelihood of a Potts model of sequences"),
        """dim N, L, q = 5
        data x[N, L] in q
        var h[L, q], J[L, q, L, q]
        let s[n in N, l in L, a in q] = h[l, a] + sum(J[l, a, m, x[n, m]] for m in L if m != l)
        minimize sum(logsumexp(s[n, l, :]) - s[n, l, x[n, l]] for n in N, l in L)
                 + sumsq(h) + 5 * sumsq(J)""",
        _sequences,
        0.1,
    ),
    Unseen(
        *("graded_answers", "graded responses of persons to items"),
        """dim N, P = 200, Q = 40
        data person[N] in P, item[N] in Q, grade[N] in 4
        var theta[P], a[Q], b[Q], c[Q], d[Q]
        let z = theta[person] - b[item]
        let slope = exp(a[item])
        let low = where(grade == 0, 1,
            where(grade == 1, sigmoid(slope .* z),
            where(grade == 2, sigmoid(slope .* (z - exp(c[item]))),
                  sigmoid(slope .* (z - exp(c[item]) - exp(d[item]))))))
        let high = where(grade == 0, sigmoid(slope .* z),
            where(grade == 1, sigmoid(slope .* (z - exp(c[item]))),
            where(grade == 2, sigmoid(slope .* (z - exp(c[item]) - exp(d[item]))), 0)))
        minimize -sum(log(low - high)) + sumsq(theta) / 2
                 + (sumsq(a) + sumsq(b) + sumsq(c) + sumsq(d)) / 2""",
        _grades,
    ),
    Unseen(
        *("fused_centres", "convex clustering: centres that are drawn together along edges"),
        """dim N, n, d
        data X[n, d], a[N] in n, b[N] in n, w[N]
        var U[n, d]
        minimize sumsq(X - U) / 2
                 + 0.1 * sum(w[k] * sqrt(sumsq(U[a[k], :] - U[b[k], :]) + 1e-6) for k in N)""",
        _neighbours,
        1.0,
    ),
    Unseen(
        *("sparse_components", "principal components with few loadings"),
        """dim N, d, k = 6
        data X[N, d]
        var W[d, k], V[d, k]
        minimize sumsq(X - X @ W @ V') / 2 + sum(sqrt(W .^ 2 + 1e-6)) + sumsq(V' @ V - eye(k))""",
        _table,
    ),
    Unseen(
        *("coupled_phases", "oscillators with a coupling, by steps of Euler"),
        """dim T, n
        data y[T, n], start[n]
        var w[n], K
        let p[t in T, i in n] = p[t-1, i]
            + 0.05 * (w[i] + K / n * sum(sin(p[t-1, j] - p[t-1, i]) for j in n))  first start[i]
        minimize sum(1 - cos(p - y)) + sumsq(w) / 2 + K^2 / 2""",
        _phases,
    ),
    Unseen(
        *("wide_blur", "a signal blurred with an unknown width"),
        """dim n = 300
        data y[n]
        var x[n], l
        let blurred[i in n] = sum(exp(-((i - j) / (5 * exp(l)))^2 / 2) * x[j] for j in n)
        minimize sumsq(y - blurred) / 2 + sum(sqrt(x .^ 2 + 1e-4)) / 10 + l^2""",
        _blurred,
    ),
    Unseen(
        *("transport_dual", "the semi-dual of entropic optimal transport"),
        """dim n, m
        data C[n, m], q[m]
        var g[m]
        maximize dot(q, g) - 0.1 * mean(logsumexp((g[None, :] - C) / 0.1, axis=1))""",
        _costs,
    ),
)
"""The second part, in the order of the table."""
