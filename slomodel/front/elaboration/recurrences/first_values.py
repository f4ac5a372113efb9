"""The first values of a recurrence: those after `first`, and those that a condition chooses.

`where(t == 0, h0, rest)` is read as `rest first h0`, and `f(where(t == 0, h0, rest))` as
`f(rest) first f(h0)`. In a recurrence that runs backwards the first
values that it computes are the last ones, `where(t == T - 1, h0, rest)`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass, replace

from slomodel.front.elaboration.errors import StatementError, error, shape_error
from slomodel.front.elaboration.indices.affine_index import size
from slomodel.front.elaboration.indices.index_sets import check_name, label_of
from slomodel.front.elaboration.recurrences.earlier_steps import CODE, NotExpression
from slomodel.front.elaboration.recurrences.step_order import is_name
from slomodel.front.elaboration.scope import Scope, ValueRequest
from slomodel.front.elaboration.shape_mismatch import marks, operand
from slomodel.front.elaboration.values import Label, Value, merged, with_unit_axes
from slomodel.front.text.syntax import Compare, Expr, First, FunctionCall, Name, Node
from slomodel.front.text.traversal import nodes, replaced
from slomodel.functions import add
from slomodel.ir import build
from slomodel.ir.dims import Dim, Shape, literal
from slomodel.ir.expr import Affine
from slomodel.ir.expr import Expr as Graph

_NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_MIRRORED = {"==": "==", "!=": "!=", "<": ">", ">=": "<=", ">": "<", "<=": ">="}


@dataclass(frozen=True, slots=True)
class Cases:
    """A body at its first `count` steps, and at the others."""

    count: Dim
    early: Expr
    rest: Expr


@dataclass(frozen=True, slots=True)
class _EarlyCase:
    """A `where` that is `early` at the first `count` steps, and `rest` at the others."""

    node: Node
    count: Dim
    early: Expr
    rest: Expr


@dataclass(frozen=True, slots=True)
class CaseReader:
    """Reads cases of the index `time` over `length` steps, which may run backwards.

    `names` are those of the recurrence, which first values do not read.
    """

    time: str
    length: Dim
    backwards: bool
    names: Collection[str]
    scope: Scope

    def cases(self, body: Expr) -> Cases | None:
        """The cases of a body that contains `where(t == 0, …)` at any depth.

        Of several numbers of first steps, it is the largest for which their values are
        independent of other steps.
        """
        choices = [one for one in map(self._choice, nodes(body)) if one is not None]
        counts = dict.fromkeys(one.count for one in choices)
        for count in sorted(counts, key=lambda one: -one.const if one.is_literal else -math.inf):
            early: dict[Node, Expr] = {}
            rest: dict[Node, Expr] = {}
            for one in choices:
                more = one.count - count
                if more.is_literal and more.const >= 0:
                    early[one.node] = one.early
                if more.is_literal and more.const <= 0:
                    rest[one.node] = one.rest
            at_first = replaced(body, early)
            if not self._reads_states(at_first):
                return Cases(count, at_first, replaced(body, rest))
        return None

    def _choice(self, node: Node) -> _EarlyCase | None:
        """A `where` that distinguishes the first steps; None for other nodes."""
        if not isinstance(node, FunctionCall) or node.function.text != "where" or node.kwargs:
            return None
        if len(node.args) != 3:
            return None
        test, early, rest = node.args
        if not isinstance(test, Compare):
            return None
        if isinstance(early, NotExpression) or isinstance(rest, NotExpression):
            return None
        count = self._count(test)
        if count is not None:
            return _EarlyCase(node, count, early, rest)
        count = self._count(replace(test, op=_NEGATED[test.op]))
        return None if count is None else _EarlyCase(node, count, rest, early)

    def _reads_states(self, node: Node) -> bool:
        return any(isinstance(one, Name) and one.text in self.names for one in nodes(node))

    def _count(self, test: Compare) -> Dim | None:
        """The number of steps for which a test holds, if these are the first ones."""
        op, edge = test.op, test.right
        if not is_name(test.left, self.time):
            op, edge = _MIRRORED[test.op], test.left
            if not is_name(test.right, self.time):
                return None
        try:
            place = size(edge, self.scope)
        except StatementError:
            return None
        if self.backwards:
            place, op = self.length - 1 - place, _MIRRORED[op]
        if op == "==":
            return literal(1) if place == Dim() else None
        return {"<": place, "<=": place + 1}.get(op)


def first_values(
    first: First, later: tuple[Label, ...], inner: Scope
) -> Generator[ValueRequest, Value, tuple[Dim, Shape, Graph]]:
    """The number of first values, the axes of one beyond the later indices, and their array."""
    if first.iteration is not None:
        check_name(first.iteration.name, inner, ())
        label = label_of(first.iteration, inner)
        if label.start != Dim() or label.step != 1:
            message = "first values count from 0, one by one"
            raise error(CODE, message, first.iteration.domain.span, "write `for t in m`")
        return (yield from values_by_index(first.values[0], label, later, inner))
    result: list[Value] = []
    for one in first.values:
        result.append(with_unit_axes((yield ValueRequest(one, inner))))
    axes = merged(result)
    if axes is None:
        every = [operand(node, value) for node, value in zip(first.values, result, strict=True)]
        message = "the first values of a recurrence have one shape"
        raise shape_error(CODE, message, first.span, marks=marks(*every))
    shape = tuple(axis for axis in axes if axis is not None)
    count = literal(len(result))
    total: Graph | None = None
    for k, value in enumerate(result):
        own = laid_out(value, later, shape)
        wide = build.broadcast(own, tuple(range(1, own.rank + 1)), (literal(1), *own.shape))
        if len(result) > 1:
            index = [
                Affine(
                    literal(k) if j == 0 else Dim(), tuple(int(i == j) for i in range(wide.rank))
                )
                for j in range(wide.rank)
            ]
            wide = build.scatter(wide, index, (count, *own.shape))
        total = wide if total is None else build.apply(add, total, wide)
    assert total is not None
    return count, shape, total


def values_by_index(
    node: Expr, label: Label, later: tuple[Label, ...], inner: Scope
) -> Generator[ValueRequest, Value, tuple[Dim, Shape, Graph]]:
    """First values given by one expression for the steps of a label."""
    scope = inner.with_local({label.name: label})
    value = with_unit_axes((yield ValueRequest(node, scope)))
    shape = value.dims
    return label.dim, shape, laid_out(value, (label, *later), shape)


def laid_out(value: Value, labels: Sequence[Label], axes: Shape) -> Graph:
    """The array of a value, of shape (*labels, *axes); numbers fill the axes."""
    shape = (*(label.dim for label in labels), *axes)
    place = {label: k for k, label in enumerate(labels)}
    count = len(labels)
    own = [place[label] for label in value.labels]
    own += range(count, count + value.rank)
    return build.einsum([value.expr], [tuple(own)], tuple(range(len(shape))), shape)
