"""The source of one generated function: what it prepares once, and what every call does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from slomodel.codegen.forms import Form
from slomodel.codegen.layout import Layout
from slomodel.codegen.lower import Sizes as Numbers
from slomodel.codegen.lower import lower
from slomodel.codegen.printer import Printer
from slomodel.codegen.program import Program, Step
from slomodel.codegen.schedule import schedule
from slomodel.codegen.scope import Scope
from slomodel.codegen.steps import LINES, slice_lines
from slomodel.ir.expr import Expr, Input
from slomodel.ir.function import ScalarFunction
from slomodel.ir.walk import inputs

EntryName = Literal["value", "value_and_gradient", "hvp", "gauss_newton"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A function to generate: `scalar` is returned, `arrays` go into `out`, one a variable.

    `directions` are the inputs that stand for a second vector argument, one a variable.
    """

    name: EntryName
    scalar: Expr | None
    arrays: tuple[Expr, ...] = ()
    directions: tuple[Input, ...] = ()

    @property
    def roots(self) -> tuple[Expr, ...]:
        return (*(() if self.scalar is None else (self.scalar,)), *self.arrays)


@dataclass(frozen=True, slots=True)
class Planned:
    """An entry with its program for some sizes and one target."""

    entry: Entry
    program: Program
    target: Printer


def plan(entry: Entry, layout: Layout, numbers: Numbers, target: Printer) -> Planned:
    """Lower and schedule an entry. `numbers` are the sizes of the named dims."""
    program = program_of(entry, layout, numbers, target.spells, target.prints)
    return Planned(entry, program, target)


def program_of(
    entry: Entry,
    layout: Layout,
    numbers: Numbers,
    spells: Callable[[ScalarFunction], bool],
    prints: Callable[[ScalarFunction], bool] | None,
) -> Program:
    """An entry lowered and scheduled for a target that spells and fuses such functions.

    Where there is a direction the variables are the centre. The roots end with the arrays.
    """
    roots = lower(entry.roots, numbers, spells)
    return schedule(
        roots,
        (*layout.variables, *entry.directions),
        prints=prints,
        numbers=numbers,
        outputs=roots[len(roots) - len(entry.arrays) :],
        centre=layout.variables if entry.directions else (),
    )


def entry_lines(planned: Planned, layout: Layout) -> list[str]:
    """`make_NAME(data)`, which prepares arrays and kernels and returns the function NAME."""
    entry, program = planned.entry, planned.program
    names, prepared, reads = _inputs(entry, program, layout)
    scope = Scope(program, layout, names)
    once = _stage_lines(planned, scope, "data")
    kept, centre = _centre_lines(planned, scope)
    calls = _stage_lines(planned, scope, "call")
    finish = _finish(entry, program, scope)
    slots = scope.slots()
    vectors = ["point", *(["direction"] if entry.directions else [])]
    arguments = [*vectors, *(["out"] if entry.arrays else [])]
    filled = [f"np.copyto({name}, {vector})" for name, vector in zip("xv", vectors, strict=False)]
    kept_here = [f"nonlocal {', '.join(kept)}"] if kept else []
    body = [*kept_here, *filled, *reads, *centre, *calls, *finish]
    return [
        '@np.errstate(all="ignore")',
        f"def make_{entry.name}(data):",
        f'    """The function {entry.name}({", ".join(arguments)}) for these data."""',
        "    data = _arrays(data)",
        *indented(
            [
                *prepared,
                *_titled("Working arrays, and views of arrays that calls use.", slots),
                *scope.prelude,
                *_titled("What depends on the data alone.", once),
                *(f"{one} = None" for one in kept),
            ],
            1,
        ),
        "",
        '    @np.errstate(all="ignore")',
        f"    def {entry.name}({', '.join(arguments)}):",
        *indented(body, 2),
        "",
        f"    return {entry.name}",
    ]


def _inputs(
    entry: Entry, program: Program, layout: Layout
) -> tuple[dict[Input, str], list[str], list[str]]:
    """Names of all inputs, the lines that prepare them, and those that read scalars each call."""
    used = inputs(*program.roots)
    names, lines = layout.arrays(used)
    point, views, reads = layout.pieces("x")
    lines += ["x = np.empty(n, real)", *_only(views, point, used)]
    reads = _only(reads, point, used)
    names.update(point)
    if entry.directions:
        moved, views, more = layout.pieces("v")
        by_direction = dict(zip(entry.directions, moved.values(), strict=True))
        names.update(by_direction)
        lines += ["v = np.empty(n, real)", *_only(views, by_direction, used)]
        reads += _only(more, by_direction, used)
    if entry.arrays:
        _, views, _ = layout.pieces("g")
        lines += ["g = np.empty(n, real)", *views]
    return names, lines, reads


def _only(lines: list[str], names: dict[Input, str], used: list[Input]) -> list[str]:
    wanted = {name for node, name in names.items() if node in used}
    return [line for line in lines if line.split(" ", 1)[0] in wanted]


def _stage_lines(planned: Planned, scope: Scope, stage: str) -> list[str]:
    lines: list[str] = []
    for step in planned.program.steps:
        if step.stage == stage:
            lines += rule(step, planned.target)(step, scope)
    return lines


def _centre_lines(planned: Planned, scope: Scope) -> tuple[list[str], list[str]]:
    """Names that are kept between calls, and the lines that a call at another point begins with.

    The point is compared by its bits. While the lines run no point is known: they may be broken
    off in between.
    """
    lines = _stage_lines(planned, scope, "centre")
    if not lines:
        return [], []
    steps = [step for step in planned.program.steps if step.stage == "centre"]
    scalars = dict.fromkeys(scope.ref(step.node) for step in steps if not step.node.rank)
    fresh = ["# A new point: what depends on it alone.", "seen = None", *lines, "seen = now"]
    return ["seen", *scalars], ["now = x.tobytes()", "if now != seen:", *indented(fresh, 1)]


def rule(step: Step, target: Printer) -> Callable[[Step, Scope], list[str]]:
    """The statements of a step for a target."""
    if step.form is Form.PUT and step.fused:
        return lambda own, scope: _put_lines(own, scope, target)
    return target.elementwise if step.form is Form.ELEMENTWISE else LINES[step.form]


def _put_lines(step: Step, scope: Scope, target: Printer) -> list[str]:
    """What is put into a slice, computed right there."""
    operand = step.fused[-1]
    lines, part = slice_lines(step.node, scope)
    scope.put(operand, part)
    return [*lines, *target.elementwise(replace(step, node=operand), scope)]


def _finish(entry: Entry, program: Program, scope: Scope) -> list[str]:
    """Copy what was not computed in place, hand over the arrays, return the scalar."""
    arrays = program.roots[len(program.roots) - len(entry.arrays) :]
    lines = []
    for k, root in enumerate(arrays):
        if not root.rank:
            lines.append(f"g[o{k}] = {scope.ref(root)}")
        elif program.outputs.get(root) != k:
            lines.append(f"np.copyto(g{k}, {scope.ref(root)})")
    if arrays:
        lines.append("np.copyto(out, g)")
    if entry.scalar is not None:
        lines.append(f"return float({scope.ref(program.roots[0])})")
    return lines


def _titled(title: str, lines: list[str]) -> list[str]:
    return [f"# {title}", *lines] if lines else []


def indented(lines: list[str], depth: int) -> list[str]:
    """Lines of a block."""
    return [f"{'    ' * depth}{line}" for line in lines]
