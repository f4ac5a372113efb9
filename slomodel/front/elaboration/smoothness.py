"""Remarks about kinks and jumps of an objective: functions that are not C¹, and their places."""

from __future__ import annotations

from collections.abc import Mapping

from slomodel.calculus.joins import is_smooth_join
from slomodel.calculus.kinked_products import exposed
from slomodel.errors import Diagnostic, Span
from slomodel.functions import (
    DISCONTINUOUS,
    abs,
    clip,
    differentiated,
    hypot,
    maximum,
    minimum,
    relu,
    root,
    sign,
    where,
)
from slomodel.ir.expr import Expr, Extreme, Input, Map
from slomodel.ir.function import ScalarFunction
from slomodel.ir.walk import dependents
from slomodel.problem import NONSMOOTH

_REMARKS: dict[ScalarFunction, tuple[str, str]] = {
    abs: (
        "`abs` has a kink at 0, where its derivative is taken as 0",
        "`sqrt(t^2 + eps)`, `huber(t)` and `logcosh(t)` are smooth",
    ),
    relu: (
        "`relu` has a kink at 0, where its derivative is taken as 0",
        "`softplus` is smooth",
    ),
    root: (
        "a norm has a kink at 0, where its gradient is taken as 0",
        "its square, `sumsq`, is smooth",
    ),
    hypot: (
        "a norm has a kink at 0, where its gradient is taken as 0",
        "its square, the sum of squares, is smooth",
    ),
    sign: (
        "`sign` jumps at 0; its derivative is taken as 0 everywhere",
        "`tanh` is smooth",
    ),
    maximum: ("`max` has a kink where its operands are equal", ""),
    minimum: ("`min` has a kink where its operands are equal", ""),
    clip: ("`clip` has kinks at its two limits", ""),
    where: ("`where` may jump or have a kink where its condition changes", ""),
}
_BOUNDS = "a bound over a ball that touches it is infinite"


def nonsmooth_warnings(
    objective: Expr, spans: Mapping[Expr, Span], place: Span
) -> list[Diagnostic]:
    """A warning for each node that varies and is not C¹; `place` is for nodes without one.

    Where a product makes it so, as |t|³, there is nothing to warn of.
    """
    order = differentiated(objective)
    varying = dependents(order, lambda n: isinstance(n, Input) and n.role == "variable")
    seen = exposed(objective, order, varying).nodes
    found: dict[Diagnostic, None] = {}
    for node in order:
        if node not in seen:
            continue
        if isinstance(node, Extreme) and node in varying:
            message = f"`{node.which}` has a kink where its extreme elements are equal"
            remedy = "`logsumexp` is smooth"
            span = spans.get(node, place)
            found[Diagnostic(NONSMOOTH, message, span, help=remedy, severity="warning")] = None
        if not isinstance(node, Map) or node not in varying or node.function.result == "bool":
            continue
        if node.function.smoothness > 0 or not _has_kink(node, varying):
            continue
        found[_remark(node.function, spans.get(node, place))] = None
    return list(found)


def _has_kink(node: Map, varying: set[Expr]) -> bool:
    """A `where` has none where its condition is fixed, or its branches meet smoothly."""
    if node.function is not where:
        return True
    return node.operands[0] in varying and not is_smooth_join(node, varying)


def _remark(function: ScalarFunction, span: Span) -> Diagnostic:
    word = "jump" if function.smoothness == DISCONTINUOUS else "kink"
    message, remedy = _REMARKS.get(function, (f"`{function.name}` has a {word}", ""))
    return Diagnostic(NONSMOOTH, message, span, help=remedy or _BOUNDS, severity="warning")
