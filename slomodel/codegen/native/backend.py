"""Target `c`: source in C, compiled by the system's compiler when it is first called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slomodel.codegen.entry import Entry
from slomodel.codegen.layout import Layout
from slomodel.codegen.native.binding import bound
from slomodel.codegen.native.unit import joined, unit
from slomodel.codegen.target import Maker


@dataclass(frozen=True, slots=True)
class NativeTarget:
    """One C function an entry. Needs a C compiler; TargetLimit says so where there is none."""

    name: str = "c"

    def source(
        self, name: str, entries: Sequence[Entry], layout: Layout, numbers: Mapping[str, int]
    ) -> str:
        """One C file with the functions of all entries."""
        return joined(name, [unit(entry, layout, numbers) for entry in entries], layout, numbers)

    def maker(self, name: str, entry: Entry, layout: Layout, numbers: Mapping[str, int]) -> Maker:
        """The function of one entry for any data of these sizes."""
        made = unit(entry, layout, numbers)
        return bound(joined(name, [made], layout, numbers), made, entry, layout, numbers)


NATIVE = NativeTarget()
