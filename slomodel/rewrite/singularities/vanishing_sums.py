"""Zeros of sums: 1 - cos(u), u - sin(u), differences f(a) - f(b), and polynomials."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from slomodel.functions import (
    add,
    cos,
    cosh,
    div,
    exp,
    log,
    mul,
    pow,
    sin,
    sin_quotient,
    sqrt,
    square,
    sub,
)
from slomodel.functions.box_cox import box_cox
from slomodel.functions.removable import SINE_REMAINDER_QUOTIENT, sinh_quotient
from slomodel.ir.dims import Shape
from slomodel.ir.expr import Const, Expr, Map, is_map
from slomodel.ir.function import ScalarFunction
from slomodel.rewrite.elementwise.matching import (
    Part,
    Term,
    exponent_of_power,
    scaled,
    two_terms,
    varies,
)
from slomodel.rewrite.elementwise.polynomials import SumOfProducts, polynomial
from slomodel.rewrite.singularities.divided_differences import (
    DIVIDED,
    Divided,
    divided_polynomial,
    divided_power,
)
from slomodel.rewrite.singularities.factored_products import (
    FactoredProduct,
    VanishingFactor,
    factored,
    power_product,
    rebuilt,
)
from slomodel.rewrite.singularities.regular_factors import (
    divided_exponential,
    divided_logarithm,
    divided_powers,
    power_of,
)


def zeros_of_sum(part: Part, product: FactoredProduct, shape: Shape) -> Iterator[VanishingFactor]:
    """1 - cos(u), u - sin(u), exp(a) - exp(b), log(a) - log(b), x^p - y^p."""
    assert isinstance(part.node, Map)
    for one, other in both_orders(two_terms(part.node)):
        if other.core is None:
            continue
        core = Part(other.core.node, tuple(part.axes[k] for k in other.core.axes))
        c = Fraction(other.coefficient)
        if one.core is None:
            if one.coefficient == -other.coefficient:
                yield from _less_its_value_at_0(core, c, shape)
            yield from _less_a_value(core, c, one.coefficient, product, shape)
        else:
            before = Part(one.core.node, tuple(part.axes[k] for k in one.core.axes))
            sine = core.inner(sin)
            if sine is not None and _is_negative_of(one, scaled(sine), part, other.coefficient):
                yield from _remainder_of_sine(sine, c, shape)
            if one.coefficient == -other.coefficient:
                yield from _difference_of_values(core, before, c, product, shape)
    yield from _zero_of_polynomial(part, product, shape)


def _zero_of_polynomial(
    part: Part, product: FactoredProduct, shape: Shape
) -> Iterator[VanishingFactor]:
    """A polynomial that another sum of the product, linear in one of its parts, divides."""
    for other, p in product.powers.items():
        if p >= 0 or other == part or not is_map(other.node, add, sub):
            continue
        above, below = polynomial(part), polynomial(other)
        if above is None or below is None or not _is_of_degree_one(below):
            return
        quotient = divided_polynomial(above, below)
        if quotient is not None:
            yield _times(FactoredProduct(Fraction(1), {other: 1}), quotient.written(shape))


def _is_of_degree_one(below: SumOfProducts) -> bool:
    return all(sum(p for _, p in monomial) <= 1 for monomial, _ in below.terms)


def _remainder_of_sine(inner: Part, c: Fraction, shape: Shape) -> Iterator[VanishingFactor]:
    """c (sin(u) - u)."""
    own = power_product(inner)
    if own is not None:
        cubed, value = own.to_the(3), SINE_REMAINDER_QUOTIENT.member(0)(inner.along(shape))
        yield _times(FactoredProduct(-c * cubed.number, cubed.powers), value)


def _times(monomial: FactoredProduct, regular: Expr) -> VanishingFactor:
    return VanishingFactor(monomial, lambda p: power_of(regular, p))


def both_orders(terms: list[Term]) -> Iterator[tuple[Term, Term]]:
    yield terms[0], terms[1]
    yield terms[1], terms[0]


def _is_negative_of(term: Term, inside: Term, whole_part: Part, c: float) -> bool:
    """Whether a term is -c times what is inside a function."""
    if term.core is None or inside.core is None:
        return False
    axes = tuple(whole_part.axes[k] for k in term.core.axes)
    same = Part(term.core.node, axes) == inside.core
    return same and Fraction(term.coefficient) == -Fraction(c) * Fraction(inside.coefficient)


def _less_its_value_at_0(core: Part, c: Fraction, shape: Shape) -> Iterator[VanishingFactor]:
    """c (f(u) - f(0)) for the cosines, and c (x^p - 1)."""
    if is_map(core.node, cos, cosh):
        inner = core.parts()[0]
        own = power_product(inner)
        if own is not None:
            circular = is_map(core.node, cos)
            half = mul(0.5, inner.along(shape))
            root = sin_quotient(half) if circular else sinh_quotient(half)
            squared = own.to_the(2)
            number = squared.number * c * Fraction(-1 if circular else 1, 2)
            yield _times(FactoredProduct(number, squared.powers), square(root))
    elif is_map(core.node, pow):
        x, p_part = core.parts()
        own = power_product(p_part)
        if own is not None and varies(p_part.node):
            value = box_cox(*_same_shape(x, p_part, shape))
            yield _times(FactoredProduct(own.number * c, own.powers), value)


def _less_a_value(
    core: Part, c: Fraction, number: float, product: FactoredProduct, shape: Shape
) -> Iterator[VanishingFactor]:
    """c (f(u) - f(b)) for a number b that u is where a divisor of the product is 0."""
    node = core.node
    if not isinstance(node, Map) or not all(isinstance(one, Const) for one in node.operands[1:]):
        return
    u = core.parts()[0]
    for divisor, p in product.powers.items():
        b = _value_at_zero(u, divisor) if p < 0 and is_map(divisor.node, add, sub) else None
        value = None if b is None else node.function(Const(b), *node.operands[1:])
        if b is None or not isinstance(value, Const) or float(c) * value.value != -number:
            continue
        other = Part(Const(b), ())
        power = exponent_of_power(node)
        divided = DIVIDED.get(node.function) or (
            None if power is None else divided_power(Fraction(power))
        )
        if divided is not None:
            yield from zero_of_difference(u, other, c, divided, product, shape)
        elif is_map(node, exp, log):
            kind = exp if is_map(node, exp) else log
            yield from _of_exponential_or_logarithm(kind, u, other, c, product, shape)


def _value_at_zero(u: Part, divisor: Part) -> float | None:
    """The number that u is where a divisor is 0, as both are linear in one quantity."""
    one, other = polynomial(u), polynomial(divisor)
    if one is None or other is None or not one.terms:
        return None
    first, c = one.terms[-1] if one.terms[-1][0] else one.terms[0]
    wanted = next((k for m, k in other.terms if first and frozenset(m) == frozenset(first)), None)
    rest = None if wanted is None else one - other.scaled(Fraction(c) / wanted)
    if rest is None or any(monomial for monomial, _ in rest.terms):
        return None
    return float(sum((Fraction(k) for _, k in rest.terms), Fraction(0)))


def _same_shape(x: Part, y: Part, shape: Shape) -> tuple[Expr, Expr]:
    return x.along(shape), y.along(shape)


def _difference_of_values(
    one: Part, other: Part, c: Fraction, product: FactoredProduct, shape: Shape
) -> Iterator[VanishingFactor]:
    """c (f(a) - f(b)) for functions with divided differences, and c (x^p - y^p)."""
    function = one.node.function if isinstance(one.node, Map) else pow
    if function in DIVIDED and is_map(other.node, function):
        inner = one.parts()[0], other.parts()[0]
        yield from zero_of_difference(*inner, c, DIVIDED[function], product, shape)
    yield from _divided_powers(one, other, c, product, shape)
    if is_map(one.node, pow) and is_map(other.node, pow):
        yield from _difference_of_powers(one, other, c, shape)
    for kind in (exp, log):
        left, right = one.inner(kind), other.inner(kind)
        if left is not None and right is not None:
            yield from _of_exponential_or_logarithm(kind, left, right, c, product, shape)


def _of_exponential_or_logarithm(
    kind: ScalarFunction,
    left: Part,
    right: Part,
    c: Fraction,
    product: FactoredProduct,
    shape: Shape,
) -> Iterator[VanishingFactor]:
    """c (exp(a) - exp(b)) or c (log(a) - log(b))."""
    result = _difference_among(left, right, product, shape)
    if result is None and kind is exp:
        yield from _exponentials_of_multiples(left, right, c, product, shape)
    if result is not None:
        a, b = left.along(shape), right.along(shape)
        divided = divided_exponential if kind is exp else divided_logarithm
        own = FactoredProduct(c * result.number, result.powers)
        yield VanishingFactor(own, lambda p: divided(a, b, p))


def zero_of_difference(
    a: Part, b: Part, c: Fraction, divided: Divided, product: FactoredProduct, shape: Shape
) -> Iterator[VanishingFactor]:
    """c (f(a) - f(b)), where a - b is a multiple of a factor of the product."""
    result = _difference_among(a, b, product, shape)
    if result is not None:
        value = divided(a.along(shape), b.along(shape))
        yield _times(FactoredProduct(c * result.number, result.powers), value)


def _divided_powers(
    one: Part, other: Part, c: Fraction, product: FactoredProduct, shape: Shape
) -> Iterator[VanishingFactor]:
    """c (x^p - y^p) with a number p, which is 0 at x = y."""
    left, right = _power_of_one(one), _power_of_one(other)
    if left is None or right is None or left[1:] != right[1:]:
        return
    divided = divided_power(left[1])
    if divided is not None:
        yield from zero_of_difference(left[0], right[0], c * left[2], divided, product, shape)


def _power_of_one(part: Part) -> tuple[Part, Fraction, Fraction] | None:
    """x, p and c of c x^p."""
    if is_map(part.node, pow, sqrt):
        p = exponent_of_power(part.node)
        if p is not None and not p.is_integer():
            return part.parts()[0], Fraction(p), Fraction(1)
    found = factored(part)
    if found is None or len(found.powers) != 1:
        return None
    ((base, q),) = found.powers.items()
    inner = _power_of_one(base) if base != part and is_map(base.node, pow, sqrt) else None
    if inner is not None:
        return inner[0], inner[1] * q, found.number
    return base, Fraction(q), found.number


def _difference_of_powers(
    one: Part, other: Part, c: Fraction, shape: Shape
) -> Iterator[VanishingFactor]:
    """c (x^p - y^p), which is 0 at p = 0."""
    (x, exponent), (y, same) = one.parts(), other.parts()
    own = power_product(exponent) if exponent == same and varies(exponent.node) else None
    if own is not None:
        value = divided_powers(*_same_shape(x, y, shape), exponent.along(shape))
        yield VanishingFactor(
            FactoredProduct(c * own.number, own.powers), lambda p: power_of(value, p)
        )


def _exponentials_of_multiples(
    left: Part, right: Part, c: Fraction, product: FactoredProduct, shape: Shape
) -> Iterator[VanishingFactor]:
    """c (exp(p u) - exp(q u)) for a factor u of the product, as (p - q) u times a quotient."""
    one, other = power_product(left), power_product(right)
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
    yield VanishingFactor(
        FactoredProduct(c, {u: 1}),
        lambda n: mul(power_of(factor, n), divided_exponential(a, b, n)),
    )


def _difference_among(
    a: Part, b: Part, product: FactoredProduct, shape: Shape
) -> FactoredProduct | None:
    """a - b as a multiple of a factor of the product."""
    left, right = scaled(a), scaled(b)
    if left.core is not None and right.core is not None and left.coefficient == right.coefficient:
        x, y = left.core.along(shape), right.core.along(shape)
        if x is y:
            return None
        for part in product.powers:
            if is_map(part.node, add, sub):
                own = part.along(shape)
                for difference, sign in ((sub(x, y), 1), (sub(y, x), -1)):
                    if own is difference:
                        return FactoredProduct(sign * Fraction(left.coefficient), {part: 1})
    return _multiple_among(a, b, product)


def _multiple_among(a: Part, b: Part, product: FactoredProduct) -> FactoredProduct | None:
    """a - b as a number times a divisor of the product, by their polynomials."""
    one, other = polynomial(a), polynomial(b)
    difference = None if one is None or other is None else one - other
    for part, p in product.powers.items():
        own = polynomial(part) if p < 0 and difference is not None else None
        if own is None or difference is None or not difference.monomials:
            continue
        first, c = difference.terms[0]
        wanted = next((k for m, k in own.terms if frozenset(m) == frozenset(first)), None)
        ratio = None if wanted is None else Fraction(c) / wanted
        if ratio is not None and not (difference - own.scaled(ratio)).terms:
            return FactoredProduct(ratio, {part: 1})
    return None


def zero_of_logarithm(part: Part, product: FactoredProduct, shape: Shape) -> VanishingFactor | None:
    """log(a/b), which is 0 where a = b."""
    inside = part.parts()[0]
    if not is_map(inside.node, div):
        return None
    a, b = inside.parts()
    result = _difference_among(a, b, product, shape)
    if result is None:
        return None
    x, y = a.along(shape), b.along(shape)
    return VanishingFactor(result, lambda p: divided_logarithm(x, y, p))
