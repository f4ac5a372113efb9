"""The recurrences of the models of practice in JAX: scans over time, states in the carry."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import sigmoid

from benchmarks.by_hand import Array, Arrays
from benchmarks.practice_jax_formulas import split, sumsq

J = jax.Array
# Four steps at a time: faster than one, and more make the compilation longer, not the run shorter.
scan = partial(jax.lax.scan, unroll=4)


def airline_holt_winters(d: Arrays, x: J) -> J:
    u, level, trend, seasons = split(x, 4, 0, 0, 12)
    al, be, ga = sigmoid(u[:3])
    sigma = jnp.exp(u[3])

    def year(state: tuple[J, J, J], y: J) -> tuple[tuple[J, J, J], J]:
        """Twelve months in a step, so that a season is a position known to the compiler."""
        level, trend, s = state
        errors, after = [], []
        for k in range(12):
            e = y[k] - (level + trend + s[k])
            level, trend = level + trend + al * e, trend + al * be * e
            after.append(s[k] + ga * (1 - al) * e)
            errors.append(e)
        return (level, trend, jnp.stack(after)), jnp.stack(errors)

    _, e = jax.lax.scan(year, (level, trend, seasons), d["y"].reshape(-1, 12))
    return d["y"].size * u[3] + sumsq(e) / (2 * sigma**2) + 50 * jnp.sum(seasons) ** 2


def arma11(d: Arrays, x: J) -> J:
    y = d["y"]
    mu, phi, theta, s = x
    sigma = jnp.exp(s)
    new = y[1:] - mu - phi * y[:-1]

    def step(e: J, new: J) -> tuple[J, J]:
        e = new - theta * e
        return e, e

    first = y[0] - (mu + phi * mu)
    _, e = scan(step, first, new)
    squares = first**2 + sumsq(e)
    prior = mu**2 / 200 + phi**2 / 8 + theta**2 / 8 + jnp.log1p((sigma / 2.5) ** 2)
    return y.size * s + squares / (2 * sigma**2) + prior


def runge_kutta(rate: Callable[[J], J], start: Array, h: float, steps: int) -> J:
    """The states after 1, 2, … steps, (steps, d)."""

    def step(v: J, _: None) -> tuple[J, J]:
        k1 = rate(v)
        k2 = rate(v + h / 2 * k1)
        k3 = rate(v + h / 2 * k2)
        k4 = rate(v + h * k3)
        v = v + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return v, v

    return scan(step, jnp.asarray(start, float), None, length=steps)[1]


def cholera_sir_rk4(d: Arrays, u: J) -> J:
    p = jnp.exp(u)

    def rate(v: J) -> J:
        w = p[0] * v[0] * v[3] / (v[3] + 1e6)
        return jnp.stack([-w, w - p[1] * v[1], p[1] * v[1], p[2] * v[1] - p[3] * v[3]])

    seen = runge_kutta(rate, d["y0"], 0.5, 280)[13::14]
    D = -jnp.diff(seen[:, 0], prepend=d["y0"][0])
    apart = np.log(d["B"]) - jnp.log(seen[:, 3])
    prior = jnp.sum(jnp.log1p((p / np.array([2.5, 1, 25, 1])) ** 2))
    return jnp.sum(D - d["cases"] * jnp.log(D)) + sumsq(apart) / (2 * 0.15**2) + prior


def garch11(d: Arrays, x: J) -> J:
    mu, u0, u1, u2 = x
    a = sigmoid(u1)
    b = (1 - a) * sigmoid(u2)
    squares = (d["y"] - mu) ** 2

    def step(h: J, new: J) -> tuple[J, J]:
        h = new + b * h
        return h, h

    first = jnp.asarray(d["sigma1"] ** 2)
    _, rest = scan(step, first, jnp.exp(u0) + a * squares[:-1])
    h = jnp.concatenate([first[None], rest])
    return jnp.sum(jnp.log(h) + squares / h) / 2


def gas_oil_rk4(d: Arrays, u: J) -> J:
    th = jnp.exp(u)

    def rate(v: J) -> J:
        square = v[0] * v[0]
        return jnp.stack([-(th[0] + th[2]) * square, th[0] * square - th[1] * v[1]])

    start = np.array([1.0, 0.0])
    y = jnp.concatenate([start[None], runge_kutta(rate, start, 0.0125, 76)])
    return sumsq(y[2 * d["step"]] - d["z"])


def mining_hawkes(d: Arrays, u: J) -> J:
    mu, a, b = jnp.exp(u[0]), sigmoid(u[1]), jnp.exp(u[2])
    decay = jnp.exp(-b * np.diff(d["t"]))

    def step(A: J, decay: J) -> tuple[J, J]:
        A = decay * (1 + A)
        return A, A

    _, A = scan(step, jnp.zeros(()), decay)
    fired = a * jnp.sum(-jnp.expm1(-b * (d["T"] - d["t"])))
    return mu * d["T"] + fired - u[0] - jnp.sum(jnp.log(mu + a * b * A))


def nile_kalman(d: Arrays, u: J) -> J:
    q, r = jnp.exp(u)

    def step(state: tuple[J, J], y: J) -> tuple[tuple[J, J], tuple[J, J]]:
        a, P = state
        v, S = y - a, P + r
        k = P / S
        return (a + k * v, P * (1 - k) + q), (v, S)

    _, (v, S) = scan(step, (jnp.asarray(1000.0), jnp.asarray(1e6)), d["y"])
    return jnp.sum(jnp.log(S) + v * v / S) / 2


def pendulum_swing_up(d: Arrays, u: J) -> J:
    h, a = 0.05, 3 * jnp.tanh(u)

    def step(state: tuple[J, J], a: J) -> tuple[tuple[J, J], tuple[J, J]]:
        w, q = state
        ahead = w + h * (9.81 * jnp.sin(q) + a - 0.1 * w)
        return (ahead, q + h * ahead), (w, q)

    start = (jnp.zeros(()), jnp.asarray(np.pi))
    (last_w, last_q), (w, q) = scan(step, start, a)
    path = jnp.sum(1 - jnp.cos(q)) + 0.05 * sumsq(w) + 0.02 * sumsq(a)
    return h * path + 20 * (1 - jnp.cos(last_q)) + 5 * last_w**2
