"""What is known of every node at the start for all data: one number, or alike along axes.

Abstract interpretation: a variable that starts as a number is that number in every element, data
may be anything. What is claimed holds for exact arithmetic and finite data.
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
class AtStart:
    """`value` of every element where one is known; `alike` are the axes along which all agree."""

    value: float | None = None
    alike: frozenset[int] = frozenset()

    @property
    def is_zero(self) -> bool:
        return self.value == 0.0


def at_start(roots: Sequence[Expr], starts: Mapping[Input, float]) -> dict[Expr, AtStart]:
    """The facts of every node under the roots, where some variables start as numbers."""
    facts: dict[Expr, AtStart] = {}
    for node in postorder(*roots):
        if isinstance(node, Input):
            facts[node] = _everywhere(node, starts.get(node))
        else:
            facts[node] = _fact(node, [facts[operand] for operand in node.operands])
    return facts


def _everywhere(node: Expr, value: float | None) -> AtStart:
    if value is None or not np.isfinite(value):
        return AtStart()
    return AtStart(value, frozenset(range(node.rank)))


@singledispatch
def _fact(node: Expr, operands: list[AtStart]) -> AtStart:
    """The fact of a node from those of its operands; nothing where no rule says more."""
    return AtStart()


@_fact.register
def _(node: Const, operands: list[AtStart]) -> AtStart:
    return _everywhere(node, float(node.value))


@_fact.register
def _(node: Map, operands: list[AtStart]) -> AtStart:
    values = [one.value for one in operands]
    if all(value is not None for value in values):
        with np.errstate(all="ignore"):
            found = float(node.function.numpy(*(np.asarray(value) for value in values)))
        return _everywhere(node, found)
    vanishes = 0.0 in values if node.function is mul else node.function is div and values[0] == 0.0
    if vanishes:
        return _everywhere(node, 0.0)
    alike = [
        axis
        for axis in range(node.rank)
        if all(
            axis not in own or own.index(axis) in one.alike
            for own, one in zip(node.axes, operands, strict=True)
        )
    ]
    return AtStart(None, frozenset(alike))


@_fact.register
def _(node: Einsum, operands: list[AtStart]) -> AtStart:
    if any(one.is_zero for one in operands):
        return _everywhere(node, 0.0)
    once = len(set(node.output)) == len(node.output)
    values = [one.value for one in operands]
    if once and len(node.dims) == len(node.output) and None not in values:
        return _everywhere(node, float(np.prod([value for value in values if value is not None])))
    alike = [
        axis
        for axis, label in enumerate(node.output)
        if node.output.count(label) == 1 and is_alike(node, label, operands)
    ]
    return AtStart(None, frozenset(alike))


def is_alike(node: Einsum, label: int, operands: Sequence[AtStart]) -> bool:
    """True where every operand is alike along its axes of a label."""
    return all(
        axis in one.alike
        for own, one in zip(node.inputs, operands, strict=True)
        for axis, other in enumerate(own)
        if other == label
    )


@_fact.register
def _(node: Gather, operands: list[AtStart]) -> AtStart:
    (one,) = operands
    if is_listed(node):
        return AtStart(one.value)
    indices = affine(node.index)
    alike = [
        axis
        for axis in range(node.rank)
        if all(k in one.alike for k, index in enumerate(indices) if index.coefficients[axis])
    ]
    return AtStart(one.value, frozenset(alike))


@_fact.register
def _(node: Reshape, operands: list[AtStart]) -> AtStart:
    (one,) = operands
    whole = len(one.alike) == node.operands[0].rank
    return AtStart(one.value, frozenset(range(node.rank)) if whole else frozenset())


@_fact.register
def _(node: Scatter, operands: list[AtStart]) -> AtStart:
    return _everywhere(node, 0.0) if operands[0].is_zero else AtStart()


@_fact.register
def _(node: Extreme, operands: list[AtStart]) -> AtStart:
    kept = [axis for axis in range(node.operands[0].rank) if axis not in node.axes]
    alike = [k for k, axis in enumerate(kept) if axis in operands[0].alike]
    return AtStart(operands[0].value, frozenset(alike))


@_fact.register
def _(node: Scan, operands: list[AtStart]) -> AtStart:
    if operands[1].is_zero:
        return _everywhere(node, 0.0)
    both = operands[0].alike & operands[1].alike
    return AtStart(None, both - {node.axis})
