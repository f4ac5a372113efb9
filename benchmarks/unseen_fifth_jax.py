"""The fifth part of the unseen models in JAX, as someone who knows it writes them."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.nn import logsumexp, sigmoid, softplus
from jax.scipy.special import digamma, gammaln
from jax.scipy.stats import norm

Data = dict[str, jax.Array]
Formula = Callable[..., jax.Array]

_FAR = 1e10
"""The distance of what no path of a warping reaches."""


def _square_sum(a: jax.Array) -> jax.Array:
    return jnp.sum(a * a)


def paired_views(d: Data, W: jax.Array) -> jax.Array:
    group, Y = d["group"], d["X"] @ W
    Z = Y / jnp.sqrt(jnp.sum(Y * Y, 1, keepdims=True) + 1e-6)
    s, own = Z @ Z.T / 0.2, jnp.eye(len(Y), dtype=bool)
    every = logsumexp(jnp.where(own, -jnp.inf, s), 1)
    alike = (group[:, None] == group) & ~own
    apart = jnp.sum(jnp.where(alike, every[:, None] - s, 0), 1)
    return jnp.mean(apart / 5) + 0.01 * _square_sum(W)


def latent_dirichlet(d: Data, a: jax.Array, b: jax.Array) -> jax.Array:
    g, lam = jnp.exp(a), jnp.exp(b)
    th, be = (digamma(one) - digamma(one.sum(1))[:, None] for one in (g, lam))
    most, highest = th.max(1, keepdims=True), be.max()
    log_p = jnp.log(jnp.exp(th - most) @ jnp.exp(be - highest)) + most + highest
    parts = [
        jnp.sum((c - one) * e + gammaln(one)) - jnp.sum(gammaln(one.sum(1)))
        for c, one, e in ((0.1, g, th), (0.05, lam, be))
    ]
    return -(jnp.sum(d["C"] * log_p) + sum(parts))


def competing_risks(d: Data, B: jax.Array, c: jax.Array) -> jax.Array:
    e = d["X"] @ B
    risk = jnp.cumsum(jnp.exp(e)[::-1], 0)[::-1]
    own = d["cause"][:, None] == jnp.arange(1, 3)
    apart = 0.1 * _square_sum(B[:, 0] - jnp.tanh(c) * B[:, 1])
    return -jnp.sum(jnp.where(own, e - jnp.log(risk), 0)) + apart + 0.1 * _square_sum(B) + c * c


def bundle_adjustment(
    d: Data, r: jax.Array, t: jax.Array, f: jax.Array, k1: jax.Array, Q: jax.Array
) -> jax.Array:
    cam, P = d["cam"], (d["P0"] + Q)[d["pt"]]
    th = jnp.sqrt(jnp.sum(r * r, 1) + 1e-12)
    c, s, o = (one[cam, None] for one in (jnp.cos(th), jnp.sin(th) / th, (1 - jnp.cos(th)) / th**2))
    R = r[cam]
    q = c * P + s * jnp.cross(R, P) + o * jnp.sum(R * P, 1, keepdims=True) * R + t[cam]
    u = q[:, :2] / q[:, 2:]
    e = (jnp.exp(f[cam]) * (1 + k1[cam] * jnp.sum(u * u, 1)))[:, None] * u - d["seen"]
    size = jnp.abs(e)
    loss = jnp.sum(jnp.where(size <= 0.5, e * e / 2, 0.5 * (size - 0.25)))
    return loss + sum(_square_sum(one) for one in (Q, r, t, f, k1))


def galaxy_lens(
    d: Data,
    m: jax.Array,
    x: jax.Array,
    y: jax.Array,
    e: jax.Array,
    sx: jax.Array,
    sy: jax.Array,
    sr: jax.Array,
    bright: jax.Array,
) -> jax.Array:
    at = 0.05 * (jnp.arange(60) - 30.0)
    a, b = at[:, None], at[None]
    m, x, y, e = (one[:, None, None] for one in (m, x, y, e))
    dx, dy = a - x, b - y
    w = jnp.exp(m) * jax.lax.rsqrt(dx * dx * jnp.exp(e) + dy * dy * jnp.exp(-e) + 0.01)
    square = (a - jnp.sum(w * dx, 0) - sx) ** 2 + (b - jnp.sum(w * dy, 0) - sy) ** 2
    light = jnp.exp(bright - jnp.sqrt(square * jnp.exp(-sr) + 0.001))
    penalty = sum(_square_sum(one) for one in (m, x, y, e, sx, sy, sr))
    return _square_sum(light - d["image"]) / 2 + penalty


def count_tensor(d: Data, A: jax.Array, B: jax.Array, C: jax.Array) -> jax.Array:
    a, b, c = jnp.exp(A), jnp.exp(B), jnp.exp(C)
    mu = (a[:, None] * b).reshape(-1, a.shape[1]) @ c.T
    total = jnp.sum(a.sum(0) * b.sum(0) * c.sum(0))
    penalty = 0.1 * (_square_sum(A) + _square_sum(B) + _square_sum(C))
    return total - jnp.sum(d["Y"].reshape(mu.shape) * jnp.log(mu)) + penalty


def hyperbolic_words(d: Data, U: jax.Array) -> jax.Array:
    a, b, other = d["a"], d["b"], d["neg"]
    w, own = 1 / (1 + jnp.sum(U * U, 1)), U[a]
    near = jnp.arccosh(1 + 2 * jnp.sum((own - U[b]) ** 2, 1) * w[a] * w[b] + 1e-6)
    apart = jnp.sum((own[:, None] - U[other]) ** 2, 2)
    far = jnp.arccosh(1 + 2 * apart * w[a][:, None] * w[other] + 1e-6)
    return jnp.sum(near + logsumexp(-far, 1)) + 0.01 * _square_sum(U)


def warped_average(d: Data, z: jax.Array, gamma: jax.Array) -> jax.Array:
    """Along antidiagonals, whose elements do not wait for each other."""
    D, soft = (d["Y"][:, :, None] - z) ** 2, jnp.exp(gamma - 1)
    S, n, m = D.shape
    j = jnp.arange(n + m - 1)[:, None] - jnp.arange(n)
    inside = (j >= 0) & (j < m)
    own = D[:, jnp.arange(n), jnp.clip(j, 0, m - 1)].transpose(1, 0, 2)
    far = jnp.full((S, 1), _FAR)

    def step(
        last: tuple[jax.Array, jax.Array], now: tuple[jax.Array, jax.Array]
    ) -> tuple[tuple[jax.Array, jax.Array], None]:
        before, left = last
        up, across = (jnp.concatenate([far, one[:, :-1]], 1) for one in (left, before))
        least = -soft * logsumexp(jnp.stack([-left, -up, -across]) / soft, 0)
        return (left, jnp.where(now[1], now[0] + least, _FAR)), None

    first = jnp.full((S, n), _FAR).at[:, 0].set(D[:, 0, 0])
    start = (jnp.full((S, n), _FAR), first)
    (_, last), _ = jax.lax.scan(step, start, (own[1:], inside[1:, None]))
    return jnp.sum(last[:, -1]) + _square_sum(z) + gamma**2


def gas_mixtures(d: Data, L: jax.Array) -> jax.Array:
    x = jnp.exp(L)
    energy = d["g"] / d["T"][:, None] + L - jnp.log(x.sum(1, keepdims=True))
    return jnp.sum(x * energy) + 10 * _square_sum(x @ d["A"] - d["total"])


def football_goals(
    d: Data, att: jax.Array, block: jax.Array, h: jax.Array, mu: jax.Array, rho: jax.Array
) -> jax.Array:
    home, away, x, y = d["home"], d["away"], d["x"], d["y"]
    log_x, log_y = mu + h + att[home] - block[away], mu + att[away] - block[home]
    rate_x, rate_y, c = jnp.exp(log_x), jnp.exp(log_y), 0.2 * jnp.tanh(rho)
    none = jnp.where(y == 0, 1 - rate_x * rate_y * c, jnp.where(y == 1, 1 + rate_x * c, 1))
    one = jnp.where(y == 0, 1 + rate_y * c, jnp.where(y == 1, 1 - c, 1))
    tau = jnp.maximum(jnp.where(x == 0, none, jnp.where(x == 1, one, 1)), 1e-6)
    likely = jnp.log(tau) + x * log_x - rate_x + y * log_y - rate_y
    penalty = _square_sum(att) + _square_sum(block) + rho**2
    return -jnp.sum(jnp.exp(-0.3 * d["age"]) * likely) + penalty


def auc_scores(d: Data, b: jax.Array, c: jax.Array) -> jax.Array:
    z, y = d["X"] @ b, d["y"]
    s = jnp.tanh(z) + c * z
    pairs = (y[:, None] == 1) & (y == 0)
    loss = jnp.sum(jnp.where(pairs, softplus(s - s[:, None]), 0)) / jnp.sum(pairs)
    return loss + 0.01 * _square_sum(b) + c * c


def lagged_adverts(
    d: Data, decay: jax.Array, power: jax.Array, b: jax.Array, c: jax.Array
) -> jax.Array:
    w, n = sigmoid(decay) ** jnp.arange(13)[:, None], len(d["sales"])
    before = jnp.concatenate([jnp.zeros((12, len(decay))), d["spend"]])
    stock = sum(w[k] * before[12 - k : 12 - k + n] for k in range(13))
    return _square_sum(d["sales"] - c - stock ** (0.5 * sigmoid(power) + 0.3) @ b) + _square_sum(b)


def nested_shops(d: Data, b: jax.Array, l: jax.Array) -> jax.Array:  # noqa: E741
    nest, pick, lam = d["nest"], d["pick"], sigmoid(l)
    v, rows = (d["X"] @ b) / lam[nest], jnp.arange(len(pick))
    mask = nest == jnp.arange(5)[:, None]
    inside = logsumexp(jnp.where(mask, v[:, None], -jnp.inf), 2)
    own = nest[pick]
    likely = v[rows, pick] + (lam[own] - 1) * inside[rows, own] - logsumexp(lam * inside, 1)
    return -jnp.sum(likely) + _square_sum(l)


def panel_means(d: Data, b: jax.Array, slope: jax.Array, s: jax.Array) -> jax.Array:
    g, e = d["firm"], d["y"] - jnp.tanh(d["X"] * slope) @ b
    count, total = (jax.ops.segment_sum(one, g, 300) for one in (jnp.ones_like(e), e))
    loss = 2 * jnp.sum(jnp.log(1 + (e - (total / count)[g]) ** 2 * jnp.exp(-s)))
    return loss + len(e) * s / 2 + _square_sum(b) + _square_sum(slope)


def soft_ranks(d: Data, b: jax.Array, w: jax.Array) -> jax.Array:
    s = d["X"] @ b + jnp.tanh(d["X"] @ w)
    rank, want = (jnp.sum(sigmoid((one[:, None] - one) / 0.1), 1) for one in (s, d["y"]))
    return _square_sum(rank - want) / len(s) ** 2 + _square_sum(b) + _square_sum(w)


def two_samples(d: Data, W: jax.Array, h: jax.Array) -> jax.Array:
    a, b, s = jnp.tanh(d["here"] @ W), jnp.tanh(d["there"] @ W), jnp.exp(h)

    def likeness(x: jax.Array, y: jax.Array) -> jax.Array:
        square = jnp.sum((x[:, None] - y) ** 2, 2)
        return jnp.exp(-square * s) + 1 / (1 + square * s)

    n, m = len(a), len(b)
    own = sum(jnp.sum(jnp.triu(likeness(one, one), 1)) * 2 / len(one) ** 2 for one in (a, b))
    return -(own - 2 * jnp.sum(likeness(a, b)) / (n * m) - 0.1 * _square_sum(W) - h * h)


def ordered_grades(d: Data, b: jax.Array, step: jax.Array, a: jax.Array) -> jax.Array:
    y, cut, e = d["y"].astype(int), a + jnp.cumsum(jnp.exp(step)), d["X"] @ b
    most = len(cut)
    below, rows = norm.cdf(cut - e[:, None]), jnp.arange(len(y))
    end = jnp.where(y == 0, below[:, 0], jnp.where(y == most, norm.cdf(e - cut[-1]), 0.5))
    middle, place = (y > 0) & (y < most), jnp.clip(y, 1, most - 1)
    share = jnp.where(middle, below[rows, place] - below[rows, place - 1], 1.0)
    return -jnp.sum(jnp.log(end + 1e-12) + jnp.log(share)) + _square_sum(step) + _square_sum(b)


def neural_spikes(d: Data, mu: jax.Array, A: jax.Array, b: jax.Array) -> jax.Array:
    t, m, beta = d["t"], d["kind"], jnp.exp(b)
    earlier = jnp.tril(jnp.ones((len(t), len(t)), dtype=bool), -1)
    apart = jnp.where(earlier, t[:, None] - t, 0)
    weight = jnp.exp(A)
    each = jnp.where(earlier, weight[m][:, m] * beta * jnp.exp(-beta * apart), 0)
    rate = jnp.exp(mu)[m] + jnp.sum(each, 1)
    end = jnp.sum(weight[:, m] * (1 - jnp.exp(-beta * (50 - t))))
    base = 50 * jnp.sum(jnp.exp(mu))
    return -jnp.sum(jnp.log(rate)) + base + end + _square_sum(A) + b * b


FIFTH_FORMULAS: dict[str, Formula] = {
    one.__name__: one
    for one in (
        *(paired_views, latent_dirichlet, competing_risks, bundle_adjustment, galaxy_lens),
        *(count_tensor, hyperbolic_words, warped_average, gas_mixtures, football_goals),
        *(auc_scores, lagged_adverts, nested_shops, panel_means, soft_ranks, two_samples),
        *(ordered_grades, neural_spikes),
    )
}
