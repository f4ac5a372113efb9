"""Powers and exponentials of one quantity, merged before derivatives are taken.

In x * sqrt(x) the chain rule meets 0 * inf at 0, where the derivative of x^1.5 is 0; in
exp(800 x) / exp(790 x) both exponentials overflow where exp(10 x) does not, and in exp(x) / exp(y)
where exp(x - y) does not. The law: the merged power has the value of the product to a few rounding
errors, as exponents of powers are added and multiplied only where that is exact, and none for x < 0
if the product has none: sqrt(x) * sqrt(x) is not x. The sum of exponents has a rounding of the
magnitude of those of the exponents themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce

from slomodel.calculus.signs import is_nonnegative
from slomodel.functions import abs, add, div, exp, mul, pow, sqrt, sub
from slomodel.functions.translate import balanced
from slomodel.ir.dims import Shape
from slomodel.ir.exact import is_exact
from slomodel.ir.expr import Const, Expr, Map, is_map
from slomodel.ir.walk import inputs
from slomodel.rewrite.elementwise.matching import (
    Part,
    exponent_of_power,
    is_scale,
    product_of,
    scaled,
    whole,
)
from slomodel.rewrite.elementwise.polynomials import polynomial
from slomodel.rewrite.work import is_varying_input

_MOST_FACTORS = 8


@dataclass(slots=True)
class _PowerFactor:
    """A factor base^exponent of a product, written as `part`^`power`.

    `has_root`: a power of it that is not whole has been taken, so that the base is not negative.
    """

    base: Part
    exponent: float
    part: Part
    power: float
    has_root: bool


def power_of_power(node: Map) -> Expr | None:
    """(c x^q)^p as c^p x^(qp) for a p that is not an integer; else None.

    If q is even, x^q is |x|^q. Powers of exp(u) are those of p u where that is exact.
    """
    p = exponent_of_power(node)
    if p is None or p.is_integer():
        return None
    inside = whole(node).parts()[0]
    single_power = _single_power(inside)
    if single_power is None:
        return None
    number, base, q = single_power
    if q == 1.0 or number <= 0.0 or not _is_exact_product(q, p):
        return None
    shape = node.shape
    x = base.along(shape)
    if is_map(x, exp):
        return None
    even = q.is_integer() and q % 2.0 == 0.0
    total = q * p
    if even and not (total.is_integer() and total % 2.0 == 0.0):
        x = abs(x)
    return mul(_power(Const(number), p), _power(x, total))


def without_data_factors(node: Map, better: Callable[[Expr], Expr | None]) -> Expr | None:
    """(c u)^p with data c as c^p u^p for u >= 0, whose derivative is 0 where c is 0; else None.

    Likewise exponentials, which are positive: the derivative of u^p is then 0 where u is.
    """
    p = exponent_of_power(node)
    if p is None or p.is_integer() or not is_map(node.operands[0], mul, div):
        return None
    shape = node.shape
    groups: list[Expr] = [Const(1.0)] * 3
    for factor in _factors(whole(node).parts()[0]) or ():
        if not factor.exponent.is_integer():
            return None
        own = _power(factor.base.along(shape), factor.exponent)
        is_data = not any(map(is_varying_input, inputs(own)))
        kind = 0 if is_data else 1 if is_map(factor.base.node, exp) else 2
        groups[kind] = mul(groups[kind], own)
    if sum(not isinstance(one, Const) for one in groups) < 2 or not is_nonnegative(groups[2]):
        return None
    roots = [_power(one, p) for one in groups]
    return reduce(mul, (better(one) or one for one in roots))


def root_of_exponential(node: Map) -> Expr | None:
    """sqrt(c exp(u)) as sqrt(c) exp(u/2), which does not underflow before its root."""
    if node.function is not sqrt:
        return None
    term = scaled(whole(node).parts()[0])
    inner = None if term.core is None else term.core.inner(exp)
    if inner is None or term.coefficient <= 0.0:
        return None
    return mul(sqrt(Const(term.coefficient)), exp(mul(0.5, inner.along(node.shape))))


@dataclass(slots=True)
class _MergedFactors:
    """The factors of a product: exponents of each base, multiples of each exponent."""

    powers: dict[Part, list[_PowerFactor]] = field(default_factory=dict)
    exponents: dict[Part, list[float]] = field(default_factory=dict)


def merged_product(node: Map, shared: Collection[Expr] = ()) -> Expr | None:
    """A product or quotient with merged powers and exponentials; None if there are none to merge.

    Powers of one base are merged if some exponent is not whole, and so are exponentials of
    multiples of one quantity, and of any quantities where no other factor may be small. Those of
    sums stay if they are `shared`, since their product costs less than another exponential.
    """
    factors = _factors(whole(node)) if _has_powers(node) else None
    if factors is None:
        return None
    result = _MergedFactors()
    for factor in factors:
        inner = factor.base.inner(exp)
        term = None if inner is None or is_scale(inner.node) else scaled(inner)
        if term is not None and term.core is not None:
            result.exponents.setdefault(term.core, []).append(factor.exponent * term.coefficient)
        else:
            result.powers.setdefault(factor.base, []).append(factor)
    merges = [
        base
        for base, own in result.powers.items()
        if len(own) > 1
        and any(one.has_root for one in own)
        and not sum((one.exponent for one in own), 0.0).is_integer()
        and not isinstance(base.node, Const)
        and _is_exact_sum([one.exponent for one in own])
    ]
    joins = [u for u, own in result.exponents.items() if len(own) > 1 and _is_exact_sum(own)]
    shape = node.shape
    if all(isinstance(base.node, Const) for base in result.powers):
        has_shared = any(factor.part.node in shared for factor in factors)
        joined = _joined_exponential(result, shape, has_shared)
        if joined is not None:
            return joined
    if not merges and not joins:
        return None
    above: list[Expr] = []
    below: list[Expr] = []
    for base, own in result.powers.items():
        pairs = [(one.part, one.power) for one in own]
        if base in merges:
            pairs = [(base, sum(one.exponent for one in own))]
        for part, p in pairs:
            x = part.along(shape) if part.node.rank else part.node
            (above if p > 0.0 else below).append(_power(x, p if p > 0.0 else -p))
    for u, multiples in result.exponents.items():
        for p in [sum(multiples)] if u in joins else multiples:
            above.append(exp(mul(p, u.along(shape))))
    product = product_of(above)
    return div(product, product_of(below)) if below else product


def _joined_exponential(merged: _MergedFactors, shape: Shape, has_shared: bool) -> Expr | None:
    """The exponential of the sum of all exponents, times constants; None for a single quantity.

    Factors along other axes stay: together they have fewer exponentials than their product.
    """
    if len(merged.exponents) < 2 or len({frozenset(u.axes) for u in merged.exponents}) > 1:
        return None
    has_sums = any(is_map(u.node, add, sub) for u in merged.exponents)
    if has_sums and (has_shared or not _share_terms(merged.exponents)):
        return None  # Bounds are better of the product.
    terms = [
        mul(p, u.along(shape))
        for u, own in merged.exponents.items()
        for p in ([sum(own)] if _is_exact_sum(own) else own)
    ]
    result: Expr = exp(balanced(add, terms))
    for constant in (one for own in merged.powers.values() for one in own):
        power = _power(constant.part.node, math.fabs(constant.power))
        result = mul(result, power) if constant.power > 0.0 else div(result, power)
    return result


def _share_terms(exponents: Iterable[Part]) -> bool:
    """Whether a monomial is in the terms of more than one exponent."""
    known: set[frozenset[tuple[Part, int]]] = set()
    for u in exponents:
        found = polynomial(u)
        own = frozenset() if found is None else found.monomials
        if known & own:
            return True
        known |= own
    return False


def _has_powers(product: Map) -> bool:
    """Whether a power or an exponential is among the first factors; without, nothing is merged."""
    stack: list[Expr] = list(product.operands)
    for _ in range(_MOST_FACTORS):
        if not stack:
            return False
        node = stack.pop()
        if isinstance(node, Map):
            function = node.function
            if function is sqrt or function is pow or function is exp:
                return True
            if function is mul or function is div:
                stack += node.operands
    return False


def _factors(product: Part) -> list[_PowerFactor] | None:
    """The factors of a product, powers split into base and exponent; None if there are too many."""
    result: list[_PowerFactor] = []
    stack = [(product, 1.0)]
    while stack:
        part, p = stack.pop()
        node = part.node
        if is_map(node, mul):
            stack += [(one, p) for one in reversed(part.parts())]
        elif is_map(node, div):
            left, right = part.parts()
            stack += [(right, -p), (left, p)]
        else:
            result.append(_as_power(part, p))
        if len(result) + len(stack) > _MOST_FACTORS:
            return None
    return result


def _as_power(part: Part, p: float) -> _PowerFactor:
    """A factor as a power of its base: of sqrt(x)^2 with exponent p, x with exponent p."""
    base, exponent, has_root = part, p, not p.is_integer()
    while isinstance(base.node, Map):
        own = exponent_of_power(base.node)
        # A root of an even power is that of |x|.
        is_even = own is not None and own.is_integer() and own % 2.0 == 0.0
        if own is None or (is_even and has_root) or not _is_exact_product(own, exponent):
            break
        base, exponent = base.parts()[0], own * exponent
        has_root = has_root or not own.is_integer()
    return _PowerFactor(base, exponent, part, p, has_root)


def _single_power(part: Part) -> tuple[float, Part, float] | None:
    """c, x and q of a product c x^q of which x is the only base.

    The product has a value for x < 0 exactly if q is whole.
    """
    term = scaled(part)
    if term.core is None:
        return None
    factors = _factors(term.core)
    if factors is None:
        return None
    base = factors[0].base
    if any(one.base != base for one in factors) or isinstance(base.node, Const):
        return None
    q = sum((factor.exponent for factor in factors), 0.0)
    if any(one.has_root for one in factors) and (len(factors) > 1 or q.is_integer()):
        return None
    return term.coefficient, base, q


def _power(x: Expr, p: float) -> Expr:
    return pow(x, Const(p))


def _is_exact_product(a: float, b: float) -> bool:
    """Whether a product of exponents is exact."""
    return is_exact(mul, (Const(a), Const(b)), a * b)


def _is_exact_sum(numbers: Sequence[float]) -> bool:
    """Whether the sum of numbers is exact, from the order of their magnitudes."""
    total = 0.0
    for number in numbers:
        new = total + number
        if new - total != number or new - number != total:
            return False
        total = new
    return True
