"""Cumulative sums, products and log-sum-exps along an axis, from either end."""

from __future__ import annotations

import math

from slomodel.functions.arithmetic import add
from slomodel.functions.comparison import eq, where
from slomodel.functions.compound import logaddexp
from slomodel.functions.piecewise import maximum
from slomodel.ir import build
from slomodel.ir.dims import Dim, literal
from slomodel.ir.expr import Affine, Const, Expr, Input
from slomodel.ir.function import ScalarFunction
from slomodel.ir.loop import StateAt, Update
from slomodel.ir.recur import Reading, SlicesOf

_ACCUMULATED = {"cumlogsumexp": logaddexp, "cummax": maximum}
_EMPTY = {"cumsum": 0.0, "cumlogsumexp": -math.inf}


def cumulative(name: str, array: Expr, axis: int) -> Expr:
    """`cumsum`, `cumprod`, `cumlogsumexp` or `cummax` along an axis, of the array's shape."""
    if name == "cumsum":
        return build.scan(build.ones(array.shape), array, axis)
    if name == "cumprod":
        return build.scan(array, _first_alone(array, axis), axis)
    order = (axis, *(k for k in range(array.rank) if k != axis))
    turned = build.transpose(array, order)
    inverse = tuple(order.index(k) for k in range(array.rank))
    return build.transpose(_accumulated(_ACCUMULATED[name], turned), inverse)


def logaddexp_or_empty(a: Expr, b: Expr) -> Expr:
    """logaddexp of operands that may both be -inf, where its derivatives are then 0, not NaN."""
    is_empty = eq(maximum(a, b), -math.inf)
    inner = logaddexp(where(is_empty, 0.0, a), where(is_empty, 0.0, b))
    return where(is_empty, -math.inf, inner)


def running(name: str, terms: Expr, axis: int, *, from_below: bool) -> Expr:
    """`cumsum` or `cumlogsumexp` of no terms, one, …, all of them along an axis.

    Element k is that of the terms 0, …, k - 1 if `from_below`, and otherwise of k, ….
    """
    dim, rank = terms.shape[axis], terms.rank
    wide = (*terms.shape[:axis], dim + 1, *terms.shape[axis + 1 :])
    padded = build.scatter(terms, Affine.shifted(rank, axis, literal(int(from_below))), wide)
    empty = _EMPTY[name]
    if empty:
        # The value of no terms, at the fixed end.
        thin = (*terms.shape[:axis], literal(1), *terms.shape[axis + 1 :])
        place = Dim() if from_below else dim
        one = build.broadcast(Const(empty), (), thin)
        padded = build.apply(
            add, padded, build.scatter(one, Affine.shifted(rank, axis, place), wide)
        )
    if from_below:
        return cumulative(name, padded, axis)
    return build.flipped(cumulative(name, build.flipped(padded, axis), axis), axis)


def _first_alone(array: Expr, axis: int) -> Expr:
    """The first elements along an axis, with zeros after them."""
    shape = (*array.shape[:axis], literal(1), *array.shape[axis + 1 :])
    same = Affine.identity(array.rank)
    return build.scatter(build.gather(array, same, shape), same, array.shape)


def _accumulated(function: ScalarFunction, array: Expr) -> Expr:
    """The values of a function of two numbers, such as the larger one, over the first slices."""
    length, *rest = array.shape
    before, own = (Input(text, "step", tuple(rest)) for text in ("before", "own"))
    value = build.apply(function, before, own)
    first = build.steps_of(array, Dim(), literal(1))
    readings: dict[Expr, Reading] = {before: StateAt(0, literal(-1)), own: SlicesOf(array, Dim())}
    update = Update(0, Dim(), literal(1), value)
    return build.recur(length, [(tuple(rest), first)], [update], readings)[0]
