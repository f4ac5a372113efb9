"""What is made of the data alone, once: its program, and the function that does it."""

from __future__ import annotations

from slomodel.codegen.entry import indented, rule
from slomodel.codegen.forms import Form
from slomodel.codegen.layout import Layout
from slomodel.codegen.lower import Sizes as Numbers
from slomodel.codegen.lower import lower
from slomodel.codegen.numpy_target import NUMPY
from slomodel.codegen.program import Program
from slomodel.codegen.schedule import schedule
from slomodel.codegen.scope import Scope
from slomodel.codegen.steps import TRIANGLE_SOURCE
from slomodel.ir.walk import inputs


def plan_preparation(layout: Layout, numbers: Numbers) -> Program | None:
    """The program for the prepared data of a layout: NumPy's for every target. None without any."""
    if not layout.prepared:
        return None
    roots = lower(tuple(layout.prepared.values()), numbers, NUMPY.spells)
    # As arguments, because what stands on them shares its working arrays.
    return schedule(roots, inputs(*roots), prints=NUMPY.prints, numbers=numbers)


def preparation_lines(program: Program, layout: Layout) -> list[str]:
    """`prepare(data)`, which gives the prepared data by name."""
    names, reads = layout.arrays(inputs(*program.roots))
    scope = Scope(program, layout, names)
    steps = [line for step in program.steps for line in rule(step, NUMPY)(step, scope)]
    made = [
        f"{node.name!r}: np.array({scope.ref(root)}, order='C'),"
        for node, root in zip(layout.prepared, program.roots, strict=True)
    ]
    body = [*reads, *scope.slots(), *scope.prelude, *steps, "return {", *indented(made, 1), "}"]
    factors = any(step.form is Form.TRIANGLE for step in program.steps)
    return [
        *([TRIANGLE_SOURCE.strip("\n"), "", ""] if factors else []),
        '@np.errstate(all="ignore")',
        "def prepare(data):",
        '    """What is made of the data once: of wide data the R of a QR factorisation."""',
        *indented(body, 1),
    ]
