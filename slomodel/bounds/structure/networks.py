"""Layered networks: Σ g(o) over elements of o = W_L z_(L-1) + b_L, z_l = φ_l(W_l z_(l-1) + b_l)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import slomodel.functions as table
from slomodel.bounds.structure.linear_predictors import (
    Elements,
    affine_nodes,
    element_function,
    parts_over,
)
from slomodel.bounds.structure.log_sum_exp import LogSum, log_sums
from slomodel.ir import build
from slomodel.ir.expr import Einsum, Expr, Input, Map
from slomodel.ir.walk import dependents, postorder

MOST_LAYERS = 4
"""Largest number of layers: norms by layer grow like their product, and say nothing for more."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer u = W z + b at `node`.

    `weight` is W with its axes for units (None: one unit) and features, `bias` b or None,
    `features` z with its axes for features and samples, and `units` the axis of units in `node`
    (None: one unit).
    """

    node: Expr
    weight: Input
    weight_axes: tuple[int | None, int]
    bias: Input | None
    features: Expr
    feature_axes: tuple[int, int]
    units: int | None


@dataclass(frozen=True, slots=True)
class Network:
    """Layers from the first to the last, the functions between them, and the loss of the last.

    The loss is the sum of `losses` and of `log_sum`, a log Σ exp over its units, or either alone.
    `rest` holds parts of the objective that are sums over elements of affine nodes.
    """

    layers: tuple[Layer, ...]
    activations: tuple[Elements, ...]
    losses: tuple[Elements, ...]
    log_sum: LogSum | None
    rest: tuple[Elements, ...]


def network(objective: Expr, variables: Collection[Input]) -> Network | None:
    """The network, if there is one of at least two layers with distinct variables; else None."""
    order = postorder(objective)
    varying = dependents(order, set(variables).__contains__)
    affine = affine_nodes(order, varying)
    layers = {}
    for node in order:
        layer = layer_at(node, varying) if node in varying else None
        if layer is not None:
            layers[node] = layer
    deep = {node for node in layers if node not in affine}
    summed = log_sums(objective, variables, deep)
    sums, others = summed if summed else ((), objective)
    parts = _parts(others, variables, deep)
    if parts is None or len(sums) > 1:
        return None
    losses = tuple(part for part in parts if any(laid.node in deep for laid in part.affine))
    rest = tuple(one for one in parts if one not in losses)
    log_sum = sums[0] if sums else None
    top = _output(losses, log_sum)
    functions, chain = list[Elements](), list[Layer]()
    while top in layers and len(chain) < MOST_LAYERS:
        layer = layers[top]
        if chain and chain[-1].feature_axes[0] != layer.units:
            return None  # a sum over samples
        chain.append(layer)
        if layer.features not in varying:
            if log_sum and log_sum.summed != (chain[0].units,):
                return None
            return _network(chain[::-1], functions[::-1], losses, log_sum, rest)
        one = build.const(1.0)
        result = element_function((layer.features,), one, varying, affine, layers)
        if result is None:
            return None
        functions.append(result)
        top = _only_argument(result)
    return None


def _parts(
    objective: Expr, variables: Collection[Input], deep: Collection[Expr]
) -> tuple[Elements, ...] | None:
    """The parts over affine nodes and layers; empty where the objective is affine."""
    order = postorder(objective)
    varying = dependents(order, set(variables).__contains__)
    affine = affine_nodes(order, varying)
    if objective not in varying or objective in affine:
        return ()
    return parts_over(objective, varying, affine, deep) if deep else None


def _network(
    layers: list[Layer],
    functions: list[Elements],
    losses: tuple[Elements, ...],
    log_sum: LogSum | None,
    rest: tuple[Elements, ...],
) -> Network | None:
    own = [v for layer in layers for v in (layer.weight, layer.bias) if v is not None]
    if len(set(own)) < len(own) or len(layers) < 2:
        return None
    return Network(tuple(layers), tuple(functions), losses, log_sum, rest)


def _output(losses: Collection[Elements], log_sum: LogSum | None) -> Expr | None:
    """The node that all losses are functions of; None where there are several."""
    tops = {_only_argument(loss) for loss in losses} | ({log_sum.u} if log_sum else set())
    return tops.pop() if len(tops) == 1 else None


def _only_argument(one: Elements) -> Expr | None:
    """The node of a function of one argument, if it has all axes in order; otherwise None."""
    if len(one.affine) != 1:
        return None
    (laid,) = one.affine
    return laid.node if laid.axes == tuple(range(len(one.shape))) else None


def layer_at(node: Expr, varying: Collection[Expr]) -> Layer | None:
    """The layer that ends at a node, including its bias; None if there is none."""
    if isinstance(node, Map) and node.function is table.add:
        for k, own in enumerate(node.operands):
            bias = node.operands[1 - k]
            layer = _product(own, varying)
            if layer is None or not _is_variable(bias) or node.axes[k] != tuple(range(node.rank)):
                continue
            assert isinstance(bias, Input)
            along = () if layer.units is None else (layer.units,)
            if node.axes[1 - k] == along and bias.rank == len(along):
                return Layer(
                    node,
                    layer.weight,
                    layer.weight_axes,
                    bias,
                    layer.features,
                    layer.feature_axes,
                    layer.units,
                )
        return None
    return _product(node, varying)


def _is_variable(node: Expr) -> bool:
    return isinstance(node, Input) and node.role == "variable"


def _product(node: Expr, varying: Collection[Expr]) -> Layer | None:
    """The layer W z: features are summed, samples are in z and units in W, both in the result."""
    if not isinstance(node, Einsum) or len(node.operands) != 2 or node.rank not in (1, 2):
        return None
    for k, weight in enumerate(node.operands):
        features, own, other = node.operands[1 - k], node.inputs[k], node.inputs[1 - k]
        if not isinstance(weight, Input) or not _is_variable(weight) or weight is features:
            continue
        summed = [label for label in own if label in other and label not in node.output]
        units = [label for label in own if label not in summed]
        samples = [label for label in other if label not in summed]
        if not (len(summed) == len(samples) == 1 and len(units) == len(own) - 1 <= 1):
            continue
        if len(other) != 2 or sorted(node.output) != sorted(units + samples):
            continue
        if len(node.dims) != len(units) + 2:
            continue
        unit = own.index(units[0]) if units else None
        return Layer(
            node,
            weight,
            (unit, own.index(summed[0])),
            None,
            features,
            (other.index(summed[0]), other.index(samples[0])),
            node.output.index(units[0]) if units else None,
        )
    return None
