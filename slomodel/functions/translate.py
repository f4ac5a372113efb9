"""Graphs of scalar SymPy expressions, and derivatives of records from their definitions.

Only SymPy's nodes are read, never text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TypeVar

import sympy as sp

from slomodel.errors import DomainError, MissingRule
from slomodel.functions import comparison as compare
from slomodel.functions.arithmetic import add, div, mul, neg, sub
from slomodel.functions.power import pow
from slomodel.functions.sympy_definitions import DEFINITIONS, bessel_i
from slomodel.ir.exact import carried
from slomodel.ir.expr import Const, Expr
from slomodel.ir.function import ScalarFunction, every_family, every_function

_Operand = TypeVar("_Operand")


def balanced(
    function: Callable[[_Operand, _Operand], _Operand], operands: list[_Operand]
) -> _Operand:
    """The operands combined pairwise: n of them nest log n deep."""
    while len(operands) > 1:
        pairs = zip(operands[::2], operands[1::2], strict=False)
        joined = [function(left, right) for left, right in pairs]
        operands = joined + operands[2 * len(joined) :]
    return operands[0]


_ANY_NUMBER = (sp.Max, sp.Min, sp.And, sp.Or)
"""SymPy functions of any number of operands, read as nested functions of two."""


@cache
def _functions() -> Mapping[type[sp.Basic], ScalarFunction]:
    """The scalar function for each of SymPy's kinds of nodes."""
    return {kind: record for record in every_function() for kind in record.sympy}


@cache
def _families() -> Mapping[type[sp.Basic], Callable[[int], ScalarFunction]]:
    """The families whose members are SymPy's functions of a number n and an operand."""
    return {family.sympy: family.member for family in every_family()}


@cache
def known() -> tuple[type[sp.Basic], ...]:
    """SymPy's kinds of nodes with a rule here, except for symbols and numbers."""
    named = (*_functions(), *_families(), *DEFINITIONS, sp.besseli)
    return (sp.Add, sp.Mul, sp.Pow, sp.Piecewise, *named)


@cache
def known_functions() -> tuple[str, ...]:
    """The names of the functions among the known kinds of nodes."""
    kinds = (kind for kind in known()[3:] if kind.__module__.startswith("sympy."))
    return tuple(sorted(kind.__name__ for kind in kinds if issubclass(kind, sp.Expr)))


def to_graph(expr: sp.Basic, values: Mapping[sp.Basic, Expr]) -> Expr:
    """The graph of a SymPy expression in which `values` stand for symbols and other parts.

    The values have one shape or are scalars. Exact numbers are rounded to doubles once. Raises
    MissingRule for a SymPy function that the table lacks and DomainError for a number that is not
    real. The walk is iterative, so that depth is not limited.
    """
    return to_graphs(expr, values)[expr]


def to_graphs(expr: sp.Basic, values: Mapping[sp.Basic, Expr]) -> dict[sp.Basic, Expr]:
    """The graph of an expression, as from `to_graph`, and those of its parts."""
    done: dict[sp.Basic, Expr] = dict(values)
    stack = [expr]
    while stack:
        node = stack[-1]
        if node in done:
            stack.pop()
            continue
        missing = [part for part in _parts(node) if part not in done]
        if missing:
            stack.extend(missing)
        else:
            done[stack.pop()] = _node(node, done)
    return done


def _parts(node: sp.Basic) -> list[sp.Basic]:
    """The parts from which the graph of a node is constructed."""
    if isinstance(node, sp.Add):
        return [part for _, part in map(_signed, node.args)]
    if isinstance(node, sp.Mul):
        return [part for _, part in map(_upright, node.args)]
    if isinstance(node, sp.Piecewise):
        return [part for branch in node.args for part in branch.args]
    return list(node.args) if not node.is_Number else []


def _signed(term: sp.Expr) -> tuple[bool, sp.Expr]:
    """Whether a term has coefficient -1 and is subtracted, and the term without this sign."""
    negative = term.as_coeff_Mul()[0] is sp.S.NegativeOne
    return negative, -term if negative else term


def _upright(factor: sp.Expr) -> tuple[bool, sp.Expr]:
    """Whether a factor is a divisor, and the factor or divisor."""
    if factor.is_Pow and factor.exp.is_Number and factor.exp.is_negative:
        return True, factor.base ** (-factor.exp)
    return False, factor


def _node(node: sp.Basic, done: Mapping[sp.Basic, Expr]) -> Expr:
    if node in (sp.true, sp.false):
        return Const(bool(node))
    if isinstance(node, sp.AtomicExpr) and not isinstance(node, sp.Symbol):
        return _number(node)
    if isinstance(node, sp.Add):
        return _sum(node, done)
    if isinstance(node, sp.Mul):
        return _product(node, done)
    if isinstance(node, sp.Pow):
        return pow(done[node.base], done[node.exp])
    if isinstance(node, sp.Piecewise):
        return _piecewise(node, done)
    operands = [done[part] for part in node.args]
    function = _functions().get(node.func)
    if function is not None:
        return balanced(function, operands) if node.func in _ANY_NUMBER else function(*operands)
    if node.func in DEFINITIONS:
        formula = DEFINITIONS[node.func](*operands)
        if formula is not None:
            return formula
    if node.func is sp.besseli:
        bessel = bessel_i(node.args[0], operands[1])
        if bessel is not None:
            return bessel
    if node.func in _families() and node.args[0].is_Integer and node.args[0].is_nonnegative:
        return _families()[node.func](int(node.args[0]))(*operands[1:])
    if isinstance(node, sp.Symbol):
        raise MissingRule(f"unknown symbol `{node}`")
    names = ", ".join(known_functions())
    raise MissingRule(f"SymPy's `{node.func.__name__}` has no rule; those known are {names}")


def _number(node: sp.Expr) -> Expr:
    if not node.is_extended_real:
        raise DomainError(f"`{node}` is not a real number")
    value = float(node)
    if math.isinf(value) and node.is_finite:
        raise DomainError("a number is beyond the largest double, 1.8e308")
    return Const(value, None if node.is_Float else carried(node))


def _sum(node: sp.Add, done: Mapping[sp.Basic, Expr]) -> Expr:
    terms = [_signed(term) for term in node.args]
    plus = [done[part] for negative, part in terms if not negative]
    minus = [done[part] for negative, part in terms if negative]
    if not plus:
        return neg(balanced(add, minus))
    total = balanced(add, plus)
    return sub(total, balanced(add, minus)) if minus else total


def _product(node: sp.Mul, done: Mapping[sp.Basic, Expr]) -> Expr:
    """A product, with numbers merged into one coefficient and divisors into one division."""
    number: Expr = Const(1.0)
    above: list[Expr] = []
    below: list[Expr] = []
    for divides, part in map(_upright, node.args):
        factor = done[part]
        if isinstance(factor, Const):
            number = div(number, factor) if divides else mul(number, factor)
        else:
            (below if divides else above).append(factor)
    if not above:
        return div(number, balanced(mul, below)) if below else number
    product = mul(number, balanced(mul, above))
    return div(product, balanced(mul, below)) if below else product


def _piecewise(node: sp.Piecewise, done: Mapping[sp.Basic, Expr]) -> Expr:
    if node.args[-1].cond is not sp.true:
        raise MissingRule(f"`{node}` has no value where no condition holds: end it with True")
    graph = done[node.args[-1].expr]
    for branch in reversed(node.args[:-1]):
        graph = compare.where(done[branch.cond], done[branch.expr], graph)
    return graph


@cache
def symbols(function: ScalarFunction) -> tuple[sp.Symbol, ...]:
    """One SymPy symbol per operand, real where the operand is a number."""
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
