"""The source of one generated function: preparation, and the body of each call."""

from __future__ import annotations

import re
from dataclasses import dataclass

from slomodel.codegen.entry import Entry, program_of
from slomodel.codegen.layout import Layout
from slomodel.codegen.lower import lower
from slomodel.codegen.program import Form, Program
from slomodel.codegen.python.names import GeneratedNames
from slomodel.codegen.python.numpy_target import NUMPY
from slomodel.codegen.python.statements import (
    LISTED_SOURCE,
    TRIANGLE_SOURCE,
    Printer,
    indented,
    rule,
)
from slomodel.codegen.schedule import schedule
from slomodel.functions.cost import Sizes as Numbers
from slomodel.ir.expr import Input
from slomodel.ir.walk import inputs

# CPython compiles a function in time quadratic in the number of its closure variables.
MOST_NAMES = 1000
SEEN = "seen"
"""The name of the last point whose values are held between calls."""
_TOKEN = re.compile(r"'[^']*'|\"[^\"]*\"|\b[a-zA-Z_]\w*")


@dataclass(frozen=True, slots=True)
class Planned:
    """An entry with its program for given sizes and one target."""

    entry: Entry
    program: Program
    target: Printer


def plan(entry: Entry, layout: Layout, numbers: Numbers, target: Printer) -> Planned:
    """Lower and schedule an entry. `numbers` are the sizes of the named dims."""
    program = program_of(entry, layout, numbers, target.spells, target.prints)
    return Planned(entry, program, target)


def entry_lines(planned: Planned, layout: Layout) -> list[str]:
    """`make_NAME(data)`, which prepares arrays and kernels and returns the function NAME."""
    entry, program = planned.entry, planned.program
    names, prepared, reads = _inputs(entry, program, layout)
    scope = GeneratedNames(program, layout, names)
    once = _stage_lines(planned, scope, "data")
    held, centre = _centre_lines(planned, scope)
    calls = _stage_lines(planned, scope, "call")
    finish = _finish(entry, program, scope)
    read = _names([*calls, *finish]) | {SEEN}
    held = [name for name in held if name in read]
    slots = _titled("Working arrays, and views of arrays that calls use.", scope.slots())
    vectors = ["point", *(["direction"] if entry.directions else [])]
    arguments = [*vectors, *(["out"] if entry.arrays else [])]
    filled = [f"np.copyto({name}, {vector})" for name, vector in zip("xv", vectors, strict=False)]
    once = [*_titled("What depends on the data alone.", once), *(f"{name} = None" for name in held)]
    before, body = _few_closure_variables(
        [*prepared, *slots, *scope.prelude, *once], [*filled, *reads, *centre, *calls, *finish]
    )
    lines = set(before)
    held = [name for name in held if f"{name} = None" in lines]
    nonlocals = [f"nonlocal {', '.join(held)}"] if held else []
    return [
        '@np.errstate(all="ignore")',
        f"def make_{entry.name}(data):",
        f'    """The function {entry.name}({", ".join(arguments)}) for these data."""',
        "    data = _arrays(data)",
        *indented(before, 1),
        "",
        '    @np.errstate(all="ignore")',
        f"    def {entry.name}({', '.join(arguments)}):",
        *indented([*nonlocals, *body], 2),
        "",
        f"    return {entry.name}",
    ]


def _names(lines: list[str]) -> set[str]:
    """The names in lines of source, and in their strings."""
    return set(re.findall(r"\w+", "\n".join(lines)))


def _few_closure_variables(before: list[str], body: list[str]) -> tuple[list[str], list[str]]:
    """The lines before a call and those of it, with at most MOST_NAMES variables in common.

    Those beyond are elements of a list.
    """
    read = _names(body)
    defined = dict.fromkeys(line.split(" = ", 1)[0] for line in before if " = " in line)
    beyond = [name for name in defined if name in read][MOST_NAMES:]
    if not beyond:
        return before, body
    text = {name: f"more[{k}]" for k, name in enumerate(beyond)}

    def renamed(line: str) -> str:
        return _TOKEN.sub(lambda token: text.get(token[0], token[0]), line)

    return [f"more = [None] * {len(beyond)}", *map(renamed, before)], list(map(renamed, body))


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


def _stage_lines(planned: Planned, scope: GeneratedNames, stage: str) -> list[str]:
    lines: list[str] = []
    for step in planned.program.steps:
        if step.stage == stage:
            lines += rule(step, planned.target)(step, scope)
    return lines


def _centre_lines(planned: Planned, scope: GeneratedNames) -> tuple[list[str], list[str]]:
    """Names that persist between calls, and the lines that run in a call at a new point.

    Points are compared bit by bit. No point is recorded while the lines run, since they may be
    interrupted.
    """
    lines = _stage_lines(planned, scope, "centre")
    if not lines:
        return [], []
    steps = [step for step in planned.program.steps if step.stage == "centre"]
    scalars = dict.fromkeys(scope.ref(step.node) for step in steps if not step.node.rank)
    title = "# A new point: what depends on it alone."
    update = [title, f"{SEEN} = None", *lines, f"{SEEN} = now"]
    return [SEEN, *scalars], ["now = x.tobytes()", f"if now != {SEEN}:", *indented(update, 1)]


def _finish(entry: Entry, program: Program, scope: GeneratedNames) -> list[str]:
    """Lines that copy arrays not computed in place, and return the result."""
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


def plan_preparation(layout: Layout, numbers: Numbers) -> Program | None:
    """The program of the prepared data of a layout, in NumPy for every target; None if empty."""
    if not layout.prepared:
        return None
    roots = lower(tuple(layout.prepared.values()), numbers, NUMPY.spells)
    # As arguments, so that results computed from the data share their working arrays.
    return schedule(roots, inputs(*roots), prints=NUMPY.prints, numbers=numbers)


def preparation_lines(program: Program, layout: Layout) -> list[str]:
    """The source of `prepare(data)`, which returns the prepared data by name."""
    names, reads = layout.arrays(inputs(*program.roots))
    scope = GeneratedNames(program, layout, names)
    steps = [line for step in program.steps for line in rule(step, NUMPY)(step, scope)]
    result = [
        f"{node.name!r}: {_stored(node, scope.ref(root))},"
        for node, root in zip(layout.prepared, program.roots, strict=True)
    ]
    body = [*reads, *scope.slots(), *scope.prelude, *steps, "return {", *indented(result, 1), "}"]
    factors = any(step.form is Form.TRIANGLE for step in program.steps)
    lists = any(step.form is Form.LISTING for step in program.steps)
    return [
        *([TRIANGLE_SOURCE.strip("\n"), "", ""] if factors else []),
        *([LISTED_SOURCE.strip("\n"), "", ""] if lists else []),
        '@np.errstate(all="ignore")',
        "def prepare(data):",
        '    """Values computed from the data once: tables of indices, factors of wide data."""',
        *indented(body, 1),
    ]


def _stored(node: Input, text: str) -> str:
    """An expression for a prepared input as an array in C order, of integers if they are whole."""
    if node.dtype == "whole":
        return f"np.array(np.rint({text}), np.int64, order='C')"
    return f"np.array({text}, order='C')"
