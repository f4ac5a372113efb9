"""The second part of the unseen models in JAX, as someone who knows it writes them."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import log_softmax, logsumexp, one_hot, sigmoid, softplus

Data = dict[str, jax.Array]
Formula = Callable[..., jax.Array]


def _square_sum(a: jax.Array) -> jax.Array:
    return jnp.sum(a * a)


def topic_mixture(d: Data, a: jax.Array, b: jax.Array) -> jax.Array:
    theta, phi = jax.nn.softmax(a, 1), jax.nn.softmax(b, 1).T
    p = jnp.sum(theta[d["doc"]] * phi[d["word"]], 1)
    return -jnp.sum(d["count"] * jnp.log(p)) + (_square_sum(a) + _square_sum(b)) / 20


def hidden_states(d: Data, A: jax.Array, mu: jax.Array, s: jax.Array) -> jax.Array:
    P = log_softmax(A, 1)
    e = -jnp.sum(s + ((d["y"][:, None] - mu) * jnp.exp(-s)) ** 2 / 2, 2)

    def step(f: jax.Array, own: jax.Array) -> tuple[jax.Array, None]:
        return own + logsumexp(f[:, None] + P, 0), None

    last, _ = jax.lax.scan(step, e[0] - jnp.log(5.0), e[1:])
    return -logsumexp(last)


def binary_network(d: Data, J: jax.Array, h: jax.Array) -> jax.Array:
    S = d["S"]
    field = S @ (J * (1 - jnp.eye(len(h)))) + h
    return jnp.sum(softplus(-2 * S * field)) + 5 * jnp.sum(jnp.sqrt(J * J + 1e-4))


def weekly_cases(
    d: Data, b: jax.Array, season: jax.Array, g: jax.Array, rho: jax.Array
) -> jax.Array:
    cases = d["cases"]
    beta = jnp.exp(b + season * jnp.cos(2 * jnp.pi * jnp.arange(cases.size) / 52)) / 10
    recovery = jnp.exp(g) / 10

    def step(v: tuple[jax.Array, jax.Array], r: jax.Array) -> tuple[object, jax.Array]:
        S, ill = v
        new = r * S * ill
        return (S - new, ill + new - recovery * ill), ill + new - recovery * ill

    _, ill = jax.lax.scan(step, (jnp.array(0.95), jnp.array(0.01)), beta[1:])
    rate = 1000 * jnp.exp(rho) * jnp.concatenate([jnp.array([0.01]), ill]) + 1
    return jnp.sum(rate - cases * jnp.log(rate)) + (b**2 + season**2 + g**2 + rho**2) / 2


def label_spread(d: Data, F: jax.Array) -> jax.Array:
    rough = jnp.sum(d["w"] * jnp.sum((F[d["a"]] - F[d["b"]]) ** 2, 1)) / 2
    scores = F[d["node"]]
    own = jnp.take_along_axis(scores, d["own"][:, None], 1)
    return rough + jnp.sum(logsumexp(scores, 1)) - jnp.sum(own) + _square_sum(F) / 100


def knowledge_graph(d: Data, E: jax.Array, T: jax.Array) -> jax.Array:
    moved = E[d["head"]] + T[d["relation"]]
    near = jnp.linalg.norm(moved - E[d["tail"]], axis=1)
    far = jnp.linalg.norm(moved - E[d["wrong"]], axis=1)
    return jnp.mean(softplus(1 + near - far)) + _square_sum(E) / 1000


def next_word(d: Data, R: jax.Array, Q: jax.Array, c: jax.Array, b: jax.Array) -> jax.Array:
    q = jnp.sum(c * R[d["before"]], 1)
    Z = q @ Q.T + b
    own = jnp.take_along_axis(Z, d["next"][:, None], 1)
    return jnp.sum(logsumexp(Z, 1)) - jnp.sum(own) + _square_sum(R) + _square_sum(Q)


def site_visits(
    d: Data, k: jax.Array, m: jax.Array, delta: jax.Array, beta: jax.Array, log_sigma: jax.Array
) -> jax.Array:
    A, y = d["A"], d["y"]
    trend = sigmoid((k + A @ delta) * (d["t"] - m - A @ (d["s"] * delta)))
    fit = trend * (1 + d["X"] @ beta)
    loss = _square_sum(y - fit) * jnp.exp(-2 * log_sigma) / 2 + y.size * log_sigma
    return loss + jnp.sum(jnp.sqrt(delta**2 + 1e-6)) / 0.05 + _square_sum(beta) / 2


def squid_axon(
    d: Data, gna: jax.Array, gk: jax.Array, gl: jax.Array, shift: jax.Array
) -> jax.Array:
    V = d["V"]
    am = 0.1 * (V + 40 + shift) / (1 - jnp.exp(-(V + 40 + shift) / 10))
    bm = 4 * jnp.exp(-(V + 65) / 18)
    ah = 0.07 * jnp.exp(-(V + 65) / 20)
    bh = 1 / (1 + jnp.exp(-(V + 35 + shift) / 10))
    an = 0.01 * (V + 55 + shift) / (1 - jnp.exp(-(V + 55 + shift) / 10))
    bn = 0.125 * jnp.exp(-(V + 65) / 80)
    na, kk, leak = 100 * jnp.exp(gna), 30 * jnp.exp(gk), 0.3 * jnp.exp(gl)

    def step(z: tuple[jax.Array, ...], own: tuple[jax.Array, ...]) -> tuple[object, jax.Array]:
        m, h, n, v = z
        am, bm, ah, bh, an, bn, current = own
        ionic = na * m**3 * h * (v - 50) + kk * n**4 * (v + 77) + leak * (v + 54)
        v = v + 0.02 * (current - ionic)
        m = m + 0.02 * (am * (1 - m) - bm * m)
        h = h + 0.02 * (ah * (1 - h) - bh * h)
        n = n + 0.02 * (an * (1 - n) - bn * n)
        return (m, h, n, v), v

    first = tuple(map(jnp.array, (0.05, 0.6, 0.3, -65.0)))
    _, v = jax.lax.scan(step, first, tuple(a[:-1] for a in (am, bm, ah, bh, an, bn, d["I"])))
    loss = _square_sum(jnp.concatenate([jnp.array([-65.0]), v]) - V) / 200
    return loss + gna**2 + gk**2 + gl**2 + shift**2


def protein_couplings(d: Data, h: jax.Array, J: jax.Array) -> jax.Array:
    L, q = h.shape
    Z = one_hot(d["x"], q)
    own = J * (1 - jnp.eye(L))[:, None, :, None]
    s = h + (Z.reshape(-1, L * q) @ own.reshape(L * q, L * q).T).reshape(-1, L, q)
    loss = jnp.sum(logsumexp(s, 2)) - jnp.sum(s * Z)
    return loss + _square_sum(h) + 5 * _square_sum(J)


def graded_answers(
    d: Data, theta: jax.Array, a: jax.Array, b: jax.Array, c: jax.Array, e: jax.Array
) -> jax.Array:
    second = b + jnp.exp(c)
    cuts = jnp.stack([b, second, second + jnp.exp(e)], 1)[d["item"]]
    Q = sigmoid(jnp.exp(a)[d["item"]][:, None] * (theta[d["person"]][:, None] - cuts))
    one, zero = jnp.ones((len(Q), 1)), jnp.zeros((len(Q), 1))
    p = jnp.hstack([one, Q]) - jnp.hstack([Q, zero])
    loss = -jnp.sum(jnp.log(jnp.take_along_axis(p, d["grade"][:, None], 1)))
    return loss + sum(_square_sum(one) for one in (theta, a, b, c, e)) / 2


def fused_centres(d: Data, U: jax.Array) -> jax.Array:
    gap = U[d["a"]] - U[d["b"]]
    fusion = jnp.sum(d["w"] * jnp.sqrt(jnp.sum(gap * gap, 1) + 1e-6))
    return _square_sum(d["X"] - U) / 2 + 0.1 * fusion


def sparse_components(d: Data, W: jax.Array, V: jax.Array) -> jax.Array:
    fit = _square_sum(d["X"] - (d["X"] @ W) @ V.T) / 2
    return fit + jnp.sum(jnp.sqrt(W * W + 1e-6)) + _square_sum(V.T @ V - jnp.eye(6))


def coupled_phases(d: Data, w: jax.Array, K: jax.Array) -> jax.Array:
    y, n = d["y"], len(w)

    def step(p: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
        c, s = jnp.cos(p), jnp.sin(p)
        p = p + 0.05 * (w + K / n * (c * jnp.sum(s) - s * jnp.sum(c)))
        return p, p

    _, p = jax.lax.scan(step, d["start"], None, length=len(y) - 1)
    phases = jnp.concatenate([d["start"][None], p])
    return jnp.sum(1 - jnp.cos(phases - y)) + _square_sum(w) / 2 + K**2 / 2


def wide_blur(d: Data, x: jax.Array, width: jax.Array) -> jax.Array:
    n = len(x)
    kernel = jnp.exp(-((jnp.arange(1 - n, n) / (5 * jnp.exp(width))) ** 2) / 2)
    i = np.arange(n)
    blurred = kernel[i[:, None] - i + n - 1] @ x
    return _square_sum(d["y"] - blurred) / 2 + jnp.sum(jnp.sqrt(x * x + 1e-4)) / 10 + width**2


def transport_dual(d: Data, g: jax.Array) -> jax.Array:
    smooth = jnp.mean(logsumexp((g - d["C"]) / 0.1, 1))
    return -(d["q"] @ g - 0.1 * smooth)


MORE_FORMULAS: dict[str, Formula] = {
    formula.__name__: formula
    for formula in (
        *(topic_mixture, hidden_states, binary_network, weekly_cases, label_spread),
        *(knowledge_graph, next_word, site_visits, squid_axon, protein_couplings),
        *(graded_answers, fused_centres, sparse_components, coupled_phases, wide_blur),
        transport_dual,
    )
}
"""The formula of each model, of its data and its variables."""
