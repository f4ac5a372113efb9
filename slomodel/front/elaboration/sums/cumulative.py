"""Cumulative sums, products and log-sum-exps, and sums that are read off them.

A sum whose range begins or ends at an outer index or at data is an element of a running sum:
`sum(x[j] for j in range(i + 1))` under i, `logsumexp(eta[j] for j in range(first[i], N))`. Its
work is proportional to the terms, and not to the pairs of a term and an outer index.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from slomodel.front.elaboration.errors import StatementError
from slomodel.front.elaboration.indices.affine_index import AffineIndex, affine, is_at_least_zero
from slomodel.front.elaboration.indices.index_sets import check_name, range_arguments
from slomodel.front.elaboration.indices.tables import domain_of, is_table, reads_arrays
from slomodel.front.elaboration.scope import Scope, ValueRequest
from slomodel.front.elaboration.values import Label, Value
from slomodel.front.text.syntax import Comprehension, Expr, FunctionCall
from slomodel.functions.running import running as running_reduction
from slomodel.ir import build
from slomodel.ir.dims import Dim
from slomodel.ir.expr import Affine, Index, Lookup
from slomodel.ir.walk import inputs

_CUMULATIVE = {"sum": "cumsum", "logsumexp": "cumlogsumexp"}


@dataclass(frozen=True, slots=True)
class _Ends:
    """A range with a fixed end, and another that is affine in outer indices or read from a table.

    The index of the sum takes `dim` values from `start` on; the variable end, less `start`, is a
    position 0, …, dim in the running sums, which start at the fixed end.
    """

    start: Dim
    dim: Dim
    moving: AffineIndex | Value
    from_below: bool
    """Whether the fixed end is the lower one."""

    @property
    def labels(self) -> set[Label]:
        return set(self.moving.labels)


def running(node: Comprehension, scope: Scope) -> Generator[ValueRequest, Value, Value | None]:
    """The value of a sum by running sums; None for a sum of another form."""
    if node.condition is not None or len(node.iterations) > 1:
        return None
    if node.function.text not in _CUMULATIVE:
        return None
    model, iteration = scope.model, node.iterations[0]
    assert isinstance(iteration.domain, FunctionCall)
    low, high, step = range_arguments(iteration.domain, scope)
    ends = (yield from _ends(low, high, scope)) if step == 1 else None
    if ends is None:
        return None
    before = model.requirements()
    check_name(iteration.name, scope, ())
    label = model.label(iteration.name.text, ends.dim, ends.start, is_range=True)
    try:
        terms = yield ValueRequest(node.body, scope.with_local({label.name: label}))
    except StatementError:
        model.restore(before)
        return None
    own = set(terms.labels)
    stepwise = any(one.role == "step" for one in inputs(terms.expr))
    if terms.rank or label not in own or own & ends.labels or stepwise:
        model.restore(before)
        return None
    return _read(node.function.text, terms, label, ends)


def _ends(
    low: Expr | None, high: Expr, scope: Scope
) -> Generator[ValueRequest, Value, _Ends | None]:
    """The ends of a range, if one of them is fixed and the other is provably inside."""
    first = AffineIndex(Dim()) if low is None else _affine(low, scope)
    last = _affine(high, scope)
    if first is not None and last is not None:
        if not first.labels and last.labels:
            start, moving, dim = first.offset, last, last.most - first.offset
        elif first.labels and not last.labels:
            start, moving, dim = first.least, first, last.offset - first.least
        else:
            return None
        inside = AffineIndex(moving.offset - start, moving.labels)
        tests = (inside.least, dim - inside.most)
        fits = all(is_at_least_zero(test) for test in tests)
        return _Ends(start, dim, inside, not first.labels) if fits else None
    fixed, other = (first, high) if first is not None else (last, low)
    if fixed is None or fixed.labels or other is None or not reads_arrays(other, scope):
        return None
    table = yield ValueRequest(other, scope)
    domain = domain_of(table.expr, scope.model)
    if table.rank or domain is None or not is_table(table.expr, scope.model):
        return None
    from_below = first is not None
    if from_below and fixed.offset != Dim():
        return None
    dim = domain - 1 if from_below else fixed.offset
    return _Ends(Dim(), dim, table, from_below) if is_at_least_zero(dim + 1 - domain) else None


def _affine(node: Expr, scope: Scope) -> AffineIndex | None:
    if reads_arrays(node, scope):
        return None
    try:
        result = affine(node, scope)
    except StatementError:
        return None
    one_by_one = all(c == 1 and label.step == 1 for label, c in result.labels.items())
    return result if one_by_one and len(result.labels) < 2 else None


def _read(name: str, terms: Value, label: Label, ends: _Ends) -> Value:
    """The running sums at the variable end."""
    axis = terms.labels.index(label)
    sums = running_reduction(_CUMULATIVE[name], terms.expr, axis, from_below=ends.from_below)
    rest = [one for one in terms.labels if one is not label]
    labels = tuple(sorted({*rest, *ends.labels}, key=lambda one: one.order))
    index: list[Index] = []
    for own in terms.labels:
        if own is not label:
            index.append(Affine(Dim(), tuple(int(own is other) for other in labels)))
        elif isinstance(ends.moving, Value):
            places = tuple(labels.index(other) for other in ends.moving.labels)
            index.append(Lookup(places, ends.moving.expr))
        else:
            steps = tuple(ends.moving.labels.get(other, 0) for other in labels)
            index.append(Affine(ends.moving.offset, steps))
    return Value(build.gather(sums, index, tuple(one.dim for one in labels)), labels)
