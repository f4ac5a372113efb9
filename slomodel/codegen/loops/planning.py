"""The program of an entry for C and for CUDA, whose functions are spelled alike."""

from __future__ import annotations

from collections.abc import Mapping

from slomodel.codegen.entry import Entry, program_of
from slomodel.codegen.layout import Layout
from slomodel.codegen.program import Program
from slomodel.ir.expr import Expr
from slomodel.ir.function import ScalarFunction


def spells(function: ScalarFunction) -> bool:
    return "c" in function.spelling


def planned(
    entry: Entry, layout: Layout, numbers: Mapping[str, int]
) -> tuple[Program, tuple[Expr, ...]]:
    """The program for the given sizes, and those of its roots that are the arrays of the entry."""
    program = program_of(entry, layout, numbers, spells, None)
    return program, program.roots[len(program.roots) - len(entry.arrays) :]
