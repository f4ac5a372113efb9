"""Conditions on indices that are linear in some of them: equations to solve, and ranges.

`g[i] == k + 1` gives k = g[i] - 1, and `j >= i - 5 and j <= i + 1` the range of j for each i.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeAlias

from slomodel.front.elaboration.errors import StatementError
from slomodel.front.elaboration.indices.affine_index import AffineIndex, affine, value_of_affine
from slomodel.front.elaboration.indices.tables import is_table
from slomodel.front.elaboration.scope import Scope, ValueRequest
from slomodel.front.elaboration.values import Label, Value, combine, number
from slomodel.front.text.syntax import (
    BoolOp,
    Compare,
    Condition,
    Expr,
    FunctionCall,
    Negate,
    NoneLiteral,
    Not,
    String,
    SumChain,
)
from slomodel.functions import add, sub
from slomodel.ir.dims import Dim


def conjuncts(condition: Condition | None) -> tuple[Condition, ...]:
    """The conjuncts of a condition: conditions that all have to hold."""
    if isinstance(condition, BoolOp) and condition.op == "and":
        return tuple(conjunct for operand in condition.operands for conjunct in conjuncts(operand))
    return () if condition is None else (condition,)


@dataclass(frozen=True, slots=True)
class LinearForm:
    """An affine form in index variables and dims plus or minus the values of other expressions."""

    affine: AffineIndex
    rest: tuple[tuple[int, Expr], ...] = ()

    def minus(self, other: LinearForm) -> LinearForm:
        rest = tuple((-sign, term) for sign, term in other.rest)
        return LinearForm(self.affine.plus(other.affine, -1), (*self.rest, *rest))

    @property
    def unit_labels(self) -> tuple[Label, ...]:
        """The labels with coefficient 1 or -1, for which an equation can be solved."""
        return tuple(label for label, c in self.affine.labels.items() if abs(c) == 1)


def linear_form(node: Expr, scope: Scope) -> LinearForm:
    """The linear form of an expression; subexpressions that are not affine are its other terms."""
    form = AffineIndex(Dim())
    rest: list[tuple[int, Expr]] = []
    stack = [(1, node)]
    while stack:
        sign, term = stack.pop()
        if isinstance(term, Negate):
            stack.append((-sign, term.operand))
        elif isinstance(term, SumChain):
            stack.append((sign, term.first))
            stack += [(sign if one.op == "+" else -sign, one.operand) for one in term.rest]
        else:
            try:
                form = form.plus(affine(term, scope), sign)
            except StatementError:
                rest.append((sign, term))
    return LinearForm(form, tuple(reversed(rest)))


Solved: TypeAlias = Generator[ValueRequest, Value, Value | None]


def solution(form: LinearForm, label: Label, scope: Scope) -> Solved:
    """The position of a label at which a form is 0, a whole number computed from data.

    None if the label occurs in another term of the form, or if the numbers may not be whole.
    """
    sign = -form.affine.labels[label]
    others = {one: sign * c for one, c in form.affine.labels.items() if one is not label}
    total: Value | None = None
    for own, term in form.rest:
        value = yield ValueRequest(term, scope)
        if value.axes or label in value.labels or not is_table(value.expr, scope.model):
            return None
        if total is None:
            total = value if own == sign else combine(sub, number(0.0), value)
        else:
            total = combine(add if own == sign else sub, total, value)
    linear = AffineIndex(form.affine.offset * sign, others)
    if total is None:
        return value_of_affine(linear)
    return total if linear.constant == 0 else combine(add, total, value_of_affine(linear))


@dataclass(frozen=True, slots=True)
class Limit:
    """A condition `form >= 0`, or `form > 0` if `strict`, for a form with whole values."""

    form: LinearForm
    strict: bool


def limits_of(condition: Condition, scope: Scope) -> tuple[Limit, ...]:
    """The limits that are equivalent to a condition; empty if it is of another kind."""
    if not isinstance(condition, Compare) or condition.op not in ("<", "<=", ">", ">="):
        return ()
    lower, upper = condition.left, condition.right
    if condition.op in (">", ">="):
        lower, upper = upper, lower
    strict = condition.op in ("<", ">")
    top = linear_form(upper, scope)
    if isinstance(lower, FunctionCall) and lower.function.text == "abs" and len(lower.args) == 1:
        # |e| <= c is -c <= e <= c.
        argument = lower.args[0]
        if isinstance(argument, (Compare, BoolOp, Not, String, NoneLiteral)):
            return ()
        inner = linear_form(argument, scope)
        zero = LinearForm(AffineIndex(Dim()))
        return Limit(top.minus(inner), strict), Limit(top.minus(zero.minus(inner)), strict)
    return (Limit(top.minus(linear_form(lower, scope)), strict),)


def equation_of(condition: Condition, scope: Scope) -> LinearForm | None:
    """The form that is 0 if and only if a condition holds; None if it is not an equation."""
    if not isinstance(condition, Compare) or condition.op != "==":
        return None
    return linear_form(condition.left, scope).minus(linear_form(condition.right, scope))


def bound(limit: Limit, label: Label, scope: Scope) -> Solved:
    """The smallest position of a label within a limit, or the position after the largest one."""
    below = limit.form.affine.labels[label] < 0
    form = limit.form
    # label - e >= 0 has the first position e, e - label >= 0 the last one; strictly one inside.
    value = yield from solution(form, label, scope)
    shift = int(limit.strict) if not below else int(not limit.strict)
    return None if value is None else combine(add, value, number(float(shift))) if shift else value
