"""svmlight files (.svmlight, .svm, .libsvm): lines `label index:value index:value …`."""

from __future__ import annotations

from typing import BinaryIO

import numpy as np

from slomodel.front.data.loaders.content import Raw, StoredArray, UnreadableFile, shown, text_of

_MOST_BYTES = 1_000_000_000
_LABELS = "y"
_REMEDY = "write a label and then `index:value` with increasing indices from 1 on every line"


def read_svmlight(file: BinaryIO, key: str) -> Raw:
    """The labels of the rows, key `y`; the features are sparse data, under any other key."""
    if key == _LABELS:
        return _read(file)[0]
    reason = "holds sparse features, which are dense data here"
    raise UnreadableFile("E305", reason, "declare the data `sparse`; key `y` gives the labels")


def read_sparse_svmlight(file: BinaryIO, key: str) -> StoredArray | Raw:
    """The features as a matrix with a row for each line; under the key `y` the labels."""
    labels, features = _read(file)
    return labels if key == _LABELS else features


def _read(file: BinaryIO) -> tuple[Raw, StoredArray]:
    """Labels and features; `qid:` and comments are skipped."""
    labels: list[float] = []
    rows: list[int] = []
    columns: list[int] = []
    values: list[float] = []
    with text_of(file, _MOST_BYTES) as text:
        lines = text.readlines()
    if not lines:
        raise UnreadableFile("E305", "is empty")
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            labels.append(float(words[0]))
            for word in words[1:]:
                index, _, value = word.partition(":")
                if index == "qid":
                    continue
                columns.append(int(index) - 1)
                values.append(float(value))
                rows.append(len(labels) - 1)
        except ValueError:
            reason = f"has `{shown(line.strip())}` in line {number}, which is not a row of features"
            raise UnreadableFile("E316", reason, _REMEDY) from None
        if columns and min(columns[-len(words) :]) < 0:
            raise UnreadableFile("E316", f"has the index 0 in line {number}", _REMEDY)
    shape = (len(labels), max(columns, default=-1) + 1)
    places = (np.array(rows, dtype=np.int64), np.array(columns, dtype=np.int64))
    return np.array(labels), StoredArray(np.array(values), places, shape)
