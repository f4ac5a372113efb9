"""Even functions of absolute values, as the same functions of the numbers themselves.

cosh(|x|) is cosh(x), and |x| tanh(|x|) is x tanh(x): the same numbers, since negation is exact, in
a form without a kink. The parity of a formula in |x| follows from those of its functions; |f(x)| is
f(|x|) for an odd function f of the sign of its operand.
"""

from __future__ import annotations

from slomodel.calculus.signs import parities
from slomodel.functions import abs, asin, asinh, atan, atanh, cbrt, erf, sinh, tanh
from slomodel.ir.expr import Expr, Map, is_map
from slomodel.rewrite.elementwise.matching import Reaches
from slomodel.rewrite.replacement import remade

_MOST_NODES = 20
"""Nodes of a formula that is examined; every node with an absolute value below it is."""
_OF_ONE_SIGN = (asin, asinh, atan, atanh, cbrt, erf, sinh, tanh)
"""Odd functions of the sign of their operand."""


class EvenFunctions:
    """The even functions of absolute values in one graph."""

    def __init__(self) -> None:
        self._is_over_absolute_value = Reaches(
            lambda node: is_map(node, abs), lambda node: isinstance(node, Map)
        )

    def of_any(self, node: Map) -> Expr | None:
        """An even function of |x| as that of x; None for other nodes."""
        if not self._is_over_absolute_value(node):
            return None
        order = _formula(node)
        sizes = [one for one in order if is_map(one, abs) and one is not node]
        for x in dict.fromkeys(map(_argument, sizes)):
            own = [one for one in sizes if _argument(one) is x]
            if any(
                u.operands[0].shape != u.shape or u.axes[0] != tuple(range(u.rank)) for u in own
            ):
                continue
            found = parities(order, *own)
            if found[node] == 1 and any(found.get(one, 1) != 1 for one in node.operands):
                done: dict[Expr, Expr] = {one: one.operands[0] for one in own}
                for one in order:
                    operands = tuple(done.get(o, o) for o in one.operands)
                    done.setdefault(one, one if operands == one.operands else remade(one, operands))
                return done[node]
        return None


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


def _argument(size: Map) -> Expr:
    """x of |f(x)| for functions f whose sign is that of x."""
    (inner,) = size.operands
    while is_map(inner, *_OF_ONE_SIGN) and inner.operands[0].shape == inner.shape:
        inner = inner.operands[0]
    return inner
