"""Messages about shapes that do not match: marks, the origin of the dims, a remedy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from slomodel.errors import Mark, Span
from slomodel.front.elaboration.errors import StatementError, shape_error
from slomodel.front.elaboration.scope import Scope, Symbol
from slomodel.front.elaboration.values import Axis, Value, show, show_axes
from slomodel.front.text.syntax import (
    FunctionCall,
    Index,
    Name,
    Node,
    NumberLiteral,
    ProductChain,
    Transpose,
)
from slomodel.front.text.traversal import children

_MOST_NOTED = 4


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of an operator: span, nodes and value."""

    span: Span
    nodes: tuple[Node, ...]
    value: Value

    @property
    def name(self) -> str:
        """The name, if the operand is a name; otherwise an empty string."""
        only = self.nodes[0] if len(self.nodes) == 1 else None
        return only.text if isinstance(only, Name) else ""

    @property
    def text(self) -> str:
        """The operand as quoted in a message."""
        text = " ".join(self.span.text.split())
        return text if len(text) <= 40 else text[:40] + "…"

    @property
    def bracketed(self) -> str:
        """The text as an operand of any operator: in parentheses if necessary."""
        simple = (
            isinstance(self.nodes[0], (Name, NumberLiteral, Index, FunctionCall))
            and len(self.nodes) == 1
        )
        return self.text if simple or self.text.startswith("(") else f"({self.text})"

    @property
    def transposed(self) -> str:
        """The text of the transposed operand."""
        only = self.nodes[0]
        if len(self.nodes) == 1 and isinstance(only, Transpose):
            return only.operand.span.text
        return f"{self.bracketed}'"


def operand(node: Node, value: Value) -> Operand:
    return Operand(node.span, (node,), value)


def marks(*operands: Operand) -> tuple[Mark, ...]:
    """A mark under each operand with its shape."""
    return tuple(Mark(o.span, show(o.value)) for o in operands)


def note(scope: Scope, pairs: Iterable[tuple[Operand, Axis]]) -> str:
    """A note on the origin of the dims: `A is [m, n] (line 4), y is [n] (line 4)`."""
    result: list[str] = []
    for one, axis in pairs:
        symbols = _symbols(scope, one.nodes)
        blamed = [s for s in symbols if s.value is not None and axis in s.value.axes]
        for symbol in blamed or symbols:
            assert symbol.value is not None
            text = f"{symbol.name} is {show(symbol.value)} (line {symbol.span.line})"
            if text not in result:
                result.append(text)
    return ", ".join(result[:_MOST_NOTED])


def _symbols(scope: Scope, nodes: Sequence[Node]) -> list[Symbol]:
    """The declared arrays that occur in given nodes, in the order of the text."""
    result: dict[str, Symbol] = {}
    stack: list[Node] = list(reversed(nodes))
    while stack:
        node = stack.pop()
        if isinstance(node, Name) and node.text not in scope.local:
            symbol = scope.model.symbols.get(node.text)
            if symbol is not None and symbol.value is not None and symbol.value.axes:
                result[symbol.name] = symbol
        stack.extend(reversed(children(node)))
    return list(result.values())


def unequal(
    scope: Scope, what: str, span: Span, operands: Sequence[Operand], remedy: str = ""
) -> StatementError:
    """The error for unequal shapes in an elementwise operation named `what`."""
    arrays = [one for one in operands if one.value.axes]
    left = arrays[0]
    right = next(o for o in arrays if _clash(left.value.axes, o.value.axes) is not None)
    axis = _clash(left.value.axes, right.value.axes)
    assert axis is not None
    whole = f"{what} needs equal shapes: {show(left.value)} and {show(right.value)}"
    pairs = [(left, axis[0]), (right, axis[1])]
    return shape_error(
        "E204",
        whole,
        span,
        remedy or _matrix_product(what, left, right) or _remedy(scope, left, right),
        marks=marks(left, right),
        note=note(scope, pairs),
    )


def _matrix_product(what: str, left: Operand, right: Operand) -> str:
    """The remedy if `*` was probably meant as a matrix product, as in other languages."""
    a, b = left.value.axes, right.value.axes
    if what != "`*`" or len(a) + len(b) < 3:
        return ""
    if a[-1] == b[0] and a[-1] is not None:
        product = f"{left.bracketed} @ {right.bracketed}"
    elif len(a) == 1 and a[0] == b[-1]:
        product = f"{right.bracketed} @ {left.bracketed}"
    else:
        return ""
    return f"for the matrix product write `{product}`"


def _clash(a: Sequence[Axis], b: Sequence[Axis]) -> tuple[Axis, Axis] | None:
    """The first pair of axes that differ; None if all agree."""
    if len(a) != len(b):
        longer = a if len(a) > len(b) else b
        shorter = b if len(a) > len(b) else a
        odd = next((x for x in longer if x not in shorter), longer[-1])
        other = next((x for x in shorter if x not in longer), shorter[-1])
        return (odd, other) if longer is a else (other, odd)
    for x, y in zip(a, b, strict=True):
        if x is not None and y is not None and x != y:
            return x, y
    return None


def _remedy(scope: Scope, left: Operand, right: Operand) -> str:
    a, b = left.value.axes, right.value.axes
    if len(a) == len(b) == 2 and a == b[::-1]:
        return f"did you mean `{right.transposed}`?"
    for vector, matrix in ((left, b), (right, a)):
        own = vector.value.axes
        if len(own) == 1 and len(matrix) == 2 and own[0] in matrix:
            item = ":, None" if own[0] == matrix[0] else "None, :"
            return f"to broadcast, write `{vector.bracketed}[{item}]`"
    index = _index_between(scope, left, right)
    if index:
        return f"did you mean `{index}`?"
    sizes = [axis for axis in (*a, *b) if axis is not None]
    if len(a) == len(b) and any(axis.is_literal and axis.const == 1 for axis in sizes):
        return "a size of 1 does not broadcast: declare fewer axes, and write `b[:, None]`"
    for one, other in ((right, a), (left, b)):
        symbol = scope.model.symbols.get(one.name)
        if symbol is not None and symbol.kind in ("data", "variable") and None not in other:
            word = "data" if symbol.kind == "data" else "var"
            return f"did you mean `{word} {symbol.name}{show_axes(other)}`?"
    return "shapes are equal if their dims have equal names; sizes do not broadcast"


def _index_between(scope: Scope, left: Operand, right: Operand) -> str:
    """`u[g]` for index data g[n] in G that read an operand u[G] along the axis of the other."""
    for one, other in ((left, right), (right, left)):
        if len(one.value.axes) != 1 or len(other.value.axes) != 1:
            continue
        (axis,), (along,) = one.value.axes, other.value.axes
        for symbol in scope.model.symbols.values():
            node = None if symbol.value is None else symbol.value.expr
            if symbol.value is None or node not in scope.model.whole:
                continue
            if scope.model.whole[node] == axis is not None and symbol.value.axes == (along,):
                return f"{one.bracketed}[{symbol.name}]"
    return ""


def unfit_product(scope: Scope, span: Span, left: Operand, right: Operand) -> StatementError:
    """The error for `@` with different inner dims."""
    a, b = left.value.axes, right.value.axes
    remedy = ""
    if len(b) == 2 and a[-1] == b[1]:
        remedy = f"did you mean `{right.transposed}`?"
    elif len(a) == 2 and a[0] == b[0]:
        remedy = f"did you mean `{left.transposed}`?"
    else:
        remedy = "`@` sums over the last axis of the left and the first axis of the right operand"
    return shape_error(
        "E205",
        f"`@` needs the last dim of the left to be the first of the right: "
        f"{show(left.value)} and {show(right.value)}",
        span,
        remedy,
        marks=marks(left, right),
        note=note(scope, [(left, a[-1]), (right, b[max(len(b) - 2, 0)])]),
    )


def parenthesised(node: ProductChain, k: int) -> str:
    """The remedy `y .* (X @ w)` for `y * X @ w`, if term k of the chain did not fit; else empty."""
    if node.rest[k].op not in ("*", ".*") or k + 1 >= len(node.rest):
        return ""
    if node.rest[k + 1].op != "@":
        return ""
    left = node.first if k == 0 else node.rest[k - 1].operand
    tail = node.rest[k].operand.span.to(node.rest[-1].operand.span).text
    text = f"{left.span.text} .* ({tail})"
    return f"did you mean `{text}`?" if "\n" not in text and len(text) <= 60 else ""
