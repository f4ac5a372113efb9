"""Powers of what is near 1, and 1 beside powers that overflow.

1 - F^p for a distribution function F, as that of the largest of p numbers, loses all digits where F
is near 1, and -(exp(p log(F)) - 1) loses none if log(F) is accurate. log(1 + z^y) is y log(z) where
z^y overflows, as in log-logistic survival. The law: the same value, also where powers overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from slomodel.calculus.signs import is_nonnegative
from slomodel.functions import (
    add,
    div,
    erfc,
    exp,
    expm1,
    gt,
    log,
    log1p,
    mul,
    neg,
    normcdf,
    pow,
    sigmoid,
    sqrt,
    square,
    sub,
    where,
)
from slomodel.ir.dims import Shape
from slomodel.ir.expr import Const, Expr, Map, is_map
from slomodel.rewrite.elementwise.matching import Part, scaled, whole

_LARGE_EXPONENT = 600.0
"""From here on 1 is nothing beside exp(x)."""


class PowersNearOne:
    """The rules for one graph: `best` is the best form of a node, and `written` maps other forms of
    products and powers to these.
    """

    def __init__(self, best: Callable[[Expr], Expr], written: Mapping[Expr, Map]) -> None:
        self._best = best
        self._written = written

    def less_one(self, node: Map) -> Expr | None:
        """1 - F^p, for a probability F whose logarithm is accurate where F is near 1, and also
        1 - (1 + exp(x))^-p.
        """
        left, right = whole(node).parts()
        if not is_map(node, sub) or Const(1.0) not in (left.node, right.node):
            return None
        power, sign = right if left.node is Const(1.0) else left, 1.0
        power = Part(self._written.get(power.node, power.node), power.axes)
        if is_map(power.node, div) and power.parts()[0].node is Const(1.0):
            power, sign = power.parts()[1], -1.0
        power = Part(self._written.get(power.node, power.node), power.axes)
        found = _base_and_exponent(power.along(node.shape))
        if found is None:
            return None
        base, p = found
        is_negative = is_map(p, neg) or (isinstance(p, Const) and p.value < 0.0)
        is_probability = sign > 0.0 and _is_probability(base)
        if not is_probability and not (_is_odds(base) and is_negative == (sign > 0.0)):
            return None
        logarithm = self._best(log(base))
        if logarithm is log(base):
            return None
        u = mul(mul(sign, p), logarithm)
        result = neg(expm1(u)) if left.node is Const(1.0) else expm1(u)
        if is_nonnegative(base) or (isinstance(p, Const) and not p.value.is_integer()):
            return result
        # 1 - exp(-x) is negative for x < 0, where powers by whole numbers are finite.
        is_positive = gt(base, 0.0)
        power_below = pow(where(is_positive, 1.0, base), p)
        below = sub(1.0, power_below) if left.node is Const(1.0) else sub(power_below, 1.0)
        return where(is_positive, result, below)

    def log_of_one_more(self, node: Map) -> Expr | None:
        """log(1 + z^y), which is y log(z) where z^y overflows."""
        found = _growing_power(whole(node).parts()[0], node.shape)
        if found is None:
            return None
        is_large, exponent, power = found
        return where(is_large, exponent, log1p(power))

    def over_one_more(self, node: Map) -> Expr | None:
        """c/(1 + z^y) for a number c, which is c exp(-y log(z)) where z^y overflows."""
        above, below = whole(node).parts()
        others = [] if not is_map(below.node, add) else below.parts()
        powers = [part for part in others if part.node is not Const(1.0)]
        found = _growing_power(powers[0], node.shape) if len(others) - len(powers) == 1 else None
        if found is None or not isinstance(above.node, Const):
            return None
        is_large, exponent, power = found
        near = div(above.node, add(1.0, power))
        return where(is_large, mul(above.node, exp(neg(exponent))), near)


def _is_probability(node: Expr) -> bool:
    """Whether a node is a distribution function, or 1 - exp(-x)."""
    if is_map(node, neg):
        return is_map(node.operands[0], expm1)
    own = scaled(whole(node))
    is_tail = own.core is not None and is_map(own.core.node, erfc) and own.coefficient > 0.0
    return is_map(node, sigmoid, normcdf) or is_tail


def _is_odds(node: Expr) -> bool:
    """Whether a node is 1 + exp(x), whose inverse is a probability."""
    return (
        is_map(node, add)
        and Const(1.0) in node.operands
        and any(is_map(one, exp) for one in node.operands)
    )


def _growing_power(part: Part, shape: Shape) -> tuple[Expr, Expr, Expr] | None:
    """Whether z^y is large, with y log(z), and the power elsewhere, where it is 1 there."""
    if not is_map(part.node, pow):
        return None
    base, y = (one.along(shape) for one in part.parts())
    if isinstance(base, Const) or isinstance(y, Const):
        return None
    exponent = mul(y, log(base))
    is_large = gt(exponent, _LARGE_EXPONENT)
    return is_large, exponent, pow(where(is_large, 1.0, base), where(is_large, 1.0, y))


def _base_and_exponent(node: Expr) -> tuple[Expr, Expr] | None:
    """u and p of a power u^p, which may be written as a root or as products of squares."""
    if not isinstance(node, Map) or not is_map(node, pow, sqrt, square, mul):
        return None
    base, *others = (part.along(node.shape) for part in whole(node).parts())
    if is_map(node, pow):
        return base, others[0]
    if is_map(node, sqrt):
        return base, Const(0.5)
    one, other = (_base_and_whole_exponent(k) for k in (base, *(others or [base])))
    return (one[0], Const(one[1] + other[1])) if one[0] is other[0] else None


def _base_and_whole_exponent(node: Expr) -> tuple[Expr, float]:
    found = _base_and_exponent(node)
    if found is None or not isinstance(found[1], Const) or not found[1].value.is_integer():
        return node, 1.0
    return found[0], found[1].value
