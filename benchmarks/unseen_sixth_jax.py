"""The sixth part of the unseen models in JAX, as someone who knows it writes them."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.nn import logsumexp, sigmoid, softmax, softplus

Data = dict[str, jax.Array]
Formula = Callable[..., jax.Array]


def _square_sum(a: jax.Array) -> jax.Array:
    return jnp.sum(a * a)


def structure_factors(d: Data, x: jax.Array, B: jax.Array, k: jax.Array) -> jax.Array:
    amp = d["f"] * jnp.exp(-jnp.exp(B) * d["s2"][:, None])
    phase = 2 * jnp.pi * (d["h"] @ x.T)
    re, im = jnp.sum(amp * jnp.cos(phase), 1), jnp.sum(amp * jnp.sin(phase), 1)
    size = jnp.sqrt(re * re + im * im + 1e-6)
    return _square_sum(jnp.exp(k) * size - d["seen"]) + _square_sum(B)


def fish_stock(
    d: Data,
    rec: jax.Array,
    lf: jax.Array,
    a50: jax.Array,
    slope: jax.Array,
    lq: jax.Array,
    first_ages: jax.Array,
) -> jax.Array:
    sel = sigmoid(jnp.exp(slope) * (jnp.arange(12.0) - 4 - a50))
    F, N0 = 0.3 * jnp.exp(lf), 100 * jnp.exp(first_ages)

    def year(N: jax.Array, given: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        fished, born = given
        left = (N * jnp.exp(-0.2 - fished * sel))[:-1]
        N = jnp.concatenate([100 * jnp.exp(born)[None], left])
        return N, N

    N = jnp.concatenate([N0[None], jax.lax.scan(year, N0, (F[:-1], rec[1:]))[1]])
    dead = F[:, None] * sel
    Z = 0.2 + dead
    caught = dead / Z * (1 - jnp.exp(-Z)) * N
    seen = _square_sum(jnp.log(d["I"]) - lq + 5 - jnp.log(N @ (d["W"] * sel))) / 0.08
    ages = jnp.sum(d["C"] * jnp.log(caught / caught.sum(1, keepdims=True)))
    rest = sum(map(_square_sum, (rec, lf, first_ages)))
    return seen - ages + rest + slope**2 + a50**2


def guessed_answers(d: Data, th: jax.Array, a: jax.Array, b: jax.Array, g: jax.Array) -> jax.Array:
    c, Y = 0.5 * sigmoid(g - 1), d["Y"]
    p = c + (1 - c) * sigmoid(th @ a.T - b)
    fit = jnp.sum(Y * jnp.log(p) + (1 - Y) * jnp.log(1 - p))
    return -fit + 0.5 * _square_sum(th) + 0.1 * (_square_sum(a) + _square_sum(b)) + _square_sum(g)


def cart_and_pole(d: Data, q: jax.Array, u: jax.Array) -> jax.Array:
    s, c, w2 = jnp.sin(q[:, 1]), jnp.cos(q[:, 1]), q[:, 3] ** 2
    m = 1 + 0.3 * s * s
    acc = (u + 0.3 * s * (0.5 * w2 + 9.81 * c)) / m
    ang = -(u * c + 0.15 * w2 * c * s + 1.3 * 9.81 * s) / (0.5 * m)
    f = jnp.stack([q[:, 2], q[:, 3], acc, ang], 1)
    defects = _square_sum(q[1:] - q[:-1] - 0.01 * (f[:-1] + f[1:]))
    ends = _square_sum(q[0] - d["q0"]) + (q[-1, 0] - 1) ** 2 + (q[-1, 1] - jnp.pi) ** 2
    return 0.02 * _square_sum(u) + 100 * defects + 10 * ends


def bond_curve(
    d: Data,
    b0: jax.Array,
    b1: jax.Array,
    b2: jax.Array,
    b3: jax.Array,
    l1: jax.Array,
    l2: jax.Array,
) -> jax.Array:
    z1, z2 = d["T"] * jnp.exp(l1), d["T"] * jnp.exp(l2)
    e1, e2 = jnp.exp(-z1), jnp.exp(-z2)
    level = (1 - e1) / z1
    y = b0 + b1 * level + b2 * (level - e1) + b3 * ((1 - e2) / z2 - e2)
    return jnp.mean((d["P"] - jnp.sum(d["paid"] * jnp.exp(-0.1 * y * d["T"]), 1)) ** 2)


def survey_network(d: Data, D: jax.Array, o: jax.Array) -> jax.Array:
    X = d["X0"] + D
    e = X[d["b"]] - X[d["a"]]
    far = jnp.sqrt(jnp.sum(e * e, 1))
    turned = jnp.arctan2(e[:, 1], e[:, 0]) - d["az"] - o[d["a"]]
    robust = jnp.sum(jnp.log(1 + ((far - d["far"]) / 0.1) ** 2))
    return robust + 50 * jnp.sum(1 - jnp.cos(turned)) + 0.1 * _square_sum(D) + _square_sum(o)


def rate_constants(d: Data, A: jax.Array, E: jax.Array) -> jax.Array:
    k = jnp.exp(A[:, None] - (1 + E[:, None]) * (1000 / d["T"] - 2.9))

    def step(y: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
        r = k[0] * y[0] * y[1] - k[1] * y[2]
        on, off = k[2] * y[2], k[3] * y[1]
        y = y + 0.02 * jnp.stack([-r, -r - off, r - on, on + off])
        return y, y

    y0 = jnp.concatenate([jnp.ones((2, 20)), jnp.zeros((2, 20))])
    y = jnp.concatenate([y0[None], jax.lax.scan(step, y0, None, length=99)[1]])
    found = jnp.swapaxes(y[9::10], 1, 2)
    return _square_sum(found - d["seen"]) + 0.1 * (_square_sum(A) + _square_sum(E))


def optical_flow(d: Data, u: jax.Array, v: jax.Array) -> jax.Array:
    def slope(a: jax.Array) -> jax.Array:
        return (a[1:, :-1] - a[:-1, :-1]) ** 2 + (a[:-1, 1:] - a[:-1, :-1]) ** 2

    bright = jnp.sum(jnp.sqrt((d["Ix"] * u + d["Iy"] * v + d["It"]) ** 2 + 0.001))
    return bright + 0.5 * jnp.sum(jnp.sqrt(slope(u) + slope(v) + 0.001))


def neural_language(
    d: Data,
    E: jax.Array,
    A: jax.Array,
    B: jax.Array,
    C: jax.Array,
    b: jax.Array,
    O: jax.Array,  # noqa: E741
    c: jax.Array,
) -> jax.Array:
    h = jnp.tanh(E[d["w1"]] @ A.T + E[d["w2"]] @ B.T + E[d["w3"]] @ C.T + b)
    s = h @ O.T + c
    own = jnp.take_along_axis(s, d["next"][:, None], 1)[:, 0]
    return jnp.mean(logsumexp(s, 1) - own) + 1e-3 * (_square_sum(E) + _square_sum(O))


def mixed_membership(d: Data, t: jax.Array, B: jax.Array) -> jax.Array:
    th = softmax(t, 1)
    L = th @ jnp.exp(B - 2) @ th.T
    each = d["A"] * jnp.log(L) - L
    return -(jnp.sum(each) - jnp.trace(each)) + 0.1 * _square_sum(t) + _square_sum(B)


def cured_patients(d: Data, b: jax.Array, g: jax.Array, k: jax.Array, c: jax.Array) -> jax.Array:
    scale, cured = jnp.exp(d["X"] @ b), sigmoid(d["X"] @ g + c)
    S0, S1 = (
        cured + (1 - cured) * jnp.exp(-((t / scale) ** jnp.exp(k)))
        for t in (d["last"], d["last"] + d["wait"])
    )
    each = jnp.where(d["alive"] == 1, jnp.log(S0), jnp.log(S0 - S1 + 1e-6))
    return -jnp.sum(each) + _square_sum(b) + _square_sum(g) + k * k


def hanging_cloth(d: Data, x: jax.Array, y: jax.Array, z: jax.Array) -> jax.Array:
    p, rest = jnp.stack([x, y, z]), d["rest"]

    def springs(apart: jax.Array, length: jax.Array) -> jax.Array:
        return _square_sum(jnp.sqrt(jnp.sum(apart * apart, 0) + 1e-8) - length)

    stretch = springs(p[:, 1:] - p[:, :-1], rest) + springs(p[:, :, 1:] - p[:, :, :-1], rest)
    shear = springs(p[:, 1:, 1:] - p[:, :-1, :-1], jnp.sqrt(2) * rest)
    bend = springs(p[:, 2:] - p[:, :-2], 2 * rest)
    held = _square_sum(p[:, 0, 0]) + _square_sum(p[:, 0, -1] - jnp.array([4.0, 0, 0]))
    return 50 * stretch + 10 * shear + 5 * bend + 0.1 * jnp.sum(z) + 100 * held


def sound_dictionary(d: Data, w: jax.Array, h: jax.Array) -> jax.Array:
    S = jnp.exp(w) @ jnp.exp(h)
    return jnp.sum(d["V"] / S + jnp.log(S)) + 0.01 * (_square_sum(w) + _square_sum(h))


def admixture(d: Data, q: jax.Array, f: jax.Array) -> jax.Array:
    P, G = softmax(q, 1) @ sigmoid(f), d["G"]
    fit = jnp.sum(G * jnp.log(P) + (2 - G) * jnp.log(1 - P))
    return -fit + 0.1 * (_square_sum(f) + _square_sum(q))


def horse_races(d: Data, b: jax.Array, W: jax.Array) -> jax.Array:
    X = d["X"]
    s = X @ b + jnp.einsum("rhk,kl,rhl->rh", X, W, X)
    most = jax.lax.stop_gradient(s.max(1, keepdims=True))
    left = jnp.cumsum(jnp.exp(s - most)[:, ::-1], 1)[:, ::-1]
    return -jnp.sum(s - jnp.log(left) - most) + _square_sum(b) + _square_sum(W)


def rain_runoff(
    d: Data, k1: jax.Array, k2: jax.Array, kp: jax.Array, cap: jax.Array, e0: jax.Array
) -> jax.Array:
    quick, slow, sink, most = jnp.exp(k1 - 3), jnp.exp(k2 - 4), jnp.exp(kp - 3), jnp.exp(cap)
    Pair = tuple[jax.Array, jax.Array]

    def day(state: Pair, given: Pair) -> tuple[Pair, Pair]:
        (s, g), (rain, pet) = state, given
        left = s + rain - pet * sigmoid(s - e0) - quick * softplus(s - most) - sink * s
        both = left, g * (1 - slow) + sink * left
        return both, both

    first = jnp.array(5.0), jnp.array(2.0)
    later = jax.lax.scan(day, first, (d["rain"][1:], d["pet"][1:]))[1]
    s, g = (jnp.concatenate([a[None], b]) for a, b in zip(first, later, strict=True))
    flow = quick * softplus(s - most) + slow * g
    rest = k1**2 + k2**2 + kp**2 + cap**2 + e0**2
    return _square_sum(jnp.log(flow + 0.1) - jnp.log(d["q"] + 0.1)) + rest


def weather_ring(d: Data, x0: jax.Array) -> jax.Array:
    def f(x: jax.Array) -> jax.Array:
        return (jnp.roll(x, -1) - jnp.roll(x, 2)) * jnp.roll(x, 1) - x + 8

    def step(x: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
        x = x + 0.05 * f(x + 0.025 * f(x))
        return x, x

    x = jnp.concatenate([x0[None], jax.lax.scan(step, x0, None, length=99)[1]])
    return _square_sum(x[4::5] - d["Y"]) + _square_sum(x0 - d["xb"])


SIXTH_FORMULAS: dict[str, Formula] = {
    one.__name__: one
    for one in (
        *(structure_factors, fish_stock, guessed_answers, cart_and_pole, bond_curve),
        *(survey_network, rate_constants, optical_flow, neural_language, mixed_membership),
        *(cured_patients, hanging_cloth, sound_dictionary, admixture, horse_races),
        *(rain_runoff, weather_ring),
    )
}
