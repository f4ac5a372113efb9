"""Differences of a root and what it nearly equals, by the conjugate sum.

sqrt(x^2 + 1) - x loses all digits for large x; (x^2 + 1) - x^2 = 1 divided by sqrt(x^2 + 1) + x
loses none. Likewise the smaller root of a quadratic equation, (b - sqrt(b^2 - 4 a c))/(2 a). The
law: c sqrt(A) + P is (c^2 A - P^2)/(c sqrt(A) - P), which is taken where c and P are of opposite
sign, if terms of c^2 A and P^2 cancel exactly and those that are left do not cancel each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from slomodel.functions import add, div, gt, hypot, log, lt, mul, neg, root, sqrt, sub, where
from slomodel.ir.dims import Shape
from slomodel.ir.expr import Const, Expr, Map, is_map
from slomodel.rewrite.elementwise.matching import Part, whole
from slomodel.rewrite.elementwise.polynomials import UNIT, Monomial, SumOfProducts, polynomial
from slomodel.rewrite.singularities.factored_products import factored
from slomodel.rewrite.stable_forms.addition_theorems import terms_of_sum
from slomodel.rewrite.stable_forms.table import elementwise

_MOST_DEPTH = 3
"""Levels of sums and products within which a root is looked for: matching is far dearer."""


@dataclass(frozen=True, slots=True)
class _Conjugate:
    """A sum as `above / below` where `holds`, and as it stands elsewhere."""

    holds: Expr
    above: SumOfProducts
    below: Expr
    sum: Map

    def written(self, divisor: Monomial = UNIT, by: Expr | None = None) -> Expr:
        """The sum, or its quotient by a monomial, `by`, that divides `above`."""
        shape = self.sum.shape
        terms = [(_divided(one, divisor), c) for one, c in self.above.terms]
        near = div(SumOfProducts(tuple(terms)).written(shape), where(self.holds, self.below, 1.0))
        far = self.sum if by is None else div(self.sum, by)
        return where(self.holds, near, far)


class Conjugates:
    """Differences of roots in one graph, so that their quotients and logarithms are known."""

    def __init__(self) -> None:
        self._known: dict[Expr, _Conjugate] = {}

    def of_sum(self, node: Map) -> Expr | None:
        """c sqrt(A) + P without cancellation; None where nothing cancels exactly."""
        if not _has_root(node):
            return None
        for part, sign, others in _each(terms_of_sum(node)):
            conjugate = _conjugate(node, part, sign, others)
            if conjugate is not None:
                value = conjugate.written()
                self._known[value] = conjugate
                return value
        return None

    def of_quotient(self, node: Map) -> Expr | None:
        """The quotient by a monomial that divides the difference of squares."""
        cached = self._known.get(node.operands[0])
        if cached is None or node.operands[0].shape != node.shape:
            return None
        (_, part) = whole(node).parts()
        divisor = polynomial(part)
        if divisor is None or len(divisor.terms) != 1:
            return None
        ((monomial, c),) = divisor.terms
        powers = dict(monomial)
        if not monomial or not all(_divides(powers, own) for own, _ in cached.above.terms):
            return None
        scaled = _Conjugate(
            cached.holds, cached.above.scaled(Fraction(1) / c), cached.below, cached.sum
        )
        return scaled.written(monomial, part.along(node.shape))

    def of_log(self, node: Map) -> Expr | None:
        """The logarithm of a sum: an inverse hyperbolic function, or that of the quotient if a
        constant cancels, as in log(1 - sqrt(1 - x)).
        """
        inside = node.operands[0]
        cached = self._known.get(inside)
        if inside.shape != node.shape or not isinstance(inside, Map):
            return None
        if cached is not None:
            function = node.function(cached.sum)
            return elementwise(function) if isinstance(function, Map) else None
        if not is_map(inside, add, sub) or not _has_root(inside):
            return None
        found = (_conjugate(inside, *one, constant=True) for one in _each(terms_of_sum(inside)))
        conjugate = next((one for one in found if one is not None), None)
        return None if conjugate is None else log(conjugate.written())


def _each(terms: Sequence[tuple[Part, int]]) -> Iterator[tuple[Part, int, list[tuple[Part, int]]]]:
    """Each term with its sign, and the others."""
    for k, (part, sign) in enumerate(terms):
        yield part, sign, [*terms[:k], *terms[k + 1 :]]


def _has_root(node: Map) -> bool:
    """Whether a root is among the first terms; without, nothing matches."""
    stack: list[tuple[Expr, int]] = [(node, 0)]
    while stack:
        one, depth = stack.pop()
        if is_map(one, sqrt, root, hypot):
            return True
        if depth < _MOST_DEPTH and is_map(one, add, sub, mul, neg):
            stack += [(operand, depth + 1) for operand in one.operands]
    return False


def _conjugate(
    node: Map,
    part: Part,
    sign: int,
    others: Sequence[tuple[Part, int]],
    constant: bool = False,
) -> _Conjugate | None:
    """The sum with the root `part` as a quotient. `constant`: if a constant cancels; other sums of
    a root and a constant are continued by their series.
    """
    product = factored(part)
    if product is None or list(product.powers.values()) != [1]:
        return None
    (length,) = product.powers
    square = _square(length)
    rest = _polynomial_of(others)
    if square is None or rest is None or bool(rest.monomials) == constant:
        return None
    c = sign * product.number
    rest_squared = rest.product(rest)
    if rest_squared is None:
        return None
    squared = square.scaled(c * c)
    above = squared - rest_squared
    cancels = bool((squared.monomials & rest_squared.monomials) - above.monomials)
    if constant:
        cancels = UNIT in dict(squared.terms) and UNIT not in dict(above.terms)
    if not cancels or not _is_safe(above):
        return None
    shape = node.shape
    own = mul(float(c), length.along(shape))
    other = _sum(others, shape)
    holds = (lt if c > 0 else gt)(other, 0.0)
    if isinstance(holds, Const) and not holds.value:
        return None  # nothing cancels, as in 1 + sqrt(1 + x^2), and the sum would replace itself
    return _Conjugate(holds, above, sub(own, other), node)


def _square(part: Part) -> SumOfProducts | None:
    """The square of a root as a polynomial."""
    if is_map(part.node, sqrt, root):
        return polynomial(part.parts()[0])
    if not is_map(part.node, hypot):
        return None
    sides = [polynomial(side) for side in part.parts()]
    squares = [None if side is None else side.product(side) for side in sides]
    one, other = squares
    return None if one is None or other is None else one + other


def _polynomial_of(terms: Sequence[tuple[Part, int]]) -> SumOfProducts | None:
    total = SumOfProducts(())
    for part, sign in terms:
        own = polynomial(part)
        if own is None:
            return None
        total = total + own.scaled(Fraction(sign))
    return total


def _is_safe(total: SumOfProducts) -> bool:
    """Whether the terms do not cancel each other: one term, or squares of one sign."""
    signs = {c > 0 for _, c in total.terms}
    are_even = all(p % 2 == 0 for monomial, _ in total.terms for _, p in monomial)
    return len(total.terms) == 1 or (len(signs) == 1 and are_even)


def _sum(terms: Sequence[tuple[Part, int]], shape: Shape) -> Expr:
    total: Expr = Const(0.0)
    for part, sign in terms:
        total = (add if sign > 0 else sub)(total, part.along(shape))
    return total


def _divides(divisor: dict[Part, int], monomial: Monomial) -> bool:
    powers = dict(monomial)
    return all(powers.get(part, 0) >= p for part, p in divisor.items())


def _divided(monomial: Monomial, divisor: Monomial) -> Monomial:
    powers = dict(monomial)
    for part, p in divisor:
        powers[part] -= p
    return tuple((part, p) for part, p in powers.items() if p)
