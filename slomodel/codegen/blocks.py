"""How the labels of a product of two arrays group into the blocks of a matrix product."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from slomodel.ir.expr import Axes, Einsum


@dataclass(frozen=True, slots=True)
class Blocks:
    """Labels of both operands and the result, of one operand and the result, of both and summed."""

    batch: Axes
    left: Axes
    right: Axes
    summed: Axes

    @classmethod
    def of(cls, own: Axes, other: Axes, kept: Iterable[int]) -> Blocks:
        """The blocks of a product of operands labelled `own` and `other`, keeping `kept`."""
        shared = set(own) & set(other)
        batch = tuple(label for label in own if label in shared and label in kept)
        left = tuple(label for label in own if label not in shared)
        right = tuple(label for label in other if label not in shared)
        summed = tuple(label for label in own if label in shared and label not in kept)
        blocks = cls(batch, left, right, summed)
        if not blocks.fits(other):
            by_other = tuple(label for label in other if label in summed)
            again = cls(batch, left, right, by_other)
            if again.fits(own) and again.fits(other):
                return again
        return blocks

    @classmethod
    def of_node(cls, node: Einsum) -> Blocks:
        """The blocks of a lowered product."""
        return cls.of(node.inputs[0], node.inputs[1], node.output)

    @property
    def output(self) -> Axes:
        return self.batch + self.left + self.right

    def fits(self, labels: Axes) -> bool:
        """True when an operand's batch labels lead and its other blocks each lie together."""
        rest = labels[len(self.batch) :]
        free = tuple(label for label in rest if label not in self.summed)
        in_order = rest in (free + self.summed, self.summed + free)
        return labels[: len(self.batch)] == self.batch and in_order

    def summed_last(self, labels: Axes) -> bool:
        """True when the summed block is the last of an operand that fits."""
        return labels[len(labels) - len(self.summed) :] == self.summed
