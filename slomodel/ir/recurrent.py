"""Constructors of operations along axes: extremes, recurrences, products."""

from __future__ import annotations

from slomodel.errors import ShapeError
from slomodel.ir.dims import Dim, literal, resized, show_shape
from slomodel.ir.expr import Affine, Axes, Const, Expr, Extreme, Scan, Which
from slomodel.ir.linear import broadcast, gather, scatter


def extreme(operand: Expr, which: Which, axes: Axes) -> Expr:
    """The largest or smallest element along some axes."""
    _check_axes(operand, axes)
    return Extreme(operand, which, tuple(sorted(set(axes)))) if axes else operand


def spread(operand: Expr, extreme_of: Extreme) -> Expr:
    """Broadcast `operand`, of the shape of an extreme, along the axes of that extreme."""
    wide = extreme_of.operands[0]
    kept = tuple(k for k in range(wide.rank) if k not in extreme_of.axes)
    return broadcast(operand, kept, wide.shape)


def scan(factor: Expr, term: Expr, axis: int) -> Expr:
    """`y[i] = factor[i] * y[i - 1] + term[i]` along an axis, from 0; all of one shape."""
    if factor.shape != term.shape or not 0 <= axis < factor.rank:
        result = f"{show_shape(factor.shape)} and {show_shape(term.shape)} along axis {axis}"
        raise ShapeError(f"a recurrence needs two arrays of one shape, not {result}")
    return Scan(factor, term, axis)


def backward_scan(factor: Expr, term: Expr, axis: int) -> Expr:
    """`y[i] = factor[i + 1] * y[i + 1] + term[i]` along an axis, backwards: adjoint of `scan`."""
    # Factors of 1 mark cumulative sums for the targets, so they stay: the first is not used anyway.
    moved = factor if factor is ones_like(factor) else flipped(shifted(factor, axis, -1), axis)
    return flipped(scan(moved, flipped(term, axis), axis), axis)


def ones_like(operand: Expr) -> Expr:
    """An array of ones of the shape of another."""
    return broadcast(Const(1.0), (), operand.shape)


def flipped(operand: Expr, axis: int) -> Expr:
    """The elements along an axis in reverse order."""
    index = _along(operand.rank, axis, operand.shape[axis] - 1, -1)
    return gather(operand, index, operand.shape)


def shifted(operand: Expr, axis: int, by: int) -> Expr:
    """The elements shifted along an axis by one place, `by` 1 or -1; the place left free is 0."""
    size = operand.shape[axis] - 1
    shape = (*operand.shape[:axis], size, *operand.shape[axis + 1 :])
    source, target = (literal(0), literal(1)) if by > 0 else (literal(1), literal(0))
    part = gather(operand, _along(operand.rank, axis, source), shape)
    return scatter(part, _along(operand.rank, axis, target), operand.shape)


def product_over(operand: Expr, axis: int) -> Expr:
    """The product along an axis; the empty product is 1.

    It is the last value of a recurrence, so that its derivative is correct where factors are 0.
    """
    _check_axes(operand, (axis,))
    shape = resized(operand.shape, axis, operand.shape[axis] + 1)
    factors = scatter(operand, _along(operand.rank, axis, literal(1)), shape)
    one = broadcast(Const(1.0), (), resized(operand.shape, axis, literal(1)))
    first = scatter(one, _along(operand.rank, axis, literal(0)), shape)
    running = scan(factors, first, axis)
    rest = tuple(k for k in range(operand.rank) if k != axis)
    last = [
        Affine(operand.shape[k] if k == axis else Dim(), tuple(int(j == k) for j in rest))
        for k in range(operand.rank)
    ]
    return gather(running, last, tuple(operand.shape[k] for k in rest))


def _along(rank: int, axis: int, offset: Dim, step: int = 1) -> list[Affine]:
    """The identity index on every axis but one, which has `offset + step * o`."""
    return [
        Affine(
            offset if k == axis else Dim(),
            tuple((step if k == axis else 1) * int(j == k) for j in range(rank)),
        )
        for k in range(rank)
    ]


def _check_axes(operand: Expr, axes: Axes) -> None:
    if not set(axes) <= set(range(operand.rank)):
        raise ShapeError(f"{axes} must be axes of {show_shape(operand.shape)}")
    if operand.dtype != "real":
        raise ShapeError("an extreme or a product needs numbers, not truth values")
