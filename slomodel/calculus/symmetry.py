"""Which permutations of its axes an array is known not to change under.

A contraction that has one operand several times, against an adjoint with the matching symmetry,
gives each of them the same derivative: it is then computed once and multiplied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from slomodel.ir.expr import Axes, Einsum, Expr, Input, Map

# Symmetric arrays are few operations above their inputs; deeper ones are taken as not symmetric.
_DEEPEST = 30


def is_invariant(
    node: Expr, order: Axes, symmetric: Collection[Input], depth: int = _DEEPEST
) -> bool:
    """True when `node` is known to equal itself with axis k taken from axis `order[k]`.

    `order` is its own inverse. `symmetric` are inputs that no permutation of axes changes. False
    says only that nothing is known.
    """
    if order == tuple(range(node.rank)):
        return True
    if tuple(node.shape[axis] for axis in order) != node.shape or depth == 0:
        return False
    if isinstance(node, Input):
        return node in symmetric
    if isinstance(node, Map):
        return all(
            _kept(operand, axes, dict(enumerate(order)), symmetric, depth)
            for operand, axes in zip(node.operands, node.axes, strict=True)
        )
    if isinstance(node, Einsum) and len(set(node.output)) == node.rank:
        swap = {label: node.output[axis] for label, axis in zip(node.output, order, strict=True)}
        return _same_factors(node, swap, symmetric, depth)
    return False


def _kept(
    operand: Expr, labels: Axes, swap: dict[int, int], symmetric: Collection[Input], depth: int
) -> bool:
    """True when swapping labels permutes an operand's axes among themselves, to no effect."""
    moved = tuple(swap.get(label, label) for label in labels)
    if set(moved) != set(labels) or len(set(labels)) != len(labels):
        return False
    order = tuple(labels.index(label) for label in moved)
    return is_invariant(operand, order, symmetric, depth - 1)


def _same_factors(
    node: Einsum, swap: dict[int, int], symmetric: Collection[Input], depth: int
) -> bool:
    """True when swapping labels only reorders the factors of a contraction."""
    moving = [
        (operand, labels)
        for operand, labels in zip(node.operands, node.inputs, strict=True)
        if not _kept(operand, labels, swap, symmetric, depth)
    ]
    swapped = [(o, tuple(swap.get(label, label) for label in labels)) for o, labels in moving]
    return Counter(moving) == Counter(swapped)


def twin(node: Einsum, k: int, adjoint: Expr, symmetric: Collection[Input]) -> int:
    """The first operand of a contraction that has the same derivative as operand k; k itself, else.

    Swapping the two operands' labels must change neither the other factors nor the adjoint.
    """
    for j in range(k):
        if node.operands[j] is node.operands[k] and _exchange(node, j, k, adjoint, symmetric):
            return j
    return k


def _exchange(node: Einsum, j: int, k: int, adjoint: Expr, symmetric: Collection[Input]) -> bool:
    pairs = [(a, b) for a, b in zip(node.inputs[j], node.inputs[k], strict=True) if a != b]
    swap = dict(pairs) | {b: a for a, b in pairs}
    places = {label: axis for axis, label in enumerate(node.output)}
    if len(swap) != 2 * len(pairs) or len(places) != len(node.output):
        return False
    if any((a in places) != (b in places) or node.dims[a] != node.dims[b] for a, b in pairs):
        return False
    order = tuple(places[swap.get(label, label)] for label in node.output)
    same = _same_factors(node, swap, symmetric, _DEEPEST)
    return same and is_invariant(adjoint, order, symmetric)
