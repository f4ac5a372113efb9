"""More models of fields that nothing else here holds: the fourth part of the unseen models.

They were written, with their peers, when the kernels had been tuned on the first three parts, and
before anything was changed for them.
"""

from __future__ import annotations

import numpy as np

from benchmarks.by_hand import Arrays
from benchmarks.unseen_models import Rng, Unseen, pairs, whole


def _diffraction(rng: Rng) -> Arrays:
    angle = np.linspace(0, 10, 2000)
    return {"angle": angle, "count": rng.poisson(40.0, 2000).astype(float)}


def _network(rng: Rng) -> Arrays:
    a, b = pairs(rng, 1500, 6000)
    return {"a": a, "b": b, "w": rng.uniform(0.5, 1.5, 6000)}


def _leaves(rng: Rng) -> Arrays:
    return {"tip": np.eye(4)[rng.integers(0, 4, (16, 300))], "f": np.array([0.3, 0.2, 0.2, 0.3])}


def _sentences(rng: Rng) -> Arrays:
    tag = rng.integers(0, 7, (60, 18)).astype(float)
    return {"X": rng.normal(size=(60, 18, 20)), "tag": tag}


def _spoken(rng: Rng) -> Arrays:
    letter = np.zeros(25)
    letter[1::2] = rng.integers(1, 20, 12)
    repeat = np.zeros(25)
    repeat[3::2] = letter[3::2] != letter[1:-2:2]
    return {"X": rng.normal(size=(100, 13)), "letter": letter, "skip": repeat}


def _chain(rng: Rng) -> Arrays:
    return {"walk": np.cumsum(rng.normal(size=(300, 3)), 0)}


def _queries(rng: Rng) -> Arrays:
    grade = rng.integers(0, 4, (80, 15)).astype(float)
    return {"X": rng.normal(size=(80, 15, 12)), "grade": grade}


def _logged(rng: Rng) -> Arrays:
    return {
        **{"X": rng.normal(size=(3000, 15)), "action": whole(rng, 6, 3000)},
        **{"propensity": rng.uniform(0.05, 0.5, 3000), "reward": rng.normal(size=3000)},
    }


def _capsules(rng: Rng) -> Arrays:
    return {"u": rng.normal(size=(60, 24, 6)), "Y": np.eye(5)[rng.integers(0, 5, 60)]}


def _plate(rng: Rng) -> Arrays:
    return {"u0": rng.uniform(size=(24, 24)), "seen": rng.uniform(size=(24, 24))}


def _patients(rng: Rng) -> Arrays:
    return {"y": rng.normal(size=(40, 30)), "weight": rng.uniform(0.7, 1.3, 40)}


def _mails(rng: Rng) -> Arrays:
    A = np.where(rng.uniform(size=(4000, 1500)) < 0.01, rng.uniform(0.5, 2, (4000, 1500)), 0)
    return {"A": A, "spam": (rng.uniform(size=4000) < 0.4).astype(float)}


def _ranks(rng: Rng) -> Arrays:
    u, v = rng.uniform(0.02, 0.98, (2, 4000))
    return {"u": u, "v": v, "z": rng.normal(size=(4000, 4))}


def _positions(rng: Rng) -> Arrays:
    return {"y": np.cumsum(rng.normal(size=(400, 2)), 0)}


def _floods(rng: Rng) -> Arrays:
    return {
        "site": whole(rng, 60, 5000),
        "year": rng.uniform(-1, 1, 5000),
        "y": rng.gumbel(size=5000),
    }


def _claims(rng: Rng) -> Arrays:
    y = rng.negative_binomial(2, 0.5, 4000) * (rng.uniform(size=4000) < 0.6)
    return {"X": rng.normal(size=(4000, 10)), "y": y.astype(float)}


def _outputs(rng: Rng) -> Arrays:
    return {"t": np.sort(rng.uniform(0, 10, 80)), "Y": rng.normal(size=(80, 6))}


def _citations(rng: Rng) -> Arrays:
    a, b = pairs(rng, 800, 4000)
    return {"a": a, "b": b, "X": rng.normal(size=(800, 30)), "label": whole(rng, 5, 800)}


def _series(rng: Rng) -> Arrays:
    return {"X": rng.normal(size=(25, 40, 3)), "y": rng.normal(size=40)}


def _rows(rng: Rng) -> Arrays:
    return {"X": rng.normal(size=(2000, 12)), "y": rng.normal(size=2000)}


def _tokens(rng: Rng) -> Arrays:
    return {"X": rng.normal(size=(1500, 16)), "Y": rng.normal(size=(1500, 16))}


def _shocks(rng: Rng) -> Arrays:
    return {
        **{"t": np.sort(rng.uniform(0, 100, 350)), "place": rng.normal(size=(350, 2))},
        "m": rng.exponential(0.6, 350),
    }


def _bodies(rng: Rng) -> Arrays:
    return {
        "q0": 2 * rng.normal(size=(5, 2)),
        "m": rng.uniform(0.1, 1, 5),
        "aim": rng.normal(size=(5, 2)),
    }


def _samples(rng: Rng) -> Arrays:
    return {"at": rng.normal(size=(3000, 2)) @ np.array([[1.0, 0.5], [0.2, 0.4]])}


FOURTH: tuple[Unseen, ...] = (
    Unseen(
        *("diffraction_peaks", "crystallography: pseudo-Voigt peaks on a background"),
        """dim N, K = 15
        data angle[N], count[N]
        var height[K], shift[K], width[K], mix[K], base[4]
        let rate[i in N] = exp(base[0] + 0.1 * base[1] * angle[i] + 0.01 * base[2] * angle[i]^2)
            + base[3]^2
            + sum(exp(height[k]) * (
                  sigmoid(mix[k]) / (1 + ((angle[i] - 0.6 * k - shift[k]) / exp(width[k] - 2))^2)
                  + (1 - sigmoid(mix[k])) * exp(
                      -log(2) * ((angle[i] - 0.6 * k - shift[k]) / exp(width[k] - 2))^2))
                  for k in K)
        minimize sum(rate - count .* log(rate)) + sumsq(height) + sumsq(shift) + sumsq(width)
            + sumsq(mix)""",
        _diffraction,
    ),
    Unseen(
        *("soft_cut", "graph partitioning: a relaxed normalised cut"),
        """dim E, n = 1500, K = 4
        data a[E] in n, b[E] in n, w[E]
        var Z[n, K]
        let H[i in n, k in K] = exp(Z[i, k]) / sum(exp(Z[i, l]) for l in K)
        let degree[i in n] = sum(w[e] for e in E if a[e] == i) + sum(w[e] for e in E if b[e] == i)
        let cut[k in K] = sum(w[e] * (H[a[e], k] - H[b[e], k])^2 for e in E)
        let volume[k in K] = sum(degree[i] * H[i, k] for i in n)
        minimize sum(cut[k] / volume[k] for k in K)
            + 0.1 * sum(volume[k]^2 for k in K) / sum(degree)^2""",
        _network,
    ),
    Unseen(
        *(
            "balanced_tree",
            "phylogenetics: a balanced tree of 16 tips with matrices on its branches",
        ),
        """dim S, base = 4
        data tip[16, S, base], f[base]
        var t4[16], t3[8], t2[4], t1[2], kappa
        fn P(t, a, b) = f[b] * (1 - exp(-exp(t - 1)))
            + where(a == b, 1, 0) * (exp(-exp(t - 1)) + exp(-exp(t + kappa - 1))) / 2
            + where(abs(a - b) == 2, 1, 0) * (exp(-exp(t - 1)) - exp(-exp(t + kappa - 1))) / 2
        let M4[i in 16, a in base, b in base] = P(t4[i], a, b)
        let M3[i in 8, a in base, b in base] = P(t3[i], a, b)
        let M2[i in 4, a in base, b in base] = P(t2[i], a, b)
        let M1[i in 2, a in base, b in base] = P(t1[i], a, b)
        let u4[i in 16, s in S, a in base] = sum(M4[i, a, b] * tip[i, s, b] for b in base)
        let l3[i in 8, s in S, a in base] = u4[2*i, s, a] * u4[2*i + 1, s, a]
        let u3[i in 8, s in S, a in base] = sum(M3[i, a, b] * l3[i, s, b] for b in base)
        let l2[i in 4, s in S, a in base] = u3[2*i, s, a] * u3[2*i + 1, s, a]
        let u2[i in 4, s in S, a in base] = sum(M2[i, a, b] * l2[i, s, b] for b in base)
        let l1[i in 2, s in S, a in base] = u2[2*i, s, a] * u2[2*i + 1, s, a]
        let u1[i in 2, s in S, a in base] = sum(M1[i, a, b] * l1[i, s, b] for b in base)
        minimize -sum(log(sum(f[a] * u1[0, s, a] * u1[1, s, a] for a in base)) for s in S)
            + sumsq(t4) + sumsq(t3) + sumsq(t2) + sumsq(t1) + kappa^2""",
        _leaves,
    ),
    Unseen(
        *("sentence_tags", "language: a conditional random field along sentences"),
        """dim N, T, d, K = 7
        data X[N, T, d], tag[N, T] in K
        var W[d, K], A[K, K], start[K]
        let e[n in N, t in T, k in K] = sum(X[n, t, j] * W[j, k] for j in d)
        let f[t in T, n in N, k in K] = e[n, t, k] + logsumexp(f[t-1, n, :] + A[:, k])
            first e[n, 0, k] + start[k]
        let path[n in N] = start[tag[n, 0]] + sum(e[n, t, tag[n, t]] for t in T)
            + sum(A[tag[n, t-1], tag[n, t]] for t in range(1, T))
        minimize sum(logsumexp(f[T-1, n, :]) - path[n] for n in N)
            + 0.1 * sumsq(W) + 0.1 * sumsq(A)""",
        _sentences,
    ),
    Unseen(
        *("spoken_word", "speech: connectionist temporal classification of one utterance"),
        """dim T, d, S, K = 20
        data X[T, d], letter[S] in K, skip[S]
        var W[d, K], c[K]
        let z = X @ W + c[None, :]
        let q[t in T, k in K] = z[t, k] - logsumexp(z[t, :])
        let p[t in T, s in S] = exp(q[t, letter[s]] + 3)
            * (p[t-1, s] + where(s >= 1, p[t-1, s-1], 0) + where(s >= 2, skip[s] * p[t-1, s-2], 0))
            first where(s <= 1, exp(q[0, letter[s]] + 3), 0)
        minimize -log(p[T-1, S-1] + p[T-1, S-2]) + 0.01 * sumsq(W) + 0.01 * sumsq(c)""",
        _spoken,
    ),
    Unseen(
        *("backbone_torsions", "molecules: bonds, angles and torsions along a chain of atoms"),
        """dim n, xyz = 3
        data walk[n, xyz]
        var P[n, xyz]
        let Q = walk + P
        let b[i in range(n - 1), x in xyz] = Q[i+1, x] - Q[i, x]
        let m[i in range(n - 2), x in xyz] =
            b[i, (x+1) % 3] * b[i+1, (x+2) % 3] - b[i, (x+2) % 3] * b[i+1, (x+1) % 3]
        let bend[i in range(n - 2)] = acos(-sum(b[i, x] * b[i+1, x] for x in xyz)
            / (1.0001 * norm2(b[i, :]) * norm2(b[i+1, :])))
        let turn[i in range(n - 3)] = atan2(
            norm2(b[i+1, :]) * sum(b[i, x] * m[i+1, x] for x in xyz),
            sum(m[i, x] * m[i+1, x] for x in xyz))
        minimize 10 * sum((norm2(b[i, :]) - 1.5)^2 for i in range(n - 1))
            + 5 * sum((bend[i] - 1.9)^2 for i in range(n - 2))
            + sum(1 + cos(3 * turn[i] - 1) for i in range(n - 3))""",
        _chain,
        0.1,
    ),
    Unseen(
        *("listed_ranking", "search: pairs of documents in the order of their grades"),
        """dim Q, D, p, h = 8
        data X[Q, D, p], grade[Q, D]
        var W[p, h], b[h], v[h]
        let s[q in Q, i in D] =
            sum(v[k] * tanh(sum(X[q, i, j] * W[j, k] for j in p) + b[k]) for k in h)
        minimize sum(softplus(s[q, j] - s[q, i]) * (2^grade[q, i] - 2^grade[q, j])
                     for q in Q, i in D, j in D if grade[q, i] > grade[q, j])
            + sumsq(W) + sumsq(v)""",
        _queries,
    ),
    Unseen(
        *("policy_value", "bandits: the clipped value of a softmax policy from logged actions"),
        """dim N, d, K = 6
        data X[N, d], action[N] in K, propensity[N], reward[N]
        var W[d, K], c[K]
        let z = X @ W + c[None, :]
        let log_pi[i in N] = z[i, action[i]] - logsumexp(z[i, :])
        maximize mean(min(exp(log_pi[i]) / propensity[i], 3) * reward[i] for i in N)
            - 0.1 * mean(sum(exp(z[i, k] - logsumexp(z[i, :])) * (z[i, k] - logsumexp(z[i, :]))
                             for k in K) for i in N) - 0.01 * sumsq(W)""",
        _logged,
    ),
    Unseen(
        *("capsules", "vision: capsules with two rounds of routing"),
        """dim N, I, d, J = 5, e = 6
        data u[N, I, d], Y[N, J]
        var W[J, e, d]
        let p[n in N, i in I, j in J, a in e] = sum(W[j, a, k] * u[n, i, k] for k in d)
        let s1[n in N, j in J, a in e] = mean(p[n, i, j, a] for i in I)
        let v1[n in N, j in J, a in e] =
            s1[n, j, a] * sqrt(sumsq(s1[n, j, :])) / (1 + sumsq(s1[n, j, :]))
        let b[n in N, i in I, j in J] = sum(p[n, i, j, a] * v1[n, j, a] for a in e)
        let c[n in N, i in I, j in J] = exp(b[n, i, j]) / sum(exp(b[n, i, l]) for l in J)
        let s2[n in N, j in J, a in e] = sum(c[n, i, j] * p[n, i, j, a] for i in I) / I
        let long[n in N, j in J] = sumsq(s2[n, j, :]) / (1 + sumsq(s2[n, j, :]))
        minimize sum(Y[n, j] * max(0.9 - long[n, j], 0)^2
                     + 0.5 * (1 - Y[n, j]) * max(long[n, j] - 0.1, 0)^2 for n in N, j in J)
            + 0.01 * sumsq(W)""",
        _capsules,
    ),
    Unseen(
        *(
            "heated_plate",
            "inverse problems: the conductivity of a plate from temperatures",
        ),
        """dim T = 40, n, m
        data u0[n, m], seen[n, m]
        var k[n, m]
        let c = exp(k)
        let u[t in T, i in n, j in m] = u[t-1, i, j] + where(
            i >= 1 and i < n - 1 and j >= 1 and j < m - 1,
            0.1 * c[i, j] * (u[t-1, i+1, j] + u[t-1, i-1, j] + u[t-1, i, j+1] + u[t-1, i, j-1]
                             - 4 * u[t-1, i, j]), 0)
            first u0[i, j]
        minimize sumsq(u[T-1, :, :] - seen)
            + 0.01 * sum((k[i+1, j] - k[i, j])^2 for i in range(n - 1), j in m)
            + 0.01 * sum((k[i, j+1] - k[i, j])^2 for i in n, j in range(m - 1))""",
        _plate,
    ),
    Unseen(
        *("drug_levels", "pharmacology: saturable elimination in 40 patients, by Runge-Kutta"),
        """dim N, T
        data y[N, T], weight[N]
        var ka, vmax, km, volume, eta[N], s
        fn gut(g) = -exp(ka) * g
        fn blood(g, b, i) = exp(ka) * g
            - exp(vmax + 0.3 * eta[i]) * weight[i] * b / (exp(km) + b)
        let g[t in T, i in N] = g[t-1, i] * (1 - 0.1 * exp(ka) + 0.005 * exp(2 * ka))  first 5
        and b[t in T, i in N] = b[t-1, i] + 0.1 * blood(
                g[t-1, i] + 0.05 * gut(g[t-1, i]),
                b[t-1, i] + 0.05 * blood(g[t-1, i], b[t-1, i], i), i)  first 0
        minimize sum((y[i, t] - log(b[t, i] + 0.1) + volume)^2 for i in N, t in T) * exp(-2 * s) / 2
            + N * T * s + sumsq(eta) / 2 + ka^2 + vmax^2 + km^2 + volume^2""",
        _patients,
    ),
    Unseen(
        *("spam_words", "text: logistic regression on a sparse matrix of words"),
        """dim N, n
        data A[N, n] sparse, spam[N]
        var w[n], c
        let z = A @ w + c
        minimize sum(softplus(z) - spam .* z) + 0.1 * sum(sqrt(w.^2 + 1e-4))""",
        _mails,
    ),
    Unseen(
        *("paired_ranks", "finance: Frank and Clayton copulas with covariates"),
        """dim N, p
        data u[N], v[N], z[N, p]
        var b[p], d[p], mix
        let t = 3 + z @ b
        let a = exp(z @ d)
        let frank = log(abs(t) .* abs(expm1(-t))) - t .* (u + v)
            - 2 * log(abs(expm1(-t) + expm1(-t .* u) .* expm1(-t .* v)))
        let clayton = log1p(a) - (a + 1) .* (log(u) + log(v))
            - (2 + 1 ./ a) .* log(u .^ (-a) + v .^ (-a) - 1)
        minimize -sum(logaddexp((-softplus(-mix)) + frank, (-softplus(mix)) + clayton))
            + sumsq(b) + sumsq(d)""",
        _ranks,
        0.2,
    ),
    Unseen(
        *("tracked_target", "tracking: a Kalman filter with position and speed"),
        """dim T, xy = 2
        data y[T, xy]
        var q, r, damping
        let f = sigmoid(damping + 2)
        let Q = exp(2 * q)
        let R = exp(2 * r)
        let s11[t in T] = f11[t-1] + 2 * f12[t-1] + f22[t-1] + Q / 3  first 10
        and s12[t in T] = f * (f12[t-1] + f22[t-1]) + Q / 2  first 0
        and s22[t in T] = f^2 * f22[t-1] + Q  first 10
        and f11[t in T] = s11[t] * R / (s11[t] + R)
        and f12[t in T] = s12[t] * R / (s11[t] + R)
        and f22[t in T] = s22[t] - s12[t]^2 / (s11[t] + R)
        let e[t in T, x in xy] = y[t, x] - a[t-1, x] - v[t-1, x]  first 0
        and a[t in T, x in xy] = a[t-1, x] + v[t-1, x] + e[t, x] * s11[t] / (s11[t] + R)
            first y[0, x]
        and v[t in T, x in xy] = f * v[t-1, x] + e[t, x] * s12[t] / (s11[t] + R)  first 0
        minimize sum(log(s11[t] + R) + sumsq(e[t, :]) / (2 * (s11[t] + R)) for t in T)
            + q^2 + r^2 + damping^2""",
        _positions,
    ),
    Unseen(
        *("flood_levels", "hydrology: generalised extreme values at sites, with a trend"),
        """dim N, G = 60
        data site[N] in G, year[N], y[N]
        var mu[G], trend[G], scale[G], shape, m, s
        let z[i in N] = (y[i] - mu[site[i]] - trend[site[i]] * year[i]) / exp(scale[site[i]] + 1)
        let x = 0.2 * sigmoid(shape)
        let g[i in N] = log(max(1 + x * z[i], 0.01)) / x
        minimize sum(exp(-g[i]) + (1 + x) * g[i] + scale[site[i]] for i in N)
            + sumsq(mu - m) + sumsq(trend) + sumsq(scale - s) + m^2 + s^2""",
        _floods,
    ),
    Unseen(
        *("insured_claims", "insurance: zero-inflated negative binomial counts"),
        """dim N, p
        data X[N, p], y[N]
        var b[p], g[p], c, k
        let mu = exp(X @ b + c)
        let phi = exp(k)
        let out = X @ g - 1
        let counted = lgamma(y + phi) - lgamma(phi) - lgamma(y + 1)
            + phi * log(phi ./ (phi + mu)) + y .* log(mu ./ (phi + mu))
        minimize -sum(where(y[i] == 0,
                            logaddexp((-softplus(-out[i])), (-softplus(out[i])) + counted[i]),
                            (-softplus(out[i])) + counted[i]) for i in N)
            + sumsq(b) + sumsq(g) + c^2 + k^2""",
        _claims,
    ),
    Unseen(
        *("many_outputs", "Gaussian processes with several outputs and separable covariance"),
        """dim N, M
        data t[N], Y[N, M]
        var L[M, M], length, noise
        let K[i in N, j in N] = exp(-(t[i] - t[j])^2 * exp(-2 * length) / 2)
            + where(i == j, exp(noise - 3), 0)
        let B[i in M, j in M] = sum(L[i, k] * L[j, k] for k in M) + where(i == j, 0.5, 0)
        minimize (M * logdet(K) + N * logdet(B) + trace(solve(B, Y' @ solve(K, Y)))) / 2
            + sumsq(L) + length^2 + noise^2""",
        _outputs,
    ),
    Unseen(
        *("cited_papers", "graphs: a convolutional network of two layers on citations"),
        """dim E, n, d, h = 16, K = 5
        data a[E] in n, b[E] in n, X[n, d], label[n] in K
        var W1[d, h], c1[h], W2[h, K]
        let degree[i in n] = 1 + sum(1 for e in E if b[e] == i)
        let H0 = X @ W1
        let H1[i in n, k in h] =
            tanh((H0[i, k] + sum(H0[a[e], k] for e in E if b[e] == i)) / degree[i] + c1[k])
        let Z0 = H1 @ W2
        let Z[i in n, k in K] = (Z0[i, k] + sum(Z0[a[e], k] for e in E if b[e] == i)) / degree[i]
        minimize mean(logsumexp(Z[i, :]) - Z[i, label[i]] for i in n) + 0.01 * sumsq(W1)""",
        _citations,
    ),
    Unseen(
        *("gated_units", "time series: gated recurrent units in batches"),
        """dim T, N, d, h = 12
        data X[T, N, d], y[N]
        var Wz[d, h], Uz[h, h], Wr[d, h], Ur[h, h], Wc[d, h], Uc[h, h], v[h]
        fn update(s[N, h], x[N, d]) =
            let z = sigmoid(x @ Wz + s @ Uz)
            let r = sigmoid(x @ Wr + s @ Ur)
            let c = tanh(x @ Wc + (r .* s) @ Uc)
            return (1 - z) .* s + z .* c
        let s[t in range(T + 1)] = update(s[t-1, :, :], X[t-1, :, :])  first zeros(N, h)
        minimize sumsq(s[T, :, :] @ v - y)""",
        _series,
    ),
    Unseen(
        *("local_experts", "regression: a mixture of linear experts"),
        """dim N, p, K = 6
        data X[N, p], y[N]
        var G[p, K], B[p, K], s[K]
        let gate = X @ G
        let fit = X @ B
        minimize -sum(logsumexp(gate[i, k] - (y[i] - fit[i, k])^2 * exp(-2 * s[k]) / 2 - s[k]
                                for k in K) - logsumexp(gate[i, :]) for i in N)
            + sumsq(G) + sumsq(B) + sumsq(s)""",
        _rows,
    ),
    Unseen(
        *("normalised_layer", "networks: a residual block with normalised layers"),
        """dim N, d, h = 32
        data X[N, d], Y[N, d]
        var W[d, h], V[h, d], gain[d], shift[d]
        let H = X + ((X @ W) .* normcdf(X @ W)) @ V
        let m[i in N] = mean(H[i, :])
        let v[i in N] = mean((H[i, k] - m[i])^2 for k in d)
        let Z[i in N, k in d] = gain[k] * (H[i, k] - m[i]) / sqrt(v[i] + 1e-5) + shift[k]
        minimize mean((Z - Y).^2) + 0.001 * sumsq(W) + 0.001 * sumsq(V)""",
        _tokens,
    ),
    Unseen(
        *("aftershocks", "seismology: a cascade of shocks in time and space"),
        """dim n, xy = 2
        data t[n], place[n, xy], m[n]
        var mu, k, alpha, c, p, d
        let rate[i in n] = exp(mu) + sum(exp(k + exp(alpha) * m[j] - 2)
            * (t[i] - t[j] + exp(c))^(-1 - exp(p)) / (sumsq(place[i, :] - place[j, :]) + exp(d))^1.5
            for j in n if j < i)
        minimize -sum(log(rate)) + 100 * exp(mu)
            + sum(exp(k + exp(alpha) * m[j] - 2) * exp(-c * exp(p)) for j in n)
            + mu^2 + k^2 + alpha^2 + c^2 + p^2 + d^2""",
        _shocks,
    ),
    Unseen(
        *("planned_orbits", "mechanics: first speeds of bodies that attract each other"),
        """dim n, xy = 2, T = 60
        data q0[n, xy], m[n], aim[n, xy]
        var v0[n, xy]
        let v[t in T, i in n, x in xy] = v[t-1, i, x] + 0.02 * sum(
                m[j] * (q[t-1, j, x] - q[t-1, i, x])
                / (sumsq(q[t-1, j, :] - q[t-1, i, :]) + 0.01)^1.5 for j in n)  first v0[i, x]
        and q[t in T, i in n, x in xy] = q[t-1, i, x] + 0.02 * v[t, i, x]  first q0[i, x]
        minimize sumsq(q[T-1, :, :] - aim) + 0.1 * sumsq(v0)""",
        _bodies,
    ),
    Unseen(
        *("planar_flow", "density estimation: a flow of planar maps"),
        """dim N, L = 6, xy = 2
        data at[N, xy]
        var w[L, xy], u[L, xy], b[L]
        let z[l in range(L + 1), i in N, j in xy] = z[l-1, i, j]
            + u[l-1, j] * tanh(w[l-1, 0] * z[l-1, i, 0] + w[l-1, 1] * z[l-1, i, 1] + b[l-1])
            first at[i, j]
        let t[l in L, i in N] = tanh(w[l, 0] * z[l, i, 0] + w[l, 1] * z[l, i, 1] + b[l])
        let stretch[l in L, i in N] =
            log(abs(1 + (w[l, 0] * u[l, 0] + w[l, 1] * u[l, 1]) * (1 - t[l, i]^2)))
        minimize sumsq(z[L, :, :]) / 2 - sum(stretch) + sumsq(w) + sumsq(u)""",
        _samples,
    ),
)
