"""The numbers at a centre in which the derivatives of a network's loss are polynomials."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval, point
from slomodel.bounds.arithmetic.rounding import Array
from slomodel.bounds.arithmetic.sums_of_products import magnitudes
from slomodel.bounds.ranges.curvature.log_sum_exp import shares
from slomodel.bounds.rules.networks.values import Values


@dataclass(frozen=True, slots=True)
class Numbers:
    """By layer W (h, d), features (d, N), or (d + 1, N) with a 1 for the bias, and derivatives.

    `slopes` are the derivatives of orders 1 to 3 of the functions (h, N), last those of the loss;
    of these, orders 2 and 3 exclude the weight w (N,) times log Σ exp, whose derivatives are formed
    from `shares` p (h, N). `sign` is -1, or 1 for bounds on magnitudes.
    """

    W: list[Array]
    z: list[Array]
    slopes: list[list[Array]]
    weight: Array
    shares: Array
    sign: float

    def loss_second(self, a: Array) -> Array:
        """D²g a for a (.., h, N): diag p - p pᵀ is the second derivative of log Σ exp."""
        p, (_, second, _) = self.shares, self.slopes[-1]
        return second * a + self.weight * p * (a + self.sign * _mean(p, a))

    def loss_third(self, a: Array, b: Array) -> Array:
        """D³g[a, b] for a, b (.., h, N), from the third derivative of log Σ exp.

        With means E under p it is p times ab - a E b - b E a - E ab + 2 E a E b.
        """
        p, (_, _, third) = self.shares, self.slopes[-1]
        at, bt, both = _mean(p, a), _mean(p, b), _mean(p, a * b)
        inner = a * b + self.sign * (a * bt + b * at + both) + 2.0 * at * bt
        return third * a * b + self.weight * p * inner

    @property
    def places(self) -> list[tuple[int, int, int]]:
        """Layer, unit and feature of each unknown."""
        return [
            (layer, k, a)
            for layer, W in enumerate(self.W)
            for k in range(len(W))
            for a in range(len(self.z[layer]))
        ]


def _mean(p: Array, a: Array) -> Array:
    """Σ_k p_k a_k per sample (.., 1, N)."""
    return np.asarray((p * a).sum(axis=-2, keepdims=True))


@dataclass(frozen=True, slots=True)
class Ranges:
    """Derivatives of orders 0 to 4 at the centre by layer, the loss of single outputs last.

    For log Σ exp of the outputs, its weight (N,) and `shares` p (h, N).
    """

    orders: list[list[Interval]]
    weight: Interval
    shares: Interval


def ranges_of(values: Values) -> Ranges:
    *own, last = (list(ranges) for ranges, _ in values.at_centre)
    o = values.levels[-1].u
    weight, p = values.loss.weight, point(np.zeros(o.shape))
    if weight is None:
        weight = point(np.zeros(values.samples))
    else:
        p = shares(o)
        last[1] = last[1] + weight * p
    return Ranges([*own, last], weight, p)


def numbers_of(values: Values, ranges: Ranges, bound: bool) -> Numbers:
    """The midpoints, or with `bound` the magnitudes of `sums_of_products`."""

    def one(a: Interval) -> Array:
        return magnitudes(a) if bound else a.mid

    W = [np.abs(level.W) if bound else level.W for level in values.levels]
    z = []
    for level in values.levels:
        own = one(level.z)
        z.append(np.concatenate([own, np.ones((1, own.shape[1]))]) if level.has_bias else own)
    slopes = [[one(a) for a in orders[1:4]] for orders in ranges.orders]
    sign = 1.0 if bound else -1.0
    return Numbers(W, z, slopes, one(ranges.weight), one(ranges.shares), sign)
