"""Recurrences that are log-sum-exps of the last states: running sums, and the forward algorithm."""

from __future__ import annotations

from math import inf

from slomodel.codegen.loops.fusion import Fusion
from slomodel.codegen.loops.nest import Element, LogProducts, Position
from slomodel.codegen.loops.planning import spells
from slomodel.codegen.lower import lower
from slomodel.functions import abs as magnitude
from slomodel.functions import add, exp, log, logaddexp, lt, sub, where
from slomodel.functions.running import logaddexp_or_empty
from slomodel.ir.expr import Axes, Const, Einsum, Expr, Extreme, Input, Map, Recur
from slomodel.ir.function import ScalarFunction
from slomodel.ir.loop import SliceAt, StateAt, Whole

_MOST_STATES = 24
"""States whose transitions, K² doubles, fit in a part of the L1 cache."""


def log_sum_terms(node: Recur, fusion: Fusion, first: int) -> Element | None:
    """Where the terms of a running log-sum-exp lie, from step `first` on; None for other loops.

    The position has a stride for the step and, if there are several states, one for them.
    """
    loop = node.loop
    if len(loop.updates) != 1 or len(loop.shapes) != 1 or loop.backwards:
        return None
    if len(loop.shapes[0]) > 1:
        return None
    (update,), numbers = loop.updates, fusion.accesses.numbers
    before = [(one, s) for one, s in loop.sources if isinstance(s, StateAt)]
    terms = [(one, s) for one, s in loop.sources if isinstance(s, SliceAt)]
    if len(before) != 1 or len(terms) != 1 or len(loop.sources) != 2 or first < 1:
        return None
    ((state, last),), ((term, source),) = before, terms
    pairs = ((state, term), (term, state))
    forms = [form(*pair) for form in (logaddexp, logaddexp_or_empty) for pair in pairs]
    if update.value not in lower(forms, numbers, spells):
        return None
    access = fusion.accesses.of(node.operands[source.operand])
    shifts = [one.shift.value(numbers) for one in (update, last)]
    if shifts != [0, -1] or not access.base.rank:
        return None
    if len(access.strides) != 1 + len(loop.shapes[0]):
        return None
    offset = access.offset + access.strides[0] * (first + source.shift.value(numbers))
    return Element(access.base, Position(offset, access.strides))


def log_products(node: Recur, fusion: Fusion, first: int) -> LogProducts | None:
    """Terms and weights of y_k = e_k + log Σ_j exp(y_j + P_jk), a step of the forward algorithm.

    None for other loops.
    """
    loop, numbers = node.loop, fusion.accesses.numbers
    if len(loop.updates) != 1 or len(loop.shapes) != 1 or len(loop.shapes[0]) != 1:
        return None
    (update,), count = loop.updates, loop.shapes[0][0].value(numbers)
    term_and_weights = _term_and_weights(update.value)
    if term_and_weights is None or loop.backwards or first < 1 or not 2 <= count <= _MOST_STATES:
        return None
    term, weights, state, summed = term_and_weights
    sources = dict(loop.sources)
    places = [sources.get(one) for one in (term, weights, state)]
    if not isinstance(places[0], SliceAt) or not isinstance(places[1], Whole):
        return None
    if not isinstance(places[2], StateAt) or len(loop.sources) != 3:
        return None
    if [one.shift.value(numbers) for one in (update, places[2])] != [0, -1]:
        return None
    terms, table = (fusion.accesses.of(node.operands[place.operand]) for place in places[:2])  # type: ignore[union-attr]
    if not terms.base.rank or not table.base.rank:
        return None
    offset = terms.offset + terms.strides[0] * (first + places[0].shift.value(numbers))
    strides = table.strides if summed == 0 else table.strides[::-1]
    return LogProducts(
        count,
        Element(terms.base, Position(offset, terms.strides)),
        Element(table.base, Position(table.offset, strides)),
    )


def _term_and_weights(value: Expr) -> tuple[Expr, Expr, Expr, int] | None:
    """e, P, y and the axis of P that is summed, if a value is e_k + log Σ_j exp(y_j + P_jk)."""
    for term, inner in _pair(value, add):
        if not isinstance(term, Input):
            continue
        for shift, logarithm in _pair(inner, add):
            total = _operand(logarithm, log)
            if not isinstance(total, Einsum) or len(total.operands) != 1:
                continue
            apart = _operand(total.operands[0], exp)
            if not isinstance(apart, Map) or apart.function is not sub:
                continue
            scores, other = apart.operands
            axis = _largest_along(shift, scores)
            if other is not shift or axis is None or total.output != (1 - axis,):
                continue
            if apart.axes != ((0, 1), (1 - axis,)) or total.inputs != ((0, 1),):
                continue
            own = _sum_of_state_and_table(scores, axis)
            if own is not None:
                return term, own[1], own[0], axis
    return None


def _pair(node: Expr, function: ScalarFunction) -> list[tuple[Expr, Expr]]:
    """The operands of a function of two vectors, in both orders."""
    if not isinstance(node, Map) or node.function is not function or node.axes != ((0,), (0,)):
        return []
    a, b = node.operands
    return [(a, b), (b, a)]


def _operand(node: Expr, function: ScalarFunction) -> Expr | None:
    return node.operands[0] if isinstance(node, Map) and node.function is function else None


def _largest_along(node: Expr, scores: Expr) -> int | None:
    """The axis along which a node is the largest of some scores, or 0 where that is infinite."""
    if not isinstance(node, Map) or node.function is not where:
        return None
    condition, largest, zero = node.operands
    if not isinstance(largest, Extreme) or zero is not Const(0.0) or largest.which != "max":
        return None
    if not isinstance(condition, Map) or condition.function is not lt:
        return None
    if _operand(condition.operands[0], magnitude) is not largest:
        return None
    if condition.operands[1] is not Const(inf) or largest.operands[0] is not scores:
        return None
    return largest.axes[0] if scores.rank == 2 and len(largest.axes) == 1 else None


def _sum_of_state_and_table(scores: Expr, axis: int) -> tuple[Expr, Expr] | None:
    """The state, along the axis, and the table of a sum of both."""
    if not isinstance(scores, Map) or scores.function is not add:
        return None
    wanted: dict[Axes, Expr] = dict(zip(scores.axes, scores.operands, strict=True))
    if set(wanted) != {(axis,), (0, 1)}:
        return None
    state, table = wanted[axis,], wanted[0, 1]
    return (state, table) if isinstance(state, Input) and isinstance(table, Input) else None
