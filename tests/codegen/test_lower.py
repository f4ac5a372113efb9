"""Lowering preserves every value, and leaves only forms that a schedule can execute."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from strategies import Example, graphs

from slomodel import functions as fn
from slomodel.codegen.kernels import Derivatives
from slomodel.codegen.loops import planning
from slomodel.codegen.lower import Blocks, lower
from slomodel.codegen.python.numexpr_target import NUMEXPR
from slomodel.codegen.python.numpy_target import NUMPY
from slomodel.ir import build
from slomodel.ir.dims import named
from slomodel.ir.expr import Einsum, Expr, Map
from slomodel.ir.walk import postorder
from slomodel.reference import evaluate, evaluate_all

SPELLS = {"numpy": NUMPY.spells, "numexpr": NUMEXPR.spells, "c": planning.spells}


def assert_simple(node: Expr, target: str) -> None:
    if isinstance(node, Map):
        function = node.function
        assert SPELLS[target](function) or function.stable is None
    if not isinstance(node, Einsum) or not node.operands:
        return
    if len(node.operands) == 1:
        kept = [label for label in node.inputs[0] if label in node.output]
        summed = len(kept) < len(node.inputs[0])
        assert len(set(node.inputs[0])) == len(node.inputs[0])
        # A sum keeps the order of the axes that are left; a view sums nothing.
        assert list(node.output) == kept if summed else set(kept) == set(node.inputs[0])
        return
    blocks = Blocks.of_node(node)
    assert len(node.operands) == 2
    assert blocks.summed
    assert node.output == blocks.output
    assert all(blocks.fits(own) for own in node.inputs)


@pytest.mark.parametrize("target", sorted(SPELLS))
@given(example=graphs())
def test_same_values_in_simple_forms(target: str, example: Example) -> None:
    roots = (example.objective, *Derivatives(example.objective, example.variables).gradient)
    lowered = lower(roots, example.sizes, SPELLS[target])
    for node in postorder(*lowered):
        assert_simple(node, target)
    every = evaluate_all(roots, example.values, example.sizes)
    scale = max(
        float(np.abs(a[np.isfinite(a)].astype(float)).max(initial=1.0)) for a in every.values()
    )
    found = evaluate(lowered, example.values, example.sizes)
    for root, array in zip(roots, found, strict=True):
        np.testing.assert_allclose(array, every[root], rtol=1e-11, atol=1e-12 * scale)


def test_a_product_of_many_operands_is_contracted_pair_by_pair() -> None:
    a, r = named("a"), named("r")
    core, u = build.data("T", (a, a, a)), build.variable("U", (a, r))
    node = build.einsum([core, u, u, u], [(0, 1, 2), (0, 3), (1, 3), (2, 3)], (3,), (a, a, a, r))
    (lowered,) = lower([node], {"a": 60, "r": 5}, NUMPY.spells)
    sizes = [one for one in postorder(lowered) if isinstance(one, Einsum) and len(one.operands) > 1]
    largest = max(
        np.prod([dim.size({"a": 60, "r": 5}) for dim in one.dims], dtype=float) for one in sizes
    )
    # All labels at once would be 60³·5; the best pairs never go beyond one 60³·5 product.
    assert len(sizes) >= 2
    assert largest <= 60**3 * 5


def test_equal_products_are_one_node() -> None:
    m, n = named("m"), named("n")
    A, x = build.data("A", (m, n)), build.variable("x", (n,))
    one = build.matmul(A, x)
    two = build.einsum([x, A], [(0,), (1, 0)], (1,), (n, m))
    first, second = lower([one, two], {"m": 3, "n": 2}, NUMPY.spells)
    values = {A: np.arange(6.0).reshape(3, 2), x: np.array([1.0, -2.0])}
    np.testing.assert_array_equal(*evaluate([first, second], values))
    assert lower([one], {"m": 3, "n": 2}, NUMPY.spells)[0] is first


def test_functions_without_a_spelling_become_their_stable_form() -> None:
    x = build.variable("x", (named("n"),))
    (lowered,) = lower([build.apply(fn.softplus, x)], {"n": 3}, NUMEXPR.spells)
    names = {node.function.name for node in postorder(lowered) if isinstance(node, Map)}
    assert "softplus" not in names
    values = {x: np.array([-1000.0, 0.0, 1000.0])}
    np.testing.assert_allclose(evaluate([lowered], values)[0], [0.0, np.log(2.0), 1000.0])


def test_a_transposed_product_is_computed_once() -> None:
    A, B = (build.variable(name, (named(a), named(b))) for name, a, b in ("Amk", "Bkn"))
    turned = build.einsum([B, A], [(0, 1), (2, 0)], (1, 2), (named("k"), named("n"), named("m")))
    sizes = {"m": 3, "k": 4, "n": 5}
    roots = (build.matmul(A, B), fn.sin(turned))
    lowered = lower(roots, sizes, NUMPY.spells)
    products = [n for n in postorder(*lowered) if isinstance(n, Einsum) and len(n.operands) == 2]
    assert len(products) == 1
    rng = np.random.default_rng(0)
    values = {A: rng.standard_normal((3, 4)), B: rng.standard_normal((4, 5))}
    for one, other in zip(
        evaluate(lowered, values, sizes), evaluate(roots, values, sizes), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-15)


def test_sums_and_products_the_other_way_round_are_computed_once() -> None:
    x, y = (build.variable(name, (named("n"),)) for name in "xy")
    z = build.variable("z", (named("n"), named("n")))
    rows = build.apply_along(fn.mul, (x, z), ((0,), (0, 1)), z.shape)
    columns = build.apply_along(fn.mul, (z, x), ((0, 1), (1,)), z.shape)
    again = build.apply_along(fn.mul, (z, x), ((0, 1), (0,)), z.shape)
    roots = (fn.add(x, y), fn.add(y, x), fn.sub(x, y), fn.sub(y, x), rows, columns, again)
    one, other, minus, turned, *products = lower(roots, {"n": 3}, NUMPY.spells)
    assert one is other
    assert minus is not turned
    assert products[0] is products[2]
    assert products[0] is not products[1]
