"""Sums over a few indices written out, so that a distance in space is a function of its numbers.

√Σ_k (x_ik - x_jk)² over k below 3 is a scalar function of three affine numbers for each pair (i, j)
once its terms are written out: then an objective of distances is a sum over elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from itertools import product
from math import prod

import slomodel.functions as table
from slomodel.bounds.elements.separable import MOST_ARGUMENTS, affine_nodes
from slomodel.bounds.setting import Setting
from slomodel.ir import build
from slomodel.ir.dims import Dim, concrete
from slomodel.ir.expr import Affine, Axes, Einsum, Expr, Map, remake
from slomodel.ir.labels import repeats
from slomodel.ir.walk import dependents, postorder

KEY = "with short sums written out"
_MOST_NODES = 2000
Fixed = Mapping[int, int]
"""Indices along axes that are taken out."""


def with_short_sums(setting: Setting) -> Setting | None:
    """The setting with sums of up to three terms that are not linear written out; None for none."""
    kept = setting.kept.get(KEY, setting)
    if kept is not setting:
        return kept if isinstance(kept, Setting) else None
    order = postorder(setting.objective)
    moving = dependents(order, set(setting.variables).__contains__)
    affine = affine_nodes(order, moving)
    done: dict[Expr, Expr] = {}
    if len(order) <= _MOST_NODES:
        for node in order:
            made = None
            if isinstance(node, Einsum) and node in moving and node not in affine and node.rank:
                made = _written_out(node, done, setting)
            done[node] = made or remake(node, tuple(done[operand] for operand in node.operands))
    objective = done.get(setting.objective, setting.objective)
    made_setting = None
    if objective is not setting.objective:
        spans = {done[node]: span for node, span in setting.spans.items() if node in done}
        spans = {**spans, **setting.spans}
        made_setting = replace(setting, objective=objective, spans=spans, kept={})
    setting.kept[KEY] = made_setting
    return made_setting


def _written_out(node: Einsum, done: Mapping[Expr, Expr], setting: Setting) -> Expr | None:
    """The sum as one of products by elements; None where it has many terms or other axes."""
    summed = [label for label in range(len(node.dims)) if label not in node.output]
    sizes = concrete(tuple(node.dims[label] for label in summed), setting.sizes)
    if repeats(node) or len(set(node.output)) < node.rank or not summed:
        return None
    if not 0 < prod(sizes) <= MOST_ARGUMENTS:
        return None
    kept = [tuple(label for label in own if label not in summed) for own in node.inputs]
    axes = [tuple(node.output.index(label) for label in own) for own in kept]
    if any(list(own) != sorted(set(own)) for own in axes):
        return None
    terms = []
    for places in product(*(range(size) for size in sizes)):
        at = dict(zip(summed, places, strict=True))
        factors: dict[tuple[Expr, Axes], int] = {}
        for operand, labels, own in zip(node.operands, node.inputs, axes, strict=True):
            fixed = {axis: at[label] for axis, label in enumerate(labels) if label in at}
            taken = _taken(done[operand], fixed), own
            factors[taken] = factors.get(taken, 0) + 1
        terms.append(_product(factors, node.shape))
    return reduce(table.add, terms)


def _product(factors: Mapping[tuple[Expr, Axes], int], shape: tuple[Dim, ...]) -> Expr:
    """The product of powers of factors, each laid along some of the axes."""
    found: tuple[Expr, Axes] | None = None
    whole = tuple(range(len(shape)))
    for (factor, own), count in factors.items():
        power = {1: factor, 2: table.square(factor)}.get(count)
        if power is None:
            power = table.pow(factor, float(count))
        if found is None:
            found = power, own
        else:
            pair, along = (found[0], power), (found[1], own)
            found = build.apply_along(table.mul, pair, along, shape), whole
    assert found is not None
    node, own = found
    return node if own == whole else build.broadcast(node, own, shape)


def _taken(node: Expr, fixed: Fixed) -> Expr:
    """The part of a node at fixed indices along some axes; of a map the map of parts."""
    if not fixed:
        return node
    if isinstance(node, Map):
        left = [axis for axis in range(node.rank) if axis not in fixed]
        parts, axes = [], []
        for operand, own in zip(node.operands, node.axes, strict=True):
            inner = {k: fixed[axis] for k, axis in enumerate(own) if axis in fixed}
            parts.append(_taken(operand, inner))
            axes.append(tuple(left.index(axis) for axis in own if axis in left))
        shape = tuple(node.shape[axis] for axis in left)
        return build.apply_along(node.function, parts, axes, shape)
    shape = tuple(dim for axis, dim in enumerate(node.shape) if axis not in fixed)
    index, free = [], 0
    for axis in range(node.rank):
        if axis in fixed:
            index.append(Affine(Dim((), fixed[axis]), (0,) * len(shape)))
        else:
            index.append(Affine(Dim(), tuple(int(k == free) for k in range(len(shape)))))
            free += 1
    return build.gather(node, index, shape)
