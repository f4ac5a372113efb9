"""Bounds of the derivatives of a network's loss along one direction, over a ball by layers.

By Banach the norm of D^k f(x) is its largest |D^k f(x)[v, .., v]| over unit v = (V_1, .., V_L), so
one direction is enough. For sample i let s_b = ‖V_b z_(b-1),i(x)‖, t_b = ‖V_b‖_F. As V enters
affinely, D^k u_l = W_l D^k z_(l-1) + k V_l D^(k-1) z_(l-1), and D^k z is the sum over partitions of
the k slots of φ^(parts)(u) Π D^part u, by elements. With D_q >= |φ^(q)| over the ball

    ‖W D^k z‖ <= Σ w_π Π ‖D^part u‖,  w = ‖W(c) diag(D_1)‖ + ρ max D_1 for one part,
                                      max_j ‖W_j(c)‖ D_q,j + ρ max D_q for q >= 2 parts,

since diag(φ') = diag(D_1) E with |E| <= 1, and a product by elements of q >= 2 vectors has the sum
of its sizes at most the product of their lengths, so that the longest column counts. So all are
polynomials in s and t with coefficients >= 0 by sample.

Over samples, with N_b^q(c)^q >= Σ_i c_i s_ib^q for ‖V_b‖ = 1, Hölder gives Σ c Π_(a<=q) s_a <= Π
N_a^q(c) t_a, and s_b <= t_b ‖z_b-1‖ takes other factors into c.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from math import prod

import numpy as np

from slomodel.bounds.jet_arrays import FLOOR, settled
from slomodel.bounds.network_values import Cell, Level, Values
from slomodel.bounds.polynomials import collected, largest_value
from slomodel.bounds.power_sums import power_sums
from slomodel.bounds.rounding import Array, gamma, up, up_add, up_norm
from slomodel.bounds.sample_polynomials import Key, Samples, added, products, scaled, times
from slomodel.bounds.spectral import stack_norm

Sought = tuple[int, int, bytes]


@dataclass(slots=True)
class NetworkJets:
    """The bounds over one cell."""

    values: Values
    cell: Cell
    known: dict[Sought, float] = field(default_factory=dict)
    sought: dict[Sought, Array] = field(default_factory=dict)
    slopes: Array = field(init=False)
    slope: float = field(init=False)

    def __post_init__(self) -> None:
        """At least ‖g'_i‖ of each sample (N,), and ‖g'‖_F over all samples."""
        self.slopes = self.cell.loss[0]
        self.slope = float(up_norm(self.slopes))

    @property
    def count(self) -> int:
        return len(self.values.levels)

    def orders(self, highest: int, lowest: int = 2) -> list[float]:
        """At least sup ‖D^k f‖ for k = `lowest` to `highest`."""
        along = self.outputs(highest)
        parts = {k: products(along, k) for k in range(lowest, highest + 1)}
        # Without known norms the numbers mean nothing; they tell which norms are sought.
        self._slope_from_centre(along[1])
        for one in parts.values():
            self.order(one)
        self._find_norms()
        self.slope = min(self.slope, self._slope_from_centre(along[1]))
        found = [self.order(one) for one in parts.values()]
        assert not self.sought, "a norm is used that is not known"
        return [_largest(one) for one in found]

    def _slope_from_centre(self, along: Samples) -> float:
        """‖g'‖ <= ‖g'(c)‖ + (Σ (sup g'')² ‖D o[h]‖²)^½, the mean value along the way from c."""
        steepest = self.cell.loss[1]
        squared = scaled(settled(steepest * steepest), times(along, along))
        moved = 0.0
        L = self.count
        for key, c in squared.items():
            reach = prod(float(self.cell.rho[b]) ** (key[b] + key[L + b]) for b in range(L))
            moved += self.sum_of(key, c) * reach
        change = float(settled(np.sqrt(settled(np.asarray(moved)))))
        return float(up_add(self.values.slope, change))

    def outputs(self, highest: int) -> list[Samples]:
        """Bounds of ‖D^k o_i‖, k = 0 (nothing) to `highest`, o the last layer's u."""
        L = self.count
        zero = np.zeros(self.values.samples)
        one = np.ones_like(zero)
        s, t = ([tuple(int(j == i) for j in range(2 * L)) for i in range(k, k + L)] for k in (0, L))
        u: list[Samples] = [{}, {s[0]: one}, *({} for _ in range(2, highest + 1))]
        for k, level in enumerate(self.values.levels[1:], 1):
            weights, largest = self._weights(k, level)
            through: list[Samples] = [{}]
            plain: list[Samples] = [{}]
            for order in range(1, highest + 1):
                by_weight: Samples = {}
                by_size: Samples = {}
                for parts, product in products(u, order):
                    q = len(parts) - 1
                    by_weight = added(by_weight, scaled(weights[q], product))
                    by_size = added(by_size, scaled(largest[q], product))
                through.append(by_weight)
                plain.append(by_size)
            following: list[Samples] = [{}, added(through[1], {s[k]: one})]
            for order in range(2, highest + 1):
                turned = scaled(order * one, times({t[k]: one}, plain[order - 1]))
                following.append(added(through[order], turned))
            u = following
        return u

    def _weights(self, k: int, level: Level) -> tuple[list[Array], list[Array]]:
        """By the number q of parts w and the largest D_q over the units, (N,)."""
        sizes, rho = self.cell.sizes[k - 1], self.cell.rho[k]
        largest = [np.max(size, axis=0) for size in sizes]
        weights = [settled(_row_norms(level.W, sizes[0]) + settled(rho * largest[0]))]
        for size, most in zip(sizes[1:], largest[1:], strict=True):
            column = np.max(settled(level.column_norms[:, np.newaxis] * size), axis=0)
            weights.append(settled(column + settled(rho * most)))
        return weights, largest

    def order(self, partitioned: list[tuple[Key, Samples]]) -> dict[Key, float]:
        """At least D^k f[v, .., v] by exponents of t, f = Σ g(o), from partitions of k slots."""
        sizes = self.cell.loss
        total: dict[Key, float] = {}
        several: Samples = {}
        found = []
        for parts, product in partitioned:
            if len(parts) == 1:
                found += [(key, self.residual(key, c)) for key, c in product.items()]
            else:
                several = added(several, scaled(sizes[len(parts) - 1], product))
        found += [(key, self.sum_of(key, c)) for key, c in several.items()]
        L = self.count
        for key, value in found:
            short = tuple(key[b] + key[L + b] for b in range(L))
            total[short] = total.get(short, 0.0) + value
        return total

    def sum_of(self, key: Key, c: Array, least: float = np.inf) -> float:
        """At least Σ_i c_i Π s_b over unit t, the least over choices of the factors for Hölder."""
        factors = [b for b in range(self.count) for _ in range(key[b])]
        for q in {2, min(len(factors), 4)} if len(factors) > 1 else ():
            for picked, rest in _choices(factors, q):
                least = min(least, self._product(picked, self._into(c, rest), q))
        return least

    def residual(self, key: Key, c: Array) -> float:
        """At least |Σ_i g'_i · w_i| for ‖w_i‖ <= c_i Π s_b, by sample or, with G = ‖g'‖_F, by
        Cauchy: G (Σ ‖w_i‖²)^½.
        """
        slopes = self.slopes
        least = self.sum_of(key, settled(c * slopes))
        factors = [b for b in range(self.count) for _ in range(key[b])]
        total = self.slope
        for picked, rest in _choices(factors, 1):
            (b,) = picked
            weight = self._into(c, rest)
            least = min(least, total * self.power_norm(b, settled(weight * weight), 2))
            mixed = settled(weight * slopes)
            root = float(np.sqrt(_sum(mixed)))
            least = min(least, root * self.power_norm(b, mixed, 2))
        for picked, rest in _choices(factors, 2) if len(factors) > 1 else ():
            weight = self._into(c, rest)
            squared = settled(weight * weight)
            least = min(least, total * self._product(picked, squared, 4))
        return float(settled(np.asarray(least)))

    def _product(self, picked: tuple[int, ...], c: Array, q: int) -> float:
        norms = {b: self.power_norm(b, c, q) for b in set(picked)}
        return prod(norms[b] for b in picked)

    def _into(self, c: Array, factors: list[int]) -> Array:
        """c times the lengths that these factors have at most."""
        for b in factors:
            c = settled(c * self.cell.lengths[b])
        return c

    def power_norm(self, b: int, c: Array, q: int) -> float:
        """At least (Σ c_i ‖V z_(b-1),i(x)‖^q)^(1/q) for ‖V‖_F <= 1 over the ball: at the centre
        and, by Minkowski, what z moves.
        """
        result = self._centre_norm(b, c, q)
        if b > 0:
            result += self._moved_norm(b, c, q)
        return float(settled(np.asarray(result)))

    def _moved_norm(self, b: int, c: Array, q: int) -> float:
        """At least (Σ c_i ‖z_i(x) - z_i(c)‖^q)^(1/q): by sample, or by the layer below, where it is
        φ'(ξ) (W(c) (z - z(c)) + h z(x)) with one h for all samples.
        """
        if b == 0:
            return 0.0
        by_sample = float(_root(np.asarray(_sum(settled(c * _power(self.cell.moved[b], q)))), q))
        steepest = np.max(self.cell.sizes[b - 1][0], axis=0)
        below = settled(c * _power(steepest, q))
        level, rho = self.values.levels[b - 1], float(self.cell.rho[b - 1])
        together = rho * self.power_norm(b - 1, below, q)
        together += level.norm * self._moved_norm(b - 1, below, q)
        return float(settled(np.asarray(min(by_sample, together))))

    def _centre_norm(self, b: int, c: Array, q: int) -> float:
        """The same at the centre; 1 where it is not known yet, and is then sought."""
        key = (b, q, c.tobytes())
        if key in self.known:
            return self.known[key]
        self.sought[key] = c
        return 1.0

    def _find_norms(self) -> None:
        """With Q = VᵀV, of trace 1, Σ c (zᵀQz)^(q/2) is convex in Q: largest at some Q = v vᵀ."""
        for b, level in enumerate(self.values.levels):
            for q in (2, 3, 4):
                keys = [key for key in self.sought if key[:2] == (b, q)]
                if keys:
                    c = np.stack([self.sought[key] for key in keys])
                    found = power_sums(level.rows, c, q)
                    self.known.update(zip(keys, (_root(x, q) for x in found), strict=True))
        self.sought.clear()


def _largest(coefficients: dict[Key, float]) -> float:
    """At least the polynomial's largest value for t of length 1."""
    values = settled(np.array(list(coefficients.values())))
    if not np.isfinite(values).all():
        return float(np.inf)
    return largest_value(collected(np.array(list(coefficients), dtype=np.int64), values))


def _choices(factors: list[int], q: int) -> list[tuple[tuple[int, ...], list[int]]]:
    """The different ways to pick q factors, and what is left."""
    found = []
    for picked in dict.fromkeys(combinations(factors, q)):
        rest = list(factors)
        for b in picked:
            rest.remove(b)
        found.append((picked, rest))
    return found


def _row_norms(W: Array, size: Array) -> Array:
    """‖W diag(size_i)‖ for every sample (N,)."""
    entries = settled(np.abs(W)[np.newaxis] * size.T[:, np.newaxis, :])
    return settled(stack_norm(np.sign(W) * entries) + W.size * FLOOR)


def _power(a: Array, q: int) -> Array:
    result = a
    for _ in range(q - 1):
        result = settled(result * a)
    return result


def _sum(a: Array) -> float:
    """The sum of numbers >= 0, rounded up."""
    return float(settled(np.asarray(np.sum(a) * up(1.0 + gamma(len(a) + 4)))))


def _root(x: Array, q: int) -> float:
    """The q-th root for q = 2, 3, 4."""
    y = np.sqrt(x) if q != 3 else np.cbrt(x)
    return float(settled(np.asarray(np.sqrt(y) if q == 4 else y)))
