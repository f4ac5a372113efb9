"""Statements of loops that look up index data: additions at places, and blocks that are runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from slomodel.codegen.loops.pointers import Pointer
from slomodel.codegen.loops.runs import Runs
from slomodel.codegen.loops.text import indented

_LONG_RUN = 12
"""Equal neighbours from which their sum in vectors is faster than one after another."""


def scatter_lines(index: str, added: Sequence[tuple[str, str]]) -> list[str]:
    """Statements that add values of a block to arrays at an index, one after another.

    Where neighbours mostly have equal indices, as in sorted data, their sum is added: an addition
    to memory waits for the last one to the same place. Long runs are summed in vectors.
    """
    totals = ", ".join(f"r{k} = 0.0" for k in range(len(added)))
    sums = [f"r{k} += {value};" for k, (_, value) in enumerate(added)]
    ends = [f"{name}[at] += r{k};" for k, (name, _) in enumerate(added)]
    run = ["for (; i < m; i++) {", *indented([f"if ({index} != at) break;", *sums]), "}"]
    by_run = [f"const long at = {index};", f"double {totals};", *run, *ends]
    one_by_one = [f"{name}[{index}] += {value};" for name, value in added]
    following = re.sub(r"\bi\b", "(i + 1)", index)
    lines = [
        "long equal = 0;",
        f"for (long i = 0; i < m - 1; i++) equal += {index} == {following};",
        "if (2 * equal < m) {",
        *indented(["for (long i = 0; i < m; i++) {", *indented(one_by_one), "}"]),
        *_long_runs(index, added),
        "} else {",
        *indented(["for (long i = 0; i < m;) {", *indented(by_run), "}"]),
        "}",
    ]
    return ["{", *indented(lines), "}"]


def _long_runs(index: str, added: Sequence[tuple[str, str]]) -> list[str]:
    """The branch for runs of equal indices that are long, if the index is an element of a table."""
    table = index.removesuffix("[i]")
    if not table.isidentifier():
        return []
    totals = [
        f"{name}[at] += slo_total({value.removesuffix('[i]')} + i, run);" for name, value in added
    ]
    return [
        f"}} else if (m > {_LONG_RUN} * (m - equal)) {{",
        *indented(
            [
                "for (long i = 0, run; i < m; i += run) {",
                *indented([f"const long at = {index};", f"run = slo_run({table} + i, 0, m - i);"]),
                *indented(totals),
                "}",
            ]
        ),
    ]


def in_pieces(pointer: Pointer, size: int) -> bool:
    """Whether one lookup moves along the last axis, of this size, and all its pieces are known."""
    varying = [table for table, _ in pointer.lookups if any(table.steps[-1:])]
    if len(varying) != 1 or varying[0].steps[-1] != 1 or varying[0].position.offset:
        return False
    return bool(varying[0].pieces) and varying[0].pieces[-1][1] == size


def piece_lines(pointer: Pointer, text: str) -> list[str]:
    """Statements like `text`, one or a loop for each piece of the index data of a pointer.

    In the text `{element}` is an element of the array, and `[i]` that of a block which holds a
    whole axis.
    """
    fixed, stride, pieces = "", 0, pointer.lookups[0][0].pieces
    for table, k in pointer.lookups:
        if any(table.steps[-1:]):
            stride, pieces = k, table.pieces
        else:
            fixed += f" + {table.name}[0] * {k}"
    step = pointer.steps[-1] + stride
    lines = []
    for start, stop, first in pieces:
        offset = f"{pointer.steps[-1] * start + stride * first}{fixed}"
        if stop - start == 1:
            line = text.replace("[i]", f"[{start}]")
            lines.append(line.format(element=f"{pointer.name}[{offset}]"))
            continue
        element = f"{pointer.name}[{offset} + j * {step}]".replace(" * 1]", "]")
        line = text.replace("[i]", f"[{start} + j]").format(element=element)
        lines += ["#pragma GCC ivdep", f"for (long j = 0; j < {stop - start}; j++) {line}"]
    return lines


def tables_in_runs(pointers: Sequence[Pointer]) -> list[Pointer]:
    """The index data of a loop along one axis if it can go from run to run; else empty."""
    tables = [pointer for pointer in pointers if pointer.integers]
    read = [table for one in pointers for table, _ in one.lookups]
    same = len(tables) == len({table.name for table in read})
    if not same or any(table.run is None or table.steps != (1,) for table in tables):
        return []
    return tables


def known_runs(tables: Sequence[Pointer], most: int) -> Runs | None:
    """The runs of all tables, if their lengths are known, alike and at most `most`."""
    first = tables[0].run if tables else None
    if first is None or not 0 < first.longest <= most:
        return None
    alike = all(one.run == replace(first, step=one.run.step) for one in tables if one.run)
    return first if alike else None


def run_length(tables: Sequence[Pointer], most: str) -> str:
    """How many elements of a block, `most` in all, belong to the run at its start."""
    for table in tables:
        assert table.run is not None, "a loop along runs"
        most = f"slo_run({table.name}, {table.run.step}, {most})"
    return most
