"""Sums over elements that read few unknowns each, against dense matrices."""

import numpy as np
import pytest
from bounds.settings import claimed, setting

import slomodel
from slomodel.bounds.ball import Displacements
from slomodel.bounds.ranges.curvature import slopes
from slomodel.bounds.ranges.curvature.centre_graph import centre_graph
from slomodel.bounds.ranges.curvature.hessian_ranges import ball_graph
from slomodel.bounds.ranges.curvature.incidence import UnknownsApart, unknowns_apart
from slomodel.bounds.ranges.curvature.slopes import slopes_of
from slomodel.bounds.ranges.enclose import boxed, enclose
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


ANSWERS = """
dim N = 40, P = 12, Q = 6, K = 3
data person[N] in P, item[N] in Q, y[N] in K
var a[Q] > 0 init 1, t[P], free[Q - 1], k[K - 1], s init 0
let b[i in Q] = where(i < Q - 1, free[min(i, Q - 2)], -sum(free))
let below[j in range(K)] = sum(k[l] for l in range(j))
let u = a[item] .* t[person] - b[item] * exp(s)
let U[n in N, j in range(K)] = j * u[n] - below[j]
minimize sum(logsumexp(U[n, j] for j in range(K)) - U[n, y[n]] for n in N) + sumsq(t - s)
     + max(t[i] * exp(t[i]) for i in P)
"""


@pytest.mark.filterwarnings("ignore::slomodel.errors.NonsmoothWarning")
@pytest.mark.parametrize("half", [np.inf, 0.2])
def test_unknowns_apart_have_one_direction(half: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients by few directions are those by each unknown, and far fewer numbers."""
    rng = np.random.default_rng(0)
    data = {name: rng.integers(0, most, 40) for name, most in (("person", 12), ("item", 6))}
    data["y"] = rng.integers(0, 3, 40)
    model = slomodel.compile(ANSWERS, data=data, backend="numpy")
    one = model.unconstrained._part(0.3 * rng.standard_normal(model.unconstrained.n))
    nodes = [node for node in one.order if node in one.varying and node.dtype == "real"]
    groups = unknowns_apart(one, tuple(nodes))
    assert groups.count <= 12 < one.n == 26
    assert len(groups.reads) >= len(nodes) // 2
    ranges = enclose(nodes, boxed(one.values), one.sizes)
    known = {node: ranges[node] for node in nodes}
    wide = np.full(one.n, np.inf)
    wide[: one.n // 2] = half
    region = Displacements.product(wide, 0.5) if half < np.inf else Displacements.ball(one.n, 0.5)
    few = slopes_of(one, nodes, nodes, known, region)
    alone = UnknownsApart(np.arange(one.n), one.n, {})
    monkeypatch.setattr(slopes, "unknowns_apart", lambda setting, nodes: alone)
    each = slopes_of(one, nodes, nodes, known, region)
    for node in nodes:
        np.testing.assert_allclose(few[0][node], each[0][node], 1e-12, 1e-300)
        np.testing.assert_array_equal(few[2][node].lo, each[2][node].lo)
        np.testing.assert_array_equal(few[2][node].hi, each[2][node].hi)
        if half < np.inf:
            np.testing.assert_allclose(few[1][node], each[1][node], 1e-12, 1e-300)
        if node in groups.reads:
            # No element reads two unknowns of a group.
            own = groups.reads[node].reshape(one.n, -1)
            assert (groups.directions() @ own <= 1.0).all()
            moves = np.abs(each[2][node].magnitude).reshape(one.n, -1) > 0.0
            assert (own | ~moves).all()
