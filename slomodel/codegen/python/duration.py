"""How long an evaluation of generated Python takes, estimated from its program."""

from __future__ import annotations

from math import prod

from slomodel.codegen.entry import Entry
from slomodel.codegen.layout import Layout
from slomodel.codegen.program import Step
from slomodel.codegen.python.functions import plan
from slomodel.codegen.python.statements import Printer
from slomodel.functions.cost import NUMPY_CALL, QUICK, cost_of, numexpr_time, numpy_time
from slomodel.functions.cost import Sizes as Numbers
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Map

SCALAR = 100.0
"""Nanoseconds of one operation on scalars beside the function itself: a NumPy scalar is made."""


def python_seconds(entry: Entry, layout: Layout, numbers: Numbers, target: Printer) -> float:
    """Seconds of one call of an entry, to a factor of about two."""
    steps = plan(entry, layout, numbers, target).program.steps
    return 1e-9 * sum(_nanoseconds(step, numbers) for step in steps if step.stage != "data")


def _nanoseconds(step: Step, numbers: Numbers) -> float:
    functions = [node.function for node in step.fused if isinstance(node, Map)]
    if not step.node.rank:
        return SCALAR * max(1, len(functions)) + sum(cost_of(one).numpy for one in functions)
    elements = prod(concrete(step.node.shape, numbers))
    if len(functions) > 1:
        return numexpr_time(functions, elements)
    return numpy_time(functions, elements) if functions else NUMPY_CALL + QUICK * elements
