"""Signs and parities that follow from the form of a graph."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from weakref import WeakKeyDictionary

import slomodel.functions as table
from slomodel.functions import symbols
from slomodel.ir.expr import Const, Einsum, Expr, Gather, Map, Reshape
from slomodel.ir.function import ScalarFunction

_KEEPING_SIGNS = (table.add, table.mul, table.div, table.maximum, table.minimum)
_PRODUCTS, _SUMS = frozenset((table.mul, table.div)), frozenset((table.add, table.sub))
# Kept, so that asking for each node of a long graph takes time in proportion to its length.
_nonnegative: WeakKeyDictionary[Expr, bool] = WeakKeyDictionary()
_positive: WeakKeyDictionary[Expr, bool] = WeakKeyDictionary()


def _is_never_negative(node: Expr) -> bool:
    if isinstance(node, Const):
        return node.value >= 0.0
    return isinstance(node, Map) and _has_no_negative_values(node.function)


def _has_no_negative_values(function: ScalarFunction) -> bool:
    """Whether values are nowhere negative, computed ones too: no terms cancel in them."""
    if function in (table.square, table.abs):
        return True
    stated = function.monotonicity
    return stated is not None and stated.image[0] >= 0.0 and function.error_scale is None


def is_nonnegative(node: Expr) -> bool:
    """Whether a node consists of squares and the like, so that it is nowhere negative."""
    if node in _nonnegative:
        return _nonnegative[node]
    stack, seen = [node], {node}
    while stack:
        one = stack.pop()
        known = _nonnegative.get(one)
        if known:
            continue
        if known is False:
            _nonnegative[node] = False
            return False
        if isinstance(one, Einsum):
            factors = list(zip(one.operands, one.inputs, strict=True))
            below = [operand for operand, own in factors if factors.count((operand, own)) % 2]
        elif isinstance(one, Map) and one.function in _KEEPING_SIGNS:
            below = list(one.operands)
        elif _is_never_negative(one):
            continue
        elif isinstance(one, (Gather, Reshape)):
            below = [one.operands[0]]
        else:
            _nonnegative[node] = False
            return False
        stack += [operand for operand in below if operand not in seen]
        seen.update(below)
    _nonnegative.update(dict.fromkeys(seen, True))
    return True


def is_positive(node: Expr) -> bool:
    """Whether a node is a positive constant plus what is nowhere negative, and so is never 0.

    Products and exponentials are left out, as they underflow to 0.
    """
    stack, seen = [node], set()
    while stack:
        one = stack.pop()
        if one in seen or not _positive.get(one, True):
            continue
        seen.add(one)
        if _positive.get(one, False) or (isinstance(one, Const) and one.value > 0.0):
            _positive[node] = True
            return True
        if isinstance(one, Map) and one.function is table.add and is_nonnegative(one):
            stack += one.operands
        elif isinstance(one, (Gather, Reshape)):
            stack.append(one.operands[0])
    _positive.update(dict.fromkeys(seen, False))
    return False


_MAY_VANISH, _SIGN_OF_DATA, _NEVER = range(3)


class NeverZero:
    """Whether nodes are 0 for no values of what varies, or for all: their sign is that of data.

    In exact arithmetic: an exponential may underflow to 0.
    """

    def __init__(self, varying: Collection[Expr]) -> None:
        self._varying = varying
        self._known: dict[Expr, int] = {}

    def __contains__(self, node: Expr) -> bool:
        stack = [node]
        while stack:
            below = self._factors(stack[-1])
            waiting = [one for one in below if one not in self._known]
            stack += waiting
            if not waiting:
                one = stack.pop()
                self._known[one] = self._found(one, below)
        return self._known[node] != _MAY_VANISH

    def _factors(self, node: Expr) -> tuple[Expr, ...]:
        """The operands on whose signs that of a node depends."""
        if node not in self._varying:
            return ()
        if isinstance(node, (Gather, Reshape)) or (
            isinstance(node, Map)
            and node.function
            in (table.mul, table.neg, table.abs, table.square, table.sqrt, table.add)
        ):
            return node.operands
        is_ratio = isinstance(node, Map) and node.function in (table.div, table.pow)
        return node.operands[:1] if is_ratio else ()

    def _found(self, node: Expr, factors: tuple[Expr, ...]) -> int:
        if node not in self._varying:
            return _NEVER if _is_nonzero_number(node) or is_positive(node) else _SIGN_OF_DATA
        signs = [self._known[one] for one in factors]
        if not isinstance(node, Map):
            return min(signs, default=_MAY_VANISH)
        if node.function is table.add:
            if is_positive(node):
                return _NEVER
            own = zip(factors, signs, strict=True)
            moving = [known for one, known in own if one in self._varying]
            if not is_nonnegative(node):
                return _MAY_VANISH
            # Where data are 0, the terms with them vanish, and others may be 0 at some points.
            return _NEVER if max(moving) == _NEVER else min(moving)
        if node.function is table.pow:
            if isinstance(factors[0], Const) and factors[0].value > 0.0:
                return _NEVER
            return _MAY_VANISH if node.operands[1] in self._varying else signs[0]
        if signs:
            return min(signs)
        return _NEVER if _is_positive_everywhere(node.function) else _MAY_VANISH


def _is_nonzero_number(node: Expr) -> bool:
    return isinstance(node, Const) and node.value != 0.0


@cache
def _is_positive_everywhere(function: ScalarFunction) -> bool:
    """Whether all values are above 0: strictly monotone functions do not attain their limit 0."""
    stated = function.monotonicity
    if stated is None or function.kinks:
        return False
    everywhere = all(map(math.isinf, (end for ends in function.domain for end in ends)))
    is_monotone = not stated.critical_points[0] and everywhere
    return stated.image[0] > 0.0 or (stated.image[0] == 0.0 and is_monotone)


@cache
def parity_of(function: ScalarFunction) -> int:
    """1 for an even function of one number, -1 for an odd one, 0 where SymPy shows neither."""
    if function.arity != 1 or function.operand_types:
        return 0
    (x,) = symbols(function)
    here, mirrored = function.definition(x), function.definition(-x)
    return 1 if mirrored == here else -1 if mirrored == -here else 0


def parities(order: Iterable[Expr], *odd: Expr) -> dict[Expr, int]:
    """The parities in u of the functions in `order`, operands first; u, among `odd`, is odd.

    1 for an even function, or one that does not contain u, -1 for an odd one, 0 for neither.
    """
    result: dict[Expr, int] = dict.fromkeys(odd, -1)
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
    if function is table.pow and isinstance(node.operands[1], Const):
        p = node.operands[1].value
        return 0 if not p.is_integer() else 1 if p % 2.0 == 0.0 else -1
    return parity_of(function)
