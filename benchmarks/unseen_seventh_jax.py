"""The seventh part of the unseen models in JAX, as someone who knows it writes them."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import log_softmax, logsumexp, softplus
from jax.ops import segment_max, segment_sum

Data = dict[str, jax.Array]
Formula = Callable[..., jax.Array]


def _square_sum(a: jax.Array) -> jax.Array:
    return jnp.sum(a * a)


def clinic_strata(d: Data, b: jax.Array) -> jax.Array:
    # Sorted once, from the last time on: each risk set is a part of a running sum.
    time, clinic = np.asarray(d["time"]), np.asarray(d["clinic"])
    order = np.lexsort((-time, clinic))
    starts = np.searchsorted(clinic[order], clinic[order])
    eta = d["X"][order] @ b
    before = jnp.concatenate([jnp.zeros(1), jnp.cumsum(jnp.exp(eta))])
    risk = jnp.log(before[1:] - before[starts])
    return jnp.sum(d["died"][order] * (risk - eta)) + _square_sum(b)


def window_rates(d: Data, a: jax.Array, k: jax.Array, c: jax.Array, s: jax.Array) -> jax.Array:
    t = np.asarray(d["t"])
    i, j = np.nonzero(np.abs(t[:, None] - t) < 1)
    w = (1 - (d["t"][i] - d["t"][j]) ** 2) ** jnp.exp(k) * (d["size"] * jnp.exp(s))[j]
    load = segment_sum(w, i, len(t), indices_are_sorted=True)
    return _square_sum(d["y"] - c - a * jnp.log(load)) + _square_sum(s) + k**2


def star_streams(d: Data, w: jax.Array, m: jax.Array, L: jax.Array) -> jax.Array:
    V = L @ L.transpose(0, 2, 1) + 0.1 * jnp.eye(3)
    C = jnp.linalg.cholesky(V + d["S"][:, None])
    gap = d["y"][:, None] - m
    z = jax.lax.linalg.triangular_solve(C, gap[..., None], left_side=True, lower=True)[..., 0]
    half = jnp.sum(jnp.log(jnp.diagonal(C, axis1=-2, axis2=-1)), -1)
    f = log_softmax(w) - half - 0.5 * jnp.sum(z * z, -1)
    return -jnp.sum(logsumexp(f, 1)) + _square_sum(L) + _square_sum(m)


def _dilated(X: jax.Array, f: jax.Array) -> jax.Array:
    n = X.shape[2] - 8
    return sum(f[:, q, None] * X[:, :, 4 * q : 4 * q + n] for q in range(3))  # type: ignore[return-value]


def dilated_waves(
    d: Data, f: jax.Array, M: jax.Array, g: jax.Array, o: jax.Array, c: jax.Array
) -> jax.Array:
    h = jnp.tanh(c[:, None] + M @ _dilated(d["X"], f))
    seen = jnp.einsum("i,bit->bt", o, jnp.tanh(_dilated(h, g)))
    return _square_sum(seen - d["Y"]) + _square_sum(M)


def causal_notes(d: Data, Q: jax.Array, K: jax.Array, V: jax.Array, near: jax.Array) -> jax.Array:
    X = d["X"][:, None]
    q, r, v = X @ Q, X @ K, X @ V
    T = d["X"].shape[1]
    gap = np.arange(T)[:, None] - np.arange(T)
    s = q @ r.transpose(0, 1, 3, 2) / np.sqrt(8) - jnp.exp(near)[:, None, None] * 0.1 * gap
    s = jnp.where(gap >= 0, s, -jnp.inf)
    out = jnp.sum(jax.nn.softmax(s, -1) @ v, 1)
    return _square_sum(out - d["Y"]) + _square_sum(Q) + _square_sum(K)


def bonded_atoms(d: Data, W: jax.Array, U: jax.Array, G: jax.Array, o: jax.Array) -> jax.Array:
    h = d["F"]
    for k in range(2):
        m = jnp.tanh(h @ W[k].T)[d["src"]] * (d["bond"] @ G[k])
        h = jnp.tanh(h @ U[k].T + segment_sum(m, d["dst"], len(h)))
    return _square_sum(h @ o - d["Y"]) + _square_sum(W) + _square_sum(U)


def periodic_liquid(d: Data, x: jax.Array) -> jax.Array:
    i, j = np.tril_indices(len(x), -1)
    L = d["L"]
    s = jnp.sum((L / jnp.pi * jnp.sin(jnp.pi * (x[i] - x[j]) / L)) ** 2, 1)
    return jnp.sum(jnp.where(s < 1.5, (1.5 - s) ** 3 / (s + 0.1), 0))


def tensor_train(d: Data, A: jax.Array, B: jax.Array, C: jax.Array, D: jax.Array) -> jax.Array:
    left = jnp.tensordot(A, B, 1).reshape(-1, 5)
    right = jnp.tensordot(C, D, 1).reshape(5, -1)
    fit = _square_sum(d["T"].reshape(left.shape[0], -1) - left @ right)
    return fit + 0.1 * sum(map(_square_sum, (A, B, C, D)))


def trip_modes(d: Data, b: jax.Array, c: jax.Array) -> jax.Array:
    u, g = d["X"] @ b + jnp.tanh(d["X"] @ c), d["trip"]
    most = jax.lax.stop_gradient(segment_max(u, g, 900, indices_are_sorted=True))
    total = segment_sum(jnp.exp(u - most[g]), g, 900, indices_are_sorted=True)
    fit = jnp.sum(jnp.log(total) + most) - d["chosen"] @ u
    return fit + _square_sum(b) + _square_sum(c)


def field_clicks(d: Data, E: jax.Array, w: jax.Array, c: jax.Array) -> jax.Array:
    e = E[d["word"]]
    both = 0.5 * (jnp.sum(jnp.sum(e, 1) ** 2, 1) - jnp.sum(e * e, (1, 2)))
    s = c + jnp.sum(w[d["word"]], 1) + both
    return jnp.mean(softplus(s) - d["y"] * s) + 1e-3 * (_square_sum(E) + _square_sum(w))


def tuned_circuits(d: Data, mu: jax.Array, om: jax.Array, k: jax.Array) -> jax.Array:
    m, w = jnp.exp(mu), jnp.exp(om)

    def rate(z: jax.Array) -> jax.Array:
        x, v = z
        return jnp.stack([v, m * (1 - x * x) * v - w * x + k * jnp.cos(x)])

    def step(z: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
        k1 = rate(z)
        k2 = rate(z + 0.025 * k1)
        k3 = rate(z + 0.025 * k2)
        k4 = rate(z + 0.05 * k3)
        z = z + 0.05 * (k1 + 2 * k2 + 2 * k3 + k4) / 6
        return z, z[0]

    xs = jax.lax.scan(step, d["z0"].T, None, 80)[1]
    return _square_sum(xs[9::10] - d["seen"]) + _square_sum(mu) + _square_sum(om) + k**2


def joint_volatility(d: Data, C: jax.Array, A: jax.Array, B: jax.Array) -> jax.Array:
    fixed, e = C @ C.T + 0.1 * jnp.eye(3), d["e"]
    pushed = e[:-1] @ A.T

    def step(H: jax.Array, u: jax.Array) -> tuple[jax.Array, jax.Array]:
        H = fixed + jnp.outer(u, u) + B @ H @ B.T
        return H, H

    H = jnp.concatenate([d["H0"][None], jax.lax.scan(step, d["H0"], pushed)[1]])
    R = jnp.linalg.cholesky(H)
    z = jax.lax.linalg.triangular_solve(R, e[..., None], left_side=True, lower=True)
    logs = 2 * jnp.sum(jnp.log(jnp.diagonal(R, axis1=1, axis2=2)))
    return logs + _square_sum(z) + _square_sum(A) + _square_sum(B)


def terrain_spline(d: Data, c: jax.Array, s: jax.Array) -> jax.Array:
    rows, columns = d["cx"][:, None] + np.arange(4), d["cy"][:, None] + np.arange(4)
    near = c[rows[:, :, None], columns[:, None, :]]
    f = jnp.einsum("ia,ib,iab->i", d["wx"], d["wy"], near)
    fit = jnp.sum(jnp.log1p((d["z"] - f) ** 2 / jnp.exp(s))) + s**2
    return fit + _square_sum(jnp.diff(c, 2, 0)) + _square_sum(jnp.diff(c, 2, 1))


def household_types(d: Data, p: jax.Array, w: jax.Array, m: jax.Array, s: jax.Array) -> jax.Array:
    z = (d["y"][:, None, None] - m) * jnp.exp(-s)
    one = logsumexp(log_softmax(w, 1) - s - 0.5 * z * z, 2)
    every = segment_sum(one, d["house"], 300, indices_are_sorted=True)
    fit = jnp.sum(logsumexp(log_softmax(p) + every, 1))
    return -fit + sum(map(_square_sum, (m, s, w, p)))


def jittered_samples(d: Data, a: jax.Array, b: jax.Array, j: jax.Array) -> jax.Array:
    angle = 2 * jnp.pi * jnp.outer(d["t"] + 0.01 * j, jnp.arange(1.0, 41.0))
    f = jnp.cos(angle) @ a + jnp.sin(angle) @ b
    return _square_sum(d["y"] - f) + _square_sum(j) + 0.1 * (_square_sum(a) + _square_sum(b))


SEVENTH_FORMULAS: dict[str, Formula] = {
    formula.__name__: formula
    for formula in (
        *(clinic_strata, window_rates, star_streams, dilated_waves, causal_notes, bonded_atoms),
        *(periodic_liquid, tensor_train, trip_modes, field_clicks, tuned_circuits),
        *(joint_volatility, terrain_spline, household_types, jittered_samples),
    )
}
"""The formula of each model, of its data and its variables."""
