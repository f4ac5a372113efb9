"""Recurrences whose steps are homogeneous of degree 1 in some of their states.

Scaling these states by one number scales what a step computes by it. Where the elements along an
axis do not mix, each of them may be scaled by a number of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction

from slomodel.functions import (
    abs,
    add,
    div,
    eq,
    ge,
    gt,
    le,
    lt,
    maximum,
    minimum,
    mul,
    ne,
    neg,
    sub,
    where,
)
from slomodel.functions.compound import stop_gradient
from slomodel.ir.dims import Dim
from slomodel.ir.expr import Affine, Const, Einsum, Expr, Extreme, Gather, Map, is_map
from slomodel.ir.loop import Loop, StateAt, Update
from slomodel.ir.walk import postorder
from slomodel.rewrite.elementwise.matching import exponent_of_power

_LARGEST_LAG = 4
_COMPARISONS = (lt, le, gt, ge, eq, ne)
_SUMS = (add, sub, maximum, minimum)
_KEEPING = (neg, abs, stop_gradient)
_ZERO, _ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True, slots=True)
class HomogeneousStates:
    """States in which all steps are homogeneous, which are given before position `start`.

    Along the axes `batch` of the states, their elements do not mix.
    """

    states: frozenset[int]
    batch: tuple[int, ...]
    start: Dim


class _Other(Exception):
    """A step is not homogeneous."""


def group_of(loop: Loop, state: int) -> HomogeneousStates | None:
    """The smallest group of a loop with this state; None if there is none."""
    if loop.backwards or loop.segmented:
        return None
    states = {state}
    while True:
        starts = _readings(loop, states)
        shapes = {loop.shapes[k] for k in states}
        rank = len(loop.shapes[state]) if len(shapes) == 1 else 0
        found = None if starts is None else _steps(loop, starts, rank)
        if found is None:
            return None
        if found.states <= states:
            break
        states |= found.states
    updates = [update for update in loop.updates if update.state in states]
    start = updates[0].start
    whole = all(loop.is_assigned(k, start) for k in states)
    if found.states < states or not whole or start == Dim():
        return None
    if any(loop.initial[k] is None for k in states):
        return None
    return HomogeneousStates(frozenset(states), found.batch, start)


def is_factor(loop: Loop, group: HomogeneousStates, read: Expr) -> bool:
    """Whether the step of the one state of a group is homogeneous of degree 1 in an array that it
    reads, as in the states; along the axes of the group, too, elements do not mix.
    """
    (state,) = group.states
    same = read.shape == loop.shapes[state]
    found = _steps(loop, [read], read.rank if same else 0)
    return found is not None and found.states == {state} and set(group.batch) <= {*found.batch}


def _readings(loop: Loop, states: Collection[int]) -> list[Expr] | None:
    """The placeholders for states at a few earlier steps; None if a step reads others."""
    result = []
    for one, source in loop.sources:
        if isinstance(source, StateAt) and source.state in states:
            lag = Dim() - source.shift
            if not lag.is_literal or not 0 <= lag.const <= _LARGEST_LAG:
                return None
            result.append(one)
    return result


def _steps(loop: Loop, starts: Sequence[Expr], rank: int) -> _StepDegrees | None:
    try:
        return _StepDegrees(loop, starts, rank)
    except _Other:
        return None


class _StepDegrees:
    """The degrees of the updates of a loop in placeholders with `rank` axes; raises _Other.

    `states` are those whose updates have degree 1, and `batch` the axes along which elements do not
    mix.
    """

    def __init__(self, loop: Loop, starts: Sequence[Expr], rank: int) -> None:
        self._mixed: set[int] = set()
        self._rank = rank
        self._degrees: dict[Expr, Fraction | None] = dict.fromkeys(starts, _ONE)
        own: tuple[int | None, ...] = tuple(range(rank))
        self._places = dict.fromkeys(starts, own)
        self.states = {one.state for one in loop.updates if self._is_multiple(one)}
        self.batch = tuple(k for k in range(rank) if k not in self._mixed)

    def _is_multiple(self, update: Update) -> bool:
        """Whether an update has degree 1; raises _Other if it is neither 0 nor 1."""
        value = update.value
        for node in postorder(value):
            if any(operand in self._places for operand in node.operands):
                self._places[node] = self._place(node)
                self._degrees[node] = self._degree(node)
        if value in self._places:
            self._mixed |= {k for k, place in enumerate(self._places[value]) if place != k}
        degree = self._known(value)
        if degree not in (_ZERO, _ONE):
            raise _Other
        return degree == _ONE

    def _known(self, node: Expr) -> Fraction | None:
        """The degree of a node; None for 0, which has every degree."""
        return None if node is Const(0.0) else self._degrees.get(node, _ZERO)

    def _degree(self, node: Expr) -> Fraction | None:
        own = [self._known(operand) for operand in node.operands]
        if isinstance(node, Einsum) or is_map(node, mul):
            return None if None in own else sum((one for one in own if one is not None), _ZERO)
        if isinstance(node, Gather | Extreme):
            return own[0]
        if not isinstance(node, Map):
            raise _Other
        if node.function in _KEEPING:
            return own[0]
        power = exponent_of_power(node)
        if power is not None:
            return None if own[0] is None else Fraction(power) * own[0]
        if is_map(node, div) and own[1] is not None:
            return None if own[0] is None else own[0] - own[1]
        if node.function in _SUMS or is_map(node, where) or node.function in _COMPARISONS:
            terms = own[1:] if is_map(node, where) else own
            if is_map(node, where) and own[0] != _ZERO:
                raise _Other
            degrees = {one for one in terms if one is not None}
            if len(degrees) > 1:
                raise _Other
            if node.function in _COMPARISONS:
                return _ZERO
            return degrees.pop() if degrees else None
        if any(one != _ZERO for one in own):
            raise _Other
        return _ZERO

    def _place(self, node: Expr) -> tuple[int | None, ...]:
        """For each axis of the states, that of the node along which it lies; None if it mixes."""
        result: list[int | None] = [None] * self._rank
        own = [one for one in enumerate(node.operands) if one[1] in self._places]
        for k in range(self._rank):
            found = {
                None if place is None else axis_of(node, number, place)
                for number, operand in own
                for place in (self._places[operand][k],)
            }
            result[k] = found.pop() if len(found) == 1 else None
            if result[k] is None:
                self._mixed.add(k)
        return tuple(result)


def axis_of(node: Expr, number: int, place: int) -> int | None:
    """The axis of a node on which an axis of an operand lies, element for element."""
    if isinstance(node, Map):
        return node.axes[number][place]
    if isinstance(node, Einsum):
        label = node.inputs[number][place]
        is_once = node.inputs[number].count(label) == 1 and node.output.count(label) == 1
        return node.output.index(label) if is_once else None
    if isinstance(node, Extreme):
        kept = [k for k in range(node.operands[0].rank) if k not in node.axes]
        return kept.index(place) if place in kept else None
    if isinstance(node, Gather) and number == 0:
        one = node.index[place]
        if isinstance(one, Affine) and one.offset == Dim() and sorted(one.coefficients)[-1:] == [1]:
            return one.coefficients.index(1) if sum(map(bool, one.coefficients)) == 1 else None
    return None
