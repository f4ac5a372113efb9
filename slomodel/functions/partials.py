"""The derivative of a scalar function by one operand, as a graph."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import sympy as sp

from slomodel.functions.translate import to_graph
from slomodel.ir.expr import Expr
from slomodel.ir.function import ScalarFunction


def symbols(function: ScalarFunction) -> tuple[sp.Symbol, ...]:
    """One SymPy symbol an operand, real where the operand is a number."""
    types = function.operand_types or ("real",) * function.arity
    return tuple(
        sp.Symbol(f"x{k}", real=True) if dtype == "real" else sp.Symbol(f"x{k}")
        for k, dtype in enumerate(types)
    )


def partial(function: ScalarFunction, k: int, operands: Sequence[Expr]) -> Expr | None:
    """The derivative by operand k at the operands, None where it is zero everywhere.

    Its shape is that of `function(*operands)`, or () where it is constant.
    """
    if function.partials is not None:
        return function.partials[k](*operands)
    derivative = _derivative(function, k)
    if derivative.is_zero:
        return None
    return to_graph(derivative, dict(zip(symbols(function), operands, strict=True)))


@cache
def _derivative(function: ScalarFunction, k: int) -> sp.Expr:
    own = symbols(function)
    return sp.diff(function.definition(*own), own[k])
