"""Calls of scalar functions, array functions and functions that the model defines."""

from __future__ import annotations

from dataclasses import replace

from slomodel.front.elaboration.errors import (
    OUTSIDE,
    StatementError,
    error,
    suggestion,
    unsupported,
)
from slomodel.front.elaboration.evaluation import Steps
from slomodel.front.elaboration.foreign_names import FOREIGN_FUNCTIONS
from slomodel.front.elaboration.functions.arguments import (
    ArrayCall,
    check_kind,
    default_number,
    match,
    signature,
)
from slomodel.front.elaboration.functions.array_functions import ARRAY_FUNCTIONS
from slomodel.front.elaboration.functions.library import density_meant, library
from slomodel.front.elaboration.functions.user_functions import expanded, from_library
from slomodel.front.elaboration.indices import sparse
from slomodel.front.elaboration.indices.affine_index import size_query_remedy
from slomodel.front.elaboration.indices.steps import conformed
from slomodel.front.elaboration.scope import Scope, ValueRequest, described
from slomodel.front.elaboration.shape_mismatch import Operand, operand, unequal
from slomodel.front.elaboration.values import (
    Value,
    combine,
    merged,
    number,
    power_of,
    square_root,
    squared,
)
from slomodel.front.text.syntax import FunctionCall, Node
from slomodel.functions import FUNCTIONS, land, lnot
from slomodel.ir.walk import inputs

_UNSUPPORTED = {
    "sort": (
        "the order of elements changes where two are equal, and derivatives jump there",
        "sort data beforehand; `max`, `min` and `logsumexp` take the largest of variables",
    ),
}
"""Functions that the language will not have: the reason, and what to do instead."""


def call(node: FunctionCall, request: ValueRequest) -> Steps:
    name, scope = node.function.text, request.scope
    is_reduction = name in ("max", "min") and (len(node.args) == 1)
    if name in FUNCTIONS and not is_reduction:
        return (yield from _scalar(node, scope))
    if name in ARRAY_FUNCTIONS:
        return (yield from _array(node, scope))
    symbol = scope.model.symbols.get(name)
    if node.span.source is not scope.model.source:
        symbol = None  # the library calls its own functions
    if symbol is not None and symbol.kind == "function":
        return (yield from expanded(node, symbol.fn, scope))
    if symbol is None and name not in scope.model.later and name in library():
        return (yield from from_library(node, library()[name].fn, scope))
    raise _unknown(node, scope)


def _scalar(node: FunctionCall, scope: Scope) -> Steps:
    name = node.function.text
    wanted = signature(FUNCTIONS[name].signature)
    result = match(node, wanted)
    operands: list[Operand] = []
    for parameter in wanted.parameters:
        for argument in result[parameter.name]:
            check_kind(argument, wanted, parameter.name)
            if name == "where" and operands:
                condition = operands[0].value
                holds = condition if len(operands) == 1 else combine(lnot, condition)
                value = yield from under_condition(argument, scope, holds)
            else:
                value = yield ValueRequest(argument, scope, sparse=name != "where")
            operands.append(operand(argument, value))
    if any(one.value.pattern is not None for one in operands):
        values = [one.value for one in operands]
        values += [number(default_number(p)) for p in wanted.parameters if not result[p.name]]
        spans = [one.span for one in operands] + [node.span] * (len(values) - len(operands))
        return sparse.mapped(FUNCTIONS[name], values, spans)
    given = tuple(one.value for one in operands)
    values = list(conformed(scope.model, node.span, given))
    if merged(values) is None:
        raise unequal(scope, f"`{name}`", node.span, operands)
    values += [number(default_number(p)) for p in wanted.parameters if not result[p.name]]
    if name == "pow":
        return power_of(*values)
    if name in ("sqrt", "square"):
        return square_root(values[0]) if name == "sqrt" else squared(values[0])
    return combine(FUNCTIONS[name], *values)


def under_condition(node: Node, scope: Scope, condition: Value) -> Steps:
    """The value of an expression that is used only where a condition holds.

    If sizes or data decide whether its indices stay inside their axes, a condition on indices and
    data guards them.
    """
    model, scope = scope.model, replace(scope, is_chosen=True)
    before = model.requirements()
    problem: StatementError | None = None
    try:
        value = yield ValueRequest(node, scope)
    except StatementError as error:
        if error.diagnostic is None or error.diagnostic.code not in OUTSIDE:
            raise
        problem = error
    after = model.requirements()
    is_guard = not condition.rank and all(one.role == "data" for one in inputs(condition.expr))
    changed = (after.bounds, after.lookups) != (before.bounds, before.lookups)
    if is_guard and (problem is not None or changed):
        guard = condition if scope.guard is None else combine(land, scope.guard, condition)
        model.restore(before)
        try:
            return (yield ValueRequest(node, replace(scope, guard=guard)))
        except StatementError:
            model.restore(after)
    if problem is not None:
        raise problem
    return value


def _array(node: FunctionCall, scope: Scope) -> Steps:
    entry = ARRAY_FUNCTIONS[node.function.text]
    wanted = signature(entry.text)
    result = match(node, wanted)
    operands = []
    for parameter in entry.values:
        for argument in result[parameter]:
            check_kind(argument, wanted, parameter)
            value = yield ValueRequest(argument, scope, sparse=entry.takes_sparse)
            operands.append(operand(argument, value))
    return entry.rule(ArrayCall(node, wanted, scope, tuple(operands), result))


def _unknown(node: FunctionCall, scope: Scope) -> StatementError:
    name = node.function.text
    span = node.function.span
    if name in _UNSUPPORTED:
        reason, remedy = _UNSUPPORTED[name]
        raise unsupported(f"`{name}` is not a function of models: {reason}", span, remedy)
    if name == "norm":
        remedy = "write `norm2(x)` of a vector, `fro(A)`, `norm1(x)`, or `sumsq(x)` for its square"
        return error("E203", "`norm` is ambiguous", span, remedy)
    if name == "range":
        remedy = "as in `sum(x[i] for i in range(n - 1))`"
        return error("E203", "`range` may only follow `in`", span, remedy)
    later = scope.model.later.get(name)
    if later is not None:
        remedy = f"move its declaration up, it is on line {later.line}"
        return error("E201", f"`{name}` is used before it is declared", span, remedy)
    known = scope.model.symbols.get(name)
    if known is not None or name in scope.local:
        what = described(known) if known is not None else f"`{name}` is an index or parameter"
        is_array = known is not None and known.value is not None and known.value.rank > 0
        remedy = f"an element is written `{name}[0]`, counted from 0; or missing `*`?"
        remedy = remedy if is_array else "missing `*`?"
        return error("E203", f"{what}, and a call needs a function", span, remedy)
    meant = size_query_remedy(node, scope) or FOREIGN_FUNCTIONS.get(name) or density_meant(name)
    if meant:
        return error("E203", f"unknown function `{name}`", span, meant)
    functions = [s.name for s in scope.model.symbols.values() if s.kind == "function"]
    names = [*FUNCTIONS, *ARRAY_FUNCTIONS, *library(), *_UNSUPPORTED, *functions]
    remedy = suggestion(name, names) or f"declare it before, as in `fn {name}(t) = …`"
    return error("E203", f"unknown function `{name}`", span, remedy)
