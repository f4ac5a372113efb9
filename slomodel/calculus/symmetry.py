"""Permutations of its axes under which an array is known to be invariant.

If one operand occurs several times in a contraction, against an adjoint with the matching symmetry,
all occurrences have the same derivative: it is computed once and multiplied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from slomodel.functions import mul
from slomodel.ir.expr import Axes, Einsum, Expr, Map

# Symmetric arrays are few operations above their inputs; deeper ones count as not symmetric.
_DEEPEST = 30
_MOST_FACTORS = 30


class Symmetries:
    """Cached queries about the symmetry of nodes; `symmetric` nodes are invariant by declaration.

    Results are cached because a node may be reached along very many paths. False only means that
    nothing is known.
    """

    def __init__(self, symmetric: Collection[Expr]) -> None:
        self.symmetric = symmetric
        self._known: dict[tuple[Expr, Axes], bool] = {}

    def is_invariant(self, node: Expr, order: Axes, depth: int = _DEEPEST) -> bool:
        """True if `node` is known to equal itself with axis k taken from axis `order[k]`.

        `order` is its own inverse.
        """
        key = (node, order)
        if key not in self._known:
            self._known[key] = self._found(node, order, depth)
        return self._known[key]

    def same_factors(self, node: Einsum, swap: Mapping[int, int], depth: int = _DEEPEST) -> bool:
        """True if swapping labels only reorders the factors of a contraction."""
        moving = [
            (operand, labels)
            for operand, labels in zip(node.operands, node.inputs, strict=True)
            if not self._kept(operand, labels, swap, depth)
        ]
        swapped = [(o, tuple(swap.get(label, label) for label in labels)) for o, labels in moving]
        return Counter(moving) == Counter(swapped)

    def _found(self, node: Expr, order: Axes, depth: int) -> bool:
        if order == tuple(range(node.rank)):
            return True
        if tuple(node.shape[axis] for axis in order) != node.shape or depth == 0:
            return False
        if node in self.symmetric:
            return True
        if isinstance(node, Map):
            swap = dict(enumerate(order))
            parts = zip(node.operands, node.axes, strict=True)
            if all(self._kept(operand, axes, swap, depth) for operand, axes in parts):
                return True
            return node.function is mul and self.same_factors(as_product(node), swap, depth)
        if isinstance(node, Einsum) and len(set(node.output)) == node.rank:
            pairs = zip(node.output, order, strict=True)
            return self.same_factors(node, {k: node.output[axis] for k, axis in pairs}, depth)
        return False

    def _kept(self, operand: Expr, labels: Axes, swap: Mapping[int, int], depth: int) -> bool:
        """True if swapping labels permutes the axes of an operand that is invariant under it."""
        moved = tuple(swap.get(label, label) for label in labels)
        if set(moved) != set(labels) or len(set(labels)) != len(labels):
            return False
        order = tuple(labels.index(label) for label in moved)
        return self.is_invariant(operand, order, depth - 1)


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
