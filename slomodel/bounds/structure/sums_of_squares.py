"""Recognition of sums of squares of a tensor less a sum of powers of vectors."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import slomodel.functions as table
from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.structure.gram_form import as_written
from slomodel.calculus import degree, gradient
from slomodel.calculus.squares import outermost_squares
from slomodel.ir import build
from slomodel.ir.expr import Axes, Einsum, Expr, Input, Map
from slomodel.ir.linear import repeats
from slomodel.ir.walk import inputs, substitute

_MOST_ORDER = 12
"""Largest order of a symmetric power."""


@dataclass(frozen=True, slots=True)
class SumOfSquares:
    """weight · ‖residual‖² plus a remainder of degree at most `rest`."""

    weight: Expr
    residual: Expr
    rest: int


def sums_of_squares(part: ObjectivePart) -> Iterator[SumOfSquares]:
    """The sums of squares that the objective is a multiple of, up to a quadratic."""
    variables = set(part.variables)
    for node, residual in outermost_squares(part.objective, part.varying).items():
        if not isinstance(node, Einsum) or len(node.operands) != 2 or node.output:
            continue
        if len(node.dims) != residual.rank:
            continue
        stand_in = build.data("sum of squares", ())
        (others,) = substitute((part.objective,), {node: stand_in})
        rest = degree(others, variables)
        (weight,) = gradient(others, [stand_in])
        free = set(inputs(weight))
        if rest is None or rest > 2 or stand_in in free or not free.isdisjoint(variables):
            continue
        yield SumOfSquares(weight, residual, rest)


def difference(residual: Expr, varying: Collection[Expr]) -> tuple[Expr, Expr | None]:
    """P and Y with ± (P - Y) = residual, where Y is constant; Y is None where it is 0."""
    if isinstance(residual, Map) and residual.function is table.sub:
        whole = tuple(range(residual.rank))
        own = [operand for operand in residual.operands if operand in varying]
        if residual.axes == (whole, whole) and len(own) == 1:
            first, second = residual.operands
            return (own[0], second if own[0] is first else first)
    return residual, None


@dataclass(frozen=True, slots=True)
class PowerSum:
    """weight · ‖Y - Σ_i x_i^⊗k‖² plus a remainder of degree at most `rest`.

    `vectors` (m, d), transposed where `turned`, or one vector (d,); Y is None where it is 0.
    """

    weight: Expr
    vectors: Input
    turned: bool
    order: int
    target: Expr | None
    rest: int


def power_sum(part: ObjectivePart) -> PowerSum | None:
    """The objective as such a sum, however its products are written; None where it is not one."""
    part = as_written(part)
    for squares in sums_of_squares(part):
        product, target = difference(squares.residual, part.varying)
        power = _power(product)
        if power is not None and power[0] in part.varying:
            return PowerSum(squares.weight, *power, product.rank, target, squares.rest)
    return None


def _power(product: Expr) -> tuple[Input, bool] | None:
    """x and whether it is transposed, if the product is Σ_i x[i, a] x[i, b] .. or x[a] x[b] .."""
    factors = _factors(product)
    if factors is None or len(factors) != product.rank or product.rank < 2:
        return None
    x = factors[0][0]
    if not isinstance(x, Input) or any(one is not x for one, _ in factors) or x.rank not in (1, 2):
        return None
    axes = [own for _, own in factors]
    if x.rank == 1:
        return (x, False) if {own[0] for own in axes} == set(range(product.rank)) else None
    for place in (0, 1):
        summed = {own[place] for own in axes}
        free = {own[1 - place] for own in axes}
        if len(summed) == 1 and min(summed) >= product.rank and free == set(range(product.rank)):
            return x, place == 1
    return None


def _factors(product: Expr) -> list[tuple[Expr, Axes]] | None:
    """The factors of a product with the axes of each; None if it is not one or sums lie between.

    Axes 0, 1, .. are those of the product, others are summed over all factors.
    """
    result: list[tuple[Expr, Axes]] = []
    fresh = product.rank
    stack = [(product, tuple(range(product.rank)))]
    while stack:
        node, labels = stack.pop()
        if len(result) + len(stack) > _MOST_ORDER:
            return None
        if isinstance(node, Map) and node.function is table.mul:
            for one, own in zip(node.operands, node.axes, strict=True):
                stack.append((one, tuple(labels[axis] for axis in own)))
        elif isinstance(node, Map) and node.function is table.square:
            stack += [(node.operands[0], labels)] * 2
        elif isinstance(node, Einsum):
            if len(set(node.output)) < len(node.output) or repeats(node):
                return None
            place = dict(zip(node.output, labels, strict=True))
            for label in range(len(node.dims)):
                if label not in place:
                    place[label] = fresh
                    fresh += 1
            for one, own in zip(node.operands, node.inputs, strict=True):
                stack.append((one, tuple(place[label] for label in own)))
        else:
            result.append((node, labels))
    return result
