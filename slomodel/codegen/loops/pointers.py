"""Pointers: the places in memory that a loop reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from slomodel.codegen.loops.nest import Apply, Element, Nest, Output, Position, places
from slomodel.ir.expr import Expr


@dataclass(slots=True)
class Pointer:
    """A named place in memory; `steps` are its strides along the axes of the loop as printed."""

    name: str
    base: str
    position: Position
    reads: bool = False
    writes: bool = False
    steps: tuple[int, ...] = ()


class Pointers:
    """The pointers of a nest: one for all elements with the same base and position."""

    def __init__(self, nest: Nest, base: Callable[[Expr | Output], str]) -> None:
        self._base = base
        self._rank = len(nest.axes)
        self._found: dict[tuple[str, int, tuple[int, ...]], Pointer] = {}
        for one in nest.statements:
            every = places(one)
            writes = not isinstance(one, Apply) and isinstance(one.target, Element)
            for element in every[:-1] if writes else every:
                self.of(element).reads = True
            if writes:
                self.of(every[-1]).writes = True

    def __iter__(self) -> Iterator[Pointer]:
        return iter(self._found.values())

    def of(self, element: Element) -> Pointer:
        """The pointer to an element."""
        base, offset = self._base(element.array), element.position.offset
        strides = (*element.position.strides, *(0,) * self._rank)[: self._rank]
        key = (base, offset, strides)
        if key not in self._found:
            position = Position(offset, strides)
            self._found[key] = Pointer(f"p{len(self._found)}", base, position)
        return self._found[key]
