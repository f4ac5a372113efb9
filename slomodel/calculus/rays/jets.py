"""Derivatives of every node along a ray x + t v: at t = 0, and over 0 <= t <= end.

A jet holds enclosures of u, u', u'' at t = 0 and of u, u', u'', u''' over the ray; None stands for
a derivative that is 0 everywhere, and so for all above it. The third derivative of a node comes
from those of its operands, by the chain or Leibniz rule; lower ones from centred forms: the k-th
derivative is its value at 0 plus t times a value of the next one. Where the third derivative may be
unknown, at kinks, each order has its own rule. Scalars use both, and intersect them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from math import factorial, prod

from slomodel.calculus.rays.contractions import contract_midrad, contract_wide, is_elementwise
from slomodel.calculus.rays.numbers import UNIT, MidRad, Range, combined, enlarged
from slomodel.functions import abs, add, maximum, minimum, mul, sub
from slomodel.ir import build
from slomodel.ir.dims import Shape
from slomodel.ir.expr import Const, Einsum, Expr

ORDERS = 4
"""Derivatives of orders 0 to 3 are enclosed over the ray, those of orders 0 to 2 at its start."""
_HIGHEST = ORDERS - 1

Orders = Sequence[MidRad | None]
Terms = list[tuple[float, list[MidRad]]]


@dataclass(frozen=True, slots=True)
class Jet:
    """Derivatives of orders 0 to 2 at t = 0, and those of orders 0 to 3 over the ray.

    `ends`, if given, bound the values over the ray independently of `over`. `rough`: the third
    derivative may be unknown.
    """

    at: Orders
    over: Orders
    ends: Range | None = None
    rough: bool = False

    @property
    def moves(self) -> bool:
        """Whether the node may depend on t."""
        return self.over[1] is not None

    @property
    def values(self) -> Range:
        """The range of the values over the ray."""
        own = known(self.over[0]).range
        return own if self.ends is None else own.meet(self.ends)


def constant_jet(value: MidRad) -> Jet:
    """The jet of a number that does not depend on t."""
    return Jet([value, None, None], [value, None, None, None])


def known(number: MidRad | None) -> MidRad:
    """A derivative that is not zero everywhere."""
    assert number is not None
    return number


def centred(at: MidRad | None, following: MidRad, end: Expr) -> MidRad:
    """The numbers a + t r for 0 <= t <= `end`, a at the start and r among those of `following`.

    t(m ± r) lies between 2 low and 2 high, low = end/2 min(0, m - r), high = end/2 max(0, m + r),
    so within high - low of low + high. As |low + high| <= high - low, all roundings, at most
    10u (high - low), are within what `enlarged` adds.
    """
    half = mul(0.5, end)
    if following.rad is None:
        mid = mul(half, following.mid)
        reach = abs(mid)
    else:
        low = mul(half, minimum(sub(following.mid, following.rad), 0.0))
        high = mul(half, maximum(add(following.mid, following.rad), 0.0))
        mid, reach = add(low, high), sub(high, low)
    if at is None:
        return MidRad(mid, enlarged([reach]))
    errors = [reach] if at.rad is None else [reach, at.rad]
    sum_ = add(at.mid, mid)
    return MidRad(sum_, enlarged([*errors, mul(4.0 * UNIT, abs(sum_))]))


def completed(
    at: Orders,
    direct: Callable[[int], MidRad | None],
    highest: int,
    end: Expr,
    rough: bool = False,
    both: Sequence[int] = (),
    ends: Range | None = None,
) -> Jet:
    """The jet whose derivatives above the `highest` are 0, and whose k-th is direct(k).

    If `highest` is below 3, that derivative is constant, and equal to its value at 0. Those of the
    orders `both` are bounded by direct(k) too, which is closer over long rays.
    """
    top = min(highest, _HIGHEST)
    over: list[MidRad | None] = [None] * ORDERS
    over[top] = direct(top) if top == _HIGHEST or rough else at[top]
    for k in range(top - 1, -1, -1):
        following = over[k + 1]
        if rough and k:
            over[k] = direct(k)
        elif following is None:
            over[k] = at[k]
        else:
            over[k] = centred(at[k], following, end)
        own = direct(k) if k in both and not rough else None
        if own is not None:
            over[k] = known(over[k]).range.meet(own.range).midrad
    return Jet(list(at), over, ends, rough)


def leibniz(orders: Sequence[Orders], k: int, alike: bool = False) -> Terms:
    """The terms of the k-th derivative of a product, each factor given by its derivatives.

    Of factors that are `alike`, as those of a square are, terms with the same derivatives are one
    with the sum of their weights.
    """
    terms: dict[tuple[int, ...], tuple[float, list[MidRad]]] = {}
    for split in product(range(k + 1), repeat=len(orders)):
        factors = [own[j] for own, j in zip(orders, split, strict=True)]
        if sum(split) == k and all(factor is not None for factor in factors):
            weight = factorial(k) / prod(map(factorial, split))
            key = tuple(sorted(split)) if alike else split
            before = terms.get(key, (0.0, []))[0]
            terms[key] = (before + weight, [known(factor) for factor in factors])
    return list(terms.values())


def summed(terms: Terms) -> MidRad | None:
    """The sum of weighted products; None for no terms."""
    return combined(terms) if terms else None


def degree(jet: Jet) -> int:
    """The highest order of a derivative that is not 0 everywhere."""
    return max((k for k, one in enumerate(jet.over) if one is not None), default=0)


def product_jet(a: Jet, b: Jet, end: Expr) -> Jet:
    """The jet of a product, elementwise."""
    at = [summed(leibniz([a.at, b.at], k, a is b)) for k in range(_HIGHEST)]
    # A multiple of values without bounds of their own has no others than those by centred forms.
    linear = any(
        one.ends is None and not other.moves and known(other.at[0]).rad is None
        for one, other in ((a, b), (b, a))
    )
    return completed(
        at,
        lambda k: summed(leibniz([a.over, b.over], k, a is b)),
        degree(a) + degree(b),
        end,
        rough=a.rough or b.rough,
        ends=None if linear else a.values * b.values,
    )


def contraction_jet(node: Einsum, jets: Sequence[Jet], end: Expr) -> Jet:
    """The jet of a sum of products."""
    if not any(jet.moves for jet in jets):
        return constant_jet(contract_midrad(node, [known(jet.at[0]) for jet in jets]))
    if len(jets) == 1:
        own = jets[0]
        at = [None if one is None else contract_midrad(node, [one]) for one in own.at]
        over = [None if one is None else contract_midrad(node, [one]) for one in own.over]
        ends = None
        if own.ends is not None:
            low, high = (
                contract_midrad(node, [MidRad(one)]).range for one in (own.values.lo, own.values.hi)
            )
            ends = Range(low.lo, high.hi)
        if node.rank:
            return Jet(at, over, ends, own.rough)
        return completed(at, over.__getitem__, degree(own), end, own.rough, (1, 2), ends)
    if len(set(node.inputs)) == 1 and is_elementwise(node):
        return _sum_of_products(node, jets, end)

    def added(orders: Sequence[Orders], k: int, wide: bool) -> MidRad | None:
        contract = contract_wide if wide else contract_midrad
        terms = leibniz(orders, k)
        return summed([(weight, [contract(node, factors)]) for weight, factors in terms])

    return completed(
        [added([jet.at for jet in jets], k, False) for k in range(_HIGHEST)],
        lambda k: added([jet.over for jet in jets], k, True),
        sum(map(degree, jets)),
        end,
        rough=any(jet.rough for jet in jets),
        both=() if node.rank or not is_elementwise(node) else (1, 2),
    )


def _sum_of_products(node: Einsum, jets: Sequence[Jet], end: Expr) -> Jet:
    """The jet of a sum of elementwise products, which take as many operations as one of its terms.

    A sum for each order takes less than one for each pair of orders and of radii.
    """
    # A variable in place of the products, as a sum of a sum would become one sum.
    product_of_all = build.variable("product", node.operands[0].shape)
    products = whole(reduce(lambda a, b: product_jet(a, b, end), jets), product_of_all.shape)
    one = build.einsum([product_of_all], node.inputs[:1], node.output, node.dims)
    return contraction_jet(one, [products], end) if isinstance(one, Einsum) else products


def mapped(jet: Jet, at: Callable[[MidRad], MidRad], over: Callable[[MidRad], MidRad]) -> Jet:
    """The jet of a linear function, given for small radii (at 0) and for ranges over the ray."""
    return Jet(
        [None if one is None else at(one) for one in jet.at],
        [None if one is None else over(one) for one in jet.over],
        rough=jet.rough,
    )


def viewed(jet: Jet, view: Callable[[Expr], Expr]) -> Jet:
    """The jet of a view, which moves or repeats elements."""

    def moved(one: MidRad) -> MidRad:
        return MidRad(view(one.mid), None if one.rad is None else view(one.rad))

    ends = None if jet.ends is None else Range(view(jet.ends.lo), view(jet.ends.hi))
    return replace(mapped(jet, moved, moved), ends=ends)


def whole(jet: Jet, shape: Shape) -> Jet:
    """The jet with its scalars broadcast to a shape."""
    return viewed(
        jet, lambda one: build.broadcast(one, (), shape) if shape and not one.rank else one
    )


def sum_jet(a: Jet, b: Jet, sign: int) -> Jet:
    """The jet of a + b or a - b."""

    def joined(left: MidRad | None, right: MidRad | None) -> MidRad | None:
        if right is None:
            return left
        other = right if sign > 0 else -right
        return other if left is None else left + other

    ends = None
    if a.ends is not None or b.ends is not None:
        ends = a.values + (b.values if sign > 0 else -b.values)
    return Jet(
        [joined(p, q) for p, q in zip(a.at, b.at, strict=True)],
        [joined(p, q) for p, q in zip(a.over, b.over, strict=True)],
        ends,
        a.rough or b.rough,
    )


def quotient_jet(a: Jet, b: Jet, end: Expr) -> Jet:
    """The jet of q = a/b, by the Leibniz rule of a = q b solved for the highest derivative of q."""
    ends = a.values / b.values
    at = _quotients(a.at, b.at, MidRad(Const(1.0)) / known(b.at[0]), None)
    over = _quotients(a.over, b.over, b.values.reciprocal.midrad, ends.midrad)
    rough = a.rough or b.rough
    return completed(at, lambda k: over[k], _HIGHEST, end, rough, ends=ends)


def _quotients(a: Orders, b: Orders, inverse: MidRad, first: MidRad | None) -> list[MidRad | None]:
    """The derivatives of a/b, given 1/b and, if it is known, the value a/b."""
    found: list[MidRad | None] = []
    for k in range(len(a)):
        if k == 0 and first is not None:
            found.append(first)
            continue
        own = a[k]
        rest = [] if own is None else [(1.0, [own, inverse])]
        for j in range(k):
            q, divisor = found[j], b[k - j]
            if q is not None and divisor is not None:
                weight = factorial(k) / (factorial(j) * factorial(k - j))
                rest.append((weight, [-q, divisor, inverse]))
        found.append(summed(rest))
    return found


_CHAIN: dict[int, tuple[tuple[float, int, tuple[int, ...]], ...]] = {
    1: ((1.0, 1, (1,)),),
    2: ((1.0, 2, (1, 1)), (1.0, 1, (2,))),
    3: ((1.0, 3, (1, 1, 1)), (3.0, 2, (1, 2)), (1.0, 1, (3,))),
}
"""For each k the terms c φ^(j) u^(p) u^(q).. of the k-th derivative of φ(u(t)): c, j, (p, q..)."""


def composed(values: Orders, u: Orders, k: int) -> MidRad | None:
    """The k-th derivative, 1 to 3, of φ(u(t)) from φ', φ'', φ''' and u', u'', u'''."""
    terms: Terms = []
    for weight, order, own in _CHAIN[k]:
        outer, inner = values[order], [u[j] for j in own]
        if outer is not None and all(one is not None for one in inner):
            terms.append((weight, [*(known(one) for one in inner), outer]))
    return summed(terms)
