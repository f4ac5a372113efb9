"""Derivatives of recurrences: the tangents and the adjoints of a loop are loops of the same kind.

Only the dependence of states on earlier states needs a loop. Derivatives with respect to all other
operands are those of the body, evaluated at all steps at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce

from slomodel.functions import add
from slomodel.ir import build
from slomodel.ir.dims import Dim
from slomodel.ir.expr import Const, Einsum, Expr, Input, Recur
from slomodel.ir.loop import SliceAt, Source, StateAt, Update
from slomodel.ir.recur import Reading, SlicesOf
from slomodel.ir.stepwise import batched
from slomodel.ir.walk import postorder, substitute

Gradient = Callable[[Expr, Sequence[Expr]], tuple[Expr, ...]]
Jvp = Callable[[Sequence[Expr], Mapping[Expr, Expr]], tuple[Expr, ...]]


def states_along(node: Recur, tangents: Sequence[Expr | None], jvp: Jvp) -> tuple[Expr, ...]:
    """The tangents of all states of a loop from those of its operands; None stands for zero."""
    first = [None if one is None else tangents[one] for one in node.loop.initial]
    return _tangents(node, first, tangents, jvp)


def states_after(node: Recur, added: Sequence[Expr], jvp: Jvp) -> tuple[Expr, ...]:
    """The tangents of all states of a loop when the arrays `added`, of their shapes, are added to
    them, each element at its own step.
    """
    return _tangents(node, added, [None] * len(node.operands), jvp)


def _tangents(
    node: Recur, first: Sequence[Expr | None], tangents: Sequence[Expr | None], jvp: Jvp
) -> tuple[Expr, ...]:
    """The tangents of states that begin as `first`, with those of the operands that steps read."""
    loop = node.loop
    states = list(zip(loop.shapes, first, strict=True))
    readings: dict[Expr, Reading] = {}
    varying: dict[Expr, Expr] = {}
    for k, (one, source) in enumerate(loop.sources):
        readings[one] = _reading(node, source)
        along: Reading | None = source if isinstance(source, StateAt) else None
        if isinstance(source, SliceAt):
            own = tangents[source.operand]
            along = None if own is None else SlicesOf(own, source.shift)
        elif not isinstance(source, StateAt):
            along = tangents[source.operand]
        if along is not None:
            varying[one] = Input(f"tangent {k}", "step", one.shape, one.dtype)
            readings[varying[one]] = along
    updates = []
    for update in loop.updates:
        (value,) = jvp((update.value,), varying)
        if not _is_zero(value):
            updates.append(Update(update.state, update.shift, update.start, value))
    return build.recur(
        *(loop.length, states, updates, readings),
        backwards=loop.backwards,
        segmented=loop.segmented,
    )


def adjoints_of_operands(
    node: Recur, adjoints: Mapping[int, Expr], active: Collection[Expr], gradient: Gradient
) -> dict[int, Expr]:
    """The adjoint of each active operand of a loop, from the adjoints of its states by number."""
    loop = node.loop
    result: dict[int, list[Expr]] = {}
    read = {s.operand for _, s in loop.sources if not isinstance(s, StateAt)}
    wanted = [k for k in sorted(read) if node.operands[k] in active]
    if loop.segmented:
        back, own = _adjoints_by_segments(node, adjoints, wanted, gradient)
    else:
        back = _adjoint_states(node, adjoints, gradient)
        own = _adjoints_at_all_steps(node, back, wanted, gradient) if wanted else {}
    for state, first in enumerate(loop.initial):
        if first is not None and node.operands[first] in active:
            count = node.operands[first].shape[0]
            result.setdefault(first, []).append(build.steps_of(back[state], Dim(), count))
    for k, value in own.items():
        result.setdefault(k, []).append(value)
    return {k: reduce(add, terms) for k, terms in result.items()}


def _reading(node: Recur, source: Source) -> Reading:
    """The array that a placeholder reads after the loop has run, when the states are arrays."""
    if isinstance(source, StateAt):
        return SlicesOf(node.states[source.state], source.shift)
    if isinstance(source, SliceAt):
        return SlicesOf(node.operands[source.operand], source.shift)
    return node.operands[source.operand]


def _is_zero(node: Expr) -> bool:
    if isinstance(node, Einsum):
        return any(operand is Const(0.0) for operand in node.operands)
    return node is Const(0.0)


def _adjoint_states(
    node: Recur, adjoints: Mapping[int, Expr], gradient: Gradient
) -> tuple[Expr, ...]:
    """The adjoints of all states, in their shapes, including contributions of later steps.

    A reverse step adds, to the adjoint of each position that the step reads, the derivative of its
    value times the adjoint of the position that it writes.
    """
    loop = node.loop
    states = [(shape, adjoints.get(k)) for k, shape in enumerate(loop.shapes)]
    readings: dict[Expr, Reading] = {one: _reading(node, s) for one, s in loop.sources}
    read = [(one, s) for one, s in loop.sources if isinstance(s, StateAt)]
    updates: list[Update] = []
    for k, update in enumerate(reversed(loop.updates)):
        seed = Input(f"adjoint {k}", "step", update.value.shape)
        readings[seed] = StateAt(update.state, update.shift)
        under = set(postorder(update.value))
        own = [(one, source) for one, source in read if one in under]
        slopes = gradient(build.inner(seed, update.value), [one for one, _ in own])
        for (_, source), slope in zip(own, slopes, strict=True):
            if not _is_zero(slope):
                updates.append(Update(source.state, source.shift, update.start, slope))
    return build.recur(loop.length, states, updates, readings, backwards=not loop.backwards)


def _adjoints_at_all_steps(
    node: Recur, back: Sequence[Expr], wanted: Sequence[int], gradient: Gradient
) -> dict[int, Expr]:
    """The adjoints of slices and whole operands: the body at all steps, weighted and summed.

    Placeholders for the arrays confine differentiation to the body.
    """
    loop = node.loop
    stand_ins: dict[Expr, Expr] = {}

    def stand_in(array: Expr) -> Expr:
        if array not in stand_ins:
            name = f"array {len(stand_ins)}"
            stand_ins[array] = Input(name, "step", array.shape, array.dtype)
        return stand_ins[array]

    total: Expr = Const(0.0)
    for update in loop.updates:
        count = loop.length - update.start
        arrays: dict[Expr, Expr] = {}
        for one, source in loop.sources:
            reading = _reading(node, source)
            if isinstance(reading, SlicesOf):
                array = stand_in(reading.array)
                arrays[one] = build.steps_of(array, update.start + reading.shift, count)
            elif isinstance(reading, Expr):
                arrays[one] = stand_in(reading)
        value = batched(update.value, arrays, count)
        seeds = build.steps_of(stand_in(back[update.state]), update.start + update.shift, count)
        total = build.apply(add, total, build.inner(seeds, value))
    result = gradient(total, [stand_in(node.operands[k]) for k in wanted])
    real = {one: array for array, one in stand_ins.items()}
    return dict(zip(wanted, substitute(result, real), strict=True))


def _adjoints_by_segments(
    node: Recur, adjoints: Mapping[int, Expr], wanted: Sequence[int], gradient: Gradient
) -> tuple[tuple[Expr, ...], dict[int, Expr]]:
    """The adjoints of the states of a segmented loop, and those of the wanted operands.

    Its updates read states of earlier steps alone, so that one sweep through all of them gives the
    contributions of a segment. Those to slices stand at their places, and those to other operands
    are summed over the segments.
    """
    loop = node.loop
    states = [(shape, adjoints.get(k)) for k, shape in enumerate(loop.shapes)]
    readings: dict[Expr, Reading] = {one: _reading(node, s) for one, s in loop.sources}
    total: Expr = Const(0.0)
    for k, update in enumerate(loop.updates):
        seed = Input(f"adjoint {k}", "step", update.value.shape)
        readings[seed] = StateAt(update.state, update.shift)
        total = build.apply(add, total, build.inner(seed, update.value))
    (start,) = {update.start for update in loop.updates}
    own = [
        pair for pair in loop.sources if isinstance(pair[1], StateAt) or pair[1].operand in wanted
    ]
    slopes = gradient(total, [one for one, _ in own])
    updates: list[Update] = []
    parts: dict[int, list[int]] = {}
    for (one, source), slope in zip(own, slopes, strict=True):
        if _is_zero(slope):
            continue
        if isinstance(source, StateAt):
            updates.append(Update(source.state, source.shift, start, slope))
            continue
        shift = source.shift if isinstance(source, SliceAt) else Dim()
        updates.append(Update(len(states), shift, start, slope))
        parts.setdefault(source.operand, []).append(len(states))
        states.append((one.shape, None))
    recur = build.recur(
        *(loop.length, states, updates, readings), backwards=not loop.backwards, segmented=True
    )
    result: dict[int, Expr] = {}
    for k in wanted:
        array = node.operands[k]
        terms = [
            build.steps_of(recur[state], Dim(), array.shape[0])
            if recur[state].rank == array.rank
            else build.sum_over(recur[state], (0,))
            for state in parts.get(k, ())
        ]
        if terms:
            result[k] = reduce(add, terms)
    return recur[: len(loop.shapes)], result
