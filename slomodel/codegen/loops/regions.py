"""The loops of a program while nodes are placed in them, and what nodes read."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, field

from slomodel.codegen.program import Stage
from slomodel.ir.expr import Axes, Const, Einsum, Expr, Input, Map


@dataclass(frozen=True, slots=True)
class Read:
    """An operand and, for each of its axes, the axis of the loop that it runs along."""

    node: Expr
    axes: Axes

    def is_in_place(self, rank: int) -> bool:
        return self.axes == tuple(range(rank))


@dataclass(slots=True, eq=False)
class Region:
    """A loop over `shape` that computes `nodes` in order.

    `alone`: it computes one node, with code of its own. `kept` are the axes that its sums do not
    run along, where that matters; None without sums.
    """

    stage: Stage
    shape: tuple[int, ...]
    alone: bool = False
    nodes: list[Expr] = field(default_factory=list)
    kept: Axes | None = None


class OpenRegions:
    """The loops that further nodes may join, in order, by shape and by the axes of their sums."""

    def __init__(self) -> None:
        self._places: dict[tuple[int, ...], dict[Axes | None, list[int]]] = {}

    def first(self, shape: tuple[int, ...], kept: Axes | None, earliest: int) -> int | None:
        """The first loop from `earliest` on with sums, if any, along all axes but `kept`."""
        result = None
        for own, places in self._places.get(shape, {}).items():
            if kept is None or own is None or own == kept:
                k = bisect_left(places, earliest)
                if k < len(places) and (result is None or places[k] < result):
                    result = places[k]
        return result

    def add(self, shape: tuple[int, ...], kept: Axes | None, place: int) -> None:
        insort(self._places.setdefault(shape, {}).setdefault(kept, []), place)

    def remove(self, shape: tuple[int, ...], kept: Axes | None, place: int) -> None:
        places = self._places[shape][kept]
        del places[bisect_left(places, place)]


def loop_labels(node: Einsum) -> Axes:
    """The labels of a sum or a scalar product in the order of the operand with all of them."""
    return max(node.inputs, key=len)


def scalars_first(order: Sequence[Expr]) -> list[Expr]:
    """The nodes in order, but those computed from scalars alone before all others.

    A loop that reads a scalar comes after its computation; it can then be the first of its shape.
    """
    scalars: dict[Expr, None] = {}
    for node in order:
        is_scalar = isinstance(node, (Input, Const)) or (isinstance(node, Map) and not node.rank)
        if is_scalar and all(operand in scalars for operand in node.operands):
            scalars[node] = None
    return [*scalars, *(node for node in order if node not in scalars)]
