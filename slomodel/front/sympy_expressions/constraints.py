"""Constraints of a SymPy expression: relations between expressions, given by `subject_to=`."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import sympy as sp

from slomodel.errors import Diagnostic, DomainError, ShapeError
from slomodel.front.elaboration.values import Value, combine, merged, show, with_unit_axes
from slomodel.front.sympy_expressions.errors import error, place, shown
from slomodel.front.sympy_expressions.free_names import name_of
from slomodel.functions import sub
from slomodel.ir.walk import inputs
from slomodel.problem import Constraint
from slomodel.rewrite import rewritten

Relations = tuple[tuple[str, sp.Basic], ...]
"""Relations with the names of their constraints."""

_KINDS = (sp.Equality, sp.LessThan, sp.GreaterThan)


def checked_relations(given: object) -> Relations:
    """The argument subject_to= of `compile`: relations in a list, or by label in a dict.

    Raises DomainError or ModelSyntaxError for anything else.
    """
    if isinstance(given, Mapping):
        named = [(str(label), one) for label, one in given.items()]
    else:
        listed: Sequence[object] = (given,)
        if isinstance(given, list | tuple | sp.Tuple):
            listed = tuple(given)
        named = [(f"constraint {k}", one) for k, one in enumerate(listed, start=1)]
    result: list[tuple[str, sp.Basic]] = []
    for name, one in named:
        parts = one.args if isinstance(one, sp.And) else (one,)
        for part in parts:
            if part is True or part is sp.true:
                continue
            if not isinstance(part, sp.Basic):
                kind = type(part).__name__
                message = f"subject_to= takes relations such as `x + y <= 1`, not a {kind}"
                raise DomainError(Diagnostic("E602", message, help="write `sp.Eq(a, b)` for =="))
            result.append((name, _closed(part)))
    return tuple(result)


def _closed(part: sp.Basic) -> sp.Basic:
    if isinstance(part, _KINDS):
        return part
    remedy = "write `<=`, `>=` or `sp.Eq(a, b)`"
    if part is sp.false:
        raise error("E411", "a constraint that never holds", part, remedy)
    if isinstance(part, (sp.StrictLessThan, sp.StrictGreaterThan)):
        message = "a constraint holds with equality too, and this one does not"
        raise error("E411", message, part, remedy)
    raise error("E411", "a constraint is an equation or an inequality", part, remedy)


@dataclass(frozen=True, slots=True)
class Limits:
    """The constraints that remain, and the closed intervals of single variables by name."""

    relations: Relations
    bounds: dict[str, tuple[float, float]]


def split(
    relations: Relations, bounds: Mapping[str, tuple[float, float]], data: Collection[str]
) -> Limits:
    """Take bounds on single symbols without assumptions as their intervals."""
    left: list[tuple[str, sp.Basic]] = []
    result = dict(bounds)
    for name, one in relations:
        symbol, low, high = _bound(one)
        if symbol is None or name_of(symbol) in (*bounds, *data) or _is_signed(symbol):
            left.append((name, one))
            continue
        before = result.get(name_of(symbol), (-math.inf, math.inf))
        result[name_of(symbol)] = (max(before[0], low), min(before[1], high))
    return Limits(tuple(left), result)


def _bound(one: sp.Basic) -> tuple[sp.Symbol | None, float, float]:
    a, b = one.args
    is_upper = isinstance(one, (sp.LessThan, sp.Equality))
    is_lower = isinstance(one, (sp.GreaterThan, sp.Equality))
    if isinstance(b, sp.Symbol):
        a, b, is_lower, is_upper = b, a, is_upper, is_lower
    if not isinstance(a, sp.Symbol) or not b.is_number or not b.is_finite:
        return None, 0.0, 0.0
    end = float(b)
    return a, end if is_lower else -math.inf, end if is_upper else math.inf


def _is_signed(symbol: sp.Symbol) -> bool:
    signs = (symbol.is_positive, symbol.is_negative, symbol.is_nonnegative, symbol.is_nonpositive)
    return any(signs)


def constraints_of(
    relations: Relations, value_of: Callable[[sp.Basic], Value]
) -> tuple[Constraint, ...]:
    """The constraints, given the values of the sides of relations."""
    result = []
    for name, one in relations:
        a, b = one.args
        left, right = value_of(a), value_of(b)
        if merged((left, right)) is None:
            message = f"the sides have different shapes: {show(left)} and {show(right)}"
            raise error("E410", message, one, "", ShapeError)
        above = isinstance(one, sp.GreaterThan)
        difference = combine(sub, right, left) if above else combine(sub, left, right)
        node = with_unit_axes(difference).expr
        if all(leaf.role == "data" for leaf in inputs(node)):
            raise error("E411", "a constraint without variables", one, "check data before")
        own = (isinstance(one, sp.Equality), -1 if above else 1, place(one))
        result.append(Constraint(name, shown(one), rewritten(node)[node], *own))
    return tuple(result)
