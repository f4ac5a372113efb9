"""Sums over elements that read few unknowns each, against dense matrices."""

import numpy as np
import pytest
from bounds.settings import claimed, setting

from slomodel.bounds.ranges.curvature.centre_graph import centre_graph
from slomodel.bounds.ranges.curvature.hessian_ranges import ball_graph
from slomodel.bounds.rules.curved_terms import curved_terms
from slomodel.ir.expr import Einsum
from slomodel.ir.walk import postorder

PRODUCT = """
dim m, k
var X[m, k], Y[m, k]
let P = X @ Y'
minimize sum(sin(P[i, j]) for i in m, j in m)
"""
OWN = "dim m, k\nvar X[m, k]\nlet P = X @ X'\nminimize sum(sin(P[i, j]) for i in m, j in m)"


@pytest.mark.parametrize(("text", "count", "most"), [(PRODUCT, 2, 1.0), (OWN, 1, 2.0)])
def test_the_curvature_of_an_inner_product(text: str, count: int, most: float) -> None:
    """‖D²(x·y)‖ = 1 and ‖D²(x·x)‖ = 2, whatever the length of x and y."""
    m, k = 3, 5
    one = setting(text.replace("dim m, k", f"dim m = {m}, k = {k}"), [0.1] * (count * m * k))
    (node,) = (n for n in postorder(one.objective) if isinstance(n, Einsum) and n.rank == 2)
    graph = ball_graph(one, 0.3, centre_graph(one, (node,)))
    found = graph.curves[node].curvature
    assert (found >= np.where(np.eye(m), most, 1.0) * (1 - 1e-12)).all()
    assert found.max() <= most * (1 + 1e-9)


def test_the_curvature_of_a_sum_is_that_of_its_largest_term() -> None:
    """D² of Σ sin(x_i) is diagonal: its norm is that of one term, for any number of them."""
    one = setting("var x[30]\nminimize exp(sum(sin(x[i]) for i in 30))", [0.1] * 30)
    (node,) = (n for n in postorder(one.objective) if isinstance(n, Einsum))
    graph = ball_graph(one, 0.3, centre_graph(one, (node,)))
    assert np.sin(0.4) * (1 - 1e-12) <= graph.curves[node].curvature <= np.sin(0.4) * (1 + 1e-9)


def test_sums_over_both_axes_are_not_inner_products() -> None:
    """Σ_st x_s y_t has D² of norm √(kl), not 1."""
    text = "dim k = 4, l = 9\nvar x[k], y[l]\nminimize sin(sum(x[s] * y[t] for s in k, t in l))"
    one = setting(text, [0.0] * 13)
    found = claimed(curved_terms, one, 0.0)
    assert found is not None
    assert found.L1 >= 6.0 * (1 - 1e-12)
    wide = claimed(curved_terms, one, 1e-3)
    assert wide is not None
    assert wide.L2 >= 0.0
    assert wide.L1 >= 6.0 * (1 - 1e-12)
