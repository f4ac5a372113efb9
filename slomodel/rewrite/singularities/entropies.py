"""Products x log(y) that have the value 0 where x and y vanish together.

The replacement has the same value wherever the product has one, and 0 where it is 0 times -inf.
Such a product is recognised where x may be 0: if x is computed from data alone, or if y has x among
its factors, so that it vanishes with x. In sums the product is distributed over the
logarithms: x (log(a) - log(b) + c) is x log(a) - x log(b) + c x, with errors of the same magnitude.
A logarithm of what is never 0, as a positive constant plus squares or exponentials, stays as it is:
the product has a value then, and where x and y have different axes, a sum of such products is a
product of matrices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from slomodel.functions import add, div, exp, log, log1p, log2, log10, mul, neg, sub, xlog1py, xlogy
from slomodel.ir import build
from slomodel.ir.expr import Const, Einsum, Expr, Map, is_map
from slomodel.ir.walk import inputs
from slomodel.rewrite.elementwise.matching import (
    Part,
    is_shifted,
    parts_of,
    reaches_variable,
    scaled,
    whole,
)
from slomodel.rewrite.elementwise.patterns import heads_of

_LOGARITHMS = {log: 1.0, log2: 1.0 / math.log(2.0), log10: 1.0 / math.log(10.0)}
_MAY_HOLD_LOGARITHMS = frozenset((*_LOGARITHMS, log1p, add, sub))
_MOST_TERMS = 8
_MOST_FACTORS = 8


class Entropies:
    """Products with logarithms in one graph."""

    def __init__(self, is_finite: Callable[[Expr], bool] = lambda node: False) -> None:
        """`is_finite`: whether a logarithm is known to be one of positive operands."""
        self._varies = reaches_variable()
        self._is_finite = is_finite

    def of_product(self, node: Map) -> Expr | None:
        """The stable form of x times a logarithm or a sum with logarithms."""
        if heads_of(node).isdisjoint(_MAY_HOLD_LOGARITHMS):
            return None
        left, right = parts_of(node)
        for x, other in ((left, right), (right, left)):
            if not self._may_vanish(x, other):
                continue
            distributed = self._distributed(x, other, node)
            if distributed is not None:
                return distributed
        return None

    def of_sum(self, node: Einsum) -> Expr | None:
        """The stable form of a sum of products with a logarithm along the same axes as x."""
        for k, (other, labels) in enumerate(zip(node.operands, node.inputs, strict=True)):
            if not isinstance(other, Map) or len(set(labels)) != len(labels):
                continue
            for j, (x, own) in enumerate(zip(node.operands, node.inputs, strict=True)):
                if j == k or own != labels or not self._may_vanish(whole(x), whole(other)):
                    continue
                product = mul(x, other)
                result = self.of_product(product) if isinstance(product, Map) else None
                if result is not None:
                    return _replaced(node, (j, k), result, labels)
        return None

    def _may_vanish(self, x: Part, other: Part) -> bool:
        """Whether x may be 0 where a logarithm in the other factor is infinite."""
        logs = self._logarithms(other)
        if not logs:
            return False
        if not self._varies(x.node):
            return any(node.role == "data" for node in inputs(x.node)) and self._varies(other.node)
        return any(_has_factor(one, scaled(x).core) for one in logs)

    def _distributed(self, x: Part, other: Part, node: Map) -> Expr | None:
        """x times each term of the other factor, stably; None if no term is a logarithm of x."""
        terms = _terms(other)
        if len(terms) > _MOST_TERMS:
            return None
        wide = x.along(node.shape)
        varies = self._varies(x.node)
        result: Expr | None = None
        is_stable = False
        for coefficient, term in terms:
            inner = None if term is None else self._inner(term)
            if term is None or inner is None:
                number = Const(coefficient)
                one = (
                    mul(number, wide)
                    if term is None
                    else mul(number, mul(wide, _along(term, node)))
                )
            elif varies and not _has_factor(term, scaled(x).core):
                one = mul(Const(coefficient), mul(wide, _along(term, node)))
            else:
                is_stable = True
                one = mul(Const(coefficient * inner[0]), _stable(wide, inner[1], node))
            result = one if result is None else add(result, one)
        return result if is_stable else None

    def _logarithms(self, part: Part) -> list[Part]:
        return [term for _, term in _terms(part) if term and self._inner(term) is not None]

    def _inner(self, term: Part) -> tuple[float, Part] | None:
        """The factor of a logarithm relative to the natural one, and its operand.

        Of log1p the node itself, which marks it. None for other nodes, for the logarithm of what
        is never 0, and for that of a sum of exponentials that is at least 1, as its largest is.
        """
        node = term.node
        if not isinstance(node, Map) or _is_shifted_sum(node.operands[0]):
            return None
        if node.function is log1p:
            return 1.0, term
        if node.function in _LOGARITHMS and not self._is_finite(node):
            return _LOGARITHMS[node.function], term.parts()[0]
        return None


def _along(part: Part, node: Map) -> Expr:
    return part.along(node.shape)


def _stable(x: Expr, inside: Part, node: Map) -> Expr:
    """x log(y) as xlogy or, where `inside` is a log1p node, as xlog1py."""
    function = xlogy
    part = inside
    if is_map(inside.node, log1p):
        function, part = xlog1py, inside.parts()[0]
    return function(x, part.along(node.shape))


def _is_shifted_sum(node: Expr) -> bool:
    """Whether a node is a sum of exponentials from which the largest exponent is subtracted."""
    inside = node.operands[0] if isinstance(node, Einsum) and len(node.operands) == 1 else None
    return isinstance(inside, Map) and is_map(inside, exp) and is_shifted(inside.operands[0])


def _terms(part: Part, sign: float = 1.0) -> list[tuple[float, Part | None]]:
    """The terms of a sum with their coefficients; None for a constant."""
    result: list[tuple[float, Part | None]] = []
    stack = [(part, sign)]
    while stack and len(result) <= _MOST_TERMS:
        one, factor = stack.pop()
        term = scaled(one, factor)
        if term.core is None:
            result.append((term.coefficient, None))
        elif is_map(term.core.node, add, sub):
            left, right = term.core.parts()
            minus = -1.0 if is_map(term.core.node, sub) else 1.0
            stack += [(right, minus * term.coefficient), (left, term.coefficient)]
        else:
            result.append((term.coefficient, term.core))
    return result


def _has_factor(logarithm: Part, x: Part | None) -> bool:
    """Whether the operand of a logarithm has x as a factor, and so vanishes where x does."""
    if x is None:
        return False
    node = logarithm.node
    if is_map(node, log1p):
        return _is_one_less(logarithm.parts()[0], x)
    stack = [logarithm.parts()[0]]
    seen = 0
    while stack and seen < _MOST_FACTORS:
        part = stack.pop()
        seen += 1
        if part == x or scaled(part).core == x:
            return True
        if is_map(part.node, mul):
            stack += part.parts()
        elif is_map(part.node, div, neg):
            stack.append(part.parts()[0])
    return False


def _is_one_less(u: Part, x: Part) -> bool:
    """Whether x is 1 + u or 1 - v with u = -v."""
    node = x.node
    if not is_map(node, add, sub) or not isinstance(node, Map):
        return False
    one, inner = scaled(x.parts()[0]), scaled(x.parts()[1], -1.0 if node.function is sub else 1.0)
    terms = [one, inner]
    wanted = scaled(u)
    return any(t.core is None and t.coefficient == 1.0 for t in terms) and wanted in terms


def _replaced(node: Einsum, places: tuple[int, int], entropy: Expr, labels: Sequence[int]) -> Expr:
    """The contraction with one operand in place of two."""
    operands = [one for k, one in enumerate(node.operands) if k not in places]
    own = [one for k, one in enumerate(node.inputs) if k not in places]
    return build.einsum([entropy, *operands], [tuple(labels), *own], node.output, node.dims)
