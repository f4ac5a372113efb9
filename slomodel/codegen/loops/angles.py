"""Sines and cosines of sums over pairs, as products of those of each term.

cos(a_i - b_j) = cos a_i cos b_j + sin a_i sin b_j: n + m sines and cosines and not n m. The result
has an absolute error of a few rounding errors, as the function of the rounded difference has for
angles of order 1. For nearly equal angles the sine of a difference is less accurate than that: its
error is one that changes of the angles by one rounding would make. The same for sums exp(a_i + b_j)
would overflow where the sum does not, so they are left as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from slomodel.codegen.loops.access import Numbers
from slomodel.codegen.loops.separated import SeparateProduct, SeparateProducts, separated, terms_of
from slomodel.functions import add, cos, mul, neg, sin, sub
from slomodel.ir import build
from slomodel.ir.dims import Shape
from slomodel.ir.expr import Axes, Einsum, Expr, Gather, Index, Map, Recur, is_listed
from slomodel.ir.function import ScalarFunction
from slomodel.ir.loop import Loop
from slomodel.ir.walk import rewrite

_NARROW, _NARROW_LOOKUPS = 4, 16
"""Factor by which pairs outnumber angles to pay for products, or for looking up two numbers."""
_LEAST = 16
"""Angles of each side."""
_MOST_TERMS = 8

Place = tuple[Axes, tuple[Index, ...]]
"""The axes of the pairs along which angles run, and the index if they are looked up."""


def with_products_of_angles(roots: tuple[Expr, ...], numbers: Numbers) -> tuple[Expr, ...]:
    """Lowered roots with the sines and cosines of pairs of angles as products.

    Those of one step of a recurrence, too.
    """
    loops: dict[Loop, Loop] = {}
    known: dict[Expr, SeparateProducts] = {}

    def rule(node: Expr) -> Expr:
        if isinstance(node, Recur):
            if node.loop not in loops:
                loops[node.loop] = _of_steps(node.loop, numbers)
            return Recur(node.operands, loops[node.loop], node.state)
        if isinstance(node, Einsum):
            return separated(node, known, numbers) or node
        if not isinstance(node, Map) or node.function not in (cos, sin):
            terms_here = terms_of(node, known)
            if terms_here is not None:
                known[node] = terms_here
            return node
        terms = list(_terms(node.operands[0]))
        sides: dict[Place, list[tuple[bool, Expr]]] = {}
        for is_added, term, place in terms:
            if term.rank:
                sides.setdefault(place, []).append((is_added, term))
        if len(sides) != 2 or len(terms) > _MOST_TERMS:
            return node
        first, second = sides
        if not all(_is_narrow(own[0][1], place, node, numbers) for place, own in sides.items()):
            return node
        sides[first] += [(is_added, term) for is_added, term, _ in terms if not term.rank]
        factors = [_Angles(place, sides[place]) for place in (first, second)]
        products = _products(node.function, *factors)
        result = _value(products, factors, node.shape)
        if not first[1] and not second[1]:
            known[result] = products
        return result

    return rewrite(roots, rule)


def _of_steps(loop: Loop, numbers: Numbers) -> Loop:
    values = with_products_of_angles(tuple(update.value for update in loop.updates), numbers)
    updates = (replace(one, value=v) for one, v in zip(loop.updates, values, strict=True))
    return replace(loop, updates=tuple(updates))


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
    own, pairs = (prod(max(0, dim.value(numbers)) for dim in one.shape) for one in (angles, node))
    return own >= _LEAST and (_NARROW_LOOKUPS if place[1] else _NARROW) * own <= pairs


def _sum(terms: list[tuple[bool, Expr]]) -> Expr:
    (is_added, value), *others = terms
    value = value if is_added else build.apply(neg, value)
    for is_added, other in others:
        value = build.apply(add if is_added else sub, value, other)
    return value


class _Angles:
    """The angles of one side at their place, as +angles or, if `is_negative`, as -angles.

    The sine and the cosine of -angles are those of the angles, which other pairs may need too.
    """

    def __init__(self, place: Place, terms: list[tuple[bool, Expr]]) -> None:
        self.place = place
        self.is_negative = not any(is_added for is_added, _ in terms)
        self.angles = _sum([(is_added != self.is_negative, term) for is_added, term in terms])


def _products(function: ScalarFunction, left: _Angles, right: _Angles) -> SeparateProducts:
    """cos(a + b) or sin(a + b) for angles a and b at their places, as the sum of two products."""
    pairs = ((cos, cos), (sin, sin)) if function is cos else ((sin, cos), (cos, sin))
    terms = []
    for pair in pairs:
        is_added = pair != (sin, sin)
        factors = []
        for one, side in zip(pair, (left, right), strict=True):
            is_added = is_added != (one is sin and side.is_negative)
            factors.append((build.apply(one, side.angles), side.place[0]))
        terms.append(SeparateProduct(is_added, tuple(factors)))
    return tuple(terms)


def _value(terms: SeparateProducts, sides: list[_Angles], shape: Shape) -> Expr:
    """The sum of products, at the places of both sides."""
    products = []
    for term in terms:
        operands = []
        for (value, axes), side in zip(term.factors, sides, strict=True):
            own = tuple(shape[axis] for axis in axes)
            index = side.place[1]
            operands.append(build.gather(value, index, own) if index else value)
        axes_of = [axes for _, axes in term.factors]
        products.append((term.is_added, build.apply_along(mul, operands, axes_of, shape)))
    products.sort(key=lambda pair: not pair[0])
    return _sum(products)
