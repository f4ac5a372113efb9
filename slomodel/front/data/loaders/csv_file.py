"""Tables of numbers as text, with cells separated by commas, semicolons or tabs."""

from __future__ import annotations

import csv
import math
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import chain
from typing import BinaryIO, TextIO

import numpy as np
from numpy.typing import NDArray

from slomodel.front.data.loaders.content import (
    Raw,
    Table,
    UnreadableFile,
    missing_entry,
    not_utf8,
    shown,
    text_of,
)

_MOST_BYTES = 1_000_000_000
_DELIMITERS = "\t;,"
_NUMBER = re.compile(
    r"[+-]?(?:(?:\d++\.?+\d*+|\.\d++)(?:e[+-]?\d++)?|nan|inf|infinity)", re.ASCII | re.IGNORECASE
)
_NEARLY = re.compile(
    r"""[-+\u2212\u2013$€£(\s]*+
    (?:0x[\da-f]++ | (?:\d++(?:[,_'’]\d{3})*+\.?+\d*+ | \.\d++) (?:[\s,]++\d++\.?+\d*+)*+
    (?:[ed][+-]?\d++)?) (?:\s*[-+]\s*[\d.]++(?=[ij]))? [\sij)]*+ (?:\#.*)?""",
    re.IGNORECASE | re.VERBOSE,
)
"""Cells that are numbers in other notations: 1_000, a typographic minus, 1d0, 0x1F, `1 # kg`."""
_OTHER = 'write a number there, or read another column, as in `"file.csv:column"`'
_TEXTS = "write a number there; a column of text is index data, as in `data g[n] in G labels`"
OF_NUMBERS = "name the columns of numbers"
"""Begins the remedy for a table of which only some columns hold numbers."""
_LONGEST_LIST = 200
_PLAIN = "write it as a plain number, like 1000, -1.5 or 1e-3"
_GROUPS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+", re.ASCII)
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+", re.ASCII)
_QUOTED = re.compile(r'"[^"]*"')
_MISSING = frozenset({"", "-", "?", "na", "n/a", "null", "none"})
MISSING_CELLS = _MISSING | {"nan"}
"""Cells without a value, in small letters."""

Line = tuple[int, str]
"""The number of a line in its file, from 1, and its text."""


@dataclass(frozen=True, slots=True)
class TableLayout:
    """Layout inferred from the first line: its number, delimiter, number of cells, and names."""

    line: int
    delimiter: str
    width: int
    names: tuple[str, ...] = ()


def read_csv(file: BinaryIO, column: str) -> Table:
    """The numbers (rows, columns) of a table, or the columns named in `column`, in that order.

    `column` is one name, or several separated by commas. The first line is a header if none of its
    cells is, or may be meant as, a number, or if it contains one of these names. Blank lines and
    lines that start with `#` are skipped; cells may be quoted with `"`.
    """
    try:
        with text_of(file, _MOST_BYTES) as text:
            return _table(text, column)
    except UnicodeDecodeError:
        raise not_utf8() from None


def csv_names(file: BinaryIO) -> tuple[str, ...]:
    """The names of the columns, empty if the first line holds numbers."""
    try:
        with text_of(file, _MOST_BYTES) as text:
            first = next(_lines(text), None)
            return () if first is None else _layout(first, "").names
    except UnicodeDecodeError:
        raise not_utf8() from None


def read_csv_labels(file: BinaryIO, column: str) -> Raw:
    """The texts (rows,) of one column of a table whose first line has the names."""
    try:
        with text_of(file, _MOST_BYTES) as text:
            lines = _lines(text)
            first = next(lines, None)
            if first is None:
                raise UnreadableFile("E305", "is empty")
            unquoted = _QUOTED.sub("", first[1])
            delimiter = next((mark for mark in _DELIMITERS if mark in unquoted), ",")
            names = tuple(cell.strip() for cell in _cells(first, delimiter))
            layout = TableLayout(first[0], delimiter, len(names), names)
            place = _column(column, layout)
            return np.array([_row(line, layout)[place].strip() for line in lines], dtype=str)
    except UnicodeDecodeError:
        raise not_utf8() from None


def complete_rows(file: BinaryIO, columns: Sequence[str]) -> BinaryIO:
    """The table without the rows in which one of the columns, or any if none is named, is missing.

    A value is missing if its cell is empty, `nan`, `NA` or the like. The rows become blank lines,
    so that messages have the lines of the file.
    """
    kept: list[str] = []
    layout: TableLayout | None = None
    places: Sequence[int] = ()
    with text_of(file, _MOST_BYTES) as text:
        for number, line in enumerate(text, 1):
            bare = line.strip()
            if not bare or bare.startswith("#"):
                kept.append("\n")
            elif layout is None:
                unquoted = _QUOTED.sub("", line)
                delimiter = next((mark for mark in _DELIMITERS if mark in unquoted), ",")
                names = tuple(cell.strip() for cell in _cells((number, line), delimiter))
                layout = TableLayout(number, delimiter, len(names), names)
                places = [_column(name, layout) for name in columns] or range(len(names))
                kept.append(line)
            else:
                cells = _row((number, line.rstrip("\n")), layout)
                missing = any(cells[k].strip().lower() in MISSING_CELLS for k in places)
                kept.append("\n" if missing else line)
    return BytesIO("".join(kept).encode())


def count_dropped(file: BinaryIO, columns: Sequence[str]) -> tuple[int, int]:
    """How many rows `complete_rows` leaves out, of how many."""
    raw = file.read()
    rows = [line for line in raw.split(b"\n") if line.strip() and line.strip()[:1] != b"#"]
    kept = complete_rows(BytesIO(raw), columns).read().split(b"\n")
    return len(rows) - sum(1 for line in kept if line.strip()), len(rows) - 1


def _table(text: TextIO, column: str) -> Table:
    lines = _lines(text)
    first = next(lines, None)
    if first is None:
        raise UnreadableFile("E305", "is empty")
    layout = _layout(first, column)
    start = next(lines, None) if layout.names else first
    if start is None:
        raise UnreadableFile("E305", "has a header line and no numbers")
    rows: Iterator[Line] = chain([start], lines)
    if column:
        names = _names(column, layout.names)
        wanted = [_column(name, layout) for name in names]
        try:
            return Table(_checked(rows, layout, wanted), tuple(names))
        except UnreadableFile as fault:
            if fault.remedy != _OTHER:
                raise
            raise UnreadableFile(fault.code, fault.reason, _TEXTS) from None
    numbers = _fast(rows, layout.delimiter)
    if numbers is None or numbers.shape[1] != layout.width or np.isinf(numbers).any():
        # A second pass cell by cell, to locate an error or to confirm that inf is written out.
        text.seek(0)
        rows = (line for line in _lines(text) if line[0] >= start[0])
        try:
            numbers = _checked(rows, layout, range(layout.width))
        except UnreadableFile as fault:
            if fault.remedy != _OTHER or not layout.names:
                raise
            raise UnreadableFile(fault.code, fault.reason, _columns(start, layout)) from None
    return Table(numbers, layout.names)


def _columns(row: Line, layout: TableLayout) -> str:
    """The remedy for a table with columns of text: those with a number in the first row."""
    cells = zip(layout.names, _row(row, layout), strict=True)
    numeric = [name for name, cell in cells if _NUMBER.fullmatch(cell.strip())]
    listed = ",".join(numeric)
    every = len(numeric) == len(layout.names)
    if not numeric or every or len(listed) > _LONGEST_LIST:
        return _OTHER
    return f'{OF_NUMBERS}: `"file.csv:{listed}"`; texts are read by `labels`'


def _lines(text: TextIO) -> Iterator[Line]:
    """The lines that are neither blank nor comments."""
    for number, line in enumerate(text, 1):
        bare = line.strip()
        if bare and not bare.startswith("#"):
            yield number, line.rstrip("\n")


def _layout(first: Line, column: str) -> TableLayout:
    unquoted = _QUOTED.sub("", first[1])
    delimiter = next((mark for mark in _DELIMITERS if mark in unquoted), ",")
    cells = [cell.strip() for cell in _cells(first, delimiter)]
    layout = TableLayout(first[0], delimiter, len(cells))
    numeric = [_NUMBER.fullmatch(cell) is not None for cell in cells]
    has_column = bool(column) and any(name in cells for name in _names(column, cells))
    if all(numeric) and not has_column:
        return layout
    others = [k for k, known in enumerate(numeric) if not known]
    nearly = [k for k in others if _NEARLY.fullmatch(cells[k])]
    if (any(numeric) or nearly) and not has_column:
        # Text among numbers may be a wrong cell or a name, which only the user can decide.
        fault = _cell_error(first, (nearly or others)[0], layout)
        remedy = "write a number there, or a header line without numbers"
        raise UnreadableFile(
            fault.code, fault.reason, remedy if fault.remedy == _OTHER else fault.remedy
        )
    if not any(cells):
        raise _cell_error(first, 0, layout)
    return TableLayout(first[0], delimiter, len(cells), tuple(cells))


def _cells(line: Line, delimiter: str) -> list[str]:
    try:
        reader = csv.reader([line[1]], delimiter=delimiter, strict=True, skipinitialspace=True)
        return next(reader)
    except csv.Error as error:
        reason = f"has a line {line[0]} that is not a row of cells: {error}"
        remedy = 'separate cells with a comma, a semicolon or a tab, and close each `"`'
        raise UnreadableFile("E316", reason, remedy) from None


def _names(column: str, known: Sequence[str]) -> list[str]:
    """The columns named by `a,b`, which may also be a single name in the header."""
    return [column] if column in known else [name.strip() for name in column.split(",")]


def _column(name: str, layout: TableLayout) -> int:
    if not layout.names:
        reason = f"has no column `{shown(name)}`: its first line holds numbers, not names"
        raise UnreadableFile("E304", reason, "write the names of the columns in the first line")
    if name not in layout.names:
        raise missing_entry("column", name, layout.names)
    if layout.names.count(name) > 1:
        raise UnreadableFile("E304", f"has {layout.names.count(name)} columns `{shown(name)}`")
    return layout.names.index(name)


def _fast(rows: Iterator[Line], delimiter: str) -> NDArray[np.float64] | None:
    """The numbers of plain rows; None if a cell is quoted or invalid."""
    try:
        return np.loadtxt(
            (text for _, text in rows), delimiter=delimiter, comments=None, ndmin=2, dtype="f8"
        )
    except UnicodeDecodeError:
        raise
    except ValueError:
        return None


def _checked(
    rows: Iterator[Line], layout: TableLayout, wanted: Sequence[int]
) -> NDArray[np.float64]:
    """The numbers in the columns `wanted`. Raises UnreadableFile for the first wrong cell."""
    numbers = array("d")
    for line in rows:
        cells = _row(line, layout)
        for k in wanted:
            cell = cells[k].strip()
            number = float(cell) if _NUMBER.fullmatch(cell) else None
            if number is None or (math.isinf(number) and "n" not in cell.lower()):
                raise _cell_error(line, k, layout)
            numbers.append(number)
    return np.frombuffer(numbers, dtype=np.float64).reshape(-1, len(wanted))


def _row(line: Line, layout: TableLayout) -> list[str]:
    cells = _cells(line, layout.delimiter)
    if len(cells) != layout.width:
        count = f"{len(cells)} cell{'s' if len(cells) > 1 else ''}"
        reason = f"has {count} in line {line[0]}, and {layout.width} in line {layout.line}"
        raise UnreadableFile("E316", reason, "give every row the same number of cells")
    return cells


def _cell_error(line: Line, k: int, layout: TableLayout) -> UnreadableFile:
    """The error for cell `k` (from 0) of a line."""
    cell = _cells(line, layout.delimiter)[k].strip()
    place = f"in line {line[0]}, column {k + 1}"
    if layout.names and layout.names[k]:
        place += f" (`{shown(layout.names[k])}`)"
    if _NUMBER.fullmatch(cell):
        return UnreadableFile("E316", f"has `{shown(cell)}` {place}, which no float64 can hold")
    what = f"the text `{shown(cell)}`" if cell else "an empty cell"
    remedy = _OTHER
    if cell.lower() in _MISSING:
        remedy = "write nan for a missing number, or `drop missing` after the file's name"
    elif _GROUPS.fullmatch(cell):
        plain = cell.replace(",", "")
        remedy = f"write {plain}, or {cell.replace(',', '.', 1)} if the comma is a decimal point"
    elif _DECIMAL_COMMA.fullmatch(cell):
        remedy = f"write a decimal point: {cell.replace(',', '.')}"
    elif len(cell.split()) > 1 and layout.width == 1:
        remedy = "separate cells with a comma, a semicolon or a tab"
    elif _NEARLY.fullmatch(cell):
        remedy = _PLAIN
    return UnreadableFile("E316", f"has {what} {place}, where a number is expected", remedy)
