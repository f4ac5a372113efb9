"""Arrays with the same elements along the same labels, although their layouts differ."""

from __future__ import annotations

from collections.abc import Hashable

from slomodel.functions import add, mul
from slomodel.ir.expr import Axes, Einsum, Expr, Map

_DEEPEST = 40


class EqualArrays:
    """Cached queries whether two nodes are the same array; each is numbered once per labelling."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._known: dict[tuple[Expr, Axes], int] = {}

    def are(self, left: Expr, left_labels: Axes, right: Expr, right_labels: Axes) -> bool:
        """True if both are the same products and functions of the same nodes, label by label.

        False negatives are possible: for terms in another grouping, and for very deep graphs.
        """
        if left is right:
            return left_labels == right_labels
        if set(left_labels) != set(right_labels):
            return False
        return self._number(left, left_labels, 0) == self._number(right, right_labels, 0)

    def _number(self, node: Expr, labels: Axes, depth: int) -> int:
        node, labels = at = _viewed(node, labels)
        if at not in self._known:
            key = at if depth > _DEEPEST else self._key(node, labels, depth + 1)
            self._known[at] = self._numbers.setdefault(key, len(self._numbers))
        return self._known[at]

    def _key(self, node: Expr, labels: Axes, depth: int) -> Hashable:
        if isinstance(node, Map):
            parts = [
                self._number(operand, tuple(labels[axis] for axis in axes), depth)
                for operand, axes in zip(node.operands, node.axes, strict=True)
            ]
            return node.function, *(sorted(parts) if node.function in (add, mul) else parts)
        if isinstance(node, Einsum) and len(set(node.output)) == len(node.output):
            return self._einsum(node, labels)
        return node, labels

    @staticmethod
    def _einsum(node: Einsum, labels: Axes) -> Hashable:
        name: dict[int, Hashable] = dict(zip(node.output, labels, strict=True))
        pairs = list(zip(node.operands, node.inputs, strict=True))
        # Summed labels are named after the first operand, in a fixed order, that has them.
        pairs.sort(key=lambda pair: id(pair[0]))
        for _, one in pairs:
            for label in one:
                name.setdefault(label, ("summed", len(name)))
        sizes = tuple(sorted((repr(name.get(k)), str(dim)) for k, dim in enumerate(node.dims)))
        terms = tuple((operand, tuple(name[label] for label in one)) for operand, one in pairs)
        return "einsum", terms, sizes


def _viewed(node: Expr, labels: Axes) -> tuple[Expr, Axes]:
    """The operand of a permutation of axes, with its labels; other nodes unchanged."""
    while isinstance(node, Einsum) and len(node.operands) == 1:
        (own,) = node.inputs
        if not len(own) == len(set(own)) == node.rank == len(set(node.output)) == len(node.dims):
            break
        place = dict(zip(node.output, labels, strict=True))
        node, labels = node.operands[0], tuple(place[label] for label in own)
    return node, labels
