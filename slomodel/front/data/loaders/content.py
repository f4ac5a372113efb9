"""Result and error of the loaders, and common parts of the loaders of text."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

Raw: TypeAlias = NDArray[np.generic]
"""An array as stored in a file, of any numeric type."""

_WIDEST = 30
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers (rows, columns) from a file format that stores tables only.

    A single column may serve as a vector, a single number as a scalar. `names` are those of the
    columns, empty if the file has none.
    """

    values: Raw
    names: tuple[str, ...] = ()


Content: TypeAlias = Raw | Table


@dataclass(frozen=True, slots=True)
class StoredArray:
    """A sparse array of a shape: entry k is `values[k]` at `positions[0][k], positions[1][k], …`.

    All other elements are 0.
    """

    values: Raw
    positions: tuple[Raw, ...]
    shape: tuple[int, ...]


class UnreadableFile(Exception):
    """A file that cannot be read: `reason` completes a sentence about it; with the remedy."""

    def __init__(self, code: str, reason: str, remedy: str = "") -> None:
        Exception.__init__(self, reason)
        self.code = code
        self.reason = reason
        self.remedy = remedy


def text_of(file: BinaryIO, most_bytes: int) -> io.TextIOWrapper:
    """The text of a UTF-8 file, with or without a byte order mark; every line ends in `\\n`."""
    limit_bytes(file, most_bytes)
    refuse_utf16(file)
    return io.TextIOWrapper(file, encoding="utf-8-sig", newline=None)


def refuse_utf16(file: BinaryIO) -> None:
    """Raise UnreadableFile for UTF-16 text; rewind the file otherwise."""
    if file.read(2) in _UTF_16:
        raise not_utf8(" but UTF-16")
    file.seek(0)


def not_utf8(what: str = "") -> UnreadableFile:
    return UnreadableFile("E305", f"is not UTF-8 text{what}", "save it as UTF-8")


def limit_bytes(file: BinaryIO, most: int) -> int:
    """The size of a file, rewound to its start. Raises UnreadableFile above `most` bytes."""
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    if size > most:
        reason = f"has {in_bytes(size)}, and {in_bytes(most)} of text are read at most"
        raise UnreadableFile("E317", reason, "save the array with numpy.save or numpy.savez")
    return size


def in_bytes(size: int) -> str:
    """A number of bytes as text, in GB, MB or bytes."""
    for unit, name in ((10**9, "GB"), (10**6, "MB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size} bytes"


def missing_entry(kind: str, name: str, names: Sequence[str]) -> UnreadableFile:
    """The error for an array or column `name` that is not among `names`."""
    close = get_close_matches(name, names, n=1)
    guess = f"did you mean `{shown(close[0])}`? " if close else ""
    listed = ", ".join(f"`{shown(one)}`" for one in names[:10])
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    there = f"it holds {listed}{more}" if listed else "it is empty"
    return UnreadableFile("E304", f"has no {kind} `{shown(name)}`", guess + there)


def shown(text: str) -> str:
    """Text from a file as quoted in a message: on one line, and truncated."""
    plain = printable(text)
    return plain if len(plain) <= _WIDEST else plain[: _WIDEST - 1] + "…"


def printable(text: str) -> str:
    """The text on one line, with control characters replaced."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
