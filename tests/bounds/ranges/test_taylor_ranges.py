"""Ranges over a ball by Taylor forms: no node leaves them, and affine nodes fill them."""

import math

import numpy as np
import pytest
from bounds.fuzz import part_of
from bounds.settings import setting
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Example, graphs

from slomodel import functions as fn
from slomodel.bounds import ObjectivePart
from slomodel.bounds.arithmetic.interval import Interval, around
from slomodel.bounds.ranges.enclose import boxed, enclose, live_in
from slomodel.bounds.ranges.taylor.taylor_ranges import taylor_ranges
from slomodel.functions.compound import stop_gradient
from slomodel.ir import build
from slomodel.ir.dims import literal
from slomodel.ir.expr import Expr, Input, Map
from slomodel.ir.walk import postorder

MOST = 2**22
EXPONENTIALS = """
dim N
data a[N], y[N]
var x[3]
let u[i in N] = x[0] * exp(-x[1] * a[i]) + x[2] ^ 2 * a[i]
minimize sumsq(u - y) + logsumexp(u) + sum(sqrt(1 + u ^ 2))
"""


def recurrence(y: np.ndarray) -> ObjectivePart:
    """Σ log(1 + h_t²) of h_t = a_t h_(t-1) + sin(b_t) y_t, over the variables a and b (m,)."""
    a, b = (build.variable(name, (literal(len(y)),)) for name in "ab")
    h = build.scan(a, fn.mul(fn.sin(b), build.data("y", a.shape)), 0)
    (own,) = (node for node in postorder(h) if isinstance(node, Input) and node.role == "data")
    objective = build.sum_over(fn.log1p(fn.square(h)), (0,))
    start = np.linspace(0.3, 0.9, len(y))
    return ObjectivePart(objective, (a, b), {a: start, b: -start, own: y}, {})


def at(one: ObjectivePart, x: np.ndarray) -> dict[Expr, Interval]:
    """All nodes at the point x (n,), in intervals of rounding errors."""
    boxes, start = boxed(one.values), 0
    for variable in one.variables:
        shape = np.shape(one.values[variable])
        size = math.prod(shape)
        boxes[variable] = around(x[start : start + size].reshape(shape), 0.0)
        start += size
    roots = (one.objective, *one.gradient)
    return enclose(postorder(*roots), boxes, one.sizes, live=live_in(one, *roots))


def holds(one: ObjectivePart, radius: float, rng: np.random.Generator) -> None:
    ranges = taylor_ranges(one, radius, MOST)
    nodes = [node for node in ranges if not depends_on_stop_gradient(node)]
    centre = np.concatenate([np.ravel(one.values[v]) for v in one.variables])
    for _ in range(8):
        d = rng.standard_normal(centre.size)
        found = at(one, centre + 0.999 * radius * d / np.linalg.norm(d))
        for node in nodes:
            value, own = found[node], ranges[node]
            # A wide interval of rounding errors shows nothing: both must be apart to refute.
            bad = (value.lo > own.hi) | (value.hi < own.lo)
            assert not np.any(bad & np.isfinite(value.magnitude)), node


def depends_on_stop_gradient(node: Expr) -> bool:
    """A node that is another function where `stop_gradient` nodes are constants."""
    return any(isinstance(n, Map) and n.function is stop_gradient for n in postorder(node))


@settings(max_examples=30)
@given(data=st.data(), radius=st.sampled_from([1e-4, 0.05, 1.0]))
def test_no_node_of_a_random_graph_leaves_its_range(data: st.DataObject, radius: float) -> None:
    example: Example = data.draw(graphs(smooth=data.draw(st.booleans()), max_steps=6))
    one = part_of(example)
    if sum(np.size(one.values[v]) for v in one.variables):
        holds(one, radius, np.random.default_rng(data.draw(st.integers(0, 2**16))))


@pytest.mark.parametrize("radius", [1e-3, 0.3, 2.0])
def test_no_node_of_a_model_leaves_its_range(radius: float) -> None:
    rng = np.random.default_rng(0)
    a, y = rng.random(7), rng.standard_normal(7)
    holds(setting(EXPONENTIALS, [1.0, 0.5, -0.3], a=a, y=y), radius, rng)
    holds(recurrence(rng.standard_normal(9)), radius, rng)


def widths(text: str, n: int, radius: float) -> float:
    """The widest range of an argument of `sin` over a ball in n variables."""
    one = setting(text, [0.5] * n)
    ranges = taylor_ranges(one, radius, MOST)
    sines = [x for x in ranges if isinstance(x, Map) and x.function.name == "sin"]
    return max(float(np.max(r.hi - r.lo)) for s in sines for r in [ranges[s.operands[0]]])


def test_an_affine_node_moves_by_the_length_of_its_gradient() -> None:
    wide = widths("var x[64] minimize sin(sum(x))", 64, 0.1)
    assert wide == pytest.approx(2 * 0.1 * 8.0, rel=1e-9)
    assert wide >= 2 * 0.1 * 8.0


def test_a_remainder_is_that_of_the_second_derivative() -> None:
    """sum(x)² about (½, .., ½): slope 2·32·8 for each unit of the radius, and 64 r² beyond."""
    wide = widths("var x[64] minimize sin(sum(x) ^ 2)", 64, 0.01)
    assert wide >= 2 * 0.01 * 512.0
    assert wide <= 2 * (0.01 * 512.0 + 64.0 * 0.01**2) * (1 + 1e-9)
