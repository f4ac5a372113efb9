"""Rolling takes work in proportion to the graph, whatever the terms of its sums share."""

from __future__ import annotations

from itertools import pairwise

import pytest

from slomodel import functions as fn
from slomodel.ir import build
from slomodel.ir.dims import literal
from slomodel.ir.expr import Affine, Expr
from slomodel.ir.walk import postorder
from slomodel.rewrite.rolling import Rolled

X = build.variable("x", (literal(500),))


def at(k: int) -> Expr:
    return build.gather(X, [Affine(literal(k), ())], ())


def total(terms: list[Expr]) -> Expr:
    result = terms[0]
    for one in terms[1:]:
        result = fn.add(result, one)
    return result


def recurrence(steps: int) -> Expr:
    """Each state is a sum with the one before it, and the objective reads all states."""
    state, terms = at(0), []
    for k in range(steps):
        slope = fn.mul(at(1), fn.sin(fn.add(state, fn.mul(0.5, fn.cos(state)))))
        state = fn.add(state, fn.mul(0.25, slope))
        terms.append(fn.square(fn.sub(state, float(k))))
    return total(terms)


def prefix_sums(steps: int) -> Expr:
    """Functions of all partial sums of one sum of like terms."""
    partial, terms = fn.exp(at(0)), []
    for k in range(1, steps):
        partial = fn.add(partial, fn.exp(at(k)))
        terms.append(fn.sin(partial))
    return total(terms)


def grid(steps: int) -> Expr:
    """A function of neighbours, applied again and again: like terms that overlap."""
    row = [at(k) for k in range(2 * steps)]
    for _ in range(steps // 2):
        row = [fn.sin(fn.mul(left, right)) for left, right in pairwise(row)]
    return total(row)


def visits(root: Expr) -> int:
    rolled = Rolled(root)
    return rolled.shapes.visited + rolled.visited


@pytest.mark.sampled(3)
@pytest.mark.parametrize("written", [recurrence, prefix_sums, grid])
def test_work_grows_with_the_graph(written: object) -> None:
    few, many = (written(n) for n in (60, 120))
    nodes = len(postorder(many)) / len(postorder(few))
    assert visits(many) / visits(few) < 1.25 * nodes


def test_a_sum_that_is_used_twice_is_rolled_once() -> None:
    shared = total([fn.sin(at(k)) for k in range(20)])
    rolled = Rolled(fn.add(fn.square(shared), fn.mul(2.0, shared)))
    assert rolled.remarks == ["20 terms that were written out become 1"]
    assert len(postorder(rolled.root)) < 10


def test_terms_that_share_most_of_their_parts_stay() -> None:
    root = grid(120)
    rolled = Rolled(root)
    assert rolled.root is root
    assert rolled.remarks == ["180 like terms stay written out: they share most of their parts"]
