"""Formats of data files by suffix; a new format is one file here and one row below."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Literal

from slomodel.front.data.loaders.content import (
    Content,
    Raw,
    StoredArray,
    Table,
    UnreadableFile,
    printable,
    shown,
)
from slomodel.front.data.loaders.csv_file import (
    OF_NUMBERS,
    complete_rows,
    count_dropped,
    csv_names,
    read_csv,
    read_csv_labels,
)
from slomodel.front.data.loaders.json_file import json_names, read_json, read_json_labels
from slomodel.front.data.loaders.matrix_market import (
    read_matrix_market,
    read_sparse_matrix_market,
)
from slomodel.front.data.loaders.numpy_file import npz_names, read_npy, read_npz, read_sparse_npz
from slomodel.front.data.loaders.svmlight import read_sparse_svmlight, read_svmlight

__all__ = [
    "FORMATS",
    "OF_NUMBERS",
    "Content",
    "FileFormat",
    "Raw",
    "StoredArray",
    "Table",
    "UnreadableFile",
    "complete_rows",
    "count_dropped",
    "printable",
    "shown",
]


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A file format: `read(file, key)` returns the content or raises UnreadableFile.

    `keys` is the meaning of a key in such a file: an array (by default the one named like the
    data), a column (by default all), or none. `read_labels` reads texts in place of numbers,
    `read_sparse` the stored entries of a sparse array, without the zeros. `names` lists the arrays
    or columns of a file.
    """

    read: Callable[[BinaryIO, str], Content]
    keys: Literal["arrays", "columns", "none"]
    read_labels: Callable[[BinaryIO, str], Content] | None = None
    read_sparse: Callable[[BinaryIO, str], Content | StoredArray] | None = None
    names: Callable[[BinaryIO], Sequence[str]] | None = None


FORMATS: Mapping[str, FileFormat] = {
    ".npz": FileFormat(read_npz, "arrays", read_npz, read_sparse_npz, npz_names),
    ".npy": FileFormat(read_npy, "none", read_npy),
    ".csv": FileFormat(read_csv, "columns", read_csv_labels, names=csv_names),
    ".tsv": FileFormat(read_csv, "columns", read_csv_labels, names=csv_names),
    ".json": FileFormat(read_json, "arrays", read_json_labels, names=json_names),
    ".mtx": FileFormat(read_matrix_market, "none", read_sparse=read_sparse_matrix_market),
    **dict.fromkeys(
        (".svmlight", ".svm", ".libsvm"),
        FileFormat(read_svmlight, "arrays", read_sparse=read_sparse_svmlight),
    ),
}
