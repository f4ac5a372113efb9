"""Short recurrences written out step by step, so that every rule sees elementary operations.

Others remain loops, whose states are enclosed for all steps (see `ranges/recurrences.py`). Where a
loop has too many steps for that, the objective has no bound, and the reason names the loop.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.functions import add, le, logaddexp, mul, where
from slomodel.functions.shifted import logsumexp
from slomodel.ir import build
from slomodel.ir.dims import Dim, Shape, literal
from slomodel.ir.expr import Affine, Expr, Input, Map, Recur, Scan, remake, tables_of
from slomodel.ir.index_tables import with_tables
from slomodel.ir.loop import Loop, SliceAt, Source, StateAt
from slomodel.ir.walk import postorder, substitute
from slomodel.reference import evaluate

MOST_NODES = 150
"""The largest number of nodes into which one recurrence is written out."""
_MOST_OPERATIONS = 15_000
"""Largest number of operations of all steps of a recurrence that remains a loop: some seconds."""
_FEW_STEPS = 8
"""Scans along so short an axis, as under Cholesky factors of few rows, are written out."""
_MOST_ROWS = 2_000
"""The largest number of steps of a running sum or log-sum-exp that is written by rows."""


@once_per_part
def written_out(part: ObjectivePart, most: int = MOST_NODES) -> ObjectivePart:
    """The part with each recurrence of at most this many nodes replaced by its steps."""
    order = part.order
    if not any(isinstance(node, (Recur, Scan)) for node in order):
        return part
    done: dict[Expr, Expr] = {}
    result: dict[tuple[Loop, tuple[Expr, ...]], tuple[Expr, ...]] = {}
    for node in order:
        operands = tuple(done[operand] for operand in node.operands)
        done[node] = remake(node, operands) if operands else node
        if _is_running_sum(done[node]) and _length(done[node], part.sizes) <= _MOST_ROWS:
            done[node] = _running_sum(done[node])
            continue
        if 0 < _length(done[node], part.sizes) <= _FEW_STEPS:
            done[node] = _written_scan(done[node], part.sizes)
            continue
        terms = _terms_of_running(done[node])
        if terms is not None and terms.shape[0].size(part.sizes) <= _MOST_ROWS:
            done[node] = _running_logsumexp(terms)
        elif isinstance(node, Recur) and nodes_of_steps(node.loop, part.sizes) <= most:
            key = (node.loop, operands)
            if key not in result:
                result[key] = _steps(node.loop, operands, part.sizes)
            done[node] = result[key][node.state]
    return _with_given_tables(part.rewritten(done, part.known))


def _with_given_tables(part: ObjectivePart) -> ObjectivePart:
    """The part with computed index tables, such as slices for single steps, as data."""
    read = (table for node in part.order for table in tables_of(node))
    computed = [table for table in dict.fromkeys(read) if not isinstance(table, Input)]
    if not computed:
        return part
    given: dict[Expr, Input] = {
        table: Input(f"table [{k}]", "data", table.shape, "whole")
        for k, table in enumerate(computed)
    }
    tables = evaluate(computed, part.values, part.sizes)
    arrays = [np.asarray(one, dtype=np.float64) for one in tables]
    values = {**part.values, **dict(zip(given.values(), arrays, strict=True))}
    known = replace(part.known, finite=part.known.finite.union(given.values()))
    result = part.rewritten(with_tables((part.objective,), given), known)
    return replace(result, values=values)


def _length(node: Expr, sizes: Mapping[str, int]) -> int:
    return node.shape[node.axis].size(sizes) if isinstance(node, Scan) else 0


def _is_running_sum(node: Expr) -> bool:
    return isinstance(node, Scan) and node.operands[0] is build.ones(node.shape)


def _running_sum(node: Expr) -> Expr:
    """Running sums along an axis as a product with a triangular matrix of ones, a linear map."""
    assert isinstance(node, Scan)
    length = node.shape[node.axis]
    shape = (length, length)
    rows, columns = (build.broadcast(build.iota(length), (k,), shape) for k in range(2))
    below = build.apply(le, columns, rows)
    ones = build.apply(where, below, build.const(1.0), build.const(0.0))
    own = tuple(range(node.rank))
    new = node.rank
    output = tuple(new if axis == node.axis else axis for axis in own)
    inputs = [(new, node.axis), own]
    return build.einsum([ones, node.operands[1]], inputs, output, (*node.shape, length))


def _written_scan(node: Expr, sizes: Mapping[str, int]) -> Expr:
    """y_t = a_t y_(t-1) + b_t along an axis, step by step."""
    assert isinstance(node, Scan)
    own = tuple(range(node.rank))
    first = (node.axis, *(axis for axis in own if axis != node.axis))
    shape = tuple(node.shape[axis] for axis in first)
    factor, term = (build.einsum([o], [own], first, node.shape) for o in node.operands)
    states: list[Expr] = []
    for t in range(_length(node, sizes)):
        b = _element(term, t)
        if states:
            b = build.apply(add, build.apply(mul, _element(factor, t), states[-1]), b)
        states.append(b)
    stacked = _stacked(states, shape)
    return build.einsum([stacked], [first], own, node.shape)


def _terms_of_running(node: Expr) -> Expr | None:
    """The terms (T, …) if a node is the log-sum-exp of the terms up to each step, else None."""
    if not isinstance(node, Recur) or len(node.loop.updates) != 1 or node.loop.backwards:
        return None
    (update,) = node.loop.updates
    value, first = update.value, node.loop.initial[0]
    if not isinstance(value, Map) or value.function is not logaddexp or first is None:
        return None
    if update.start != literal(1) or update.shift != Dim():
        return None
    sources = dict(node.loop.sources)
    before, own = (sources.get(operand) for operand in value.operands)
    if before != StateAt(0, literal(-1)) or not isinstance(own, SliceAt) or own.shift != Dim():
        return None
    terms = node.operands[own.operand]
    return terms if node.operands[first] is build.steps_of(terms, Dim(), literal(1)) else None


def _running_logsumexp(terms: Expr) -> Expr:
    """The log-sum-exp of the terms up to each step as one over rows that are padded with -inf."""
    length, *rest = terms.shape
    shape = (length, length, *rest)
    rows, columns = (build.broadcast(build.iota(length), (k,), shape) for k in range(2))
    wide = build.broadcast(terms, (1, *range(2, len(shape))), shape)
    kept = build.apply(where, build.apply(le, columns, rows), wide, build.const(-math.inf))
    return logsumexp(kept, (1,))


def too_long(part: ObjectivePart) -> str:
    """Why a recurrence in the objective rules out bounds; empty if none does."""
    for node in part.order:
        if not isinstance(node, Recur):
            continue
        if nodes_of_steps(node.loop, part.sizes) > _MOST_OPERATIONS:
            span = part.spans.get(node)
            text = "" if span is None else f" of line {span.line}"
            steps = node.loop.length.size(part.sizes)
            return f"the recurrence{text} has {steps} steps, too many for a bound"
    return ""


def nodes_of_steps(loop: Loop, sizes: Mapping[str, int]) -> int:
    """The number of nodes of a loop if its steps, and those of loops inside, were written out."""
    order = postorder(*(update.value for update in loop.updates))
    inner = {node.loop for node in order if isinstance(node, Recur)}
    body = len(order) + sum(nodes_of_steps(one, sizes) for one in inner)
    return loop.length.size(sizes) * max(1, body)


def _steps(loop: Loop, operands: Sequence[Expr], sizes: Mapping[str, int]) -> tuple[Expr, ...]:
    """The states of a loop as graphs without a loop."""
    length = loop.length.size(sizes)
    places: list[list[Expr | None]] = [[None] * length for _ in loop.shapes]
    for state, first in zip(places, loop.initial, strict=True):
        if first is not None:
            count = operands[first].shape[0].size(sizes)
            for t in range(min(length, count)):
                state[t] = _element(operands[first], t)

    def read(source: Source, t: int, shape: Shape) -> Expr:
        if isinstance(source, StateAt):
            result = places[source.state][t + source.shift.value(sizes)]
            return build.zeros(shape) if result is None else result
        if isinstance(source, SliceAt):
            return _element(operands[source.operand], t + source.shift.value(sizes))
        return operands[source.operand]

    used = [
        [(one, source) for one, source in loop.sources if one in set(postorder(update.value))]
        for update in loop.updates
    ]
    for t in reversed(range(length)) if loop.backwards else range(length):
        for update, own in zip(loop.updates, used, strict=True):
            if t >= update.start.value(sizes):
                values = {one: read(source, t, one.shape) for one, source in own}
                value = substitute((update.value,), values)[0]
                state, place = places[update.state], t + update.shift.value(sizes)
                before = state[place]
                state[place] = value if before is None else build.apply(add, before, value)
    return tuple(
        _stacked(state, (loop.length, *shape))
        for state, shape in zip(places, loop.shapes, strict=True)
    )


def _element(array: Expr, t: int) -> Expr:
    """Element t along the first axis."""
    rest = array.shape[1:]
    index = [Affine(literal(t), (0,) * len(rest))]
    index += Affine.identity(len(rest))
    return build.gather(array, index, rest)


def _stacked(places: Sequence[Expr | None], shape: Shape) -> Expr:
    """The elements along a new first axis, joined by halves so that the graph is shallow."""
    parts: list[tuple[int, Expr]] = []
    for t, value in enumerate(places):
        if value is not None:
            axes = tuple(range(1, len(shape)))
            parts.append((t, build.broadcast(value, axes, (literal(1), *shape[1:]))))
    while len(parts) > 1:
        parts = [_joined(parts[k : k + 2]) for k in range(0, len(parts), 2)]
    if not parts:
        return build.zeros(shape)
    return _placed(parts[0][1], parts[0][0], shape)


def _joined(parts: Sequence[tuple[int, Expr]]) -> tuple[int, Expr]:
    """Adjacent runs of elements, each with its first position, as one run."""
    if len(parts) == 1:
        return parts[0]
    (begin, first), (later, second) = parts
    shape = (literal(later - begin + second.shape[0].const), *first.shape[1:])
    return begin, build.apply(add, _placed(first, 0, shape), _placed(second, later - begin, shape))


def _placed(run: Expr, at: int, shape: Shape) -> Expr:
    """A run of elements from position `at` on, padded with zeros to the whole shape."""
    return build.scatter(run, Affine.shifted(run.rank, 0, literal(at)), shape)
