"""Sums of products in the order of their operands' axes, so that a loop can compute both.

Lowering permutes the operands of a product into batch, own and summed labels, as BLAS takes them. A
product of two arrays with the same axes is a sum in a loop: over the arrays as they are, the values
need not be stored, as a permuted array would be read in another loop than the one that computes it.
"""

from __future__ import annotations

from slomodel.ir.expr import Axes, Einsum, Expr
from slomodel.ir.walk import rewrite


def with_transposed_sums(roots: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Lowered roots in which sums in loops read arrays and not permutations of them."""
    return rewrite(roots, lambda node: _plain(node) if isinstance(node, Einsum) else node)


def _plain(node: Einsum) -> Expr:
    if len(node.operands) != 2 or set(node.inputs[0]) != set(node.inputs[1]):
        return node
    plain = [_unpermuted(one, own) for one, own in zip(node.operands, node.inputs, strict=True)]
    (a, own), (b, other) = plain
    if own != other or (a, b) == node.operands:
        return node
    # Numbered by first appearance, so that equal sums are one node.
    number = {label: k for k, label in enumerate(own)}
    labels = tuple(range(len(own)))
    output = tuple(number[label] for label in node.output)
    return Einsum((a, b), (labels, labels), output, tuple(node.dims[label] for label in own))


def _unpermuted(operand: Expr, labels: Axes) -> tuple[Expr, Axes]:
    """The array that an operand permutes, if it does, and the labels of its axes."""
    if not isinstance(operand, Einsum) or len(operand.operands) != 1:
        return operand, labels
    (own,) = operand.inputs
    if sorted(own) != sorted(operand.output) or len(set(own)) < len(own):
        return operand, labels
    named = dict(zip(operand.output, labels, strict=True))
    return operand.operands[0], tuple(named[label] for label in own)
