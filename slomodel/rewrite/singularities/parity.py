"""Even functions of absolute values, as the same functions of the numbers themselves.

cosh(|x|) is cosh(x), and |x| tanh(|x|) is x tanh(x): the same numbers, since negation is exact, in
a form without a kink. The parity of a formula in |x| follows from those of its functions.
"""

from __future__ import annotations

from collections.abc import Sequence

from slomodel.functions import (
    abs,
    add,
    asin,
    asinh,
    atan,
    atanh,
    cbrt,
    cos,
    cosh,
    div,
    erf,
    logcosh,
    mul,
    neg,
    pow,
    sech2,
    sin,
    sinh,
    square,
    sub,
    tan,
    tanh,
)
from slomodel.ir.expr import Const, Expr, Map, is_map
from slomodel.rewrite.replacement import remade

_MOST_NODES = 20
"""Nodes of a formula that is examined; every node with an absolute value below it is."""
_ODD = frozenset((neg, sin, tan, sinh, tanh, asin, asinh, atan, atanh, erf, cbrt))
_EVEN = frozenset((square, cos, cosh, sech2, logcosh, abs))
_PRODUCTS, _SUMS = frozenset((mul, div)), frozenset((add, sub))


class EvenFunctions:
    """The even functions of absolute values in one graph.

    Which nodes are over an absolute value is remembered, so that each is visited once.
    """

    def __init__(self) -> None:
        self._over: dict[Expr, bool] = {}

    def of_any(self, node: Map) -> Expr | None:
        """An even function of |x| as that of x; None for other nodes."""
        if not self._is_over_absolute_value(node):
            return None
        order = _formula(node)
        for u in (one for one in order if is_map(one, abs) and one is not node):
            (x,) = u.operands
            if x.shape != u.shape or u.axes[0] != tuple(range(u.rank)):
                continue
            parities: dict[Expr, int] = {u: -1}
            for one in order:
                parities.setdefault(one, _parity(one, [parities.get(o, 1) for o in one.operands]))
            if parities[node] == 1 and any(parities.get(one, 1) != 1 for one in node.operands):
                done: dict[Expr, Expr] = {u: x}
                for one in order:
                    operands = tuple(done.get(o, o) for o in one.operands)
                    done.setdefault(one, one if operands == one.operands else remade(one, operands))
                return done[node]
        return None

    def _is_over_absolute_value(self, node: Expr) -> bool:
        stack = [node]
        while stack:
            one = stack[-1]
            waiting = [o for o in one.operands if o not in self._over]
            if waiting and not is_map(one, abs):
                stack.append(waiting[-1])
                continue
            over = is_map(one, abs) or any(self._over[o] for o in one.operands)
            self._over[one] = isinstance(one, Map) and over
            stack.pop()
        return self._over[node]


def _formula(node: Map) -> list[Map]:
    """The functions down to absolute values of which a node is made, operands first.

    Empty without absolute values, and for a formula of many nodes.
    """
    order, seen, stack = list[Map](), {node}, [node]
    has_kink = False
    while stack:
        one = stack[-1]
        is_end = is_map(one, abs) and one is not node
        waiting = [o for o in one.operands if isinstance(o, Map) and o not in seen]
        if waiting and not is_end:
            seen.add(waiting[0])
            stack.append(waiting[0])
            if len(seen) > _MOST_NODES:
                return []
            continue
        has_kink |= is_end
        order.append(one)
        stack.pop()
    return order if has_kink else []


def _parity(node: Map, own: Sequence[int]) -> int:
    """1 for an even function, or one that does not contain u, -1 for an odd one, else 0."""
    function = node.function
    if all(parity == 1 for parity in own):
        return 1
    if 0 in own:
        return 0
    if function in _PRODUCTS:
        return own[0] * own[1]
    if function in _SUMS:
        return own[0] if own[0] == own[1] else 0
    if function is pow and isinstance(node.operands[1], Const):
        p = node.operands[1].value
        return 0 if not p.is_integer() else 1 if p % 2.0 == 0.0 else -1
    return 1 if function in _EVEN else -1 if function in _ODD else 0
