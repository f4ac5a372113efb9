"""More models of fields that nothing else here holds: the third part of the unseen models.

They were written, with their peers, when the kernels had been tuned on the first two parts, and
before anything was changed for them.
"""

from __future__ import annotations

import numpy as np

from benchmarks.by_hand import Arrays
from benchmarks.unseen_models import Rng, Unseen, pairs, whole


def _abundances(rng: Rng) -> Arrays:
    return {"y": 0.3 * rng.normal(size=(150, 8)), "start": 0.1 * rng.normal(size=8)}


def _arrivals(rng: Rng) -> Arrays:
    station = 30 * rng.normal(size=(25, 3)) * [1, 1, 0]
    return {"station": station, "arrival": rng.uniform(2, 12, size=(120, 25))}


def _contacts(rng: Rng) -> Arrays:
    a, b = pairs(rng, 80, 400)
    seen = (rng.uniform(size=(25, 80)) < 0.3).astype(float)
    return {"a": a, "b": b, "ill": seen, "p0": rng.uniform(0.01, 0.2, 80)}


def _film(rng: Rng) -> Arrays:
    index = np.where(np.arange(12) % 2, 1.46, 2.35)
    return {"wavelength": np.linspace(0.4, 0.8, 160), "index": index, "R": rng.uniform(size=160)}


def _tips(rng: Rng) -> Arrays:
    return {"tip": np.eye(4)[rng.integers(0, 4, (12, 400))], "f": np.array([0.3, 0.2, 0.2, 0.3])}


def _markets(rng: Rng) -> Arrays:
    X = rng.normal(size=(40, 12, 3))
    share = rng.dirichlet(np.ones(13), 40)[:, :12]
    return {"X": X, "share": share, "nu": rng.normal(size=(60, 3))}


def _obstacles(rng: Rng) -> Arrays:
    return {"length": np.array([1.0, 0.9, 0.7, 0.5, 0.3, 0.2]), "o": 2 * rng.normal(size=(5, 2))}


def _odometry(rng: Rng) -> Arrays:
    a, b = pairs(rng, 300, 1200)
    steps = {name: rng.normal(size=1200) for name in ("dx", "dy", "turn")}
    return {"a": a, "b": b, **steps}


def _atoms(rng: Rng) -> Arrays:
    grid = np.stack(np.meshgrid(*3 * [np.arange(5.0)], indexing="ij"), -1).reshape(-1, 3)
    return {"P0": 1.1 * grid}


def _customers(rng: Rng) -> Arrays:
    X = rng.normal(size=(1500, 3))
    return {"X": X, "gap": rng.exponential(1.0, 1500), "wait": rng.exponential(2.0, 1500)}


def _traps(rng: Rng) -> Arrays:
    trap = np.stack(np.meshgrid(np.arange(6.0), np.arange(6.0)), -1).reshape(-1, 2)
    centre = np.stack(np.meshgrid(*2 * [np.linspace(-2, 7, 20)]), -1).reshape(-1, 2)
    return {"trap": trap, "centre": centre, "y": rng.poisson(0.2, size=(50, 36)).astype(float)}


def _cells(rng: Rng) -> Arrays:
    return {"y": rng.negative_binomial(2, 0.4, size=(300, 60)).astype(float)}


def _baselines(rng: Rng) -> Arrays:
    u, v = 3 * rng.normal(size=(2, 2500))
    return {"u": u, "v": v, "re": rng.normal(size=2500), "im": rng.normal(size=2500)}


def _channels(rng: Rng) -> Arrays:
    return {"E": np.linspace(0, 10, 1024), "n": rng.poisson(20.0, 1024).astype(float)}


def _wells(rng: Rng) -> Arrays:
    dose = 10.0 ** rng.uniform(-2, 2, 4000)
    return {
        **{"compound": whole(rng, 60, 4000), "plate": whole(rng, 20, 4000)},
        **{"dose": dose, "y": rng.uniform(size=4000)},
    }


def _roads(rng: Rng) -> Arrays:
    route = np.repeat(np.arange(240.0), 8)
    free, room = rng.uniform(1, 5, 150), rng.uniform(2, 6, 150)
    uses = {"route": route, "link": whole(rng, 150, 1920), "trip": np.repeat(np.arange(60.0), 4)}
    return {**uses, "demand": rng.uniform(1, 5, 60), "free": free, "room": room}


def _shots(rng: Rng) -> Arrays:
    return {"source": rng.normal(size=300), "seen": 0.01 * rng.normal(size=(300, 5))}


def _pixels(rng: Rng) -> Arrays:
    return {"g": rng.uniform(size=(90, 90))}


def _picture(rng: Rng) -> Arrays:
    return {"I": rng.uniform(size=(48, 48)), "at": np.linspace(-1, 1, 48)}


THIRD: tuple[Unseen, ...] = (
    Unseen(
        *("competing_species", "ecology: abundances of species that compete, year by year"),
        """dim T, S
        data y[T, S], start[S]
        var r[S], A[S, S], log_sigma
        let x[t in T, i in S] = x[t-1, i]
            + 0.1 * (r[i] - sum(exp(A[i, j] - 2) * exp(x[t-1, j]) for j in S))  first start[i]
        minimize sumsq(y - x) * exp(-2 * log_sigma) / 2 + T * S * log_sigma
            + sumsq(r) / 2 + sumsq(A) / 2""",
        _abundances,
    ),
    Unseen(
        *("quake_locations", "seismology: hypocentres and delays at stations from arrivals"),
        """dim E, S, xyz = 3
        data station[S, xyz], arrival[E, S]
        var place[E, xyz], origin[E], delay[S], slowness
        let distance[e in E, s in S] = sqrt(sumsq(10 * place[e, :] - station[s, :]) + 0.01)
        let late[e in E, s in S] =
            arrival[e, s] - origin[e] - delay[s] - exp(slowness) / 6 * distance[e, s]
        minimize 2.5 * sum(log1p(late .^ 2 / 4)) + sumsq(delay) + slowness^2""",
        _arrivals,
    ),
    Unseen(
        *("contact_epidemic", "an infection that passes along the edges of a network"),
        """dim T, n, E
        data a[E] in n, b[E] in n, ill[T, n], p0[n]
        var beta, gamma, risk[n]
        let p[t in T, i in n] = p[t-1, i] * (1 - sigmoid(gamma))
            + (1 - p[t-1, i]) * (1 - exp(-exp(beta + risk[i])
              * sum(p[t-1, b[e]] for e in E if a[e] == i)))
            first p0[i]
        minimize -sum(ill .* log(p + 1e-6) + (1 - ill) .* log(1 - p + 1e-6))
            + sumsq(risk) + beta^2 + gamma^2""",
        _contacts,
        0.2,
    ),
    Unseen(
        *("thin_film", "optics: reflectance of a stack of layers, by products of matrices"),
        """dim L, W
        data wavelength[W], index[L], R[W]
        var d[L]
        let phase[l in L, w in W] = 2 * pi * index[l] * 0.1 * exp(d[l]) / wavelength[w]
        let er[l in L, w in W] =
            er[l-1, w] * cos(phase[l, w]) - hi[l-1, w] * sin(phase[l, w]) / index[l]  first 1
        and ei[l in L, w in W] =
            ei[l-1, w] * cos(phase[l, w]) + hr[l-1, w] * sin(phase[l, w]) / index[l]  first 0
        and hr[l in L, w in W] =
            hr[l-1, w] * cos(phase[l, w]) - ei[l-1, w] * index[l] * sin(phase[l, w])  first 1.52
        and hi[l in L, w in W] =
            hi[l-1, w] * cos(phase[l, w]) + er[l-1, w] * index[l] * sin(phase[l, w])  first 0
        let up[w in W] = (er[L-1, w] - hr[L-1, w])^2 + (ei[L-1, w] - hi[L-1, w])^2
        let down[w in W] = (er[L-1, w] + hr[L-1, w])^2 + (ei[L-1, w] + hi[L-1, w])^2
        minimize sumsq(up ./ down - R) + 0.01 * sumsq(d)""",
        _film,
    ),
    Unseen(
        *("branch_lengths", "phylogenetics: a tree like a caterpillar, by pruning"),
        """dim K, S, base = 4
        data tip[K, S, base], f[base]
        var own[K], inner[K], rate
        let stay = exp(-exp(own + rate - 2))
        let keep = exp(-exp(inner + rate - 2))
        let leaf[k in K, s in S, a in base] =
            stay[k] * tip[k, s, a] + (1 - stay[k]) * sum(f[c] * tip[k, s, c] for c in base)
        let l[k in K, s in S, a in base] = leaf[k, s, a]
            * (keep[k] * l[k-1, s, a] + (1 - keep[k]) * sum(f[c] * l[k-1, s, c] for c in base))
            first leaf[0, s, a]
        minimize -sum(log(sum(f[a] * l[K-1, s, a] for a in base)) for s in S)
            + sumsq(own) / 2 + sumsq(inner) / 2 + rate^2""",
        _tips,
    ),
    Unseen(
        *("market_shares", "econometrics: demand with random coefficients over markets"),
        """dim M, J, C, D
        data X[M, J, C], share[M, J], nu[D, C]
        var b[C], s[C], xi[M, J]
        let u[m in M, j in J, d in D] =
            sum(X[m, j, c] * (b[c] + s[c] * nu[d, c]) for c in C) + xi[m, j]
        let bought[m in M, j in J] =
            mean(exp(u[m, j, d]) / (1 + sum(exp(u[m, k, d]) for k in J)) for d in D)
        minimize 100 * sumsq(log(bought) - log(share)) + sumsq(xi)""",
        _markets,
    ),
    Unseen(
        *("arm_motion", "robotics: joint angles of an arm on a smooth way around obstacles"),
        """dim T = 80, J, O
        data length[J], o[O, 2]
        var q[T, J]
        let angle[t in T, j in J] = sum(q[t, k] for k in J if k <= j)
        let x[t in T, j in J] = sum(length[k] * cos(angle[t, k]) for k in J if k <= j)
        let y[t in T, j in J] = sum(length[k] * sin(angle[t, k]) for k in J if k <= j)
        minimize 10 * sum((q[t+1, j] - q[t, j])^2 for t in range(T - 1), j in J)
            + sum(softplus(8 * (0.4 - sqrt((x[t, j] - o[i, 0])^2 + (y[t, j] - o[i, 1])^2 + 1e-4)))
                  for t in T, j in J, i in O)
            + 100 * ((x[T-1, J-1] - 2)^2 + (y[T-1, J-1] - 1)^2) + 100 * sumsq(q[0, :])""",
        _obstacles,
    ),
    Unseen(
        *("pose_graph", "robotics: poses in the plane from relative measurements"),
        """dim N, n = 300
        data a[N] in n, b[N] in n, dx[N], dy[N], turn[N]
        var x[n], y[n], h[n]
        let ex[k in N] = cos(h[a[k]]) * (x[b[k]] - x[a[k]])
            + sin(h[a[k]]) * (y[b[k]] - y[a[k]]) - dx[k]
        let ey[k in N] = -sin(h[a[k]]) * (x[b[k]] - x[a[k]])
            + cos(h[a[k]]) * (y[b[k]] - y[a[k]]) - dy[k]
        minimize sumsq(ex) + sumsq(ey) + 10 * sum(1 - cos(h[b] - h[a] - turn))
            + x[0]^2 + y[0]^2 + h[0]^2""",
        _odometry,
    ),
    Unseen(
        *("metal_cluster", "materials: a cluster of atoms with the second-moment potential"),
        """dim n, xyz = 3
        data P0[n, xyz]
        var P[n, xyz]
        let Q = P0 + 0.2 * P
        let r[i in n, j in n] = sqrt(sumsq(Q[i, :] - Q[j, :]) + 1e-12)
        let repulsion = sum(0.2 * exp(-10 * (r[i, j] - 1)) for i in n, j in n if j != i)
        let bond[i in n] = sum(exp(-5 * (r[i, j] - 1)) for j in n if j != i)
        minimize repulsion - sum(sqrt(bond))""",
        _atoms,
    ),
    Unseen(
        *("queue_waits", "queueing: waiting times of customers one after another"),
        """dim N, p
        data X[N, p], gap[N], wait[N]
        var b[p], rate, sharpness
        let service = exp(X @ b + rate)
        let k = exp(sharpness)
        let w[i in N] = softplus(k * (w[i-1] + service[i-1] - gap[i])) / k  first 0
        minimize sum((w - wait)^2 ./ (1 + w)) + sumsq(b) + rate^2 + sharpness^2""",
        _customers,
    ),
    Unseen(
        *("trapped_animals", "ecology: capture in traps, with unknown centres of activity"),
        """dim N, R, G, xy = 2
        data trap[R, xy], centre[G, xy], y[N, R]
        var base, width, density[3]
        let rate[g in G, r in R] =
            exp(base - sumsq(centre[g, :] - trap[r, :]) / (2 * exp(2 * width)))
        let prior[g in G] = density[0] * centre[g, 0] / 5 + density[1] * centre[g, 1] / 5
            + density[2] * (centre[g, 0]^2 + centre[g, 1]^2) / 50
        let like[i in N, g in G] = prior[g] - logsumexp(prior)
            + sum(y[i, r] * log(rate[g, r] + 1e-9) - rate[g, r] for r in R)
        minimize -sum(logsumexp(like[i, :]) for i in N) + base^2 + width^2 + sumsq(density)""",
        _traps,
    ),
    Unseen(
        *("gene_counts", "genomics: overdispersed counts of genes in cells, of low rank"),
        """dim N, G, K = 4
        data y[N, G]
        var z[N, K], w[K, G], b[G], phi[G]
        let mu = exp(z @ w + b[None, :])
        let a = exp(phi)
        minimize -sum(lgamma(y[i, g] + a[g]) - lgamma(a[g]) + a[g] * (phi[g] - log(a[g] + mu[i, g]))
                      + y[i, g] * (log(mu[i, g]) - log(a[g] + mu[i, g])) for i in N, g in G)
            + sumsq(z) / 2 + sumsq(w) / 2 + sumsq(phi) / 2""",
        _cells,
    ),
    Unseen(
        *("radio_sources", "astronomy: fluxes and places of sources from visibilities"),
        """dim N, K = 8
        data u[N], v[N], re[N], im[N]
        var flux[K], l[K], m[K]
        let phase[i in N, k in K] = 2 * pi * (u[i] * l[k] + v[i] * m[k])
        let fit[i in N] = sum(exp(flux[k]) * cos(phase[i, k]) for k in K)
        let fit2[i in N] = sum(exp(flux[k]) * sin(phase[i, k]) for k in K)
        minimize sumsq(re - fit) / 2 + sumsq(im - fit2) / 2 + sumsq(flux)""",
        _baselines,
        0.2,
    ),
    Unseen(
        *("spectral_lines", "spectroscopy: peaks of mixed shape over a background"),
        """dim C, P = 9
        data E[C], n[C]
        var height[P], place[P], width[P], mix[P], back[3]
        let z[c in C, p in P] = (E[c] - p - 1 - place[p]) * exp(-width[p])
        let rate[c in C] = exp(back[0] + back[1] * E[c] / 10 + back[2] * (E[c] / 10)^2)
            + sum(exp(height[p]) * (sigmoid(mix[p]) / (1 + z[c, p]^2)
                  + (1 - sigmoid(mix[p])) * exp(-log(2) * z[c, p]^2)) for p in P)
        minimize sum(rate - n .* log(rate)) + sumsq(place) + sumsq(width) + sumsq(mix)""",
        _channels,
    ),
    Unseen(
        *("dose_response", "pharmacology: curves of compounds over plates of wells"),
        """dim N, C = 60, P = 20
        data compound[N] in C, plate[N] in P, dose[N], y[N]
        var top[C], ec50[C], hill[C], shift[P], log_sigma
        let z = exp(hill[compound]) .* (log(dose) - ec50[compound])
        let fit = shift[plate] + exp(top[compound]) .* sigmoid(z)
        minimize sumsq(y - fit) * exp(-2 * log_sigma) / 2 + N * log_sigma
            + (sumsq(top) + sumsq(ec50) + sumsq(hill)) / 2 + 10 * sumsq(shift)""",
        _wells,
    ),
    Unseen(
        *("road_traffic", "transport: flows on routes that share links with congestion"),
        """dim N, K, D, L
        data route[N] in K, link[N] in L, trip[K] in D, demand[D], free[L], room[L]
        var s[K]
        let all[d in D] = sum(exp(s[k]) for k in K if trip[k] == d)
        let h = demand[trip] .* exp(s) ./ all[trip]
        let flow[l in L] = sum(h[route[i]] for i in N if link[i] == l)
        minimize sum(free .* (flow + 0.03 * flow .^ 5 ./ room .^ 4))
            + sum(h .* log(h)) + sumsq(s) / 20""",
        _roads,
    ),
    Unseen(
        *("wave_speeds", "seismology: speeds of waves along a line from its receivers"),
        """dim T, X = 120, R
        data source[T], seen[T, R]
        var m[X]
        let c = 0.2 * exp(2 * m)
        let u[t in T, x in X] = 2 * u[t-1, x] - u[t-2, x]
            + c[x] * (u[t-1, (x+1) % X] - 2 * u[t-1, x] + u[t-1, (x-1) % X])
            + where(x == 10, source[t], 0)
            first 0, 0
        minimize 50 * sum((u[t, 20 * r + 15] - seen[t, r])^2 for t in T, r in R) + sumsq(m)""",
        _shots,
        0.1,
    ),
    Unseen(
        *("edge_image", "vision: a smooth image with an edge set, after Ambrosio and Tortorelli"),
        """dim n
        data g[n, n]
        var u[n, n], e[n, n]
        let dx[i in range(n - 1), j in n] = u[i+1, j] - u[i, j]
        let dy[i in n, j in range(n - 1)] = u[i, j+1] - u[i, j]
        minimize sumsq(u - g)
            + sum(e[i, j]^2 * dx[i, j]^2 for i in range(n - 1), j in n)
            + sum(e[i, j]^2 * dy[i, j]^2 for i in n, j in range(n - 1))
            + 0.1 * (sum((e[i+1, j] - e[i, j])^2 for i in range(n - 1), j in n)
                     + sum((e[i, j+1] - e[i, j])^2 for i in n, j in range(n - 1)))
            + sumsq(1 - e) / 4""",
        _pixels,
    ),
    Unseen(
        *("image_blobs", "graphics: an image as a sum of stretched and turned blobs"),
        """dim n, K = 20
        data I[n, n], at[n]
        var x[K], y[K], a[K], b[K], c[K], w[K]
        let q[k in K, i in n, j in n] = exp(a[k]) * (at[i] - x[k])^2
            + 2 * c[k] * (at[i] - x[k]) * (at[j] - y[k]) + exp(b[k]) * (at[j] - y[k])^2
        let fit[i in n, j in n] = sum(w[k] * exp(-2 * q[k, i, j]) for k in K)
        minimize sumsq(I - fit) / 2 + (sumsq(a) + sumsq(b) + sumsq(c)) / 2""",
        _picture,
    ),
)
"""The third part, in the order of the table."""
