"""Models of practice whose natural form is a loop, by hand for numba: recurrences, gathers, pairs.

Value and gradient in one function, the gradient of a recurrence by its reverse. A constructor takes
the data by name, which the loops see as constants.
"""

from __future__ import annotations

from collections.abc import Callable
from math import cos, exp, log, log1p, sin, tanh

import numpy as np
from numba import njit

from benchmarks.by_hand import Array, Arrays

Evaluate = Callable[[Array], tuple[float, Array]]


@njit
def sigmoid(t: float) -> float:
    return 1.0 / (1.0 + exp(-t)) if t >= 0.0 else exp(t) / (1.0 + exp(t))


@njit
def softplus(t: float) -> float:
    return max(t, 0.0) + log1p(exp(-abs(t)))


def airline_holt_winters(d: Arrays) -> Evaluate:
    y, T = d["y"], d["y"].size

    @njit
    def run(x):
        al, be, ga = sigmoid(x[0]), sigmoid(x[1]), sigmoid(x[2])
        scale = exp(-2.0 * x[3])
        level, trend, e, s = x[4], x[5], np.empty(T), x[6:].copy()
        squares, total, g = 0.0, 0.0, np.zeros(18)
        for k in range(12):
            total += s[k]
        for t in range(T):
            k = t % 12
            e[t] = y[t] - level - trend - s[k]
            squares += e[t] * e[t]
            level, trend = level + trend + al * e[t], trend + al * be * e[t]
            s[k] += ga * (1.0 - al) * e[t]
        bl, bt, bs, g_al, g_be, g_ga = 0.0, 0.0, np.zeros(12), 0.0, 0.0, 0.0
        for t in range(T - 1, -1, -1):
            k = t % 12
            g_al += (bl + be * bt - ga * bs[k]) * e[t]
            g_be += al * bt * e[t]
            g_ga += (1.0 - al) * bs[k] * e[t]
            back = e[t] * scale + al * bl + al * be * bt + ga * (1.0 - al) * bs[k]
            bt = bt + bl - back
            bl = bl - back
            bs[k] -= back
        g[0], g[1], g[2] = g_al * al * (1 - al), g_be * be * (1 - be), g_ga * ga * (1 - ga)
        g[3], g[4], g[5] = T - squares * scale, bl, bt
        for k in range(12):
            g[6 + k] = bs[k] + 100.0 * total
        return T * x[3] + squares * scale / 2.0 + 50.0 * total * total, g

    return run


def arma11(d: Arrays) -> Evaluate:
    y, T = d["y"], d["y"].size

    @njit
    def run(x):
        mu, phi, theta, s = x[0], x[1], x[2], x[3]
        scale, e, squares, g = exp(-2.0 * s), np.empty(T), 0.0, np.empty(4)
        e[0] = y[0] - mu - phi * mu
        for t in range(1, T):
            e[t] = y[t] - mu - phi * y[t - 1] - theta * e[t - 1]
        back, g_mu, g_phi, g_theta = 0.0, 0.0, 0.0, 0.0
        for t in range(T - 1, 0, -1):
            squares += e[t] * e[t]
            back = e[t] * scale - theta * back
            g_mu -= back
            g_phi -= back * y[t - 1]
            g_theta -= back * e[t - 1]
        squares += e[0] * e[0]
        back = e[0] * scale - theta * back
        g[0] = g_mu - back * (1.0 + phi) + mu / 100.0
        g[1] = g_phi - back * mu + phi / 4.0
        g[2] = g_theta + theta / 4.0
        r = exp(2.0 * s) / 6.25
        g[3] = T - squares * scale + 2.0 * r / (1.0 + r)
        prior = mu * mu / 200.0 + (phi * phi + theta * theta) / 8.0 + log1p(r)
        return T * s + squares * scale / 2.0 + prior, g

    return run


def garch11(d: Arrays) -> Evaluate:
    y, T, first = d["y"], d["y"].size, float(d["sigma1"]) ** 2

    @njit
    def run(x):
        mu, omega, a, b = x[0], exp(x[1]), sigmoid(x[2]), sigmoid(x[3])
        share = (1.0 - a) * b
        h, f, g = np.empty(T), 0.0, np.empty(4)
        h[0] = first
        for t in range(1, T):
            r = y[t - 1] - mu
            h[t] = omega + a * r * r + share * h[t - 1]
        back, g_mu, g_omega, g_a, g_share = 0.0, 0.0, 0.0, 0.0, 0.0
        for t in range(T - 1, -1, -1):
            r, inverse = y[t] - mu, 1.0 / h[t]
            f += log(h[t]) + r * r * inverse
            g_mu -= r * inverse + 2.0 * a * r * back
            g_a += r * r * back
            g_share += h[t] * back
            g_omega += back
            back = share * back + (inverse - r * r * inverse * inverse) / 2.0
        g[0], g[1] = g_mu, omega * g_omega
        g[2] = (g_a - b * g_share) * a * (1.0 - a)
        g[3] = (1.0 - a) * g_share * b * (1.0 - b)
        return f / 2.0, g

    return run


def mining_hawkes(d: Arrays) -> Evaluate:
    t, T, N = d["t"], float(d["T"]), d["t"].size

    @njit
    def run(x):
        mu, a, b = exp(x[0]), sigmoid(x[1]), exp(x[2])
        A, decay, g = np.empty(N), np.empty(N), np.empty(3)
        A[0], decay[0] = 0.0, 0.0
        for i in range(1, N):
            decay[i] = exp(-b * (t[i] - t[i - 1]))
            A[i] = decay[i] * (1.0 + A[i - 1])
        f, back, g_mu, g_a, g_b = mu * T, 0.0, T, 0.0, 0.0
        for i in range(N - 1, -1, -1):
            rate, left = mu + a * b * A[i], exp(-b * (T - t[i]))
            f += a * (1.0 - left) - log(rate)
            g_mu -= 1.0 / rate
            g_a += 1.0 - left - b * A[i] / rate
            g_b += a * (T - t[i]) * left - a * A[i] / rate
            back -= a * b / rate
            if i > 0:
                g_b -= back * (t[i] - t[i - 1]) * A[i]
                back *= decay[i]
        g[0], g[1], g[2] = mu * g_mu, a * (1.0 - a) * g_a, b * g_b
        return f, g

    return run


def nile_kalman(d: Arrays) -> Evaluate:
    y, T = d["y"], d["y"].size

    @njit
    def run(x):
        q, r = exp(x[0]), exp(x[1])
        v, P, a, f, g = np.empty(T), np.empty(T + 1), 1000.0, 0.0, np.empty(2)
        P[0] = 1e6
        for t in range(T):
            S = P[t] + r
            k = P[t] / S
            v[t] = y[t] - a
            f += log(S) + v[t] * v[t] / S
            a += k * v[t]
            P[t + 1] = P[t] * (1.0 - k) + q
        back_a, back_P, g_q, g_r = 0.0, 0.0, 0.0, 0.0
        for t in range(T - 1, -1, -1):
            S = P[t] + r
            k, u = P[t] / S, v[t] / S
            back_k = back_a * v[t] - back_P * P[t]
            back_S = (1.0 / S - u * u) / 2.0 - back_k * k / S
            g_q += back_P
            g_r += back_S
            back_P = back_P * (1.0 - k) + back_S + back_k / S
            back_a = back_a - u - back_a * k
        g[0], g[1] = q * g_q, r * g_r
        return f / 2.0, g

    return run


def pendulum_swing_up(d: Arrays) -> Evaluate:
    T, h = d["start"].size, 0.05

    @njit
    def run(u):
        a, w, q, g, f = np.empty(T), np.empty(T + 1), np.empty(T + 1), np.empty(T), 0.0
        w[0], q[0] = 0.0, np.pi
        for t in range(T):
            a[t] = 3.0 * tanh(u[t])
            f += 1.0 - cos(q[t]) + 0.05 * w[t] * w[t] + 0.02 * a[t] * a[t]
            w[t + 1] = w[t] + h * (9.81 * sin(q[t]) + a[t] - 0.1 * w[t])
            q[t + 1] = q[t] + h * w[t + 1]
        back_w, back_q = 10.0 * w[T], 20.0 * sin(q[T])
        f = h * f + 20.0 * (1.0 - cos(q[T])) + 5.0 * w[T] * w[T]
        for t in range(T - 1, -1, -1):
            back_w += h * back_q
            g[t] = h * (back_w + 0.04 * a[t]) * (3.0 - a[t] * a[t] / 3.0)
            back_q += h * (9.81 * cos(q[t]) * back_w + sin(q[t]))
            back_w = back_w * (1.0 - 0.1 * h) + 0.1 * h * w[t]
        return f, g

    return run


def gas_oil_rk4(d: Arrays) -> Evaluate:
    z, at, T, h = d["z"], 2 * d["step"], 76, 0.0125

    @njit
    def rate(a, b, p):
        return -(p[0] + p[2]) * a * a, p[0] * a * a - p[1] * b

    @njit
    def pull(a, b, p, u, v, g):
        """The products of (u, v) with the derivatives of the rates; that by p is added to g."""
        square = a * a
        g[0] += square * (v - u)
        g[1] -= v * b
        g[2] -= u * square
        return 2.0 * a * (p[0] * v - (p[0] + p[2]) * u), -p[1] * v

    @njit
    def stages(a, b, p):
        k1, l1 = rate(a, b, p)
        k2, l2 = rate(a + h / 2 * k1, b + h / 2 * l1, p)
        k3, l3 = rate(a + h / 2 * k2, b + h / 2 * l2, p)
        return k1, l1, k2, l2, k3, l3

    @njit
    def run(u):
        p, g, f = np.exp(u), np.zeros(3), 0.0
        y, seeds = np.empty((T + 1, 2)), np.zeros((T + 1, 2))
        y[0, 0], y[0, 1] = 1.0, 0.0
        for t in range(T):
            a, b = y[t, 0], y[t, 1]
            k1, l1, k2, l2, k3, l3 = stages(a, b, p)
            k4, l4 = rate(a + h * k3, b + h * l3, p)
            y[t + 1, 0] = a + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            y[t + 1, 1] = b + h / 6 * (l1 + 2 * l2 + 2 * l3 + l4)
        for j in range(at.size):
            for k in range(2):
                r = y[at[j], k] - z[j, k]
                f += r * r
                seeds[at[j], k] += 2.0 * r
        v, w = seeds[T, 0], seeds[T, 1]
        for t in range(T - 1, -1, -1):
            a, b = y[t, 0], y[t, 1]
            k1, l1, k2, l2, k3, l3 = stages(a, b, p)
            v4, w4 = pull(a + h * k3, b + h * l3, p, h / 6 * v, h / 6 * w, g)
            third = (h / 3 * v + h * v4, h / 3 * w + h * w4)
            v3, w3 = pull(a + h / 2 * k2, b + h / 2 * l2, p, third[0], third[1], g)
            second = (h / 3 * v + h / 2 * v3, h / 3 * w + h / 2 * w3)
            v2, w2 = pull(a + h / 2 * k1, b + h / 2 * l1, p, second[0], second[1], g)
            v1, w1 = pull(a, b, p, h / 6 * v + h / 2 * v2, h / 6 * w + h / 2 * w2, g)
            v += v1 + v2 + v3 + v4 + seeds[t, 0]
            w += w1 + w2 + w3 + w4 + seeds[t, 1]
        return f, g * p

    return run


def bird_counts_sites(d: Arrays) -> Evaluate:
    site, count, year, S = d["site"], d["count"], (d["year"] - 4) / 4, 235

    @njit
    def run(x):
        mu, slope, share = x[S], x[S + 1], sigmoid(x[S + 2])
        sd, g = 5.0 * share, np.zeros(S + 3)
        f, g_mu, g_slope, g_sd = 0.0, 0.0, 0.0, 0.0
        for n in range(site.size):
            rate = mu + sd * x[site[n]] + slope * year[n]
            e = exp(rate)
            f += e - count[n] * rate
            r = e - count[n]
            g_mu += r
            g_slope += r * year[n]
            g[site[n]] += r
        for s in range(S):
            f += x[s] * x[s] / 2.0
            g_sd += g[s] * x[s]
            g[s] = sd * g[s] + x[s]
        g[S], g[S + 1] = g_mu + mu / 100.0, g_slope + slope
        g[S + 2] = 5.0 * share * (1.0 - share) * g_sd
        return f + mu * mu / 200.0 + slope * slope / 2.0, g

    return run


def lecture_ratings(d: Arrays) -> Evaluate:
    user, item, rating, p0, q0, U0, W0 = d["user"], d["item"], d["rating"], 1, 148, 404, 845

    @njit
    def run(x):
        f, g = 0.0, x.copy()
        g[0] = 0.0
        for i in range(1, x.size):
            f += x[i] * x[i]
        for n in range(user.size):
            u, w = U0 + 3 * user[n], W0 + 3 * item[n]
            fit = x[0] + x[p0 + user[n]] + x[q0 + item[n]]
            for k in range(3):
                fit += x[u + k] * x[w + k]
            r = fit - rating[n]
            f += r * r
            g[0] += r
            g[p0 + user[n]] += r
            g[q0 + item[n]] += r
            for k in range(3):
                g[u + k] += r * x[w + k]
                g[w + k] += r * x[u + k]
        return f / 2.0, g

    return run


def election_multilevel(d: Arrays) -> Evaluate:
    groups = np.stack([d[name] for name in ("age", "edu", "age_edu", "state", "region")], axis=1)
    starts = np.array([0, 4, 8, 24, 75, 80])
    known = np.stack([d["black"], d["female"], d["v_prev"], d["female"] * d["black"]], axis=1)
    places, y = groups + starts[:-1], d["y"]

    @njit
    def run(x):
        beta, f, g = x[80:85], 0.0, np.zeros(90)
        share = np.array([sigmoid(w) for w in x[85:]])
        for n in range(y.size):
            eta = beta[0]
            for k in range(4):
                eta += beta[k + 1] * known[n, k]
            for k in range(5):
                eta += 10.0 * share[k] * x[places[n, k]]
            e = exp(-abs(eta))
            f += max(eta, 0.0) + log1p(e) - y[n] * eta
            r = (1.0 if eta >= 0.0 else e) / (1.0 + e) - y[n]
            g[80] += r
            for k in range(4):
                g[81 + k] += r * known[n, k]
            for k in range(5):
                g[places[n, k]] += r
        for k in range(5):
            slope = 0.0
            for i in range(starts[k], starts[k + 1]):
                f += x[i] * x[i] / 2.0
                slope += g[i] * x[i]
                g[i] = 10.0 * share[k] * g[i] + x[i]
            g[85 + k] = 10.0 * share[k] * (1.0 - share[k]) * slope
            f += beta[k] * beta[k] / 20000.0
            g[80 + k] += beta[k] / 10000.0
        return f, g

    return run


def cox_recidivism(d: Arrays) -> Evaluate:
    X, event, first = d["X"], d["event"], d["first"]
    N, p = X.shape

    @njit
    def run(b):
        eta, sums, f, slope, g = X @ b, np.zeros(N + 1), 0.0, 0.0, np.zeros(p)
        top = eta.max()
        for j in range(N - 1, -1, -1):
            sums[j] = sums[j + 1] + exp(eta[j] - top)
        shares = np.zeros(N)
        for i in range(N):
            if event[i] == 1:
                f += log(sums[first[i]]) + top - eta[i]
                shares[first[i]] += 1.0 / sums[first[i]]
        for j in range(N):
            slope += shares[j]
            r = slope * exp(eta[j] - top) - event[j]
            for k in range(p):
                g[k] += r * X[j, k]
        return f, g

    return run


def lennard_jones_13(d: Arrays) -> Evaluate:
    N = d["start"].shape[0]

    @njit
    def run(x):
        P, g, f = x.reshape((N, 3)), np.zeros((N, 3)), 0.0
        for i in range(N):
            for j in range(i + 1, N):
                a, b, c = P[i, 0] - P[j, 0], P[i, 1] - P[j, 1], P[i, 2] - P[j, 2]
                inverse = 1.0 / (a * a + b * b + c * c)
                third = inverse * inverse * inverse
                f += 4.0 * third * (third - 1.0)
                slope = -24.0 * inverse * third * (2.0 * third - 1.0)
                g[i, 0] += slope * a
                g[i, 1] += slope * b
                g[i, 2] += slope * c
                g[j, 0] -= slope * a
                g[j, 1] -= slope * b
                g[j, 2] -= slope * c
        return f, g.ravel()

    return run


def iris_embedding(d: Arrays) -> Evaluate:
    p, N = d["p"], d["p"].shape[0]

    @njit
    def run(x):
        Y, attracted, repelled = x.reshape((N, 2)), np.zeros((N, 2)), np.zeros((N, 2))
        f, total = 0.0, 0.0
        for i in range(N):
            for j in range(i + 1, N):
                a, b = Y[i, 0] - Y[j, 0], Y[i, 1] - Y[j, 1]
                distance = a * a + b * b
                w = 1.0 / (1.0 + distance)
                f += 2.0 * p[i, j] * log1p(distance)
                total += 2.0 * w
                near, far = 4.0 * p[i, j] * w, 4.0 * w * w
                attracted[i, 0] += near * a
                attracted[i, 1] += near * b
                attracted[j, 0] -= near * a
                attracted[j, 1] -= near * b
                repelled[i, 0] += far * a
                repelled[i, 1] += far * b
                repelled[j, 0] -= far * a
                repelled[j, 1] -= far * b
        return f + log(total), (attracted - repelled / total).ravel()

    return run


LOOPS: dict[str, Callable[[Arrays], Evaluate]] = {
    constructor.__name__: constructor
    for constructor in (
        *(airline_holt_winters, arma11, garch11, mining_hawkes, nile_kalman, pendulum_swing_up),
        *(gas_oil_rk4, bird_counts_sites, lecture_ratings, election_multilevel, cox_recidivism),
        *(lennard_jones_13, iris_embedding),
    )
}
"""A constructor of value and gradient for each model that has a loop."""
