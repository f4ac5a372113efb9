"""Products as a number times powers of factors, and factors with a zero that others may cancel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from slomodel.functions import div, mul, neg, pow, square
from slomodel.ir.dims import Shape
from slomodel.ir.expr import Const, Expr, is_map
from slomodel.rewrite.elementwise.matching import Part
from slomodel.rewrite.singularities.regular_factors import power

MOST_FACTORS = 8
_LARGEST = 10**300

Powers = dict[Part, int]


@dataclass(slots=True)
class FactoredProduct:
    """A product: a number, and powers of its other factors."""

    number: Fraction = Fraction(1)
    powers: Powers = field(default_factory=dict)

    def to_the(self, p: int) -> FactoredProduct:
        return FactoredProduct(self.number**p, {part: p * e for part, e in self.powers.items()})


def factored(part: Part) -> FactoredProduct | None:
    """The factors of a product; None if there are too many."""
    result = FactoredProduct()
    stack = [(part, 1)]
    steps = 0
    while stack:
        one, p = stack.pop()
        steps += 1
        if steps > 4 * MOST_FACTORS:
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
            if p % 2:
                result.number = -result.number
            stack.append((one.parts()[0], p))
        elif is_map(node, square):
            stack.append((one.parts()[0], 2 * p))
        elif (q := _whole_exponent(node)) is not None:
            stack.append((one.parts()[0], q * p))
        else:
            result.powers[one] = result.powers.get(one, 0) + p
    if len(result.powers) > MOST_FACTORS or not _is_moderate(result.number):
        return None
    return result


def _is_moderate(number: Fraction) -> bool:
    above, below = abs(number.numerator), number.denominator
    return above < _LARGEST * below and below < _LARGEST * above


def _whole_exponent(node: Expr) -> int | None:
    if not is_map(node, pow) or not isinstance(node.operands[1], Const):
        return None
    p = node.operands[1].value
    return int(p) if p.is_integer() and -16.0 <= p <= 16.0 else None


@dataclass(frozen=True, slots=True)
class VanishingFactor:
    """A factor: `monomial` times a regular function, whose p-th power is `regular(p)`."""

    monomial: FactoredProduct
    regular: Callable[[int], Expr]


def power_product(part: Part) -> FactoredProduct | None:
    """A part as a number times powers; None for a constant."""
    result = factored(part)
    if result is None or not result.powers:
        return None
    return FactoredProduct(result.number, result.powers)


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
