"""Targets whose source is a Python module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from slomodel.codegen.entry import Entry
from slomodel.codegen.layout import Layout
from slomodel.codegen.program import Step
from slomodel.codegen.python.functions import plan, plan_preparation
from slomodel.codegen.python.module import module_text
from slomodel.codegen.python.numpy_target import NUMPY
from slomodel.codegen.python.statements import Printer
from slomodel.codegen.runtime import load
from slomodel.codegen.target import Maker, Vector
from slomodel.functions.cost import NUMPY_CALL, QUICK, cost_of, numexpr_time, numpy_time
from slomodel.ir.dims import number_of_elements
from slomodel.ir.expr import Map

_SCALAR = 100.0
"""Overhead of one operation on scalars in nanoseconds: a NumPy scalar is constructed."""


@dataclass(frozen=True, slots=True)
class PythonTarget:
    """The target that prints with `printer`."""

    printer: Printer
    on_device: bool = False
    instead: str = ""

    @property
    def name(self) -> str:
        return self.printer.name

    def require(self) -> None:
        """Do nothing: NumPy and numexpr are always available."""

    def source(
        self, name: str, entries: Sequence[Entry], layout: Layout, numbers: Mapping[str, int]
    ) -> str:
        """A self-contained module that defines `make_NAME(data)` for each entry."""
        planned = [plan(entry, layout, numbers, self.printer) for entry in entries]
        once = plan_preparation(layout, numbers)
        return module_text(name, planned, layout, numbers, self.printer, once)

    def seconds(self, entry: Entry, layout: Layout, numbers: Mapping[str, int]) -> float:
        """Estimated seconds of one call of an entry, to a factor of about two."""
        steps = plan(entry, layout, numbers, self.printer).program.steps
        return 1e-9 * sum(_nanoseconds(step, numbers) for step in steps if step.stage != "data")

    def maker(self, name: str, entry: Entry, layout: Layout, numbers: Mapping[str, int]) -> Maker:
        """`make_NAME` of the module of one entry."""
        text = self.source(name, [entry], layout, numbers)
        space = load(text, f"{name} {entry.name} {self.name}")
        result: Maker = space[f"make_{entry.name}"]  # type: ignore[assignment]
        if entry.name != "value_and_gradient":
            return result
        n = sum(number_of_elements(node.shape, numbers) for node in layout.variables)

        def make(data: Mapping[str, Vector]) -> Callable[..., float]:
            run = result(data)

            def fresh(point: Vector) -> tuple[float, Vector]:
                out = np.empty(n, layout.precision)
                return run(point, out), out

            run.fresh = fresh  # type: ignore[attr-defined]
            return run

        return make


def preparation(
    name: str, layout: Layout, numbers: Mapping[str, int]
) -> Callable[[Mapping[str, Vector]], Mapping[str, Vector]]:
    """The function from data to the arrays prepared from them, by name; for every target."""
    text = PythonTarget(NUMPY).source(name, [], layout, numbers)
    result: Callable[[Mapping[str, Vector]], Mapping[str, Vector]]
    result = load(text, f"{name} data")["prepare"]  # type: ignore[assignment]
    return result


def _nanoseconds(step: Step, numbers: Mapping[str, int]) -> float:
    if step.groups:
        inside = (one for group in step.groups for one in group.program.steps)
        return step.node.shape[0].size(numbers) * sum(_nanoseconds(one, numbers) for one in inside)
    functions = [node.function for node in step.fused if isinstance(node, Map)]
    if not step.node.rank:
        return _SCALAR * max(1, len(functions)) + sum(
            cost_of(function).numpy for function in functions
        )
    elements = number_of_elements(step.node.shape, numbers)
    if len(functions) > 1:
        return numexpr_time(functions, elements)
    return numpy_time(functions, elements) if functions else NUMPY_CALL + QUICK * elements
