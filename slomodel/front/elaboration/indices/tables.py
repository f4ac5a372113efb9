"""Index tables: expressions of whole numbers that depend on data alone."""

from __future__ import annotations

from collections.abc import Mapping

from slomodel.errors import Span
from slomodel.front.elaboration.errors import StatementError, error
from slomodel.front.elaboration.scope import Elaboration, Scope, Symbol
from slomodel.front.elaboration.values import Label, Value
from slomodel.front.text.syntax import Expr as Syntax
from slomodel.front.text.syntax import FunctionCall, Name, Node, Power, ProductChain
from slomodel.front.text.traversal import children, nodes
from slomodel.functions import (
    abs,
    add,
    clip,
    div,
    floor,
    maximum,
    minimum,
    mul,
    neg,
    relu,
    sign,
    square,
    sub,
    where,
)
from slomodel.ir.dims import Dim
from slomodel.ir.expr import (
    Const,
    Einsum,
    Expr,
    Extreme,
    Gather,
    Input,
    Iota,
    Listing,
    Map,
    Reshape,
    Scatter,
)
from slomodel.ir.walk import inputs, postorder
from slomodel.problem import LookupBound

_WHOLE = (abs, add, clip, maximum, minimum, mul, neg, relu, sign, square, sub, where)
"""Functions that map whole numbers to whole numbers."""


_CALLED = ("abs", "max", "min", "where")
"""Functions that may be called in an index."""


def reads_arrays(item: Syntax, scope: Scope) -> bool:
    """Whether an index uses more than dims and indices, so that it may be a table."""
    stack: list[Node] = [item]
    while stack:
        node = stack.pop()
        if isinstance(node, Name):
            result = scope.local.get(node.text) or scope.model.symbols.get(node.text)
            if isinstance(result, Value):
                return True
            if isinstance(result, Symbol) and result.value is not None:
                return True
        if isinstance(node, FunctionCall) and node.function.text in _CALLED:
            return True
        if isinstance(node, ProductChain) and any(term.op == "%" for term in node.rest):
            return True
        stack += children(node)
    return False


def multiplies_indices(item: Syntax, scope: Scope) -> bool:
    """Whether an index has products or powers of indices, or quotients of them by numbers."""
    stack: list[Node] = [item]
    while stack:
        node = stack.pop()
        below = children(node)
        has_index = any(
            isinstance(one, Name) and isinstance(scope.local.get(one.text), Label)
            for part in below
            for one in nodes(part)
        )
        if has_index and isinstance(node, (ProductChain, Power)):
            return True
        stack += below
    return False


def check_table(model: Elaboration, table: Expr, axis: Dim, item: Syntax) -> None:
    """Check that an index is a whole number, depends on data alone, and lies inside its axis.

    Properties that depend on the values of data are tested at bind. Raises StatementError.
    """
    _check_whole(model, table, axis, item)
    if domain_of(table, model) != axis:
        model.lookups[LookupBound(table, axis, item.span.text, item.span)] = None


def domain_of(table: Expr, model: Elaboration) -> Dim | None:
    """The declared upper limit, exclusive, of all elements of a table; None if it is not known."""
    while isinstance(table, (Reshape, Gather)) or _is_view(table):
        table = table.operands[0]
    return model.whole.get(table)


def _is_view(node: Expr) -> bool:
    return (
        isinstance(node, Einsum)
        and len(node.operands) == 1
        and set(node.output) == set(range(len(node.dims)))
        and len(set(node.output)) == len(node.output)
    )


def _check_whole(model: Elaboration, table: Expr, axis: Dim, item: Syntax) -> None:
    for one in inputs(table):
        if one.role != "data":
            message = f"an index may not depend on the variable `{one.name}`"
            remedy = "index with index variables, dims, whole numbers and index data"
            raise error("E209", message, item.span, remedy)
    if may_be_whole(table, model):
        return
    known = _whole_nodes(table, model.whole)
    for array in inputs(table):
        if not known[array]:
            raise _undeclared(array, axis, item.span)
    message = f"`{item.span.text}` need not be a whole number"
    raise error("E209", message, item.span, "an index is a sum or product of whole numbers")


def is_table(table: Expr, model: Elaboration) -> bool:
    """Whether the elements of an expression are whole numbers that depend on data alone."""
    given = all(node.role == "data" for node in inputs(table))
    return given and table.dtype == "real" and is_whole(table, model.whole)


def may_be_whole(table: Expr, model: Elaboration) -> bool:
    """Whether an expression consists of whole numbers and quotients, to be tested with the data."""
    given = all(node.role == "data" for node in inputs(table))
    return given and _whole_nodes(table, model.whole, divides=True)[table]


def is_whole(table: Expr, whole: Mapping[Expr, Dim | None]) -> bool:
    """Whether all elements of an expression of data are whole numbers if those in `whole` are."""
    return _whole_nodes(table, whole)[table]


def _whole_nodes(
    table: Expr, whole: Mapping[Expr, Dim | None], divides: bool = False
) -> dict[Expr, bool]:
    """The nodes whose elements are whole; with `divides` also quotients of those, which may be."""
    known: dict[Expr, bool] = {}
    for node in postorder(table):
        known[node] = _is_whole(node, known, whole, divides)
    return known


def _is_whole(
    node: Expr, known: Mapping[Expr, bool], whole: Mapping[Expr, Dim | None], divides: bool
) -> bool:
    if isinstance(node, Input):
        return node in whole
    if isinstance(node, Const):
        return divides or node.dtype == "bool" or float(node.value).is_integer()
    if node.dtype == "bool" or isinstance(node, (Iota, Listing)):
        return True  # a condition on data, or positions
    if isinstance(node, Map):
        rounded = node.function is floor
        keeps = node.function in _WHOLE or (divides and node.function is div)
        return rounded or (keeps and all(known[operand] for operand in node.operands))
    if isinstance(node, (Gather, Scatter)):
        return known[node.operands[0]]
    return isinstance(node, (Einsum, Extreme, Reshape)) and all(map(known.get, node.operands))


def _undeclared(node: Input, axis: Dim, span: Span) -> StatementError:
    """The error for data that are used as an index without being declared so."""
    shape = ", ".join(str(dim) for dim in node.shape)
    place = f"{node.name}[{shape}]" if shape else node.name
    message = f"`{node.name}` is an index here, and is not declared as index data"
    remedy = f"declare `data {place} in {axis}`, with `one_based` after it if it counts from 1"
    return error("E209", message, span, remedy)
