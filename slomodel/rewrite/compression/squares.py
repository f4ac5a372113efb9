"""Sums of squares in a graph: Σ c r² over some labels, with further factors c."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from slomodel.functions import mul, square
from slomodel.ir.dims import Shape
from slomodel.ir.expr import Axes, Einsum, Expr, Map
from slomodel.rewrite.compression.equal_arrays import EqualArrays

_MOST_FACTORS = 12


@dataclass(frozen=True, slots=True)
class Factor:
    """A node and the labels of its axes."""

    node: Expr
    labels: Axes


@dataclass(frozen=True, slots=True)
class WeightedSquares:
    """`node` as the sum of `form` squared times `others`, over labels missing in its output.

    `through` are the products and squares that were expanded to obtain this form.
    """

    node: Einsum
    form: Factor
    others: tuple[Factor, ...]
    through: frozenset[Expr]

    @property
    def dims(self) -> Shape:
        return self.node.dims


def sums_of_squares(node: Expr, dependent: frozenset[Expr]) -> Iterator[WeightedSquares]:
    """The ways to read a node as a sum of squares of a form that depends on x."""
    if not isinstance(node, Einsum) or node not in dependent:
        return
    present = {label for own in (*node.inputs, node.output) for label in own}
    if len(present) < len(node.dims):
        return  # a label without an operand only multiplies by its size
    factors, through = _factors(node, dependent)
    equal = EqualArrays()
    for k, factor in enumerate(factors):
        if factor.node not in dependent or len(set(factor.labels)) < len(factor.labels):
            continue
        same = [
            j
            for j, one in enumerate(factors)
            if equal.are(one.node, one.labels, factor.node, factor.labels)
        ]
        if len(same) == 2 and same[0] == k:
            others = tuple(one for j, one in enumerate(factors) if j not in same)
            every = through.union(factors[j].node for j in same[1:])
            yield WeightedSquares(node, factor, others, every - {factor.node})


def varying_axes(order: Sequence[Expr], dependent: frozenset[Expr]) -> dict[Expr, frozenset[int]]:
    """The axes of each node in `dependent`, for a postorder, along which more than data varies."""
    result: dict[Expr, frozenset[int]] = {}
    for node in order:
        if node in dependent:
            result[node] = frozenset(_varying(node, result))
    return result


def _varying(node: Expr, axes: Mapping[Expr, frozenset[int]]) -> Iterator[int]:
    labels = node.axes if isinstance(node, Map) else ()
    output: Axes = tuple(range(node.rank))
    if isinstance(node, Einsum):
        labels, output = node.inputs, node.output
    elif not isinstance(node, Map):
        yield from output
    varying = {
        own[axis]
        for operand, own in zip(node.operands, labels, strict=False)
        for axis in axes.get(operand, ())
    }
    yield from (axis for axis, label in enumerate(output) if label in varying)


def _factors(node: Einsum, dependent: frozenset[Expr]) -> tuple[list[Factor], frozenset[Expr]]:
    """The operands, with elementwise products and squares among them split into factors."""
    result: list[Factor] = []
    through: set[Expr] = {node}
    pairs = zip(node.operands, node.inputs, strict=True)
    waiting = [Factor(operand, own) for operand, own in pairs][::-1]
    while waiting:
        one = waiting.pop()
        inner = one.node
        is_product = isinstance(inner, Map) and inner.function in (mul, square)
        if not is_product or inner not in dependent or len(result) + len(waiting) > _MOST_FACTORS:
            result.append(one)
            continue
        assert isinstance(inner, Map)
        through.add(inner)
        parts = [
            Factor(operand, tuple(one.labels[axis] for axis in axes))
            for operand, axes in zip(inner.operands, inner.axes, strict=True)
        ]
        waiting += (parts * 2 if inner.function is square else parts)[::-1]
    return result, frozenset(through)
