"""The program of an entry for C and for CUDA, whose functions are spelled alike."""

from __future__ import annotations

from collections.abc import Container, Mapping
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
    runs = runs_of(layout.prepared, numbers)
    arranged = None
    if in_order:
        pieces = pieces_of(layout.prepared, numbers)
        arranged = partial(_arranged, numbers=numbers, runs=runs, pieces=pieces)
    program = program_of(entry, layout, numbers, spells, None, arranged)
    return program, program.roots[len(program.roots) - len(entry.arrays) :]


def _arranged(
    roots: tuple[Expr, ...], numbers: Mapping[str, int], runs: Container[Expr], pieces: Pieces
) -> tuple[Expr, ...]:
    roots = with_index_pieces(with_transposed_sums(roots), pieces)
    roots = with_masked_tables(with_inverse_roots(roots), numbers)
    roots = with_hoisted(with_products_of_angles(roots, numbers), numbers)
    roots = with_correlations(roots, numbers)
    return with_copies(with_short_axes(roots, numbers, runs), numbers)
