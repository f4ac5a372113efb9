"""Derivatives of every node along a ray x + t v: at t = 0, and their ranges over 0 <= t <= end.

A jet holds enclosures of u, u', u'' at t = 0 and the ranges of u, u', u'', u''' over [0, end]; None
stands for a derivative that is 0 everywhere, and so for all above it. The ranges of one node are
found from those of its operands by the chain or Leibniz rule, and then narrowed by centred forms:
the k-th derivative is its value at 0 plus t times a value of the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import factorial, prod
from typing import TypeVar

from slomodel.calculus.rays.contractions import (
    contract_near,
    contract_ranges,
    is_elementwise,
)
from slomodel.calculus.rays.numbers import Near, Range, outward
from slomodel.functions import maximum, minimum, mul
from slomodel.ir.expr import Const, Einsum, Expr

ORDERS = 4
"""Derivatives of orders 0 to 3 are bounded over the ray, those below the last at its start."""

Number = TypeVar("Number", Near, Range)
Orders = list[Number | None]


@dataclass(frozen=True, slots=True)
class Jet:
    """Derivatives of orders 0 to 2 at t = 0 and ranges of orders 0 to 3 over the ray."""

    at: list[Near | None]
    over: list[Range | None]

    @property
    def moves(self) -> bool:
        """Whether the node may change along the ray."""
        return self.over[1] is not None


def still_jet(value: Near) -> Jet:
    """The jet of a number that does not depend on t."""
    return Jet([value, None, None], [value.range, None, None, None])


def known(number: Number | None) -> Number:
    """A derivative that is not zero everywhere."""
    assert number is not None
    return number


def centred(at: Near | None, following: Range | None, end: Expr) -> Range | None:
    """The numbers a + t r for 0 <= t <= end, a at the start and r among those of `following`."""
    if following is None:
        return None if at is None else at.range
    moved = outward(mul(end, following.lo), mul(end, following.hi))
    moved = Range(minimum(moved.lo, Const(0.0)), maximum(moved.hi, Const(0.0)))
    return moved if at is None else at.range + moved


def narrowed(at: Sequence[Near | None], over: Sequence[Range | None], end: Expr) -> Jet:
    """The jet with each range met with its centred form.

    None among `over` below its last number stands for a range that is found from that form alone.
    The last derivative that is not 0 everywhere, below the third, is constant: its value at 0.
    """
    found = list(over)
    top = max((k for k, one in enumerate(found) if one is not None), default=0)
    for k in range(min(top, ORDERS - 2), -1, -1):
        form = centred(at[k], found[k + 1], end)
        own = found[k]
        if form is None:
            found[k] = own
        elif own is None or found[k + 1] is None:
            found[k] = form
        else:
            found[k] = own.meet(form)
    return Jet(list(at), found)


def leibniz(
    orders: Sequence[Sequence[Number | None]],
    k: int,
    multiply: Callable[[Sequence[Number]], Number],
) -> Number | None:
    """The k-th derivative of a product, each factor given by its derivatives; None for 0."""
    total: Number | None = None
    for split in product(range(k + 1), repeat=len(orders)):
        if sum(split) != k:
            continue
        factors = [own[j] for own, j in zip(orders, split, strict=True)]
        if any(factor is None for factor in factors):
            continue
        weight = factorial(k) / prod(map(factorial, split))
        term = multiply([known(factor) for factor in factors]).times(weight)
        total = term if total is None else total + term
    return total


def product_jet(
    jets: Sequence[Jet],
    end: Expr,
    near: Callable[[Sequence[Near]], Near],
    ranges: Callable[[Sequence[Range]], Range],
    direct: bool = True,
) -> Jet:
    """The jet of a product.

    With `direct` the ranges of lower orders are also found from those of the factors, and not by
    centred forms alone. These add nothing where one factor alone moves.
    """
    at = [leibniz([jet.at for jet in jets], k, near) for k in range(ORDERS - 1)]
    over: list[Range | None] = [None] * ORDERS
    highest = sum(_degree(jet) for jet in jets)
    for k in range(ORDERS - 1, -1, -1):
        top = k == min(highest, ORDERS - 1)
        if top or (direct and k < highest):
            over[k] = leibniz([jet.over for jet in jets], k, ranges)
    if direct and sum(jet.moves for jet in jets) == 1:
        return Jet(at, over)
    return narrowed(at, over, end)


def _degree(jet: Jet) -> int:
    """The highest order of a derivative that is not 0 everywhere."""
    return max((k for k, one in enumerate(jet.over) if one is not None), default=0)


def contraction_jet(node: Einsum, jets: Sequence[Jet], end: Expr) -> Jet:
    """The jet of a sum of products."""
    if not any(jet.moves for jet in jets):
        return still_jet(contract_near(node, [known(jet.at[0]) for jet in jets]))
    if len(jets) == 1:
        return Jet(
            [None if one is None else contract_near(node, [one]) for one in jets[0].at],
            [None if one is None else contract_ranges(node, [one]) for one in jets[0].over],
        )
    return product_jet(
        jets,
        end,
        lambda factors: contract_near(node, factors),
        lambda factors: contract_ranges(node, factors),
        direct=is_elementwise(node),
    )


def mapped(jet: Jet, near: Callable[[Near], Near], ranges: Callable[[Range], Range]) -> Jet:
    """The jet of a linear function, given for numbers of both kinds."""
    return Jet(
        [None if one is None else near(one) for one in jet.at],
        [None if one is None else ranges(one) for one in jet.over],
    )


def viewed(jet: Jet, view: Callable[[Expr], Expr]) -> Jet:
    """The jet with its elements in other places."""

    def near(one: Near) -> Near:
        return Near(view(one.mid), None if one.rad is None else view(one.rad))

    def ends(one: Range) -> Range:
        lo = view(one.lo)
        return Range(lo, lo) if one.is_point else Range(lo, view(one.hi))

    return mapped(jet, near, ends)


def sum_jet(a: Jet, b: Jet, sign: int) -> Jet:
    """The jet of a + b or a - b."""

    def joined(left: Number | None, right: Number | None) -> Number | None:
        if right is None:
            return left
        other = right if sign > 0 else -right
        return other if left is None else left + other

    return Jet(
        [joined(p, q) for p, q in zip(a.at, b.at, strict=True)],
        [joined(p, q) for p, q in zip(a.over, b.over, strict=True)],
    )


def quotient_jet(a: Jet, b: Jet, end: Expr) -> Jet:
    """The jet of q = a/b, by the Leibniz rule of a = q b solved for the highest derivative of q."""
    at = _quotients(a.at, b.at, ORDERS - 1)
    over = _quotients(a.over, b.over, ORDERS)
    return narrowed(at, over, end)


def _quotients(
    a: Sequence[Number | None], b: Sequence[Number | None], count: int
) -> list[Number | None]:
    found: list[Number | None] = []
    for k in range(count):
        rest = a[k]
        for j in range(k):
            if found[j] is None or b[k - j] is None:
                continue
            weight = factorial(k) / (factorial(j) * factorial(k - j))
            term = (known(found[j]) * known(b[k - j])).times(weight)
            rest = -term if rest is None else rest - term
        found.append(None if rest is None else rest / known(b[0]))
    return found


_CHAIN: dict[int, tuple[tuple[float, int, tuple[int, ...]], ...]] = {
    1: ((1.0, 1, (1,)),),
    2: ((1.0, 2, (1, 1)), (1.0, 1, (2,))),
    3: ((1.0, 3, (1, 1, 1)), (3.0, 2, (1, 2)), (1.0, 1, (3,))),
}
"""For each k the terms c φ^(j) u^(p) u^(q).. of the k-th derivative of φ(u(t)): c, j, (p, q..)."""


def composed(values: Sequence[Number | None], u: Sequence[Number | None], k: int) -> Number | None:
    """The k-th derivative, 1 to 3, of φ(u(t)) from φ', φ'', φ''' and u', u'', u'''."""
    total: Number | None = None
    for weight, order, own in _CHAIN[k]:
        outer, inner = values[order], [u[j] for j in own]
        if outer is None or any(one is None for one in inner):
            continue
        term = (_product([known(one) for one in inner]) * outer).times(weight)
        total = term if total is None else total + term
    return total


def _product(factors: Sequence[Number]) -> Number:
    """The product of one to three numbers; equal ones are squared."""
    squared = len(factors) > 1 and factors[0] == factors[1]
    result: Number = factors[0].squared if squared else factors[0]
    for k in range(2 if squared else 1, len(factors)):
        result = result * factors[k]
    return result
