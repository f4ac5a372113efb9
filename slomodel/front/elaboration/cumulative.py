"""Cumulative sums, products and log-sum-exps along an axis, as recurrences."""

from __future__ import annotations

from slomodel.functions import logaddexp
from slomodel.ir import build
from slomodel.ir.dims import Dim, literal
from slomodel.ir.expr import Affine, Expr, Input
from slomodel.ir.loop import StateAt, Update
from slomodel.ir.recur import Reading, SlicesOf


def cumulative(name: str, array: Expr, axis: int) -> Expr:
    """`cumsum`, `cumprod` or `cumlogsumexp` along an axis, of the shape of the array."""
    if name == "cumsum":
        return build.scan(build.ones(array.shape), array, axis)
    if name == "cumprod":
        return build.scan(array, _first_alone(array, axis), axis)
    order = (axis, *(k for k in range(array.rank) if k != axis))
    turned = build.transpose(array, order)
    inverse = tuple(order.index(k) for k in range(array.rank))
    return build.transpose(_cumulative_logsumexp(turned), inverse)


def _first_alone(array: Expr, axis: int) -> Expr:
    """The first elements along an axis, with zeros after them."""
    shape = (*array.shape[:axis], literal(1), *array.shape[axis + 1 :])
    rank = array.rank
    same = [Affine(Dim(), tuple(int(j == k) for j in range(rank))) for k in range(rank)]
    return build.scatter(build.gather(array, same, shape), same, array.shape)


def _cumulative_logsumexp(array: Expr) -> Expr:
    """The log-sum-exps of the first slices along the first axis."""
    length, *rest = array.shape
    before, own = (Input(text, "step", tuple(rest)) for text in ("before", "own"))
    value = build.apply(logaddexp, before, own)
    first = build.steps_of(array, Dim(), literal(1))
    readings: dict[Expr, Reading] = {before: StateAt(0, literal(-1)), own: SlicesOf(array, Dim())}
    update = Update(0, Dim(), literal(1), value)
    return build.recur(length, [(tuple(rest), first)], [update], readings)[0]
