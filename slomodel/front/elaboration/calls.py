"""Calls: scalar functions by element, functions of a model expanded, array functions by table."""

from __future__ import annotations

from slomodel.front.elaboration.affine import dims_asked
from slomodel.front.elaboration.arguments import (
    Signature,
    check_kind,
    default_number,
    match,
    signature,
)
from slomodel.front.elaboration.arrays import ARRAY_FUNCTIONS
from slomodel.front.elaboration.elsewhere import FUNCTIONS_ELSEWHERE
from slomodel.front.elaboration.faults import Fault, fault, missing, shape_fault, suggestion
from slomodel.front.elaboration.identities import power_of, square_root, squared
from slomodel.front.elaboration.mismatch import marks, operand, unequal
from slomodel.front.elaboration.scope import Evaluate, Scope, described
from slomodel.front.elaboration.site import Site
from slomodel.front.elaboration.steps import Steps
from slomodel.front.elaboration.values import Label, Value, as_axes, combine, merged, number, show
from slomodel.front.text.syntax import Call
from slomodel.functions import FUNCTIONS

_SCALAR_SIGNATURES = {
    "pow": "pow(x, p)",
    "huber": "huber(t, delta=1)",
    "max": "max(a, b)",
    "min": "min(a, b)",
    "where": "where(condition, a, b)",
    "clip": "clip(x, lo, hi)",
}
_LATER = {
    "inv": "compute inverses of data before, and give them as data: `data Ainv[n, n]`",
    "det": "for a triangular matrix it is the product of the diagonal: `prod(diag(L))`",
    "logdet": "for a triangular matrix it is `sum(log(abs(diag(L))))`",
    "solve": "make the solution a variable `x`, and minimise `sumsq(A @ x - b)` with the rest",
}


def scalar_signature(name: str) -> Signature:
    return signature(_SCALAR_SIGNATURES.get(name, f"{name}(x)"))


def call(node: Call, request: Evaluate) -> Steps:
    name, scope = node.function.text, request.scope
    is_reduction = name in ("max", "min") and (len(node.args) == 1)
    if name in FUNCTIONS and not is_reduction:
        return (yield from _scalar(node, scope))
    if name in ARRAY_FUNCTIONS:
        return (yield from _array(node, scope))
    symbol = scope.model.symbols.get(name)
    if symbol is not None and symbol.kind == "function":
        return (yield from _expanded(node, scope))
    raise _unknown(node, scope)


def _scalar(node: Call, scope: Scope) -> Steps:
    name = node.function.text
    wanted = scalar_signature(name)
    found = match(node, wanted)
    operands = []
    for parameter in wanted.parameters:
        for argument in found[parameter.name]:
            check_kind(argument, wanted, parameter.name)
            value = yield Evaluate(argument, scope)
            operands.append(operand(argument, value))
    values = [one.value for one in operands]
    if merged(values) is None:
        raise unequal(scope, f"`{name}`", node.span, operands)
    values += [number(default_number(p)) for p in wanted.parameters if not found[p.name]]
    if name == "pow":
        return power_of(*values)
    if name in ("sqrt", "square"):
        return square_root(values[0]) if name == "sqrt" else squared(values[0])
    return combine(FUNCTIONS[name], *values)


def _array(node: Call, scope: Scope) -> Steps:
    entry = ARRAY_FUNCTIONS[node.function.text]
    wanted = signature(entry.text)
    found = match(node, wanted)
    operands = []
    for parameter in entry.values:
        for argument in found[parameter]:
            check_kind(argument, wanted, parameter)
            value = yield Evaluate(argument, scope)
            operands.append(operand(argument, value))
    return entry.rule(Site(node, wanted, scope, tuple(operands), found))


def _expanded(node: Call, scope: Scope) -> Steps:
    """A function of the model: its body with each element of the arguments as a scalar.

    The axes of the arguments become index labels, so that the body reads by element.
    """
    symbol = scope.model.symbols[node.function.text]
    fn = symbol.fn
    if fn is None:
        raise Fault(None)
    parameters = ", ".join(p.text for p in fn.parameters)
    wanted = signature(f"{fn.name.text}({parameters})")
    found = match(node, wanted)
    operands = []
    for parameter in wanted.parameters:
        argument = found[parameter.name][0]
        check_kind(argument, wanted, "")
        value = yield Evaluate(argument, scope)
        operands.append(operand(argument, value))
    axes = merged([one.value for one in operands])
    if axes is None:
        raise unequal(scope, f"`{fn.name.text}`", node.span, operands)
    labels = [None if axis is None else scope.model.label("", axis) for axis in axes]
    local = {
        parameter.name: _by_element(one.value, labels)
        for parameter, one in zip(wanted.parameters, operands, strict=True)
    }
    body = yield Evaluate(fn.body, Scope(scope.model, local))
    if body.rank:
        message = f"`{fn.name.text}` must give a number for each element, and gives {show(body)}"
        remedy = "a function is applied by element; define arrays with `let`"
        raise shape_fault("E222", message, fn.body.span, remedy, marks=marks(*operands))
    return as_axes(body, [label for label in labels if label is not None], axes)


def _by_element(value: Value, labels: list[Label | None]) -> Value:
    pairs = zip(value.axes, labels, strict=True) if value.axes else ()
    own = tuple(label for axis, label in pairs if axis is not None and label is not None)
    return Value(value.expr, value.labels + own)


def _unknown(node: Call, scope: Scope) -> Fault:
    name = node.function.text
    span = node.function.span
    if name in _LATER:
        return missing(f"`{name}` cannot be computed yet", span, _LATER[name])
    if name == "norm":
        remedy = "write `norm2(x)` of a vector, `fro(A)`, `norm1(x)`, or `sumsq(x)` for its square"
        return fault("E203", "`norm` has several readings", span, remedy)
    if name == "range":
        remedy = "as in `sum(x[i] for i in range(n - 1))`"
        return fault("E203", "`range` stands only after `in`", span, remedy)
    later = scope.model.later.get(name)
    if later is not None:
        remedy = f"move its declaration up, it is on line {later.line}"
        return fault("E201", f"`{name}` is used before it is declared", span, remedy)
    known = scope.model.symbols.get(name)
    if known is not None or name in scope.local:
        what = described(known) if known is not None else f"`{name}` is an index or parameter"
        is_array = known is not None and known.value is not None and known.value.rank > 0
        remedy = f"an element is written `{name}[0]`, counted from 0; or missing `*`?"
        remedy = remedy if is_array else "missing `*`?"
        return fault("E203", f"{what}, and a call needs a function", span, remedy)
    meant = dims_asked(node, scope) or FUNCTIONS_ELSEWHERE.get(name)
    if meant:
        return fault("E203", f"no function is called `{name}`", span, meant)
    functions = [s.name for s in scope.model.symbols.values() if s.kind == "function"]
    names = [*FUNCTIONS, *ARRAY_FUNCTIONS, *_LATER, *functions]
    remedy = suggestion(name, names) or f"declare it before, as in `fn {name}(t) = …`"
    return fault("E203", f"no function is called `{name}`", span, remedy)
