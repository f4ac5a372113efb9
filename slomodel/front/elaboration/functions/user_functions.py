"""Functions of a model: declared by `fn`, and expanded at each call."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from slomodel.errors import Diagnostic
from slomodel.front.elaboration.errors import StatementError, error, shape_error
from slomodel.front.elaboration.evaluation import Steps
from slomodel.front.elaboration.functions.arguments import (
    Parameter,
    Signature,
    check_kind,
    match,
)
from slomodel.front.elaboration.functions.array_functions import ARRAY_FUNCTIONS
from slomodel.front.elaboration.functions.library import COUNTS, ORDERED, SUPPORTS
from slomodel.front.elaboration.indices.index_sets import bind_iterations, defined
from slomodel.front.elaboration.recurrences.recurrences import check_group, is_recurrence, recurrent
from slomodel.front.elaboration.scope import (
    CONSTANTS,
    Elaboration,
    Local,
    Scope,
    Symbol,
    ValueRequest,
)
from slomodel.front.elaboration.shape_mismatch import Operand, marks, operand, unequal
from slomodel.front.elaboration.values import (
    Label,
    Value,
    as_axes,
    combine,
    merged,
    number,
    show,
    value_of,
    with_unit_axes,
)
from slomodel.front.text.syntax import (
    Comprehension,
    Fn,
    FnParameter,
    FunctionCall,
    Let,
    Name,
    Node,
    Size,
    joined_groups,
    roots,
)
from slomodel.front.text.traversal import children
from slomodel.functions import FUNCTIONS, eq, floor, ge, gt, land, le, lnot, lor, ne, square
from slomodel.ir.dims import Dim, literal, named
from slomodel.ir.walk import inputs
from slomodel.problem import Check


def declare_fn(statement: Fn, model: Elaboration) -> None:
    """Declare a function; its body may only use names and functions declared before."""
    name = statement.name
    if name.text in FUNCTIONS or name.text in ARRAY_FUNCTIONS:
        message = f"`{name.text}` is a function of the language"
        raise error("E202", message, name.span, f"choose another name, for example `{name.text}_`")
    _check_names(statement, model)
    model.declare(Symbol(name.text, "function", name.span, fn=statement))


def _check_names(statement: Fn, model: Elaboration) -> None:
    """Check that a function knows the names it uses, and that its own names differ."""
    known: dict[str, Local] = {}
    for parameter in statement.parameters:
        _add_own(known, parameter.name, "two parameters have the name", number(0.0))
    parameters = set(known)
    for dim in _own_dims(statement, model):
        if dim.text in parameters:
            message = f"`{dim.text}` is both a parameter and a dim"
            raise error("E202", message, dim.span, "give one of them another name")
        known[dim.text] = _dim_symbol(dim, named(dim.text))
    for group in joined_groups(statement.locals):
        states: set[str] = set()
        if is_recurrence(group):
            check_group(group)
            states = {let.name.text for let in group}
        for let in group:
            own = {one.name.text for one in let.indices or ()} | states
            if let.first is not None and let.first.iteration is not None:
                own.add(let.first.iteration.name.text)
            for root in roots(let):
                _check_known(root, known, own, model)
        for let in group:
            _add_own(known, let.name, "the function already has a", number(0.0))
    _check_known(statement.body, known, set(), model)
    for node in _nodes(*roots(statement)):
        if isinstance(node, FunctionCall) and node.function.text in model.functions:
            _check_call(statement, node.function, model)


def _add_own(known: dict[str, Local], name: Name, clash: str, value: Value) -> None:
    if name.text in known:
        message = f"{clash} `{name.text}`"
        raise error("E202", message, name.span, "give one of them another name")
    known[name.text] = value


def _check_known(
    root: Node, known: Mapping[str, Local], indices: set[str], model: Elaboration
) -> None:
    """Raise StatementError for a name that is neither the function's own nor declared before."""
    own = {*known, *indices}
    used: list[Name] = []
    for node in _nodes(root):
        if isinstance(node, Comprehension):
            own |= {name.text for iteration in node.iterations for name in iteration.names}
        if isinstance(node, Name):
            used.append(node)
    for name in used:
        if name.text in own or name.text in model.symbols:
            continue
        if name.text not in CONSTANTS or name.text in model.later:
            raise Scope(model, known).unknown(name)


def _own_dims(statement: Fn, model: Elaboration) -> Iterator[Name]:
    """The names of dims that the arguments bind: those that the model does not declare as dims."""
    for parameter in statement.parameters:
        for size in parameter.shape or ():
            yield from (name for name, _ in size.terms if _declared_dim(name, model) is None)


def _declared_dim(name: Name, model: Elaboration) -> Dim | None:
    """The dim of the model that a size in its text names; those of the library are its own."""
    if name.span.source is not model.source:
        return None
    symbol = model.symbols.get(name.text)
    if symbol is not None and symbol.is_broken:
        raise StatementError(None)
    return None if symbol is None else symbol.dim


def _dim_symbol(name: Name, dim: Dim) -> Symbol:
    return Symbol(name.text, "dim", name.span, dim=dim)


def _nodes(*roots: Node) -> Iterator[Node]:
    """The nodes below some nodes in the order of the text, parents before children."""
    stack: list[Node] = list(reversed(roots))
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
        for node in _nodes(*roots(model.functions[name])):
            result = node.function.text if isinstance(node, FunctionCall) else ""
            if result == goal:
                return [*paths[name], goal]
            if result in model.functions and result not in paths:
                paths[result] = [*paths[name], result]
                waiting.append(result)
    return []


def expanded(
    node: FunctionCall,
    fn: Fn | None,
    scope: Scope,
    counts: Collection[str] = (),
    support: str = "",
    ordered: tuple[str, ...] = (),
) -> Steps:
    """The value of a function of the model for the arguments of a call.

    Parameters without shape are numbers: the function is applied to each element of their
    arguments, whose axes become index labels while the body is evaluated. Data for the parameters
    `counts`, those for the first one, which must be in `support`, and the order of the two in
    `ordered` are checked at bind, unless a condition may leave the value out.
    """
    model = scope.model
    if fn is None:
        raise StatementError(None)
    wanted = Signature(
        fn.head, fn.name.text, tuple(Parameter(one.name.text) for one in fn.parameters)
    )
    result = match(node, wanted)
    arrays: dict[str, Operand] = {}
    numbers: dict[str, Operand] = {}
    for parameter in fn.parameters:
        name = parameter.name.text
        argument = result[name][0]
        check_kind(argument, wanted, "")
        value = yield ValueRequest(argument, scope)
        kind = numbers if parameter.shape is None else arrays
        kind[name] = operand(argument, value)
        if name in counts and not scope.is_chosen:
            _check_counts(fn.name.text, kind[name], model)
        if support and parameter is fn.parameters[0] and not scope.is_chosen:
            _check_support(fn.name.text, support, kind[name], model)
    if ordered and not scope.is_chosen:
        _check_order(fn.name.text, [(numbers | arrays)[name] for name in ordered], model)
    axes = merged([one.value for one in numbers.values()])
    if axes is None:
        raise unequal(scope, f"`{fn.name.text}`", node.span, list(numbers.values()))
    labels = [None if axis is None else model.label("", axis) for axis in axes]
    local: dict[str, Local] = {n: _by_element(o.value, labels) for n, o in numbers.items()}
    local |= {name: with_unit_axes(one.value) for name, one in arrays.items()}
    local |= _bound_dims(fn, arrays, model)
    if fn.span.source is not model.source:  # the library ignores the model's names
        local |= {name: value_of(value) for name, value in CONSTANTS.items() if name not in local}
    is_any = any(one.is_any_shape for one in fn.parameters)
    inner = replace(scope, local=local, any_shape=is_any)
    for group in joined_groups(fn.locals):
        if is_recurrence(group):
            values = yield from recurrent(group, inner)
        else:
            values = [(yield from _definition(group[0], inner))]
        own = [let.name.text for let in group]
        inner = inner.with_local(dict(zip(own, values, strict=True)))
    body = yield ValueRequest(fn.body, inner)
    if fn.span.source is not model.source and any(one.value.rank for one in arrays.values()):
        body = replace(body, total_of=fn.name.text)
    if not axes:
        return body
    if body.rank:
        raise _array_by_element(fn, body, list(numbers.values()))
    return as_axes(body, [label for label in labels if label is not None], axes)


def from_library(node: FunctionCall, fn: Fn, scope: Scope) -> Steps:
    """The value of a function of the library; errors inside it are reported at the call."""
    arguments = {keyword.value.span.source for keyword in node.kwargs}
    arguments |= {argument.span.source for argument in node.args}
    place = scope.place or node.span
    try:
        name, inner = fn.name.text, replace(scope, place=place)
        counts, support = COUNTS.get(name, ()), SUPPORTS.get(name, "")
        return (yield from expanded(node, fn, inner, counts, support, ORDERED.get(name, ())))
    except StatementError as problem:
        result = problem.diagnostic
        if result is None or result.span is None or result.span.source in arguments:
            raise
        message = f"`{fn.name.text}` does not accept these arguments: {result.message}"
        diagnostic = Diagnostic(
            "E220", message, place, help=f"it is `{fn.head}`, in {result.span.text!r}"
        )
        raise StatementError(diagnostic, problem.kind) from None


def _check_counts(name: str, argument: Operand, model: Elaboration) -> None:
    """Check at bind that data are counts.

    Inside a sum a condition may leave elements out: there -1 and NaN may stand for missing ones.
    """
    value = argument.value
    if value.pattern is not None or any(one.role != "data" for one in inputs(value.expr)):
        return
    is_count = combine(eq, value, combine(floor, value))
    if value.labels:
        is_count = combine(lor, is_count, combine(ne, value, value))
    else:
        is_count = combine(land, is_count, combine(ge, value, number(0.0)))
    text = argument.span.text
    fault = f"`{name}` takes counts, whole numbers from 0 on, and `{text}` has others"
    model.checks.append(Check(is_count.expr, text, argument.span, fault))


def _check_support(name: str, support: str, argument: Operand, model: Elaboration) -> None:
    """Check at bind that data are in the support of a density; NaN may be masked.

    Inside a sum a condition may leave any element out, and there is no check.
    """
    value = argument.value
    if value.labels or value.pattern is not None:
        return
    if any(one.role != "data" for one in inputs(value.expr)):
        return
    inside = combine(gt if "above" in support else ge, value, number(0.0))
    if support == "0 or 1":
        inside = combine(eq, combine(square, value), value)
    elif "to 1" in support:
        inside = combine(land, inside, combine(le, value, number(1.0)))
    is_in_support = combine(lor, inside, combine(ne, value, value))
    text = argument.span.text
    fault = f"`{name}` takes {support}, and `{text}` has others"
    model.checks.append(Check(is_in_support.expr, text, argument.span, fault))


def _check_order(name: str, pair: Sequence[Operand], model: Elaboration) -> None:
    """Check at bind that the data of one parameter are at most those of another."""
    low, high = (one.value for one in pair)
    if any(one.labels or one.pattern is not None for one in (low, high)):
        return
    if any(one.role != "data" for one in (*inputs(low.expr), *inputs(high.expr))):
        return
    if merged([low, high]) is None:
        return
    is_above = combine(lnot, combine(gt, low, high))
    text, other = (one.span.text for one in pair)
    fault = f"`{name}` needs `{text} <= {other}`, which does not hold for all elements"
    model.checks.append(Check(is_above.expr, text, pair[0].span, fault))


def _definition(let: Let, scope: Scope) -> Steps:
    """The value of a local definition."""
    if let.indices is None:
        return (yield ValueRequest(let.expr, scope, sparse=True))
    labels, inner = bind_iterations(let.indices, scope)
    body = yield ValueRequest(let.expr, inner)
    return defined(let, labels, body, scope)


def _by_element(value: Value, labels: list[Label | None]) -> Value:
    pairs = zip(value.axes, labels, strict=True) if value.axes else ()
    own = tuple(label for axis, label in pairs if axis is not None and label is not None)
    return Value(value.expr, value.labels + own)


def _bound_dims(fn: Fn, arguments: Mapping[str, Operand], model: Elaboration) -> dict[str, Symbol]:
    """The function's own dims, bound by the shapes of its arguments."""
    bound: dict[str, Symbol] = {}
    origin: dict[str, Operand] = {}
    for parameter in fn.parameters:
        if parameter.shape is None or parameter.is_any_shape:
            continue
        argument = arguments[parameter.name.text]
        if argument.value.rank != len(parameter.shape):
            raise _other_shape(fn, parameter, argument)
        for size, dim in zip(parameter.shape, with_unit_axes(argument.value).dims, strict=True):
            wanted = _wanted(size, bound, model)
            if wanted is None:
                ((name, _),) = size.terms
                bound[name.text] = _dim_symbol(name, dim - size.offset)
                origin[name.text] = argument
            elif wanted != dim:
                bindings = (origin.get(name.text) for name, _ in size.terms)
                first = next((binding for binding in bindings if binding is not None), None)
                raise _other_shape(fn, parameter, argument, first)
    return bound


def _wanted(size: Size, bound: Mapping[str, Symbol], model: Elaboration) -> Dim | None:
    """The dim that a size of a parameter stands for; None if an argument has yet to bind it."""
    total = literal(size.offset)
    for name, factor in size.terms:
        known = bound.get(name.text)
        dim = _declared_dim(name, model) if known is None else known.dim
        if dim is None:
            if len(size.terms) == 1 and factor == 1:
                return None
            message = f"`{size.span.text}` is not the size of a parameter that binds `{name.text}`"
            remedy = f"an earlier parameter, of size `{name.text}`, binds it"
            raise error("E217", message, size.span, remedy)
        total += dim * factor
    return total


def _other_shape(
    fn: Fn, parameter: FnParameter, argument: Operand, first: Operand | None = None
) -> StatementError:
    """The error for an argument whose shape is not that of its parameter."""
    text = parameter.span.text
    message = f"`{fn.name.text}` takes `{text}` here, not {show(argument.value)}"
    remedy = f"it is `{fn.head}`"
    result = [argument] if first is None or first is argument else [first, argument]
    return shape_error("E220", message, argument.span, remedy, marks=marks(*result))


def _array_by_element(fn: Fn, body: Value, numbers: list[Operand]) -> StatementError:
    """The error for a function of numbers whose value is an array."""
    message = f"`{fn.name.text}` must give one number per element, not {show(body)}"
    remedy = "a parameter that is an array is declared with its shape, as in `fn f(x[n]) = …`"
    return shape_error("E222", message, fn.body.span, remedy, marks=marks(*numbers))
