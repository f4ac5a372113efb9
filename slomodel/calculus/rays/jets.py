"""Taylor coefficients of every node along a ray x + t v, with a bound on the remainder.

A jet holds enclosures of c_k = u^(k)/k! at t = 0 for k < 4, and S >= sup |u''''| T⁴/24 over
0 <= t <= T; None stands for a derivative that is 0 everywhere, and so for all above it. With S and
s_k >= |c_k| T^k every derivative is bounded over the ray: |u^(k)| T^k/k! is at most
M_k = Σ_j C(j, k) s_j + C(4, k) S, j >= k. Products and compositions need S from the M_k of their
operands alone, in numbers >= 0, so that nothing is enclosed over the ray but one derivative of
order 4 of each function.

Where that derivative may be unknown, at kinks, a jet also encloses u, u' and u''/2 over the ray
by rules of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product

from slomodel.calculus.rays.contractions import (
    contract_midrad,
    contract_sizes,
    contract_wide,
    is_elementwise,
)
from slomodel.calculus.rays.numbers import MidRad, Range, combined, enlarged, least, raised, unit
from slomodel.functions import abs, add, div, gt, mul, neg, sub, where
from slomodel.ir import build
from slomodel.ir.dims import Shape
from slomodel.ir.expr import Const, Einsum, Expr

ORDERS = 4
"""Coefficients of orders 0 to 3 are enclosed at the start; that of order 4 is bounded."""
OVER = 3
"""The orders that are enclosed over the ray where the fourth may be unknown."""

_NONE = Const(0.0)

Orders = Sequence[MidRad | None]
Sizes = Sequence[Expr | None]
Terms = list[tuple[float, list[MidRad]]]


@dataclass(frozen=True, slots=True)
class Jet:
    """Taylor coefficients of orders 0 to 3 at t = 0, and a bound on the fourth times T⁴.

    `third`, if given, bounds the third times T³ over the ray by a rule of its own, which is closer
    for long rays.

    `second`, if given, encloses the second over the ray by a rule of its own, which needs no fourth
    derivative. `ends`, if given, bound the values over the ray independently of the coefficients.
    `over`, if given, enclose the coefficients of orders 0 to 2 over the ray where `fourth` may be
    infinite.
    """

    at: Orders
    fourth: Expr | None = None
    third: Expr | None = None
    ends: Range | None = None
    over: Orders | None = None
    second: Range | None = None

    @property
    def is_affine(self) -> bool:
        """Whether the node is affine in t, as all derivatives of order 2 are 0 everywhere."""
        higher = (*self.at[2:], self.fourth, self.over)
        return all(one is None for one in higher)

    @property
    def moves(self) -> bool:
        """Whether the node may depend on t."""
        return self.at[1] is not None or self.over is not None


def constant_jet(value: MidRad) -> Jet:
    """The jet of a number that does not depend on t."""
    return Jet([value, None, None, None])


def known(number: MidRad | None) -> MidRad:
    """A derivative that is not zero everywhere."""
    assert number is not None
    return number


def sizes(jet: Jet, end: Expr) -> list[Expr | None]:
    """Upper bounds M_k on |u^(k)| T^k/k! over the ray, 0 <= k <= 4, as computed."""
    shifted = _shifted(_scaled(jet.at, end), jet)
    if jet.over is not None:
        for k, power in enumerate((None, end, mul(end, end))):
            own, taylor = jet.over[k], shifted[k]
            size = None if own is None else own.size if power is None else mul(power, own.size)
            shifted[k] = size if size is None or taylor is None else least(taylor, size)
    return shifted


def _scaled(at: Orders, end: Expr) -> list[Expr | None]:
    """s_k >= |c_k| T^k, as computed."""
    powers = (None, end, mul(end, end), mul(mul(end, end), end))
    return [
        None if one is None else one.size if power is None else mul(power, one.size)
        for one, power in zip(at, powers, strict=True)
    ]


def _shifted(scaled: Sizes, jet: Jet) -> list[Expr | None]:
    """Σ_j C(j, k) s_j for 0 <= k <= 4, with the fourth for s_4 or the third for s_3 as the last."""
    result = _shift([*scaled, jet.fourth])
    if jet.fourth is not None and jet.third is not None:
        for k, other in enumerate(_shift([*scaled[:-1], jet.third])):
            own = result[k]
            result[k] = other if own is None or other is None else least(own, other)
    return result


def _shift(coefficients: Sizes) -> list[Expr | None]:
    """The coefficients of a polynomial shifted by 1."""
    result = list(coefficients)
    for k in range(len(result) - 1):
        for j in range(len(result) - 2, k - 1, -1):
            result[j] = _plus(result[j], result[j + 1])
    return result


def _plus(a: Expr | None, b: Expr | None) -> Expr | None:
    return a if b is None else b if a is None else add(a, b)


def reach(jet: Jet, end: Expr) -> Expr:
    """How far values over the ray are from the midpoint at its start, as computed."""
    start = known(jet.at[0])
    rest: Expr | None = None
    if jet.moves:
        rest = _shifted([None, *_scaled(jet.at, end)[1:]], jet)[0]
        if jet.over is not None:
            over = known(jet.over[0])
            own = enlarged([abs(sub(over.mid, start.mid)), over.rad or _NONE])
            rest = own if rest is None else least(rest, own)
    return _plus(start.rad, rest) or _NONE


def values(jet: Jet, end: Expr) -> Range:
    """The range of the values over the ray."""
    start, slope = known(jet.at[0]), jet.at[1]
    if jet.over is not None:
        own = known(jet.over[0]).range
    elif slope is None:
        own = start.range
    else:
        # With a = c_1 T/2 and b = c_2 T²/8, c_1 t + c_2 t² is a + 2b + (a + 4b)s + 2b s² for the
        # s = 2t/T - 1 from -1 to 1, and s² lies between 0 and 1: within |a + 4b| + |b| of a + 3b.
        linear, quadratic = mul(mul(0.5, end), slope.mid), jet.at[2]
        errors = [] if start.rad is None else [start.rad]
        errors += [] if slope.rad is None else [mul(end, slope.rad)]
        if quadratic is None:
            mid, errors = add(start.mid, linear), [abs(linear), *errors]
        else:
            square = mul(end, end)
            bend = mul(mul(0.125, square), quadratic.mid)
            mid = add(start.mid, add(linear, mul(3.0, bend)))
            errors = [abs(add(linear, mul(4.0, bend))), abs(bend), *errors]
            errors += [] if quadratic.rad is None else [mul(square, quadratic.rad)]
        higher = _shifted([None, None, None, *_scaled(jet.at, end)[3:]], jet)[0]
        errors += [] if higher is None else [higher]
        distance = raised([*errors, mul(8.0 * unit(), abs(mid))])
        own = Range(sub(mid, distance), add(mid, distance))
    return own if jet.ends is None else own.meet(jet.ends)


def spread(jet: Jet, end: Expr) -> Orders:
    """Enclosures of u, u', u''/2 over the ray."""
    if jet.over is not None:
        return jet.over
    scaled = _scaled(jet.at, end)
    result: list[MidRad | None] = []
    for k, power in enumerate((None, end, mul(end, end))):
        own = jet.at[k]
        rest = _shifted([None if j <= k else one for j, one in enumerate(scaled)], jet)[k]
        if own is None or rest is None:
            result.append(own)
            continue
        rest = rest if power is None else quotient_of_length(rest, power)
        result.append(MidRad(own.mid, raised([rest, *([] if own.rad is None else [own.rad])])))
    return result


def second_of(jet: Jet, end: Expr) -> Range:
    """The range of u''/2 over the ray."""
    if jet.second is not None:
        return jet.second
    taylor = None if jet.is_affine else spread(jet, end)[2]
    return Range(_NONE, _NONE) if taylor is None else taylor.range


def quotient_of_length(size: Expr, power: Expr) -> Expr:
    """A bound times a power of T over that power; 0 where T is 0."""
    return where(gt(power, 0.0), div(size, power), 0.0)


def convolution(orders: Sequence[Orders], k: int, equal: bool = False) -> Terms:
    """The terms of the k-th coefficient of a product, each factor given by its coefficients.

    Of factors that are `equal`, as those of a square are, terms with the same coefficients are one
    with the number of them as its weight.
    """
    terms: dict[tuple[int, ...], tuple[float, list[MidRad]]] = {}
    for split in _splits(k, len(orders)):
        factors = [own[j] if j < len(own) else None for own, j in zip(orders, split, strict=True)]
        if all(factor is not None for factor in factors):
            key = tuple(sorted(split)) if equal else split
            before = terms.get(key, (0.0, []))[0]
            terms[key] = (before + 1.0, [known(factor) for factor in factors])
    return list(terms.values())


def _splits(k: int, count: int) -> list[tuple[int, ...]]:
    return [split for split in product(range(k + 1), repeat=count) if sum(split) == k]


def _largest_factors(
    factors: Sequence[Sizes], equal: bool, order: int = ORDERS
) -> list[tuple[float, list[Expr]]]:
    """The terms of the last coefficient of a product, given by bounds on the coefficients."""
    terms: dict[tuple[int, ...], tuple[float, list[Expr]]] = {}
    for split in _splits(order, len(factors)):
        result = [own[j] for own, j in zip(factors, split, strict=True)]
        present = [one for one in result if one is not None]
        if len(present) == len(result):
            key = tuple(sorted(split)) if equal else split
            terms[key] = (terms.get(key, (0.0, []))[0] + 1.0, present)
    return list(terms.values())


def weighted(weight: float, factors: Sequence[Expr]) -> Expr:
    """A weight times a product."""
    result = reduce(mul, factors)
    return result if weight == 1.0 else mul(weight, result)


def summed(terms: Terms) -> MidRad | None:
    """The sum of weighted products; None for no terms."""
    return combined(terms) if terms else None


def product_jet(a: Jet, b: Jet, end: Expr) -> Jet:
    """The jet of a product, elementwise."""
    equal = a is b
    at = [summed(convolution([a.at, b.at], k, equal)) for k in range(ORDERS)]
    bounds = [sizes(a, end), sizes(b, end)]
    # For two factors that move, a rule for the third takes more than its ends are closer.
    orders = (ORDERS,) if a.moves and b.moves else (ORDERS, ORDERS - 1)
    fourth, *third = (
        raised([weighted(*term) for term in terms]) if terms else None
        for terms in (_largest_factors(bounds, equal, order) for order in orders)
    )
    # Only bounds of both factors by other rules say more than the coefficients of the product.
    own = [one.ends is not None or not one.moves for one in (a, b)]
    ends = values(a, end) * values(b, end) if equal or (all(own) and (a.moves or b.moves)) else None
    over = None
    if a.over is not None or b.over is not None:
        both = [spread(a, end), spread(b, end)]
        over = [summed(convolution(both, k, equal)) for k in range(OVER)]
    second = None
    for still, moving in ((a, b), (b, a)):
        if moving.second is not None and not still.moves:
            second = known(still.at[0]).range * moving.second
    return Jet(at, fourth, third[0] if third else None, ends, over, second)


def contraction_jet(node: Einsum, jets: Sequence[Jet], end: Expr) -> Jet:
    """The jet of a sum of products."""
    if not any(jet.moves for jet in jets):
        return constant_jet(contract_midrad(node, [known(jet.at[0]) for jet in jets]))
    if len(jets) == 1:
        return _sum_jet(node, jets[0], end)
    if len(set(node.inputs)) == 1 and is_elementwise(node):
        return _sum_of_products(node, jets, end)
    at = [
        summed([(1.0, [contract_midrad(node, factors)]) for _, factors in convolution(orders, k)])
        for orders in [[jet.at for jet in jets]]
        for k in range(ORDERS)
    ]
    terms = _largest_factors([sizes(jet, end) for jet in jets], False)
    fourth = raised([contract_sizes(node, own) for _, own in terms]) if terms else None
    over = None
    if any(jet.over is not None for jet in jets):
        wide = [spread(jet, end) for jet in jets]
        over = [
            summed([(1.0, [contract_wide(node, own)]) for _, own in convolution(wide, k)])
            for k in range(OVER)
        ]
    second = None
    moving = [jet for jet in jets if jet.moves]
    if len(moving) == 1 and moving[0].second is not None:
        own = moving[0].second.midrad
        second = contract_wide(node, [own if jet.moves else known(jet.at[0]) for jet in jets]).range
    return Jet(at, fourth, over=over, second=second)


def _sum_jet(node: Einsum, own: Jet, end: Expr) -> Jet:
    """The jet of a sum along axes of one operand, or of a view of it."""

    def added(orders: Orders) -> list[MidRad | None]:
        return [None if order is None else contract_midrad(node, [order]) for order in orders]

    def between(inner: Range) -> Range:
        low, high = (contract_midrad(node, [MidRad(one)]).range for one in (inner.lo, inner.hi))
        return Range(low.lo, high.hi)

    # Taylor's range of a sum of polynomials takes less and is about as close.
    is_polynomial = own.moves and own.fourth is None and own.over is None
    ends = None if own.ends is None or is_polynomial else between(values(own, end))
    second = None if own.second is None else between(own.second)
    third, fourth = (
        None if one is None else contract_sizes(node, [one]) for one in (own.third, own.fourth)
    )
    over = None if own.over is None else added(own.over)
    return Jet(added(own.at), fourth, third, ends, over, second)


def _sum_of_products(node: Einsum, jets: Sequence[Jet], end: Expr) -> Jet:
    """The jet of a sum of elementwise products, which take as many operations as one of its terms.

    A sum for each order takes less than one for each pair of orders and of radii.
    """
    # A variable in place of the products, as a sum of a sum would become one sum.
    product_of_all = build.variable("product", node.operands[0].shape)
    products = whole(reduce(lambda a, b: product_jet(a, b, end), jets), product_of_all.shape)
    one = build.einsum([product_of_all], node.inputs[:1], node.output, node.dims)
    return contraction_jet(one, [products], end) if isinstance(one, Einsum) else products


def mapped(jet: Jet, linear: Callable[[MidRad], MidRad]) -> Jet:
    """The jet of a linear function of numbers with radii."""

    def each(orders: Orders) -> list[MidRad | None]:
        return [None if order is None else linear(order) for order in orders]

    def size(one: Expr | None) -> Expr | None:
        return None if one is None else linear(MidRad(build.zeros(one.shape), one)).rad

    over = None if jet.over is None else each(jet.over)
    return Jet(each(jet.at), size(jet.fourth), size(jet.third), over=over)


def negated(jet: Jet) -> Jet:
    """The jet of -u."""
    ends, second = (None if one is None else -one for one in (jet.ends, jet.second))
    return replace(mapped(jet, lambda one: -one), ends=ends, second=second)


def viewed(jet: Jet, view: Callable[[Expr], Expr]) -> Jet:
    """The jet of a view, which moves or repeats elements."""

    def moved(one: MidRad | None) -> MidRad | None:
        if one is None:
            return None
        return MidRad(view(one.mid), None if one.rad is None else view(one.rad))

    def turned(one: Range | None) -> Range | None:
        if one is None:
            return None
        # A constant stands for an array of equal numbers.
        lo, hi = (end if isinstance(end, Const) else view(end) for end in (one.lo, one.hi))
        return Range(lo, hi)

    return Jet(
        list(map(moved, jet.at)),
        None if jet.fourth is None else view(jet.fourth),
        None if jet.third is None else view(jet.third),
        turned(jet.ends),
        None if jet.over is None else list(map(moved, jet.over)),
        turned(jet.second),
    )


def whole(jet: Jet, shape: Shape) -> Jet:
    """The jet with its scalars broadcast to a shape."""
    return viewed(
        jet, lambda one: build.broadcast(one, (), shape) if shape and not one.rank else one
    )


def third_of(jet: Jet, end: Expr) -> Expr | None:
    """Bound on the third coefficient times T³."""
    return jet.third if jet.third is not None else sizes(jet, end)[ORDERS - 1]


def sum_jet(a: Jet, b: Jet, end: Expr) -> Jet:
    """The jet of a sum, elementwise."""

    def joined(left: Orders, right: Orders) -> list[MidRad | None]:
        pairs = zip(left, right, strict=True)
        return [p if q is None else q if p is None else p + q for p, q in pairs]

    def added(*sizes_: Expr | None) -> Expr | None:
        present = [size for size in sizes_ if size is not None]
        return enlarged(present) if len(present) > 1 else present[0] if present else None

    fourth, third = added(a.fourth, b.fourth), None
    if fourth is not None:
        thirds = [third_of(one, end) for one in (a, b)]
        third = added(*thirds) if a.third is not None or b.third is not None else None
    ends = over = None
    # Where both move, Taylor's range of the sum takes less and is about as close.
    both_move = a.moves and b.moves
    if not both_move and (a.ends is not None or b.ends is not None):
        ends = values(a, end) + values(b, end)
    if a.over is not None or b.over is not None:
        over = joined(spread(a, end), spread(b, end))
    second = None
    if a.second is not None or b.second is not None:
        second = second_of(a, end) + second_of(b, end)
    return Jet(joined(a.at, b.at), fourth, third, ends, over, second)


def composed(outer: Orders, u: Orders) -> list[MidRad | None]:
    """The coefficients of φ(u(t)), as many as u has, from φ^(j)/j! and those of u."""
    result: list[MidRad | None] = [outer[0]]
    for k in range(1, len(u)):
        terms: Terms = []
        for weight, order, own in _CHAIN[k]:
            value, inner = outer[order], [u[j] for j in own]
            if value is not None and all(one is not None for one in inner):
                terms.append((weight, [*(known(one) for one in inner), value]))
        result.append(summed(terms))
    return result


def largest_composed(outer: Sizes, u: Sizes, k: int = ORDERS) -> Expr | None:
    """Bound on the k-th coefficient of φ(u(t)) from those on φ^(j)/j! and the M_k of u."""
    terms = []
    for weight, order, own in _CHAIN[k]:
        factors = [outer[order], *(u[j] for j in own)]
        present = [factor for factor in factors if factor is not None]
        if len(present) == len(factors):
            terms.append(weighted(weight, present))
    return raised(terms) if terms else None


_CHAIN: dict[int, tuple[tuple[float, int, tuple[int, ...]], ...]] = {
    1: ((1.0, 1, (1,)),),
    2: ((1.0, 2, (1, 1)), (1.0, 1, (2,))),
    3: ((1.0, 3, (1, 1, 1)), (2.0, 2, (1, 2)), (1.0, 1, (3,))),
    4: (
        *((1.0, 4, (1, 1, 1, 1)), (3.0, 3, (1, 1, 2)), (1.0, 2, (2, 2))),
        *((2.0, 2, (1, 3)), (1.0, 1, (4,))),
    ),
}
"""For each k the terms w f_j c_p c_q.. of the k-th coefficient of φ(u(t)): w, j, (p, q..)."""


def expanded(at: Orders, fourth: Expr, distance: Expr) -> list[Expr | None]:
    """Bounds on |φ^(j)|/j!, 0 <= j <= 4, within a distance of the point of these coefficients.

    `fourth` is that of order 4.
    """
    result: list[Expr | None] = [*(None if one is None else one.size for one in at), fourth]
    for k in range(ORDERS):
        for j in range(ORDERS - 1, k - 1, -1):
            above = result[j + 1]
            result[j] = _plus(result[j], None if above is None else mul(distance, above))
    return [None if one is None else raised([one]) for one in result]


def reciprocal_jet(b: Jet, end: Expr) -> Jet:
    """The jet of 1/b, (1/b)^(j)/j! = (-1)^j/b^(j + 1); unbounded where b may be 0."""
    start, inverse = known(b.at[0]), values(b, end).reciprocal
    size = inverse.magnitude
    largest: list[Expr | None] = [size]
    powers = [size]
    for _ in range(ORDERS):
        powers.append(mul(powers[-1], size))
        largest.append(powers[-1])
    value = div(1.0, start.mid)
    outer: list[MidRad | None] = []
    power = value
    for k in range(ORDERS):
        errors = [] if start.rad is None else [mul(mul(float(k + 1), start.rad), powers[k + 1])]
        outer.append(MidRad(power).rounded(*errors, steps=2.0 * k + 2.0))
        power = neg(mul(power, value))
    wide = None
    if b.over is not None:
        ranges = [inverse.midrad]
        for _ in range(OVER - 1):
            ranges.append(-(ranges[-1] * inverse.midrad))
        wide = composed(ranges, spread(b, end))
    own = sizes(b, end)
    third, fourth = (largest_composed(largest, own, k) for k in (ORDERS - 1, ORDERS))
    return Jet(composed(outer, b.at), fourth, third, inverse, wide)


def quotient_jet(a: Jet, b: Jet, end: Expr) -> Jet:
    """The jet of a/b."""
    result = product_jet(a, reciprocal_jet(b, end), end)
    return replace(result, ends=values(a, end) / values(b, end))
