"""A network at a centre, with numbers, and enclosures of its arrays over a ball by layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from slomodel.bounds.element_ranges import Slots, derivative_graphs, element_ranges
from slomodel.bounds.enclose import boxed, enclose
from slomodel.bounds.interval import Interval, interval
from slomodel.bounds.jet_arrays import settled
from slomodel.bounds.loewner import Rows
from slomodel.bounds.network import Network
from slomodel.bounds.rounding import Array, gamma, up, up_add, up_norm
from slomodel.bounds.separable import Elements, Laid
from slomodel.bounds.setting import Setting
from slomodel.bounds.smoothness import Smoothness
from slomodel.bounds.spectral import spectral_norm
from slomodel.errors import Span
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Expr, Input
from slomodel.ir.function import ANALYTIC

ORDERS = 4


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar function of elements (h, N): its graphs, data (h, N) and weight (h, N)."""

    own: Elements
    graphs: Mapping[Slots, Expr]
    data: Mapping[Input, Interval]
    weight: Interval
    spans: Mapping[Expr, Span]

    def over(self, u: Interval) -> tuple[list[Interval], Smoothness]:
        """Weight times the derivatives of orders 0 to 4 over intervals u (h, N)."""
        flat = {self.own.arguments[0]: u.each(np.ravel)}
        data = {one: a.each(np.ravel) for one, a in self.data.items()}
        found = element_ranges(self.own.value, self.graphs, flat, data, self.spans)
        ranges = []
        for order in range(ORDERS + 1):
            a = found.derivatives[(0,) * order].each(partial(np.reshape, shape=u.shape))
            ranges.append(self.weight * a)
        return ranges, found.smooth


@dataclass(frozen=True, slots=True)
class Level:
    """One layer: W (h, d), its norm and those of its rows and columns, and at the centre its
    features z (d, N), with a 1 below where there is a bias as `rows` (N, d), and u (h, N).
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
    """The levels of a network, the functions between them, the loss g and ‖g'(o(c))‖_F."""

    levels: tuple[Level, ...]
    functions: tuple[Function, ...]
    loss: Function
    slope: float

    @property
    def samples(self) -> int:
        return int(self.levels[0].z.shape[1])


def oriented(array: Array, units: int | None) -> Array:
    """Units (or features) in front of samples; one row where there is one unit."""
    if units is None:
        return array[np.newaxis]
    return array if units == 0 else array.T


def network_values(setting: Setting, net: Network) -> Values:
    """Enclosures at the centre of everything that does not depend on a radius."""
    functions = (*net.activations, net.loss)
    nodes = [layer.node for layer in net.layers] + [layer.features for layer in net.layers]
    nodes += [laid.node for one in functions for laid in one.data.values()]
    nodes += [one.weight for one in functions]
    found = enclose(nodes, boxed(setting.values), setting.sizes)
    levels = []
    for layer in net.layers:
        units = layer.weight_axes[0]
        W = np.asarray(setting.values[layer.weight], dtype=np.float64)
        W = W[np.newaxis] if units is None else (W if units == 0 else W.T)
        z = found[layer.features].each(partial(oriented, units=layer.feature_axes[0]))
        u = found[layer.node].each(partial(oriented, units=layer.units))
        levels.append(_level(np.ascontiguousarray(W), z, u, layer.bias is not None))
    made = [
        _function(setting, one, layer.units, found)
        for one, layer in zip(functions, net.layers, strict=True)
    ]
    at_centre, _ = made[-1].over(levels[-1].u)
    slope = float(up_norm(at_centre[1].magnitude))
    return Values(tuple(levels), tuple(made[:-1]), made[-1], slope)


def _level(W: Array, z: Interval, u: Interval, has_bias: bool) -> Level:
    one = np.ones((1, z.shape[1]))
    full = z.each(lambda array: np.concatenate([array, one])) if has_bias else z
    return Level(
        W,
        spectral_norm(W),
        np.asarray(up_norm(W, 1)),
        np.asarray(up_norm(W, 0)),
        z,
        u,
        Rows.of(full.each(np.transpose)),
        has_bias,
    )


def _function(
    setting: Setting, own: Elements, units: int | None, found: Mapping[Expr, Interval]
) -> Function:
    shape = concrete(own.shape, setting.sizes)

    def placed(laid: Laid) -> Interval:
        missing = tuple(k for k in range(len(shape)) if k not in laid.axes)

        def view(array: Array) -> Array:
            return oriented(np.broadcast_to(np.expand_dims(array, missing), shape), units)

        return found[laid.node].each(view)

    weight = Laid(own.weight, tuple(range(own.weight.rank)))
    spans = {
        made: setting.spans[node] for made, node in own.origins.items() if node in setting.spans
    }
    return Function(
        own,
        derivative_graphs(own.value, own.arguments, 0),
        {one: placed(laid) for one, laid in own.data.items()},
        placed(weight),
        spans,
    )


@dataclass(frozen=True, slots=True)
class Cell:
    """Over W_l within `rho[l]` of their centres: by layer the largest ‖z_i‖ with its 1 (N,), the
    largest ‖z_i - z_i(c)‖ (N,), and sizes of the derivatives of orders 1 to 4 (h, N) of the
    activations and, last, of the loss.
    """

    rho: Array
    lengths: list[Array]
    moved: list[Array]
    sizes: list[list[Array]]
    order: int
    reason: str


def over_cell(values: Values, rho: Array) -> Cell:
    """Ranges by layers: u(x) - u(c) = W(c) (z(x) - z(c)) + h z(x) with ‖h‖_F <= rho."""
    N = values.samples
    first = values.levels[0]
    lengths, moved = [first.rows.length], [np.zeros(N)]
    entries: Array = np.zeros(first.z.shape)
    sizes: list[list[Array]] = []
    order, reason = ANALYTIC, ""
    for k, level in enumerate(values.levels):
        growth = up(1.0 + gamma(2 * level.W.shape[1] + 8))
        by_rows = settled(np.multiply.outer(level.row_norms, moved[k]))
        by_entries = settled(np.abs(level.W) @ entries * growth)
        own = settled(rho[k] * lengths[k])
        reach = settled(np.minimum(by_rows, by_entries) + own)
        u = interval(-up_add(-level.u.lo, reach), up_add(level.u.hi, reach))
        function = values.loss if k == len(values.levels) - 1 else values.functions[k]
        ranges, smooth = function.over(u)
        least = int(np.min(smooth.order, initial=ANALYTIC))
        if least < order:
            order, reason = least, smooth.reason
        sizes.append([a.magnitude for a in ranges[1:]])
        if function is values.loss:
            break
        z, after = ranges[0], values.levels[k + 1]
        entries = np.maximum(up_add(z.hi, -after.z.lo), up_add(after.z.hi, -z.lo))
        entries = np.maximum(entries, 0.0)
        steepest = np.max(sizes[-1][0], axis=0)
        whole = settled(steepest * settled(settled(level.norm * moved[k]) + own))
        moved.append(np.minimum(np.asarray(up_norm(entries, 0)), whole))
        near = settled(np.asarray(up_norm(after.z.magnitude, 0)) + moved[-1])
        length = np.minimum(near, np.asarray(up_norm(z.magnitude, 0)))
        if after.has_bias:
            length = settled(np.sqrt(1.0 + settled(length * length)))
        lengths.append(length)
    return Cell(rho, lengths, moved, sizes, order, reason)
