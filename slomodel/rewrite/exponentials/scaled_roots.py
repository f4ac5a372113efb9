"""Roots of sums of exponentials, scaled against overflow: sqrt(1 + exp(x)) is exp(x/2) at 800.

A^p is (A exp(-s))^p exp(p s) for any s, which is the excess of the scale of A, as in logarithms
(`scaled_logs.py`): 0 unless the exponentials come near the ends of the range of doubles. It is
taken as constant, so that derivatives are those of (A exp(-s))^p, times exp(p s). Logarithms of
what is above such roots are scaled by `scaled_logs.py`, which sees the roots as they are written.
"""

from __future__ import annotations

from collections.abc import Mapping

from slomodel.functions import add, cbrt, div, exp, mul, neg, pow, sqrt, sub
from slomodel.ir.expr import Einsum, Expr, Gather, Map, is_map
from slomodel.ir.walk import postorder, users
from slomodel.rewrite.elementwise.matching import exponent_of_power, scaled, summands, whole
from slomodel.rewrite.exponentials.growth import exponent_of, growth
from slomodel.rewrite.exponentials.scaled_logs import ScaledLogarithms
from slomodel.rewrite.replacement import remade

_MOST_TERMS = 8
"""Terms that are examined; sums of more are left as written."""


def with_scaled_roots(root: Expr) -> Expr:
    """The graph with roots of sums of exponentials in scaled form."""
    order = postorder(root)
    if not any(_power(node) is not None for node in order):
        return root
    above = users(order)
    scales = ScaledLogarithms()
    done: dict[Expr, Expr] = {}
    for node in order:
        operands = tuple(done[operand] for operand in node.operands)
        result = node if operands == node.operands else remade(node, operands)
        p = _power(result)
        is_sum = p is not None and _is_plain_sum(result.operands[0]) and not _divides(node, above)
        found = scales.of_growing(result.operands[0]) if is_sum else None
        if found is not None and p is not None and isinstance(result, Map):
            rest, shift = found
            others = result.operands[1:]
            result = mul(result.function(rest, *others), exp(mul(p, shift)))
        done[node] = result
    return done[root]


def _divides(node: Expr, above: Mapping[Expr, list[Expr]]) -> bool:
    """Whether a node is part of a divisor: the exponents in these are limited."""
    stack, seen = [node], {node}
    while stack:
        one = stack.pop()
        for user in above[one]:
            power = exponent_of_power(user)
            is_divisor = is_map(user, div) and one in user.operands[1:]
            if is_divisor or (power is not None and power < 0.0):
                return True
            if user not in seen and (
                isinstance(user, Einsum | Gather) or is_map(user, add, sub, mul, neg, div)
            ):
                seen.add(user)
                stack.append(user)
    return False


def _is_plain_sum(node: Expr) -> bool:
    """Whether all terms are numbers and exponentials: where they have other factors, these are
    scales, as in norms of weighted residuals, and scaled forms are several times the work.
    """
    cores = [scaled(part).core for part in summands(node, most=_MOST_TERMS)]
    return all(core is None or (isinstance(core.node, Map) and _grows(core.node)) for core in cores)


def _grows(node: Map) -> bool:
    return exponent_of(whole(node)) is not None or growth(node) is not None


def _power(node: Expr) -> float | None:
    """p of a power x^p whose value may be in range where that of x is not."""
    if is_map(node, cbrt):
        return 1.0 / 3.0
    p = exponent_of_power(node) if is_map(node, sqrt, pow) else None
    return p if p is not None and 0.0 < p < 1.0 else None
