"""A network with numeric values at a centre, and layerwise enclosures of its arrays over a ball."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.rounding import Array, up_add, up_mul, up_norm
from slomodel.bounds.arithmetic.upper_bounds import floored, rounded_up
from slomodel.bounds.norms.loewner import Rows
from slomodel.bounds.norms.power_sums import Moments
from slomodel.bounds.norms.spectral_norm import spectral_norm
from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.ranges.elements.element_functions import derivative_graphs
from slomodel.bounds.ranges.enclose import boxed, enclose
from slomodel.bounds.ranges.smoothness import Smoothness
from slomodel.bounds.rules.networks.functions import Function, Loss
from slomodel.bounds.structure.linear_predictors import Elements, Laid
from slomodel.bounds.structure.networks import Network
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Expr
from slomodel.ir.function import ANALYTIC
from slomodel.reference import aligned

_MANY_SAMPLES, _FEW_LAYERS = 2**11, 2
"""Samples are grouped beyond both: in two layers the sums over all of them are fast."""


@dataclass(frozen=True, slots=True)
class Level:
    """One layer: W (h, d), its norm and those of its rows and columns, and values at the centre.

    These are the features z (d, N), also as `rows` (N, d) with a 1 appended if there is a bias, and
    u (h, N).
    """

    W: Array
    norm: float
    row_norms: Array
    column_norms: Array
    z: Interval
    u: Interval
    rows: Rows
    has_bias: bool


@dataclass(frozen=True, slots=True)
class Values:
    """A network at a centre.

    The levels, the functions between them, the loss g, ‖g'(o(c))‖_F, sums over samples per layer,
    ranges of each layer's function at the centre, and sums over groups.
    """

    levels: tuple[Level, ...]
    functions: tuple[Function, ...]
    loss: Loss
    slope: float
    moments: tuple[Moments, ...]
    at_centre: tuple[tuple[list[Interval], Smoothness], ...]
    groupings: dict[tuple[int, int], tuple[Moments, ...]] = field(default_factory=dict)

    @property
    def samples(self) -> int:
        return int(self.levels[0].z.shape[1])

    @property
    def is_large(self) -> bool:
        """Whether a ball is expensive: it is then bounded by groups of samples."""
        return self.samples > _MANY_SAMPLES and len(self.levels) > _FEW_LAYERS


def oriented(array: Array, units: int | None) -> Array:
    """The array with units (or features) before samples; one row if there is one unit."""
    if units is None:
        return array[np.newaxis]
    return array if units == 0 else array.T


def network_values(part: ObjectivePart, net: Network) -> Values:
    """Enclosures at the centre of everything that is independent of the radius."""
    functions = (*net.activations, *net.losses)
    nodes = [layer.node for layer in net.layers] + [layer.features for layer in net.layers]
    nodes += [laid.node for function in functions for laid in function.data.values()]
    nodes += [one.weight for one in functions]
    nodes += [] if net.log_sum is None else [net.log_sum.weight]
    result = enclose(nodes, boxed(part.values), part.sizes)
    levels = []
    for layer in net.layers:
        units = layer.weight_axes[0]
        W = np.asarray(part.values[layer.weight], dtype=np.float64)
        W = W[np.newaxis] if units is None else (W if units == 0 else W.T)
        z = result[layer.features].each(partial(oriented, units=layer.feature_axes[0]))
        u = result[layer.node].each(partial(oriented, units=layer.units))
        levels.append(_level(np.ascontiguousarray(W), z, u, layer.bias is not None))
    last = net.layers[-1]
    made = [
        _function(part, one, layer.units, result)
        for one, layer in zip(net.activations, net.layers[:-1], strict=True)
    ]
    loss = Loss(
        tuple(_function(part, one, last.units, result) for one in net.losses),
        None if net.log_sum is None else _laid(result[net.log_sum.weight], levels[-1].u.shape[1]),
    )
    o = levels[-1].u
    at_centre = [one.over(level.u) for one, level in zip(made, levels[:-1], strict=True)]
    at_centre.append(loss.diagonal(o))
    slope = float(up_norm(loss.norms(at_centre[-1][0], o)[0]))
    moments = tuple(Moments(level.rows) for level in levels)
    return Values(tuple(levels), tuple(made), loss, slope, moments, tuple(at_centre))


def _laid(weight: Interval, samples: int) -> Interval:
    return weight.broadcast((samples,))


def _level(W: Array, z: Interval, u: Interval, has_bias: bool) -> Level:
    one = np.ones((1, z.shape[1]))
    full = z.each(lambda array: np.concatenate([array, one])) if has_bias else z
    return Level(
        W,
        float(floored(np.asarray(spectral_norm(W)))),
        floored(up_norm(W, 1)),
        floored(up_norm(W, 0)),
        z,
        u,
        Rows.of(full.each(np.transpose)),
        has_bias,
    )


def _function(
    part: ObjectivePart, own: Elements, units: int | None, ranges: Mapping[Expr, Interval]
) -> Function:
    shape = concrete(own.shape, part.sizes)

    def placed(laid: Laid) -> Interval:
        def view(array: Array) -> Array:
            wide = aligned(array, laid.axes, len(shape))
            return oriented(np.broadcast_to(wide, shape), units)

        return ranges[laid.node].each(view)

    weight = Laid(own.weight, tuple(range(own.weight.rank)))
    spans = {made: part.spans[node] for made, node in own.origins.items() if node in part.spans}
    return Function(
        own,
        derivative_graphs(own.value, own.arguments, 0),
        {one: placed(laid) for one, laid in own.data.items()},
        placed(weight),
        spans,
    )


@dataclass(frozen=True, slots=True)
class Cell:
    """Bounds over all W_l within `rho[l]` of their centres.

    By layer the largest ‖z_i‖ including the appended 1 (N,), the largest ‖z_i - z_i(c)‖ (N,), and
    magnitudes of the derivatives of orders 1 to 4 of the activations (h, N) and, as norms, of the
    loss (N,).
    """

    rho: Array
    lengths: list[Array]
    moved: list[Array]
    sizes: list[list[Array]]
    loss: list[Array]
    order: int
    reason: str


def over_cell(values: Values, rho: Array) -> Cell:
    """Layerwise ranges by u(x) - u(c) = W(c) (z(x) - z(c)) + h z(x) with ‖h‖_F <= rho."""
    N = values.samples
    first = values.levels[0]
    lengths, moved = [floored(first.rows.length)], [np.zeros(N)]
    entries: Array = np.zeros(first.z.shape)
    sizes: list[list[Array]] = []
    order, reason = ANALYTIC, ""
    for k, level in enumerate(values.levels):
        own = floored(up_mul(np.asarray(rho[k]), lengths[k]))
        u = _reached(level, moved[k], entries, own) if rho.any() else level.u
        z, largest, smooth = _sizes(values, k, u, not rho.any())
        if smooth.least < order:
            order, reason = smooth.least, smooth.reason
        sizes.append(largest)
        if k + 1 == len(values.levels):
            break
        after = values.levels[k + 1]
        entries = np.maximum(up_add(z.hi, -after.z.lo), up_add(after.z.hi, -z.lo))
        entries = floored(np.maximum(entries, 0.0))
        steepest = np.max(sizes[-1][0], axis=0)
        whole = rounded_up(steepest * rounded_up(rounded_up(level.norm * moved[k]) + own))
        moved.append(np.minimum(floored(up_norm(entries, 0)), whole))
        near = rounded_up(np.asarray(up_norm(after.z.magnitude, 0)) + moved[-1])
        length = np.minimum(near, floored(up_norm(z.magnitude, 0)))
        if after.has_bias:
            length = rounded_up(np.sqrt(1.0 + rounded_up(length * length)))
        lengths.append(length)
    return Cell(rho, lengths, moved, sizes[:-1], sizes[-1], order, reason)


def _reached(level: Level, moved: Array, entries: Array, own: Array) -> Interval:
    """Intervals (h, N) that contain u over the cell."""
    by_rows = rounded_up(np.multiply.outer(level.row_norms, moved))
    by_entries = rounded_up(floored(np.abs(level.W)) @ entries, level.W.shape[1] + 4)
    reach = rounded_up(np.minimum(by_rows, by_entries) + own)
    return level.u.widened(reach)


def _sizes(
    values: Values, k: int, u: Interval, constant: bool
) -> tuple[Interval, list[Array], Smoothness]:
    """Range, magnitudes of derivatives (norms for the loss) and smoothness of the k-th function.

    Over intervals u or, if it is `constant`, at the centre.
    """
    is_loss = k == len(values.functions)
    if constant:
        ranges, smooth = values.at_centre[k]
    else:
        ranges, smooth = values.loss.diagonal(u) if is_loss else values.functions[k].over(u)
    if is_loss:
        return ranges[0], values.loss.norms(ranges, u), smooth
    return ranges[0], [floored(a.magnitude) for a in ranges[1:]], smooth
