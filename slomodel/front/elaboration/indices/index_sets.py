"""Index sets: the tuples over which a comprehension or an indexed definition runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from slomodel.front.elaboration.errors import error, shape_error
from slomodel.front.elaboration.indices.affine_index import size
from slomodel.front.elaboration.indices.grouping import read_at
from slomodel.front.elaboration.indices.sparse import entry_label, entry_names, pattern_of
from slomodel.front.elaboration.indices.steps import positive, stepped
from slomodel.front.elaboration.scope import Local, Scope, described
from slomodel.front.elaboration.shape_mismatch import marks, operand
from slomodel.front.elaboration.values import (
    Label,
    Pattern,
    Value,
    as_axes,
    combine,
    number,
    number_of,
    show,
    value_of,
    with_unit_axes,
)
from slomodel.front.text.syntax import (
    BoolOp,
    Compare,
    Expr,
    FunctionCall,
    Iteration,
    Let,
    Name,
    NoneLiteral,
    Not,
    NumberLiteral,
    String,
)
from slomodel.functions import add, mul
from slomodel.ir import build
from slomodel.ir.dims import Dim


def bind_iterations(
    iterations: Sequence[Iteration], scope: Scope
) -> tuple[tuple[Label, ...], Scope]:
    """A label for each `i in domain`, and the scope in which they are bound."""
    result: dict[str, Local] = {}
    labels: list[Label] = []
    for iteration in iterations:
        check_names(iteration, scope, result)
        pattern = iterated_pattern(iteration, scope)
        if pattern is None:
            label = label_of(iteration, scope.with_local(result))
            result[iteration.name.text] = label
        else:
            label = entry_label(iteration, pattern, scope.model)
            result |= entry_names(iteration, pattern, label)
        labels.append(label)
    return tuple(labels), scope.with_local(result)


def iterated_pattern(iteration: Iteration, scope: Scope) -> Pattern | None:
    """The pattern of the sparse array over whose entries indices run; None for other domains."""
    domain = iteration.domain
    pattern = pattern_of(domain, scope) if isinstance(domain, Name) else None
    if pattern is None and iteration.others:
        text = domain.span.text
        if not isinstance(domain, Name):
            message = "indices run over the entries of a sparse array that has a name"
            raise error("E212", message, domain.span, f"define it before: `let B = {text}`")
        message = f"several indices run over the entries of sparse data, and `{text}` is not sparse"
        each = ", ".join(f"{name.text} in {text}" for name in iteration.names)
        raise error("E212", message, iteration.span, f"write `for {each}`")
    return pattern


def defined(definition: Let, labels: Sequence[Label], body: Value, scope: Scope) -> Value:
    """The array that a definition by index defines, from its value for each index.

    The axes of values that are arrays come after the indices. A definition over the entries of a
    sparse array is sparse, and has numbers as its values.
    """
    patterns = [iterated_pattern(one, scope) for one in definition.indices or ()]
    if any(one is not None for one in patterns):
        if len(patterns) > 1:
            message = "a sparse definition has the entries of one sparse array as its indices"
            raise error("E212", message, definition.name.span, "omit the other indices")
        if body.rank:
            message = f"a sparse definition gives a number for each entry, not {show(body)}"
            result = marks(operand(definition.expr, body))
            raise shape_error("E212", message, definition.expr.span, "index all axes", marks=result)
        (pattern,) = patterns
        assert pattern is not None
        numbered = Value(build.iota(pattern.entry.dim), (pattern.entry,))
        own = read_at(body, {labels[0]: numbered})
        if body.labels == tuple(labels):
            own = Value(body.expr, (pattern.entry,))
        return replace(own, pattern=pattern)
    return as_axes(with_unit_axes(body), labels, [label.dim for label in labels])


def check_names(iteration: Iteration, scope: Scope, others: Collection[str]) -> None:
    """Raise StatementError if a name of the iteration already has a meaning."""
    earlier: list[str] = []
    for name in iteration.names:
        check_name(name, scope, [*others, *earlier])
        earlier.append(name.text)


def check_name(name: Name, scope: Scope, others: Collection[str]) -> None:
    """Raise StatementError if the name of an index already has a meaning."""
    clash = _clash(name.text, scope, others)
    if clash:
        raise error("E202", clash, name.span, "give the index another name")


def _clash(name: str, scope: Scope, made: Collection[str]) -> str:
    if name in made:
        return f"two indices have the name `{name}`"
    if name in scope.local:
        return f"`{name}` is already bound here, as an index or parameter"
    # The library ignores the model's names.
    symbol = None if scope.place is not None else scope.model.symbols.get(name)
    return f"the index would hide a declared name: {described(symbol)}" if symbol else ""


def label_of(iteration: Iteration, inner: Scope) -> Label:
    """The label of `i in domain`, whose bounds depend on dims only."""
    domain, model = iteration.domain, inner.model
    if not (isinstance(domain, FunctionCall) and domain.function.text == "range"):
        if not isinstance(domain, Name | NumberLiteral):
            message = "an index runs over a dim or over a range"
            raise error("E212", message, domain.span, f"write `range({domain.span.text})`")
        extent = size(domain, inner)
        _check_extent(extent, domain)
        return model.label(iteration.name.text, extent)
    low, high, step = range_arguments(domain, inner)
    start = Dim() if low is None else size(low, inner)
    extent = size(high, inner) - start
    _check_extent(extent, domain)
    dim = stepped(extent, step, model)
    return model.label(iteration.name.text, dim, start, is_range=True, step=step)


def range_arguments(domain: FunctionCall, scope: Scope) -> tuple[Expr | None, Expr, int]:
    """The first value, if given, the exclusive end, and the step of a `range`."""
    if domain.kwargs or not 1 <= len(domain.args) <= 3:
        message = "`range` takes one to three numbers"
        remedy = "write `range(b)`, `range(a, b)` or `range(a, b, step)`"
        raise error("E212", message, domain.span, remedy)
    bounds: list[Expr] = []
    for argument in domain.args:
        if isinstance(argument, (String, NoneLiteral, Compare, BoolOp, Not)):
            raise error("E208", "a number is expected here", argument.span)
        bounds.append(argument)
    step = positive(bounds.pop(), scope) if len(bounds) == 3 else 1
    return (None, bounds[0], step) if len(bounds) == 1 else (bounds[0], bounds[1], step)


def _check_extent(extent: Dim, domain: Expr) -> None:
    if extent.is_literal and extent.const < 0:
        message = f"`{domain.span.text}` ends before it begins"
        raise error(
            "E212", message, domain.span, "a range excludes its end; `range(a, a)` is empty"
        )


def index_value(label: Label) -> Value:
    """The value of an index variable."""
    return index_at(label, Value(build.iota(label.dim), (label,)))


def index_at(label: Label, position: Value) -> Value:
    """The value that an index variable has at a position."""
    if label.step != 1:
        position = combine(mul, position, number(float(label.step)))
    return combine(add, position, number_of(label.start))


def size_product(dims: Sequence[Dim]) -> Value:
    """The number of elements of an array with these dims, as a scalar."""
    result = number(1.0)
    for dim in dims:
        result = combine(mul, result, value_of(build.size_of(dim)))
    return result
