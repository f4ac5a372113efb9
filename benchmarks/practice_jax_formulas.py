"""The models of practice without recurrences in JAX: gathers, segment sums, pairs.

A formula takes the data by name, as NumPy arrays, and the unconstrained variables as one vector x
(n,). What depends on data alone is computed in NumPy, once, before the compilation.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import log_softmax, sigmoid, softplus
from jax.scipy.special import gammaln, log_ndtr, logsumexp

from benchmarks.by_hand import Array, Arrays

J = jax.Array
LOG_2PI = np.log(2 * np.pi)


def sumsq(a: J) -> J:
    return jnp.sum(a * a)


def split(x: J, *sizes: int) -> list[J]:
    """Parts of x (n,) of these sizes; scalars for size 0."""
    parts, start = [], 0
    for size in sizes:
        parts.append(x[start : start + size] if size else x[start])
        start += max(size, 1)
    return parts


def logistic(eta: J, y: Array) -> J:
    return jnp.sum(softplus(eta) - y * eta)


def segments(values: J, g: Array, size: int) -> J:
    return jax.ops.segment_sum(values, g, num_segments=size)


def accidents_spatial(d: Arrays, x: J) -> J:
    n = d["y"].size
    b, s, w, th, ph = split(x, 0, 0, 0, n, n)
    sigma, rho = jnp.exp(s), sigmoid(w)
    z = jnp.sqrt(1 - rho) * th + jnp.sqrt(rho / d["scaling"]) * ph
    rate = np.log(d["E"]) + b + sigma * z
    return (
        jnp.sum(jnp.exp(rate) - d["y"] * rate)
        + (sumsq(ph[d["node1"]] - ph[d["node2"]]) + sumsq(th) + b**2 + sigma**2) / 2
        - (softplus(-w) + softplus(w)) / 2
        + jnp.sum(ph) ** 2 / (2 * (0.001 * n) ** 2)
    )


def ar5(d: Arrays, x: J) -> J:
    y = d["y"]
    alpha, beta, s = split(x, 0, 5, 0)
    lags = np.stack([y[4 - k : y.size - 1 - k] for k in range(5)], axis=1)
    r = y[5:] - alpha - lags @ beta
    sigma = jnp.exp(s)
    prior = alpha**2 / 200 + sumsq(beta) / 200 + jnp.log1p((sigma / 2.5) ** 2)
    return r.size * s + sumsq(r) / (2 * sigma**2) + prior


def bird_counts_sites(d: Arrays, x: J) -> J:
    a, mu, g, w = split(x, 235, 0, 0, 0)
    rate = mu + (5 * sigmoid(w) * a)[d["site"]] + g * ((d["year"] - 4) / 4)
    return jnp.sum(jnp.exp(rate) - d["count"] * rate) + sumsq(a) / 2 + mu**2 / 200 + g**2 / 2


def bone_age_grades(d: Arrays, theta: J) -> J:
    i, j = np.nonzero(d["grade"] > 0)
    grade, last = d["grade"][i, j], d["ncat"][j]
    slope, above, below = d["slope"][j], np.maximum(grade - 2, 0), np.minimum(grade - 1, 3)
    high = sigmoid(slope * (theta[i] - d["threshold"][j, above]))
    low = sigmoid(slope * (theta[i] - d["threshold"][j, below]))
    p = jnp.where(grade == 1, 1.0, high) - jnp.where(grade == last, 0.0, low)
    return -jnp.sum(jnp.log(p)) + sumsq(theta) / (2 * 36**2)


def bundle_small(d: Arrays, x: J) -> J:
    cameras = d["cam0"] + d["scale"] * x[:27].reshape(3, 9)
    places = d["pts0"] + x[27:].reshape(7, 3)
    C, q = cameras[d["camera"]], places[d["point"]]
    w = C[:, :3]
    th2 = jnp.sum(w * w, axis=1, keepdims=True)
    th = jnp.sqrt(th2)
    along = jnp.sum(w * q, axis=1, keepdims=True)
    turned = q * jnp.cos(th) + jnp.cross(w, q) * (jnp.sin(th) / th)
    P = turned + w * along * ((1 - jnp.cos(th)) / th2) + C[:, 3:6]
    uv = -P[:, :2] / P[:, 2:]
    rr = jnp.sum(uv * uv, axis=1)
    r = C[:, 6] * (1 + C[:, 7] * rr + C[:, 8] * rr**2)
    return sumsq(r[:, None] * uv - d["xy"]) / 2


def capture_recapture(d: Arrays, x: J) -> J:
    y = d["y"]
    o, a, gamma, w, e = split(x, 0, 5, 0, 0, y.shape[0])
    before = np.pad(y[:, :-1], ((0, 0), (1, 0)))
    eta = a + (3 * sigmoid(w) * e)[:, None] + gamma * before
    B = jnp.sum(y * eta - softplus(eta), axis=1)
    joint = B - softplus(-o)
    unseen = jnp.logaddexp(joint, -softplus(o))
    terms = jnp.where(y.sum(axis=1) > 0, joint, unseen)
    return -jnp.sum(terms) + sumsq(e) / 2 + gamma**2 / 200


def cox_recidivism(d: Arrays, b: J) -> J:
    events = np.flatnonzero(d["event"])
    eta = d["X"] @ b
    top = jax.lax.stop_gradient(jnp.max(eta))
    sums = jnp.cumsum(jnp.exp(eta - top)[::-1])[::-1]
    return jnp.sum(jnp.log(sums[d["first"][events]]) + top - eta[events])


def digit_tv_deblur(d: Arrays, x: J) -> J:
    X, k = x.reshape(28, 28), d["kernel"]
    blurred = sum(k[a, b] * X[a : a + 26, b : b + 26] for a in range(3) for b in range(3))
    down, right = X[1:, :-1] - X[:-1, :-1], X[:-1, 1:] - X[:-1, :-1]
    return sumsq(d["known"] * (blurred - d["observed"])) / 2 + 0.02 * jnp.sum(
        jnp.sqrt(down**2 + right**2 + 1e-4)
    )


def dogs_learning(d: Arrays, beta: J) -> J:
    y = d["y"]
    shocked = np.cumsum(y, axis=1) - y
    avoided = np.cumsum(1 - y, axis=1) - (1 - y)
    eta = beta[0] + beta[1] * avoided + beta[2] * shocked
    return logistic(eta, y) + sumsq(beta) / 20000


def downloads_trend(d: Arrays, x: J) -> J:
    k, o, delta, s, beta = split(x, 0, 0, 25, 0, 34)
    t, c = d["t"], d["t_change"]
    design = np.hstack([(t[:, None] >= c) * (t[:, None] - c), d["X"]])
    m = k * t + o + design @ jnp.concatenate([delta, beta])
    sigma2 = jnp.exp(2 * s)
    prior = (k**2 + o**2) / 50 + jnp.sum(jnp.abs(delta)) / d["tau"] + 2 * sigma2
    return t.size * s + sumsq(d["y"] - m) / (2 * sigma2) + prior + sumsq(beta / d["sigmas"]) / 2


def drivers_state_space(d: Arrays, x: J) -> J:
    y = d["y"]
    T = y.size
    m, g, beta, lam, c = split(x, T, T, 0, 0, 3)
    scales = jnp.cumsum(jnp.exp(c))
    season = sum(g[11 - k : T - k] for k in range(12))
    rest = y - m - beta * d["x"] - lam * d["w"] - g
    squares = jnp.stack([sumsq(season), sumsq(m[1:] - m[:-1]), sumsq(rest)])
    return jnp.sum(
        np.array([T - 11, T - 1, T]) * jnp.log(scales)
        + squares / (2 * scales**2)
        + 2.5 * jnp.log1p(scales**2 / 4)
    )


def earnings_student_t(d: Arrays, x: J) -> J:
    b, s, q = split(x, 4, 0, 0)
    nu, N = 1 + jnp.exp(q), d["height"].size
    mu = b[0] + b[1] * d["height"] + b[2] * d["male"] + b[3] * (d["height"] * d["male"])
    z = (d["log_earn"] - mu) * jnp.exp(-s)
    constant = gammaln(nu / 2) - gammaln((nu + 1) / 2) + jnp.log(nu * np.pi) / 2 + s
    return N * constant + (nu + 1) / 2 * jnp.sum(jnp.log1p(z**2 / nu))


def eight_schools(d: Arrays, x: J) -> J:
    eta, mu, t = split(x, 8, 0, 0)
    tau = jnp.exp(t)
    r = (d["y"] - mu - tau * eta) / d["sigma"]
    return (sumsq(eta) + sumsq(r)) / 2 + mu**2 / 50 + jnp.log1p((tau / 5) ** 2)


def election_multilevel(d: Arrays, x: J) -> J:
    a, b, c, e, f, beta, w = split(x, 4, 4, 16, 51, 5, 5, 5)
    sigma = 10 * sigmoid(w)
    female, black = d["female"], d["black"]
    eta = (
        beta[0]
        + beta[1] * black
        + beta[2] * female
        + beta[3] * d["v_prev"]
        + beta[4] * (female * black)
        + (sigma[0] * a)[d["age"]]
        + (sigma[1] * b)[d["edu"]]
        + (sigma[2] * c)[d["age_edu"]]
        + (sigma[3] * e)[d["state"]]
        + (sigma[4] * f)[d["region"]]
    )
    return logistic(eta, d["y"]) + sumsq(x[:80]) / 2 + sumsq(beta) / 20000


def gasoline_beta(d: Arrays, x: J) -> J:
    a, b, p = split(x, 10, 0, 0)
    y, phi = d["y"], jnp.exp(p)
    mu = sigmoid(a[d["batch"]] + b * (d["temp"] / 100))
    s, t = mu * phi, (1 - mu) * phi
    terms = gammaln(s) + gammaln(t) - (s - 1) * np.log(y) - (t - 1) * np.log1p(-y)
    return jnp.sum(terms) - y.size * gammaln(phi)


def gene_horseshoe(d: Arrays, x: J) -> J:
    b0, z, t, logs, q = split(x, 0, 200, 0, 200, 0)
    lam2, csq = jnp.exp(2 * logs), 4 * jnp.exp(q)
    tau = jnp.exp(t)
    beta = tau * z * jnp.sqrt(csq * lam2 / (csq + tau**2 * lam2))
    prior = sumsq(z) / 2 + jnp.sum(jnp.log1p(lam2)) + jnp.log1p((tau / d["tau0"]) ** 2)
    last = 51 * q + 50 * jnp.exp(-q) + b0**2 / 50
    return logistic(b0 + d["x"] @ beta, d["y"]) + prior + last


def iris_embedding(d: Arrays, x: J) -> J:
    i, j = np.triu_indices(60, 1)
    Y = x.reshape(60, 2)
    near = 1 + jnp.sum((Y[i] - Y[j]) ** 2, axis=1)
    return 2 * jnp.sum(d["p"][i, j] * jnp.log(near)) + jnp.log(2 * jnp.sum(1 / near))


def irt_2pl_matrix(d: Arrays, x: J) -> J:
    lt, theta, ls, la, mu, lb, b = split(x, 0, 100, 0, 20, 0, 0, 20)
    eta = jnp.exp(la)[:, None] * (theta - b[:, None])
    scales = jnp.stack([lt, ls, lb])
    squares = jnp.stack([sumsq(theta), sumsq(la), sumsq(b - mu)])
    variances = jnp.exp(2 * scales)
    priors = np.array([100, 20, 20]) * scales + squares / (2 * variances) + jnp.log1p(variances / 4)
    return logistic(eta, d["y"]) + jnp.sum(priors) + jnp.sum(la) + mu**2 / 50


def item_response_pairs(d: Arrays, x: J) -> J:
    theta, xi1, xi2, mu, lt, r = split(x, 100, 32, 32, 2, 2, 0)
    tau, rho = jnp.exp(lt), jnp.tanh(r)
    rest = 1 - rho**2
    u = (xi1 - mu[0]) / tau[0]
    w = (xi2 - mu[1] - rho * tau[1] * u) / (jnp.sqrt(rest) * tau[1])
    eta = jnp.exp(xi1)[d["item"]] * (theta[d["person"]] - xi2[d["item"]])
    prior = sumsq(theta) / 2 + 32 * (lt[0] + lt[1] + jnp.log(rest) / 2) + (sumsq(u) + sumsq(w)) / 2
    last = mu[0] ** 2 / 2 + mu[1] ** 2 / 50 + jnp.sum(tau) / 10
    return logistic(eta, d["y"]) + prior - 3 * jnp.log(rest) + last


def lecture_ratings(d: Arrays, x: J) -> J:
    m, p, q, U, W = split(x, 0, 147, 256, 147 * 3, 256 * 3)
    user, item = d["user"], d["item"]
    products = U.reshape(147, 3)[user] * W.reshape(256, 3)[item]
    fit = m + p[user] + q[item] + jnp.sum(products, axis=1)
    return sumsq(d["rating"] - fit) / 2 + sumsq(x[1:]) / 2


def lennard_jones_13(d: Arrays, x: J) -> J:
    i, j = np.triu_indices(13, 1)
    P = x.reshape(13, 3)
    inverse = 1 / jnp.sum((P[i] - P[j]) ** 2, axis=1)
    third = inverse * inverse * inverse
    return 4 * jnp.sum(third * (third - 1))


def lynx_threshold_ar(d: Arrays, x: J) -> J:
    y = d["y"]
    a, b, c, g, s = split(x, 3, 3, 0, 0, 0)
    y1, y2 = y[1:-1], y[:-2]
    w = sigmoid(jnp.exp(g) * (y2 - c))
    low, high = a[0] + a[1] * y1 + a[2] * y2, b[0] + b[1] * y1 + b[2] * y2
    m = low + w * (high - low)
    return y1.size * s + sumsq(y[2:] - m) / 2 * jnp.exp(-2 * s)


def mixture_five(d: Arrays, x: J) -> J:
    z, mu, w = split(x, 4, 5, 5)
    s = 10 * sigmoid(w)
    heads = log_softmax(jnp.append(z, 0.0)) - jnp.log(s)
    terms = heads - ((d["y"][:, None] - mu) / s) ** 2 / 2
    return -jnp.sum(logsumexp(terms, axis=1)) + sumsq(mu) / 200


def mixture_ordered(d: Arrays, x: J) -> J:
    c, logs, w = split(x, 2, 2, 0)
    m, s = jnp.stack([c[0], c[0] + jnp.exp(c[1])]), jnp.exp(logs)
    shares = -softplus(jnp.stack([-w, w]))
    heads = shares - logs
    ends = heads[:, None] - ((d["y"] - m[:, None]) / s[:, None]) ** 2 / 2
    prior = (sumsq(s) + sumsq(m)) / 8 - 4 * jnp.sum(shares)
    return -jnp.sum(jnp.logaddexp(ends[0], ends[1])) + prior


def motorcycle_splines(d: Arrays, x: J) -> J:
    c0, b, z, r, d0, h, w, p = split(x, 0, 0, 38, 0, 0, 0, 38, 0)
    scales = jnp.exp(jnp.stack([r, p]))
    curves = d["Z"] @ (scales[:, None] * jnp.stack([z, w])).T
    m = c0 + b * d["x"] + curves[:, 0]
    q = d0 + h * d["x"] + curves[:, 1]
    loss = jnp.sum(q + (d["y"] - m) ** 2 * jnp.exp(-2 * q) / 2)
    tails = jnp.stack([(c0 + 13) / 36, d0 / 10, scales[0] / 36, scales[1] / 36])
    return loss + (sumsq(z) + sumsq(w)) / 2 + 2 * jnp.sum(jnp.log1p(tails**2 / 3))


def party_multinomial(d: Arrays, x: J) -> J:
    y = d["y"]
    V = jnp.pad(d["X"] @ x.reshape(6, 6), ((0, 0), (1, 0)))
    return jnp.sum(logsumexp(V, axis=1) - V[np.arange(y.size), y])


def rater_error_rates(d: Arrays, x: J) -> J:
    log_pi = log_softmax(jnp.append(x[:3], 0.0))
    log_T = log_softmax(jnp.pad(x[3:].reshape(5, 4, 3), ((0, 0), (0, 0), (0, 1))), axis=2)
    rows = log_T[d["rater"], :, d["rating"]]
    L = log_pi + segments(rows, d["item"], 45)
    return -jnp.sum(logsumexp(L, axis=1)) - 0.1 * jnp.sum(log_T)


def rating_scale_items(d: Arrays, x: J) -> J:
    la, beta, kappa, theta, lam = split(x, 7, 6, 2, 392, 0)
    beta = jnp.append(beta, -jnp.sum(beta))
    kappa = jnp.append(kappa, -jnp.sum(kappa))
    item, y = d["item"], d["y"]
    t = jnp.exp(la)[item] * theta[d["person"]] - beta[item]
    below = jnp.concatenate([jnp.zeros(1), jnp.cumsum(kappa)])
    U = t[:, None] * np.arange(4) - below
    loss = jnp.sum(logsumexp(U, axis=1) - t * y + below[y])
    priors = (sumsq(beta) + sumsq(kappa)) / 18 + sumsq(theta - lam) / 2
    return loss + jnp.sum(la + (la - 1) ** 2 / 2) + priors + 2 * jnp.log1p(lam**2 / 3)


def seeds_binomial(d: Arrays, x: J) -> J:
    a, b, s = split(x, 4, 21, 0)
    sigma = jnp.exp(s)
    eta = a[0] + a[1] * d["x1"] + a[2] * d["x2"] + a[3] * (d["x1"] * d["x2"]) + sigma * b
    loss = jnp.sum(d["N"] * softplus(eta) - d["r"] * eta)
    return loss + sumsq(b) / 2 + sumsq(a) / 2e6 + sigma**2 / 2


def superconductor_vortices(d: Arrays, x: J) -> J:
    h = 0.25
    X, Y, A, B = x.reshape(4, 12, 12)
    s = X**2 + Y**2

    def jumps(axis: int, link: J) -> J:
        cos, sin = jnp.cos(h * link), jnp.sin(h * link)
        X1, Y1 = jnp.roll(X, -1, axis), jnp.roll(Y, -1, axis)
        return sumsq(X1 * cos + Y1 * sin - X) + sumsq(Y1 * cos - X1 * sin - Y)

    curl = (jnp.roll(B, -1, 0) - B - jnp.roll(A, -1, 1) + A) / h
    fields = 25 * h**2 * sumsq(curl - 2 * np.pi / 9)
    return h**2 * jnp.sum(s * s / 2 - s) + jumps(0, A) + jumps(1, B) + fields


def survey_unknown_n(d: Arrays, x: J) -> J:
    from scipy.special import gammaln as lgamma

    k, nmax = d["k"], int(d["nmax"])
    n = np.arange(k.max(), nmax + 1)[:, None]
    ways = np.sum(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1), axis=1)
    seen, unseen = -softplus(-x[0]), -softplus(x[0])
    terms = ways + k.sum() * seen + np.sum(n - k, axis=1) * unseen
    return np.log(nmax) - logsumexp(terms)


def transplant_lognormal(d: Arrays, x: J) -> J:
    log_time, event = np.log(d["time"]), d["event"]
    seen, alive = np.flatnonzero(event), np.flatnonzero(event == 0)
    z = (log_time - x[0] - x[1] * ((d["age"] - 45) / 10)) * jnp.exp(-x[2])
    constant = np.sum(log_time[seen] + LOG_2PI / 2)
    return constant + seen.size * x[2] + sumsq(z[seen]) / 2 - jnp.sum(log_ndtr(-z[alive]))


def travel_mode(d: Arrays, x: J) -> J:
    choice = d["choice"]
    V = jnp.append(x[:3], 0.0) + x[3] * d["gc"] + x[4] * d["ttme"]
    V = V.at[:, 0].add(x[5] * d["hinc"])
    return jnp.sum(logsumexp(V, axis=1) - V[np.arange(choice.size), choice])


def wells_logit(d: Arrays, x: J) -> J:
    return logistic(x[0] + d["X"] @ x[1:], d["y"])


def wine_graphical(d: Arrays, x: J) -> J:
    h, below = split(x, 13, 78)
    L = jnp.diag(jnp.exp(h)).at[np.tril_indices(13, -1)].set(below)
    P = L @ L.T
    smooth = jnp.sum(jnp.sqrt(P**2 + 1e-6)) - jnp.sum(jnp.sqrt(jnp.diag(P) ** 2 + 1e-6))
    return -2 * jnp.sum(h) + jnp.sum(d["S"] * P) + 0.1 * smooth
