"""The third part of the unseen models by hand for numba, where a loop is natural."""

from __future__ import annotations

from collections.abc import Callable
from math import cos, exp, log, log1p, pi, sin, sqrt

import numpy as np
from numba import njit

from benchmarks.by_hand import Array, Arrays

Evaluate = Callable[[Array], tuple[float, Array]]


def competing_species(d: Arrays) -> Evaluate:
    y, start = d["y"], d["start"]
    T, S = y.shape

    @njit
    def run(x):
        r, A, scale = x[:S], x[S : S + S * S].reshape(S, S), exp(-2 * x[-1])
        rates, z, e = np.exp(A - 2), np.empty((T, S)), np.empty((T, S))
        z[0] = start
        out, total = x.copy(), (x[:-1] ** 2).sum() / 2 + T * S * x[-1]
        GA = np.zeros((S, S))
        for t in range(T):
            for i in range(S):
                e[t, i] = exp(z[t, i])
            if t + 1 < T:
                for i in range(S):
                    all_ = 0.0
                    for j in range(S):
                        all_ += rates[i, j] * e[t, j]
                    z[t + 1, i] = z[t, i] + 0.1 * (r[i] - all_)
        square, g, new = 0.0, np.zeros(S), np.zeros(S)
        for t in range(T - 1, -1, -1):
            if t + 1 < T:
                for j in range(S):
                    all_ = 0.0
                    for i in range(S):
                        all_ += g[i] * rates[i, j]
                        GA[i, j] -= 0.1 * g[i] * e[t, j]
                    new[j] = g[j] - 0.1 * all_ * e[t, j]
                for i in range(S):
                    out[i] += 0.1 * g[i]
                    g[i] = new[i]
            for i in range(S):
                square += (z[t, i] - y[t, i]) ** 2
                g[i] += (z[t, i] - y[t, i]) * scale
        for i in range(S):
            for j in range(S):
                out[S + i * S + j] += GA[i, j] * rates[i, j]
        out[-1] = T * S - square * scale
        return total + square * scale / 2, out

    return run


def quake_locations(d: Arrays) -> Evaluate:
    station, arrival = d["station"], d["arrival"]
    E, S = arrival.shape

    @njit
    def run(x):
        place, origin = x[: 3 * E].reshape(E, 3), x[3 * E : 4 * E]
        delay, slow = x[4 * E : 4 * E + S], exp(x[-1]) / 6
        out, total = np.zeros(x.size), (delay**2).sum() + x[-1] ** 2
        for s in range(S):
            out[4 * E + s] = 2 * delay[s]
        out[-1] = 2 * x[-1]
        for e in range(E):
            for s in range(S):
                a = 10 * place[e, 0] - station[s, 0]
                b = 10 * place[e, 1] - station[s, 1]
                c = 10 * place[e, 2] - station[s, 2]
                r = sqrt(a * a + b * b + c * c + 0.01)
                late = arrival[e, s] - origin[e] - delay[s] - slow * r
                total += 2.5 * log1p(late * late / 4)
                g = 1.25 * late / (1 + late * late / 4)
                out[3 * E + e] -= g
                out[4 * E + s] -= g
                out[-1] -= g * slow * r
                w = 10 * g * slow / r
                out[3 * e] -= w * a
                out[3 * e + 1] -= w * b
                out[3 * e + 2] -= w * c
        return total, out

    return run


def contact_epidemic(d: Arrays) -> Evaluate:
    a, b, ill, p0 = d["a"].astype(np.int64), d["b"].astype(np.int64), d["ill"], d["p0"]
    T, n = ill.shape

    @njit
    def run(x):
        leave, force = 1 / (1 + exp(-x[1])), np.exp(x[0] + x[2:])
        p, near, stay = np.empty((T, n)), np.zeros((T, n)), np.empty((T, n))
        p[0] = p0
        for t in range(1, T):
            for e in range(a.size):
                near[t, a[e]] += p[t - 1, b[e]]
            for i in range(n):
                stay[t, i] = exp(-force[i] * near[t, i])
                old = p[t - 1, i]
                p[t, i] = old * (1 - leave) + (1 - old) * (1 - stay[t, i])
        total, out = (x * x).sum(), 2 * x
        g, new, gn = np.zeros(n), np.zeros(n), np.zeros(n)
        left = 0.0
        for t in range(T - 1, -1, -1):
            for i in range(n):
                u, v = p[t, i] + 1e-6, 1 - p[t, i] + 1e-6
                total -= ill[t, i] * log(u) + (1 - ill[t, i]) * log(v)
                g[i] += (1 - ill[t, i]) / v - ill[t, i] / u
            if t:
                for i in range(n):
                    old = p[t - 1, i]
                    left -= g[i] * old
                    new[i] = g[i] * (1 - leave - 1 + stay[t, i])
                    own = g[i] * (1 - old) * stay[t, i]
                    gn[i] = own * force[i]
                    out[2 + i] += own * near[t, i] * force[i]
                    out[0] += own * near[t, i] * force[i]
                for e in range(a.size):
                    new[b[e]] += gn[a[e]]
                g[:] = new
        out[1] += left * leave * (1 - leave)
        return total, out

    return run


def thin_film(d: Arrays) -> Evaluate:
    wavelength, index, R = d["wavelength"], d["index"], d["R"]
    L, W = index.size, wavelength.size

    @njit
    def run(x):
        total, out = 0.01 * (x * x).sum(), 0.02 * x
        states, c, s = np.empty((L, 4)), np.empty(L), np.empty(L)
        thick = np.exp(x)
        for w in range(W):
            states[0] = np.array([1.0, 0.0, 1.52, 0.0])
            for k in range(1, L):
                n = index[k]
                phase = 2 * pi * n * 0.1 * thick[k] / wavelength[w]
                c[k], s[k] = cos(phase), sin(phase)
                er, ei, hr, hi = states[k - 1]
                states[k, 0] = er * c[k] - hi * s[k] / n
                states[k, 1] = ei * c[k] + hr * s[k] / n
                states[k, 2] = hr * c[k] - ei * n * s[k]
                states[k, 3] = hi * c[k] + er * n * s[k]
            er, ei, hr, hi = states[L - 1]
            up = (er - hr) ** 2 + (ei - hi) ** 2
            down = (er + hr) ** 2 + (ei + hi) ** 2
            late = up / down - R[w]
            total += late * late
            gu = 2 * late / down
            gd = -gu * up / down
            g0 = 2 * (gu * (er - hr) + gd * (er + hr))
            g2 = 2 * (gd * (er + hr) - gu * (er - hr))
            g1 = 2 * (gu * (ei - hi) + gd * (ei + hi))
            g3 = 2 * (gd * (ei + hi) - gu * (ei - hi))
            for k in range(L - 1, 0, -1):
                n = index[k]
                er, ei, hr, hi = states[k - 1]
                gc = g0 * er + g1 * ei + g2 * hr + g3 * hi
                gs = -g0 * hi / n + g1 * hr / n - g2 * ei * n + g3 * er * n
                out[k] += (gs * c[k] - gc * s[k]) * 2 * pi * n * 0.1 * thick[k] / wavelength[w]
                n0, n1 = g0 * c[k] + g3 * n * s[k], g1 * c[k] - g2 * n * s[k]
                n2, n3 = g2 * c[k] + g1 * s[k] / n, g3 * c[k] - g0 * s[k] / n
                g0, g1, g2, g3 = n0, n1, n2, n3
        return total, out

    return run


def pose_graph(d: Arrays) -> Evaluate:
    a, b = d["a"].astype(np.int64), d["b"].astype(np.int64)
    dx, dy, turn, n = d["dx"], d["dy"], d["turn"], 300

    @njit
    def run(v):
        x, y, h, out = v[:n], v[n : 2 * n], v[2 * n :], np.zeros(3 * n)
        total = x[0] ** 2 + y[0] ** 2 + h[0] ** 2
        out[0], out[n], out[2 * n] = 2 * x[0], 2 * y[0], 2 * h[0]
        c, s = np.cos(h), np.sin(h)
        for k in range(a.size):
            i, j = a[k], b[k]
            gx, gy = x[j] - x[i], y[j] - y[i]
            mx, my = c[i] * gx + s[i] * gy, c[i] * gy - s[i] * gx
            ex, ey = mx - dx[k], my - dy[k]
            e = h[j] - h[i] - turn[k]
            total += ex * ex + ey * ey + 10 * (1 - cos(e))
            px, py, w = 2 * (ex * c[i] - ey * s[i]), 2 * (ex * s[i] + ey * c[i]), 10 * sin(e)
            out[j] += px
            out[i] -= px
            out[n + j] += py
            out[n + i] -= py
            out[2 * n + j] += w
            out[2 * n + i] += 2 * (ex * my - ey * mx) - w
        return total, out

    return run


def metal_cluster(d: Arrays) -> Evaluate:
    P0 = d["P0"]
    n = len(P0)

    @njit
    def run(x):
        Q, total, G = P0 + 0.2 * x.reshape(n, 3), 0.0, np.zeros((n, 3))
        near, rep, r = np.empty((n, n)), np.empty((n, n)), np.empty((n, n))
        bond = np.zeros(n)
        for i in range(n):
            for j in range(i):
                a, b, c = Q[i, 0] - Q[j, 0], Q[i, 1] - Q[j, 1], Q[i, 2] - Q[j, 2]
                r[i, j] = sqrt(a * a + b * b + c * c + 1e-12)
                near[i, j] = exp(-5 * (r[i, j] - 1))
                rep[i, j] = near[i, j] * near[i, j]
                total += 0.4 * rep[i, j]
                bond[i] += near[i, j]
                bond[j] += near[i, j]
        root = np.sqrt(bond)
        total -= root.sum()
        for i in range(n):
            for j in range(i):
                w = -4 * rep[i, j] + 2.5 * near[i, j] * (1 / root[i] + 1 / root[j])
                w *= 0.2 / r[i, j]
                for k in range(3):
                    one = w * (Q[i, k] - Q[j, k])
                    G[i, k] += one
                    G[j, k] -= one
        return total, G.ravel()

    return run


def queue_waits(d: Arrays) -> Evaluate:
    X, gap, wait = d["X"], d["gap"], d["wait"]
    N, p = X.shape

    @njit
    def run(x):
        service, k = np.exp(X @ x[:p] + x[p]), exp(x[p + 1])
        w, slope, z = np.zeros(N), np.zeros(N), np.zeros(N)
        total, out = (x * x).sum(), 2 * x
        for i in range(N):
            if i:
                z[i] = k * (w[i - 1] + service[i - 1] - gap[i])
                e = exp(-abs(z[i]))
                w[i] = (max(z[i], 0.0) + log1p(e)) / k
                slope[i] = 1 / (1 + e) if z[i] > 0 else e / (1 + e)
            total += (w[i] - wait[i]) ** 2 / (1 + w[i])
        g, gk, gs = 0.0, 0.0, np.zeros(N)
        for i in range(N - 1, 0, -1):
            q = (w[i] - wait[i]) / (1 + w[i])
            g += 2 * q - q * q
            gk += g * (slope[i] * z[i] - w[i] * k) / k
            g *= slope[i]
            gs[i - 1] = g * service[i - 1]
        out[:p] += X.T @ gs
        out[p] += gs.sum()
        out[p + 1] += gk
        return total, out

    return run


def dose_response(d: Arrays) -> Evaluate:
    compound, plate = d["compound"].astype(np.int64), d["plate"].astype(np.int64)
    dose, y, C, P = np.log(d["dose"]), d["y"], 60, 20

    @njit
    def run(x):
        top, ec50, hill = np.exp(x[:C]), x[C : 2 * C], np.exp(x[2 * C : 3 * C])
        shift, scale = x[3 * C : 3 * C + P], exp(-2 * x[-1])
        out, square = x.copy(), 0.0
        total = (x[: 3 * C] ** 2).sum() / 2 + 10 * (shift**2).sum() + y.size * x[-1]
        for j in range(P):
            out[3 * C + j] = 20 * shift[j]
        for i in range(y.size):
            k, j = compound[i], plate[i]
            z = hill[k] * (dose[i] - ec50[k])
            s = 1 / (1 + exp(-z))
            e = shift[j] + top[k] * s - y[i]
            square += e * e
            g = e * scale
            out[3 * C + j] += g
            out[k] += g * top[k] * s
            w = g * top[k] * s * (1 - s)
            out[C + k] -= w * hill[k]
            out[2 * C + k] += w * z
        out[-1] = y.size - square * scale
        return total + square * scale / 2, out

    return run


def road_traffic(d: Arrays) -> Evaluate:
    route, link = d["route"].astype(np.int64), d["link"].astype(np.int64)
    trip, demand, free, room = d["trip"].astype(np.int64), d["demand"], d["free"], d["room"]
    K, L, D = trip.size, free.size, demand.size

    @njit
    def run(s):
        e, all_, h, flow = np.exp(s), np.zeros(D), np.empty(K), np.zeros(L)
        total, out, g, gl = (s * s).sum() / 20, s / 10, np.empty(K), np.empty(L)
        for k in range(K):
            all_[trip[k]] += e[k]
        for k in range(K):
            h[k] = demand[trip[k]] * e[k] / all_[trip[k]]
            total += h[k] * log(h[k])
            g[k] = log(h[k]) + 1
        for i in range(route.size):
            flow[link[i]] += h[route[i]]
        for j in range(L):
            fourth = (flow[j] / room[j]) ** 4
            total += free[j] * flow[j] * (1 + 0.03 * fourth)
            gl[j] = free[j] * (1 + 0.15 * fourth)
        for i in range(route.size):
            g[route[i]] += gl[link[i]]
        along = np.zeros(D)
        for k in range(K):
            along[trip[k]] += g[k] * h[k]
        for k in range(K):
            out[k] += h[k] * (g[k] - along[trip[k]] / demand[trip[k]])
        return total, out

    return run


def wave_speeds(d: Arrays) -> Evaluate:
    source, seen = d["source"], d["seen"]
    T, X = source.size, 120

    @njit
    def run(m):
        c, u, gc = 0.2 * np.exp(2 * m), np.zeros((T, X)), np.zeros(X)
        for t in range(2, T):
            for x in range(1, X - 1):
                bent = u[t - 1, x + 1] - 2 * u[t - 1, x] + u[t - 1, x - 1]
                u[t, x] = 2 * u[t - 1, x] - u[t - 2, x] + c[x] * bent
            for x in (0, X - 1):
                bent = u[t - 1, (x + 1) % X] - 2 * u[t - 1, x] + u[t - 1, (x - 1) % X]
                u[t, x] = 2 * u[t - 1, x] - u[t - 2, x] + c[x] * bent
            u[t, 10] += source[t]
        total, g = (m * m).sum(), np.zeros((T, X))
        for t in range(T - 1, -1, -1):
            for r in range(5):
                late = u[t, 20 * r + 15] - seen[t, r]
                total += 50 * late * late
                g[t, 20 * r + 15] += 100 * late
            if t >= 2:
                for x in range(X):
                    own = g[t, x]
                    g[t - 2, x] -= own
                    g[t - 1, x] += 2 * own
                for x in range(1, X - 1):
                    own = g[t, x] * c[x]
                    gc[x] += g[t, x] * (u[t - 1, x + 1] - 2 * u[t - 1, x] + u[t - 1, x - 1])
                    g[t - 1, x] -= 2 * own
                    g[t - 1, x + 1] += own
                    g[t - 1, x - 1] += own
                for x in (0, X - 1):
                    own = g[t, x] * c[x]
                    up, down = (x + 1) % X, (x - 1) % X
                    gc[x] += g[t, x] * (u[t - 1, up] - 2 * u[t - 1, x] + u[t - 1, down])
                    g[t - 1, x] -= 2 * own
                    g[t - 1, up] += own
                    g[t - 1, down] += own
        return total, 2 * m + 2 * c * gc

    return run


def edge_image(d: Arrays) -> Evaluate:
    g = d["g"]
    n = len(g)

    @njit
    def run(x):
        u, e, out = x[: n * n].reshape(n, n), x[n * n :].reshape(n, n), np.zeros(x.size)
        gu, ge, total = out[: n * n].reshape(n, n), out[n * n :].reshape(n, n), 0.0
        for i in range(n):
            for j in range(n):
                late, edge = u[i, j] - g[i, j], 1 - e[i, j]
                total += late * late + edge * edge / 4
                gu[i, j] += 2 * late
                own, square = -edge / 2, e[i, j] * e[i, j]
                if i + 1 < n:
                    a, b = u[i + 1, j] - u[i, j], e[i + 1, j] - e[i, j]
                    total += square * a * a + 0.1 * b * b
                    own += 2 * e[i, j] * a * a - 0.2 * b
                    gu[i + 1, j] += 2 * square * a
                    gu[i, j] -= 2 * square * a
                    ge[i + 1, j] += 0.2 * b
                if j + 1 < n:
                    a, b = u[i, j + 1] - u[i, j], e[i, j + 1] - e[i, j]
                    total += square * a * a + 0.1 * b * b
                    own += 2 * e[i, j] * a * a - 0.2 * b
                    gu[i, j + 1] += 2 * square * a
                    gu[i, j] -= 2 * square * a
                    ge[i, j + 1] += 0.2 * b
                ge[i, j] += own
        return total, out

    return run


THIRD_LOOPS: dict[str, Callable[[Arrays], Evaluate]] = {
    loop.__name__: loop
    for loop in (
        *(competing_species, quake_locations, contact_epidemic, thin_film, pose_graph),
        *(metal_cluster, queue_waits, dose_response, road_traffic, wave_speeds, edge_image),
    )
}
