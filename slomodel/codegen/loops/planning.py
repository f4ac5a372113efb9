"""The program of an entry for C and for CUDA, whose functions are spelled alike.

Where loops run in order, as in C, lowered graphs are rearranged first: `ARRANGEMENTS` lists how, in
order, with laws and proofs as the passes of `rewrite` have them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from functools import partial

from slomodel.codegen.entry import Entry, program_of
from slomodel.codegen.layout import Layout
from slomodel.codegen.loops.angles import with_products_of_angles
from slomodel.codegen.loops.correlations import with_correlations
from slomodel.codegen.loops.hoisting import with_hoisted, with_masked_tables
from slomodel.codegen.loops.index_pieces import Pieces, pieces_of, with_index_pieces
from slomodel.codegen.loops.layouts import with_copies, with_transposed_sums
from slomodel.codegen.loops.roots import with_inverse_roots
from slomodel.codegen.loops.runs import runs_of
from slomodel.codegen.loops.short_axes import with_short_axes
from slomodel.codegen.program import Program
from slomodel.ir.expr import Expr
from slomodel.ir.function import ScalarFunction


def spells(function: ScalarFunction) -> bool:
    return "c" in function.spelling


def planned(
    entry: Entry, layout: Layout, numbers: Mapping[str, int], *, in_order: bool
) -> tuple[Program, tuple[Expr, ...]]:
    """The program for the given sizes, and those of its roots that are the arrays of the entry.

    With loops that run `in_order`, it writes out short axes, and copies inputs whose layout is slow
    for loops.
    """
    arranged = None
    if in_order:
        prepared = layout.prepared
        own = LoopFacts(numbers, runs_of(prepared, numbers), pieces_of(prepared, numbers))
        arranged = partial(_arranged, facts=own)
    program = program_of(entry, layout, numbers, spells, None, arranged)
    return program, program.roots[len(program.roots) - len(entry.arrays) :]


Roots = tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class LoopFacts:
    """The sizes, the runs along which loops go, and index data that are slices in pieces."""

    numbers: Mapping[str, int]
    runs: Container[Expr]
    pieces: Pieces


@dataclass(frozen=True, slots=True)
class Arrangement:
    """A rewriting of lowered roots for loops in order: its law, and the reason for its place."""

    run: Callable[[Roots, LoopFacts], Roots]
    law: str
    reason: str


ARRANGEMENTS: tuple[Arrangement, ...] = (
    Arrangement(
        lambda roots, facts: with_transposed_sums(roots),
        "the same sums: operands are read in the order of their own axes",
        "first, as it undoes permutations that only products by BLAS need",
    ),
    Arrangement(
        lambda roots, facts: with_index_pieces(roots, facts.pieces),
        "the same elements, read and added as slices",
        "while the steps of loops are as lowered, before work is moved out of them",
    ),
    Arrangement(
        lambda roots, facts: with_inverse_roots(roots),
        "one more rounding in a quotient by a root",
        "before work is moved out of loops, so that what is moved shares the inverses",
    ),
    Arrangement(
        lambda roots, facts: with_masked_tables(roots, facts.numbers),
        "the same values: conditions are decided once for each element of a table",
        "before arrays are copied for the loops that look them up",
    ),
    Arrangement(
        lambda roots, facts: with_products_of_angles(roots, facts.numbers),
        "sines and cosines of sums to a few rounding errors of 1",
        "before work is moved out of loops: functions of one term need not depend on the states",
    ),
    Arrangement(
        lambda roots, facts: with_hoisted(roots, facts.numbers),
        "the same values, computed for all steps at once",
        "after those that separate what depends on states from what does not",
    ),
    Arrangement(
        lambda roots, facts: with_correlations(roots, facts.numbers),
        "the same terms, and zeros added to them",
        "before short axes are written out, which leaves no window to recognise",
    ),
    Arrangement(
        lambda roots, facts: with_short_axes(roots, facts.numbers, facts.runs),
        "the same values, one array for each element of a short axis",
        "after those that recognise arrays by their axes",
    ),
    Arrangement(
        lambda roots, facts: with_copies(roots, facts.numbers),
        "the same values, read from a copy",
        "last, as it depends on the loops that are left",
    ),
)
"""All rearrangements, in order."""


def _arranged(roots: Roots, facts: LoopFacts) -> Roots:
    for one in ARRANGEMENTS:
        roots = one.run(roots, facts)
    return roots
