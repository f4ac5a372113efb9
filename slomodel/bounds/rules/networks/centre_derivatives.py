"""The Hessian and the third derivative of a network's loss at the centre, and their norms.

The gradient is computed with tangents: along each unit direction for the Hessian, along pairs of
them for the third derivative. The results are polynomials in numbers with known errors, which bound
the errors of the results by `sums_of_products`, along directions of ones: row sums bound the norm
of nonnegative forms, A[v, v, v] <= Σ A_ijk (|v_i|³ + |v_j|³ + |v_k|³) / 3.

Written by hand because intervals of the graphs of `calculus` take 5 to 15 times as long for H(c)
and 10 to 50 times for D³f(c), which the default effort does not allow beyond 40 unknowns; measured
by `benchmarks/centre_derivatives.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds.arithmetic.midpoint_radius import Bounded
from slomodel.bounds.arithmetic.rounding import Array, up_add
from slomodel.bounds.arithmetic.sums_of_products import error_of_polynomial
from slomodel.bounds.effort import DEFAULT, Effort
from slomodel.bounds.norms.cubic_norm import cubic_norm
from slomodel.bounds.norms.spectral_norm import symmetric_norm
from slomodel.bounds.rules.networks.numbers import Numbers, numbers_of, ranges_of
from slomodel.bounds.rules.networks.values import Values
from slomodel.bounds.stopping import pause

_FACTORS = 40
"""Factors of a product in the derivatives at the centre at most, for its rounding error."""
_FLOPS_OF_HESSIAN, _FLOPS_OF_THIRD = 0.125, 1.75
"""Operations per pair of unknowns: for the Hessian times the samples, for the third derivative
times the elements of the widest layer and the longest side of a weight.
"""
_MOST_THIRD_UNKNOWNS = 100
"""Largest number of variables for which the norm of a cubic form is bounded tightly."""


@dataclass(frozen=True, slots=True)
class Along:
    """Directions (P, h, d + 1) by layer, and the derivatives along them.

    u' (P, h, N), z' (P, d + 1, N), adjoints δ' of u (P, h, N) and λ' of z (P, d, N).
    """

    V: list[Array]
    u: list[Array]
    z: list[Array]
    delta: list[Array]
    adjoint: list[Array]
    gradient: Array


@dataclass(frozen=True, slots=True)
class Backward:
    """Adjoints of u (h, N) and of z (d, N) by layer at the centre."""

    delta: list[Array]
    adjoint: list[Array]


def _backward(own: Numbers) -> Backward:
    last = len(own.W) - 1
    delta, adjoint = [own.slopes[last][0]], [own.W[last].T @ own.slopes[last][0]]
    for k in range(last - 1, -1, -1):
        delta.insert(0, own.slopes[k][0] * adjoint[0])
        adjoint.insert(0, own.W[k].T @ delta[0])
    return Backward(delta, adjoint)


def _padded(z: Array, like: Array) -> Array:
    """`z` padded with zeros, the derivative of the constant input 1."""
    missing = len(like) - z.shape[1]
    return np.pad(z, ((0, 0), (0, missing), (0, 0)))


def _along(own: Numbers, back: Backward, V: list[Array]) -> Along:
    """The gradient's derivative (P, n) along directions: forward, then backward."""
    P = len(V[0])
    u: list[Array] = []
    z: list[Array] = [np.zeros((P, *own.z[0].shape))]
    for k, W in enumerate(own.W):
        d = W.shape[1]
        u.append(np.zeros((P, *own.slopes[k][0].shape)))
        if k:
            u[k] += W @ z[k][:, :d]
        if V[k].any():  # unit directions are mostly zero
            u[k] += V[k] @ own.z[k]
        if k + 1 < len(own.W):
            z.append(_padded(own.slopes[k][0] * u[k], own.z[k + 1]))
    last = len(own.W) - 1
    delta: list[Array] = [own.loss_second(u[last])]
    adjoint: list[Array] = []
    for k in range(last, -1, -1):
        W = own.W[k]
        d = W.shape[1]
        adjoint.insert(0, W.T @ delta[0])
        if V[k].any():
            adjoint[0] += V[k][:, :, :d].transpose(0, 2, 1) @ back.delta[k]
        if k:
            first, second = own.slopes[k - 1][:2]
            delta.insert(0, second * u[k - 1] * back.adjoint[k] + first * adjoint[0])
    parts = [
        delta[k] @ own.z[k].T + back.delta[k] @ z[k].transpose(0, 2, 1) for k in range(last + 1)
    ]
    gradient = np.concatenate([part.reshape(P, -1) for part in parts], axis=1)
    return Along(V, u, z, delta, adjoint, gradient)


def _twice(own: Numbers, back: Backward, a: Along, b: Along) -> Array:
    """The gradient's second derivative (P, n) along pairs of directions."""
    P = len(a.u[0])
    u: list[Array] = []
    z: list[Array] = [np.zeros((P, *own.z[0].shape))]
    for k, W in enumerate(own.W):
        d = W.shape[1]
        u.append(W @ z[k][:, :d] + a.V[k] @ b.z[k] + b.V[k] @ a.z[k])
        if k + 1 < len(own.W):
            first, second = own.slopes[k][:2]
            z.append(_padded(second * a.u[k] * b.u[k] + first * u[k], own.z[k + 1]))
    last = len(own.W) - 1
    delta = own.loss_third(a.u[last], b.u[last]) + own.loss_second(u[last])
    parts: list[Array] = []
    for k in range(last, -1, -1):
        own_z = delta @ own.z[k].T + back.delta[k] @ z[k].transpose(0, 2, 1)
        mixed = a.delta[k] @ b.z[k].transpose(0, 2, 1) + b.delta[k] @ a.z[k].transpose(0, 2, 1)
        parts.insert(0, own_z + mixed)
        if k == 0:
            break
        d = own.W[k].shape[1]
        adjoint = own.W[k].T @ delta
        for one, other in ((a, b), (b, a)):
            adjoint = adjoint + one.V[k][:, :, :d].transpose(0, 2, 1) @ other.delta[k]
        first, second, third = own.slopes[k - 1]
        delta = (third * a.u[k - 1] * b.u[k - 1] + second * u[k - 1]) * back.adjoint[k]
        delta = delta + first * adjoint
        delta = delta + second * (a.u[k - 1] * b.adjoint[k] + b.u[k - 1] * a.adjoint[k])
    return np.concatenate([part.reshape(P, -1) for part in parts], axis=1)


def _units(own: Numbers, which: list[int]) -> list[Array]:
    """Unit directions of these unknowns, by layer."""
    V = [np.zeros((len(which), len(W), len(z))) for W, z in zip(own.W, own.z, strict=True)]
    for row, place in enumerate(which):
        layer, k, a = own.places[place]
        V[layer][row, k, a] = 1.0
    return V


def _ones(own: Numbers) -> list[Array]:
    return [np.ones((1, len(W), len(z))) for W, z in zip(own.W, own.z, strict=True)]


def _error(values: Values, largest: float) -> float:
    terms = values.samples + sum(sum(level.W.shape) for level in values.levels)
    return error_of_polynomial(largest, _FACTORS, 16 * terms + 400)


def _unknowns(values: Values) -> int:
    return sum(level.W.shape[0] * level.rows.value.shape[1] for level in values.levels)


def network_hessian_norm(values: Values, effort: Effort = DEFAULT) -> float:
    """Upper bound on the norm of the Hessian at the centre; inf beyond the effort."""
    if _unknowns(values) ** 2 * values.samples > effort.count(_FLOPS_OF_HESSIAN):
        return float(np.inf)
    ranges = ranges_of(values)
    own = numbers_of(values, ranges, bound=False)
    pause()
    H = _hessian(own, _backward(own))
    pause()
    bounds = numbers_of(values, ranges, bound=True)
    largest = float(np.max(_along(bounds, _backward(bounds), _ones(bounds)).gradient))
    norm = symmetric_norm(0.5 * H + 0.5 * H.T, np.zeros_like(H))
    return float(up_add(norm, _error(values, largest)))


def _hessian(own: Numbers, back: Backward) -> Array:
    """All entries (n, n), from the effect of a shift of each unit's u, per sample.

    The weight of a unit and a feature z_a shifts u by z_a, so that with the adjoints δ_m and the
    derivatives ' along the shift its row is Σ_i z_a (δ_m' z_m + δ_m z_m') for the layers m from its
    own on; those below follow by symmetry.
    """
    sizes = [len(W) * len(z) for W, z in zip(own.W, own.z, strict=True)]
    starts = np.cumsum([0, *sizes])
    H = np.zeros((starts[-1], starts[-1]))
    for layer, z in enumerate(own.z):
        ends = slice(starts[layer], starts[layer + 1])
        within = []
        for k in range(len(own.W[layer])):
            first = starts[layer] + k * len(z)
            rows = slice(first, first + len(z))
            for m, delta, moved in _shifted(own, back, layer, k):
                if m == layer:
                    within.append(delta)
                    continue
                inner = delta[:, np.newaxis] * own.z[m] + back.delta[m][:, np.newaxis] * moved
                columns = slice(starts[m], starts[m + 1])
                H[rows, columns] = z @ inner.reshape(-1, z.shape[1]).T
                H[columns, rows] = H[rows, columns].T
        H[ends, ends] = _within(np.array(within), z)
    return H


def _within(delta: Array, z: Array) -> Array:
    """Σ_i δ_kl z zᵀ (h d, h d) of one layer, from δ (h, h, N) and z (d, N)."""
    (h, _, N), d = delta.shape, len(z)
    i, j = np.triu_indices(d)
    pairs = delta.reshape(-1, N) @ (z[i] * z[j]).T
    block = np.empty((h, h, d, d))
    block[:, :, i, j] = block[:, :, j, i] = pairs.reshape(h, h, -1)
    return block.transpose(0, 2, 1, 3).reshape(h * d, h * d)


def _shifted(own: Numbers, back: Backward, layer: int, unit: int) -> list[tuple[int, Array, Array]]:
    """For each layer from this one on: its index, and δ' (h, N) and z' (d + 1, N) along a shift of
    a unit's u.
    """
    last = len(own.W) - 1
    u = {layer: np.zeros_like(own.slopes[layer][0])}
    u[layer][unit] = 1.0
    z = {layer: np.zeros_like(own.z[layer])}
    for k in range(layer + 1, last + 1):
        z[k] = _padded((own.slopes[k - 1][0] * u[k - 1])[np.newaxis], own.z[k])[0]
        u[k] = own.W[k] @ z[k][: own.W[k].shape[1]]
    delta = own.loss_second(u[last])
    result = [(last, delta, z[last])]
    for k in range(last, layer, -1):
        first, second = own.slopes[k - 1][:2]
        delta = second * u[k - 1] * back.adjoint[k] + first * (own.W[k].T @ delta)
        result.append((k - 1, delta, z[k - 1]))
    return result


def network_third_norm(values: Values, effort: Effort = DEFAULT) -> float:
    """Upper bound on the norm of the third derivative at the centre; inf beyond the effort."""
    n, widest = _unknowns(values), max(level.u.lo.size for level in values.levels)
    longest = max(max(level.W.shape) for level in values.levels)
    if n > _MOST_THIRD_UNKNOWNS or n * n * widest * longest > effort.count(_FLOPS_OF_THIRD):
        return float(np.inf)
    ranges = ranges_of(values)
    own = numbers_of(values, ranges, bound=False)
    back = _backward(own)
    every = _along(own, back, _units(own, list(range(n))))
    T = np.zeros((n, n, n))
    for i in range(n):
        one = _picked(every, np.full(n - i, i))
        twice = _twice(own, back, one, _picked(every, np.arange(i, n)))
        T[i, i:] = twice
        T[i:, i] = twice
    bounds = numbers_of(values, ranges, bound=True)
    back = _backward(bounds)
    ones = _along(bounds, back, _ones(bounds))
    largest = float(np.max(_twice(bounds, back, ones, ones)))
    return cubic_norm(Bounded(T, _error(values, largest)))


def _picked(every: Along, which: NDArray[np.int64]) -> Along:
    def take(arrays: list[Array]) -> list[Array]:
        return [array[which] for array in arrays]

    return Along(
        take(every.V),
        take(every.u),
        take(every.z),
        take(every.delta),
        take(every.adjoint),
        every.gradient[which],
    )
