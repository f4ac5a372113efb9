"""Sparse arrays: values at the stored entries of data, with the pattern of their positions.

A sparse array is an array over the list of its entries, and its products are sums over groups of
that list: no other machinery is needed for values, derivatives, bounds and code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from slomodel.errors import Span
from slomodel.front.elaboration.errors import StatementError, dense_needed, error
from slomodel.front.elaboration.indices.contraction import total
from slomodel.front.elaboration.indices.grouping import read_at, summed_by_group
from slomodel.front.elaboration.scope import Elaboration, Local, Scope, Symbol
from slomodel.front.elaboration.values import (
    Label,
    Pattern,
    Value,
    combine,
    number,
    value_of,
    with_unit_axes,
)
from slomodel.front.text.syntax import Index, Iteration, Name
from slomodel.functions import mul, ne, where
from slomodel.ir import build
from slomodel.ir.dims import Dim
from slomodel.ir.elements import elements_at
from slomodel.ir.expr import Const, Expr
from slomodel.ir.function import ScalarFunction
from slomodel.problem import entries_dim, position_names


def pattern_of(name: Name, scope: Scope) -> Pattern | None:
    """The pattern of a name that stands for a sparse array, otherwise None."""
    result = scope.local.get(name.text) or scope.model.symbols.get(name.text)
    value = result.value if isinstance(result, Symbol) else result
    return value.pattern if isinstance(value, Value) else None


def is_same(a: Pattern, b: Pattern) -> bool:
    """Whether two sparse arrays have the same entries at the same positions."""
    return a.name == b.name and a.places == b.places


def stored(value: Value) -> Value:
    """The values of the entries, as a number for each entry."""
    return replace(value, pattern=None)


def stand_in(value: Value) -> Value:
    """A sparse array with the axes of its shape, for the checks of shapes and their messages."""
    return value if value.pattern is None else replace(value, axes=value.pattern.shape)


# Iterations over stored entries


def entry_label(iteration: Iteration, pattern: Pattern, model: Elaboration) -> Label:
    """A label that numbers the entries over which `i, j in A` runs."""
    names = iteration.names
    if len(names) != len(pattern.shape):
        message = f"`{iteration.domain.span.text}` has {len(pattern.shape)} axes"
        text = iteration.domain.span.text
        remedy = (
            f"write a name for each: `for {', '.join(index_names(len(pattern.shape)))} in {text}`"
        )
        raise error("E212", message, iteration.span, remedy)
    return model.label(_listed(pattern, [name.text for name in names], model), pattern.entry.dim)


def index_names(count: int) -> list[str]:
    """Names of `count` indices, for the example in a remedy."""
    return [*"ijklpq"[:count], *(f"i{k}" for k in range(6, count))]


def entry_names(iteration: Iteration, pattern: Pattern, label: Label) -> dict[str, Local]:
    """The names that `i, j in A` binds: positions of the entries, and the number of the entry."""
    known: dict[str, Local] = {
        name.text: Value(place, (label,))
        for name, place in zip(iteration.names, pattern.places, strict=True)
    }
    return {**known, label.name: label}


def _listed(pattern: Pattern, names: Sequence[str], model: Elaboration) -> str:
    """The name, not an identifier, of the number of an entry whose positions have given names.

    Names are in the order of the axes of the data, which those of a transpose exchange.
    """
    source = model.symbols.get(pattern.name)
    own = None if source is None or source.value is None else source.value.pattern
    if own is not None and own.places != pattern.places:
        at = dict(zip(pattern.places, names, strict=True))
        names = [at[place] for place in own.places]
    return f"{', '.join(names)} in {pattern.name}"


def entry_value(node: Index, value: Value, scope: Scope) -> Value:
    """`A[i, j]` where i, j run over the entries of A. Raises StatementError elsewhere."""
    pattern = value.pattern
    assert pattern is not None
    names = [item.text for item in node.items if isinstance(item, Name)]
    if len(names) == len(node.items) == len(pattern.shape):
        number = scope.local.get(_listed(pattern, names, scope.model))
        if isinstance(number, (Label, Value)):
            return at_entry(stored(value), pattern.entry, number)
    base = node.base.span.text
    inside = ", ".join(index_names(len(pattern.shape)))
    remedy = f"its entries are read as `{base}[{inside}]` within `for {inside} in {base}`"
    raise dense_needed(node.base.span, remedy)


def at_entry(value: Value, entry: Label, number: Label | Value) -> Value:
    """A value over the label `entry` at a number of an entry, which may be another label."""
    if isinstance(number, Label):
        if value.labels == (entry,):
            return Value(value.expr, (number,))
        number = Value(build.iota(number.dim), (number,))
    return read_at(value, {entry: number})


# Elementwise operations


def sampled(value: Value, pattern: Pattern) -> Value:
    """The elements of an array at the entries of a pattern; scalars and entries stay as they are.

    The caller compares the shapes.
    """
    if value.pattern is not None:
        return stored(value)
    if not value.axes:
        return value
    count = len(value.labels)
    present = [k for k, axis in enumerate(value.axes) if axis is not None]
    tables = (*(None,) * count, *(pattern.places[k] for k in present))
    if not present:
        return Value(value.expr, value.labels)
    return _ordered(elements_at(value.expr, tables), (*value.labels, pattern.entry))


def _ordered(expr: Expr, labels: tuple[Label, ...]) -> Value:
    """A value whose axes belong to labels in any order."""
    order = sorted(range(len(labels)), key=lambda k: labels[k].order)
    return Value(build.transpose(expr, tuple(order)), tuple(labels[k] for k in order))


def common_pattern(values: Sequence[Value]) -> Pattern | None:
    """The pattern that all sparse arrays among the values share; None if there are two."""
    result = [value.pattern for value in values if value.pattern is not None]
    return result[0] if all(is_same(result[0], one) for one in result) else None


def mapped(function: ScalarFunction, values: Sequence[Value], spans: Sequence[Span]) -> Value:
    """A scalar function of sparse arrays and numbers; it must be 0 where the arrays are 0."""
    pattern = common_pattern(values)
    if pattern is None:
        raise other_pattern(spans, values)
    zeros = [number(0.0) if value.pattern is not None else value for value in values]
    if any(zero.axes for zero in zeros):
        raise dense_needed(_first(spans, values))
    at_zero = combine(function, *zeros).expr
    if not (isinstance(at_zero, Const) and at_zero.value == 0.0):
        raise dense_needed(_first(spans, values))
    return replace(combine(function, *map(stored, values)), pattern=pattern)


def _first(spans: Sequence[Span], values: Sequence[Value]) -> Span:
    return next(span for span, one in zip(spans, values, strict=True) if one.pattern is not None)


def other_pattern(spans: Sequence[Span], values: Sequence[Value]) -> StatementError:
    """The error for sparse arrays with entries at different positions."""
    texts = [
        f"`{span.text}`" for span, v in zip(spans, values, strict=True) if v.pattern is not None
    ]
    message = f"{' and '.join(texts)} have entries at different positions"
    remedy = "add or multiply them before, and give the result as sparse data"
    return error("E229", message, _first(spans, values), remedy)


def masked(value: Value, mask: Value, model: Elaboration) -> Value:
    """`masked(E, M)` for a sparse mask: E at the entries of M that are not 0."""
    pattern = mask.pattern
    assert pattern is not None
    holds = combine(ne, stored(mask), number(0.0))
    chosen = combine(where, holds, sampled(value, pattern), number(0.0))
    model.masked.add(chosen.expr)
    return replace(chosen, pattern=pattern)


# Sums and products


def elements(value: Value) -> Value:
    """The entries as a vector, for functions of all elements that ignore zeros."""
    pattern = value.pattern
    assert pattern is not None
    turned = _last(stored(value), pattern.entry)
    return Value(turned.expr, turned.labels[:-1], (pattern.entry.dim,))


def _last(value: Value, label: Label) -> Value:
    """A value whose axis of a label follows those of the other labels."""
    if label not in value.labels:
        shape = (*(one.dim for one in value.labels), label.dim)
        expr = build.broadcast(value.expr, tuple(range(len(value.labels))), shape)
        return Value(expr, (*value.labels, label))
    place = value.labels.index(label)
    rest = [k for k in range(len(value.labels)) if k != place]
    after = range(len(value.labels), value.expr.rank)
    expr = build.transpose(value.expr, (*rest, place, *after))
    return Value(expr, (*(value.labels[k] for k in rest), label), value.axes)


def summed(value: Value, pattern: Pattern, axis: int, model: Elaboration) -> Value:
    """For each position along an axis of the pattern, the sum of a value over its entries.

    The value depends on the entry label; that axis becomes its first.
    """
    label = model.label("", pattern.shape[axis])
    place = pattern.places[axis]
    result = summed_by_group(value, {label: Value(place, (pattern.entry,))}, [pattern.entry])
    return Value(result.expr, result.labels[:-1], (label.dim, *value.axes))


def product(a: Value, b: Value, model: Elaboration) -> Value:
    """`a @ b` of a sparse matrix and a vector or matrix, in either order; shapes agree."""
    if a.pattern is None:
        assert b.pattern is not None
        other = _swapped(a) if a.rank == 2 else a
        result = product(transposed(b), other, model)
        return _swapped(result) if a.rank == 2 else result
    dense = with_unit_axes(b)
    label = model.label("", dense.dims[0])
    rows = Value(dense.expr, (*dense.labels, label), dense.axes[1:])
    read = read_at(rows, {label: Value(a.pattern.places[1], (a.pattern.entry,))})
    return summed(combine(mul, stored(a), read), a.pattern, 0, model)


def _swapped(value: Value) -> Value:
    value = with_unit_axes(value)
    count = len(value.labels)
    expr = build.transpose(value.expr, (*range(count), count + 1, count))
    return Value(expr, value.labels, value.axes[::-1])


def transposed(value: Value) -> Value:
    """The transpose of a sparse matrix: the same entries, with rows and columns exchanged."""
    pattern = value.pattern
    assert pattern is not None
    turned = replace(pattern, places=pattern.places[::-1], shape=pattern.shape[::-1])
    return replace(value, pattern=turned)


def sum_of_entries(value: Value, axis: int | None, model: Elaboration) -> Value:
    """The sum of a sparse array, or its sums over one axis of a matrix."""
    pattern = value.pattern
    assert pattern is not None
    if axis is None or len(pattern.shape) == 1:
        return total(stored(value), [pattern.entry])
    own = value if pattern.entry in value.labels else _last(stored(value), pattern.entry)
    return summed(stored(own), pattern, 1 - axis, model)


def declared(name: str, dims: Sequence[Dim], model: Elaboration) -> Value:
    """The value of sparse data: an array along its entries, with arrays of their positions."""
    size = entries_dim(name)
    places = tuple(build.data(one, (size,)) for one in position_names(name, len(dims)))
    for place, dim in zip(places, dims, strict=True):
        model.whole[place] = dim
    label = model.label("", size)
    values = value_of(build.data(name, (size,)))
    return Value(values.expr, (label,), pattern=Pattern(name, label, places, tuple(dims)))
