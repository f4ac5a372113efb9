"""Layered networks: derivatives along one direction per sample, summed over samples by norms."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from slomodel.bounds.arithmetic.rounding import Array, up_add, up_mul
from slomodel.bounds.arithmetic.upper_bounds import rounded_up
from slomodel.bounds.effort import Effort
from slomodel.bounds.enclosure import DerivativeBounds, Enclosure, both_ends, norm_of
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.refinements import Refinement, refine
from slomodel.bounds.rules.linear_predictors import Sums, sums_of
from slomodel.bounds.rules.networks.centre_derivatives import (
    network_hessian_norm,
    network_third_norm,
)
from slomodel.bounds.rules.networks.jets import NetworkJets
from slomodel.bounds.rules.networks.values import Values, network_values, over_cell
from slomodel.bounds.structure.networks import Network, network
from slomodel.ir.function import ANALYTIC

_MOST_ELEMENTS = 2**17
"""Elements of a layer, units times samples, beyond which the rule does not apply."""
_ARCS, _FEW_ARCS = 4, 2
"""Arcs of the quarter circle of the radii of two layers; the second number for many elements."""
_MANY_ELEMENTS = 2**15
"""Elements of a layer beyond which cells are fewer, as each takes time with them."""
_SMALL_RADIUS = 1e-3
"""Radius relative to the least norm of a layer up to which large deep networks have one cell."""
_AS_AT_CENTRE = 1.0001
"""Ratio of the bound on D³f to that at the centre up to which order 4 cannot gain."""
_FAR_ABOVE_CENTRE = 10.0
"""Ratio of bounds over a ball to those at the centre beyond which no expansion gains noticeably."""


@dataclass(frozen=True, slots=True)
class PreparedNetwork:
    """The network with its evaluated layers, and the other parts of the objective."""

    net: Network
    values: Values
    rest: Sums


@dataclass(frozen=True, slots=True)
class Natural:
    """Upper bounds on sup ‖D²f‖ and sup ‖D³f‖ over the cells, and the smoothness of f there."""

    second: float
    third: float
    cells: tuple[NetworkJets, ...]
    order: int
    reason: str


@dataclass(frozen=True, slots=True)
class NetworkOverBall:
    """A network over the cells of a ball, with the smoothness of the objective there."""

    part: ObjectivePart
    prepared: PreparedNetwork
    radius: float
    cells: tuple[NetworkJets, ...]
    order: int


@dataclass(frozen=True, slots=True)
class NetworkBounds:
    """Upper bounds on sup ‖D^k f‖ over the ball for k = 2, 3, 4, and on ‖H(c)‖ and ‖D³f(c)‖."""

    second: float
    third: float
    fourth: float = float(np.inf)
    hessian: float = float(np.inf)
    third_at_centre: float = float(np.inf)


def layered_networks(part: ObjectivePart, radius: float) -> Enclosure | None:
    """L1 and L2 of Σ g(o), o a network with smooth functions between its layers.

    The inequalities are those of `networks.jets` over cells of the layers' radii ρ that cover Σ
    ρ_l² <= r²; then G_k >= sup ‖D^k f‖, and from the centre ‖D²f‖ <= ‖H(c)‖ + r sup ‖D³f‖ etc.
    Hypothesis: all functions are C¹ (C² for L2) on the ranges of their arguments.
    """
    prepared = _prepared(part)
    if prepared is None:
        return None
    over = _natural(part, prepared, radius) if radius else _over_centre(part)
    known = NetworkBounds(over.second, over.third)
    if over.order < 1:
        return Enclosure(order=over.order, reason=over.reason)
    if over.order < 2:
        ends = DerivativeBounds(both_ends(known.second))
        return Enclosure(over=ends, order=over.order, reason=over.reason)
    own = NetworkOverBall(part, prepared, radius, over.cells, over.order)
    known = refine(own, known, REFINEMENTS)
    return Enclosure(
        DerivativeBounds(both_ends(known.hessian), known.third_at_centre),
        DerivativeBounds(both_ends(known.second), known.third, both_ends(known.fourth)),
        over.order,
        over.reason,
    )


def is_deep(part: ObjectivePart) -> bool:
    """Whether the objective is a network with hidden layers beyond the first."""
    prepared = _prepared(part)
    return prepared is not None and len(prepared.values.levels) > 2


def fourth_derivatives(own: NetworkOverBall, known: NetworkBounds) -> NetworkBounds | None:
    """The bounds with those on D⁴f and on the derivatives at the centre, where these may matter."""
    part, values = own.part, own.prepared.values
    if own.order < 3 or (own.radius and _is_deep_and_large(values)):
        return None
    third, fourth = _at_centre(part, 3), float(np.inf)
    if own.radius:
        if known.third <= _AS_AT_CENTRE * third:
            return None
        centre = _over_centre(part)
        pairs = ((known.second, centre.second), (known.third, centre.third))
        grown = all(0.0 < _FAR_ABOVE_CENTRE * at_centre < over for over, at_centre in pairs)
        if grown and len(values.levels) > 2:
            return None
        rest = own.prepared.rest.over(part, own.radius).over
        cells = max(jet.orders(4, 4)[0] for jet in own.cells)
        fourth = float(up_add(cells, norm_of(rest.fourth)))
    hessian = _at_centre(part, 2)
    return replace(known, fourth=fourth, hessian=hessian, third_at_centre=third)


def curvature_at_centre(own: NetworkOverBall, known: NetworkBounds) -> NetworkBounds | None:
    """The bounds with that on H(c), where ‖H(c)‖ + r sup ‖D³f‖ may be less than sup ‖H‖."""
    if not up_mul(own.radius, known.third) < known.second:
        return None
    return replace(known, hessian=_at_centre(own.part, 2))


REFINEMENTS: tuple[Refinement[NetworkOverBall, NetworkBounds], ...] = (
    fourth_derivatives,
    curvature_at_centre,
)
"""Their order changes no bound."""


@once_per_part
def _prepared(part: ObjectivePart) -> PreparedNetwork | None:
    """The network; None where the objective is not one, has no samples, or is too large."""
    net = network(part.objective, part.variables)
    if net is None:
        return None
    rest = sums_of(part, net.rest)
    if rest is None:
        return None
    values = network_values(part, net)
    if not 0 < max(level.u.lo.size for level in values.levels) <= _MOST_ELEMENTS:
        return None
    return PreparedNetwork(net, values, rest)


def _is_deep_and_large(values: Values) -> bool:
    """Whether order 4, which gains little over several layers, and all cells are too expensive."""
    largest = max(level.u.lo.size for level in values.levels)
    return len(values.levels) > 2 and largest > _MANY_ELEMENTS


@once_per_part
def _at_centre(part: ObjectivePart, order: int) -> float:
    """Upper bound on ‖H(c)‖ or ‖D³f(c)‖.

    The sum of the norms of the network and of the rest of the objective or, where that is too
    expensive or larger, the bound over a point.
    """
    prepared = _prepared(part)
    assert prepared is not None
    norm = network_hessian_norm if order == 2 else network_third_norm
    rest = prepared.rest.over(part, 0.0).over
    beside = norm_of(rest.second) if order == 2 else rest.third
    result = float(up_add(norm(prepared.values, part.effort), beside))
    if order == 3 or not np.isfinite(result):
        centre = _over_centre(part)
        result = min(result, centre.second if order == 2 else centre.third)
    return result


@once_per_part
def _over_centre(part: ObjectivePart) -> Natural:
    """The bounds over the ball of radius 0."""
    prepared = _prepared(part)
    assert prepared is not None
    return replace(_natural(part, prepared, 0.0), cells=())  # large, and read over balls alone


def _natural(part: ObjectivePart, prepared: PreparedNetwork, radius: float) -> Natural:
    """The maxima over the cells, plus the bounds on the rest of the objective."""
    values, order, reason = prepared.values, ANALYTIC, ""
    jets = []
    for rho in _cells_of(values, radius, part.effort):
        cell = over_cell(values, rho)
        if cell.order < order:
            order, reason = cell.order, cell.reason
        jets.append(NetworkJets(values, cell))
    second, third = (max(own) for own in zip(*(one.orders(3) for one in jets), strict=True))
    rest = prepared.rest.over(part, radius)
    if rest.order < order:
        order, reason = rest.order, rest.reason
    bounds = up_add(second, norm_of(rest.over.second)), up_add(third, rest.over.third)
    return Natural(float(bounds[0]), float(bounds[1]), tuple(jets), order, reason)


def _cells_of(values: Values, radius: float, effort: Effort) -> list[Array]:
    """Upper corners (count,) of the cells into which the ball is divided.

    They are fewer for layers with many elements; there is one for a deep network if the radius is
    small compared with the norms of its layers.
    """
    count = len(values.levels)
    least = min(level.norm for level in values.levels)
    if _is_deep_and_large(values) and 0.0 < radius <= _SMALL_RADIUS * least:
        return [np.full(count, radius)]
    many = max(level.u.lo.size for level in values.levels) > _MANY_ELEMENTS
    return _cells(count, radius, effort.scaled(_FEW_ARCS if many else _ARCS, 3.0))


def _cells(count: int, radius: float, arcs: int = _ARCS) -> list[Array]:
    """Upper corners (count,) of boxes that cover {ρ >= 0, ‖ρ‖ <= r}.

    Two layers: on arcs of angles in [a, b], ρ_1 <= r cos a, ρ_2 <= r sin b. More: boxes of equal
    sides in ρ², whose upper corners are limited by the lower ends of the other sides.
    """
    if radius == 0.0:
        return [np.zeros(count)]
    if count == 2:
        angles = np.linspace(0.0, 0.5 * np.pi, arcs + 1)
        pairs = zip(np.cos(angles[:-1]), np.sin(angles[1:]), strict=True)
        shares = [np.array(pair) for pair in pairs]
    else:  # halves; the corner of the box at 0 is dominated by the others
        lows = 0.5 * np.eye(count)
        shares = [np.sqrt(np.minimum(low + 0.5, 1.0 - (sum(low) - low))) for low in lows]
    # Cosines, sines and square roots have errors of a few ulps each.
    return [rounded_up(radius * share) for share in shares]
