"""Definitions, functions, checks and the objective."""

from __future__ import annotations

from slomodel.front.elaboration.arrays import ARRAY_FUNCTIONS
from slomodel.front.elaboration.comprehension import bind_iterations
from slomodel.front.elaboration.contraction import total
from slomodel.front.elaboration.expressions import CONSTANTS, evaluate
from slomodel.front.elaboration.faults import fault, shape_fault
from slomodel.front.elaboration.mismatch import marks, operand
from slomodel.front.elaboration.scope import Model, Scope, Symbol
from slomodel.front.elaboration.values import Value, as_axes, combine, number, show
from slomodel.front.text.syntax import Call, Check, Comprehension, Fn, Let, Name, Node, Objective
from slomodel.front.text.traverse import children
from slomodel.functions import FUNCTIONS, eq, where
from slomodel.ir.expr import Expr
from slomodel.ir.walk import inputs
from slomodel.problem import Check as ProblemCheck


def declare_let(statement: Let, model: Model) -> None:
    name = statement.name
    scope = Scope(model)
    if statement.indices is None:
        value = evaluate(statement.expr, scope)
    else:
        labels, inner = bind_iterations(statement.indices, scope)
        body = evaluate(statement.expr, inner)
        if body.rank:
            message = f"a definition by index gives a number for each index, not {show(body)}"
            remedy = "index all axes, or leave the indices out"
            found = marks(operand(statement.expr, body))
            raise shape_fault("E212", message, statement.expr.span, remedy, marks=found)
        value = as_axes(body, labels, [label.dim for label in labels])
        model.note(value, statement.expr.span)
    model.declare(Symbol(name.text, "definition", name.span, value=value))


def declare_fn(statement: Fn, model: Model) -> None:
    """A function; the names in its body must be known here, so that it cannot call itself."""
    name = statement.name
    if name.text in FUNCTIONS or name.text in ARRAY_FUNCTIONS:
        message = f"`{name.text}` is a function of the language"
        raise fault("E202", message, name.span, f"choose another name, for example `{name.text}_`")
    parameters = [parameter.text for parameter in statement.parameters]
    for k, parameter in enumerate(statement.parameters):
        if parameter.text in parameters[:k]:
            message = f"two parameters are called `{parameter.text}`"
            raise fault("E202", message, parameter.span, "give one of them another name")
    _check_names(statement, model)
    model.declare(Symbol(name.text, "function", name.span, fn=statement))


def _check_names(statement: Fn, model: Model) -> None:
    known = {*(p.text for p in statement.parameters), *model.symbols}
    stack: list[Node] = [statement.body]
    used: list[Name] = []
    while stack:
        node = stack.pop()
        if isinstance(node, Comprehension):
            known |= {iteration.name.text for iteration in node.iterations}
        if isinstance(node, Call) and node.function.text == statement.name.text:
            message = f"`{statement.name.text}` calls itself"
            remedy = "a function is expanded where it is used: write a sum by index instead"
            raise fault("E222", message, node.function.span, remedy)
        if isinstance(node, Name):
            used.append(node)
        stack.extend(reversed(children(node)))
    for name in used:
        if name.text not in known and (name.text not in CONSTANTS or name.text in model.later):
            parameters = {p.text: number(0.0) for p in statement.parameters}
            raise Scope(model, parameters).unknown(name)


def check_condition(statement: Check, model: Model) -> ProblemCheck:
    """A condition on data as one truth value; on arrays it must hold for all elements."""
    node = statement.condition
    value = evaluate(node, Scope(model))
    named = [found.name for found in inputs(value.expr) if found.role == "variable"]
    if named:
        message = f"`check` tests data, and `{named[0]}` is a variable"
        remedy = (
            "a model has no constraints: reparametrise, "
            "as `exp(u)` is positive and `sigmoid(u)` is in (0, 1)"
        )
        raise fault("E219", message, statement.span, remedy)
    return ProblemCheck(holds_everywhere(value).expr, node.span.text, statement.span)


def holds_everywhere(condition: Value) -> Value:
    """One truth value: that no element is false."""
    if not condition.rank:
        return condition
    failures = total(combine(where, condition, number(0.0), number(1.0)))
    return combine(eq, failures, number(0.0))


def objective_value(statement: Objective, model: Model) -> Expr:
    value = evaluate(statement.expr, Scope(model))
    if value.rank:
        text = statement.expr.span.text
        short = text if len(text) <= 30 and "\n" not in text else "…"
        message = f"the objective has shape {show(value)}, and it must be a number"
        remedy = f"did you mean `sum({short})` or `sumsq({short})`?"
        raise shape_fault("E213", message, statement.expr.span, remedy)
    return value.expr
