"""Sums and products over indices, and the elements of arrays at indices."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from slomodel.errors import ShapeError, SlomodelError, SourceText
from slomodel.front.elaboration.affine_index import AffineIndex, is_at_least_zero
from slomodel.front.elaboration.contraction import total
from slomodel.front.elaboration.reductions import reduced
from slomodel.front.elaboration.scope import Elaboration
from slomodel.front.elaboration.values import Label, Value, show
from slomodel.front.sympy_expressions.errors import error, place
from slomodel.front.sympy_expressions.evaluation import Steps, SymPyRequest
from slomodel.front.sympy_expressions.free_names import name_of
from slomodel.front.sympy_expressions.scope import IndexScope, affine, enter
from slomodel.ir import build
from slomodel.ir.dims import Dim, Shape, literal
from slomodel.ir.expr import Affine
from slomodel.problem import Bound


def sum_over(request: SymPyRequest) -> Steps:
    """A Sum as one contraction; a term without the index counts as often as it has values."""
    labels, inner = enter(request.node, request.scope)
    body = yield SymPyRequest(request.node.function, inner)
    return total(body, labels, ())


def product_over(request: SymPyRequest) -> Steps:
    """A Product; a factor 0 has the right derivative."""
    labels, inner = enter(request.node, request.scope)
    body = yield SymPyRequest(request.node.function, inner)
    return reduced("prod", body, Elaboration(SourceText("")), place(request.node), labels=labels)


def indexed(request: SymPyRequest) -> Steps:
    """An element of an IndexedBase."""
    yield from ()
    base = request.scope.translation.values[name_of(request.node.base)]
    return element(base, request.node.indices, request.node, request.scope)


def matrix_element(request: SymPyRequest) -> Steps:
    """An element of a matrix expression."""
    base = yield SymPyRequest(request.node.parent, request.scope)
    return element(base, (request.node.i, request.node.j), request.node, request.scope)


def element(base: Value, indices: Sequence[sp.Basic], node: sp.Basic, scope: IndexScope) -> Value:
    """The element of an array at some indices, for each value of the labels in them."""
    if len(indices) != base.rank:
        message = f"{len(indices)} indices for an array of shape {show(base)}"
        raise error("E409", message, node, "give it one index for each axis", ShapeError)
    forms = [affine(index, scope) for index in indices]
    for form, axis in zip(forms, base.dims, strict=True):
        _check(form, axis, node, scope)
    every = [AffineIndex(Dim(), {label: 1}) for label in base.labels] + forms
    used = {label for form in every for label in form.labels}
    labels = tuple(sorted(used, key=lambda label: label.order))
    shape = tuple(label.dim for label in labels)
    order = _transposition(every, labels, base.expr.shape)
    if order is not None:
        return Value(build.transpose(base.expr, order), labels)
    index = [Affine(f.offset, tuple(f.labels.get(label, 0) for label in labels)) for f in every]
    return Value(build.gather(base.expr, index, shape), labels)


def _transposition(
    forms: Sequence[AffineIndex], labels: Sequence[Label], shape: Shape
) -> tuple[int, ...] | None:
    """The operand's axis for each label, where each label runs through a whole axis in order."""
    axes: dict[Label, int] = {}
    for axis, (form, dim) in enumerate(zip(forms, shape, strict=True)):
        only = next(iter(form.labels), None)
        if only is None or only in axes or only.dim != dim:
            return None
        if form != AffineIndex(Dim(), {only: 1}):
            return None
        axes[only] = axis
    return tuple(axes[label] for label in labels)


def _check(form: AffineIndex, axis: Dim, node: sp.Basic, scope: IndexScope) -> None:
    """Refuse an index that leaves its axis; have it tested at bind where sizes decide."""
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
    message = f"an index takes {reached}, and its axis of size {axis} has 0 to {axis - 1}"
    remedy = "arrays count from 0, and a Sum includes its upper limit: end it at the size minus 1"
    if is_at_least_zero(least) is False:
        remedy = "arrays count from 0: begin the Sum later"
    return error("E407", message, node, remedy, ShapeError)
