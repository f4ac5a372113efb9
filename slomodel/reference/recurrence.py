"""The value of a recurrence, by evaluation of the body of its loop at each step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slomodel.ir.dims import concrete
from slomodel.ir.expr import Expr
from slomodel.ir.loop import Loop, SliceAt, Source, StateAt
from slomodel.ir.walk import postorder

Array = NDArray[Any]
Evaluate = Callable[[Sequence[Expr], Mapping[Expr, Array]], Sequence[Array]]
"""The values of the roots of a body for given values of its placeholders."""


def states_of(
    loop: Loop, operands: Sequence[Array], sizes: Mapping[str, int], evaluate: Evaluate
) -> list[Array]:
    """All states of a loop, each (length, *shape)."""
    length = loop.length.size(sizes)
    kind = np.result_type(np.float64, *operands)
    states = [np.zeros((length, *concrete(shape, sizes)), kind) for shape in loop.shapes]
    for state, first in zip(states, loop.initial, strict=True):
        if first is not None:
            count = min(length, len(operands[first]))
            state[:count] = operands[first][:count]

    def read(source: Source, t: int) -> Array:
        if isinstance(source, StateAt):
            return np.asarray(states[source.state][t + source.shift.value(sizes)])
        if isinstance(source, SliceAt):
            return np.asarray(operands[source.operand][t + source.shift.value(sizes)])
        return operands[source.operand]

    starts = [update.start.value(sizes) for update in loop.updates]
    shifts = [update.shift.value(sizes) for update in loop.updates]
    used = [_inputs(update.value, loop) for update in loop.updates]
    steps = range(length)
    for t in reversed(steps) if loop.backwards else steps:
        for k, update in enumerate(loop.updates):
            if t >= starts[k]:
                values = {node: read(source, t) for node, source in used[k]}
                (value,) = evaluate([update.value], values)
                states[update.state][t + shifts[k]] += value
    return states


def inputs_at(
    loop: Loop,
    k: int,
    t: int,
    states: Sequence[Array],
    operands: Sequence[Array],
    sizes: Mapping[str, int],
) -> dict[Expr, Array]:
    """The values of the placeholders of update k at step t, from the final states."""
    result: dict[Expr, Array] = {}
    for node, source in _inputs(loop.updates[k].value, loop):
        if isinstance(source, StateAt):
            result[node] = np.asarray(states[source.state][t + source.shift.value(sizes)])
        elif isinstance(source, SliceAt):
            result[node] = np.asarray(operands[source.operand][t + source.shift.value(sizes)])
        else:
            result[node] = operands[source.operand]
    return result


def _inputs(value: Expr, loop: Loop) -> list[tuple[Expr, Source]]:
    """The placeholders under a value, with what they stand for."""
    under = set(postorder(value))
    return [(node, source) for node, source in loop.sources if node in under]
