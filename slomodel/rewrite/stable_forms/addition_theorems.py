"""Differences of a function at two arguments, by its addition theorem.

sqrt(x + 1) - sqrt(x) loses all digits for large x; 1/(sqrt(x + 1) + sqrt(x)) loses none. The law:
f(a) - f(b) becomes a form in which a - b stands by itself, where that difference is a constant once
the common terms of a and b are cancelled exactly. Fractions whose common numerator cancels, such
as 1/x - 1/(x + 1), are joined likewise. Each form has full accuracy wherever f(a) and f(b) have,
without a choice between cases: it is as smooth as the difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations

from slomodel.functions import (
    DIFFERENCES,
    add,
    asinh,
    atan,
    cbrt,
    cos,
    cosh,
    div,
    erf,
    erfc,
    exp,
    expm1,
    log,
    log1mexp,
    log1p,
    mul,
    neg,
    normcdf,
    pow,
    sigmoid,
    sin,
    sinh,
    softplus,
    sqrt,
    square,
    sub,
    tan,
    tanh,
)
from slomodel.functions.compound import atan2
from slomodel.ir.dims import Shape
from slomodel.ir.expr import Const, Expr, Map, is_map
from slomodel.ir.function import ScalarFunction
from slomodel.rewrite.elementwise.matching import Part, scaled, whole
from slomodel.rewrite.elementwise.polynomials import UNIT, SumOfProducts, polynomial, rational
from slomodel.rewrite.singularities.factored_products import (
    FactoredProduct,
    Powers,
    factored,
)
from slomodel.rewrite.stable_forms.tail_forms import log_between

_MOST_TERMS = 6
"""Limit on the terms of a sum in which all pairs are examined."""
_MOST_DENOMINATORS = 4
_FARTHEST = 300.0
"""Limit on |a - b|, so that exp(a - b) is a double."""

Theorem = Callable[[Expr, Expr, float], Expr]
"""f(a) - f(b) from a, b and a - b > 0."""


def _cube_roots(a: Expr, b: Expr, d: float) -> Expr:
    p, q = cbrt(a), cbrt(b)
    return div(d, add(add(square(p), mul(p, q)), square(q)))


def _sigmoids(a: Expr, b: Expr, d: float) -> Expr:
    return mul(-math.expm1(-d), mul(sigmoid(a), sigmoid(neg(b))))


def _log_of_sigmoids(a: Expr, b: Expr, d: float) -> Expr:
    return sub(math.log(-math.expm1(-d)), add(softplus(neg(a)), softplus(b)))


def _log_of_tanhs(a: Expr, b: Expr, d: float) -> Expr:
    return add(math.log(2.0), _log_of_sigmoids(mul(2.0, a), mul(2.0, b), 2.0 * d))


def _middle(b: Expr, d: float) -> Expr:
    return add(b, 0.5 * d)


_THEOREMS: Mapping[ScalarFunction, Theorem] = {
    sqrt: lambda a, b, d: div(d, add(sqrt(a), sqrt(b))),
    cbrt: _cube_roots,
    # The logarithm of the quotient is log1p((a - b)/b) too, which overflows where b is tiny.
    log: lambda a, b, d: mul(2.0, asinh(div(0.5 * d, mul(sqrt(a), sqrt(b))))),
    exp: lambda _a, b, d: mul(math.expm1(d), exp(b)),
    atan: lambda a, b, d: atan2(Const(d), add(1.0, mul(a, b))),
    tanh: lambda a, b, d: mul(2.0, _sigmoids(mul(2.0, a), mul(2.0, b), 2.0 * d)),
    sigmoid: _sigmoids,
    softplus: lambda _a, b, d: log1p(mul(math.expm1(d), sigmoid(b))),
    sin: lambda _a, b, d: mul(2.0 * math.sin(0.5 * d), cos(_middle(b, d))),
    cos: lambda _a, b, d: mul(-2.0 * math.sin(0.5 * d), sin(_middle(b, d))),
    tan: lambda a, b, d: div(math.sin(d), mul(cos(a), cos(b))),
    sinh: lambda _a, b, d: mul(2.0 * math.sinh(0.5 * d), cosh(_middle(b, d))),
    cosh: lambda _a, b, d: mul(2.0 * math.sinh(0.5 * d), sinh(_middle(b, d))),
}
_LOGARITHMS: Mapping[ScalarFunction, Theorem] = {sigmoid: _log_of_sigmoids, tanh: _log_of_tanhs}
"""Logarithms of differences that may be beyond the doubles."""
_LOGARITHMS_OF_RECORDS: Mapping[ScalarFunction, Callable[[Expr, Expr], Expr]] = {
    normcdf: log_between,
    erf: lambda a, b: log_between(a, b, erf),
    sigmoid: lambda a, b: sub(log1mexp(sub(b, a)), add(softplus(neg(a)), softplus(b))),
    tanh: lambda a, b: add(
        math.log(2.0),
        sub(log1mexp(mul(2.0, sub(b, a))), add(softplus(mul(-2.0, a)), softplus(mul(2.0, b)))),
    ),
}
"""Logarithms of the differences that the functions in `DIFFERENCES` compute."""
_LARGEST_FACTOR = 16.0
_CANDIDATES = frozenset((*_THEOREMS, *DIFFERENCES, erfc, log1p, pow, div))


class AdditionTheorems:
    """Differences in one graph by addition theorems; their logarithms, where these are known."""

    def __init__(self) -> None:
        self._logarithms: dict[Expr, Expr] = {}

    def of_sum(self, node: Map) -> Expr | None:
        """A sum with two or three of its terms joined; None if none of them can be."""
        parts = terms_of_sum(node)
        if not any(map(_may_match, parts)):
            return None
        terms = [_product(one, sign) for one, sign in parts]
        for count, rule in ((2, self._difference), (3, self._fractions), (2, self._fractions)):
            for chosen in combinations(range(len(terms)), count):
                own = [one for k in chosen if (one := terms[k]) is not None]
                result = rule(own, node.shape) if len(own) == count else None
                if result is not None:
                    others = [one for k, one in enumerate(parts) if k not in chosen]
                    return _with_others(result, others, node.shape)
        return None

    def of_log(self, node: Map) -> Expr | None:
        """The logarithm of a difference that may be beyond the doubles, and of its multiples."""
        inside = node.operands[0]
        if inside.shape != node.shape:
            return None
        term = scaled(whole(inside))
        known = None if term.core is None else self._logarithms.get(term.core.node)
        if known is None or not 1.0 / _LARGEST_FACTOR <= term.coefficient <= _LARGEST_FACTOR:
            return None
        return known if term.coefficient == 1.0 else add(math.log(term.coefficient), known)

    def _difference(self, terms: Sequence[FactoredProduct], shape: Shape) -> Expr | None:
        """c g (f(a) - f(b)), with a number c and common factors g."""
        one, other = terms
        if one.number != -other.number:
            return None
        for left, common in _choices(one):
            for right, beside in _choices(other):
                result = self._by_theorem(left, right, shape) if common == beside else None
                if result is None:
                    continue
                rest = _written(one.number, common, shape)
                return result if rest is Const(1.0) else mul(rest, result)
        return None

    def _by_theorem(self, left: Part, right: Part, shape: Shape) -> Expr | None:
        """f(a) - f(b) for two parts, if there is a theorem and a - b is a constant."""
        kind = _kind(left)
        if kind is None or kind != _kind(right):
            return None
        theorem = _theorem(*kind)
        a, b = _argument(left), _argument(right)
        d = None if a is None or b is None or not a.monomials else (a - b).constant
        if a is not None and b is not None and (d is None or (theorem is None and d)):
            return self._by_record(left, right, _are_alike(a, b), shape)
        if d is None or theorem is None or not 0.0 < math.fabs(d) <= _FARTHEST:
            return None
        larger, smaller = (left, right) if d > 0 else (right, left)
        at = _along(larger, shape), _along(smaller, shape), math.fabs(d)
        value = theorem(*at)
        if d > 0 and kind[0] in _LOGARITHMS:
            self._logarithms[value] = _LOGARITHMS[kind[0]](*at)
        return value if d > 0 else neg(value)

    def _by_record(self, left: Part, right: Part, are_alike: bool, shape: Shape) -> Expr | None:
        """f(a) - f(b) as a function of a and b; of tanh, which networks use, if these are alike."""
        assert isinstance(left.node, Map)
        function = left.node.function
        if function is erfc:
            function, left, right = erf, right, left
        if function not in DIFFERENCES or (function is tanh and not are_alike):
            return None
        a, b = _along(left, shape), _along(right, shape)
        value = DIFFERENCES[function](a, b)
        self._logarithms[value] = _LOGARITHMS_OF_RECORDS[function](a, b)
        return value

    def _fractions(self, terms: Sequence[FactoredProduct], shape: Shape) -> Expr | None:
        """The terms over their common denominator, where parts of the numerator cancel."""
        below: dict[Part, int] = {}
        for one in terms:
            for part, p in one.powers.items():
                if p < 0:
                    below[part] = max(below.get(part, 0), -p)
        if not 0 < sum(below.values()) <= _MOST_DENOMINATORS:
            return None
        known: list[SumOfProducts] = []
        for term in terms:
            numerator = _numerator(term, below)
            if numerator is None:
                return None
            known.append(numerator)
        total = known[0]
        for numerator in known[1:]:
            total += numerator
        left = total.monomials
        value: Expr | None = None
        # Where only numbers cancel, as in 1 - 1/(1 + x), the derivative of x/(1 + x) cancels.
        is_shorter = any(own.monomials - left for own in known)
        if is_shorter and _is_linear(total):
            value = total.written(shape)
        elif len(total.terms) == 2:
            both = [FactoredProduct(Fraction(c), dict(powers)) for powers, c in total.terms]
            value = self._difference(both, shape)
        if value is None:
            return None
        for part, p in below.items():
            for _ in range(p):
                value = div(value, part.along(shape))
        return value


def _are_alike(a: SumOfProducts, b: SumOfProducts) -> bool:
    """Whether terms cancel in a - b."""
    return len((a - b).terms) < max(len(a.terms), len(b.terms))


def terms_of_sum(node: Map) -> list[tuple[Part, int]]:
    """The terms of a sum with their signs; of a long sum only the operands."""
    result: list[tuple[Part, int]] = []
    stack = [(whole(node), 1)]
    while stack:
        part, sign = stack.pop()
        if is_map(part.node, add, sub):
            left, right = part.parts()
            stack += [(right, -sign if is_map(part.node, sub) else sign), (left, sign)]
        elif is_map(part.node, neg):
            stack.append((part.parts()[0], -sign))
        else:
            result.append((part, sign))
        if len(result) + len(stack) > _MOST_TERMS:
            left, right = whole(node).parts()
            return [(left, 1), (right, -1 if node.function is sub else 1)]
    return result


def _may_match(term: tuple[Part, int]) -> bool:
    """Whether a function with a theorem, or a quotient, is among the first factors."""
    stack: list[Expr] = [term[0].node]
    for _ in range(_MOST_TERMS):
        one = stack.pop() if stack else None
        if isinstance(one, Map):
            if one.function in _CANDIDATES:
                return True
            if one.function in (mul, neg):
                stack += one.operands
    return False


def _product(part: Part, sign: int) -> FactoredProduct | None:
    result = factored(part)
    return None if result is None else FactoredProduct(sign * result.number, result.powers)


def _choices(term: FactoredProduct) -> Iterator[tuple[Part, Powers]]:
    """Each factor of a term that has a theorem, with the other factors."""
    for part, p in term.powers.items():
        if p == 1 and _kind(part) is not None:
            yield part, {other: q for other, q in term.powers.items() if other != part}


def _kind(part: Part) -> tuple[ScalarFunction, float | None] | None:
    """The function of a part, and its exponent if it is a power; None without a theorem."""
    node = part.node
    if not isinstance(node, Map):
        return None
    if node.function is log1p:
        return log, None
    if node.function is pow and isinstance(node.operands[1], Const):
        return pow, node.operands[1].value
    is_known = node.function in _THEOREMS or node.function in DIFFERENCES or node.function is erfc
    return (node.function, None) if is_known else None


def _theorem(function: ScalarFunction, exponent: float | None) -> Theorem | None:
    if exponent is None:
        return _THEOREMS.get(function)
    roots = 1.0 / exponent
    if roots in (2.0, 3.0, 4.0, 5.0):
        return lambda a, b, d: div(d, _geometric_sum(a, b, int(roots)))
    if exponent < 0.0 and not exponent.is_integer():
        # Where b is tiny the second factor is -1; for p > 0 the first would be 0 at b = 0.
        return lambda _a, b, d: mul(pow(b, exponent), expm1(mul(exponent, log1p(div(d, b)))))
    return None


def _geometric_sum(a: Expr, b: Expr, n: int) -> Expr:
    """(a - b)/(a^(1/n) - b^(1/n))."""
    p, q = pow(a, 1.0 / n), pow(b, 1.0 / n)
    total: Expr = pow(p, float(n - 1))
    for k in range(1, n):
        high = q if k == 1 else pow(q, float(k))
        low = None if k == n - 1 else p if k == n - 2 else pow(p, float(n - 1 - k))
        total = add(total, high if low is None else mul(low, high))
    return total


def _argument(part: Part) -> SumOfProducts | None:
    """The argument of a function; 1 + u for log1p(u)."""
    inner = polynomial(part.parts()[0])
    is_more = is_map(part.node, log1p) and inner is not None
    return SumOfProducts(((UNIT, 1),)) + inner if is_more and inner else inner


def _along(part: Part, shape: Shape) -> Expr:
    inner = part.parts()[0].along(shape)
    return add(1.0, inner) if is_map(part.node, log1p) else inner


def _numerator(term: FactoredProduct, below: Mapping[Part, int]) -> SumOfProducts | None:
    """A term times the common denominator, expanded."""
    result = SumOfProducts(((UNIT, rational(term.number)),))
    powers = dict(term.powers)
    for part, p in below.items():
        powers[part] = powers.get(part, 0) + p
    for part, p in powers.items():
        own = polynomial(part)
        for _ in range(p):
            product = None if own is None else result.product(own)
            if product is None:
                return None
            result = product
    return result


def _is_linear(total: SumOfProducts) -> bool:
    """Whether a numerator has degree at most one, so that it overflows only where its terms do."""
    return all(sum(abs(p) for _, p in monomial) <= 1 for monomial in total.monomials)


def _written(c: Fraction, powers: Powers, shape: Shape) -> Expr:
    """A number times powers, those with negative exponents as divisors."""
    above = tuple((part, p) for part, p in powers.items() if p > 0)
    value = SumOfProducts(((above, c),)).written(shape)
    for part, p in powers.items():
        if p < 0:
            divisor = part.along(shape)
            value = div(value, divisor if p == -1 else pow(divisor, float(-p)))
    return value


def _with_others(made: Expr, others: Sequence[tuple[Part, int]], shape: Shape) -> Expr:
    for part, sign in others:
        made = (add if sign > 0 else sub)(made, part.along(shape))
    return made
