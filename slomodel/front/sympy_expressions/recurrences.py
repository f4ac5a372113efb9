"""Recurrences in SymPy: an IndexedBase whose elements are computed from earlier ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import sympy as sp

from slomodel.errors import ShapeError
from slomodel.front.elaboration.time_steps import Body, recurrence
from slomodel.front.elaboration.values import Label, Value, value_of
from slomodel.front.sympy_expressions.errors import error
from slomodel.front.sympy_expressions.evaluation import Steps, SymPyRequest
from slomodel.front.sympy_expressions.scope import IndexScope, Translation, affine, size
from slomodel.functions import add
from slomodel.ir import build
from slomodel.ir.dims import Dim, literal
from slomodel.ir.expr import Affine, Expr, Input


@final
class EarlierBase(sp.IndexedBase):  # type: ignore[misc]
    """The recurrence itself inside its own step."""


@final
class RecurrentBase(sp.IndexedBase):  # type: ignore[misc]
    """An array of one axis: its first elements, and a rule for the others.

    `step` is element `time` in terms of earlier elements of `own`.
    """

    def __new__(
        cls,
        label: sp.Symbol,
        length: sp.Expr,
        time: sp.Symbol,
        own: EarlierBase,
        step: sp.Expr,
        first: sp.Tuple,
    ) -> RecurrentBase:
        made: RecurrentBase = sp.Expr.__new__(cls, label, length, time, own, step, first)
        made._shape = sp.Tuple(length)
        made._offset = sp.S.Zero
        made._strides = None
        made._name = str(label)
        sp.IndexedBase._set_assumptions(made, {})
        return made

    @property
    def free_symbols(self) -> set[sp.Basic]:
        """The symbols and arrays that the elements depend on."""
        inside = set().union(*(part.free_symbols for part in (self.step, *self.first)))
        hidden = {self.time, self.own, self.own.label}
        return {self, *(inside - hidden), *self.args[1].free_symbols}

    @property
    def time(self) -> sp.Symbol:
        return self.args[2]

    @property
    def own(self) -> EarlierBase:
        own: EarlierBase = self.args[3]
        return own

    @property
    def step(self) -> sp.Expr:
        return self.args[4]

    @property
    def first(self) -> sp.Tuple:
        return self.args[5]


def scan(
    step: Callable[[sp.IndexedBase, sp.Symbol], sp.Expr],
    *,
    first: Sequence[object],
    length: object,
    name: str = "h",
) -> sp.IndexedBase:
    """An array (length,) for expressions, each element of which is computed from earlier ones.

    `step(h, t)` is element t in terms of `h[t-1]`, `h[t-2]`, …; `first` are the elements from 0 on.
    The result stands in expressions like any IndexedBase: `Sum(h[t]**2, (t, 0, T - 1))`.
    """
    label, time = sp.Symbol(name), sp.Dummy("t", integer=True)
    size_of_axis = _number(length)
    own = EarlierBase(label, shape=(size_of_axis,))
    values = [_number(one) for one in first]
    return RecurrentBase(
        label, size_of_axis, time, own, _number(step(own, time)), sp.Tuple(*values)
    )


def _number(value: object) -> sp.Expr:
    """A number of Python as one of SymPy; any other object unchanged."""
    if isinstance(value, (int, float)):
        return sp.Float(value) if isinstance(value, float) else sp.Integer(value)
    if not isinstance(value, sp.Expr):
        message = (
            f"scan takes SymPy expressions and numbers, not an object of {type(value).__name__}"
        )
        raise error("E409", message)
    return value


@dataclass(frozen=True, slots=True)
class _Scopes:
    """The scope of the first values, the index of time after them, and the scope of a step."""

    outer: IndexScope
    time: Label
    inner: IndexScope
    reads: dict[Input, tuple[int, Dim]]


def parts_of(node: RecurrentBase, scope: IndexScope) -> list[tuple[sp.Basic, IndexScope]]:
    """The expressions inside a recurrence, each with its scope."""
    found = _scopes(node, scope.translation)
    return [*((one, found.outer) for one in node.first), (node.step, found.inner)]


def _scopes(node: RecurrentBase, translation: Translation) -> _Scopes:
    known = translation.recurrences.get(node.own)
    if isinstance(known, _Scopes):
        return known
    outer = IndexScope(translation)
    count = literal(len(node.first))
    dim = size(node.shape[0], outer) - count
    time = translation.lists.label(str(node.label), dim, count, is_range=True)
    found = _Scopes(outer, time, outer.with_label(node.time, time), {})
    translation.recurrences[node.own] = found
    return found


def recurring(request: SymPyRequest) -> Steps:
    """All elements of a recurrence."""
    node = request.node
    assert isinstance(node, RecurrentBase)
    found = _scopes(node, request.scope.translation)
    first: Expr | None = None
    for k, one in enumerate(node.first):
        value = yield SymPyRequest(one, found.outer)
        wide = build.broadcast(value.expr, (), (literal(1),))
        index = Affine(literal(k), (1,))
        placed = build.scatter(wide, [index], (found.time.start,))
        first = placed if first is None else build.apply(add, first, placed)
    step = yield SymPyRequest(node.step, found.inner)
    axes = (0,) if step.labels else ()
    root = build.broadcast(step.expr, axes, (found.time.dim,))
    body = Body((), found.time.start, first, root, found.reads)
    try:
        (made,) = recurrence(found.time.dim + found.time.start, [body], [0])
    except ShapeError as problem:
        message = f"this cannot be computed step by step: {problem}"
        raise error("E407", message, node.step, kind=ShapeError) from None
    return value_of(made)


def earlier(request: SymPyRequest) -> Value:
    """An element of a recurrence in its own step, a fixed number of steps ago."""
    node, translation = request.node, request.scope.translation
    found = translation.recurrences[node.base]
    assert isinstance(found, _Scopes)
    time = found.time
    form = affine(node.indices[0], request.scope)
    lag = time.start - form.offset
    remedy = f"read it like `{node.base.label}[t - 1]`"
    if dict(form.labels) != {time: 1} or not lag.is_literal:
        message = "a step reads elements a fixed number of steps before its own"
        raise error("E407", message, node, remedy, ShapeError)
    begin = time.start.const
    if lag.const < 1:
        message = f"at t = {begin} this reads step {begin - lag.const}, which comes later"
        raise error("E407", message, node, remedy, ShapeError)
    if lag.const > begin:
        message = f"at t = {begin} this reads step {begin - lag.const}: there is none"
        remedy = "give as many values in `first` as the largest lag"
        raise error("E407", message, node, remedy, ShapeError)
    key = (0, lag)
    known = next((array for array, other in found.reads.items() if other == key), None)
    if known is None:
        known = Input(f"{node.base.label} - {lag}", "step", (time.dim,))
        found.reads[known] = key
    return Value(known, (time,))
