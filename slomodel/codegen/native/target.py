"""Target `c`: source in C, compiled by the system's compiler when it is first called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slomodel.codegen.entry import Entry
from slomodel.codegen.layout import Layout
from slomodel.codegen.native.binding import bound
from slomodel.codegen.native.source import joined, unit
from slomodel.codegen.target import Maker
from slomodel.errors import TargetLimit


class LongText(TargetLimit):
    """The C text of an entry is longer than was allowed."""


@dataclass(frozen=True, slots=True)
class NativeTarget:
    """One C function per entry. Needs a C compiler; raises TargetLimit without one.

    `longest` limits the characters of a text that is compiled; None allows any length.
    """

    name: str = "c"
    longest: int | None = None
    on_device: bool = False
    instead: str = ""

    def require(self) -> None:
        """Nothing: what is missing shows when the first entry is compiled."""

    def source(
        self, name: str, entries: Sequence[Entry], layout: Layout, numbers: Mapping[str, int]
    ) -> str:
        """One C file with the functions of all entries."""
        return joined(name, [unit(entry, layout, numbers) for entry in entries], layout, numbers)

    def maker(self, name: str, entry: Entry, layout: Layout, numbers: Mapping[str, int]) -> Maker:
        """The function of one entry for any data of these sizes."""
        made = unit(entry, layout, numbers)
        text = joined(name, [made], layout, numbers)
        if self.longest is not None and len(text) > self.longest:
            raise LongText(f"the C text of {entry.name} has {len(text)} characters")
        return bound(text, made, entry, layout, numbers)


NATIVE = NativeTarget()
