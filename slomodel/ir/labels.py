"""What the labels of a sum of products say."""

from __future__ import annotations

from slomodel.ir.expr import Einsum


def repeats(node: Einsum) -> bool:
    """Whether it has a label that no operand has: a sum over it counts each product that often,
    and where the result has it, each is there that often.
    """
    held = {label for own in node.inputs for label in own}
    return not held.issuperset(range(len(node.dims)))
