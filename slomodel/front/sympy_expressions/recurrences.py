"""Recurrences in SymPy: an IndexedBase whose elements are computed from earlier ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import final

import sympy as sp

from slomodel.errors import ShapeError
from slomodel.front.elaboration.indices.affine_index import is_at_least_zero, value_of_affine
from slomodel.front.elaboration.recurrences.earlier_steps import labelled
from slomodel.front.elaboration.recurrences.time_steps import Body, recurrence
from slomodel.front.elaboration.recurrences.windows import EarlierValues, InnerIndex, Windows
from slomodel.front.elaboration.values import Label, Value, combine, number, value_of
from slomodel.front.sympy_expressions.errors import error, place
from slomodel.front.sympy_expressions.evaluation import Steps, SymPyRequest
from slomodel.front.sympy_expressions.scope import IndexScope, Translation, affine, size
from slomodel.functions import add, where
from slomodel.ir import build
from slomodel.ir.dims import Dim, Shape, literal
from slomodel.ir.expr import Affine, Expr, Input
from slomodel.problem import LookupBound


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
        result: RecurrentBase = sp.Expr.__new__(cls, label, length, time, own, step, first)
        result._shape = sp.Tuple(length)
        result._offset = sp.S.Zero
        result._strides = None
        result._name = str(label)
        sp.IndexedBase._set_assumptions(result, {})
        return result

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


@dataclass(slots=True)
class ScannedState:
    """A recurrence in progress: the scope of its first values, and that of a step.

    `time` is the index after the `time.start` first values. `reads` are the placeholders for what
    a step reads: the state itself, which has number 0, and its windows.
    """

    name: str
    outer: IndexScope
    time: Label
    inner: IndexScope
    reads: dict[tuple[int, Dim], Input] = field(default_factory=dict)
    windows: Windows = field(default_factory=lambda: Windows(1))
    number: int = 0
    shape: Shape = ()

    @property
    def length(self) -> Dim:
        return self.time.dim + self.time.start

    def at(self, source: ScannedState | EarlierValues, lag: Dim) -> Input:
        """The placeholder (steps, …) for the state or a window some steps before each step."""
        key = (source.number, lag)
        if key not in self.reads:
            name = f"{source.number} of {self.name} - {lag}"
            self.reads[key] = Input(name, "step", (self.time.dim, *source.shape))
        return self.reads[key]


def parts_of(node: RecurrentBase, scope: IndexScope) -> list[tuple[sp.Basic, IndexScope]]:
    """The expressions inside a recurrence, each with its scope."""
    state = _state(node, scope.translation)
    return [*((one, state.outer) for one in node.first), (node.step, state.inner)]


def _state(node: RecurrentBase, translation: Translation) -> ScannedState:
    known = translation.recurrences.get(node.own)
    if isinstance(known, ScannedState):
        return known
    outer = IndexScope(translation)
    count = literal(len(node.first))
    dim = size(node.shape[0], outer) - count
    time = translation.lists.label(str(node.label), dim, count, is_range=True)
    result = ScannedState(str(node.label), outer, time, outer.with_label(node.time, time))
    translation.recurrences[node.own] = result
    return result


def is_time(label: Label, translation: Translation) -> bool:
    """Whether a label is the time of a recurrence, whose steps no list of tuples may combine."""
    known = translation.recurrences.values()
    return any(isinstance(one, ScannedState) and one.time is label for one in known)


def recurring(request: SymPyRequest) -> Steps:
    """All elements of a recurrence."""
    node = request.node
    assert isinstance(node, RecurrentBase)
    state = _state(node, request.scope.translation)
    first: Expr | None = None
    for k, one in enumerate(node.first):
        value = yield SymPyRequest(one, state.outer)
        wide = build.broadcast(value.expr, (), (literal(1),))
        index = Affine(literal(k), (1,))
        placed = build.scatter(wide, [index], (state.time.start,))
        first = placed if first is None else build.apply(add, first, placed)
    step = yield SymPyRequest(node.step, state.inner)
    axes = (0,) if step.labels else ()
    root = build.broadcast(step.expr, axes, (state.time.dim,))
    reads = {array: key for key, array in state.reads.items()}
    bodies = [Body((), state.time.start, first, root, reads)]
    bodies += [one.body for one in state.windows.made]
    # Windows are complete before the step that reads them.
    order = [*range(1, len(bodies)), 0]
    try:
        result = recurrence(state.length, bodies, order)
    except ShapeError as problem:
        message = f"this cannot be computed step by step: {problem}"
        raise error("E407", message, node.step, kind=ShapeError) from None
    return value_of(result[0])


def earlier(request: SymPyRequest) -> Value:
    """An element of a recurrence in its own step, at a lag that is fixed or shifted by an index."""
    node, scope = request.node, request.scope
    state = scope.translation.recurrences[node.base]
    assert isinstance(state, ScannedState)
    time = state.time
    form = affine(node.indices[0], scope)
    shifts = {label: factor for label, factor in form.labels.items() if label is not time}
    lag = time.start - form.offset
    fixed = form.labels.get(time) == 1 and lag.is_literal
    if not fixed or len(shifts) > 1 or set(shifts.values()) - {1, -1}:
        message = "a step reads elements a fixed number of steps before its own"
        raise error("E407", message, node, _remedy(node), ShapeError)
    least = most = lag
    for label, factor in shifts.items():
        inner = InnerIndex(label, factor > 0)
        least, most = (lag - inner.span, lag) if inner.is_later else (lag, lag + inner.span)
    guarded = scope.guard is not None
    _check_lags(node, time.start, least, least - 1 if guarded else most)
    if is_at_least_zero(time.start - most) is not True:
        place_ = value_of_affine(form)
        needed = place_ if scope.guard is None else combine(where, scope.guard, place_, number(0.0))
        span = place(node)
        bound = LookupBound(needed.expr, state.length, span.text, span)
        scope.translation.lookups[bound] = None
    for label, factor in shifts.items():
        inner = InnerIndex(label, factor > 0)
        window = state.at(state.windows.of(state, label.dim), least - 1)
        return labelled(inner.part(window, None), (time, label))
    if is_at_least_zero(time.start - lag) is True:
        return labelled(state.at(state, lag), (time,))
    window = state.at(state.windows.of(state, lag), Dim())
    return labelled(build.slice_at(window, 1, lag - 1), (time,))


def _remedy(node: sp.Indexed) -> str:
    return f"read it like `{node.base.label}[t - 1]`"


def _check_lags(node: sp.Indexed, begin: Dim, least: Dim, most: Dim) -> None:
    """Raise an error for a read of the present or later, or of steps before the first."""
    if is_at_least_zero(least - 1) is not True:
        message = f"at t = {begin} this reads step {begin - least}, which comes later"
        raise error("E407", message, node, _remedy(node), ShapeError)
    if is_at_least_zero(begin - most) is False:
        message = f"at t = {begin} this reads step {begin - most}: there is none"
        remedy = "give as many values in `first` as the largest lag"
        raise error("E407", message, node, remedy, ShapeError)
