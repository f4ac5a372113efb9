"""Recurrences from bodies over all steps, for the text and for SymPy expressions.

A body is evaluated once, with the states that it reads as placeholders over all steps; it is then
reduced to the graph of one step. So the time depends on the length of the model, and not on the
number of steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slomodel.ir import build
from slomodel.ir.dims import Dim, Shape
from slomodel.ir.expr import Expr, Input
from slomodel.ir.loop import StateAt, Update
from slomodel.ir.recur import Reading, SlicesOf
from slomodel.ir.stepwise import Steps, one_step
from slomodel.ir.walk import substitute
from slomodel.rewrite.stable import stable


@dataclass(frozen=True, slots=True)
class Body:
    """One state of a recurrence.

    `first` (count, *shape) are its first values, if any. `value` (length - count, *shape) are the
    others, all at once. `reads` maps placeholders (length - count, …) in it to the number of a
    state and how many steps ago it is read.
    """

    shape: Shape
    count: Dim
    first: Expr | None
    value: Expr
    reads: Mapping[Input, tuple[int, Dim]]


def recurrence(length: Dim, bodies: Sequence[Body], order: Sequence[int]) -> list[Expr]:
    """The states of a recurrence, each (length, *shape), computed in an order at every step.

    Raises ShapeError for a body that combines several steps.
    """
    place = {number: k for k, number in enumerate(order)}
    readings: dict[Expr, Reading] = {}
    values = [_one_step(k, bodies[k], place, readings) for k in order]
    recur = build.recur(
        length,
        [(bodies[k].shape, bodies[k].first) for k in order],
        [Update(place[k], Dim(), bodies[k].count, values[place[k]]) for k in order],
        readings,
    )
    return [recur[place[k]] for k in range(len(bodies))]


def _one_step(k: int, body: Body, place: Mapping[int, int], readings: dict[Expr, Reading]) -> Expr:
    """The graph of one step of a state; what it reads is added to `readings`."""
    steps = Steps()
    inside: dict[Expr, Expr] = {}
    for state, (number, lag) in body.reads.items():
        inside[state] = Input(f"{state.name} of {k}", "step", state.shape[1:])
        readings[inside[state]] = StateAt(place[number], Dim() - lag)
    # Stable forms come before what does not depend on the states is cut off: one may contain both.
    result = one_step(stable(body.value), inside, steps)
    renamed: dict[Expr, Expr] = {}
    for node, array in (*steps.slices.items(), *steps.wholes.items()):
        assert isinstance(node, Input)
        renamed[node] = Input(f"{node.name} of {k}", "step", node.shape, node.dtype)
        is_slice = node in steps.slices
        readings[renamed[node]] = SlicesOf(array, Dim() - body.count) if is_slice else array
    return substitute((result,), renamed)[0]
