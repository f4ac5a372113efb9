"""The program of an entry for C and for CUDA, whose functions are spelled alike."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from slomodel.codegen.entry import Entry, program_of
from slomodel.codegen.layout import Layout
from slomodel.codegen.loops.layouts import with_copies
from slomodel.codegen.program import Program
from slomodel.ir.expr import Expr
from slomodel.ir.function import ScalarFunction


def spells(function: ScalarFunction) -> bool:
    return "c" in function.spelling


def planned(
    entry: Entry, layout: Layout, numbers: Mapping[str, int], *, in_order: bool
) -> tuple[Program, tuple[Expr, ...]]:
    """The program for the given sizes, and those of its roots that are the arrays of the entry.

    With loops that run `in_order`, it copies inputs whose layout is slow for them.
    """
    copied = partial(with_copies, numbers=numbers) if in_order else None
    program = program_of(entry, layout, numbers, spells, None, copied)
    return program, program.roots[len(program.roots) - len(entry.arrays) :]
