"""What the labels of a sum of products say."""

from __future__ import annotations

from slomodel.ir.expr import Einsum


def repeats(node: Einsum) -> bool:
    """Whether it sums over a label that no operand has, and so counts each product that often."""
    held = {label for own in node.inputs for label in own}
    return not held.union(node.output).issuperset(range(len(node.dims)))
