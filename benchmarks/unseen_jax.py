"""The unseen models in JAX, as someone who knows it writes them; unknowns in the models' order."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

import numpy as np

os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)
import jax
import jax.numpy as jnp
from jax.nn import logsumexp, softmax, softplus
from jax.scipy.special import log_ndtr

from benchmarks.by_hand import Array, Arrays
from benchmarks.unseen_fifth_jax import FIFTH_FORMULAS
from benchmarks.unseen_fourth_jax import FOURTH_FORMULAS
from benchmarks.unseen_more_jax import MORE_FORMULAS
from benchmarks.unseen_seventh_jax import SEVENTH_FORMULAS
from benchmarks.unseen_sixth_jax import SIXTH_FORMULAS
from benchmarks.unseen_third_jax import THIRD_FORMULAS

Data = dict[str, jax.Array]
Formula = Callable[..., jax.Array]
Shapes = Sequence[tuple[int, ...]]


def _square_sum(a: jax.Array) -> jax.Array:
    return jnp.sum(a * a)


def source_separation(d: Data, W: jax.Array) -> jax.Array:
    S = d["X"] @ W.T
    logcosh = jnp.abs(S) + jnp.log1p(jnp.exp(-2 * jnp.abs(S))) - jnp.log(2.0)
    return jnp.mean(jnp.sum(logcosh, 1)) + _square_sum(W @ W.T - jnp.eye(8))


def spectral_classes(d: Data, B: jax.Array, b: jax.Array) -> jax.Array:
    Z = d["X"] @ B + b
    return jnp.sum(logsumexp(Z, 1)) - jnp.sum(d["Y"] * Z) + 0.5 * _square_sum(B)


def cell_clusters(d: Data, a: jax.Array, mu: jax.Array, s: jax.Array) -> jax.Array:
    z = (d["y"][:, None] - mu) * jnp.exp(-s)
    scores = a - jnp.sum(s, 1) - jnp.sum(z * z, 2) / 2
    return len(d["y"]) * logsumexp(a) - jnp.sum(logsumexp(scores, 1))


def topics(d: Data, U: jax.Array, V: jax.Array) -> jax.Array:
    M = jnp.exp(U) @ jnp.exp(V)
    return jnp.sum(M - d["C"] * jnp.log(M))


def texture_net(d: Data, F: jax.Array, b: jax.Array, w: jax.Array) -> jax.Array:
    conv = jax.lax.conv(d["I"][:, None], F[:, None], (1, 1), "VALID")
    z = jnp.mean(jnp.tanh(conv + b[:, None, None]), (2, 3)) @ w
    return jnp.sum(softplus(-d["y"] * z))


def pulse_train(d: Data, x: jax.Array) -> jax.Array:
    fit = jnp.correlate(x, d["k"], "valid")
    return _square_sum(fit - d["y"]) / 2 + 0.1 * jnp.sum(jnp.sqrt(x * x + 1e-4))


def soap_film(d: Data, u: jax.Array) -> jax.Array:
    down, right = u[1:, :-1] - u[:-1, :-1], u[:-1, 1:] - u[:-1, :-1]
    area = jnp.sum(jnp.sqrt(1 + down * down + right * right))
    return area + _square_sum(u - d["g"]) / 2


def attention_head(d: Data, Q: jax.Array, K: jax.Array, V: jax.Array) -> jax.Array:
    E = d["E"]
    A = softmax((E @ Q) @ (E @ K).T / jnp.sqrt(8.0), 1)
    return _square_sum(A @ (E @ V) - d["Y"]) / 2


def metric_learning(d: Data, A: jax.Array) -> jax.Array:
    Z = d["X"] @ A.T
    D = jnp.sum((Z[:, None] - Z) ** 2, 2)
    E = jnp.exp(-D) * (1 - jnp.eye(len(Z)))
    return -jnp.sum(jnp.sum(d["same"] * E, 1) / jnp.sum(E, 1))


def phi4_lattice(d: Data, f: jax.Array) -> jax.Array:
    hops = sum(_square_sum(jnp.roll(f, -1, axis) - f) for axis in range(3))
    return hops / 2 + jnp.sum((f * f - 1) ** 2) / 4 - jnp.sum(d["h"] * f)


def spin_glass(d: Data, theta: jax.Array) -> jax.Array:
    c, s = jnp.cos(theta), jnp.sin(theta)
    return -(c @ (d["J"] @ c) + s @ (d["J"] @ s)) / 2


def perceptual_map(d: Data, Z: jax.Array) -> jax.Array:
    i, j = np.tril_indices(len(Z), -1)
    r = jnp.sqrt(jnp.sum((Z[i] - Z[j]) ** 2, 1) + 1e-6)
    return _square_sum(r - d["d"][i, j])


def sensor_network(d: Data, P: jax.Array) -> jax.Array:
    gap = P[d["a"]] - P[d["b"]]
    return jnp.sum(jnp.log1p((jnp.sum(gap * gap, 1) - d["r"] ** 2) ** 2))


def word_vectors(d: Data, U: jax.Array, V: jax.Array, p: jax.Array, q: jax.Array) -> jax.Array:
    fit = jnp.sum(U[d["a"]] * V[d["b"]], 1) + p[d["a"]] + q[d["b"]]
    weight = jnp.minimum(1, (d["count"] / 100) ** 0.75)
    return jnp.sum(weight * (fit - jnp.log(d["count"])) ** 2)


def chess_ratings(d: Data, s: jax.Array) -> jax.Array:
    return jnp.sum(softplus(s[d["loser"]] - s[d["winner"]])) + _square_sum(s) / 2


def radial_units(d: Data, c: jax.Array, g: jax.Array, w: jax.Array) -> jax.Array:
    X = d["X"]
    D = jnp.sum(X * X, 1)[:, None] - 2 * X @ c.T + jnp.sum(c * c, 1)
    return _square_sum(d["y"] - jnp.exp(-jnp.exp(g) * D) @ w) / 2


def diffusion_tensors(d: Data, T: jax.Array, s: jax.Array) -> jax.Array:
    u = jnp.einsum("vab,kb->vka", T, d["g"])
    return _square_sum(d["S"] - jnp.exp(s[:, None] - jnp.sum(u * u, 2))) / 2


def point_clouds(d: Data, R: jax.Array, t: jax.Array) -> jax.Array:
    E = d["P"] @ R.T + t - d["Q"]
    return jnp.sum(jnp.log1p(jnp.sum(E * E, 1))) + _square_sum(R.T @ R - jnp.eye(3))


def regime_switching(d: Data, A: jax.Array, mu: jax.Array, s: jax.Array) -> jax.Array:
    P = jax.nn.log_softmax(A, 1)
    e = -s - ((d["y"][:, None] - mu) * jnp.exp(-s)) ** 2 / 2

    def step(f: jax.Array, own: jax.Array) -> tuple[jax.Array, None]:
        return own + logsumexp(f[:, None] + P, 0), None

    last, _ = jax.lax.scan(step, e[0] - jnp.log(3.0), e[1:])
    return -logsumexp(last)


def factorisation_machine(d: Data, b: jax.Array, w: jax.Array, V: jax.Array) -> jax.Array:
    X = d["X"]
    pairs = jnp.sum((X @ V) ** 2, 1) - (X * X) @ jnp.sum(V * V, 1)
    return _square_sum(d["y"] - b - X @ w - pairs / 2) / 2


def machine_failures(d: Data, a: jax.Array, b: jax.Array, s: jax.Array) -> jax.Array:
    z = (jnp.log(d["t"]) - a - d["X"] @ b) * jnp.exp(-s)
    return jnp.sum(jnp.exp(z) - d["died"] * (z - s))


def growth_portfolio(d: Data, z: jax.Array) -> jax.Array:
    w = softmax(z)
    return -jnp.sum(jnp.log1p(d["R"] @ w)) + 0.1 * _square_sum(w)


def quantile_bands(d: Data, B: jax.Array, b: jax.Array) -> jax.Array:
    E = d["y"][:, None] - b - d["X"] @ B
    return jnp.mean(jnp.sum(d["q"] * E + 0.1 * softplus(-E / 0.1), 1))


def charges_on_sphere(d: Data, X: jax.Array) -> jax.Array:
    U = X / jnp.linalg.norm(X, axis=1)[:, None]
    i, j = np.tril_indices(len(X), -1)
    return jnp.sum(1 / jnp.linalg.norm(U[i] - U[j], axis=1))


def emission_tomography(d: Data, x: jax.Array) -> jax.Array:
    rate = d["A"] @ jnp.exp(x)
    rough = jnp.sum(jnp.sqrt((x[1:] - x[:-1]) ** 2 + 1e-3))
    return jnp.sum(rate - d["y"] * jnp.log(rate)) + 0.1 * rough


def probit_choices(d: Data, b: jax.Array) -> jax.Array:
    return -jnp.sum(log_ndtr(d["s"] * (d["X"] @ b))) + _square_sum(b) / 2


def echo_network(d: Data, W: jax.Array, U: jax.Array, b: jax.Array, w: jax.Array) -> jax.Array:
    drive = d["u"] @ U.T + b

    def step(H: jax.Array, own: jax.Array) -> tuple[jax.Array, jax.Array]:
        H = jnp.tanh(own + H @ W.T)
        return H, H

    _, H = jax.lax.scan(step, jnp.zeros(drive.shape[1:]), drive[1:])
    fit = jnp.concatenate([jnp.zeros((1, drive.shape[1])), H @ w])
    return _square_sum(fit - d["y"])


def power_flow(d: Data, v: jax.Array) -> jax.Array:
    edges = jnp.sum(d["w"] * (1 - jnp.cos(v[d["a"]] - v[d["b"]])))
    return edges - d["s"] @ v + _square_sum(v) / 2


def spike_trains(d: Data, f: jax.Array, b: jax.Array) -> jax.Array:
    eta = b + jax.lax.conv(d["S"].T[None], f[None], (1,), "VALID")[0, 0]
    return jnp.sum(jnp.exp(eta) - d["n"] * eta) + _square_sum(f[:, 1:] - f[:, :-1])


FORMULAS: dict[str, Formula] = {
    formula.__name__: formula
    for formula in (
        *(source_separation, spectral_classes, cell_clusters, topics, texture_net, pulse_train),
        *(soap_film, attention_head, metric_learning, phi4_lattice, spin_glass, perceptual_map),
        *(sensor_network, word_vectors, chess_ratings, radial_units, diffusion_tensors),
        *(point_clouds, regime_switching, factorisation_machine, machine_failures),
        *(growth_portfolio, quantile_bands, charges_on_sphere, emission_tomography),
        *(probit_choices, echo_network, power_flow, spike_trains),
    )
}
"""The formula of each model, of its data and its variables."""
EVERY = FORMULAS | MORE_FORMULAS | THIRD_FORMULAS | FOURTH_FORMULAS
EVERY |= FIFTH_FORMULAS | SIXTH_FORMULAS | SEVENTH_FORMULAS
"""Those of all parts."""
INDICES = {
    *("a", "b", "winner", "loser", "doc", "word", "node", "head", "relation"),
    *("tail", "wrong", "before", "next", "own", "x", "person", "item", "grade"),
    *("compound", "plate", "route", "link", "trip"),
    *("tag", "letter", "action", "site", "label", "cam", "pt", "neg", "home", "away"),
    *("nest", "pick", "kind", "firm", "w1", "w2", "w3", "src", "dst", "house", "cx", "cy"),
}
"""The data by which arrays are indexed."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """Value and gradient, and product with the Hessian; NumPy in and NumPy out."""

    value_and_gradient: Callable[[Array], tuple[float, Array]]
    hvp: Callable[[Array, Array], Array]


def compiled(name: str, data: Arrays, shapes: Shapes) -> Compiled:
    """A model in JAX, in double precision, of the flat vector of variables of these shapes."""
    jax.config.update("jax_enable_x64", True)
    # Short calls are faster without another thread.
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    held = {key: jnp.asarray(array) for key, array in data.items()}
    held |= {key: held[key].astype(int) for key in INDICES & held.keys()}
    ends = np.cumsum([0, *(prod(shape) for shape in shapes)])

    def value(x: jax.Array) -> jax.Array:
        parts = [
            x[i:j].reshape(shape) for (i, j), shape in zip(pairwise(ends), shapes, strict=True)
        ]
        return EVERY[name](held, *parts)

    both = jax.jit(jax.value_and_grad(value))
    product = jax.jit(lambda x, v: jax.jvp(jax.grad(value), (x,), (v,))[1])

    def value_and_gradient(x: Array) -> tuple[float, Array]:
        found, gradient = both(x)
        return float(found), np.asarray(gradient)

    return Compiled(value_and_gradient, lambda x, v: np.asarray(product(x, v)))
