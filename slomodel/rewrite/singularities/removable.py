"""Products in which zeros and poles of factors meet: removable singularities, continued.

The factor h(u) of a product is u·q(u) where h has a simple zero at 0, and q is a function of the
table that has full accuracy at 0, with its derivatives. The law: in a product the powers of u that
such factors contribute are merged with those that stand beside them; away from u = 0 the value
is the same up to a few rounding errors, and at u = 0 it is the limit. Only products without a pole
left are changed, such as (1 - exp(-x))/x, x/tanh(x), x³/(exp(x) - 1), (1 - cos(x))/x², log(1 + p
x)/p, (a - b)/log(a/b) and (x^p - 1)/p.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from slomodel.functions import (
    add,
    cos,
    cosh,
    div,
    exp,
    expm1,
    log,
    log1p,
    mul,
    neg,
    pow,
    sin,
    sin_quotient,
    square,
    sub,
    tanh,
)
from slomodel.functions.box_cox import box_cox
from slomodel.functions.logarithms import bose
from slomodel.functions.remainders import exp_remainder
from slomodel.functions.removable import (
    BERNOULLI,
    EXP_REMAINDER_QUOTIENT,
    QUOTIENTS,
    SINE_REMAINDER_QUOTIENT,
    exp_quotient,
    sinh_quotient,
)
from slomodel.ir.dims import Shape
from slomodel.ir.expr import Const, Expr, Map, is_map
from slomodel.rewrite.elementwise.matching import Part, Term, scaled, two_terms, varies, whole
from slomodel.rewrite.singularities.regular_factors import (
    bose_less_pole,
    divided_exponential,
    divided_logarithm,
    divided_powers,
    langevin,
    or_reciprocal,
    power,
    power_of,
    reciprocal,
)

_MOST_FACTORS = 8
_LARGEST = 10**300
_WITH_ZEROS = frozenset((*QUOTIENTS, bose, log, add, sub, exp_remainder))

Powers = dict[Part, int]


@dataclass(frozen=True, slots=True)
class _Monomial:
    """A number times powers of parts."""

    number: Fraction
    powers: Powers

    def to_the(self, p: int) -> _Monomial:
        return _Monomial(self.number**p, {part: p * e for part, e in self.powers.items()})


@dataclass(frozen=True, slots=True)
class _VanishingFactor:
    """A factor: `monomial` times a regular function, whose p-th power is `regular(p)`."""

    monomial: _Monomial
    regular: Callable[[int], Expr]


@dataclass(slots=True)
class FactoredProduct:
    """A product: a number, and powers of its other factors."""

    number: Fraction = Fraction(1)
    powers: Powers = field(default_factory=dict)


def factored(part: Part) -> FactoredProduct | None:
    """The factors of a product; None if there are too many."""
    result = FactoredProduct()
    stack = [(part, 1)]
    steps = 0
    while stack:
        one, p = stack.pop()
        steps += 1
        if steps > 4 * _MOST_FACTORS:
            return None
        node = one.node
        if isinstance(node, Const):
            if not node.value or node.value - node.value != 0.0:
                return None
            result.number *= Fraction(node.value) ** p
        elif is_map(node, mul):
            stack += [(own, p) for own in reversed(one.parts())]
        elif is_map(node, div):
            left, right = one.parts()
            stack += [(right, -p), (left, p)]
        elif is_map(node, neg):
            result.number *= (-1) ** p
            stack.append((one.parts()[0], p))
        elif is_map(node, square):
            stack.append((one.parts()[0], 2 * p))
        elif (q := _whole_exponent(node)) is not None:
            stack.append((one.parts()[0], q * p))
        else:
            result.powers[one] = result.powers.get(one, 0) + p
    if len(result.powers) > _MOST_FACTORS or not _is_moderate(result.number):
        return None
    return result


def _is_moderate(number: Fraction) -> bool:
    return Fraction(1, _LARGEST) < max(number, -number) < _LARGEST


def _whole_exponent(node: Expr) -> int | None:
    if not is_map(node, pow) or not isinstance(node.operands[1], Const):
        return None
    p = node.operands[1].value
    return int(p) if p.is_integer() and -16.0 <= p <= 16.0 else None


def _monomial(part: Part) -> _Monomial | None:
    """A part as a number times powers; None for a constant."""
    result = factored(part)
    if result is None or not result.powers:
        return None
    return _Monomial(result.number, result.powers)


def cancelled(node: Map) -> Expr | None:
    """A product or quotient without its removable singularities; None if it has none."""
    if not _may_cancel(node):
        return None
    product = factored(whole(node))
    if product is None:
        return None
    shape = node.shape
    zeros = {
        part: (p, _aligned(zero, product.powers))
        for part, p in product.powers.items()
        if (zero := _zero(part, product, shape)) is not None
    }
    chosen = {part: one for part, one in zeros.items() if _meets(part, one, product, zeros)}
    if not chosen:
        return None
    number = product.number
    powers = {part: p for part, p in product.powers.items() if part not in chosen}
    regular: Expr | None = None
    for p, zero in chosen.values():
        own = zero.monomial.to_the(p)
        number *= own.number
        for core, e in own.powers.items():
            powers[core] = powers.get(core, 0) + e
        factor = zero.regular(p)
        regular = factor if regular is None else mul(regular, factor)
    assert regular is not None
    return rebuilt(number, powers, regular, shape)


def _aligned(zero: _VanishingFactor, powers: Powers) -> _VanishingFactor:
    """The factor with a - b written as -(b - a) where that is a factor of the product."""
    sign, own = 1, dict[Part, int]()
    for core, e in zero.monomial.powers.items():
        other = _negative(core)
        if core not in powers and other is not None and other in powers:
            core, sign = other, sign * (-1) ** e
        own[core] = own.get(core, 0) + e
    return _VanishingFactor(_Monomial(sign * zero.monomial.number, own), zero.regular)


def _negative(part: Part) -> Part | None:
    """b - a for a - b."""
    if not is_map(part.node, sub):
        return None
    left, right = whole(part.node).parts()
    shape = part.node.shape
    return Part(sub(right.along(shape), left.along(shape)), part.axes)


def _may_cancel(node: Map) -> bool:
    """Whether a function with a zero or pole is among the first factors."""
    stack: list[Expr] = list(node.operands)
    for _ in range(2 * _MOST_FACTORS):
        if not stack:
            return False
        one = stack.pop()
        if isinstance(one, Map):
            if one.function in _WITH_ZEROS:
                return True
            if one.function in (mul, div, neg, square, pow):
                stack += one.operands
    return False


def _meets(
    part: Part,
    one: tuple[int, _VanishingFactor],
    product: FactoredProduct,
    zeros: dict[Part, tuple[int, _VanishingFactor]],
) -> bool:
    """Whether powers that the factor contributes are cancelled by others, and no pole is left."""
    p, zero = one
    for core, e in zero.monomial.powers.items():
        own = e * p
        contributions = [q * other.monomial.powers.get(core, 0) for q, other in zeros.values()] + (
            [product.powers[core]] if core in product.powers and core not in zeros else []
        )
        above = sum(contribution for contribution in contributions if contribution > 0)
        below = -sum(one for one in contributions if one < 0)
        if own and above and below and above >= below:
            return True
    return False


def rebuilt(number: Fraction, powers: Powers, regular: Expr, shape: Shape) -> Expr:
    """number * regular * the powers."""
    above, below = regular, None
    for part, p in powers.items():
        if not p:
            continue
        one = part.along(shape)
        if p > 0:
            above = mul(power(one, p), above)
        else:
            below = power(one, -p) if below is None else mul(below, power(one, -p))
    if below is not None:
        above = div(above, below)
    return above if number == 1 else mul(float(number), above)


def _zero(part: Part, product: FactoredProduct, shape: Shape) -> _VanishingFactor | None:
    """A factor as a monomial times a regular function."""
    node = part.node
    if not isinstance(node, Map) or node.function not in _WITH_ZEROS:
        return None
    if node.function is log:
        return _logarithm_of_quotient(part, product, shape)
    if is_map(node, add, sub):
        return next((one for one in _zeros_of_sum(part, product, shape)), None)
    inner = part.parts()[0]
    own = _monomial(inner)
    if own is None:
        return None
    u = inner.along(shape)
    if node.function is bose:
        return _VanishingFactor(own.to_the(-1), lambda p: power_of(BERNOULLI.member(0)(u), p))
    if node.function is exp_remainder:
        return _VanishingFactor(
            own.to_the(2), lambda p: power_of(EXP_REMAINDER_QUOTIENT.member(0)(u), p)
        )
    if node.function is expm1:
        return _VanishingFactor(
            own, lambda p: or_reciprocal(exp_quotient(u), BERNOULLI.member(0)(u), p)
        )
    if node.function is tanh:
        coth = add(1.0, mul(u, langevin(u)))
        return _VanishingFactor(own, lambda p: or_reciprocal(QUOTIENTS[tanh].member(0)(u), coth, p))
    function = node.function
    return _VanishingFactor(
        own, lambda p: or_reciprocal(QUOTIENTS[function].member(0)(u), reciprocal(function, u), p)
    )


def _zeros_of_sum(part: Part, product: FactoredProduct, shape: Shape) -> Iterator[_VanishingFactor]:
    """1 - cos(u), u - sin(u), exp(a) - exp(b), log(a) - log(b), x^p - y^p."""
    assert isinstance(part.node, Map)
    for one, other in _both_orders(two_terms(part.node)):
        if other.core is None:
            continue
        core = Part(other.core.node, tuple(part.axes[k] for k in other.core.axes))
        c = Fraction(other.coefficient)
        if one.core is None and one.coefficient == -other.coefficient:
            yield from _less_its_value_at_0(core, c, shape)
        elif one.core is not None:
            before = Part(one.core.node, tuple(part.axes[k] for k in one.core.axes))
            sine = core.inner(sin)
            if sine is not None and _is_negative_of(one, scaled(sine), part, other.coefficient):
                yield from _remainder_of_sine(sine, c, shape)
            if one.coefficient == -other.coefficient:
                yield from _difference_of_values(core, before, c, product, shape)


def _remainder_of_sine(inner: Part, c: Fraction, shape: Shape) -> Iterator[_VanishingFactor]:
    """c (sin(u) - u)."""
    own = _monomial(inner)
    if own is not None:
        cubed, value = own.to_the(3), SINE_REMAINDER_QUOTIENT.member(0)(inner.along(shape))
        yield _VanishingFactor(
            _Monomial(-c * cubed.number, cubed.powers), lambda p: power_of(value, p)
        )


def _both_orders(terms: list[Term]) -> Iterator[tuple[Term, Term]]:
    yield terms[0], terms[1]
    yield terms[1], terms[0]


def _is_negative_of(term: Term, inside: Term, whole_part: Part, c: float) -> bool:
    """Whether a term is -c times what is inside a function."""
    if term.core is None or inside.core is None:
        return False
    axes = tuple(whole_part.axes[k] for k in term.core.axes)
    same = Part(term.core.node, axes) == inside.core
    return same and Fraction(term.coefficient) == -Fraction(c) * Fraction(inside.coefficient)


def _less_its_value_at_0(core: Part, c: Fraction, shape: Shape) -> Iterator[_VanishingFactor]:
    """c (f(u) - f(0)) for the cosines, and c (x^p - 1)."""
    if is_map(core.node, cos, cosh):
        inner = core.parts()[0]
        own = _monomial(inner)
        if own is not None:
            circular = is_map(core.node, cos)
            half = mul(0.5, inner.along(shape))
            root = sin_quotient(half) if circular else sinh_quotient(half)
            squared = own.to_the(2)
            number = squared.number * c * Fraction(-1 if circular else 1, 2)
            yield _VanishingFactor(
                _Monomial(number, squared.powers), lambda p: power_of(square(root), p)
            )
    elif is_map(core.node, pow):
        x, p_part = core.parts()
        own = _monomial(p_part)
        if own is not None and varies(p_part.node):
            value = box_cox(*_same_shape(x, p_part, shape))
            yield _VanishingFactor(
                _Monomial(own.number * c, own.powers), lambda p: power_of(value, p)
            )


def _same_shape(x: Part, y: Part, shape: Shape) -> tuple[Expr, Expr]:
    return x.along(shape), y.along(shape)


def _difference_of_values(
    one: Part, other: Part, c: Fraction, product: FactoredProduct, shape: Shape
) -> Iterator[_VanishingFactor]:
    """c (f(a) - f(b)) for f = exp and log, and c (x^p - y^p)."""
    if is_map(one.node, pow) and is_map(other.node, pow):
        yield from _difference_of_powers(one, other, c, shape)
    for function, divided in ((exp, divided_exponential), (log, divided_logarithm)):
        left, right = one.inner(function), other.inner(function)
        if left is None or right is None:
            continue
        result = _difference_among(left, right, product, shape)
        a, b = left.along(shape), right.along(shape)
        if result is None and function is exp:
            yield from _exponentials_of_multiples(left, right, c, product, shape)
        if result is not None:
            own = _Monomial(c * result.number, result.powers)
            yield _VanishingFactor(own, lambda p, f=divided, a=a, b=b: f(a, b, p))  # type: ignore[misc]


def _difference_of_powers(
    one: Part, other: Part, c: Fraction, shape: Shape
) -> Iterator[_VanishingFactor]:
    """c (x^p - y^p), which is 0 at p = 0."""
    (x, exponent), (y, same) = one.parts(), other.parts()
    own = _monomial(exponent) if exponent == same and varies(exponent.node) else None
    if own is not None:
        value = divided_powers(*_same_shape(x, y, shape), exponent.along(shape))
        yield _VanishingFactor(_Monomial(c * own.number, own.powers), lambda p: power_of(value, p))


def _exponentials_of_multiples(
    left: Part, right: Part, c: Fraction, product: FactoredProduct, shape: Shape
) -> Iterator[_VanishingFactor]:
    """c (exp(p u) - exp(q u)) for a factor u of the product, as (p - q) u times a quotient."""
    one, other = _monomial(left), _monomial(right)
    if one is None or other is None:
        return
    u = next((u for u, e in one.powers.items() if e == 1 == other.powers.get(u)), None)
    if u is None or u not in product.powers:
        return
    rests = [{part: e for part, e in m.powers.items() if part != u} for m in (one, other)]
    unit: Expr = Const(1.0)
    factor = sub(
        rebuilt(one.number, rests[0], unit, shape), rebuilt(other.number, rests[1], unit, shape)
    )
    a, b = left.along(shape), right.along(shape)
    yield _VanishingFactor(
        _Monomial(c, {u: 1}),
        lambda n: mul(power_of(factor, n), divided_exponential(a, b, n)),
    )


def _difference_among(a: Part, b: Part, product: FactoredProduct, shape: Shape) -> _Monomial | None:
    """a - b as a multiple of a factor of the product."""
    left, right = scaled(a), scaled(b)
    if left.core is None or right.core is None or left.coefficient != right.coefficient:
        return None
    x, y = left.core.along(shape), right.core.along(shape)
    if x is y:
        return None
    for part in product.powers:
        if is_map(part.node, add, sub):
            own = part.along(shape)
            for difference, sign in ((sub(x, y), 1), (sub(y, x), -1)):
                if own is difference:
                    return _Monomial(sign * Fraction(left.coefficient), {part: 1})
    return None


def _logarithm_of_quotient(
    part: Part, product: FactoredProduct, shape: Shape
) -> _VanishingFactor | None:
    """log(a/b), which is 0 where a = b."""
    inside = part.parts()[0]
    if not is_map(inside.node, div):
        return None
    a, b = inside.parts()
    result = _difference_among(a, b, product, shape)
    if result is None:
        return None
    x, y = a.along(shape), b.along(shape)
    return _VanishingFactor(result, lambda p: divided_logarithm(x, y, p))


def without_common_pole(node: Map) -> Expr | None:
    """1/tanh(u) - 1/u or 1/(exp(u) - 1) - 1/u, times a number; else None."""
    for one, other in _both_orders(two_terms(node)):
        if one.core is None or other.core is None:
            continue
        pole, rest = factored(one.core), factored(other.core)
        if pole is None or rest is None or len(pole.powers) != 1:
            continue
        ((part, p),) = pole.powers.items()
        is_bose, is_coth = is_map(part.node, bose) and p == 1, is_map(part.node, tanh) and p == -1
        if not (is_bose or is_coth):
            continue
        inner = part.parts()[0]
        own = _monomial(inner)
        if own is None:
            continue
        c = Fraction(one.coefficient) * pole.number
        if own.to_the(-1).powers != rest.powers:
            continue
        if c / own.number != -Fraction(other.coefficient) * rest.number:
            continue
        u = inner.along(node.shape)
        return mul(float(c), langevin(u) if is_coth else bose_less_pole(u))
    return None


def exponential_power(node: Map) -> Expr | None:
    """(1 + p x)^(c/p), whose limit at p = 0 is exp(c x); else None."""
    base, exponent = whole(node).parts()
    if isinstance(exponent.node, Const) or not is_map(base.node, add, sub):
        return None
    assert isinstance(base.node, Map)
    terms = two_terms(base.node)
    others = [term for term in terms if term != Term(1.0, None)]
    if len(others) != 1 or others[0].core is None:
        return None
    core = others[0].core
    inner = Part(core.node, tuple(base.axes[k] for k in core.axes))
    u = mul(others[0].coefficient, inner.along(node.shape))
    result = mul(exponent.along(node.shape), log1p(u))
    without = cancelled(result) if isinstance(result, Map) else None
    return None if without is None else exp(without)
