"""Divided differences (f(a) - f(b))/(a - b), by addition theorems; f'(a) at a = b.

The rule of quotients loses (a - b)^-2 of the digits in first derivatives and (a - b)^-3 in second
ones. Each form here is a function of a, b and d = a - b without a pole at d = 0, so that all of its
derivatives have full accuracy. The law: for all a and b, or for |d| up to an edge (1, or half of
|b| where that is the unit), the value to a few rounding errors; beyond it the quotient as written.

By the addition theorem of each function, with h = d/2 and m = (a + b)/2:

- sin(a) - sin(b) = 2 cos(m) sin(h), cos(a) - cos(b) = -2 sin(m) sin(h), and likewise sinh, cosh;
- tanh(a) - tanh(b) = sinh(d)/(cosh(a) cosh(b)), with sigmoid(x) = (1 + tanh(x/2))/2, and
  tan(a) - tan(b) = sin(d)/(cos(a) cos(b));
- softplus(a) - softplus(b) = log(1 + sigmoid(b) (exp(d) - 1)), and log(cosh(a)/cosh(b)) =
  log(1 + 2 sinh(m) sinh(h)/cosh(b));
- atan(a) - atan(b) = atan(d/(1 + a b)) where 1 + a b > 0;
- a log(a) - b log(b) = d log(a) + b log(a/b);
- of erf and the normal distribution function, the integral of the density in powers of h;
- a^p - b^p: for whole p by division of polynomials, for halves that of the roots, for other p
  b^p ((1 + d/b)^p - 1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from slomodel.functions import (
    DIFFERENCES,
    abs,
    add,
    atan,
    cbrt,
    cos,
    cosh,
    div,
    erf,
    erfc,
    expm1,
    le,
    log,
    log1p,
    logcosh,
    lt,
    mul,
    neg,
    normcdf,
    pow,
    sigmoid,
    sin,
    sin_quotient,
    sinh,
    softplus,
    sqrt,
    square,
    sub,
    tan,
    tanh,
    where,
    xlogx,
)
from slomodel.functions.removable import (
    ATAN_QUOTIENT,
    LOG_QUOTIENT,
    TANH_QUOTIENT,
    exp_quotient,
    sinh_quotient,
)
from slomodel.functions.tail_differences import divided_near
from slomodel.ir.expr import Expr
from slomodel.ir.function import ScalarFunction
from slomodel.rewrite.elementwise.polynomials import SumOfProducts

Divided = Callable[[Expr, Expr], Expr]
"""(f(a) - f(b))/(a - b) from a and b."""

_EDGE = 1.0
"""|a - b| beyond which the quotient as written loses no more than a digit."""
_RELATIVE_EDGE = 0.5
_MOST_POWERS = 8
_log_quotient, _atan_quotient, _tanh_quotient = (
    family.member(0) for family in (LOG_QUOTIENT, ATAN_QUOTIENT, TANH_QUOTIENT)
)


def _middle(a: Expr, b: Expr) -> Expr:
    return mul(0.5, add(a, b))


def _half(a: Expr, b: Expr) -> Expr:
    return mul(0.5, sub(a, b))


def _sigmoid(a: Expr, b: Expr) -> Expr:
    both = add(mul(sigmoid(a), sigmoid(neg(b))), mul(sigmoid(b), sigmoid(neg(a))))
    return mul(mul(0.5, _tanh_quotient(_half(a, b))), both)


def _near(
    function: ScalarFunction, value: Divided, is_near: Callable[[Expr, Expr], Expr] | None = None
) -> Divided:
    """A form from b and d where d is small, and the quotient as written elsewhere."""

    def divided(a: Expr, b: Expr) -> Expr:
        d = sub(a, b)
        near = le(abs(d), _EDGE) if is_near is None else is_near(d, b)
        far = div(sub(function(a), function(b)), where(near, 1.0, d))
        return where(near, value(b, where(near, d, 0.0)), far)

    return divided


def _softplus(b: Expr, d: Expr) -> Expr:
    rise = mul(sigmoid(b), exp_quotient(d))
    return mul(rise, _log_quotient(mul(sigmoid(b), expm1(d))))


def _logcosh(b: Expr, d: Expr) -> Expr:
    h = mul(0.5, d)
    rise = mul(add(mul(tanh(b), cosh(h)), sinh(h)), sinh_quotient(h))
    return mul(rise, _log_quotient(mul(rise, d)))


def _atan(b: Expr, d: Expr) -> Expr:
    below = add(1.0, mul(b, add(b, d)))
    return div(_atan_quotient(div(d, below)), below)


def _is_relatively_near(d: Expr, b: Expr) -> Expr:
    return lt(abs(d), mul(_RELATIVE_EDGE, abs(b)))


def _xlogx(b: Expr, d: Expr) -> Expr:
    is_none = le(abs(b), 0.0)
    below = where(is_none, 1.0, b)
    return add(log(add(below, d)), _log_quotient(div(d, below)))


def _cube_roots(a: Expr, b: Expr) -> Expr:
    p, q = cbrt(a), cbrt(b)
    return div(1.0, add(add(square(p), mul(p, q)), square(q)))


def _of_record(function: ScalarFunction) -> Divided:
    def divided(a: Expr, b: Expr) -> Expr:
        is_near, near = divided_near(function, a, b)
        far = div(DIFFERENCES[function](a, b), where(is_near, 1.0, sub(a, b)))
        return where(is_near, near, far)

    return divided


DIVIDED: Mapping[ScalarFunction, Divided] = {
    sinh: lambda a, b: mul(cosh(_middle(a, b)), sinh_quotient(_half(a, b))),
    cosh: lambda a, b: mul(sinh(_middle(a, b)), sinh_quotient(_half(a, b))),
    sin: lambda a, b: mul(cos(_middle(a, b)), sin_quotient(_half(a, b))),
    cos: lambda a, b: mul(neg(sin(_middle(a, b))), sin_quotient(_half(a, b))),
    tan: lambda a, b: div(sin_quotient(sub(a, b)), mul(cos(a), cos(b))),
    sigmoid: _sigmoid,
    tanh: lambda a, b: mul(4.0, _sigmoid(mul(2.0, a), mul(2.0, b))),
    softplus: _near(softplus, _softplus),
    logcosh: _near(logcosh, _logcosh),
    atan: _near(atan, _atan),
    xlogx: _near(xlogx, _xlogx, _is_relatively_near),
    sqrt: lambda a, b: div(1.0, add(sqrt(a), sqrt(b))),
    cbrt: _cube_roots,
    erf: _of_record(erf),
    erfc: lambda a, b: neg(_of_record(erf)(a, b)),
    normcdf: _of_record(normcdf),
}
"""Divided differences of functions that have no rule of their own (`exp`, `log`)."""

OF_DIFFERENCES: Mapping[ScalarFunction, ScalarFunction] = {
    difference: function for function, difference in DIFFERENCES.items()
}


def divided_power(p: Fraction) -> Divided | None:
    """(a^p - b^p)/(a - b)."""
    if p.denominator == 1:
        return _of_whole_power(int(p)) if 0 < abs_of(p) <= _MOST_POWERS and p != 1 else None
    if p.denominator == 2 and abs_of(p) <= _MOST_POWERS // 2:
        whole = _of_whole_power(int(2 * p)) if p != Fraction(1, 2) else None

        def of_roots(a: Expr, b: Expr) -> Expr:
            s, t = sqrt(a), sqrt(b)
            above = whole(s, t) if whole is not None else 1.0
            return div(above, add(s, t))

        return of_roots
    exponent = float(p)

    def by_ratio(a: Expr, b: Expr) -> Expr:
        d = sub(a, b)
        near = _is_relatively_near(d, b)
        below = where(near, b, 1.0)
        t = div(where(near, d, 0.0), below)
        rate = mul(exponent, mul(exp_quotient(mul(exponent, log1p(t))), _log_quotient(t)))
        far = div(sub(pow(a, exponent), pow(b, exponent)), where(near, 1.0, d))
        return where(near, mul(pow(below, exponent - 1.0), rate), far)

    return by_ratio


def abs_of(p: Fraction) -> Fraction:
    return max(p, -p)


def _of_whole_power(k: int) -> Divided:
    """The sum of a^i b^j with i + j = k - 1, or of -a^-i b^-j with i + j = 1 - k, i, j > 0."""
    size = max(k, -k)
    pairs = [(i, size - 1 - i) if k > 0 else (-1 - i, i - size) for i in range(size)]

    def divided(a: Expr, b: Expr) -> Expr:
        total: Expr | None = None
        for i, j in pairs:
            term = mul(_power(a, i), _power(b, j))
            total = term if total is None else add(total, term)
        assert total is not None
        return total if k > 0 else neg(total)

    return divided


def _power(x: Expr, p: int) -> Expr:
    return div(1.0, _power(x, -p)) if p < 0 else pow(x, float(p))


def divided_polynomial(above: SumOfProducts, below: SumOfProducts) -> SumOfProducts | None:
    """The quotient of two polynomials, if `below` is linear in a part and leaves no remainder."""
    for monomial, c in below.terms:
        if len(monomial) != 1 or monomial[0][1] != 1:
            continue
        part = monomial[0][0]
        rest = SumOfProducts(tuple(one for one in below.terms if one[0] != monomial))
        if any(part == other for own, _ in rest.terms for other, _ in own):
            continue
        # part is `root` where `below` is 0; Horner's scheme in powers of it.
        root = rest.scaled(Fraction(-1) / c) if rest.terms else rest
        by_power: dict[int, SumOfProducts] = {}
        for own, number in above.terms:
            p = dict(own).get(part, 0)
            left = tuple(one for one in own if one[0] != part)
            by_power[p] = by_power.get(p, SumOfProducts(())) + SumOfProducts(((left, number),))
        quotient, carried = SumOfProducts(()), SumOfProducts(())
        for p in range(max(by_power, default=0), -1, -1):
            product = carried.product(root)
            if product is None:
                return None
            carried = by_power.get(p, SumOfProducts(())) + product
            if p:
                own_power = SumOfProducts((((((part, p - 1),) if p > 1 else ()), Fraction(1)),))
                term = carried.product(own_power)
                if term is None:
                    return None
                quotient += term
        return quotient.scaled(Fraction(1) / c) if not carried.terms and quotient.terms else None
    return None
