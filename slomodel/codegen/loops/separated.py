"""Sums over pairs whose terms are products of narrower factors, as sums over each side.

Σ_j (s_j c_i - c_j s_i) = c_i Σ_j s_j - s_i Σ_j c_j: n operations and not n². The terms are
the same, and are added in another order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slomodel.codegen.loops.access import Numbers
from slomodel.codegen.lower import lowered
from slomodel.functions import add, mul, neg, sub
from slomodel.ir import build
from slomodel.ir.expr import Axes, Einsum, Expr, Map

_MOST_TERMS = 4


@dataclass(frozen=True, slots=True)
class SeparateProduct:
    """A product of arrays, each along some axes of the whole; subtracted unless `is_added`."""

    is_added: bool
    factors: tuple[tuple[Expr, Axes], ...]


SeparateProducts = tuple[SeparateProduct, ...]


def terms_of(node: Expr, known: Mapping[Expr, SeparateProducts]) -> SeparateProducts | None:
    """The terms of a function of arrays whose terms are `known`; None if it is not their sum.

    A factor of all terms is narrower than they are: it has fewer axes.
    """
    if not isinstance(node, Map) or node.function not in (add, sub, neg, mul):
        return None
    wide = [own for own in node.operands if own in known and own.rank == node.rank]
    if node.function is mul:
        others = [
            pair for pair in zip(node.operands, node.axes, strict=True) if pair[0] not in known
        ]
        if len(wide) != 1 or len(others) != 1 or others[0][0].rank >= node.rank:
            return None
        return tuple(
            SeparateProduct(one.is_added, (*one.factors, others[0])) for one in known[wide[0]]
        )
    if len(wide) != len(node.operands):
        return None
    signs = {add: (True, True), sub: (True, False), neg: (False,)}[node.function]
    result = [
        SeparateProduct(one.is_added == sign, one.factors)
        for sign, operand in zip(signs, node.operands, strict=True)
        for one in known[operand]
    ]
    return tuple(result) if len(result) <= _MOST_TERMS else None


def separated(
    node: Einsum, known: Mapping[Expr, SeparateProducts], numbers: Numbers
) -> Expr | None:
    """A sum as the sums of the terms of one operand; None unless these are of narrower arrays."""
    wide = [k for k, own in enumerate(node.operands) if own in known]
    if len(wide) != 1:
        return None
    (k,) = wide
    labels = node.inputs[k]
    summed = set(labels) - set(node.output)
    others = [one for j, one in enumerate(node.inputs) if j != k]
    if not summed or len(set(labels)) < len(labels):
        return None
    if any(len(set(one)) >= len(labels) for one in others):
        return None
    result: Expr | None = None
    for term in known[node.operands[k]]:
        made = _sum_of(node, k, term, labels, numbers)
        if result is None:
            result = made if term.is_added else build.apply(neg, made)
        else:
            result = build.apply(add if term.is_added else sub, result, made)
    return result


def _sum_of(node: Einsum, k: int, term: SeparateProduct, labels: Axes, numbers: Numbers) -> Expr:
    operands = [one for j, one in enumerate(node.operands) if j != k]
    inputs: list[Sequence[int]] = [one for j, one in enumerate(node.inputs) if j != k]
    for factor, axes in term.factors:
        operands.append(factor)
        inputs.append(tuple(labels[axis] for axis in axes))
    einsum = build.einsum(operands, [tuple(own) for own in inputs], node.output, node.dims)
    return lowered(einsum, numbers)
