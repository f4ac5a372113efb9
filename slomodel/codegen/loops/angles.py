"""Sines and cosines of sums over pairs, as products of those of each term.

cos(a_i - b_j) = cos a_i cos b_j + sin a_i sin b_j: n + m sines and cosines and not n m. The result
has an absolute error of a few roundings, as the function of the rounded difference has for angles
of order 1. For nearly equal angles the sine of a difference is less accurate than that: its error
is one that changes of the angles by one rounding would make. The same for sums exp(a_i + b_j) would
overflow where the sum does not, so they are left as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from slomodel.codegen.loops.access import Numbers, number_of
from slomodel.functions import add, cos, mul, neg, sin, sub
from slomodel.ir import build
from slomodel.ir.expr import Axes, Expr, Gather, Index, Map, is_listed
from slomodel.ir.function import ScalarFunction
from slomodel.ir.walk import rewrite

_NARROW, _NARROW_LOOKUPS = 4, 16
"""By this factor more pairs than angles pay for the products, or for looking up two numbers."""
_LEAST = 16
"""Angles of each side."""
_MOST_TERMS = 8

Place = tuple[Axes, tuple[Index, ...]]
"""The axes of the pairs along which angles run, and the index if they are looked up."""


def with_products_of_angles(roots: tuple[Expr, ...], numbers: Numbers) -> tuple[Expr, ...]:
    """Lowered roots with the sines and cosines of pairs of angles as products."""

    def rule(node: Expr) -> Expr:
        if not isinstance(node, Map) or node.function not in (cos, sin):
            return node
        terms = list(_terms(node.operands[0]))
        sides: dict[Place, list[tuple[bool, Expr]]] = {}
        for is_added, term, place in terms:
            if term.rank:
                sides.setdefault(place, []).append((is_added, term))
        if len(sides) != 2 or len(terms) > _MOST_TERMS:
            return node
        first, second = sides
        if not set(first[0]).isdisjoint(second[0]) and not (first[1] and second[1]):
            return node
        if not all(_is_narrow(own[0][1], place, node, numbers) for place, own in sides.items()):
            return node
        sides[first] += [(is_added, term) for is_added, term, _ in terms if not term.rank]
        return _product(node, (first, _sum(sides[first])), (second, _sum(sides[second])))

    return rewrite(roots, rule)


def _terms(angle: Expr) -> Iterator[tuple[bool, Expr, Place]]:
    """The terms of a sum, with True for those that are added and False for the others."""
    waiting: list[tuple[bool, Expr, Axes]] = [(True, angle, tuple(range(angle.rank)))]
    while waiting:
        is_added, node, axes = waiting.pop()
        if isinstance(node, Map) and node.function in (add, sub, neg) and node.rank == angle.rank:
            signs = {add: (True, True), sub: (True, False), neg: (False,)}[node.function]
            for sign, operand, own in zip(signs, node.operands, node.axes, strict=True):
                place = tuple(axes[axis] for axis in own)
                waiting.append((is_added == sign, operand, place))
        elif isinstance(node, Gather) and is_listed(node):
            yield is_added, node.operands[0], (axes, node.index)
        else:
            yield is_added, node, (axes, ())


def _is_narrow(angles: Expr, place: Place, node: Expr, numbers: Numbers) -> bool:
    own, pairs = (
        prod(max(0, number_of(dim, numbers)) for dim in one.shape) for one in (angles, node)
    )
    return own >= _LEAST and (_NARROW_LOOKUPS if place[1] else _NARROW) * own <= pairs


def _sum(terms: list[tuple[bool, Expr]]) -> Expr:
    (is_added, value), *others = terms
    value = value if is_added else build.apply(neg, value)
    for is_added, other in others:
        value = build.apply(add if is_added else sub, value, other)
    return value


def _product(node: Map, left: tuple[Place, Expr], right: tuple[Place, Expr]) -> Expr:
    """cos(a + b) or sin(a + b) for angles a and b at their places."""

    def times(one: ScalarFunction, other: ScalarFunction) -> Expr:
        operands, axes = [], []
        for function, (place, angles) in ((one, left), (other, right)):
            value = build.apply(function, angles)
            if place[1]:
                shape = tuple(node.shape[axis] for axis in place[0])
                value = build.gather(value, place[1], shape)
            operands.append(value)
            axes.append(place[0])
        return build.apply_along(mul, operands, axes, node.shape)

    if node.function is cos:
        return build.apply(sub, times(cos, cos), times(sin, sin))
    return build.apply(add, times(sin, cos), times(cos, sin))
