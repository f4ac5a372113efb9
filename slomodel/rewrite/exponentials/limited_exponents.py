"""Exponents limited where an overflow would make derivatives 0 times infinity.

In 1/(1 + 2 exp(x)) and exp(-exp(x)) the exponential overflows where the value has reached its
limit 0, and by the chain rule the derivative is 0 times infinity. An exponential of which all uses
are in divisors, or in operands of functions with a limit at infinity, is computed from min(x, 690),
with derivative 1. Then the divisor is at most about 1e300, and every product of the chain rule is
finite; where exponentials are raised to a power, the limit is smaller in proportion. No exponential
is limited that a small factor, such as another exponential, or a difference may bring back into the
range in which the value still changes. Factors that are variables or data are taken to be 0 or
above 1e-140 in absolute value: beside smaller ones the value is that of the limited exponential.
The law: a value is the same as long as no exponent is above its limit; beyond, it differs from its
limit at infinity by at most the value at the limit of the exponent, about 1e-300, and 1e-150 where
a root of the divisor is taken.

Derivatives are taken of the graph with limited exponents; bounds are those of the graph without.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

from slomodel.functions import (
    DIFFERENCES,
    abs,
    add,
    atan,
    cosh,
    div,
    erf,
    erfc,
    exp,
    expm1,
    mul,
    neg,
    normcdf,
    pow,
    root,
    sech2,
    sigmoid,
    sinh,
    sqrt,
    square,
    sub,
    tanh,
    where,
)
from slomodel.functions.compound import limited
from slomodel.functions.removable import EXP_QUOTIENT, EXP_REMAINDER_QUOTIENT, SINH_QUOTIENT
from slomodel.ir.expr import Const, Einsum, Expr, Gather, Map, Reshape, is_map
from slomodel.ir.walk import postorder
from slomodel.rewrite.exponentials.scaled_logs import ScaledLogarithms
from slomodel.rewrite.replacement import remade

_LARGEST = 690.0
"""exp(690) is about 1e300: a factor of 1e8 beside it does not overflow."""
_TWO_SIDED = frozenset((cosh, sinh))
_LIMITED = frozenset((exp, expm1, *_TWO_SIDED))
_WITH_LIMITS = frozenset(
    (exp, expm1, tanh, sech2, sigmoid, erf, erfc, normcdf, atan, *DIFFERENCES.values())
)
_GROWING = (
    "erfcx",
    "exp_remainder",
    *(family.name[:-1] for family in (EXP_QUOTIENT, EXP_REMAINDER_QUOTIENT, SINH_QUOTIENT)),
)
"""How the names of other functions begin that grow as exponentials do."""
_ALGEBRAIC = frozenset((add, sub, mul, div, neg, square, sqrt, root, abs, pow, where))
_LEAST_FACTOR = 1e-8
"""The least constant beside which an exponential at its limit is still far beyond any change."""
_CARRYING = frozenset((add, sub, mul, neg, square, sqrt, root, abs, where))
"""Functions that are infinite with their operands."""
_OF_LIMITS = 2.0
"""The power counted for operands of functions with limits: their derivatives have squares."""


def with_limited_exponents(objective: Expr) -> Expr:
    """The objective with limited exponents; itself where there are none to limit."""
    order = postorder(objective)
    if not any(_is_exponential(node) for node in order):
        return objective
    growing = _growing(order)
    quotients = ScaledLogarithms()

    def scaled(before: Expr, node: Map) -> Expr | None:
        is_quotient = is_map(before, div) and growing.issuperset(before.operands)
        return quotients.of_written_quotient(node) if is_quotient else None

    objective = _replaced(objective, scaled)
    powers = _powers(objective, postorder(objective))

    def with_limit(before: Expr, node: Map) -> Expr | None:
        if before not in powers:
            return None
        high = _LARGEST / powers[before]
        if node.function is not pow:
            low = -high if node.function in _TWO_SIDED else -math.inf
            return node.function(limited(node.operands[0], low, high))
        base, exponent = node.operands
        assert isinstance(base, Const)
        ends = high / math.log(base.value), math.copysign(math.inf, 1.0 - base.value)
        return pow(base, limited(exponent, min(ends), max(ends)))

    return _replaced(objective, with_limit) if powers else objective


def _replaced(objective: Expr, better: Callable[[Expr, Map], Expr | None]) -> Expr:
    """The graph with better nodes: of a node before and with the new operands, or None."""
    done: dict[Expr, Expr] = {}
    for node in postorder(objective):
        operands = tuple(done[operand] for operand in node.operands)
        made = node if operands == node.operands else remade(node, operands)
        result = better(node, made) if isinstance(made, Map) else None
        done[node] = made if result is None else result
    return done[objective]


def _powers(objective: Expr, order: Sequence[Expr]) -> dict[Expr, float]:
    """The exponentials whose every use tends to a limit where they overflow.

    Each with the largest power to which it is raised in a divisor.
    """
    growing = _growing(order)
    if not growing:
        return {}
    uses = {node: _Uses() for node in order}
    uses[objective].is_free = True
    signs = _Signs(order)
    for node in reversed(order):
        _add_uses(node, uses, growing, signs)
    return {
        node: uses[node].power
        for node in order
        if isinstance(node, Map)
        and _is_exponential(node)
        and not uses[node].is_free
        and not isinstance(node.operands[-1], Const)
    }


def _is_exponential(node: Expr) -> bool:
    """Whether a node is an exponential, or a power of a constant."""
    if is_map(node, pow) and isinstance(node.operands[0], Const):
        return 0.0 < node.operands[0].value != 1.0 and math.isfinite(node.operands[0].value)
    return is_map(node, *_LIMITED)


def _growing(order: Sequence[Expr]) -> set[Expr]:
    """The nodes that may overflow with an exponential."""
    growing: set[Expr] = set()
    for node in order:
        if _grows(node, growing):
            growing.add(node)
    return growing


def _grows(node: Expr, growing: set[Expr]) -> bool:
    """Whether a node is an exponential, or infinite with one among its operands."""
    if isinstance(node, Map):
        if _is_exponential(node) or node.function.name.startswith(_GROWING):
            return True
        if node.function is div:
            above, below = node.operands
            # Divided by a sum with an exponential, it has a limit.
            return above in growing or (below in growing and not is_map(below, add, sub))
        if node.function not in _CARRYING and node.function is not pow:
            return False
    elif not isinstance(node, Einsum | Gather | Reshape):
        return False
    return any(operand in growing for operand in node.operands)


class _Signs:
    """What factors and terms beside an exponential may do to it.

    - `moderate`: the nodes without functions that may be exponentially small.
    - `nonnegative`: sums and products of exponentials and squares.
    - `away`: those with a constant among their terms, which keeps them away from 0.
    """

    def __init__(self, order: Sequence[Expr]) -> None:
        self.moderate: set[Expr] = set()
        self.nonnegative: set[Expr] = set()
        self.away: set[Expr] = set()
        for node in order:
            if self._is_moderate(node):
                self.moderate.add(node)
            if self._is_nonnegative(node):
                self.nonnegative.add(node)
            if self._is_away(node):
                self.away.add(node)

    def _is_moderate(self, node: Expr) -> bool:
        if isinstance(node, Const):
            return math.fabs(node.value) >= _LEAST_FACTOR
        if isinstance(node, Map) and node.function not in _ALGEBRAIC:
            return False
        return all(operand in self.moderate or operand.dtype != "real" for operand in node.operands)

    def _is_nonnegative(self, node: Expr) -> bool:
        if isinstance(node, Const):
            return node.value >= 0.0
        if is_map(node, exp, cosh, square, abs, sqrt) or (
            is_map(node, pow) and _is_exponential(node)
        ):
            return True
        carries = isinstance(node, Einsum | Gather | Reshape) or is_map(node, add, mul, div)
        return carries and all(operand in self.nonnegative for operand in node.operands)

    def _is_away(self, node: Expr) -> bool:
        if isinstance(node, Const):
            return node.value >= _LEAST_FACTOR
        if is_map(node, add):
            own = node.operands
            return self.nonnegative.issuperset(own) and not self.away.isdisjoint(own)
        if is_map(node, pow):
            base, power = node.operands
            return base in self.away and isinstance(power, Const) and power.value > 0.0
        return is_map(node, cosh) or (
            is_map(node, mul, square, sqrt) and self.away.issuperset(node.operands)
        )

    def may_cancel(self, node: Expr, growing: set[Expr]) -> bool:
        """Whether a node may be small though an exponential under it is large."""
        if is_map(node, mul, div) or (isinstance(node, Einsum) and len(node.operands) > 1):
            grows = [one in growing and one not in self.away for one in node.operands]
            rest = [one for one in node.operands if one not in growing]
            if sum(grows) > 1 or not self.moderate.issuperset(rest):
                return True
        adds = is_map(node, add, sub) or (
            isinstance(node, Einsum) and bool({*chain(*node.inputs)} - {*node.output})
        )
        terms = [operand for operand in node.operands if operand in growing]
        if not adds or (len(terms) < 2 and not isinstance(node, Einsum)):
            return False
        if isinstance(node, Einsum):
            terms = list(node.operands)
        return is_map(node, sub) or not all(term in self.nonnegative for term in terms)


@dataclass(slots=True)
class _Uses:
    """How a node that grows is used.

    - `is_free`: the objective may be infinite with it.
    - `is_scaled`: a factor beside it grows, so that a quotient is not negligible where it is small.
    - `power`: the largest power to which it is raised.
    """

    is_free: bool = False
    is_scaled: bool = False
    power: float = 1.0

    def add(self, is_free: bool, is_scaled: bool, power: float) -> None:
        self.is_free |= is_free
        self.is_scaled |= is_scaled
        self.power = max(self.power, power)


def _add_uses(node: Expr, uses: dict[Expr, _Uses], growing: set[Expr], signs: _Signs) -> None:
    """Add the uses of the operands of a node by it."""
    operands = node.operands
    own = uses[node]
    if node in growing and signs.may_cancel(node, growing):
        own.is_free |= not is_map(node, div)
    result = [(True, True, 1.0)] * len(operands)
    if isinstance(node, Einsum | Gather | Reshape):
        result = _carried(operands, own, growing)
    elif isinstance(node, Map):
        function = node.function
        if function in _WITH_LIMITS:
            result = [(False, False, _OF_LIMITS)] * len(operands)
        elif function is div:
            above, below = operands
            is_quotient = above in growing and (below in growing or below not in signs.moderate)
            result = [
                (own.is_free or is_quotient, own.is_scaled, own.power),
                (is_quotient or own.is_scaled, own.is_scaled, own.power),
            ]
        elif function is pow and isinstance(operands[1], Const):
            p = operands[1].value
            is_free = own.is_free if p >= 1.0 else own.is_scaled or p > -1.0
            result = [(is_free, own.is_scaled, own.power * math.fabs(p)), (False, False, 1.0)]
        elif function is square:
            result = [(own.is_free, own.is_scaled, 2.0 * own.power)]
        elif function in _CARRYING:
            result = _carried(operands, own, growing, is_product=function is mul)
    for operand, (is_free, is_scaled, power) in zip(operands, result, strict=True):
        uses[operand].add(is_free, is_scaled, power)


def _carried(
    operands: Sequence[Expr], own: _Uses, growing: set[Expr], is_product: bool = True
) -> list[tuple[bool, bool, float]]:
    """The uses of the operands of a sum or product."""
    result = []
    count = sum(operand in growing for operand in operands) if is_product else 1
    for one in operands:
        others = count - (one in growing) if is_product else 0
        result.append((own.is_free, own.is_scaled or others > 0, own.power * max(1, count)))
    return result
