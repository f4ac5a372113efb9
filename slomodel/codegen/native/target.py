"""Target `c`: source in C, compiled by the system's compiler when it is first called.

A target that prints the loops of C in another way is a `NativeTarget` with a printer of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from slomodel.codegen.entry import Entry
from slomodel.codegen.layout import Layout
from slomodel.codegen.native.binding import bound
from slomodel.codegen.native.compiler import begin
from slomodel.codegen.native.source import Unit, joined, unit
from slomodel.codegen.native.time import Printer
from slomodel.codegen.target import Maker


@dataclass(frozen=True, slots=True)
class Printed:
    """One entry as C text, not yet compiled."""

    text: str
    unit: Unit
    entry: Entry
    layout: Layout
    numbers: Mapping[str, int]

    def maker(self) -> Maker:
        """Compile the text; the result constructs the entry's function for data of these sizes."""
        return bound(self.text, self.unit, self.entry, self.layout, self.numbers)


@dataclass(frozen=True, slots=True)
class NativeTarget:
    """One C function per entry. Needs a C compiler; raises TargetLimit without one.

    `printer` prints each block of the loop form; None: blocks of vectors, and threads.
    """

    name: str = "c"
    on_device: bool = False
    instead: str = ""
    printer: Printer | None = None

    def require(self) -> None:
        """Do nothing: a missing compiler is reported when the first entry is compiled."""

    def source(
        self, name: str, entries: Sequence[Entry], layout: Layout, numbers: Mapping[str, int]
    ) -> str:
        """One C file with the functions of all entries."""
        units = [unit(entry, layout, numbers, self.printer) for entry in entries]
        return joined(name, units, layout, numbers)

    def printed(
        self, name: str, entry: Entry, layout: Layout, numbers: Mapping[str, int]
    ) -> Printed:
        """The text of one entry."""
        result = unit(entry, layout, numbers, self.printer)
        return Printed(joined(name, [result], layout, numbers), result, entry, layout, numbers)

    def begin(
        self, name: str, entry: Entry, layout: Layout, numbers: Mapping[str, int]
    ) -> Callable[[], Maker]:
        printed = self.printed(name, entry, layout, numbers)
        begin(printed.text, layout.precision == "float32")
        return printed.maker

    def maker(self, name: str, entry: Entry, layout: Layout, numbers: Mapping[str, int]) -> Maker:
        """The function of one entry for any data of these sizes."""
        return self.printed(name, entry, layout, numbers).maker()


NATIVE = NativeTarget()
