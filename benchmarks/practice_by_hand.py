"""Models of practice by hand in NumPy: those whose gradient a user would write down.

A constructor takes the data by name and computes once what depends on them alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit, log_expit

from benchmarks.by_hand import Array, Arrays

Evaluate = Callable[[Array], tuple[float, Array]]


def wells_logit(d: Arrays) -> Evaluate:
    X = np.column_stack([np.ones(d["y"].size), d["X"]])
    y = d["y"].astype(float)

    def run(x: Array) -> tuple[float, Array]:
        eta = X @ x
        return -np.sum(log_expit(-eta)) - y @ eta, (expit(eta) - y) @ X

    return run


def dogs_learning(d: Arrays) -> Evaluate:
    y = d["y"]
    shocked, avoided = np.cumsum(y, axis=1) - y, np.cumsum(1 - y, axis=1) - (1 - y)
    X = np.column_stack([np.ones(y.size), avoided.ravel(), shocked.ravel()])
    labels = y.ravel().astype(float)

    def run(x: Array) -> tuple[float, Array]:
        eta = X @ x
        loss = -np.sum(log_expit(-eta)) - labels @ eta
        return loss + x @ x / 20000, (expit(eta) - labels) @ X + x / 10000

    return run


def ar5(d: Arrays) -> Evaluate:
    y = d["y"]
    X = np.column_stack([np.ones(y.size - 5), *(y[4 - k : y.size - 1 - k] for k in range(5))])
    later = y[5:]

    def run(x: Array) -> tuple[float, Array]:
        r = later - X @ x[:6]
        scale, squares = np.exp(-2 * x[6]), r @ r
        ratio = np.exp(2 * x[6]) / 6.25
        prior = x[:6] @ x[:6] / 200 + np.log1p(ratio)
        last = r.size - squares * scale + 2 * ratio / (1 + ratio)
        slope = np.append(x[:6] / 100 - scale * (r @ X), last)
        return r.size * x[6] + squares * scale / 2 + prior, slope

    return run


def eight_schools(d: Arrays) -> Evaluate:
    y, inverse = d["y"], 1 / d["sigma"]

    def run(x: Array) -> tuple[float, Array]:
        eta, mu, tau = x[:8], x[8], np.exp(x[9])
        r = (mu + tau * eta - y) * inverse
        scaled, ratio = r * inverse, (tau / 5) ** 2
        ends = [scaled.sum() + mu / 25, tau * (scaled @ eta) + 2 * ratio / (1 + ratio)]
        value = (eta @ eta + r @ r) / 2 + mu**2 / 50 + np.log1p(ratio)
        return value, np.append(eta + tau * scaled, ends)

    return run


def seeds_binomial(d: Arrays) -> Evaluate:
    r, N = d["r"], d["N"]
    X = np.stack([np.ones(r.size), d["x1"], d["x2"], d["x1"] * d["x2"]])

    def run(x: Array) -> tuple[float, Array]:
        a, b, sigma = x[:4], x[4:25], np.exp(x[25])
        eta = a @ X + sigma * b
        slope = N * expit(eta) - r
        value = -N @ log_expit(-eta) - r @ eta + b @ b / 2 + a @ a / 2e6 + sigma**2 / 2
        last = [sigma * (slope @ b) + sigma**2]
        return value, np.concatenate([X @ slope + a / 1e6, sigma * slope + b, last])

    return run


def bird_counts_sites(d: Arrays) -> Evaluate:
    site, count, year = d["site"], d["count"].astype(float), (d["year"] - 4) / 4

    def run(x: Array) -> tuple[float, Array]:
        a, mu, g, share = x[:235], x[235], x[236], expit(x[237])
        sd = 5 * share
        rate = mu + (sd * a)[site] + g * year
        e = np.exp(rate)
        r = e - count
        by_site = np.bincount(site, r, minlength=235)
        ends = [r.sum() + mu / 100, r @ year + g, sd * (1 - share) * (by_site @ a)]
        value = e.sum() - count @ rate + a @ a / 2 + mu**2 / 200 + g**2 / 2
        return value, np.append(sd * by_site + a, ends)

    return run


def election_multilevel(d: Arrays) -> Evaluate:
    names, sizes = ("age", "edu", "age_edu", "state", "region"), (4, 4, 16, 51, 5)
    ends = np.cumsum((0, *sizes))
    groups, y = [d[name] for name in names], d["y"].astype(float)
    columns = (np.ones(y.size), d["black"], d["female"], d["v_prev"], d["female"] * d["black"])
    known = np.column_stack(columns)

    def run(x: Array) -> tuple[float, Array]:
        share, beta = expit(x[85:]), x[80:85]
        eta, slope = known @ beta, np.empty(90)
        for k, group in enumerate(groups):
            eta += (10 * share[k] * x[ends[k] : ends[k + 1]])[group]
        r = expit(eta) - y
        for k, group in enumerate(groups):
            a = x[ends[k] : ends[k + 1]]
            sums = np.bincount(group, r, minlength=sizes[k])
            slope[ends[k] : ends[k + 1]] = 10 * share[k] * sums + a
            slope[85 + k] = 10 * share[k] * (1 - share[k]) * (sums @ a)
        slope[80:85] = r @ known + beta / 10000
        value = -np.sum(log_expit(-eta)) - y @ eta + x[:80] @ x[:80] / 2 + beta @ beta / 20000
        return value, slope

    return run


def lecture_ratings(d: Arrays) -> Evaluate:
    user, item, rating = d["user"], d["item"], d["rating"].astype(float)

    def run(x: Array) -> tuple[float, Array]:
        U, W = x[404:845].reshape(147, 3), x[845:].reshape(256, 3)
        own, other = U[user], W[item]
        r = x[0] + x[1:148][user] + x[148:404][item] + np.einsum("nk,nk->n", own, other) - rating
        slope = x.copy()
        slope[0] = r.sum()
        slope[1:148] += np.bincount(user, r, minlength=147)
        slope[148:404] += np.bincount(item, r, minlength=256)
        for k in range(3):
            slope[404 + k : 845 : 3] += np.bincount(user, r * other[:, k], minlength=147)
            slope[845 + k :: 3] += np.bincount(item, r * own[:, k], minlength=256)
        return (r @ r + x[1:] @ x[1:]) / 2, slope

    return run


def cox_recidivism(d: Arrays) -> Evaluate:
    X, events = d["X"], np.flatnonzero(d["event"])
    first, last = d["first"][events], d["X"][events].sum(axis=0)
    N = X.shape[0]

    def run(b: Array) -> tuple[float, Array]:
        eta = X @ b
        top = eta.max()
        e = np.exp(eta - top)
        sums = np.cumsum(e[::-1])[::-1][first]
        shares = np.cumsum(np.bincount(first, 1 / sums, minlength=N))
        return np.sum(np.log(sums)) + top * sums.size - b @ last, (shares * e) @ X - last

    return run


def party_multinomial(d: Arrays) -> Evaluate:
    X, y = d["X"], d["y"]
    chosen = (y[:, None] == np.arange(1, 7)).astype(float)
    sums = X.T @ chosen

    def run(x: Array) -> tuple[float, Array]:
        V = X @ x.reshape(6, 6)
        top = np.maximum(V.max(axis=1), 0.0)
        e = np.exp(V - top[:, None])
        total = e.sum(axis=1) + np.exp(-top)
        e /= total[:, None]
        value = np.sum(np.log(total) + top) - x @ sums.ravel()
        return value, (X.T @ e - sums).ravel()

    return run


def accidents_spatial(d: Arrays) -> Evaluate:
    p, q, y, scaling = d["node1"], d["node2"], d["y"].astype(float), float(d["scaling"])
    n, log_E = y.size, np.log(d["E"])

    def run(x: Array) -> tuple[float, Array]:
        b, sigma, rho = x[0], np.exp(x[1]), expit(x[2])
        th, ph = x[3 : 3 + n], x[3 + n :]
        own, common = np.sqrt(1 - rho), np.sqrt(rho / scaling)
        z = own * th + common * ph
        rate = log_E + b + sigma * z
        e = np.exp(rate)
        r, apart, total = e - y, ph[p] - ph[q], ph.sum()
        pull = np.bincount(p, apart, minlength=n) - np.bincount(q, apart, minlength=n)
        by_own, by_common = sigma * (r @ th), sigma * (r @ ph)
        by_rho = by_common * common * (1 - rho) / 2 - by_own * own * rho / 2
        wide = (0.001 * n) ** 2
        value = e.sum() - y @ rate + (apart @ apart + th @ th + b**2 + sigma**2) / 2
        value += (np.log(rho) + np.log1p(-rho)) / 2 + total**2 / (2 * wide)
        slope = np.empty(3 + 2 * n)
        slope[:3] = r.sum() + b, sigma * (r @ z) + sigma**2, by_rho + 0.5 - rho
        slope[3 : 3 + n] = sigma * own * r + th
        slope[3 + n :] = sigma * common * r + pull + total / wide
        return value, slope

    return run


BY_HAND: dict[str, Callable[[Arrays], Evaluate]] = {
    constructor.__name__: constructor
    for constructor in (
        *(wells_logit, dogs_learning, ar5, eight_schools, seeds_binomial, bird_counts_sites),
        *(election_multilevel, lecture_ratings, cox_recidivism, party_multinomial),
        *(accidents_spatial,),
    )
}
"""A constructor of value and gradient for each model that has one."""
