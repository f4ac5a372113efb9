"""Parities of formulas in one of their operands, from those of their functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
from slomodel.ir.expr import Const, Expr, Map

_ODD = frozenset((neg, sin, tan, sinh, tanh, asin, asinh, atan, atanh, erf, cbrt))
_EVEN = frozenset((square, cos, cosh, sech2, logcosh, abs))
_PRODUCTS, _SUMS = frozenset((mul, div)), frozenset((add, sub))


def parities(order: Iterable[Expr], u: Expr) -> dict[Expr, int]:
    """The parities in u of the functions in `order`, operands first; u is odd.

    1 for an even function, or one that does not contain u, -1 for an odd one, 0 for neither.
    """
    result: dict[Expr, int] = {u: -1}
    for node in order:
        if isinstance(node, Map):
            result.setdefault(node, _parity(node, [result.get(o, 1) for o in node.operands]))
    return result


def _parity(node: Map, own: Sequence[int]) -> int:
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
