"""Remarks about kinks and jumps: functions without a derivative somewhere, and their place."""

from __future__ import annotations

from slomodel.errors import Diagnostic, Span
from slomodel.front.joins import is_smooth_join
from slomodel.front.scope import Model
from slomodel.front.values import Value, value_of
from slomodel.functions import DISCONTINUOUS, abs, clip, maximum, minimum, relu, root, sign, where
from slomodel.ir.expr import Expr, Input, Map
from slomodel.ir.function import ScalarFunction

_WHERE = {
    abs: "`abs` has a kink at 0, where its derivative is taken as 0",
    relu: "`relu` has a kink at 0, where its derivative is taken as 0",
    root: "a norm has a kink at 0, where its gradient is taken as 0",
    sign: "`sign` jumps at 0; its derivative is taken as 0 everywhere",
    maximum: "`max` has a kink where its operands are equal",
    minimum: "`min` has a kink where its operands are equal",
    clip: "`clip` has kinks at its two limits",
    where: "`where` may jump or have a kink where its condition changes",
}
_SMOOTH = {
    abs: "`sqrt(t^2 + eps)`, `huber(t)` and `logcosh(t)` are smooth",
    relu: "`softplus` is smooth",
    root: "its square, `sumsq`, is smooth",
    sign: "`tanh` is smooth",
}


def remark(model: Model, function: ScalarFunction, span: Span, *operands: Value) -> None:
    """Warn where a function that is not C¹ is applied to something that varies."""
    if function not in _WHERE or not any(varies(model, o.expr) for o in operands):
        return
    if function is where and is_smooth_join(*(o.expr for o in operands)):
        return
    word = "jump" if function.smoothness == DISCONTINUOUS else "kink"
    help_text = _SMOOTH.get(function, f"a bound over a ball that touches the {word} is infinite")
    diagnostic = Diagnostic("W202", _WHERE[function], span, help=help_text, severity="warning")
    model.warn(diagnostic)


def remark_spelled(model: Model, result: Value, span: Span) -> None:
    """Warn by the function that a spelling has become, as `sqrt(t^2)` becomes `abs`."""
    node = result.expr
    if isinstance(node, Map):
        remark(model, node.function, span, *map(value_of, node.operands))


def varies(model: Model, expr: Expr) -> bool:
    """True when the node depends on a variable; answers are kept in the model."""
    known = model.varying
    stack = [expr]
    while stack:
        node = stack[-1]
        if node in known:
            stack.pop()
            continue
        unknown = [operand for operand in node.operands if operand not in known]
        if unknown:
            stack.extend(unknown)
            continue
        stack.pop()
        is_variable = isinstance(node, Input) and node.role == "variable"
        known[node] = is_variable or any(known[operand] for operand in node.operands)
    return known[expr]
