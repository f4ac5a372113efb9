"""The fourth part of the unseen models in JAX, as someone who knows it writes them."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import log_sigmoid, log_softmax, logsumexp, sigmoid, softmax, softplus
from jax.scipy.linalg import cho_factor, cho_solve
from jax.scipy.special import gammaln
from jax.scipy.stats import norm

Data = dict[str, jax.Array]
Formula = Callable[..., jax.Array]


def _square_sum(a: jax.Array) -> jax.Array:
    return jnp.sum(a * a)


def diffraction_peaks(
    d: Data, height: jax.Array, shift: jax.Array, width: jax.Array, mix: jax.Array, base: jax.Array
) -> jax.Array:
    angle, count = d["angle"], d["count"]
    at = (angle[:, None] - 0.6 * jnp.arange(15) - shift) / jnp.exp(width - 2)
    share, square = sigmoid(mix), at * at
    peaks = share / (1 + square) + (1 - share) * jnp.exp(-jnp.log(2.0) * square)
    ground = jnp.exp(base[0] + 0.1 * base[1] * angle + 0.01 * base[2] * angle**2) + base[3] ** 2
    rate = ground + peaks @ jnp.exp(height)
    penalty = sum(_square_sum(one) for one in (height, shift, width, mix))
    return jnp.sum(rate - count * jnp.log(rate)) + penalty


def soft_cut(d: Data, Z: jax.Array) -> jax.Array:
    a, b, w = d["a"], d["b"], d["w"]
    H = softmax(Z, 1)
    degree = jnp.zeros(len(Z)).at[a].add(w).at[b].add(w)
    cut, volume = w @ (H[a] - H[b]) ** 2, degree @ H
    return jnp.sum(cut / volume) + 0.1 * _square_sum(volume) / jnp.sum(degree) ** 2


def balanced_tree(
    d: Data, t4: jax.Array, t3: jax.Array, t2: jax.Array, t1: jax.Array, kappa: jax.Array
) -> jax.Array:
    f, like = d["f"], d["tip"]
    one, across = jnp.eye(4), jnp.eye(4)[jnp.array([2, 3, 0, 1])]

    def matrices(t: jax.Array) -> jax.Array:
        slow, fast = (jnp.exp(-jnp.exp(u - 1))[:, None, None] for u in (t, t + kappa))
        return f * (1 - slow) + one * (slow + fast) / 2 + across * (slow - fast) / 2

    for t in (t4, t3, t2, t1):
        up = jnp.einsum("iab,isb->isa", matrices(t), like)
        like = up[::2] * up[1::2]
    lengths = sum(_square_sum(t) for t in (t4, t3, t2, t1))
    return -jnp.sum(jnp.log(like[0] @ f)) + lengths + kappa**2


def sentence_tags(d: Data, W: jax.Array, A: jax.Array, start: jax.Array) -> jax.Array:
    tag, e = d["tag"], d["X"] @ W

    def step(f: jax.Array, e: jax.Array) -> tuple[jax.Array, None]:
        return e + logsumexp(f[:, :, None] + A, 1), None

    last, _ = jax.lax.scan(step, e[:, 0] + start, jnp.swapaxes(e, 0, 1)[1:])
    own = jnp.sum(jnp.take_along_axis(e, tag[..., None], 2))
    path = jnp.sum(start[tag[:, 0]]) + own + jnp.sum(A[tag[:, :-1], tag[:, 1:]])
    return jnp.sum(logsumexp(last, 1)) - path + 0.1 * _square_sum(W) + 0.1 * _square_sum(A)


def spoken_word(d: Data, W: jax.Array, c: jax.Array) -> jax.Array:
    q = log_softmax(d["X"] @ W + c, 1)
    e, skip = jnp.exp(q[:, d["letter"]] + 3), d["skip"]
    zero = jnp.zeros(2)

    def step(p: jax.Array, e: jax.Array) -> tuple[jax.Array, None]:
        one = jnp.concatenate([zero[:1], p[:-1]])
        two = jnp.concatenate([zero, p[:-2]])
        return e * (p + one + skip * two), None

    last, _ = jax.lax.scan(step, jnp.where(jnp.arange(len(skip)) < 2, e[0], 0), e[1:])
    return -jnp.log(last[-1] + last[-2]) + 0.01 * _square_sum(W) + 0.01 * _square_sum(c)


def backbone_torsions(d: Data, P: jax.Array) -> jax.Array:
    Q = d["walk"] + P
    b = Q[1:] - Q[:-1]
    m, r = jnp.cross(b[:-1], b[1:]), jnp.sqrt(jnp.sum(b * b, 1))
    bend = jnp.arccos(-jnp.sum(b[:-1] * b[1:], 1) / (1.0001 * r[:-1] * r[1:]))
    turn = jnp.arctan2(r[1:-1] * jnp.sum(b[:-2] * m[1:], 1), jnp.sum(m[:-1] * m[1:], 1))
    bonds = 10 * _square_sum(r - 1.5) + 5 * _square_sum(bend - 1.9)
    return bonds + jnp.sum(1 + jnp.cos(3 * turn - 1))


def listed_ranking(d: Data, W: jax.Array, b: jax.Array, v: jax.Array) -> jax.Array:
    s, gain = jnp.tanh(d["X"] @ W + b) @ v, 2 ** d["grade"]
    weight = jnp.maximum(gain[:, :, None] - gain[:, None], 0)
    loss = jnp.sum(softplus(s[:, None] - s[:, :, None]) * weight)
    return loss + _square_sum(W) + _square_sum(v)


def policy_value(d: Data, W: jax.Array, c: jax.Array) -> jax.Array:
    log_pi = log_softmax(d["X"] @ W + c, 1)
    taken = jnp.take_along_axis(log_pi, d["action"][:, None], 1)[:, 0]
    value = jnp.mean(jnp.minimum(jnp.exp(taken) / d["propensity"], 3) * d["reward"])
    entropy = jnp.mean(jnp.sum(jnp.exp(log_pi) * log_pi, 1))
    return -(value - 0.1 * entropy - 0.01 * _square_sum(W))


def capsules(d: Data, W: jax.Array) -> jax.Array:
    p = jnp.einsum("jak,nik->nija", W, d["u"])
    s1 = jnp.mean(p, 1)
    square = jnp.sum(s1 * s1, 2, keepdims=True)
    v1 = s1 * jnp.sqrt(square) / (1 + square)
    c = softmax(jnp.einsum("nija,nja->nij", p, v1), 2)
    s2 = jnp.einsum("nij,nija->nja", c, p) / p.shape[1]
    square = jnp.sum(s2 * s2, 2)
    long, Y = square / (1 + square), d["Y"]
    near, far = jnp.maximum(0.9 - long, 0) ** 2, jnp.maximum(long - 0.1, 0) ** 2
    return jnp.sum(Y * near + 0.5 * (1 - Y) * far) + 0.01 * _square_sum(W)


def heated_plate(d: Data, k: jax.Array) -> jax.Array:
    c = 0.1 * jnp.exp(k[1:-1, 1:-1])

    def step(u: jax.Array, _: None) -> tuple[jax.Array, None]:
        near = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
        return u.at[1:-1, 1:-1].add(c * (near - 4 * u[1:-1, 1:-1])), None

    last, _ = jax.lax.scan(step, d["u0"], None, length=39)
    smooth = _square_sum(k[1:] - k[:-1]) + _square_sum(k[:, 1:] - k[:, :-1])
    return _square_sum(last - d["seen"]) + 0.01 * smooth


def drug_levels(
    d: Data,
    ka: jax.Array,
    vmax: jax.Array,
    km: jax.Array,
    volume: jax.Array,
    eta: jax.Array,
    s: jax.Array,
) -> jax.Array:
    y, half, rate = d["y"], jnp.exp(km), jnp.exp(ka)
    clear = jnp.exp(vmax + 0.3 * eta) * d["weight"]

    def blood(g: jax.Array, b: jax.Array) -> jax.Array:
        return rate * g - clear * b / (half + b)

    def step(state: tuple[jax.Array, jax.Array], _: None) -> tuple[object, jax.Array]:
        g, b = state
        new = b + 0.1 * blood(g - 0.05 * rate * g, b + 0.05 * blood(g, b))
        return (g * (1 - 0.1 * rate + 0.005 * rate**2), new), new

    zero = jnp.zeros(len(y))
    _, later = jax.lax.scan(step, (zero + 5, zero), None, length=y.shape[1] - 1)
    b = jnp.concatenate([zero[None], later]).T
    loss = _square_sum(y - jnp.log(b + 0.1) + volume) * jnp.exp(-2 * s) / 2 + y.size * s
    return loss + _square_sum(eta) / 2 + ka**2 + vmax**2 + km**2 + volume**2


def spam_words(d: Data, w: jax.Array, c: jax.Array) -> jax.Array:
    spam, A = d["spam"], np.asarray(d["A"])
    row, column = np.nonzero(A)
    entry = jnp.asarray(A[row, column])
    z = jnp.zeros(len(spam)).at[row].add(entry * w[column], indices_are_sorted=True) + c
    return jnp.sum(softplus(z) - spam * z) + 0.1 * jnp.sum(jnp.sqrt(w * w + 1e-4))


def paired_ranks(d: Data, b: jax.Array, g: jax.Array, mix: jax.Array) -> jax.Array:
    u, v, z = d["u"], d["v"], d["z"]
    t, a = 3 + z @ b, jnp.exp(z @ g)
    e = jnp.expm1(-t)
    joint = jnp.log(jnp.abs(e + jnp.expm1(-t * u) * jnp.expm1(-t * v)))
    frank = jnp.log(jnp.abs(t) * jnp.abs(e)) - t * (u + v) - 2 * joint
    power = jnp.log(u ** (-a) + v ** (-a) - 1)
    clayton = jnp.log1p(a) - (a + 1) * (jnp.log(u) + jnp.log(v)) - (2 + 1 / a) * power
    mixed = jnp.logaddexp(log_sigmoid(mix) + frank, log_sigmoid(-mix) + clayton)
    return -jnp.sum(mixed) + _square_sum(b) + _square_sum(g)


def tracked_target(d: Data, q: jax.Array, r: jax.Array, damping: jax.Array) -> jax.Array:
    y, f, Q, R = d["y"], sigmoid(damping + 2), jnp.exp(2 * q), jnp.exp(2 * r)
    ten = jnp.asarray(10.0)

    def gains(s11: jax.Array, s12: jax.Array, s22: jax.Array) -> tuple[jax.Array, jax.Array]:
        return s11 / (s11 + R), s12 / (s11 + R)

    def step(state: tuple[jax.Array, ...], y: jax.Array) -> tuple[object, jax.Array]:
        s11, s12, s22, a, v = state
        k1, k2 = gains(s11, s12, s22)
        f11, f12, f22 = k1 * R, k2 * R, s22 - s12 * k2
        s11 = f11 + 2 * f12 + f22 + Q / 3
        s12 = f * (f12 + f22) + Q / 2
        s22 = f * f * f22 + Q
        k1, k2 = gains(s11, s12, s22)
        e = y - a - v
        own = jnp.log(s11 + R) + jnp.sum(e * e) / (2 * (s11 + R))
        return (s11, s12, s22, a + v + k1 * e, f * v + k2 * e), own

    first = (ten, 0 * ten, ten, y[0], 0 * y[0])
    _, terms = jax.lax.scan(step, first, y[1:])
    return jnp.log(10 + R) + jnp.sum(terms) + q**2 + r**2 + damping**2


def flood_levels(
    d: Data,
    mu: jax.Array,
    trend: jax.Array,
    scale: jax.Array,
    shape: jax.Array,
    m: jax.Array,
    s: jax.Array,
) -> jax.Array:
    site, x = d["site"], 0.2 * sigmoid(shape)
    z = (d["y"] - mu[site] - trend[site] * d["year"]) / jnp.exp(scale[site] + 1)
    g = jnp.log(jnp.maximum(1 + x * z, 0.01)) / x
    loss = jnp.sum(jnp.exp(-g) + (1 + x) * g + scale[site])
    return loss + _square_sum(mu - m) + _square_sum(trend) + _square_sum(scale - s) + m**2 + s**2


def insured_claims(d: Data, b: jax.Array, g: jax.Array, c: jax.Array, k: jax.Array) -> jax.Array:
    X, y = d["X"], d["y"]
    eta, out, phi = X @ b + c, X @ g - 1, jnp.exp(k)
    total = jnp.log(phi + jnp.exp(eta))
    counted = gammaln(y + phi) - gammaln(phi) - gammaln(y + 1)
    counted += phi * (k - total) + y * (eta - total)
    none, some = log_sigmoid(out), log_sigmoid(-out) + counted
    loss = -jnp.sum(jnp.where(y == 0, jnp.logaddexp(none, some), some))
    return loss + _square_sum(b) + _square_sum(g) + c**2 + k**2


def many_outputs(d: Data, L: jax.Array, length: jax.Array, noise: jax.Array) -> jax.Array:
    t, Y = d["t"], d["Y"]
    N, M = Y.shape
    K = jnp.exp(-((t[:, None] - t) ** 2) * jnp.exp(-2 * length) / 2)
    K += jnp.exp(noise - 3) * jnp.eye(N)
    B = L @ L.T + 0.5 * jnp.eye(M)
    cK, cB = cho_factor(K, lower=True), cho_factor(B, lower=True)
    logs = [2 * jnp.sum(jnp.log(jnp.diagonal(c[0]))) for c in (cK, cB)]
    fit = jnp.trace(cho_solve(cB, Y.T @ cho_solve(cK, Y)))
    loss = (M * logs[0] + N * logs[1] + fit) / 2
    return loss + _square_sum(L) + length**2 + noise**2


def cited_papers(d: Data, W1: jax.Array, c1: jax.Array, W2: jax.Array) -> jax.Array:
    a, b, X = d["a"], d["b"], d["X"]
    degree = jnp.ones(len(X)).at[b].add(1.0)[:, None]
    H0 = X @ W1
    H1 = jnp.tanh(H0.at[b].add(H0[a]) / degree + c1)
    Z0 = H1 @ W2
    logs = log_softmax(Z0.at[b].add(Z0[a]) / degree, 1)
    own = jnp.take_along_axis(logs, d["label"][:, None], 1)
    return -jnp.mean(own) + 0.01 * _square_sum(W1)


def gated_units(
    d: Data,
    Wz: jax.Array,
    Uz: jax.Array,
    Wr: jax.Array,
    Ur: jax.Array,
    Wc: jax.Array,
    Uc: jax.Array,
    v: jax.Array,
) -> jax.Array:
    X, y = d["X"], d["y"]
    h = len(v)
    W, U = jnp.concatenate([Wz, Wr, Wc], 1), jnp.concatenate([Uz, Ur], 1)

    def step(s: jax.Array, e: jax.Array) -> tuple[jax.Array, None]:
        gates = sigmoid(e[:, : 2 * h] + s @ U)
        z, r = gates[:, :h], gates[:, h:]
        return (1 - z) * s + z * jnp.tanh(e[:, 2 * h :] + (r * s) @ Uc), None

    last, _ = jax.lax.scan(step, jnp.zeros((len(y), h)), X @ W)
    return _square_sum(last @ v - y)


def local_experts(d: Data, G: jax.Array, B: jax.Array, s: jax.Array) -> jax.Array:
    X, y = d["X"], d["y"][:, None]
    gate = log_softmax(X @ G, 1)
    own = gate - (y - X @ B) ** 2 * jnp.exp(-2 * s) / 2 - s
    return -jnp.sum(logsumexp(own, 1)) + _square_sum(G) + _square_sum(B) + _square_sum(s)


def normalised_layer(
    d: Data, W: jax.Array, V: jax.Array, gain: jax.Array, shift: jax.Array
) -> jax.Array:
    X = d["X"]
    A = X @ W
    H = X + (A * norm.cdf(A)) @ V
    H = H - jnp.mean(H, 1, keepdims=True)
    Z = gain * H * jax.lax.rsqrt(jnp.mean(H * H, 1, keepdims=True) + 1e-5) + shift
    return jnp.mean((Z - d["Y"]) ** 2) + 0.001 * _square_sum(W) + 0.001 * _square_sum(V)


def aftershocks(
    data: Data,
    mu: jax.Array,
    k: jax.Array,
    alpha: jax.Array,
    c: jax.Array,
    p: jax.Array,
    d: jax.Array,
) -> jax.Array:
    t, place = data["t"], data["place"]
    strength = jnp.exp(k + jnp.exp(alpha) * data["m"] - 2)
    i, j = jnp.tril_indices(len(t), -1)
    square = jnp.sum((place[i] - place[j]) ** 2, 1)
    own = strength[j] * (t[i] - t[j] + jnp.exp(c)) ** (-1 - jnp.exp(p))
    own = own / (square + jnp.exp(d)) ** 1.5
    rate = jnp.exp(mu) + jnp.zeros(len(t)).at[i].add(own, indices_are_sorted=True)
    total = 100 * jnp.exp(mu) + jnp.sum(strength) * jnp.exp(-c * jnp.exp(p))
    penalty = mu**2 + k**2 + alpha**2 + c**2 + p**2 + d**2
    return -jnp.sum(jnp.log(rate)) + total + penalty


def planned_orbits(d: Data, v0: jax.Array) -> jax.Array:
    m = d["m"]

    def step(state: tuple[jax.Array, jax.Array], _: None) -> tuple[object, None]:
        v, q = state
        gap = q - q[:, None]
        pull = m / (jnp.sum(gap * gap, 2) + 0.01) ** 1.5
        v = v + 0.02 * jnp.sum(pull[..., None] * gap, 1)
        return (v, q + 0.02 * v), None

    (_, q), _ = jax.lax.scan(step, (v0, d["q0"]), None, length=59)
    return _square_sum(q - d["aim"]) + 0.1 * _square_sum(v0)


def planar_flow(d: Data, w: jax.Array, u: jax.Array, b: jax.Array) -> jax.Array:
    z, logs = d["at"], 0.0
    for w_, u_, b_ in zip(w, u, b, strict=True):
        t = jnp.tanh(z @ w_ + b_)
        logs += jnp.sum(jnp.log(jnp.abs(1 + (w_ @ u_) * (1 - t * t))))
        z = z + u_ * t[:, None]
    return _square_sum(z) / 2 - logs + _square_sum(w) + _square_sum(u)


FOURTH_FORMULAS: dict[str, Formula] = {
    formula.__name__: formula
    for formula in (
        *(diffraction_peaks, soft_cut, balanced_tree, sentence_tags, spoken_word),
        *(backbone_torsions, listed_ranking, policy_value, capsules, heated_plate, drug_levels),
        *(spam_words, paired_ranks, tracked_target, flood_levels, insured_claims, many_outputs),
        *(cited_papers, gated_units, local_experts, normalised_layer, aftershocks),
        *(planned_orbits, planar_flow),
    )
}
