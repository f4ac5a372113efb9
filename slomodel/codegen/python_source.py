"""Targets whose source is a Python module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slomodel.codegen.entry import Entry, plan
from slomodel.codegen.layout import Layout
from slomodel.codegen.load import load
from slomodel.codegen.module import module_text
from slomodel.codegen.printer import Printer
from slomodel.codegen.target import Maker


@dataclass(frozen=True, slots=True)
class PythonTarget:
    """The target that prints with `printer`."""

    printer: Printer

    @property
    def name(self) -> str:
        return self.printer.name

    def source(
        self, name: str, entries: Sequence[Entry], layout: Layout, numbers: Mapping[str, int]
    ) -> str:
        """A module of its own, which defines `make_NAME(data)` for each entry."""
        planned = [plan(entry, layout, numbers, self.printer) for entry in entries]
        return module_text(name, planned, layout, numbers, self.printer)

    def maker(self, name: str, entry: Entry, layout: Layout, numbers: Mapping[str, int]) -> Maker:
        """`make_NAME` of the module of one entry."""
        text = self.source(name, [entry], layout, numbers)
        space = load(text, f"{name} {entry.name} {self.name}")
        made: Maker = space[f"make_{entry.name}"]  # type: ignore[assignment]
        return made
