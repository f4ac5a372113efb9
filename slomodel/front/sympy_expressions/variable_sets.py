"""Sets of variables of a SymPy expression: from assumptions of symbols, and from bounds=."""

from __future__ import annotations

import math
from collections.abc import Mapping

import sympy as sp

from slomodel.errors import Diagnostic, DomainError
from slomodel.ir import build
from slomodel.ir.expr import Input
from slomodel.problem import DeclaredSet, Init, Variable

Bounds = Mapping[str, tuple[float, float]]
"""Closed intervals of variables by name; their ends may be infinite."""
EVERYWHERE = (-math.inf, math.inf)


def variable_of(node: Input, symbol: sp.Basic | None, bounds: Bounds) -> Variable:
    """The variable of a node, in the part of bounds= where the assumptions of the symbol hold."""
    declared = _declared(node.name, symbol, bounds.get(node.name, EVERYWHERE))
    if declared is None:
        return Variable(node)
    return Variable(node, Init("inside", ()), set=declared)


def _declared(name: str, symbol: sp.Basic | None, pair: tuple[float, float]) -> DeclaredSet | None:
    """The set of a symbol with these bounds; DomainError if it is empty.

    A strict sign that the bounds leave open on its side is an open set; beside the end 0 of closed
    bounds it is closed.
    """
    low, high = pair
    if not isinstance(symbol, (sp.Symbol, sp.IndexedBase)):
        return _box(low, high)
    if symbol.is_positive and low < 0.0 and high == math.inf:
        return DeclaredSet("open_box", "> 0", low=build.const(0.0))
    if symbol.is_negative and high > 0.0 and low == -math.inf:
        return DeclaredSet("open_box", "< 0", high=build.const(0.0))
    low = max(low, 0.0) if symbol.is_nonnegative else low
    high = min(high, 0.0) if symbol.is_nonpositive else high
    strict = symbol.is_positive or symbol.is_negative
    if low > high or (strict and low == high == 0.0):
        signs = ("positive", "negative", "nonnegative", "nonpositive")
        sign = next(one for one in signs if getattr(symbol, f"is_{one}"))
        message = f"`{name}` is {sign}, but its bounds are {pair[0]:g} to {pair[1]:g}"
        remedy = "drop the assumption of the symbol, or give other bounds"
        raise DomainError(Diagnostic("E602", message, help=remedy))
    return _box(low, high)


def _box(low: float, high: float) -> DeclaredSet | None:
    if math.isinf(low) and math.isinf(high):
        return None
    text = f"in [{low:g}, {high:g}]"
    if math.isinf(high):
        text = f">= {low:g}"
    elif math.isinf(low):
        text = f"<= {high:g}"
    lower, upper = (None if math.isinf(end) else build.const(end) for end in (low, high))
    return DeclaredSet("box", text, low=lower, high=upper)


def checked_bounds(given: object) -> dict[str, tuple[float, float]]:
    """The argument bounds= of `compile`, by name. Raises DomainError for anything else."""
    if not isinstance(given, Mapping):
        raise _refused(f"bounds= takes a dict of pairs by symbol, not {type(given).__name__}")
    result = {}
    for key, pair in given.items():
        name = str(key)
        if not (isinstance(pair, tuple | list) and len(pair) == 2):
            raise _refused(f"the bounds of `{name}` are not a pair")
        low = _end(name, pair[0], -math.inf)
        high = _end(name, pair[1], math.inf)
        if not (low <= high and low < math.inf and high > -math.inf):
            raise _refused(f"the bounds of `{name}` are empty: {low:g} to {high:g}")
        result[name] = (low, high)
    return result


def _end(name: str, end: object, infinite: float) -> float:
    if end is None:
        return infinite
    try:
        number = float(end)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise _refused(f"the bounds of `{name}` are not numbers") from None
    if math.isnan(number):
        raise _refused(f"the bounds of `{name}` contain NaN")
    return number


def _refused(message: str) -> DomainError:
    remedy = "write bounds={x: (0, 1)}; None stands for no bound"
    return DomainError(Diagnostic("E602", message, help=remedy))
