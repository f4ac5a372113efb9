"""The whole C text of one entry: preparation, once per data, and evaluation, in every call."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from slomodel.codegen.entry import Entry
from slomodel.codegen.layout import Layout, described, plain
from slomodel.codegen.loops.construct import blocks, copied_output
from slomodel.codegen.loops.fusion import Fusion
from slomodel.codegen.loops.index_pieces import pieces_of
from slomodel.codegen.loops.names import Names, element_text, starts
from slomodel.codegen.loops.nest import (
    Block,
    Contraction,
    Copy,
    Fill,
    MatrixCall,
    Nest,
    Recurrence,
    TimeLoop,
    located,
)
from slomodel.codegen.loops.planning import planned
from slomodel.codegen.loops.row_parts import with_row_parts
from slomodel.codegen.loops.runs import runs_of
from slomodel.codegen.loops.text import indented
from slomodel.codegen.loops.workspace import LINE, Memory
from slomodel.codegen.native.compiler import FLAGS
from slomodel.codegen.native.log_products import DEFINITION as LOG_PRODUCTS
from slomodel.codegen.native.log_products import NAME as LOG_PRODUCTS_NAME
from slomodel.codegen.native.log_sums import DEFINITION as LOG_SUMS
from slomodel.codegen.native.log_sums import NAME as LOG_SUMS_NAME
from slomodel.codegen.native.loops import BlockedLoop, keeps_rows
from slomodel.codegen.native.matrices import LAPACK, MATRICES, matrix_call_lines
from slomodel.codegen.native.names import EntryNames
from slomodel.codegen.native.parallel import shared_lines
from slomodel.codegen.native.pieces import pieces
from slomodel.codegen.native.plain import (
    copy_lines,
    fill_lines,
    plain_lines,
    recurrence_lines,
)
from slomodel.codegen.native.prelude import FUSED, FUSED_NAME, SHARES, prelude
from slomodel.codegen.native.products import SHARED, product_lines
from slomodel.codegen.native.repeated import calls_of_repeated
from slomodel.codegen.native.time import Printer, scratch_of, time_lines
from slomodel.codegen.program import Program, Stage
from slomodel.ir.expr import Input
from slomodel.ir.walk import inputs


@dataclass(frozen=True, slots=True)
class Unit:
    """The C functions of an entry, and the lengths of its workspace and vectors in elements.

    `work` estimates the scalar operations of a call; `shared` says whether it uses several threads.
    """

    text: str
    workspace: int
    n: int
    work: int
    shared: bool


def unit(
    entry: Entry, layout: Layout, numbers: Mapping[str, int], printer: Printer | None = None
) -> Unit:
    """The C functions of an entry for the given sizes.

    With a `printer` of blocks one thread runs its statements; without one, long loops are divided
    among threads.
    """
    program, arrays = planned(entry, layout, numbers, in_order=True)
    roots = program.roots
    runs = runs_of(layout.prepared, numbers)
    pieces = pieces_of(layout.prepared, numbers)
    fusion = Fusion(program, numbers, in_order=True, runs=runs, pieces=pieces)
    memory = Memory(fusion, arrays)
    names = EntryNames(memory, layout, entry.directions, numbers)
    used = {node.name for node in inputs(*roots)}
    data = [
        f"const {_kind(node)} *const d{k} = c[{k + 5}]; (void)d{k};"
        for k, node in enumerate(layout.data)
        if node.name in used
    ]
    common = [*_HEADS, *data]
    begin = starts(layout.variables, numbers)
    end = -(-(memory.size + begin[-1] + 1) // LINE) * LINE
    attribute = "NO_SLP" if _stores_short_truths(program, numbers) else ""
    writer = _Writer(fusion, names, entry, common, end, printer, attribute)
    forget, once = _once(writer.stage("centre"), memory.size, begin[-1])
    prepare = [*writer.stage("data"), *forget]
    parts = writer.blocks("call")
    last = _last(entry, program, memory, fusion, names)
    call = [*once, *writer.joined("call", parts, last)]
    lines = [
        *writer.functions,
        "NO_SLP",
        f"void prepare_{entry.name}(void **c) {{",
        *indented([*common, *_declared(names, prepare), *prepare]),
        "}",
        "",
        *([attribute] if attribute else []),
        f"double {entry.name}(void **c) {{",
        *indented([*common, *_declared(names, call), *call]),
        "}",
    ]
    kept = begin[-1] + 1 if once else 0
    work = sum(map(fusion.work, fusion.regions))
    text = "\n".join(lines) + "\n"
    workspace = writer.end if writer.has_scratch else memory.size + kept
    return Unit(text, workspace, begin[-1], work, writer.shares)


def _last(
    entry: Entry, program: Program, memory: Memory, fusion: Fusion, names: EntryNames
) -> list[str]:
    """The statements at the end of a call: copies of arrays computed elsewhere, and the value."""
    lines: list[str] = []
    for k, root in enumerate(program.roots[len(program.roots) - len(entry.arrays) :]):
        if k not in memory.given:
            lines += copy_lines(copied_output(root, k, fusion), names)
    if entry.scalar is None:
        return [*lines, "return 0.0;"]
    value = located(fusion.accesses.of(program.roots[0]))
    return [*lines, f"return {element_text(value, names)};"]


def _stores_short_truths(program: Program, numbers: Mapping[str, int]) -> bool:
    """Whether a call stores truth values in a loop that is short enough to be unrolled."""
    return any(
        node.dtype == "bool" and bool(node.rank) and node.shape[-1].size(numbers) <= _UNROLLED
        for step in program.steps
        if step.stage == "call"
        for node in (*step.fused, step.node)
    )


def _kind(node: Input) -> str:
    """The C type of the elements of data."""
    return "long" if node.dtype == "whole" else "real"


def _declared(names: EntryNames, lines: list[str]) -> list[str]:
    """The scalars that the lines use as variables."""
    used = set(re.findall(r"\bs\d+\b", "\n".join(lines)))
    wanted = [name for name in names.variables if name in used]
    return [f"real {', '.join(wanted)};"] if wanted else []


def _once(centre: list[str], start: int, n: int) -> tuple[list[str], list[str]]:
    """Statements that invalidate the recorded x, and those that a call runs at a new x.

    The last x (n,), followed by a flag that it is valid, lies in the workspace from `start` on.
    """
    if not centre:
        return [], []
    known, size = f"w[{start + n}]", f"{n} * sizeof(real)"
    return [f"{known} = 0;"], [
        f"if (slo_differs(w + {start}, x, {n})) {{",
        *indented(
            [
                f"{known} = 0;",
                *centre,
                f"__builtin_memcpy(w + {start}, x, {size});",
                f"{known} = 1;",
            ]
        ),
        "}",
    ]


def joined(name: str, units: Sequence[Unit], layout: Layout, numbers: Mapping[str, int]) -> str:
    """One C file: a description of the arguments, common definitions, the functions."""
    single = layout.precision == "float32"
    bodies = [one.text for one in units]
    shares = [SHARES] if any(one.shared for one in units) else []
    linear = [MATRICES] if LAPACK in "\n".join(bodies) else []
    every = "\n".join(bodies)
    known = ((LOG_SUMS_NAME, LOG_SUMS), (LOG_PRODUCTS_NAME, LOG_PRODUCTS))
    sums = [definition for name, definition in known if f"{name}(" in every]
    fused = [FUSED] if f"{FUSED_NAME}(" in every else []
    common = [prelude("\n".join([*bodies, *sums]), single), *fused, *linear, *sums, *shares]
    return "\n".join([_header(name, units, layout, numbers), *common, *bodies])


_UNROLLED = 16
"""Loops of up to this many steps may be unrolled completely by a compiler."""
_HEADS = [
    "const real *const x = c[0], *const v = c[1];",
    "real *const g = c[2], *const w = c[3];",
    "void *const *const blas = c[4];",
    "(void)x, (void)v, (void)g, (void)w, (void)blas;",
]


def block_lines(block: Block, names: Names) -> list[str]:
    """The statements of a block that is computed by one thread."""
    if isinstance(block, Nest):
        if not block.is_blocked:
            return plain_lines(block, names)
        return BlockedLoop(block, names).lines()
    if isinstance(block, Contraction):
        return product_lines(block, names)
    if isinstance(block, MatrixCall):
        return matrix_call_lines(block, names)
    if isinstance(block, Recurrence):
        return recurrence_lines(block, names)
    if isinstance(block, Copy):
        return copy_lines(block, names)
    assert isinstance(block, Fill), "only a loop without an order collects slices"
    return fill_lines(block, names)


class _Writer:
    """The statements of the regions of a stage; `functions` are those that they call.

    `shares` says whether a loop or a product is divided among threads. The arrays of steps in loops
    over time and the copies of arrays for threads, if there are any, lie in the workspace up to
    `end`.
    """

    def __init__(
        self,
        fusion: Fusion,
        names: EntryNames,
        entry: Entry,
        heads: Sequence[str],
        end: int,
        printer: Printer | None,
        attribute: str,
    ) -> None:
        self.end = end
        self._attribute = attribute
        self.has_scratch = False
        self._fusion = fusion
        self._names = names
        self._entry, self._fused = entry.name, entry.fused
        self._heads = heads
        self._printer = printer or block_lines
        self._may_share = printer is None
        self.functions: list[str] = []
        self.shares = False
        regions = [(region, blocks(region, fusion)) for region in fusion.regions]
        self._blocks = with_row_parts(regions, fusion, partial(keeps_rows, names=names))

    def stage(self, stage: Stage) -> list[str]:
        """The statements of a stage."""
        return self.joined(stage, self.blocks(stage), [])

    def blocks(self, stage: Stage) -> list[list[str]]:
        """The statements of each block of a stage."""
        after = ["FORGET(w);"] if stage == "data" else []
        return [
            [*self._block(block, stage, f"{self._entry}_{place}"), *after]
            for place, region in enumerate(self._fusion.regions)
            if region.stage == stage
            for block in self._blocks[place]
        ]

    def joined(self, stage: Stage, parts: Sequence[list[str]], last: list[str]) -> list[str]:
        """The statements of all blocks, divided into functions where they are long or repeated."""
        name = f"{self._entry}_{stage}"
        functions, parts = calls_of_repeated(name, parts, self._heads, self._attribute)
        result = pieces(name, parts, last, self._heads, self._attribute)
        self.functions += [*functions, *result.functions]
        return result.lines

    def _block(self, block: Block, stage: Stage, name: str) -> list[str]:
        if isinstance(block, Nest) and self._may_share:
            return self._nest(block, stage, name)
        if isinstance(block, Contraction) and self._may_share:
            lines = product_lines(block, self._names, may_share=stage != "data")
            self.shares |= any(SHARED in line for line in lines)
            return lines
        if isinstance(block, TimeLoop):
            start, self.has_scratch = self.end, True
            self.end += scratch_of(block)
            numbers = self._fusion.accesses.numbers
            return time_lines(block, self._names, start, numbers, self._printer)
        return self._printer(block, self._names)

    def _nest(self, nest: Nest, stage: Stage, name: str) -> list[str]:
        if not nest.is_blocked:
            return plain_lines(nest, self._names)
        loop = BlockedLoop(nest, self._names, self._fused)
        if stage == "data":
            return loop.lines()
        shared = shared_lines(loop, name, self._heads, self.end)
        self.has_scratch |= bool(shared.copies)
        self.end += -(-shared.copies // LINE) * LINE
        self.functions += shared.function
        self.shares |= bool(shared.function)
        return shared.lines


def _header(name: str, units: Sequence[Unit], layout: Layout, numbers: Mapping[str, int]) -> str:
    work = max((one.workspace for one in units), default=0)
    names = re.findall(r"^void prepare_(\w+)", "\n".join(one.text for one in units), re.MULTILINE)
    rows = [
        f"Kernels of the model `{plain(name)}` in {layout.precision}, generated by slomodel for c.",
        "",
        "prepare_NAME(c) once for some data, then the double NAME(c) at each point: the objective,",
        f"or 0 for products. NAME: {', '.join(names)}. c holds addresses:",
        f"  c[0] x, the variables one after another in C order, {units[0].n} numbers:",
        *(f"       {described(node)}" for node in layout.variables),
        "  c[1] the direction of hvp, c[2] where the gradient or the product goes, as x",
        f"  c[3] a workspace of {work} numbers, another one for each function",
        "  c[4] the addresses of gemm and gemv of a Fortran BLAS, then how many threads to use,",
        "       then the addresses of trsm, potrf, potri and getrf of BLAS and LAPACK, then 0, or",
        "       that of a `slo_alone` by which all kernels hold the threads of BLAS at one",
        *(f"  c[{k + 5}] {layout.note(node)}" for k, node in enumerate(layout.data)),
        f"Sizes: {', '.join(f'{plain(dim)} = {size}' for dim, size in numbers.items()) or 'none'}.",
        "Compile with (-DVECTOR_MATH=0 without glibc 2.35)",
        f"  gcc {' '.join(FLAGS)}",
        "    -DVECTOR_MATH=2 kernels.c -lmvec -lm -o kernels.so",
    ]
    # Users' names cannot end the comment.
    return (
        "\n".join(["/* " + rows[0], *(f"   {r}".rstrip() for r in rows[1:]), "*/"]).replace(
            "*/", "* /"
        )[: -len("* /")]
        + "*/"
    )
