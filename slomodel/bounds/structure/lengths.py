"""Lengths s = (Σ w u² + e)^½, e >= 0, and vectors u divided by their lengths.

Normalised rows, standardised features and cosines consist of these, in several spellings: a factor
beside u, as in g (a - m)/s, is taken out of the quotient.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import slomodel.functions as table
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.ir.expr import Axes, Einsum, Expr, Map, remake

Factors = tuple[tuple[Expr, bool], ...]
"""Constant numbers, each with whether it divides."""


@dataclass(frozen=True, slots=True)
class Squares:
    """A constant weight times Σ u² over `axes` of the node u."""

    node: Expr
    axes: Axes
    weight: Factors = ()


@dataclass(frozen=True, slots=True)
class SumOfSquaredArrays:
    """The sum of `squares` and of constant nodes, `rest`, which are to be nonnegative."""

    squares: tuple[Squares, ...]
    rest: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class UnitVectors:
    """The elements along `axes` of a quotient are those of `vector` divided by their `length`, the
    root of their squares with a weight, and of a constant >= 0.
    """

    vector: Expr
    axes: Axes
    length: Expr


@dataclass(frozen=True, slots=True)
class Lengths:
    """Sums of squares by their nodes and by their roots, and quotients by the latter."""

    sums: dict[Expr, SumOfSquaredArrays] = field(default_factory=dict)
    roots: dict[Expr, SumOfSquaredArrays] = field(default_factory=dict)
    units: dict[Expr, UnitVectors] = field(default_factory=dict)


def lengths_in(order: Sequence[Expr], varying: Collection[Expr]) -> Lengths:
    """The lengths of more than one element among the nodes of a graph, and their quotients."""
    sums: dict[Expr, SumOfSquaredArrays] = {}
    roots: dict[Expr, SumOfSquaredArrays] = {}
    units: dict[Expr, UnitVectors] = {}
    for node in order:
        if node not in varying or not isinstance(node, Map):
            continue
        if _is_root(node):
            found = _sum(node.operands[0], varying)
            if found and found.squares and (len(found.squares) > 1 or found.squares[0].axes):
                roots[node] = sums[node.operands[0]] = found
        elif node.function is table.div and node.operands[1] in roots:
            axes = _vector_axes(node, roots[node.operands[1]])
            if axes is not None:
                units[node] = UnitVectors(node.operands[0], axes, node.operands[1])
    return Lengths(sums, roots, units)


@once_per_part
def with_unit_vectors(part: ObjectivePart) -> ObjectivePart:
    """The part with (c u)/s rewritten as c (u/s), s the length of u."""
    known = lengths_in(part.order, part.varying)
    if not known.roots:
        return part
    done: dict[Expr, Expr] = {}
    for node in part.order:
        made = None
        if isinstance(node, Map) and node.function is table.div and node not in known.units:
            made = _taken_out(node, known)
        operands = tuple(done[operand] for operand in node.operands)
        if made is None:
            done[node] = remake(node, operands) if operands else node
        else:
            for one in made.path:
                done[one] = remake(one, tuple(done[operand] for operand in one.operands))
            done[node] = done[made.top]
    return part.rewritten(done, part.known)


@dataclass(frozen=True, slots=True)
class _TakenOut:
    """A numerator over other operands: its new nodes in order, and the last of them."""

    path: tuple[Expr, ...]
    top: Expr


def _taken_out(node: Map, known: Lengths) -> _TakenOut | None:
    """c (u/s) for a node (c u)/s; None for another."""
    product, length = node.operands
    if length not in known.roots or node.axes[0] != tuple(range(node.rank)):
        return None
    found = _with_quotient(product, node.axes[0], length, node.axes[1], known.roots[length])
    return None if found is None else _TakenOut(tuple(found), found[-1])


def _with_quotient(
    product: Expr, labels: Axes, length: Expr, apart: Axes, squares: SumOfSquaredArrays
) -> list[Expr] | None:
    """The product with one factor u divided by its length; its new nodes in order."""
    if set(apart) <= set(labels):
        own = tuple(labels.index(label) for label in apart)
        whole = tuple(range(product.rank))
        quotient = Map(table.div, (product, length), (whole, own), product.shape)
        if _vector_axes(quotient, squares) is not None:
            return [quotient]
    if not isinstance(product, Map) or product.function not in (table.mul, table.neg, table.div):
        return None
    places = (0,) if product.function is not table.mul else (0, 1)
    for k in places:
        inner = tuple(labels[axis] for axis in product.axes[k])
        found = _with_quotient(product.operands[k], inner, length, apart, squares)
        if found is not None:
            operands = [*product.operands]
            operands[k] = found[-1]
            return [*found, remake(product, tuple(operands))]
    return None


def _is_root(node: Map) -> bool:
    return node.function in (table.root, table.sqrt)


def _sum(node: Expr, varying: Collection[Expr]) -> SumOfSquaredArrays | None:
    """A node as a sum of squares; None where it has a term of another kind."""
    if node not in varying:
        return SumOfSquaredArrays((), (node,))
    if isinstance(node, Einsum):
        return _of_einsum(node, varying)
    if not isinstance(node, Map):
        return None
    whole = tuple(range(node.rank))
    first, last = node.operands[0], node.operands[-1]
    if node.function is table.square or (node.function is table.mul and first is last):
        is_plain = all(axes == whole for axes in node.axes)
        return SumOfSquaredArrays((Squares(first, ()),)) if is_plain else None
    if node.function is table.add:
        if any(
            operand in varying and axes != whole
            for operand, axes in zip(node.operands, node.axes, strict=True)
        ):
            return None
        parts = [_sum(operand, varying) for operand in node.operands]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        return SumOfSquaredArrays(
            tuple(one for part in known for one in part.squares),
            tuple(one for part in known for one in part.rest),
        )
    if node.function in (table.mul, table.div):
        return _scaled(node, varying)
    return None


def _scaled(node: Map, varying: Collection[Expr]) -> SumOfSquaredArrays | None:
    """A multiple of a sum of squares by a constant number."""
    whole = tuple(range(node.rank))
    for k, factor in enumerate(node.operands):
        divides = k == 1 and node.function is table.div
        other = 1 - k
        if factor in varying or factor.rank or node.axes[other] != whole:
            continue
        if node.function is table.div and not divides:
            continue
        inner = _sum(node.operands[other], varying)
        if inner is None:
            return None
        squares = tuple(
            replace(one, weight=(*one.weight, (factor, divides))) for one in inner.squares
        )
        return SumOfSquaredArrays(squares, inner.rest)
    return None


def _of_einsum(node: Einsum, varying: Collection[Expr]) -> SumOfSquaredArrays | None:
    labels = node.inputs[0]
    places = [labels.index(label) for label in node.output if label in labels]
    if len(set(node.inputs)) != 1 or len(set(labels)) < len(labels):
        return None
    if len(places) < len(node.output) or places != sorted(set(places)):
        return None
    if len(labels) < len(node.dims):
        return None
    axes = tuple(axis for axis, label in enumerate(labels) if label not in node.output)
    first = node.operands[0]
    if node.operands == (first, first):
        return SumOfSquaredArrays((Squares(first, axes),))
    inner = _sum(first, varying) if len(node.operands) == 1 else None
    if inner is None or any(one.axes for one in inner.squares):
        return None
    return SumOfSquaredArrays(tuple(replace(one, axes=axes) for one in inner.squares), inner.rest)


def _vector_axes(node: Map, squares: SumOfSquaredArrays) -> Axes | None:
    """The axes along which the numerator of a quotient is the vector of its denominator."""
    if len(squares.squares) != 1 or node.axes[0] != tuple(range(node.rank)):
        return None
    (own,) = squares.squares
    labels = labels_alike(own.node, node.operands[0], node.axes[0])
    if labels is None or sorted(labels) != list(range(node.rank)):
        return None
    kept = tuple(label for axis, label in enumerate(labels) if axis not in own.axes)
    is_in_order = kept == node.axes[1] == tuple(sorted(kept))
    return tuple(sorted(labels[axis] for axis in own.axes)) if is_in_order else None


def labels_alike(u: Expr, other: Expr, labels: Axes) -> Axes | None:
    """Labels of u's axes by which u is `other` with its axes so labelled: the same node, or one
    that differs from it in the order of axes only; None where that is not seen.
    """
    if u is other:
        return labels
    turned, source = _turned(u), _turned(other)
    if turned is not None:
        inner = labels_alike(turned[0], other, labels)
        return None if inner is None else tuple(inner[axis] for axis in turned[1])
    if source is not None:
        node, places = source
        return labels_alike(u, node, tuple(labels[places.index(k)] for k in range(node.rank)))
    if isinstance(u, Map) and isinstance(other, Map):
        if u.function is not other.function:
            return None
        pairs = []
        for k, (one, twin) in enumerate(zip(u.operands, other.operands, strict=True)):
            inner = labels_alike(one, twin, tuple(labels[axis] for axis in other.axes[k]))
            if inner is None:
                return None
            pairs += list(zip(u.axes[k], inner, strict=True))
        return _assigned(pairs, u.rank)
    if isinstance(u, Einsum) and isinstance(other, Einsum) and u.operands == other.operands:
        pairs = [
            pair
            for one, twin in zip(u.inputs, other.inputs, strict=True)
            for pair in zip(one, twin, strict=True)
        ]
        twins = _assigned(pairs, len(u.dims))
        if twins is None or len(set(twins)) < len(twins) or not set(other.output) <= set(twins):
            return None
        if len(set(other.output)) < other.rank or len(set(u.output)) < u.rank:
            return None
        own = [twins[label] for label in u.output]
        if set(own) != set(other.output):
            return None
        return tuple(labels[other.output.index(label)] for label in own)
    return None


def _turned(node: Expr) -> tuple[Expr, Axes] | None:
    """The node of which one is a transpose, and the axis of it that each of its axes is."""
    if not isinstance(node, Einsum) or len(node.operands) > 1 or len(node.dims) != node.rank:
        return None
    (own,) = node.inputs
    if sorted(own) != list(range(node.rank)) or sorted(node.output) != sorted(own):
        return None
    return node.operands[0], tuple(own.index(label) for label in node.output)


def _assigned(pairs: Sequence[tuple[int, int]], count: int) -> Axes | None:
    """The value of each of `count` keys; None where one has none, or two."""
    result = dict(pairs)
    if len(result) < count or any(result[key] != value for key, value in pairs):
        return None
    return tuple(result[key] for key in range(count))
