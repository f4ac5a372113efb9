"""Functions of a model: declared by `fn`, applied elementwise, and expanded at each call."""

from __future__ import annotations

from collections.abc import Iterator

from slomodel.front.elaboration.arguments import (
    check_kind,
    match,
    signature,
)
from slomodel.front.elaboration.array_functions import ARRAY_FUNCTIONS
from slomodel.front.elaboration.errors import StatementError, error, shape_error
from slomodel.front.elaboration.evaluation import Steps
from slomodel.front.elaboration.scope import CONSTANTS, Elaboration, Scope, Symbol, ValueRequest
from slomodel.front.elaboration.shape_mismatch import marks, operand, unequal
from slomodel.front.elaboration.values import (
    Label,
    Value,
    as_axes,
    merged,
    number,
    show,
)
from slomodel.front.text.syntax import (
    Comprehension,
    Fn,
    FunctionCall,
    Name,
    Node,
    children,
)
from slomodel.functions import FUNCTIONS


def declare_fn(statement: Fn, model: Elaboration) -> None:
    """Declare a function; its body may only use names and functions declared before."""
    name = statement.name
    if name.text in FUNCTIONS or name.text in ARRAY_FUNCTIONS:
        message = f"`{name.text}` is a function of the language"
        raise error("E202", message, name.span, f"choose another name, for example `{name.text}_`")
    parameters = [parameter.text for parameter in statement.parameters]
    for k, parameter in enumerate(statement.parameters):
        if parameter.text in parameters[:k]:
            message = f"two parameters have the name `{parameter.text}`"
            raise error("E202", message, parameter.span, "give one of them another name")
    _check_names(statement, model)
    model.declare(Symbol(name.text, "function", name.span, fn=statement))


def _check_names(statement: Fn, model: Elaboration) -> None:
    own = {parameter.text for parameter in statement.parameters}
    used: list[Name] = []
    for node in _nodes(statement):
        if isinstance(node, Comprehension):
            own |= {iteration.name.text for iteration in node.iterations}
        if isinstance(node, Name):
            used.append(node)
    for node in _nodes(statement):
        if isinstance(node, FunctionCall) and node.function.text in model.functions:
            _check_call(statement, node.function, model)
    for name in used:
        if name.text in own or name.text in model.symbols:
            continue
        if name.text not in CONSTANTS or name.text in model.later:
            parameters = {p.text: number(0.0) for p in statement.parameters}
            raise Scope(model, parameters).unknown(name)


def _nodes(statement: Fn) -> Iterator[Node]:
    """The nodes of a function's body in the order of the text, parents before children."""
    stack: list[Node] = [statement.body]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(children(node)))


def _check_call(statement: Fn, called: Name, model: Elaboration) -> None:
    """Raise an error if a function calls itself, directly or through others."""
    remedy = "a function is expanded where it is used: write a sum by index instead"
    if called.text == statement.name.text:
        raise error("E222", f"`{called.text}` calls itself", called.span, remedy)
    if called.text in model.symbols:
        return
    path = _way_back(called.text, statement.name.text, model)
    if any(name in model.symbols for name in path):
        raise StatementError(None)  # the cycle has been reported at its first function
    if path:
        names = ", which calls ".join(f"`{name}`" for name in path)
        raise error("E222", f"`{statement.name.text}` calls {names}", called.span, remedy)
    raise Scope(model).unknown(called)


def _way_back(start: str, goal: str, model: Elaboration) -> list[str]:
    """The names on a path of calls from one function to another, inclusive; empty if none."""
    paths = {start: [start]}
    waiting = [start]
    while waiting:
        name = waiting.pop(0)
        for node in _nodes(model.functions[name]):
            found = node.function.text if isinstance(node, FunctionCall) else ""
            if found == goal:
                return [*paths[name], goal]
            if found in model.functions and found not in paths:
                paths[found] = [*paths[name], found]
                waiting.append(found)
    return []


def _expanded(node: FunctionCall, scope: Scope) -> Steps:
    """Apply a function of the model elementwise: in its body the arguments are scalars.

    The axes of the arguments become index labels while the body is evaluated.
    """
    symbol = scope.model.symbols[node.function.text]
    fn = symbol.fn
    if fn is None:
        raise StatementError(None)
    parameters = ", ".join(p.text for p in fn.parameters)
    wanted = signature(f"{fn.name.text}({parameters})")
    found = match(node, wanted)
    operands = []
    for parameter in wanted.parameters:
        argument = found[parameter.name][0]
        check_kind(argument, wanted, "")
        value = yield ValueRequest(argument, scope)
        operands.append(operand(argument, value))
    axes = merged([one.value for one in operands])
    if axes is None:
        raise unequal(scope, f"`{fn.name.text}`", node.span, operands)
    labels = [None if axis is None else scope.model.label("", axis) for axis in axes]
    local = {
        parameter.name: _by_element(one.value, labels)
        for parameter, one in zip(wanted.parameters, operands, strict=True)
    }
    body = yield ValueRequest(fn.body, Scope(scope.model, local))
    if body.rank:
        message = f"`{fn.name.text}` must give one number per element, not {show(body)}"
        remedy = "functions are applied elementwise; define arrays with `let`"
        raise shape_error("E222", message, fn.body.span, remedy, marks=marks(*operands))
    return as_axes(body, [label for label in labels if label is not None], axes)


def _by_element(value: Value, labels: list[Label | None]) -> Value:
    pairs = zip(value.axes, labels, strict=True) if value.axes else ()
    own = tuple(label for axis, label in pairs if axis is not None and label is not None)
    return Value(value.expr, value.labels + own)
