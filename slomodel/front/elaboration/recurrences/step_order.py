"""Along which index, and in which direction, a recurrence runs: read off the text of its reads.

A definition runs along its first index that is shifted wherever it reads itself: along t in
`h[t-1, i]` and in `h[i, t-1]`, and downwards if shifted upwards, as in `h[t+1]`. If there is none,
because `D[i-1, j]` shifts one index and `D[i, j-1]` another, it runs row by row along the first
one, and each row runs along the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from slomodel.front.text.syntax import (
    ChainTerm,
    Compare,
    Expr,
    FunctionCall,
    Index,
    Item,
    Let,
    Name,
    Negate,
    Node,
    NumberLiteral,
    Slice,
    SumChain,
)
from slomodel.front.text.traversal import nodes, replaced

Shift = Literal["plain", "earlier", "later", "fixed"]
"""How an item reads along an index: at it, before it, behind it, or independently of it."""


@dataclass(frozen=True, slots=True)
class StepOrder:
    """The recurrence runs along the index at place `axis`, `backwards` from its last value on.

    `inner` is the place of the index along which each row of a table runs, itself `inner_backwards`
    or not; None if it has no such rows.
    """

    axis: int = 0
    backwards: bool = False
    inner: int | None = None
    inner_backwards: bool = False

    @property
    def of_rows(self) -> StepOrder:
        """The order of the steps inside a row, whose indices lack the one at `axis`."""
        assert self.inner is not None
        return StepOrder(self.inner - int(self.inner > self.axis), self.inner_backwards)


def step_orders(group: Sequence[Let]) -> list[StepOrder]:
    """The order of the steps of each definition of a recurrence."""
    names = [statement.name.text for statement in group]
    reads = {
        name: list(_reads(statement, names)) for name, statement in zip(names, group, strict=True)
    }
    has_first = any(statement.first is not None for statement in group)
    table = _axes_of_tables(group, reads)
    axes = _axes(group, reads) if table is None else dict.fromkeys(names, table[0])
    backwards = not has_first and _is_backwards(group, reads, axes)
    if table is None:
        return [StepOrder(axes[name], backwards) for name in names]
    outer, inner = table
    rows = dict.fromkeys(names, inner)
    order = StepOrder(outer, backwards, inner, _is_backwards(group, reads, rows, outer))
    return [order] * len(names)


def read_ahead(statement: Let, orders: Mapping[str, StepOrder]) -> Index | None:
    """A read of a state at a later step, `h[t+1]` with a number, in a definition with `first`.

    `orders` are those of the definitions of the recurrence by name.
    """
    index = _own(statement)[orders[statement.name.text].axis]
    for node in nodes(statement.expr):
        if statement.first is None or not isinstance(node, Index) or _text(node.base) not in orders:
            continue
        axis = orders[_text(node.base)].axis
        item = node.items[axis] if axis < len(node.items) else None
        if isinstance(item, SumChain) and _shift(item, index) == "later":
            parts = (item.first, *(term.operand for term in item.rest))
            if all(isinstance(part, NumberLiteral) or is_name(part, index) for part in parts):
                return node
    return None


def with_own_indices(statement: Let, group: Sequence[Let]) -> Let:
    """The definition with reads relative to its index where a condition says what the index is.

    In `where(i == 0, D[0, j-1], …)` the read is `D[i, j-1]`; in `where(t == 1, h[0], …)`, `h[t-1]`.
    """
    own = {one.name.text: _own(one) for one in group}
    new: dict[Node, Expr] = {}
    for node in nodes(statement.expr):
        for index, place, branch in _equal_in_branch(node, _own(statement)):
            for read in nodes(branch):
                if not isinstance(read, Index) or _text(read.base) not in own:
                    continue
                names = own[_text(read.base)]
                if index.text not in names or len(names) != len(read.items):
                    continue
                pairs = zip(read.items, names, strict=True)
                items = tuple(
                    _relative(item, index, place) if name == index.text else item
                    for item, name in pairs
                )
                if items != read.items:
                    new[read] = replace(read, items=items)
    return replace(statement, expr=replaced(statement.expr, new)) if new else statement


def _equal_in_branch(node: Node, own: Sequence[str]) -> Iterator[tuple[Name, Expr, Node]]:
    """Of a `where` on `index == place`: the index, the place, and the branch."""
    if not isinstance(node, FunctionCall) or node.function.text != "where" or len(node.args) != 3:
        return
    test = node.args[0]
    if isinstance(test, Compare) and test.op in ("==", "!="):
        for index, place in ((test.left, test.right), (test.right, test.left)):
            if isinstance(index, Name) and index.text in own:
                yield index, place, node.args[1 if test.op == "==" else 2]


def _relative(item: Item, index: Name, place: Expr) -> Item:
    """An item of a read as the index, or the index less a number, where the index is `place`."""
    if "".join(item.span.text.split()) == "".join(place.span.text.split()):
        return index
    if not isinstance(item, NumberLiteral) or not isinstance(place, NumberLiteral):
        return item
    earlier = replace(item, value=abs(place.value - item.value))
    op = "-" if item.value < place.value else "+"
    return SumChain(index, (ChainTerm(op, earlier, item.span),), item.span)


_Reads = dict[str, list[tuple[str, tuple[Item, ...]]]]
"""For each definition, the states that it reads and the indices at which it reads them."""


def _reads(statement: Let, names: Sequence[str]) -> Iterator[tuple[str, tuple[Item, ...]]]:
    for node in nodes(statement.expr):
        if isinstance(node, Index) and _text(node.base) in names:
            yield _text(node.base), node.items


def _own(statement: Let) -> list[str]:
    return [one.name.text for one in statement.indices or ()]


def _shift(item: Item, index: str) -> Shift:
    """How an item reads along an index, judged by the signs of what is added to the index."""
    if isinstance(item, Slice):
        ends = [_shift(end, index) for end in (item.lo, item.hi) if end is not None]
        return next((one for one in ends if one in ("earlier", "later")), "fixed")
    if isinstance(item, Name):
        return "plain" if item.text == index else "fixed"
    if not isinstance(item, SumChain):
        return "fixed"
    terms = [("+", item.first), *((term.op, term.operand) for term in item.rest)]
    others = [(op, node) for op, node in terms if not is_name(node, index)]
    if len(others) != len(terms) - 1 or ("+", index) not in [(o, _text(n)) for o, n in terms]:
        return "fixed"
    is_earlier = any((op == "-") != isinstance(node, Negate) for op, node in others)
    return "earlier" if is_earlier else "later"


def is_name(node: Node, text: str) -> bool:
    """Whether a node is that name."""
    return isinstance(node, Name) and node.text == text


def _text(node: Node) -> str:
    return node.text if isinstance(node, Name) else ""


def _shifts(items: Sequence[tuple[Item, ...]], axis: int, index: str) -> list[Shift]:
    return [_shift(item[axis], index) for item in items if axis < len(item)]


def _runs_along(shifts: Sequence[Shift]) -> bool:
    """Whether no read is at the index itself, and one is shifted."""
    return "plain" not in shifts and any(shift != "fixed" for shift in shifts)


def _axes(group: Sequence[Let], reads: _Reads) -> dict[str, int]:
    """The place of the index along which each definition runs.

    That of a definition which does not read itself has the name of such an index in another one, or
    is shifted in what it reads of others; otherwise it is the first.
    """
    result: dict[str, int] = {}
    for statement in group:
        name = statement.name.text
        itself = [items for other, items in reads[name] if other == name]
        for axis, index in enumerate(_own(statement)):
            if _runs_along(_shifts(itself, axis, index)):
                result[name] = axis
                break
    _name_alike(group, result)
    for statement in group:
        name = statement.name.text
        if any(other == name for other, _ in reads[name]):
            continue
        elsewhere = [item for _, items in reads[name] for item in items]
        for axis, index in enumerate(_own(statement)):
            if any(_shift(item, index) in ("earlier", "later") for item in elsewhere):
                result.setdefault(name, axis)
                break
    _name_alike(group, result)
    for statement in group:
        result.setdefault(statement.name.text, 0)
    return result


def _name_alike(group: Sequence[Let], axes: dict[str, int]) -> None:
    """Let other definitions run along an index of the same name as those that are known."""
    steps = {_own(one)[axes[one.name.text]] for one in group if one.name.text in axes}
    for statement in group:
        alike = [axis for axis, index in enumerate(_own(statement)) if index in steps]
        if alike:
            axes.setdefault(statement.name.text, alike[0])


def _axes_of_tables(group: Sequence[Let], reads: _Reads) -> tuple[int, int] | None:
    """For recurrences in two indices, the places of the index of rows and of that within a row.

    All definitions have the same indices, and no index is shifted in every read. Rows follow the
    first index that is shifted; within a row, steps follow the index that reads of this row shift.
    """
    own = _own(group[0])
    if len(own) < 2 or any(_own(statement) != own for statement in group):
        return None
    every = range(len(own))
    common, shifted, inner = set(every), set[int](), set[int]()
    itself = {
        name: [items for other, items in read if other == name] for name, read in reads.items()
    }
    for every_items in itself.values():
        shifts = [_shifts(every_items, k, own[k]) for k in every]
        if every_items:
            common &= {k for k in every if _runs_along(shifts[k])}
        shifted |= {k for k in every if {"earlier", "later"}.intersection(shifts[k])}
    if common or not shifted:
        return None
    outer = min(shifted)
    for every_items in itself.values():
        row = [items for items in every_items if _is_in_row(items, outer, own)]
        runs = [k for k in every if k != outer and _runs_along(_shifts(row, k, own[k]))]
        inner.update(runs[:1])
    return (outer, inner.pop()) if len(inner) == 1 else None


def _is_in_row(items: Sequence[Item], outer: int, own: Sequence[str]) -> bool:
    return outer < len(items) and _shift(items[outer], own[outer]) == "plain"


def _is_backwards(
    group: Sequence[Let], reads: _Reads, axes: Mapping[str, int], outer: int | None = None
) -> bool:
    """Whether states are read at later values of an index, and never at earlier ones.

    Only reads in the same row count, if `outer` is the place of the index of the rows.
    """
    result: set[Shift] = set()
    for statement in group:
        own = _own(statement)
        index = own[axes[statement.name.text]] if own else ""
        for other, items in reads[statement.name.text]:
            if axes[other] < len(items) and (outer is None or _is_in_row(items, outer, own)):
                result.add(_shift(items[axes[other]], index))
    return "later" in result and "earlier" not in result
