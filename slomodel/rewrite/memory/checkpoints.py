"""Checkpoints of recurrences: of a long one, few states are stored, and others computed again.

The steps of a recurrence of N steps with S numbers each are divided into segments of Q. The new
recurrence has one step for each segment: it runs through the segment by a loop inside it, and
keeps the last states and the sums over the steps that the objective reads. Its derivatives are
those of a recurrence whose steps contain a loop. They run through one segment after another, which
they compute again from the states before it, so that N S numbers and as many adjoints are never
stored at once. With Q of the order of the square root of N, the memory is of that order too
(Griewank 1992), and a gradient costs one more run through the recurrence.

Law: the states are the same numbers. Sums over steps are added by segments: a difference of
roundings times the sum of the magnitudes of the terms.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import ceil, sqrt

from slomodel.errors import ShapeError
from slomodel.ir.dims import Dim, number_of_elements
from slomodel.ir.expr import Expr, Recur
from slomodel.ir.loop import SliceAt, StateAt, Whole
from slomodel.ir.walk import dependents, postorder
from slomodel.rewrite.facts import Facts
from slomodel.rewrite.memory.segments import Segments
from slomodel.rewrite.memory.state_readers import (
    ArrayOfSteps,
    AtStep,
    Reader,
    Sizes,
    StateReaders,
    StateRow,
)
from slomodel.rewrite.work import is_varying_input

LARGEST_HISTORY = 2**26
"""Bytes of the states of all steps above which they are computed again rather than stored: larger
ones do not stay in the caches, and a gradient stores three to six arrays of this size, a Hessian
product up to 17."""
_ARRAYS = 5
"""Arrays of the size of the states that the derivatives of one segment need."""
_FEWEST = 4
"""Fewer segments save less than the loop around them costs."""


def checkpointed(objective: Expr, facts: Facts) -> tuple[Expr, tuple[str, ...]]:
    """The objective with few states of its long recurrences stored, and a note on each."""
    notes: list[str] = []
    passed: set[Expr] = set()
    while True:
        order = postorder(objective)
        varying = dependents(order, is_varying_input)
        result = next(
            (
                node
                for node in order
                if isinstance(node, Recur) and node in varying and node.states[0] not in passed
                if _is_long(node, facts)
            ),
            None,
        )
        if result is None:
            return objective, tuple(notes)
        passed.add(result.states[0])
        plan = _plan(result, order, varying, facts.sizes)
        if plan is not None:
            objective = plan.objective(objective)
            notes.append(
                f"of {plan.steps:,} steps of a recurrence every {plan.length:,}th is stored; "
                "derivatives compute the others again"
            )


def _is_long(node: Recur, facts: Facts) -> bool:
    loop = node.loop
    if loop.segmented or loop.backwards:
        return False
    return 8 * loop.length.size(facts.sizes) * _width(node, facts.sizes) >= LARGEST_HISTORY


def _width(node: Recur, sizes: Sizes) -> int:
    """The numbers in all states at one step."""
    return sum(number_of_elements(shape, sizes) for shape in node.loop.shapes)


def _plan(
    node: Recur, order: Sequence[Expr], varying: Collection[Expr], sizes: Sizes
) -> Segments | None:
    """How a recurrence is divided into segments; None if that is not possible or saves little."""
    loop = node.loop
    for k, first in enumerate(loop.initial):
        covered = Dim() if first is None else node.operands[first].shape[0]
        if not loop.is_assigned(k, covered):
            return None
    readers = StateReaders({state: state.state for state in node.states}, order, varying, sizes)
    try:
        result = readers.collect()
        slices = {
            one: readers.row(node.operands[source.operand], 0, source.shift.value(sizes))
            for one, source in loop.sources
            if isinstance(source, SliceAt)
        }
    except ShapeError:
        return None
    width, length = _width(node, sizes), loop.length.size(sizes)
    shifts = [s.shift.value(sizes) for _, s in loop.sources if isinstance(s, StateAt)]
    shifts += [leaf.shift for leaf in readers.leaves.values() if isinstance(leaf, StateRow)]
    lag = max(1, -min(shifts, default=0))
    start = max([lag, *(update.start.size(sizes) for update in loop.updates)])
    end = length
    for one in result:
        if not isinstance(one, AtStep):
            start, end = max(start, one.row.start), min(end, one.row.end)
        elif one.row.start < length // 2:
            start = max(start, one.row.end)
        else:
            end = min(end, one.row.start)
    stored = sum(
        number_of_elements(one.row.graph.shape, sizes) for one in result if _is_stored(one)
    )
    whole = {s.operand for _, s in loop.sources if isinstance(s, Whole)}
    active = [node.operands[k] for k in whole if node.operands[k] in varying]
    kept = lag * width + sum(number_of_elements(one.shape, sizes) for one in active)
    own = max(ceil(sqrt(max(end - start, 0) * kept / (_ARRAYS * width))), 1)
    count = (end - start) // own
    memory = count * kept + (start + _ARRAYS * own) * width + length * stored
    if max(shifts, default=0) > 0 or count < _FEWEST or 2 * memory > length * width:
        return None
    return Segments(node, readers.leaves, result, slices, sizes, lag, start, own, count, length)


def _is_stored(reader: Reader) -> bool:
    return isinstance(reader, ArrayOfSteps)
