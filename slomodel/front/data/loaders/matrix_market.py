"""Matrix Market (.mtx): a dense or sparse matrix as text."""

from __future__ import annotations

import io
import re
from typing import Any, BinaryIO

import numpy as np

from slomodel.front.data.loaders.content import (
    Raw,
    StoredArray,
    Table,
    UnreadableFile,
    in_bytes,
    limit_bytes,
    refuse_utf16,
    shown,
)

_MOST_BYTES = 1_000_000_000
_MOST_DENSE_BYTES = 1_000_000_000
_BYTES_A_NUMBER = 8
_LEAST_BYTES_AN_ENTRY = 4
_BOM = b"\xef\xbb\xbf"
_WHOLE, _FLOAT = rb"[+-]?\d++", rb"[+-]?(?:(?:\d++\.?+\d*+|\.\d++)(?:e[+-]?\d++)?|nan|inf|infinity)"
_ENTRIES = {"real": (_FLOAT,), "double": (_FLOAT,), "complex": (_FLOAT, _FLOAT), "pattern": ()}
"""Patterns of the numbers of an entry, by field; other fields have integers."""
_HEADER = re.compile(rb"(?:[ \t\r]*(?:%.*)?\n)*.*\n?")


def read_matrix_market(file: BinaryIO, _key: str) -> Table:
    """The matrix of the file (a vector is one column); entries absent from a sparse file are 0."""
    from scipy.sparse import issparse

    loaded = _read(file, is_dense=True)
    return Table(loaded.toarray() if issparse(loaded) else np.asarray(loaded))


def read_sparse_matrix_market(file: BinaryIO, _key: str) -> StoredArray | Table:
    """The stored entries of a sparse file; the matrix of a dense one."""
    from scipy.sparse import coo_array, issparse

    loaded = _read(file, is_dense=False)
    if not issparse(loaded):
        return Table(np.asarray(loaded))
    matrix = coo_array(loaded)
    return StoredArray(matrix.data, tuple(matrix.coords), matrix.shape)


def _read(file: BinaryIO, is_dense: bool) -> Any:
    """The matrix as SciPy reads it. Raises UnreadableFile."""
    from scipy.io import mminfo, mmread
    from scipy.sparse import issparse

    size = limit_bytes(file, _MOST_BYTES)
    refuse_utf16(file)
    text = file.read().removeprefix(_BOM)
    if not text:
        raise UnreadableFile("E305", "is empty")
    # Bytes, not the file: when destroyed, SciPy 1.17's reader seeks in its source. After an error
    # the file is closed by then, and the process would be aborted.
    try:
        rows, columns, entries, layout, field, _ = mminfo(io.BytesIO(text))
        _check_sizes(int(rows), int(columns), int(entries), layout, size, is_dense)
        if not rows * columns:  # SciPy divides by the number of rows.
            return np.zeros((int(rows), int(columns)))
        _check_entries(text, layout, field)
        loaded = mmread(io.BytesIO(text), spmatrix=False)
    except (ValueError, OverflowError) as error:
        reason = str(error).rstrip(".")
        message = f"is not a Matrix Market file that can be read: {reason}"
        raise UnreadableFile("E305", message, "write it with scipy.io.mmwrite") from None
    values: Raw = loaded.data if issparse(loaded) else np.asarray(loaded)
    infinite = values.dtype.kind == "f" and np.isinf(values).any()
    if infinite and b"inf" not in text.lower():
        raise UnreadableFile("E316", "has a number that no float64 can hold")
    return loaded


def _check_sizes(
    rows: int, columns: int, entries: int, layout: str, size: int, is_dense: bool
) -> None:
    """Check sizes before anything is allocated: the header of a small file can declare any size."""
    dense = rows * columns * _BYTES_A_NUMBER
    if dense > _MOST_DENSE_BYTES and (is_dense or layout != "coordinate"):
        reason = (
            f"has {rows} rows and {columns} columns, a dense array of {in_bytes(dense)}, "
            f"and {in_bytes(_MOST_DENSE_BYTES)} are read at most"
        )
        raise UnreadableFile(
            "E317", reason, "declare the data `sparse`, or take a part of the matrix"
        )
    if layout == "coordinate" and entries * _LEAST_BYTES_AN_ENTRY > size:
        raise UnreadableFile("E305", f"is cut short: its header states {entries} entries")


def _check_entries(text: bytes, layout: str, field: str) -> None:
    """Check that each line is exactly one entry: SciPy's reader would accept `1d5` as 1."""
    place = (_WHOLE, _WHOLE) if layout == "coordinate" else ()
    entry = rb"[ \t]+".join((*place, *_ENTRIES.get(field, (_WHOLE,))))
    other = rb"^(?![ \t]*(?:" + entry + rb")?[ \t]*\r?$).+"
    header = _HEADER.match(text)
    assert header is not None
    result = re.compile(other, re.MULTILINE | re.IGNORECASE).search(text, header.end())
    if result:
        line = text.count(b"\n", 0, result.start()) + 1
        written = shown(result[0].decode(errors="replace").strip())
        reason = f"has `{written}` in line {line}, where an entry of `{layout} {field}` is expected"
        remedy = "write row, column and number" if place else "write one number per line"
        raise UnreadableFile("E316", reason, f"{remedy}, like {'1 1 ' if place else ''}-1.5e-3")
