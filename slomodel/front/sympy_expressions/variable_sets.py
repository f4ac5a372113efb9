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


def variable_of(node: Input, symbol: sp.Basic | None, bounds: Bounds) -> Variable:
    """The variable of a node, in the set given by bounds=, or else by the symbol's assumptions."""
    declared = _assumed(symbol)
    if node.name in bounds:
        declared = _box(*bounds[node.name])
    if declared is None:
        return Variable(node)
    return Variable(node, Init("inside", ()), set=declared)


def _assumed(symbol: sp.Basic | None) -> DeclaredSet | None:
    """The set of a symbol that is assumed positive, negative, nonnegative or nonpositive."""
    if not isinstance(symbol, (sp.Symbol, sp.IndexedBase)):
        return None
    zero = build.const(0.0)
    if symbol.is_positive:
        return DeclaredSet("open_box", "> 0", low=zero)
    if symbol.is_negative:
        return DeclaredSet("open_box", "< 0", high=zero)
    if symbol.is_nonnegative:
        return DeclaredSet("box", ">= 0", low=zero)
    if symbol.is_nonpositive:
        return DeclaredSet("box", "<= 0", high=zero)
    return None


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
    found = {}
    for key, pair in given.items():
        name = str(key)
        if not (isinstance(pair, tuple | list) and len(pair) == 2):
            raise _refused(f"the bounds of `{name}` are not a pair")
        low = _end(name, pair[0], -math.inf)
        high = _end(name, pair[1], math.inf)
        if not (low <= high and low < math.inf and high > -math.inf):
            raise _refused(f"the bounds of `{name}` are empty: {low:g} to {high:g}")
        found[name] = (low, high)
    return found


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
