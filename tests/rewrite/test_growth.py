"""The work of every stage from a graph to source is in proportion to the graph.

Work is counted in calls of Python functions, which are the same on every machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import accumulate

import pytest

from slomodel import functions as fn
from slomodel.calculus import gradient, jvp
from slomodel.codegen.entry import Entry
from slomodel.codegen.kernels import TARGETS
from slomodel.codegen.layout import Layout, Sizes
from slomodel.ir import build
from slomodel.ir.dims import literal
from slomodel.ir.expr import Affine, Expr
from slomodel.ir.walk import postorder
from slomodel.rewrite import Facts, chosen, optimized, rewritten
from slomodel.rewrite.rolling import Rolled

MOST = 1.25
"""Work for four times the nodes, over four times the work."""


def calls(act: Callable[[], object]) -> int:
    """Python functions called."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(before)
    return count


def elements(n: int) -> tuple[Expr, list[Expr]]:
    x = build.variable("x", (literal(n),))
    return x, [build.gather(x, [Affine(literal(k), ())], ()) for k in range(n)]


def unlike(terms: list[Expr]) -> Expr:
    """A sum that rolling leaves as it is: each term is used twice."""
    return list(accumulate(terms, lambda total, one: fn.mul(fn.add(total, one), one)))[-1]


def partial_sums(of: Callable[[Expr], Expr], terms: list[Expr]) -> list[Expr]:
    return list(accumulate((of(one) for one in terms), fn.add))


KINDS: dict[str, Callable[[list[Expr]], Expr]] = {
    "logs of partial sums": lambda x: unlike([fn.log(p) for p in partial_sums(fn.exp, x)[1:]]),
    "log1p of partial sums": lambda x: unlike([fn.log1p(p) for p in partial_sums(fn.exp, x)]),
    "logs of partial sums, the longest first": lambda x: unlike(
        [fn.log(p) for p in partial_sums(fn.exp, x)[:0:-1]]
    ),
    "logs of sums that are no exponentials": lambda x: unlike(
        [fn.log(p) for p in partial_sums(fn.square, x)]
    ),
    "logs of partial products": lambda x: unlike([fn.log(p) for p in accumulate(x, fn.mul)]),
    "logs of partial quotients": lambda x: unlike([fn.log(p) for p in accumulate(x, fn.div)]),
    "roots of partial sums": lambda x: unlike([fn.sqrt(p) for p in partial_sums(fn.square, x)]),
    "roots of partial products": lambda x: unlike([fn.sqrt(p) for p in accumulate(x, fn.mul)]),
    "lengths of lengths": lambda x: list(
        accumulate(x, lambda p, one: fn.sqrt(fn.add(fn.square(p), fn.square(one))))
    )[-1],
    "nested log-sum-exp": lambda x: list(
        accumulate(x, lambda p, one: fn.log(fn.add(fn.exp(p), fn.exp(one))))
    )[-1],
    "quotients of partial products": lambda x: unlike(
        [
            fn.div(p, fn.add(1.0, fn.exp(one)))
            for p, one in zip(accumulate(x, fn.mul), x, strict=True)
        ]
    ),
    "recurrence": lambda x: list(
        accumulate(x, lambda p, one: fn.tanh(fn.add(fn.mul(one, p), fn.sin(p))))
    )[-1],
    "product": lambda x: fn.square(list(accumulate(x, fn.mul))[-1]),
    "norms in between": lambda x: list(
        accumulate(x, lambda p, one: fn.div(one, fn.sqrt(fn.add(1.0, fn.square(p)))))
    )[-1],
}


PRINTED = ("logs of partial sums", "recurrence", "product")
"""Kinds whose Hessian-vector products are printed too; for all it would take a minute."""


def stages(kind: str, n: int) -> tuple[dict[str, int], int]:
    """Calls of each stage, and the nodes of the stable graph."""
    x, terms = elements(n)
    root = KINDS[kind](terms)
    made: dict[str, tuple[Expr, ...]] = {"roll": (root,)}
    counts: dict[str, int] = {}

    def stage(name: str, act: Callable[[], tuple[Expr, ...]]) -> None:
        def run() -> None:
            made[name] = act()

        counts[name] = calls(run)

    stage("roll", lambda: (Rolled(root).root,))
    stage("stabilise", lambda: (rewritten(made["roll"][0])[made["roll"][0]],))
    stage(
        "passes", lambda: (optimized(made["stabilise"][0], Facts({}, {}), chosen(True)).objective,)
    )
    stage("gradient", lambda: gradient(made["passes"][0], [x]))
    if kind in PRINTED:
        direction = build.direction("x", x.shape)
        stage("product", lambda: jvp(made["gradient"], {x: direction}))
        layout = Layout((x,), (), Sizes(()), "float64", {}, {}, {})
        entry = Entry("hvp", None, made["product"], (direction,))
        counts["source"] = calls(lambda: TARGETS["numexpr"].source("m", [entry], layout, {}))
    return counts, len(postorder(*made["stabilise"]))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS)
def test_work_grows_in_proportion(kind: str) -> None:
    few, nodes = stages(kind, 16)
    many, more_nodes = stages(kind, 64)
    assert more_nodes < 4 * MOST * nodes
    grown = {name: many[name] / few[name] / 4 for name in few}
    assert max(grown.values()) < MOST, grown
