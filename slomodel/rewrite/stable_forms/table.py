"""Stable forms: a pattern on the left, its replacement on the right, and a guard.

The law of each: for all operands the replacement is at least as accurate as the original, and it
has a value wherever that has one; where both are accurate they agree to a few rounding errors. Sums
along axes or with any number of terms are handled in `exponential_sums` and `roots`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, product
from math import fabs, isclose, nan, pi

from slomodel.functions import (
    abs,
    acos,
    acos1m,
    acosh,
    acosh1p,
    add,
    asin,
    atan,
    atanh,
    atanh1m,
    cos,
    cosh,
    div,
    erf,
    erfc,
    exp,
    expm1,
    ge,
    gt,
    hypot,
    land,
    le,
    log,
    log1p,
    logcosh,
    lt,
    maximum,
    minimum,
    mul,
    neg,
    pow,
    relu,
    root,
    sech2,
    sigmoid,
    sin,
    sinh,
    softplus,
    sqrt,
    square,
    sub,
    tanh,
    where,
    xlogx,
    xlogx1p,
)
from slomodel.functions.compound import atan2
from slomodel.functions.removable import SQUARED_ARC
from slomodel.ir import build
from slomodel.ir.expr import Const, Einsum, Expr, Input, Map, is_map
from slomodel.ir.function import ScalarFunction
from slomodel.rewrite.elementwise.matching import Term, parts_of, scaled, two_terms, whole
from slomodel.rewrite.elementwise.patterns import (
    Match,
    StableForm,
    functions_below,
    functions_of,
    has_equal_operands,
    heads,
    heads_of,
    number,
    operand,
    rest,
)
from slomodel.rewrite.elementwise.polynomials import polynomial
from slomodel.rewrite.stable_forms.tail_forms import TAIL_FORMS, is_multiple

_SMALLEST, _LARGEST = 1e-300, 1e300
_FAR, _OVERFLOW = 40.0, 700.0
"""From the first on sinh and cosh are exp/2 to full accuracy; beyond the second they overflow."""

x, y, c, d, e = operand("x"), operand("y"), number("c"), number("d"), number("e")


def _are_opposite(m: Match) -> bool:
    """Whether y is -x, where x itself is not written as a negative."""
    one, other = scaled(m.parts[x]), scaled(m.parts[y])
    opposite = one.core is not None and one.core == other.core
    return opposite and 0.0 <= one.coefficient == -other.coefficient


def _is_one_more(m: Match) -> bool:
    """Whether y is 1 + x, along the same axes."""
    one, u = m.parts[y], m.parts[x]
    if not is_map(one.node, add, sub) or one.axes != u.axes or one.node.shape != u.node.shape:
        return False
    assert isinstance(one.node, Map)
    others = [term for term in two_terms(one.node) if term != Term(1.0, None)]
    return others == [scaled(whole(u.node))]


def _is_quarter(m: Match, factor: float) -> bool:
    """Whether d is factor * pi/2, up to the rounding of both."""
    return isclose(m[d], 0.5 * pi * factor, rel_tol=2.0**-51)


def _hyperbolic_quotient(x: Expr, y: Expr, above: ScalarFunction, below: ScalarFunction) -> Expr:
    """One of sinh, cosh and exp at x over sinh or cosh at y, where these may overflow as the
    quotient of exp(x - |y|) and its like.
    """
    # Choices that stable forms add are known to be smooth here; `abs` would count as a kink.
    size, height = (where(lt(one, 0.0), neg(one), one) for one in (y, x))
    height = x if above is exp else height
    is_far = land(gt(size, _FAR), gt(maximum(height, size), _OVERFLOW))
    near = div(above(where(is_far, 0.0, x)), below(where(is_far, 1.0, y)))
    u, v = where(is_far, x, 0.0), where(is_far, size, _FAR)
    far = mul(2.0 if above is exp else 1.0, exp(sub(u, v)))
    if above is not exp:
        far = (sub if above is sinh else add)(far, exp(sub(neg(u), v)))
    if below is sinh:
        far = where(lt(y, 0.0), neg(far), far)
    return where(is_far, far, near)


def _damped(x: Expr, y: Expr, function: ScalarFunction) -> Expr:
    """exp(x) sinh(y) or exp(x) cosh(y), where one may overflow as exp(x + y) and its like."""
    size, height = (where(lt(one, 0.0), neg(one), one) for one in (y, x))
    is_far = land(gt(size, _FAR), gt(maximum(height, size), _OVERFLOW))
    near = mul(exp(where(is_far, 0.0, x)), function(where(is_far, 0.0, y)))
    u, v = where(is_far, x, 0.0), where(is_far, y, 0.0)
    far = mul(0.5, (sub if function is sinh else add)(exp(add(u, v)), exp(sub(u, v))))
    return where(is_far, far, near)


def _have_no_common_zero(m: Match) -> bool:
    """Whether x and y are not functions of one quantity, as in sinh(x)/sinh(2 x).

    Where both are 0 the quotient is continued by its series, which a choice would hide.
    """
    polynomials = [polynomial(m.parts[one]) for one in (x, y)]
    factors = {
        part
        for one in polynomials
        if one is not None
        for monomial in one.monomials
        for part, _ in monomial
    }
    return None in polynomials or len(factors) > 1


def _is_varying(m: Match, one: Input) -> bool:
    """Whether an operand is not a constant."""
    return not isinstance(m.parts[one].node, Const)


_EXP_ABOVE_ONE = add(1.0, exp(x))
_SQUARED_ARC = SQUARED_ARC.member(0)


def _squared_arccosine(x: Expr) -> Expr:
    """acos(x)^2: 1 - x is exact for x >= 1/2, and would lose a digit near -1."""
    is_near = ge(x, 0.5)
    near = _SQUARED_ARC(sub(1.0, where(is_near, x, 1.0)))
    return where(is_near, near, square(acos(where(is_near, 0.0, x))))


FORMS: tuple[StableForm, ...] = (
    *TAIL_FORMS,
    # Logarithms.
    StableForm(log(cosh(x)), logcosh(x)),
    StableForm(log(mul(c, cosh(x))), add(log(c), logcosh(x)), lambda m: m[c] > 1.0),
    StableForm(
        log(add(mul(c, cos(x)), d)),
        log(mul(mul(2.0, d), square(sin(mul(0.5, x))))),
        lambda m: m[d] == -m[c] > 0.0,
    ),
    StableForm(
        log(add(mul(c, cos(x)), d)),
        log(mul(mul(2.0, d), square(cos(mul(0.5, x))))),
        lambda m: m[d] == m[c] > 0.0,
    ),
    StableForm(log(sigmoid(x)), neg(softplus(neg(x)))),
    StableForm(log(sech2(x)), mul(-2.0, logcosh(x))),
    StableForm(log(exp(x)), x),
    StableForm(log(add(1.0, x)), log1p(x)),
    StableForm(log(sub(1.0, x)), log1p(neg(x))),
    StableForm(log1p(mul(c, sigmoid(x))), neg(softplus(x)), lambda m: m[c] == -1.0),
    # Differences that cancel, and rectifiers.
    StableForm(add(mul(c, exp(x)), d), mul(c, expm1(x)), lambda m: m[d] == -m[c]),
    StableForm(
        add(mul(c, cosh(x)), d),
        mul(mul(2.0, c), square(sinh(mul(0.5, x)))),
        lambda m: m[d] == -m[c],
    ),
    StableForm(add(mul(c, square(tanh(x))), d), mul(d, sech2(x)), lambda m: m[d] == -m[c]),
    StableForm(add(mul(c, sigmoid(x)), d), mul(d, sigmoid(neg(x))), lambda m: m[d] == -m[c]),
    StableForm(add(mul(c, abs(x)), mul(d, x)), mul(mul(2.0, c), relu(x)), lambda m: m[d] == m[c]),
    StableForm(
        add(mul(c, abs(x)), mul(d, x)), mul(mul(2.0, c), relu(neg(x))), lambda m: m[d] == -m[c]
    ),
    StableForm(add(mul(c, relu(x)), mul(d, x)), mul(c, relu(neg(x))), lambda m: m[d] == -m[c]),
    StableForm(add(mul(c, minimum(x, 0.0)), mul(d, x)), mul(d, relu(x)), lambda m: m[d] == -m[c]),
    StableForm(
        add(mul(c, relu(x)), mul(d, softplus(mul(e, abs(x))))),
        mul(c, softplus(x)),
        lambda m: m[c] == m[d] and m[e] == -1.0,
    ),
    StableForm(
        add(mul(c, exp(x)), mul(d, exp(y))),
        mul(mul(2.0, c), cosh(x)),
        lambda m: m[c] == m[d] and _are_opposite(m),
    ),
    StableForm(
        add(mul(c, exp(x)), mul(d, exp(y))),
        mul(mul(2.0, c), sinh(x)),
        lambda m: m[c] == -m[d] and _are_opposite(m),
    ),
    StableForm(
        add(mul(c, sigmoid(x)), d),
        mul(mul(0.5, c), tanh(mul(0.5, x))),
        lambda m: m[d] == -0.5 * m[c],
    ),
    StableForm(add(mul(c, softplus(x)), mul(d, y)), mul(c, softplus(neg(x))), is_multiple),
    # The tails of arctan.
    StableForm(add(mul(c, atan(x)), d), mul(c, atan2(1.0, neg(x))), lambda m: _is_quarter(m, m[c])),
    StableForm(
        add(mul(c, atan(x)), d), mul(neg(c), atan2(1.0, x)), lambda m: _is_quarter(m, -m[c])
    ),
    StableForm(
        add(mul(e, div(atan(x), c)), d),
        mul(e, div(atan2(1.0, neg(x)), c)),
        lambda m: _is_quarter(m, m[e] / m[c]),
    ),
    StableForm(
        add(mul(e, div(atan(x), c)), d),
        mul(neg(e), div(atan2(1.0, x), c)),
        lambda m: _is_quarter(m, -m[e] / m[c]),
    ),
    # Inverse functions near the ends of their domains.
    StableForm(acos(add(mul(d, x), c)), acos1m(mul(neg(d), x)), lambda m: m[c] == 1.0),
    StableForm(acosh(add(mul(d, x), c)), acosh1p(mul(d, x)), lambda m: m[c] == 1.0),
    StableForm(atanh(add(mul(d, x), c)), atanh1m(mul(neg(d), x)), lambda m: m[c] == 1.0),
    # Their squares have derivatives there, as squares of distances along a sphere.
    StableForm(square(acos1m(x)), _SQUARED_ARC(x)),
    StableForm(square(acosh1p(x)), neg(_SQUARED_ARC(neg(x)))),
    StableForm(square(asin(sqrt(x))), mul(0.25, _SQUARED_ARC(mul(2.0, x)))),
    StableForm(square(acos(x)), _squared_arccosine(x)),
    # Quotients of exponentials.
    StableForm(
        div(mul(rest, exp(x)), square(_EXP_ABOVE_ONE)), mul(rest, mul(0.25, sech2(mul(0.5, x))))
    ),
    StableForm(div(y, square(_EXP_ABOVE_ONE)), mul(y, square(sigmoid(neg(x))))),
    StableForm(div(mul(c, sinh(x)), mul(d, cosh(x))), div(mul(c, tanh(x)), d)),
    StableForm(div(mul(c, cosh(x)), mul(d, sinh(x))), div(c, mul(d, tanh(x)))),
    *(
        StableForm(
            div(mul(c, above(x)), mul(d, below(y))),
            mul(div(c, d), _hyperbolic_quotient(x, y, above, below)),
        )
        for above, below in product((sinh, cosh, exp), (sinh, cosh))
        if not above is below is sinh
    ),
    StableForm(
        div(mul(c, sinh(x)), mul(d, sinh(y))),
        mul(div(c, d), _hyperbolic_quotient(x, y, sinh, sinh)),
        _have_no_common_zero,
    ),
    StableForm(div(mul(c, expm1(x)), mul(d, _EXP_ABOVE_ONE)), div(mul(c, tanh(mul(0.5, x))), d)),
    StableForm(div(mul(rest, exp(x)), _EXP_ABOVE_ONE), mul(rest, sigmoid(x))),
    StableForm(div(mul(rest, exp(x)), add(exp(x), exp(y))), mul(rest, sigmoid(neg(sub(y, x))))),
    StableForm(div(y, _EXP_ABOVE_ONE), mul(y, sigmoid(neg(x)))),
    StableForm(div(c, exp(x)), mul(c, exp(neg(x)))),
    # Tails by erf beside other factors that may be as small.
    *(
        StableForm(written, other, lambda m, sign=sign: m[d] == sign * m[c] and _is_varying(m, x))  # type: ignore[misc]
        for sign in (1.0, -1.0)
        for tail in (mul(mul(sign, c), erfc(mul(-sign, y))),)
        for whole_tail in (add(mul(c, erf(y)), d),)
        for written, other in (
            (div(x, whole_tail), div(x, tail)),
            (div(whole_tail, x), div(tail, x)),
        )
    ),
    *(
        StableForm(
            mul(mul(rest, exp(x)), add(mul(c, erf(y)), d)),
            mul(mul(rest, exp(x)), mul(mul(sign, c), erfc(mul(-sign, y)))),
            lambda m, sign=sign: m[d] == sign * m[c],  # type: ignore[misc]
        )
        for sign in (1.0, -1.0)
    ),
    # Products.
    StableForm(mul(x, x), square(x)),
    StableForm(
        mul(exp(x), add(mul(c, exp(y)), d)),
        add(mul(d, exp(x)), mul(c, exp(add(x, y)))),
        lambda m: m[c] > 0.0 and m[d] > 0.0,
    ),
    StableForm(
        mul(sigmoid(x), add(mul(c, exp(y)), d)),
        mul(c, div(sigmoid(x), sigmoid(neg(y)))),
        lambda m: m[c] == m[d],
    ),
    *(
        StableForm(
            mul(mul(c, exp(x)), mul(d, function(y))), mul(mul(c, d), _damped(x, y, function))
        )
        for function in (sinh, cosh)
    ),
    *(
        StableForm(mul(where(is_positive, 1.0, 0.0), x), relu(x))
        for is_positive in (gt(x, 0.0), ge(x, 0.0), lt(0.0, x), le(0.0, x))
    ),
    *(
        StableForm(mul(where(is_negative, 0.0, 1.0), x), relu(x))
        for is_negative in (lt(x, 0.0), le(x, 0.0), gt(0.0, x), ge(0.0, x))
    ),
    StableForm(
        mul(mul(c, x), mul(d, log(x))), mul(c, mul(d, xlogx(x))), lambda m: fabs(m[c] * m[d]) >= 1.0
    ),
    StableForm(
        mul(mul(c, y), mul(d, log1p(x))),
        mul(c, mul(d, xlogx1p(x))),
        lambda m: fabs(m[c] * m[d]) >= 1.0 and _is_one_more(m),
    ),
    # Choices by sign.
    *(
        StableForm(where(is_positive, x, 0.0), relu(x))
        for is_positive in (gt(x, 0.0), ge(x, 0.0), lt(0.0, x), le(0.0, x))
    ),
    *(
        StableForm(where(is_negative, 0.0, x), relu(x))
        for is_negative in (lt(x, 0.0), le(x, 0.0), gt(0.0, x), ge(0.0, x))
    ),
    # Roots, squares and absolute values.
    StableForm(sqrt(square(x)), abs(x)),
    StableForm(square(root(x)), x),
    # Its slope at 0 is that of x; below, the root has no value.
    StableForm(square(sqrt(x)), mul(where(lt(x, 0.0), nan, 1.0), x)),
    StableForm(square(abs(x)), square(x)),
    StableForm(square(hypot(x, y)), add(square(x), square(y))),
    StableForm(square(exp(x)), exp(mul(2.0, x))),
    StableForm(exp(mul(c, log(x))), pow(x, c)),
    StableForm(exp(mul(c, log1p(x))), pow(add(1.0, x), c)),
    StableForm(abs(square(x)), square(x)),
)
"""All forms; they are tried in this order, and the first that matches is applied."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A form with necessary conditions on a node, by which most candidates are rejected at once."""

    form: StableForm
    functions: int
    heads: frozenset[ScalarFunction]
    has_equal_operands: bool


def _by_function() -> dict[ScalarFunction, tuple[_Candidate, ...]]:
    ordered = sorted(FORMS, key=lambda form: form.function.name)
    return {
        function: tuple(
            _Candidate(
                form,
                functions_of(form.pattern),
                heads(form.pattern),
                has_equal_operands(form.pattern),
            )
            for form in forms
        )
        for function, forms in groupby(ordered, key=lambda form: form.function)
    }


_FORMS_OF = _by_function()


def elementwise(node: Map) -> Expr | None:
    """The replacement of a node by the first form that matches; None without a match."""
    function = add if node.function is sub else node.function
    forms = _FORMS_OF.get(function)
    if forms is None:
        return None
    missing = ~functions_below(node)
    present = heads_of(node)
    is_one_operand = len(set(node.operands)) == 1
    for candidate in forms:
        if candidate.functions & missing or not candidate.heads <= present:
            continue
        if is_one_operand or not candidate.has_equal_operands:
            applied = candidate.form.applied(node)
            if applied is not None:
                return applied
    return None


def merged_constants(node: Map) -> Expr | None:
    """A power of two times a constant times x, with the two constants merged exactly."""
    if not any(isinstance(one, Const) for one in node.operands):
        return None
    for k, part in enumerate(parts_of(node)):
        inner = node.operands[1 - k]
        if not isinstance(part.node, Const) or not is_map(inner, mul) or inner.shape != node.shape:
            continue
        assert isinstance(inner, Map)
        constants = [one for one in inner.operands if isinstance(one, Const)]
        others = [one for one in parts_of(inner) if not isinstance(one.node, Const)]
        both = [part.node.value, *(one.value for one in constants)]
        if len(others) == 1 and any(fabs(value) in (0.5, 1.0, 2.0) for value in both):
            constant = both[0] * both[1]
            if _SMALLEST < fabs(constant) < _LARGEST:
                return mul(constant, others[0].along(node.shape))
    return None


def summed_entropy(node: Einsum) -> Expr | None:
    """The stable form of the sum of x log(x), or of (1 + x) log(1 + x); else None."""
    if len(node.operands) != 2 or node.inputs[0] != node.inputs[1]:
        return None
    if not any(is_map(one, log, log1p) for one in node.operands):
        return None
    product = mul(*node.operands)
    result = elementwise(product) if isinstance(product, Map) else None
    if result is None or not is_map(result, xlogx, xlogx1p):
        return None
    return build.einsum([result], node.inputs[:1], node.output, node.dims)
