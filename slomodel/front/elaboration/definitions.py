"""Definitions, functions, checks and the objective."""

from __future__ import annotations

from collections.abc import Iterator

from slomodel.front.elaboration.arrays import ARRAY_FUNCTIONS
from slomodel.front.elaboration.comprehension import bind_iterations
from slomodel.front.elaboration.contraction import total
from slomodel.front.elaboration.expressions import CONSTANTS, evaluate
from slomodel.front.elaboration.faults import Fault, fault, shape_fault
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
    """A function; the names and functions in its body must be known: it cannot call itself."""
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
    own = {parameter.text for parameter in statement.parameters}
    used: list[Name] = []
    for node in _nodes(statement):
        if isinstance(node, Comprehension):
            own |= {iteration.name.text for iteration in node.iterations}
        if isinstance(node, Name):
            used.append(node)
    for node in _nodes(statement):
        if isinstance(node, Call) and node.function.text in model.functions:
            _check_call(statement, node.function, model)
    for name in used:
        if name.text in own or name.text in model.symbols:
            continue
        if name.text not in CONSTANTS or name.text in model.later:
            parameters = {p.text: number(0.0) for p in statement.parameters}
            raise Scope(model, parameters).unknown(name)


def _nodes(statement: Fn) -> Iterator[Node]:
    """The nodes of a function's body in the order of the text, those above before those below."""
    stack: list[Node] = [statement.body]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(children(node)))


def _check_call(statement: Fn, called: Name, model: Model) -> None:
    """A function calls those declared before it: neither itself nor one that comes back to it."""
    remedy = "a function is expanded where it is used: write a sum by index instead"
    if called.text == statement.name.text:
        raise fault("E222", f"`{called.text}` calls itself", called.span, remedy)
    if called.text in model.symbols:
        return
    path = _way_back(called.text, statement.name.text, model)
    if any(name in model.symbols for name in path):
        raise Fault(None)  # the circle was told at its first function
    if path:
        names = ", which calls ".join(f"`{name}`" for name in path)
        raise fault("E222", f"`{statement.name.text}` calls {names}", called.span, remedy)
    raise Scope(model).unknown(called)


def _way_back(start: str, goal: str, model: Model) -> list[str]:
    """The names along calls from one function to another, both included; empty where none is."""
    paths = {start: [start]}
    waiting = [start]
    while waiting:
        name = waiting.pop(0)
        for node in _nodes(model.functions[name]):
            found = node.function.text if isinstance(node, Call) else ""
            if found == goal:
                return [*paths[name], goal]
            if found in model.functions and found not in paths:
                paths[found] = [*paths[name], found]
                waiting.append(found)
    return []


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
