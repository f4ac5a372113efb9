"""Scalar operations that every call repeats, and arrays that are computed once per bind."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from slomodel.calculus import NOTHING, Known, gradient
from slomodel.functions.cost import Sizes, own_work
from slomodel.ir.expr import Expr, Input, Listing, Recur, Triangle, tables_of
from slomodel.ir.index_tables import tables_read, with_tables
from slomodel.ir.walk import dependents, inputs, postorder, substitute, users


def is_varying_input(node: Expr) -> bool:
    """True for an input that changes from call to call."""
    return isinstance(node, Input) and node.role != "data"


def work_of_call(objective: Expr, sizes: Sizes, known: Known = NOTHING) -> float:
    """Operations of one value with its gradient; shared nodes count once."""
    variables = [node for node in inputs(objective) if node.role == "variable"]
    return work((objective, *gradient(objective, variables, known)), sizes)


def work(roots: Sequence[Expr], sizes: Sizes) -> float:
    """Additions, multiplications and function values under the roots that every call repeats.

    Nodes of data alone are free, since they are computed once per bind, and so are views.
    """
    order = postorder(*roots)
    varying = dependents(order, is_varying_input)
    return _total([node for node in order if node in varying], sizes)


def work_once(root: Expr, sizes: Sizes) -> float:
    """Operations under a root that depend on data alone."""
    order = postorder(root)
    varying = dependents(order, is_varying_input)
    return _total([node for node in order if node not in varying], sizes)


def _total(nodes: Sequence[Expr], sizes: Sizes) -> float:
    """Operations of the nodes; all states of one loop together are those of its steps."""
    loops = {(node.operands, node.loop) for node in nodes if isinstance(node, Recur)}
    return sum(own_work(node, sizes) for node in nodes) + sum(
        loop.length.size(sizes) * _total(postorder(*(one.value for one in loop.updates)), sizes)
        for _, loop in loops
    )


def prepared(
    roots: tuple[Expr, ...], taken: Collection[str]
) -> tuple[tuple[Expr, ...], Mapping[Input, Expr]]:
    """The roots over new data inputs, and the graph that computes each of these.

    Prepared are the tables that indices read, which become integer arrays whatever the precision,
    and nodes of data alone that need a factorisation or the lists of an index set. Other constant
    nodes take about as long as reading the data: each function computes them.
    """
    names = {*taken, *(node.name for node in inputs(*roots))}
    roots, parts = _parts(roots, names)
    roots, whole = _tables(roots, names)
    # Each is computed from the given data: a table may contain a node that has become an input.
    computed = substitute(tuple(whole.values()), parts)
    result = {one: part for one, part in parts.items() if isinstance(one, Input)}
    return roots, {**result, **dict(zip(whole, computed, strict=True))}


def _tables(roots: tuple[Expr, ...], names: set[str]) -> tuple[tuple[Expr, ...], dict[Input, Expr]]:
    """The roots with an input of type "whole" for each table that an index reads."""
    made: dict[Expr, Expr] = {}
    for node in postorder(*roots):
        for table in tables_read(node):
            if table not in made and table.dtype != "whole":
                made[table] = Input(_name("I", names), "data", table.shape, "whole")
    if not made:
        return roots, {}
    new = with_tables(roots, made)
    result = {one: table for table, one in made.items() if isinstance(one, Input)}
    return tuple(new[root] for root in roots), result


def _parts(roots: tuple[Expr, ...], names: set[str]) -> tuple[tuple[Expr, ...], dict[Expr, Expr]]:
    """The roots with an input for each node of data that needs a factorisation or an index set."""
    order = postorder(*roots)
    factored = dependents(order, lambda node: isinstance(node, (Triangle, Listing)))
    if not factored:
        return roots, {}
    varying = dependents(order, is_varying_input)
    # Data are numbers, so nodes of truth values remain and are computed by each function.
    computing = varying | {node for node in order if node.dtype == "bool"}
    above = users(order)
    made: dict[Expr, Expr] = {}
    for node in order:
        once = node in factored and node not in computing
        if once and (node in roots or any(_computes(one, node, computing) for one in above[node])):
            made[node] = Input(_name("R", names), "data", node.shape)
    result = substitute(roots, made)
    return result, {new: node for node, new in made.items()}


def _computes(user: Expr, node: Expr, computing: Collection[Expr]) -> bool:
    """Whether a user computes with a node and does not only read indices from it."""
    count = len(user.operands) - len(tables_of(user))
    return user in computing and node in user.operands[:count]


def _name(letter: str, names: set[str]) -> str:
    """An unused name that cannot occur in the text of a model."""
    name = next(text for k in range(1, len(names) + 2) if (text := f"{letter}[{k}]") not in names)
    names.add(name)
    return name
