"""How a SymPy expression is refused: a code, the sub-expression, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import sympy as sp

from slomodel.errors import Diagnostic, ModelSyntaxError, SlomodelError, SourceText, Span
from slomodel.ir.expr import Expr

_MOST_PRINTED = 60
_LONGEST = 100


def shown(node: sp.Basic) -> str:
    """The node as SymPy prints it, cut where that is long; SymPy's printer would recurse."""
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
    """The node as a source text of its own, for messages."""
    source = SourceText(shown(node), "<SymPy expression>")
    return Span(source, 0, len(source.text))


def refused(
    code: str,
    message: str,
    node: sp.Basic | None = None,
    remedy: str = "",
    kind: type[SlomodelError] = ModelSyntaxError,
) -> SlomodelError:
    """The error to raise; the node is shown below the sentence."""
    span = None if node is None else place(node)
    return kind(Diagnostic(code, message, span, help=remedy))


class Places(Mapping[Expr, Span]):
    """The SymPy node that each node of a graph comes from, as a span once it is asked for."""

    def __init__(self) -> None:
        self._origins: dict[Expr, sp.Basic] = {}

    def note(self, node: Expr, origin: sp.Basic) -> None:
        """Remember the first origin of a node."""
        self._origins.setdefault(node, origin)

    def __getitem__(self, node: Expr) -> Span:
        return place(self._origins[node])

    def __contains__(self, node: object) -> bool:
        return node in self._origins

    def __iter__(self) -> Iterator[Expr]:
        return iter(self._origins)

    def __len__(self) -> int:
        return len(self._origins)
