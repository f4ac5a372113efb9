"""In which direction roots of a graph change with each of its nodes, where its form shows that."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache

import numpy as np

from slomodel.calculus.signs import is_nonnegative
from slomodel.functions import (
    abs,
    add,
    div,
    hypot,
    maximum,
    minimum,
    mul,
    neg,
    pow,
    relu,
    square,
    sub,
    where,
)
from slomodel.ir.expr import (
    Const,
    Einsum,
    Expr,
    Extreme,
    Gather,
    Map,
    Reshape,
    Scan,
    Scatter,
    is_map,
)
from slomodel.ir.function import ScalarFunction

RISING, FALLING, EITHER = 1, 2, 3
"""Never decreasing, never increasing, unknown; two uses of a node combine by |."""
_OPPOSITE = (0, FALLING, RISING, EITHER)
# Two points in the domain of every function of one number that is monotone from 0 on.
_POINTS = (0.25, 0.5)

SignOf = Callable[[Expr], int]
"""A node that is constant -> 1 if it is nowhere negative, −1 if nowhere positive, else 0."""


def directions(
    roots: Mapping[Expr, int], order: Sequence[Expr], varying: Collection[Expr], sign: SignOf
) -> dict[Expr, int]:
    """How what depends on the roots changes with each varying node of `order`, a postorder.

    It changes with the roots as they say. Nodes that no root reads are left out.
    """
    result = dict(roots)
    for node in reversed(order):
        own = result.get(node, 0)
        if not own or node not in varying:
            continue
        for k, operand in enumerate(node.operands):
            if operand in varying:
                step = _direction(node, k, varying, sign)
                along = EITHER if not step else own if step > 0 else _OPPOSITE[own]
                result[operand] = result.get(operand, 0) | along
    return result


def _direction(node: Expr, k: int, varying: Collection[Expr], sign: SignOf) -> int:
    """1 if a node never decreases with its operand k, −1 if it never increases, 0 if unknown."""

    def sign_of(operand: Expr) -> int:
        return int(is_nonnegative(operand)) if operand in varying else sign(operand)

    if isinstance(node, (Gather, Reshape, Scatter, Extreme)):
        return 1
    if isinstance(node, Einsum):
        others = (one for j, one in enumerate(node.operands) if j != k)
        return int(np.prod([sign_of(one) for one in others], initial=1))
    if isinstance(node, Scan):
        return int(k == 1 and sign_of(node.operands[0]) > 0)
    if is_map(node, where):
        return int(k > 0 and node.operands[0] not in varying)
    return _of_function(node, k, sign_of) if isinstance(node, Map) else 0


def _of_function(node: Map, k: int, sign_of: SignOf) -> int:
    """The direction of a function in its operand k."""
    function, own = node.function, node.operands[k]
    if function in (add, maximum, minimum, relu):
        return 1
    if function in (sub, neg):
        return -1 if function is neg or k == 1 else 1
    if function is mul:
        return sign_of(node.operands[1 - k])
    if function is div:
        numerator, denominator = map(sign_of, node.operands)
        # A quotient falls with a positive denominator; one of unknown sign may pass 0.
        return denominator if k == 0 else -numerator * int(denominator > 0)
    if function in (square, abs, hypot):
        return sign_of(own)
    if function is pow and k == 0 and isinstance(node.operands[1], Const):
        return int(np.sign(node.operands[1].value)) * int(sign_of(own) > 0)
    return _of_one_number(function)


@cache
def _of_one_number(function: ScalarFunction) -> int:
    """The direction of a function of one number that is monotone on its domain."""
    stated = function.monotonicity
    if function.arity != 1 or stated is None or stated.period or stated.poles:
        return 0
    if not stated.critical_points or stated.critical_points[0]:
        return 0
    with np.errstate(all="ignore"):
        first, second = (float(function.numpy(np.asarray(point))) for point in _POINTS)
    return int(np.sign(second - first)) if np.isfinite(second - first) else 0
