"""Errors about a SymPy expression: code, sub-expression, and remedy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import sympy as sp
from sympy.core.function import AppliedUndef

from slomodel.errors import (
    Diagnostic,
    DomainError,
    MissingRule,
    ModelSyntaxError,
    SlomodelError,
    SourceText,
    Span,
)
from slomodel.functions.translate import known_functions
from slomodel.ir.expr import Expr

_MOST_PRINTED = 60
_LONGEST = 100


def shown(node: sp.Basic) -> str:
    """The node as SymPy prints it, truncated if long, since SymPy's printer would recurse."""
    if _is_small(node):
        text = " ".join(str(node).split())
        return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
    if isinstance(node, (sp.Add, sp.Mul)):
        sign = "+" if isinstance(node, sp.Add) else "*"
        first = next((shown(part) for part in node.args if _is_small(part)), "…")
        return f"{first} {sign} … ({len(node.args)} operands)"
    return f"{node.func.__name__}(…)"


def _is_small(node: sp.Basic) -> bool:
    count, stack = 0, [node]
    while stack and count <= _MOST_PRINTED:
        count += 1
        stack.extend(stack.pop().args)
    return count <= _MOST_PRINTED


def place(node: sp.Basic) -> Span:
    """The node as a source text for messages."""
    source = SourceText(shown(node), "<SymPy expression>")
    return Span(source, 0, len(source.text))


def error(
    code: str,
    message: str,
    node: sp.Basic | None = None,
    remedy: str = "",
    kind: type[SlomodelError] = ModelSyntaxError,
) -> SlomodelError:
    """The error to raise; the message shows the node below the sentence."""
    span = None if node is None else place(node)
    return kind(Diagnostic(code, message, span, help=remedy))


class Origins(Mapping[Expr, Span]):
    """Map from nodes of a graph to the spans of the SymPy nodes from which they stem."""

    def __init__(self) -> None:
        self._origins: dict[Expr, sp.Basic] = {}

    def note(self, node: Expr, origin: sp.Basic) -> None:
        """Record the first origin of a node."""
        self._origins.setdefault(node, origin)

    def __getitem__(self, node: Expr) -> Span:
        return place(self._origins[node])

    def __contains__(self, node: object) -> bool:
        return node in self._origins

    def __iter__(self) -> Iterator[Expr]:
        return iter(self._origins)

    def __len__(self) -> int:
        return len(self._origins)


_COMPLEX = (sp.conjugate, sp.re, sp.im, sp.arg, sp.Adjoint, sp.polar_lift)
_JUMPS = (sp.floor, sp.ceiling, sp.Mod, sp.frac, sp.Heaviside)
_SENTENCES: tuple[tuple[tuple[type[sp.Basic], ...], str, str], ...] = (
    ((sp.Derivative, sp.Subs), "a Derivative is not evaluated", "call `.doit()` on it first"),
    ((sp.Integral,), "an Integral is not evaluated", "call `.doit()`, or write a Sum"),
    ((sp.Limit, sp.Order), "limits and orders are not numbers", "call `.doit()`, `.removeO()`"),
    ((sp.DiracDelta,), "a DiracDelta is not a function", "omit it, or write a smooth peak"),
    (_JUMPS, "this function jumps, and its slope is useless", "write a smooth step, like tanh"),
    ((sp.Lambda,), "a Lambda is a function, not a number", "apply it to its arguments"),
    ((sp.Poly,), "a Poly is not an expression", "write `poly.as_expr()`"),
)


def unsupported_node(node: sp.Basic) -> SlomodelError:
    """The error for a node without a rule."""
    if isinstance(node, _COMPLEX):
        remedy = "declare symbols with `real=True`, and transpose by `.T`"
        message = "models have real numbers only, and this is for complex ones"
        return error("E403", message, node, remedy, DomainError)
    if isinstance(node, AppliedUndef):
        name = node.func.__name__
        remedy = f"write a formula in place of `{name}`"
        return error("E404", f"the function `{name}` has no formula", node, remedy)
    for kinds, message, remedy in _SENTENCES:
        if isinstance(node, kinds):
            return error("E404", message, node, remedy, MissingRule)
    message = f"SymPy's `{node.func.__name__}` has no rule"
    remedy = f"the functions known are {', '.join(known_functions())}, and sqrt"
    if isinstance(node, sp.MatrixExpr):
        remedy = "write a Sum over the elements `M[i, j]`"
    return error("E404", message, node, remedy, MissingRule)


def check_number(node: sp.Expr) -> None:
    """Raise an error for a number that is not a finite real in double precision."""
    if not node.is_number or not node.is_Atom:
        raise unsupported_node(node)
    if node.is_finite is not True:
        message = f"`{node}` is not a finite number"
        raise error("E412", message, node, "constants of a model must be finite", DomainError)
    if node.is_real is not True:
        message = f"`{node}` is not a real number"
        raise error("E403", message, node, "constants of a model must be real", DomainError)
    if math.isinf(_double(node)):
        message = "a number exceeds the largest double, 1.8e308"
        raise error("E412", message, node, "scale the model", DomainError)


def _double(node: sp.Expr) -> float:
    try:
        return float(node)
    except OverflowError:
        return math.inf
