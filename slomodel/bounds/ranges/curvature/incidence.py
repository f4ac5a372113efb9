"""Which unknowns the elements of nodes read, and sums of many elements that read few of them each.

For elements s with ∇u_s and D²u_s supported on the unknowns S_s, and any y of length 1,

    |Σ_s D²u_s[y, y]| <= Σ_s h_s ‖y_(S_s)‖² <= max_i Σ_(s: i ∈ S_s) h_s,   h_s >= ‖D²u_s‖,
    Σ_s (∇u_s·y)² <= Σ_s l_s² ‖y_(S_s)‖² <= max_i Σ_(s: i ∈ S_s) l_s²,   l_s >= ‖∇u_s‖,

and |Σ_s (∇u_s·y)(∇w_s·y)| is at most the product of the roots of the second for u and for w, or
half of it where no unknown occurs in both, as ‖y_S‖‖y_T‖ <= ½ for disjoint S and T.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds.arithmetic.interval import from_zero, point
from slomodel.bounds.arithmetic.interval_einsum import contract
from slomodel.bounds.arithmetic.rounding import Array, Truths, up_mul, up_sqrt
from slomodel.bounds.effort import MOST_NUMBERS
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.ranges.enclose import range_of
from slomodel.ir.dims import concrete, number_of_elements
from slomodel.ir.expr import (
    Axes,
    Einsum,
    Expr,
    Extreme,
    Gather,
    Input,
    Map,
    Reshape,
    Scatter,
    tables,
)
from slomodel.ir.walk import dependents, postorder
from slomodel.reference import aligned

Places = NDArray[np.intp]
_FEW_UNKNOWNS = 16
"""Fewer are directions of their own."""
_SHARE = 4
"""Elements that read more than this part of the unknowns are derived by each of them."""
_MOST_TRUTHS = 2**26
"""Largest number of pairs of unknowns and elements that are compared, 64 MB."""


def incidence(
    part: ObjectivePart, order: Collection[Expr], varying: Collection[Expr]
) -> dict[Expr, Truths]:
    """For operands of contractions, which unknown may occur in which element (n, *shape)."""
    wanted = {
        operand
        for node in order
        if isinstance(node, Einsum) and node in varying and _size(part, node) <= MOST_NUMBERS
        for operand in node.operands
        if operand in varying
    }
    result = unknowns_read(part, order, _under(wanted, varying))
    return {node: result[node] for node in wanted}


def unknowns_read(
    part: ObjectivePart, order: Collection[Expr], varying: Collection[Expr]
) -> dict[Expr, Truths]:
    """Which unknown may occur in which element (n, *shape) of nodes that are listed in order."""
    n = part.n
    result: dict[Expr, Truths] = {
        variable: unit > 0.0 for variable, unit in part.by_variable(np.eye(n)).items()
    }
    for node in order:
        if node in varying and not isinstance(node, Input):
            wide = (n, *concrete(node.shape, part.sizes))
            result[node] = np.broadcast_to(reads(node, result, part), wide)
    return result


@dataclass(frozen=True, slots=True)
class UnknownsApart:
    """Groups of unknowns no two of which occur in one element of the nodes in `reads`.

    `group` (n,) numbers them, `count` of them in all; `reads` has which unknown may occur in which
    element (n, *shape).
    """

    group: Places
    count: int
    reads: Mapping[Expr, Truths]

    def directions(self) -> Array:
        """The sum of the unit vectors of each group (count, n)."""
        return np.asarray(np.arange(self.count)[:, np.newaxis] == self.group, dtype=np.float64)

    def by_unknown(self, node: Expr, array: Array, which: slice = slice(None)) -> Array:
        """Derivatives by unknowns (.., *shape), from those along the directions (count, *shape)."""
        return np.where(self.reads[node][which], array[self.group[which]], 0.0)


@once_per_part
def unknowns_apart(part: ObjectivePart, nodes: tuple[Expr, ...]) -> UnknownsApart:
    """Groups of unknowns for nodes whose elements read few each; singletons if that saves little.

    Each unknown in turn joins the first group without an unknown that shares an element with it.
    """
    n = part.n
    none = UnknownsApart(np.arange(n), n, {})
    order = postorder(*nodes)
    varying = dependents(order, set(part.variables).__contains__)
    elements = sum(number_of_elements(node.shape, part.sizes) for node in varying)
    if n < _FEW_UNKNOWNS or n * elements > _MOST_TRUTHS:
        return none
    read = unknowns_read(part, order, varying)
    flat = {node: read[node].reshape(n, -1) for node in nodes if node in read}
    local = {
        node: own
        for node, own in flat.items()
        if own.sum(axis=0).max(initial=0) <= n // _SHARE and own.shape[1]
    }
    if not local:
        return none
    rows = np.concatenate([*local.values()], axis=1)
    taken: list[Truths] = []
    group = np.zeros(n, dtype=np.intp)
    for k, row in enumerate(rows):
        own = np.flatnonzero(row)
        place = next((j for j, one in enumerate(taken) if not one[own].any()), len(taken))
        if place == len(taken):
            taken.append(np.zeros(rows.shape[1], dtype=bool))
        taken[place][own] = True
        group[k] = place
    if len(taken) > n // 2:
        return none
    return UnknownsApart(group, len(taken), {node: read[node] for node in local})


def _size(part: ObjectivePart, node: Einsum) -> int:
    return part.n * number_of_elements(node.dims, part.sizes)


def _under(nodes: Collection[Expr], varying: Collection[Expr]) -> set[Expr]:
    """The nodes and the varying ones below them."""
    result, stack = set(nodes), list(nodes)
    while stack:
        fresh = [
            operand
            for operand in stack.pop().operands
            if operand in varying and operand not in result
        ]
        result.update(fresh)
        stack += fresh
    return result


@singledispatch
def reads(node: Expr, known: Mapping[Expr, Truths], part: ObjectivePart) -> Truths:
    """Whether an element of a node may depend on an unknown; any may, without a rule."""
    return np.ones((1,) * (node.rank + 1), dtype=bool)


@reads.register
def _(node: Map, known: Mapping[Expr, Truths], part: ObjectivePart) -> Truths:
    result = np.zeros((1,) * (node.rank + 1), dtype=bool)
    for operand, axes in zip(node.operands, node.axes, strict=True):
        if operand in known:
            result = result | aligned(known[operand], axes, node.rank, 1)
    return np.asarray(result)


@reads.register(Gather)
@reads.register(Scatter)
@reads.register(Reshape)
def _(
    node: Gather | Scatter | Reshape, known: Mapping[Expr, Truths], part: ObjectivePart
) -> Truths:
    index = () if isinstance(node, Reshape) else tables(node.index)
    arrays = [point(part.tables[one][np.newaxis]) for one in index]
    own = known[node.operands[0]].astype(np.float64)
    return np.asarray(range_of(node, [point(own), *arrays], part.sizes, 1).hi > 0.0)


@reads.register
def _(node: Extreme, known: Mapping[Expr, Truths], part: ObjectivePart) -> Truths:
    return np.asarray(known[node.operands[0]].any(axis=tuple(1 + axis for axis in node.axes)))


@reads.register
def _(node: Einsum, known: Mapping[Expr, Truths], part: ObjectivePart) -> Truths:
    dims = concrete(node.dims, part.sizes)
    result = np.zeros((1,) * (len(node.output) + 1), dtype=bool)
    for operand, labels in zip(node.operands, node.inputs, strict=True):
        if operand in known:
            parts = [(point(known[operand].astype(np.float64)), labels)]
            missing = tuple(k for k in range(len(dims)) if k not in labels)
            parts += [(point(np.ones((1, dims[k]))), (k,)) for k in missing]
            result = result | (contract(parts, node.output, dims, 1).hi > 0.0)
    return np.asarray(result)


Labelled = tuple[Array, Axes]
"""Numbers >= 0 with their labels in a contraction."""


def by_unknown(parts: Sequence[Labelled], which: int, known: Truths, node: Einsum) -> Array:
    """Upper bounds on max_i Σ_(s: i ∈ S_s) of products of parts, by element of the node.

    `known` (n, ..) are the unknowns in the elements of part `which`.
    """
    wide = [(array[np.newaxis], labels) for array, labels in parts]
    own, labels = wide[which]
    wide[which] = np.where(known, own, 0.0), labels
    return np.asarray(np.max(_contracted(wide, node.output, node, 1), axis=0))


def by_grams(
    parts: Sequence[Labelled], which: tuple[int, int], known: tuple[Truths, Truths], node: Einsum
) -> Array | None:
    """Upper bounds on |Σ_s c_s (∇u_s·y)(∇w_s·y)| from the lengths of ∇u and ∇w, two of the parts.

    The other parts are the factors of c_s. None where the labels of a factor are neither all among
    those of u nor all among those of w, or where the summed labels of u and w differ.
    """
    lengths = [parts[k] for k in which]
    summed = [set(labels) - set(node.output) for _, labels in lengths]
    if summed[0] != summed[1]:
        return None
    for k, (array, labels) in enumerate(parts):
        if k not in which:
            to = next((p for p, own in enumerate(lengths) if set(labels) <= set(own[1])), None)
            if to is None:
                return None
            own, along = lengths[to]
            places = [(own, along), (array, labels)]
            lengths[to] = _contracted(places, along, node, 0), along
    roots: list[Labelled] = []
    for (array, labels), reads_of in zip(lengths, known, strict=True):
        left = tuple(label for label in node.output if label in labels)
        squares = np.where(reads_of, up_mul(array, array), 0.0)
        most = np.max(_contracted([(squares, labels)], left, node, 1), axis=0)
        roots.append((np.asarray(up_sqrt(most)), left))
    bound = _contracted(roots, node.output, node, 0)
    shared = []
    for (_, labels), reads_of in zip(lengths, known, strict=True):
        left = tuple(label for label in node.output if label in labels)
        read = reads_of.astype(np.float64)
        shared.append((_contracted([(read, labels)], left, node, 1), left))
    overlap = np.max(_contracted(shared, node.output, node, 1), axis=0)
    return np.where(overlap > 0.0, bound, up_mul(np.asarray(0.5), bound))


def _contracted(parts: Sequence[Labelled], output: Axes, node: Einsum, batch: int) -> Array:
    """Upper bounds on sums of products over the labels that the parts have."""
    dims = [1] * len(node.dims)
    for array, labels in parts:
        for size, label in zip(array.shape[batch:], labels, strict=True):
            dims[label] = max(dims[label], size)
    known = [(from_zero(array), labels) for array, labels in parts]
    total = contract(known, output, dims, batch).hi
    return np.where(np.isnan(total), np.inf, total)
