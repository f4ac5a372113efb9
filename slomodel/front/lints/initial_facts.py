"""Facts about nodes at the start that hold for all data: a single value, or constant along axes.

This is an abstract interpretation: a variable initialised by a number has that number in every
element, and data may have any values. The facts hold in exact arithmetic, for finite data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch

import numpy as np

from slomodel.functions import div, mul
from slomodel.ir.expr import (
    Const,
    Einsum,
    Expr,
    Extreme,
    Gather,
    Input,
    Map,
    Reshape,
    Scan,
    Scatter,
    affine,
    is_listed,
)
from slomodel.ir.walk import postorder


@dataclass(frozen=True, slots=True)
class InitialFact:
    """`value` is that of all elements, if known; the elements are equal along `constant_axes`."""

    value: float | None = None
    constant_axes: frozenset[int] = frozenset()

    @property
    def is_zero(self) -> bool:
        return self.value == 0.0


def initial_facts(roots: Sequence[Expr], starts: Mapping[Input, float]) -> dict[Expr, InitialFact]:
    """The facts of all nodes under the roots, given the variables that start as numbers."""
    facts: dict[Expr, InitialFact] = {}
    for node in postorder(*roots):
        if isinstance(node, Input):
            facts[node] = _everywhere(node, starts.get(node))
        else:
            facts[node] = _fact(node, [facts[operand] for operand in node.operands])
    return facts


def _everywhere(node: Expr, value: float | None) -> InitialFact:
    if value is None or not np.isfinite(value):
        return InitialFact()
    return InitialFact(value, frozenset(range(node.rank)))


@singledispatch
def _fact(node: Expr, operands: list[InitialFact]) -> InitialFact:
    """The fact about a node from those about its operands; nothing is known without a rule."""
    return InitialFact()


@_fact.register
def _(node: Const, operands: list[InitialFact]) -> InitialFact:
    return _everywhere(node, float(node.value))


@_fact.register
def _(node: Map, operands: list[InitialFact]) -> InitialFact:
    values = [operand.value for operand in operands]
    if all(value is not None for value in values):
        with np.errstate(all="ignore"):
            result = float(node.function.numpy(*(np.asarray(value) for value in values)))
        return _everywhere(node, result)
    vanishes = 0.0 in values if node.function is mul else node.function is div and values[0] == 0.0
    if vanishes:
        return _everywhere(node, 0.0)
    equal = [
        axis
        for axis in range(node.rank)
        if all(
            axis not in own or own.index(axis) in one.constant_axes
            for own, one in zip(node.axes, operands, strict=True)
        )
    ]
    return InitialFact(None, frozenset(equal))


@_fact.register
def _(node: Einsum, operands: list[InitialFact]) -> InitialFact:
    if any(one.is_zero for one in operands):
        return _everywhere(node, 0.0)
    once = len(set(node.output)) == len(node.output)
    values = [operand.value for operand in operands]
    if once and len(node.dims) == len(node.output) and None not in values:
        return _everywhere(node, float(np.prod([value for value in values if value is not None])))
    equal = [
        axis
        for axis, label in enumerate(node.output)
        if node.output.count(label) == 1 and is_constant_along(node, label, operands)
    ]
    return InitialFact(None, frozenset(equal))


def is_constant_along(node: Einsum, label: int, operands: Sequence[InitialFact]) -> bool:
    """Whether every operand is constant along its axes with this label."""
    return all(
        axis in one.constant_axes
        for own, one in zip(node.inputs, operands, strict=True)
        for axis, other in enumerate(own)
        if other == label
    )


@_fact.register
def _(node: Gather, operands: list[InitialFact]) -> InitialFact:
    one = operands[0]
    if is_listed(node):
        return InitialFact(one.value)
    indices = affine(node.index)
    equal = [
        axis
        for axis in range(node.rank)
        if all(
            k in one.constant_axes for k, index in enumerate(indices) if index.coefficients[axis]
        )
    ]
    return InitialFact(one.value, frozenset(equal))


@_fact.register
def _(node: Reshape, operands: list[InitialFact]) -> InitialFact:
    (one,) = operands
    whole = len(one.constant_axes) == node.operands[0].rank
    return InitialFact(one.value, frozenset(range(node.rank)) if whole else frozenset())


@_fact.register
def _(node: Scatter, operands: list[InitialFact]) -> InitialFact:
    return _everywhere(node, 0.0) if operands[0].is_zero else InitialFact()


@_fact.register
def _(node: Extreme, operands: list[InitialFact]) -> InitialFact:
    kept = [axis for axis in range(node.operands[0].rank) if axis not in node.axes]
    equal = [k for k, axis in enumerate(kept) if axis in operands[0].constant_axes]
    return InitialFact(operands[0].value, frozenset(equal))


@_fact.register
def _(node: Scan, operands: list[InitialFact]) -> InitialFact:
    if operands[1].is_zero:
        return _everywhere(node, 0.0)
    both = operands[0].constant_axes & operands[1].constant_axes
    return InitialFact(None, both - {node.axis})
