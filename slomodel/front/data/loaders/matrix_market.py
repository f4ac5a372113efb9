"""Matrix Market (.mtx): a dense or sparse matrix as text, given as a dense array."""

from __future__ import annotations

import io
from typing import BinaryIO

import numpy as np

from slomodel.front.data.loaders.content import Raw, Refusal, Table, in_bytes, limit_bytes

_MOST_BYTES = 1_000_000_000
_MOST_DENSE_BYTES = 1_000_000_000
_BYTES_A_NUMBER = 8
_LEAST_BYTES_AN_ENTRY = 4
_BOM = b"\xef\xbb\xbf"


def read_matrix_market(file: BinaryIO, _key: str) -> Table:
    """The matrix of the file, a vector as one column; entries a sparse file leaves out are 0."""
    from scipy.io import mminfo, mmread
    from scipy.sparse import issparse

    size = limit_bytes(file, _MOST_BYTES)
    text = file.read().removeprefix(_BOM)
    if not text:
        raise Refusal("E305", "is empty")
    # Bytes and not the file: SciPy's reader (1.17) seeks in what it was given when it is thrown
    # away, which after an error is later than the file is closed, and ends the process.
    try:
        rows, columns, entries, layout, _, _ = mminfo(io.BytesIO(text))
        _check_sizes(int(rows), int(columns), int(entries), layout, size)
        loaded = mmread(io.BytesIO(text))
    except (ValueError, OverflowError) as error:
        reason = str(error).rstrip(".")
        raise Refusal("E305", f"is not a Matrix Market file that can be read: {reason}") from None
    values: Raw = loaded.toarray() if issparse(loaded) else np.asarray(loaded)
    infinite = values.dtype.kind == "f" and np.isinf(values).any()
    if infinite and b"inf" not in text.lower():
        raise Refusal("E316", "has a number that no float64 can hold")
    return Table(values)


def _check_sizes(rows: int, columns: int, entries: int, layout: str, size: int) -> None:
    """Before anything is allocated: the header of a small file can ask for any size."""
    dense = rows * columns * _BYTES_A_NUMBER
    if dense > _MOST_DENSE_BYTES:
        reason = (
            f"has {rows} rows and {columns} columns, a dense array of {in_bytes(dense)}, "
            f"and {in_bytes(_MOST_DENSE_BYTES)} are read at most"
        )
        raise Refusal("E317", reason, "models compute with dense arrays; take a part of the matrix")
    if layout == "coordinate" and entries * _LEAST_BYTES_AN_ENTRY > size:
        raise Refusal("E305", f"is cut short: its header promises {entries} entries")
