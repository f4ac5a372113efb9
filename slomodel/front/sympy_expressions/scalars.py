"""Scalar expressions: the nodes between sums, elements and traces, as one graph."""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp
from sympy.matrices.expressions.matexpr import MatrixElement
from sympy.tensor.indexed import Idx

from slomodel.front.elaboration.indices.index_sets import index_value
from slomodel.front.elaboration.indices.tables import is_whole
from slomodel.front.elaboration.values import (
    Label,
    Value,
    combine,
    number,
    remainder,
    square_root,
    union,
)
from slomodel.front.sympy_expressions.choices import is_choice
from slomodel.front.sympy_expressions.errors import error, unsupported_node
from slomodel.front.sympy_expressions.evaluation import Steps, SymPyRequest, note
from slomodel.functions import div, eq, ne
from slomodel.functions.translate import to_graphs
from slomodel.ir import build
from slomodel.ir.expr import Expr, Map
from slomodel.ir.walk import inputs

_LEAVES = (
    *(sp.Symbol, Idx, sp.Indexed, sp.Sum, sp.Product, sp.Mod),
    *(MatrixElement, sp.Trace, sp.Determinant, sp.KroneckerDelta),
)
_HALVES = (sp.Rational(1, 2), sp.Rational(-1, 2))


def is_leaf(node: sp.Basic) -> bool:
    """Whether a scalar node has a rule of its own, as square roots do."""
    is_own = is_root(node) or is_log_determinant(node) or is_choice(node)
    return isinstance(node, _LEAVES) or is_own


def is_log_determinant(node: sp.Basic) -> bool:
    return isinstance(node, sp.log) and isinstance(node.args[0], sp.Determinant)


def is_root(node: sp.Basic) -> bool:
    return isinstance(node, sp.Pow) and node.exp in _HALVES


def scalar(request: SymPyRequest) -> Steps:
    """The graph of an expression over its leaves, each broadcast to all labels."""
    values: dict[sp.Basic, Value] = {}
    for leaf in _leaves(request.node):
        values[leaf] = yield SymPyRequest(leaf, request.scope)
    labels = union(values.values())
    graphs = to_graphs(request.node, {leaf: _along(v, labels) for leaf, v in values.items()})
    for part, graph in graphs.items():
        if part not in values:
            note(request.scope, graph, part)
    _refuse_equalities(graphs)
    graph = graphs[request.node]
    return Value(graph, labels if graph.rank else ())


def _leaves(root: sp.Basic) -> list[sp.Basic]:
    """The distinct leaves below a node; for `1/sqrt(t)` also `sqrt(t)`, as in products."""
    result: dict[sp.Basic, None] = {}
    seen: set[sp.Basic] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if is_leaf(node):
            result[node] = None
            if is_root(node) and node.exp.is_negative:
                result[sp.sqrt(node.base)] = None
        else:
            stack.extend(reversed(node.args))
    return list(result)


def _along(value: Value, labels: tuple[Label, ...]) -> Expr:
    """The node of a value, broadcast to labels that it lacks unless it is a scalar."""
    if not value.labels:
        return value.expr
    axes = tuple(labels.index(label) for label in value.labels)
    return build.broadcast(value.expr, axes, tuple(label.dim for label in labels))


def _refuse_equalities(graphs: Mapping[sp.Basic, Expr]) -> None:
    """Raise an error for `==` on variables, which holds at isolated points only."""
    for part, graph in graphs.items():
        if not isinstance(graph, Map) or graph.function not in (eq, ne):
            continue
        for one in inputs(graph):
            if one.role == "variable":
                message = f"an equality on the variable `{one.name}` only holds at isolated points"
                remedy = "compare with `<=` or `>=`, or test data only"
                raise error("E411", message, part, remedy)


def symbol(request: SymPyRequest) -> Steps:
    """An index as a number, a size, or a named scalar."""
    yield from ()
    listed = request.scope.values.get(request.node)
    if listed is not None:
        return listed
    label = request.scope.labels.get(request.node)
    return (
        index_value(label)
        if label is not None
        else request.scope.translation.values[request.node.name]
    )


def modulus(request: SymPyRequest) -> Steps:
    """The remainder of whole numbers computed from indices, sizes and index data."""
    value = yield SymPyRequest(request.node.args[0], request.scope)
    divisor = yield SymPyRequest(request.node.args[1], request.scope)
    for one in (value, divisor):
        if not is_whole(one.expr, request.scope.translation.whole):
            raise unsupported_node(request.node)
    return remainder(value, divisor)


def root(request: SymPyRequest) -> Steps:
    """`sqrt`, which is the norm of a sum of squares and the absolute value of a square."""
    base = yield SymPyRequest(request.node.base, request.scope)
    result = square_root(base)
    return combine(div, number(1.0), result) if request.node.exp.is_negative else result
