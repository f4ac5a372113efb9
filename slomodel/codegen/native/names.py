"""Names of memory, scalars and numbers in the C text; all of them are chosen here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from slomodel.codegen.layout import Layout
from slomodel.codegen.loops.access import Numbers
from slomodel.codegen.loops.names import at, constant, input_texts, is_stored, starts
from slomodel.codegen.loops.nest import Integers, Output
from slomodel.codegen.loops.workspace import Memory
from slomodel.ir.expr import Expr, Input


@final
class EntryNames:
    """The names in the functions of one entry."""

    def __init__(
        self, memory: Memory, layout: Layout, directions: Sequence[Input], numbers: Numbers
    ) -> None:
        self._memory = memory
        self._numbers = numbers
        self._inputs = input_texts(layout, directions, numbers)
        self._begin = starts(layout.variables, numbers)
        self._scalars: dict[tuple[int, Expr], str] = {}

    @property
    def variables(self) -> list[str]:
        """The scalars that are variables of the function."""
        return list(self._scalars.values())

    def base(self, array: Expr | Output) -> str:
        """The address of the first element of a stored node, an input or a slice of the result."""
        if isinstance(array, Output):
            return at("g", self._begin[array.k])
        if isinstance(array, Input):
            return self._inputs[array]
        place = self._memory.places[array]
        if place.output is not None:
            return at("g", self._begin[place.output])
        return at("w", place.start)

    def number(self, node: Expr) -> str:
        """The value of a node of rank 0 that is not a view."""
        known = constant(node, self._numbers)
        if known is not None:
            return known
        if is_stored(node, self._memory):
            return f"({self.base(node)})[0]"
        return self.variable(node)

    def variable(self, node: Expr, depth: int = 0) -> str:
        """The variable that holds a number, inside `depth` loops over time.

        The bodies of a loop and of one inside it may have equal nodes, of different values.
        """
        return self._scalars.setdefault((depth, node), f"s{len(self._scalars)}")

    def integers(self, integers: Integers) -> str:
        """The address of index data, which are user-supplied whole numbers."""
        assert isinstance(integers, Input), "index arrays of a loop in order are in the text"
        return self._inputs[integers]
