"""Walks over the graph, on graphs small enough to list."""

from hypothesis import given
from strategies import Example, graphs

from slomodel import functions as fn
from slomodel.ir import build
from slomodel.ir.dims import named
from slomodel.ir.expr import Const, Expr, Map, remake
from slomodel.ir.walk import dependents, inputs, postorder, rewrite, substitute, users

X = build.variable("x", (named("n"),))
Y = build.variable("y", (named("n"),))
SIN = fn.sin(X)
SUM = fn.add(SIN, Y)
TOP = fn.mul(SUM, SIN)


def test_postorder_lists_operands_first_and_each_node_once() -> None:
    assert postorder(TOP) == [X, SIN, Y, SUM, TOP]
    assert postorder(SIN, TOP, SIN) == [X, SIN, Y, SUM, TOP]


@given(graphs())
def test_postorder_of_any_graph(example: Example) -> None:
    order = postorder(example.objective)
    place = {node: k for k, node in enumerate(order)}
    assert len(place) == len(order)
    assert order[-1] is example.objective
    assert all(place[o] < place[node] for node in order for o in node.operands)
    assert {node for node in order if not node.operands and hasattr(node, "role")} == set(
        inputs(example.objective)
    )


def test_users_count_each_use() -> None:
    found = users(postorder(fn.mul(SIN, SIN)))
    assert found[SIN] == [fn.mul(SIN, SIN)] * 2
    assert found[X] == [SIN]
    assert found[fn.mul(SIN, SIN)] == []


def test_dependents() -> None:
    assert dependents(postorder(TOP), lambda node: node is Y) == {Y, SUM, TOP}
    assert dependents(postorder(TOP), lambda node: isinstance(node, Const)) == set()


def test_substitute_rebuilds_only_what_changes() -> None:
    (found,) = substitute((TOP,), {Y: X})
    assert found is fn.mul(fn.add(SIN, X), SIN)
    assert substitute((TOP,), {build.variable("z", ()): X}) == (TOP,)


def test_substitute_replaces_nodes_as_they_were() -> None:
    """A node above one that is replaced is known still, and what comes in is left as it is."""
    z = build.variable("z", (named("n"),))
    assert substitute((TOP,), {X: z, SIN: Y}) == (fn.mul(fn.add(Y, Y), Y),)
    assert substitute((fn.add(X, Y),), {X: Y, Y: X}) == (fn.add(Y, X),)


def test_rewrite_sees_operands_already_rewritten() -> None:
    def rule(node: Expr) -> Expr:
        if isinstance(node, Map) and node.function is fn.sin:
            return fn.cos(node.operands[0])
        return node

    assert rewrite((fn.sin(SIN),), rule) == (fn.cos(fn.cos(X)),)


@given(graphs())
def test_remake_of_the_same_operands_is_the_node(example: Example) -> None:
    for node in postorder(example.objective):
        if node.operands:
            assert remake(node, node.operands) is node
    assert rewrite((example.objective,), lambda node: node) == (example.objective,)
