"""Sums and products over indices, and the elements of arrays at indices."""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, replace

import sympy as sp

from slomodel.errors import ShapeError, SlomodelError
from slomodel.front.elaboration.indices.affine_index import (
    AffineIndex,
    is_at_least_zero,
    value_of_affine,
)
from slomodel.front.elaboration.indices.contraction import total
from slomodel.front.elaboration.indices.grouping import (
    position_within,
    rows_by_group,
    summed_by_group,
)
from slomodel.front.elaboration.indices.index_sets import index_at, index_value
from slomodel.front.elaboration.indices.tables import domain_of, is_whole
from slomodel.front.elaboration.indices.tuple_list import TupleList
from slomodel.front.elaboration.sums.reductions import reduced
from slomodel.front.elaboration.values import Label, Value, combine, number, show, union
from slomodel.front.sympy_expressions.conditions import (
    determined,
    joined,
    split,
    with_bands_as_limits,
)
from slomodel.front.sympy_expressions.errors import error, place
from slomodel.front.sympy_expressions.evaluation import Steps, SymPyRequest
from slomodel.front.sympy_expressions.free_names import name_of
from slomodel.front.sympy_expressions.recurrences import (
    EarlierBase,
    RecurrentBase,
    earlier,
    is_time,
)
from slomodel.front.sympy_expressions.scope import IndexScope, affine, enter, is_dependent
from slomodel.functions import ge, land, lt, where
from slomodel.ir import build
from slomodel.ir.dims import Dim, Shape, literal
from slomodel.ir.expr import Affine, Expr, Index, Lookup
from slomodel.ir.walk import inputs
from slomodel.problem import Bound, LookupBound


def sum_over(request: SymPyRequest) -> Steps:
    """A Sum as one contraction; a term without the index counts once per value."""
    terms = yield from _terms(request, 0.0)
    if terms.groups:
        return summed_by_group(terms.body, terms.groups, terms.labels)
    return total(terms.body, terms.labels, ())


def product_over(request: SymPyRequest) -> Steps:
    """A Product, with the right derivative where a factor is 0."""
    terms = yield from _terms(request, 1.0)
    model, span = request.scope.translation.lists, place(request.node)
    if not terms.groups:
        return reduced("prod", terms.body, model, span, labels=terms.labels)
    listed = union(terms.groups.values())
    rest = [label for label in terms.labels if label not in listed]
    factors = reduced("prod", terms.body, model, span, labels=rest) if rest else terms.body
    rows, inside, along = rows_by_group(factors, terms.groups, model)
    factors = combine(where, inside, rows, number(1.0))
    return reduced("prod", factors, model, span, labels=[along])


@dataclass(frozen=True, slots=True)
class _IndexedTerms:
    """The terms of a sum or product, the labels they run over, and the positions of outer ones."""

    body: Value
    labels: tuple[Label, ...]
    groups: Mapping[Label, Value]


def _terms(request: SymPyRequest, neutral: float) -> Generator[SymPyRequest, Value, _IndexedTerms]:
    """The terms of a Sum or Product; limits that depend on other indices give a list of tuples.

    Limits that depend on the time of a recurrence give a condition: terms outside are `neutral`.
    """
    node, scope = request.node, request.scope
    if neutral == 0.0 and not _is_in_recurrence(scope):
        node = with_bands_as_limits(node, scope)
    labels, _ = enter(node, scope)
    own = dict(zip((limit[0] for limit in reversed(node.limits)), labels, strict=True))
    tuples = TupleList(scope.translation.lists)
    known = inside = scope
    listed: set[sp.Basic] = set()
    # SymPy's first limit is the innermost.
    for symbol, first, last in reversed(node.limits):
        if is_dependent(sp.Tuple(symbol, first, last), inside):
            low = yield SymPyRequest(first, inside)
            high = yield SymPyRequest(last + 1, inside)
            if any(is_time(label, scope.translation) for label in union([low, high])):
                known = _within(known, symbol, own[symbol], (low, high))
                inside = _at_tuples(known, tuples, listed)
                continue
            for label in union([low, high]):
                if label is not tuples.label:
                    tuples.take(label)
            tuples.extend(str(symbol), low, high)
            listed.add(symbol)
        else:
            known = known.with_label(symbol, own[symbol])
        inside = _at_tuples(known, tuples, listed)
    if tuples.label is None:
        if neutral == 0.0 and known.guard is scope.guard and not _is_in_recurrence(known):
            terms, conditions = split(node.function)
            if conditions:
                found = yield from determined(conditions, own, known)
                body = yield SymPyRequest(joined(terms, found.left), found.scope)
                return _IndexedTerms(found.counted(body), (*found.labels.values(),), found.groups)
        body = yield from _body(node.function, known, scope, neutral)
        return _IndexedTerms(body, labels, {})
    body = yield from _body(node.function, inside, scope, neutral)
    mine = [label for symbol, label in own.items() if symbol in inside.labels]
    around = {one: at for one, at in tuples.positions.items() if one not in labels}
    return _IndexedTerms(body, (*mine, tuples.label), around)


def _within(
    scope: IndexScope, symbol: sp.Basic, label: Label, ends: tuple[Value, Value]
) -> IndexScope:
    """The scope with an index over all its values, guarded by the ends of its range."""
    low, high = ends
    index = index_value(label)
    holds = combine(land, combine(ge, index, low), combine(lt, index, high))
    guard = holds if scope.guard is None else combine(land, scope.guard, holds)
    return replace(scope.with_label(symbol, label), guard=guard)


def _is_in_recurrence(scope: IndexScope) -> bool:
    return any(is_time(label, scope.translation) for label in scope.labels.values())


def _body(
    function: sp.Basic, scope: IndexScope, outer: IndexScope, neutral: float
) -> Generator[SymPyRequest, Value, Value]:
    """The terms, `neutral` where a guard that the limits have added does not hold."""
    body = yield SymPyRequest(function, scope)
    if scope.guard is None or scope.guard is outer.guard:
        return body
    return combine(where, scope.guard, body, number(neutral))


def _at_tuples(scope: IndexScope, tuples: TupleList, listed: Collection[sp.Basic]) -> IndexScope:
    """The scope with the indices that a list has, or that depend on those, at its tuples."""
    taken = {symbol: one for symbol, one in scope.labels.items() if one in tuples.positions}
    values = {symbol: tuples.at(value) for symbol, value in scope.values.items()}
    values |= {symbol: index_at(one, tuples.positions[one]) for symbol, one in taken.items()}
    values |= {symbol: tuples.values[str(symbol)] for symbol in listed}
    labels = {symbol: one for symbol, one in scope.labels.items() if symbol not in taken}
    guard = None if scope.guard is None else tuples.at(scope.guard)
    return replace(scope, labels=labels, values=values, guard=guard)


def indexed(request: SymPyRequest) -> Steps:
    """An element of an IndexedBase."""
    if isinstance(request.node.base, EarlierBase):
        return earlier(request)
    if isinstance(request.node.base, RecurrentBase):
        whole = yield SymPyRequest(request.node.base, request.scope)
        return (yield from element(whole, request.node.indices, request.node, request.scope))
    base = request.scope.translation.values[name_of(request.node.base)]
    return (yield from element(base, request.node.indices, request.node, request.scope))


def matrix_element(request: SymPyRequest) -> Steps:
    """An element of a matrix expression."""
    base = yield SymPyRequest(request.node.parent, request.scope)
    indices = (request.node.i, request.node.j)
    return (yield from element(base, indices, request.node, request.scope))


def element(base: Value, indices: Sequence[sp.Basic], node: sp.Basic, scope: IndexScope) -> Steps:
    """The elements of an array at some indices, for all values of the labels in these.

    An index may be or contain elements of data, which must be whole numbers.
    """
    if len(indices) != base.rank:
        message = f"{len(indices)} indices for an array of shape {show(base)}"
        raise error("E409", message, node, "give it one index for each axis", ShapeError)
    every: list[AffineIndex | Value] = [AffineIndex(Dim(), {label: 1}) for label in base.labels]
    for index, axis in zip(indices, base.dims, strict=True):
        if index.has(sp.Indexed, sp.Mod) or any(
            symbol in scope.values for symbol in index.free_symbols
        ):
            table = yield SymPyRequest(index, scope)
            every.append(_place(table, axis, index, scope))
        else:
            form = affine(index, scope)
            every.append(_position(form, axis, node, scope))
    used = {label for one in every for label in one.labels}
    labels = tuple(sorted(used, key=lambda label: label.order))
    order = _transposition(every, labels, base.expr.shape)
    if order is not None:
        return Value(build.transpose(base.expr, order), labels)
    shape = tuple(label.dim for label in labels)
    return Value(build.gather(base.expr, [_index(one, labels) for one in every], shape), labels)


def _position(
    form: AffineIndex, axis: Dim, node: sp.Basic, scope: IndexScope
) -> AffineIndex | Value:
    """The index; clipped to its axis if it leaves that only where a condition does not hold."""
    try:
        _check(form, axis, node, scope)
    except ShapeError:
        if scope.guard is None:
            raise
    else:
        return form
    value = value_of_affine(form)
    clipped, inside = position_within(axis, value, scope.translation.lists)
    if inside is not None:
        needed = combine(where, scope.guard, value, number(0.0)).expr
        _require_inside(needed, axis, node, scope)
    return clipped


def _index(form: AffineIndex | Value, labels: Sequence[Label]) -> Index:
    if isinstance(form, Value):
        return Lookup(tuple(map(labels.index, form.labels)), form.expr)
    return Affine(form.offset, tuple(form.labels.get(label, 0) for label in labels))


def _place(table: Value, axis: Dim, node: sp.Basic, scope: IndexScope) -> Value:
    """An index computed from data; clipped to its axis where a condition guards it.

    One that depends on variables or may not be whole is refused; bind tests the rest.
    """
    translation = scope.translation
    if domain_of(table.expr, translation.lists) == axis:
        return table
    used = inputs(table.expr)
    if table.axes or any(one.role != "data" for one in used):
        message = "an index depends on index variables, sizes and data alone"
        raise error("E406", message, node, "name its arrays as data: `data={…}`")
    translation.whole.update(dict.fromkeys(used))
    if not is_whole(table.expr, translation.whole):
        message = "an index computed from data must be a whole number"
        raise error("E406", message, node, "write it like `g[i]`, `g[i] + 1` or `2*g[i]`")
    if scope.guard is None:
        _require_inside(table.expr, axis, node, scope)
        return table
    _require_inside(combine(where, scope.guard, table, number(0.0)).expr, axis, node, scope)
    return position_within(axis, table, translation.lists)[0]


def _require_inside(table: Expr, axis: Dim, node: sp.Basic, scope: IndexScope) -> None:
    span = place(node)
    scope.translation.lookups[LookupBound(table, axis, span.text, span)] = None


def _transposition(
    forms: Sequence[AffineIndex | Value], labels: Sequence[Label], shape: Shape
) -> tuple[int, ...] | None:
    """The operand's axis for each label, if each label runs through a whole axis in order."""
    axes: dict[Label, int] = {}
    for axis, (form, dim) in enumerate(zip(forms, shape, strict=True)):
        if isinstance(form, Value):
            return None
        only = next(iter(form.labels), None)
        if only is None or only in axes or only.dim != dim:
            return None
        if form != AffineIndex(Dim(), {only: 1}):
            return None
        axes[only] = axis
    return tuple(axes[label] for label in labels)


def _check(form: AffineIndex, axis: Dim, node: sp.Basic, scope: IndexScope) -> None:
    """Raise an error for an index outside its axis; if that depends on sizes, test it at bind."""
    counts = [label.dim for label in form.labels]
    if any(count == Dim() for count in counts):
        return
    gaps = [is_at_least_zero(form.least), is_at_least_zero(axis - 1 - form.most)]
    if all(gaps):
        return
    if False in gaps:
        raise _outside(form.least, form.most, axis, node)
    numbers = [scope.translation.size(dim) for dim in (form.least, form.most, axis, *counts)]
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers):
        count = counts[0] if len(counts) == 1 else literal(1)
        span = place(node)
        scope.translation.bounds[Bound(form.least, form.most, axis, count, span.text, span)] = None
        return
    least, most, size = known[:3]
    if min(known[3:], default=1) > 0 and (least < 0 or most >= size):
        raise _outside(literal(least), literal(most), literal(size), node)


def _outside(least: Dim, most: Dim, axis: Dim, node: sp.Basic) -> SlomodelError:
    reached = f"{least}" if least == most else f"{least} to {most}"
    message = f"an index takes {reached}, and its axis has positions 0 to {axis - 1}"
    remedy = "arrays count from 0, and a Sum includes its upper limit: end it at the size minus 1"
    if is_at_least_zero(least) is False:
        remedy = "arrays count from 0: begin the Sum later"
    return error("E407", message, node, remedy, ShapeError)
