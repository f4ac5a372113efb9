"""Bounds on the derivatives of a network's loss along one direction, over a ball by layers.

By Banach's theorem the norm of D^k f(x) is its largest |D^k f(x)[v, .., v]| over unit v = (V_1, ..,
V_L), so one direction suffices. For sample i let s_b = ‖V_b z_(b-1),i(x)‖, t_b = ‖V_b‖_F. As V
enters affinely, D^k u_l = W_l D^k z_(l-1) + k V_l D^(k-1) z_(l-1), and D^k z is the sum over
partitions of the k slots of φ^(parts)(u) Π D^part u, elementwise. With D_q >= |φ^(q)| over the ball

    ‖W D^k z‖ <= Σ w_π Π ‖D^part u‖,  w = ‖W(c) diag(D_1)‖ + ρ max D_1 for one part,
                                      max_j ‖W_j(c)‖ D_q,j + ρ max D_q for q >= 2 parts,

since diag(φ') = diag(D_1) E with |E| <= 1, and the 1-norm of an elementwise product of q >= 2
vectors is at most the product of their lengths, so that the longest column bounds it. All bounds
are thus polynomials in s and t with coefficients >= 0 per sample.

Over samples, with N_b^q(c)^q >= Σ_i c_i s_ib^q for ‖V_b‖ = 1, Hölder's inequality gives Σ c
Π_(a<=q) s_a <= Π N_a^q(c) t_a, and s_b <= t_b ‖z_b-1‖ moves other factors into c.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from slomodel.bounds.arithmetic.rounding import Array, up_add, up_norm
from slomodel.bounds.arithmetic.upper_bounds import FLOOR, rounded_up
from slomodel.bounds.norms.polynomial import collected, largest_value
from slomodel.bounds.norms.power_sums import largest_eigenvalues, roughly
from slomodel.bounds.rules.networks.norms import Alternatives, Terms, alternatives, bounded
from slomodel.bounds.rules.networks.sample_polynomials import (
    Exponents,
    SamplePolynomials,
    added,
    products,
    scaled,
    single,
    times,
)
from slomodel.bounds.rules.networks.samples import Bundle, by_sample, grouped, in_groups
from slomodel.bounds.rules.networks.values import Cell, Values
from slomodel.bounds.stopping import pause

_CLOSE, _CLOSE_OF_GROUPS = 1.2, 1.02
"""Alternatives whose estimates are within this factor of the least are computed."""
_HALVINGS = 6
"""2^6 groups of samples suffice to identify the best alternatives."""
_FINE_HALVINGS = 8
"""2^8 groups of samples take the place of the samples themselves where these are many."""


@dataclass(slots=True)
class Jets:
    """Bounds on ‖D^k u_l‖, and (`plain`) on ‖D^k z_l‖, by layer and order."""

    own: Bundle
    u: list[list[SamplePolynomials]] = field(default_factory=list)
    plain: list[list[SamplePolynomials]] = field(default_factory=list)

    def __post_init__(self) -> None:
        nothing = self._zero()
        self.u = [[nothing] for _ in range(self.own.layers)]
        self.plain = [[nothing] for _ in range(self.own.layers)]

    def _zero(self) -> SamplePolynomials:
        places, one = 2 * self.own.layers, self.own.count
        return SamplePolynomials(np.zeros((0, places), dtype=np.int64), np.zeros((0, len(one))))

    def outputs(self, highest: int) -> list[SamplePolynomials]:
        """Bounds on ‖D^k o_i‖, k = 0 (empty) to `highest`, o the last layer's u."""
        while len(self.u[-1]) <= highest:
            self._extend(len(self.u[-1]))
        return self.u[-1]

    def _extend(self, order: int) -> None:
        L, one = self.own.layers, np.ones(self.own.lengths.shape[1])
        first = single(0, 2 * L, one) if order == 1 else self._zero()
        self.u[0].append(first)
        for k in range(1, L):
            parts = products(self.u[k - 1], order)
            through, plain = (
                added([scaled(by[len(sizes) - 1], product) for sizes, product in parts])
                for by in (self.own.weights[k - 1], self.own.largest[k - 1])
            )
            if order == 1:
                turned = single(k, 2 * L, one)
            else:
                turned = times(single(L + k, 2 * L, order * one), self.plain[k][order - 1])
            self.u[k].append(added([through, turned]))
            self.plain[k].append(plain)


@dataclass(slots=True)
class NetworkJets:
    """The bounds over one cell.

    `fine` holds them per sample, or per group if many samples over a ball make that too expensive;
    `rough` has few groups and serves to select the alternatives that are computed.
    """

    values: Values
    cell: Cell
    fine: Jets = field(init=False)
    rough: Jets = field(init=False)
    slope: float = field(init=False)

    def __post_init__(self) -> None:
        values = self.values
        if values.is_large and self.cell.rho.any():
            moments = grouped(values, _FINE_HALVINGS)
            own = by_sample(values, self.cell, moments[0].groups)
            self.fine = Jets(in_groups(own, moments))
        else:
            own = by_sample(values, self.cell)
            self.fine = Jets(own)
        self.rough = self.fine
        if values.samples > 2 << _HALVINGS:
            finest = _FINE_HALVINGS if values.is_large else 0
            self.rough = Jets(in_groups(own, grouped(values, _HALVINGS, finest)))
        self.slope = float(up_norm(own.slopes))
        self.slope = min(self.slope, self._slope_from_centre())

    def orders(self, highest: int, lowest: int = 2) -> list[float]:
        """Upper bounds on sup ‖D^k f‖ for k = `lowest` to `highest`."""
        return [self._order(k) for k in range(lowest, highest + 1)]

    def _order(self, k: int) -> float:
        pause()
        terms = self._bounds([_terms(jets, k) for jets in (self.fine, self.rough)])
        return _largest(*terms)

    def _slope_from_centre(self) -> float:
        """‖g'‖ <= ‖g'(c)‖ + (Σ (sup g'')² ‖D o[h]‖²)^½, by the mean value theorem from c."""
        both = []
        for jets in (self.fine, self.rough):
            along, steepest = jets.outputs(1)[1], jets.own.sizes[1]
            squared = scaled(rounded_up(steepest * steepest), times(along, along))
            none = np.zeros(len(squared.c), dtype=bool)
            both.append(Terms(squared.exponents, squared.c, none))
        exponents, values = self._bounds(both)
        constant = ((self.cell.rho == 0.0) & (exponents > 0)).any(axis=1)
        reach = rounded_up(np.prod(np.maximum(self.cell.rho, FLOOR) ** exponents, axis=1))
        moved = float(np.sum(rounded_up(values * reach), where=~constant))
        change = float(rounded_up(np.sqrt(rounded_up(np.asarray(moved)))))
        return float(up_add(self.values.slope, change))

    def _bounds(self, both: Sequence[Terms]) -> tuple[Exponents, Array]:
        """Exponents of t (M, L) of the terms, and upper bounds on their coefficients (M,)."""
        fine, rough = both
        which = self._chosen(rough)
        result = bounded(self.fine.own, fine, which, self.slope, largest_eigenvalues)
        least = np.full(len(fine.c), np.inf)
        np.minimum.at(least, which.term, result)
        L = self.fine.own.layers
        exponents: Exponents = fine.exponents[:, :L] + fine.exponents[:, L:]
        return exponents, least

    def _chosen(self, rough: Terms) -> Alternatives:
        """The alternatives with nearly the least estimates."""
        every = alternatives(rough)
        about = bounded(self.rough.own, rough, every, self.slope, roughly)
        least = np.full(len(rough.c), np.inf)
        np.minimum.at(least, every.term, about)
        close = _CLOSE if self.fine.own.moments is self.values.moments else _CLOSE_OF_GROUPS
        return every.take(about <= close * least[every.term])


def _terms(jets: Jets, k: int) -> Terms:
    """D^k f[v, .., v], f = Σ g(o): the terms whose partitions have one part are residual."""
    parts = products(jets.outputs(k), k)
    (alone,) = (product for sizes, product in parts if len(sizes) == 1)
    several = added(
        [scaled(jets.own.sizes[len(sizes) - 1], p) for sizes, p in parts if len(sizes) > 1]
    )
    residual = np.arange(len(alone.c) + len(several.c)) < len(alone.c)
    both = np.concatenate([alone.exponents, several.exponents])
    return Terms(both, np.concatenate([alone.c, several.c]), residual)


def _largest(exponents: Exponents, values: Array) -> float:
    """Upper bound on the polynomial's largest value for ‖t‖ = 1."""
    values = rounded_up(values)
    if not np.isfinite(values).all():
        return float(np.inf)
    return largest_value(collected(exponents, values))
