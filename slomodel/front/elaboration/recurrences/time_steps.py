"""Recurrences from bodies over all steps, for the text and for SymPy expressions.

A body is evaluated once, with the states that it reads as placeholders over all steps; it is then
reduced to the graph of one step. So the time depends on the length of the model, and not on the
number of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from slomodel.functions import add
from slomodel.ir import build
from slomodel.ir.dims import Dim, Shape, literal
from slomodel.ir.expr import Affine, Expr, Input
from slomodel.ir.loop import StateAt, Update
from slomodel.ir.recur import Reading, SlicesOf
from slomodel.ir.stepwise import Steps, not_stepwise, one_step
from slomodel.ir.walk import substitute
from slomodel.rewrite.stable_forms.rules import stable


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

    @property
    def steps(self) -> Dim:
        """The number of all steps."""
        return self.count + self.value.shape[0]


ReadState = Callable[[int, Dim], Reading]
"""(number of a state, how many steps ago) -> what stands for it in the loop."""


def recurrence(length: Dim, bodies: Sequence[Body], order: Sequence[int]) -> list[Expr]:
    """The states of a recurrence, each (steps, *shape), computed in an order at every step.

    `length` is the least number of steps. Raises ShapeError for a body that combines several steps.
    """
    place = {number: k for k, number in enumerate(order)}

    def read(number: int, lag: Dim) -> Reading:
        return StateAt(place[number], Dim() - lag)

    readings: dict[Expr, Reading] = {}
    values = [_one_step(k, bodies[k], read, readings) for k in order]
    made = build.recur(
        length,
        [(bodies[k].shape, bodies[k].first) for k in order],
        [Update(place[k], Dim(), bodies[k].count, values[place[k]]) for k in order],
        readings,
    )
    states = [made[place[k]] for k in range(len(bodies))]
    longer = [k for k in order if bodies[k].steps != length]
    for k, array in _continued(states, bodies, longer, length).items():
        states[k] = array
    return states


def _continued(
    states: Sequence[Expr], bodies: Sequence[Body], longer: Sequence[int], length: Dim
) -> dict[int, Expr]:
    """The states with more than `length` steps, from the first `length` steps of all of them.

    Their further steps are a short recurrence. Raises ShapeError for more than one number of steps.
    """
    if not longer:
        return {}
    further = {bodies[k].steps - length for k in longer}
    lags = [lag for k in longer for _, lag in bodies[k].reads.values()]
    if len(further) > 1 or not all(dim.is_literal for dim in (*further, *lags)):
        reason = "its definitions have more than two numbers of steps, or lags of any size"
        raise not_stepwise(reason)
    (count,) = further
    lag = max((one.const for one in lags), default=1) or 1
    begin = length - lag
    place = {number: k for k, number in enumerate(longer)}

    def read(number: int, lag: Dim) -> Reading:
        if number in place:
            return StateAt(place[number], Dim() - lag)
        return SlicesOf(states[number], begin - lag)

    readings: dict[Expr, Reading] = {}
    updates = [
        Update(place[k], Dim(), literal(lag), _one_step(k, bodies[k], read, readings, begin))
        for k in longer
    ]
    first = [build.steps_of(states[k], begin, literal(lag)) for k in longer]
    own = [(bodies[k].shape, one) for k, one in zip(longer, first, strict=True)]
    made = build.recur(count + lag, own, updates, readings)
    states_after: dict[int, Expr] = {}
    for k, array in zip(longer, made, strict=True):
        rest = build.steps_of(array, literal(lag), count)
        states_after[k] = build.apply(
            add, _placed(states[k], Dim(), length + count), _placed(rest, length, length + count)
        )
    return states_after


def _placed(array: Expr, start: Dim, length: Dim) -> Expr:
    """The array from `start` on along its first axis, among zeros."""
    return build.scatter(array, Affine.shifted(array.rank, 0, start), (length, *array.shape[1:]))


def _one_step(
    k: int, body: Body, read: ReadState, readings: dict[Expr, Reading], begin: Dim | None = None
) -> Expr:
    """The graph of one step of a state; what it reads is added to `readings`.

    The loop begins with step `begin` of the recurrence, by default the first.
    """
    steps = Steps()
    inside: dict[Expr, Expr] = {}
    for state, (number, lag) in body.reads.items():
        inside[state] = Input(f"{state.name} of {k}", "step", state.shape[1:])
        readings[inside[state]] = read(number, lag)
    # Stable forms come before what does not depend on the states is cut off: one may contain both.
    made = one_step(stable(body.value), inside, steps)
    renamed: dict[Expr, Expr] = {}
    for node, array in (*steps.slices.items(), *steps.wholes.items()):
        assert isinstance(node, Input)
        renamed[node] = Input(f"{node.name} of {k}", "step", node.shape, node.dtype)
        is_slice = node in steps.slices
        shift = (begin or Dim()) - body.count
        readings[renamed[node]] = SlicesOf(array, shift) if is_slice else array
    return substitute((made,), renamed)[0]
