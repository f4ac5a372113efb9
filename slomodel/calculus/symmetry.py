"""Permutations of its axes under which an array is known to be invariant.

If one operand occurs several times in a contraction, against an adjoint with the matching symmetry,
all occurrences have the same derivative: it is computed once and multiplied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import combinations

from slomodel.calculus.signs import parity_of
from slomodel.functions import (
    add,
    eq,
    land,
    logaddexp,
    lor,
    maximum,
    minimum,
    mul,
    ne,
    neg,
    sub,
)
from slomodel.ir.dims import Dim
from slomodel.ir.expr import Affine, Axes, Einsum, Expr, Gather, Index, Lookup, Map, MatrixOperation

# Symmetric arrays are few operations above their inputs; deeper ones count as not symmetric.
_DEEPEST = 30
_MOST_FACTORS = 30
_MOST_SUMMED = 4
_COMMUTATIVE = (add, mul, eq, ne, maximum, minimum, land, lor, logaddexp)
_SYMMETRIC = ("inverse_symmetric", "inverse_posdef")


class Symmetries:
    """Cached queries about the symmetry of nodes; `symmetric` nodes are invariant by declaration.

    Results are cached because a node may be reached along very many paths. False, or a sign of 0,
    only means that nothing is known.
    """

    def __init__(self, symmetric: Collection[Expr]) -> None:
        self.symmetric = symmetric
        self._known: dict[tuple[Expr, Axes], int] = {}

    def is_invariant(self, node: Expr, order: Axes, depth: int = _DEEPEST) -> bool:
        """True if `node` is known to equal itself with axis k taken from axis `order[k]`.

        `order` is its own inverse.
        """
        return self._sign(node, order, depth) == 1

    def same_factors(self, node: Einsum, swap: Mapping[int, int], depth: int = _DEEPEST) -> bool:
        """True if swapping labels only reorders the factors of a contraction."""
        return self._sign_of_product(node, swap, depth) == 1

    def _sign(self, node: Expr, order: Axes, depth: int) -> int:
        """1 if `node` is invariant under the permutation, -1 if that changes the sign, else 0."""
        key = (node, order)
        if key not in self._known:
            self._known[key] = self._found(node, order, depth)
        return self._known[key]

    def _found(self, node: Expr, order: Axes, depth: int) -> int:
        if order == tuple(range(node.rank)):
            return 1
        if tuple(node.shape[axis] for axis in order) != node.shape or depth == 0:
            return 0
        if node in self.symmetric:
            return 1
        if isinstance(node, Map):
            return self._sign_of_map(node, order, depth)
        if isinstance(node, Einsum):
            return self._sign_of_einsum(node, order, depth)
        if isinstance(node, Gather):
            return self._sign_of_gather(node, order, depth)
        if isinstance(node, MatrixOperation) and node.function in _SYMMETRIC:
            return int(order == (*range(node.rank - 2), node.rank - 1, node.rank - 2))
        return 0

    def _sign_of_map(self, node: Map, order: Axes, depth: int) -> int:
        swap = dict(enumerate(order))
        parts = list(zip(node.operands, node.axes, strict=True))
        signs = [self._kept(operand, axes, swap, depth) for operand, axes in parts]
        if all(sign == 1 for sign in signs):
            return 1
        if signs[0] and parity_of(node.function) == 1:
            return 1
        if node.function in (neg, add, sub) and signs[0] and signs[0] == signs[-1]:
            return signs[0]
        if node.function is mul:
            return self._sign_of_product(as_product(node), swap, depth)
        before = [_viewed(operand, axes) for operand, axes in parts]
        after = [(base, _swapped_labels(labels, swap)) for base, labels in before]
        if node.function in _COMMUTATIVE:
            return int(Counter(before) == Counter(after))
        return -int(node.function is sub and after == before[::-1])

    def _sign_of_einsum(self, node: Einsum, order: Axes, depth: int) -> int:
        if len(set(node.output)) < node.rank:
            return int(tuple(node.output[axis] for axis in order) == node.output)
        sign = self._sign_of_contraction(node, order, depth)
        flat = sign or flattened(node)
        return flat if isinstance(flat, int) else self._sign_of_contraction(flat, order, depth)

    def _sign_of_contraction(self, node: Einsum, order: Axes, depth: int) -> int:
        pairs = zip(node.output, order, strict=True)
        swap = {k: node.output[axis] for k, axis in pairs}
        result = self._sign_of_product(node, swap, depth)
        summed = [label for label in range(len(node.dims)) if label not in node.output]
        if result or len(summed) > _MOST_SUMMED:
            return result
        # Summed labels may be renamed: BᵀCB is symmetric if C is.
        for a, b in combinations(summed, 2):
            if node.dims[a] == node.dims[b]:
                result = self._sign_of_product(node, {**swap, a: b, b: a}, depth)
                if result:
                    return result
        return 0

    def _sign_of_product(self, node: Einsum, swap: Mapping[int, int], depth: int) -> int:
        """1 if swapping labels only reorders the factors, -1 if it changes the sign, else 0."""
        sign = 1
        varying = []
        for operand, labels in zip(node.operands, node.inputs, strict=True):
            own = self._kept(operand, labels, swap, depth)
            sign *= own or 1
            if not own:
                varying.append((operand, labels))
        swapped = [(operand, _swapped_labels(labels, swap)) for operand, labels in varying]
        return sign if Counter(varying) == Counter(swapped) else 0

    def _sign_of_gather(self, node: Gather, order: Axes, depth: int) -> int:
        """The sign of the operand under a permutation of its axes that permutes the index alike."""
        node = _composed(node)
        turned = [_permuted(one, order) for one in node.index]
        if any(one not in node.index for one in turned) or len(set(turned)) < len(turned):
            return 0
        return self._sign(node.operands[0], tuple(node.index.index(t) for t in turned), depth - 1)

    def _kept(self, operand: Expr, labels: Axes, swap: Mapping[int, int], depth: int) -> int:
        """The sign of an operand if swapping labels permutes its axes; 0 if nothing is known."""
        moved = _swapped_labels(labels, swap)
        if set(moved) != set(labels) or len(set(labels)) != len(labels):
            return 0
        return self._sign(operand, tuple(labels.index(label) for label in moved), depth - 1)


def _swapped_labels(labels: Axes, swap: Mapping[int, int]) -> Axes:
    return tuple(swap.get(label, label) for label in labels)


def _viewed(operand: Expr, labels: Axes) -> tuple[Expr, Axes]:
    """The array that a permuted or broadcast operand is a view of, with the labels of its axes."""
    while isinstance(operand, Einsum) and len(operand.operands) == 1:
        place = dict(zip(operand.output, labels, strict=True))
        if len(place) < len(labels) or not place.keys() >= set(range(len(operand.dims))):
            break
        labels = tuple(place[label] for label in operand.inputs[0])
        operand = operand.operands[0]
    return operand, labels


def _composed(node: Gather) -> Gather:
    """A gather of a gather, as K[g, :][:, g], as one of the array below; the node if it is not.

    An inner index that reads one axis of the inner result is read at the outer index of that axis.
    """
    inner = node.operands[0]
    while isinstance(inner, Gather):
        index: list[Index] = []
        for one in inner.index:
            axis = _axis_of(one)
            outer = None if axis is None else node.index[axis]
            place = None if outer is None else _axis_of(outer)
            if outer is not None and isinstance(one, Affine) and _is_plain(one):
                index.append(outer)
            elif axis is not None and isinstance(one, Affine) and isinstance(outer, Affine):
                c = one.coefficients[axis]
                steps = tuple(c * k for k in outer.coefficients)
                index.append(Affine(one.offset + outer.offset * c, steps))
            elif place is not None and isinstance(one, Lookup) and _is_plain(outer):
                index.append(Lookup((place,), one.table))
            else:
                return node
        node = Gather(inner.operands[0], tuple(index), node.shape)
        inner = node.operands[0]
    return node


def _axis_of(one: Index) -> int | None:
    """The only axis that an index depends on."""
    if isinstance(one, Affine):
        axes = [k for k, c in enumerate(one.coefficients) if c]
    else:
        axes = list(one.axes) if isinstance(one, Lookup) else []
    return axes[0] if len(axes) == 1 else None


def _is_plain(one: Index | None) -> bool:
    """Whether an index is one of the output's indices as it is."""
    return (
        isinstance(one, Affine)
        and one.offset == Dim()
        and sorted(one.coefficients)[-1:] == [1]
        and sum(one.coefficients) == 1
    )


def _permuted(one: Index, order: Axes) -> Index:
    """An index with the iterated axes permuted."""
    if isinstance(one, Affine):
        return Affine(one.offset, tuple(one.coefficients[axis] for axis in order))
    if isinstance(one, Lookup):
        return Lookup(tuple(order.index(axis) for axis in one.axes), one.table)
    return replace(one, axis=order.index(one.axis))


def flattened(node: Einsum) -> Einsum:
    """A product of products, such as A(BAᵀ), as one contraction of all factors, for inspection."""
    operands, inputs, dims = list(node.operands), list(node.inputs), list(node.dims)
    k = 0
    while k < len(operands) < _MOST_FACTORS:
        inner, own = operands[k], inputs[k]
        if not isinstance(inner, Einsum) or not inner.operands or len(set(own)) < len(own):
            k += 1
            continue
        place: dict[int, int] = {}
        merged: dict[int, int] = {}
        for label, outer in zip(inner.output, own, strict=True):
            if label in place:  # a diagonal: two labels of the outer product are equal
                summed = outer if outer not in node.output else place[label]
                merged[summed] = place[label] if summed == outer else outer
                place[label] = merged[summed]
            else:
                place[label] = outer
        if any(label in node.output for label in merged):
            k += 1
            continue
        for label, dim in enumerate(inner.dims):
            if label not in place:
                place[label] = len(dims)
                dims.append(dim)
        parts = [tuple(place[label] for label in labels) for labels in inner.inputs]
        operands[k : k + 1], inputs[k : k + 1] = inner.operands, parts
        inputs = [tuple(merged.get(label, label) for label in labels) for labels in inputs]
    used = {label for labels in (*inputs, node.output) for label in labels}
    number = {label: n for n, label in enumerate(sorted(used))}
    return Einsum(
        tuple(operands),
        tuple(tuple(number[label] for label in labels) for labels in inputs),
        tuple(number[label] for label in node.output),
        tuple(dims[label] for label in number),
    )


def is_invariant(node: Expr, order: Axes, symmetric: Collection[Expr]) -> bool:
    """`Symmetries.is_invariant` for a single query."""
    return Symmetries(symmetric).is_invariant(node, order)


def as_product(node: Map) -> Einsum:
    """Nested products of arrays, each along some of the axes, as one contraction."""
    whole = tuple(range(node.rank))
    factors: list[tuple[Expr, Axes]] = []
    stack: list[tuple[Expr, Axes]] = [(node, whole)]
    while stack:
        one, own = stack.pop()
        parts = _factors_along(one) if len(factors) < _MOST_FACTORS else None
        if parts is None:
            factors.append((one, own))
        else:
            stack += [(part, tuple(own[axis] for axis in axes)) for part, axes in reversed(parts)]
    operands, inputs = zip(*factors, strict=True)
    return Einsum(operands, inputs, whole, node.shape)


def _factors_along(node: Expr) -> list[tuple[Expr, Axes]] | None:
    """The factors of a product without summation, each with its axes in the product."""
    if isinstance(node, Map) and node.function is mul:
        return list(zip(node.operands, node.axes, strict=True))
    if not isinstance(node, Einsum) or len(node.operands) < 2:
        return None
    place = {label: axis for axis, label in enumerate(node.output)}
    if not len(place) == len(node.output) == len(node.dims):
        return None
    own = [tuple(place[label] for label in labels) for labels in node.inputs]
    return list(zip(node.operands, own, strict=True))


def twin(node: Einsum, k: int, adjoint: Expr, symmetric: Collection[Expr]) -> int:
    """The first operand with the same derivative as operand k of a contraction; k itself if none.

    Swapping the two operands' labels must change neither the other factors nor the adjoint.
    """
    for j in range(k):
        if node.operands[j] is node.operands[k] and _exchange(node, j, k, adjoint, symmetric):
            return j
    return k


def _exchange(node: Einsum, j: int, k: int, adjoint: Expr, symmetric: Collection[Expr]) -> bool:
    pairs = [(a, b) for a, b in zip(node.inputs[j], node.inputs[k], strict=True) if a != b]
    swap = dict(pairs) | {b: a for a, b in pairs}
    places = {label: axis for axis, label in enumerate(node.output)}
    if len(swap) != 2 * len(pairs) or len(places) != len(node.output):
        return False
    if any((a in places) != (b in places) or node.dims[a] != node.dims[b] for a, b in pairs):
        return False
    order = tuple(places[swap.get(label, label)] for label in node.output)
    known = Symmetries(symmetric)
    return known.same_factors(node, swap) and known.is_invariant(adjoint, order)
