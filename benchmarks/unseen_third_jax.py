"""The third part of the unseen models in JAX, as someone who knows it writes them."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.nn import log_softmax, logsumexp, sigmoid, softplus
from jax.scipy.special import gammaln

Data = dict[str, jax.Array]
Formula = Callable[..., jax.Array]


def _square_sum(a: jax.Array) -> jax.Array:
    return jnp.sum(a * a)


def competing_species(d: Data, r: jax.Array, A: jax.Array, log_sigma: jax.Array) -> jax.Array:
    y, rates = d["y"], jnp.exp(A - 2)

    def step(x: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
        x = x + 0.1 * (r - rates @ jnp.exp(x))
        return x, x

    _, later = jax.lax.scan(step, d["start"], None, length=len(y) - 1)
    x = jnp.concatenate([d["start"][None], later])
    loss = _square_sum(y - x) * jnp.exp(-2 * log_sigma) / 2 + y.size * log_sigma
    return loss + _square_sum(r) / 2 + _square_sum(A) / 2


def quake_locations(
    d: Data, place: jax.Array, origin: jax.Array, delay: jax.Array, slowness: jax.Array
) -> jax.Array:
    gap = 10 * place[:, None] - d["station"]
    distance = jnp.sqrt(jnp.sum(gap * gap, 2) + 0.01)
    late = d["arrival"] - origin[:, None] - delay - jnp.exp(slowness) / 6 * distance
    return 2.5 * jnp.sum(jnp.log1p(late * late / 4)) + _square_sum(delay) + slowness**2


def contact_epidemic(d: Data, beta: jax.Array, gamma: jax.Array, risk: jax.Array) -> jax.Array:
    a, b, ill = d["a"], d["b"], d["ill"]
    leave, force = sigmoid(gamma), jnp.exp(beta + risk)

    def step(p: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
        near = jnp.zeros_like(p).at[a].add(p[b])
        p = p * (1 - leave) + (1 - p) * (1 - jnp.exp(-force * near))
        return p, p

    _, later = jax.lax.scan(step, d["p0"], None, length=len(ill) - 1)
    p = jnp.concatenate([d["p0"][None], later])
    loss = -jnp.sum(ill * jnp.log(p + 1e-6) + (1 - ill) * jnp.log(1 - p + 1e-6))
    return loss + _square_sum(risk) + beta**2 + gamma**2


def thin_film(d: Data, thick: jax.Array) -> jax.Array:
    index, wavelength = d["index"], d["wavelength"]
    phase = 2 * jnp.pi * (index * 0.1 * jnp.exp(thick))[:, None] / wavelength
    c, s = jnp.cos(phase), jnp.sin(phase)

    def step(v: tuple[jax.Array, ...], own: tuple[jax.Array, ...]) -> tuple[object, None]:
        er, ei, hr, hi = v
        c, s, n = own
        new = (er * c - hi * s / n, ei * c + hr * s / n, hr * c - ei * n * s, hi * c + er * n * s)
        return new, None

    one = jnp.ones_like(wavelength)
    first = (one, 0 * one, 1.52 * one, 0 * one)
    (er, ei, hr, hi), _ = jax.lax.scan(step, first, (c[1:], s[1:], index[1:]))
    up = (er - hr) ** 2 + (ei - hi) ** 2
    down = (er + hr) ** 2 + (ei + hi) ** 2
    return _square_sum(up / down - d["R"]) + 0.01 * _square_sum(thick)


def branch_lengths(d: Data, own: jax.Array, inner: jax.Array, rate: jax.Array) -> jax.Array:
    tip, f = d["tip"], d["f"]
    stay, keep = jnp.exp(-jnp.exp(own + rate - 2)), jnp.exp(-jnp.exp(inner + rate - 2))
    leaf = stay[:, None, None] * tip + (1 - stay)[:, None, None] * (tip @ f)[..., None]

    def step(q: jax.Array, z: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        leaf, keep = z
        return leaf * (keep * q + (1 - keep) * (q @ f)[:, None]), None

    last, _ = jax.lax.scan(step, leaf[0], (leaf[1:], keep[1:]))
    return -jnp.sum(jnp.log(last @ f)) + _square_sum(own) / 2 + _square_sum(inner) / 2 + rate**2


def market_shares(d: Data, b: jax.Array, s: jax.Array, xi: jax.Array) -> jax.Array:
    taste = b + s * d["nu"]
    e = jnp.exp(d["X"] @ taste.T + xi[..., None])
    bought = jnp.mean(e / (1 + jnp.sum(e, 1, keepdims=True)), 2)
    return 100 * _square_sum(jnp.log(bought) - jnp.log(d["share"])) + _square_sum(xi)


def arm_motion(d: Data, q: jax.Array) -> jax.Array:
    angle = jnp.cumsum(q, 1)
    x, y = (jnp.cumsum(d["length"] * f(angle), 1) for f in (jnp.cos, jnp.sin))
    o = d["o"]
    r = jnp.sqrt((x[..., None] - o[:, 0]) ** 2 + (y[..., None] - o[:, 1]) ** 2 + 1e-4)
    end = (x[-1, -1] - 2) ** 2 + (y[-1, -1] - 1) ** 2
    smooth = 10 * _square_sum(q[1:] - q[:-1]) + jnp.sum(softplus(8 * (0.4 - r)))
    return smooth + 100 * end + 100 * _square_sum(q[0])


def pose_graph(d: Data, x: jax.Array, y: jax.Array, h: jax.Array) -> jax.Array:
    a, b = d["a"], d["b"]
    c, s, gx, gy = jnp.cos(h[a]), jnp.sin(h[a]), x[b] - x[a], y[b] - y[a]
    turned = 10 * jnp.sum(1 - jnp.cos(h[b] - h[a] - d["turn"]))
    moved = _square_sum(c * gx + s * gy - d["dx"]) + _square_sum(c * gy - s * gx - d["dy"])
    return moved + turned + x[0] ** 2 + y[0] ** 2 + h[0] ** 2


def metal_cluster(d: Data, P: jax.Array) -> jax.Array:
    Q = d["P0"] + 0.2 * P
    other = 1 - jnp.eye(len(Q))
    r = jnp.sqrt(jnp.sum((Q[:, None] - Q) ** 2, 2) + 1e-12)
    repulsion = jnp.sum(other * (0.2 * jnp.exp(-10 * (r - 1))))
    return repulsion - jnp.sum(jnp.sqrt(jnp.sum(other * jnp.exp(-5 * (r - 1)), 1)))


def queue_waits(d: Data, b: jax.Array, rate: jax.Array, sharpness: jax.Array) -> jax.Array:
    service, k = jnp.exp(d["X"] @ b + rate), jnp.exp(sharpness)

    def step(w: jax.Array, own: jax.Array) -> tuple[jax.Array, jax.Array]:
        w = softplus(k * (w + own)) / k
        return w, w

    _, later = jax.lax.scan(step, jnp.array(0.0), service[:-1] - d["gap"][1:])
    w = jnp.concatenate([jnp.zeros(1), later])
    loss = jnp.sum((w - d["wait"]) ** 2 / (1 + w))
    return loss + _square_sum(b) + rate**2 + sharpness**2


def trapped_animals(d: Data, base: jax.Array, width: jax.Array, density: jax.Array) -> jax.Array:
    trap, centre, y = d["trap"], d["centre"], d["y"]
    apart = jnp.sum((centre[:, None] - trap) ** 2, 2)
    rate = jnp.exp(base - apart / (2 * jnp.exp(2 * width)))
    far = jnp.sum(centre**2, 1) / 50
    prior = log_softmax(centre @ density[:2] / 5 + density[2] * far)
    like = prior + y @ jnp.log(rate + 1e-9).T - jnp.sum(rate, 1)
    return -jnp.sum(logsumexp(like, 1)) + base**2 + width**2 + _square_sum(density)


def gene_counts(d: Data, z: jax.Array, w: jax.Array, b: jax.Array, phi: jax.Array) -> jax.Array:
    y, a = d["y"], jnp.exp(phi)
    log_mu = z @ w + b
    both = jnp.log(a + jnp.exp(log_mu))
    like = gammaln(y + a) - gammaln(a) + a * (phi - both) + y * (log_mu - both)
    return -jnp.sum(like) + (_square_sum(z) + _square_sum(w) + _square_sum(phi)) / 2


def radio_sources(d: Data, flux: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    phase = 2 * jnp.pi * (jnp.outer(d["u"], x) + jnp.outer(d["v"], y))
    bright = jnp.exp(flux)
    re, im = jnp.cos(phase) @ bright, jnp.sin(phase) @ bright
    return _square_sum(d["re"] - re) / 2 + _square_sum(d["im"] - im) / 2 + _square_sum(flux)


def spectral_lines(
    d: Data,
    height: jax.Array,
    place: jax.Array,
    width: jax.Array,
    mix: jax.Array,
    back: jax.Array,
) -> jax.Array:
    E, n = d["E"], d["n"]
    z = (E[:, None] - jnp.arange(1.0, 10.0) - place) * jnp.exp(-width)
    part = sigmoid(mix)
    peaks = (part / (1 + z * z) + (1 - part) * jnp.exp(-jnp.log(2.0) * z * z)) @ jnp.exp(height)
    rate = jnp.exp(back[0] + back[1] * E / 10 + back[2] * (E / 10) ** 2) + peaks
    loss = jnp.sum(rate - n * jnp.log(rate))
    return loss + _square_sum(place) + _square_sum(width) + _square_sum(mix)


def dose_response(
    d: Data,
    top: jax.Array,
    ec50: jax.Array,
    hill: jax.Array,
    shift: jax.Array,
    log_sigma: jax.Array,
) -> jax.Array:
    compound, y = d["compound"], d["y"]
    z = jnp.exp(hill)[compound] * (jnp.log(d["dose"]) - ec50[compound])
    fit = shift[d["plate"]] + jnp.exp(top)[compound] * sigmoid(z)
    loss = _square_sum(y - fit) * jnp.exp(-2 * log_sigma) / 2 + y.size * log_sigma
    prior = (_square_sum(top) + _square_sum(ec50) + _square_sum(hill)) / 2
    return loss + prior + 10 * _square_sum(shift)


def road_traffic(d: Data, s: jax.Array) -> jax.Array:
    e, trip, free, room = jnp.exp(s), d["trip"], d["free"], d["room"]
    whole = jnp.zeros(len(d["demand"])).at[trip].add(e)
    h = d["demand"][trip] * e / whole[trip]
    flow = jnp.zeros(len(free)).at[d["link"]].add(h[d["route"]])
    cost = jnp.sum(free * (flow + 0.03 * flow**5 / room**4))
    return cost + jnp.sum(h * jnp.log(h)) + _square_sum(s) / 20


def wave_speeds(d: Data, m: jax.Array) -> jax.Array:
    c = 0.2 * jnp.exp(2 * m)

    def step(v: tuple[jax.Array, jax.Array], own: jax.Array) -> tuple[object, jax.Array]:
        before, u = v
        bent = jnp.roll(u, -1) - 2 * u + jnp.roll(u, 1)
        new = (2 * u - before + c * bent).at[10].add(own)
        return (u, new), new[15:116:20]

    first = (jnp.zeros_like(m), jnp.zeros_like(m))
    _, u = jax.lax.scan(step, first, d["source"][2:])
    loss = _square_sum(u[:, :5] - d["seen"][2:]) + _square_sum(d["seen"][:2])
    return 50 * loss + _square_sum(m)


def edge_image(d: Data, u: jax.Array, e: jax.Array) -> jax.Array:
    dx, dy = u[1:] - u[:-1], u[:, 1:] - u[:, :-1]
    smooth = _square_sum(e[:-1] * dx) + _square_sum(e[:, :-1] * dy)
    edges = _square_sum(e[1:] - e[:-1]) + _square_sum(e[:, 1:] - e[:, :-1])
    return _square_sum(u - d["g"]) + smooth + 0.1 * edges + _square_sum(1 - e) / 4


def image_blobs(
    d: Data,
    x: jax.Array,
    y: jax.Array,
    a: jax.Array,
    b: jax.Array,
    c: jax.Array,
    w: jax.Array,
) -> jax.Array:
    X, Y = d["at"] - x[:, None], d["at"] - y[:, None]
    own = (jnp.exp(a)[:, None] * X * X)[:, :, None] + (jnp.exp(b)[:, None] * Y * Y)[:, None]
    q = own + 2 * c[:, None, None] * X[:, :, None] * Y[:, None]
    fit = jnp.tensordot(w, jnp.exp(-2 * q), 1)
    prior = (_square_sum(a) + _square_sum(b) + _square_sum(c)) / 2
    return _square_sum(d["I"] - fit) / 2 + prior


THIRD_FORMULAS: dict[str, Formula] = {
    formula.__name__: formula
    for formula in (
        *(competing_species, quake_locations, contact_epidemic, thin_film, branch_lengths),
        *(market_shares, arm_motion, pose_graph, metal_cluster, queue_waits, trapped_animals),
        *(gene_counts, radio_sources, spectral_lines, dose_response, road_traffic),
        *(wave_speeds, edge_image, image_blobs),
    )
}
