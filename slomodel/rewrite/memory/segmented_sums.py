"""Sums over arrays far larger than all inputs, such as pairs: computed one segment after another.

A sum over pairs of rows, Σ_ij g(Σ_k φ(x_ik, x_jk)), needs few numbers and many intermediate ones:
where φ is not a product, all φ are stored for the derivatives. The terms along one axis of the sum
are divided into segments, of which derivatives compute one after another, as they do with those of
a recurrence (see `checkpoints`). With segments of Q of N terms, of w numbers each, and operands of
W numbers, Q w numbers and N/Q adjoints of W numbers are stored, together least at Q² = N W / w.

Law: the same terms, added by segments: a difference of roundings times the sum of their magnitudes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import isqrt

from slomodel.errors import ShapeError
from slomodel.ir.dims import number_of_elements
from slomodel.ir.expr import Einsum, Expr, Extreme, Input, Map, MatrixOperation, Recur, Scan
from slomodel.ir.walk import dependents, inputs, postorder, users
from slomodel.rewrite.facts import Facts
from slomodel.rewrite.memory.segments import Segments
from slomodel.rewrite.memory.state_readers import Row, Sizes, StateReaders, StepSum, WholeArray
from slomodel.rewrite.work import is_varying_input

LARGEST_ARRAYS = 2**28
"""Bytes of intermediate arrays above which they are computed again rather than stored: a value is
written and read by several loops, whose arrays of this size come from memory each time."""
_LARGER = 16
"""Least ratio of these arrays to all inputs together. Terms over samples stay below it: data of
their size are in memory anyway, and loops over them are divided among threads."""
_FEWEST = 4
"""Fewer segments save less than the loop around them costs."""


def with_segmented_sums(objective: Expr, facts: Facts) -> tuple[Expr, tuple[str, ...]]:
    """The objective with its sums over very large arrays in segments, and a note on each."""
    sizes = facts.sizes
    notes: list[str] = []
    given = sum(number_of_elements(one.shape, sizes) for one in inputs(objective))
    least = max(LARGEST_ARRAYS // 8, _LARGER * given)
    passed: set[Expr] = set()
    while True:
        order = postorder(objective)
        varying = dependents(order, is_varying_input)
        if (
            sum(number_of_elements(one.shape, sizes) for one in varying if isinstance(one, Map))
            < least
        ):
            return objective, tuple(notes)
        plan = None
        for node in reversed(order):
            if isinstance(node, Einsum) and node in varying and node not in passed:
                passed.add(node)
                plan = _plan(node, order, varying, sizes, least)
                if plan is not None:
                    break
        if plan is None:
            return objective, tuple(notes)
        objective = plan.objective(objective)
        notes.append(f"a sum in segments of {plan.length:,} of {plan.steps:,} terms")


def _plan(
    node: Einsum, order: Sequence[Expr], varying: Collection[Expr], sizes: Sizes, least: int
) -> Segments | None:
    """The segments of a sum along the label for which least is stored; None if no label saves much.

    Labels of rows that the terms read apart from one another store less than those along which all
    terms read the same array, whose adjoints every segment has.
    """
    summed = [label for label in range(len(node.dims)) if label not in node.output]
    plans = (_along(node, label, order, varying, sizes, least) for label in summed)
    return min(filter(None, plans), key=lambda plan: plan[0], default=(0, None))[1]


def _along(
    node: Einsum,
    label: int,
    order: Sequence[Expr],
    varying: Collection[Expr],
    sizes: Sizes,
    least: int,
) -> tuple[int, Segments] | None:
    """The numbers that segments along a label store, and these; None if that is impossible."""
    steps = node.dims[label].size(sizes)
    if steps < _FEWEST or any(own.count(label) > 1 for own in node.inputs):
        return None
    readers = StateReaders({}, order, varying, sizes)
    try:
        term = readers.term(node, label)
    except ShapeError:
        return None
    computed = readers.computed()
    if any(isinstance(one, (Recur, Scan, MatrixOperation)) for one in computed):
        return None
    maps = [one for one in computed if isinstance(one, (Map, Extreme))]
    computed_elements = sum(number_of_elements(one.shape, sizes) for one in maps)
    if computed_elements < least or _is_read(node, computed, order):
        return None
    width = max(computed_elements // steps, 1)
    wholes = [leaf.array for leaf in readers.leaves.values() if isinstance(leaf, WholeArray)]
    stored = (node, *(whole for whole in wholes if whole in varying))
    kept = sum(number_of_elements(one.shape, sizes) for one in stored)
    length = max(isqrt(steps * kept // width), 1)
    count = steps // length
    numbers = count * kept + length * width
    if count < _FEWEST or 2 * numbers > steps * width:
        return None
    result = [StepSum(node, Row(term, 0, steps))]
    return numbers, Segments(None, readers.leaves, result, {}, sizes, 0, 0, length, count, steps)


def _is_read(node: Expr, computed: Collection[Expr], order: Sequence[Expr]) -> bool:
    """Whether others than a sum read the arrays of its terms, so that they are stored anyway."""
    using = users(order)
    inside = {*computed, node}
    return any(
        user not in inside for one in computed if not isinstance(one, Input) for user in using[one]
    )
