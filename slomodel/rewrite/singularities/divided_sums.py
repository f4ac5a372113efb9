"""Quotients of a sum of products, divided inside the sum where that removes a singularity.

In sum(d[i] * sin(x) / x) the divisor does not depend on i, and the sum is divided once. Where one
operand of the sum and the divisor have a removable singularity in common, their quotient is taken
inside the sum. The law: the same quotient, rounded before the sum and not after it. The reverse is
a^c/c - b^c/c, a difference of quotients whose divisor cancels in the difference alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from slomodel.functions import add, div, ge, mul, where
from slomodel.ir import build
from slomodel.ir.expr import Const, Einsum, Expr, Map, is_map
from slomodel.rewrite.elementwise.matching import Part, parts_of, two_terms, whole
from slomodel.rewrite.singularities.factored_products import factored, rebuilt
from slomodel.rewrite.singularities.removable import cancelled


@dataclass(frozen=True, slots=True)
class _DividedSum:
    """A sum of products with operand k divided: `quotient` stands in its place."""

    total: Einsum
    k: int
    quotient: Map

    def rebuilt(self, quotient: Expr, done: Callable[[Expr], Expr]) -> Expr:
        """The sum with another quotient, and with its other operands replaced."""
        operands = [done(operand) for operand in self.total.operands]
        shape = self.total.operands[self.k].shape
        operands[self.k] = build.broadcast(quotient, (), shape) if not quotient.rank else quotient
        return build.einsum(operands, self.total.inputs, self.total.output, self.total.dims)


def divided_inside(
    node: Map, better: Callable[[Map], Expr | None], done: Callable[[Expr], Expr] = lambda one: one
) -> Expr | None:
    """The quotient with a better one inside its sum; None if there is none."""
    for one in _divided_sums(node):
        result = better(one.quotient)
        if result is not None:
            (above, _) = parts_of(node)
            return Part(one.rebuilt(result, done), above.axes).along(node.shape)
    return None


def _divided_sums(node: Map) -> Iterator[_DividedSum]:
    if not is_map(node, div) or not isinstance(node.operands[0], Einsum):
        return
    above, below = parts_of(node)
    total = above.node
    assert isinstance(total, Einsum)
    divisor = without_guard(below)
    labels = [total.output[above.axes.index(axis)] for axis in divisor.axes if axis in above.axes]
    if isinstance(divisor.node, Const) or len(labels) < len(divisor.axes):
        return
    for k, (operand, own) in enumerate(zip(total.operands, total.inputs, strict=True)):
        if not isinstance(operand, Map) or len(set(own)) < len(own) or not set(labels) <= set(own):
            continue
        wide = Part(divisor.node, tuple(own.index(label) for label in labels)).along(operand.shape)
        quotient = div(whole(operand).along(operand.shape), wide)
        if isinstance(quotient, Map):
            yield _DividedSum(total, k, quotient)


def without_guard(divisor: Part) -> Part:
    """x of a divisor of a sum that is x, or 1 where the sum has no terms and is 0."""
    if not is_map(divisor.node, where) or divisor.node.operands[2] is not Const(1.0):
        return divisor
    condition, x, _ = divisor.parts()
    if not is_map(condition.node, ge):
        return divisor
    count, one = condition.node.operands
    is_count = isinstance(count, Einsum) and not count.operands
    return x if is_count and one is Const(1.0) else divisor


def divided_difference(node: Map, better: Callable[[Map], Expr | None]) -> Expr | None:
    """The difference of two quotients of one divisor, divided once, if that divisor cancels."""
    shape = node.shape
    cores = [term.core for term in two_terms(node)]
    products = [
        None if core is None or not _has_divisor(core) else factored(core) for core in cores
    ]
    if None in products:
        return None
    one, other = (product for product in products if product is not None)
    common = {part: p for part, p in one.powers.items() if p < 0 and other.powers.get(part) == p}
    if not common:
        return None
    above: Expr | None = None
    for term, product in zip(two_terms(node), (one, other), strict=True):
        powers = {part: p for part, p in product.powers.items() if part not in common}
        own = mul(term.coefficient, rebuilt(product.number, powers, Const(1.0), shape))
        above = own if above is None else add(above, own)
    if not isinstance(above, Map):
        return None
    divisor = rebuilt(Fraction(1), {part: -p for part, p in common.items()}, Const(1.0), shape)
    quotient = div(better(above) or above, divisor)
    return cancelled(quotient) if isinstance(quotient, Map) else None


def _has_divisor(part: Part) -> bool:
    """Whether a product is written with a divisor among its first factors."""
    node = part.node
    return is_map(node, div) or (
        is_map(node, mul) and any(is_map(operand, div) for operand in node.operands)
    )
