"""Graphs as text."""

from slomodel import functions as fn
from slomodel.ir import build
from slomodel.ir.dims import named
from slomodel.ir.expr import Affine
from slomodel.ir.show import show


def test_one_line_a_node_operands_first() -> None:
    n = named("n")
    A, x = build.data("A", (n, n)), build.variable("x", (n,))
    product = build.matmul(A, x)
    shifted = build.gather(x, [Affine(n - 1, (-1,))], (n,))
    outer = build.apply_along(fn.sub, (product, shifted), ((0,), (1,)), (n, n))
    positive = fn.gt(outer, 0.5)
    assert show(fn.where(positive, outer, build.const(0.0))).splitlines() == [
        "%0 = data A [n, n]",
        "%1 = variable x [n]",
        "%2 = einsum[0 1,1 -> 0](%0, %1) [n]",
        "%3 = gather[-1*o0 + n - 1](%1) [n]",
        "%4 = sub[(0,), (1,)](%2, %3) [n, n]",
        "%5 = 0.5 scalar",
        "%6 = gt(%4, %5) [n, n] bool",
        "%7 = 0.0 scalar",
        "%8 = where(%6, %4, %7) [n, n]",
    ]
    assert repr(product) == "<Einsum [n]>"


def test_a_deep_graph_does_not_recurse() -> None:
    node = build.variable("x", ())
    for _ in range(20_000):
        node = fn.sin(node)
    assert show(node).count("\n") == 20_000
