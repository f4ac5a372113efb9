"""Pointers: the places in memory that a loop reads and writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from slomodel.codegen.loops.index_pieces import IndexPiece
from slomodel.codegen.loops.names import Names
from slomodel.codegen.loops.nest import (
    Apply,
    Element,
    IndexRead,
    Nest,
    Position,
    places,
)
from slomodel.codegen.loops.runs import Runs


@dataclass(slots=True)
class Pointer:
    """A named place in memory; `steps` are its strides along the axes of the loop as printed.

    It points to numbers or, if `integers`, to index data. `lookups` are the pointers to index data
    whose elements, times a stride, are added to the position. In a run of the index data, these are
    `starts`: only their first elements are read.
    """

    name: str
    base: str
    position: Position
    reads: bool = False
    writes: bool = False
    steps: tuple[int, ...] = ()
    integers: bool = False
    lookups: tuple[tuple[Pointer, int], ...] = ()
    starts: tuple[tuple[Pointer, int], ...] = ()
    run: Runs | None = None
    pieces: tuple[IndexPiece, ...] = ()

    @property
    def along(self) -> int:
        """The stride along the last axis, apart from that of lookups in a run."""
        moved = sum(stride * (table.run.step if table.run else 0) for table, stride in self.starts)
        return self.steps[-1] - moved if self.steps else 0

    def in_runs(self) -> None:
        """Replace lookups along the only axis of a loop by their steps within a run."""
        (own,) = self.steps
        moves = [stride * (table.run.step if table.run else 0) for table, stride in self.lookups]
        self.starts, self.lookups, self.steps = self.lookups, (), (own + sum(moves),)


class Pointers:
    """The pointers of a nest: one for all elements with the same base and position."""

    def __init__(self, nest: Nest, names: Names) -> None:
        self._names = names
        self._rank = len(nest.axes)
        self._found: dict[tuple[object, ...], Pointer] = {}
        for statement in nest.statements:
            every = places(statement)
            writes = not isinstance(statement, Apply) and isinstance(statement.target, Element)
            for element in every[:-1] if writes else every:
                self.of(element).reads = True
            if writes:
                self.of(every[-1]).writes = True

    def __iter__(self) -> Iterator[Pointer]:
        return iter(self._found.values())

    def of(self, element: Element) -> Pointer:
        """The pointer to an element."""
        base, position = self._names.base(element.array), element.position
        lookups = tuple((self._table(lookup), lookup.stride) for lookup in position.lookups)
        return self._pointer(base, position, lookups)

    def _table(self, one: IndexRead) -> Pointer:
        pointer = self._pointer(self._names.integers(one.integers), one.position, ())
        pointer.reads = pointer.integers = True
        pointer.run, pointer.pieces = one.run, one.pieces
        return pointer

    def _pointer(
        self, base: str, position: Position, lookups: tuple[tuple[Pointer, int], ...]
    ) -> Pointer:
        strides = (*position.strides, *(0,) * self._rank)[: self._rank]
        tables = tuple((table.name, stride) for table, stride in lookups)
        key = (base, position.offset, strides, tables)
        if key not in self._found:
            place, name = Position(position.offset, strides), f"p{len(self._found)}"
            self._found[key] = Pointer(name, base, place, lookups=lookups)
        return self._found[key]
