"""Files and JSON that the command line writes, and the exit codes."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from slomodel.errors import SlomodelError
from slomodel.solve.files import unwritable, written

BAD_INPUT, NOT_SOLVED, INTERRUPTED = 1, 3, 130
"""Exit codes."""


def check_target(path: Path) -> None:
    """Raise DomainError if no file can be written to `path`, as tested by a temporary one."""
    try:
        if path.exists() and not (path.is_file() and os.access(path, os.W_OK)):
            kind = "read-only" if path.is_file() else "not a plain file"
            raise unwritable(path, f"it is {kind}")
        with tempfile.NamedTemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise unwritable(path, error) from None


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 file atomically. Raises DomainError."""
    with written(path) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")


def save_arrays(path: Path, arrays: Mapping[str, NDArray[np.float64]]) -> None:
    """Write an npz file atomically, whatever the extension of `path`. Raises DomainError."""
    # Not numpy.savez, which takes array names as keywords: `file` is one of its parameters.
    with written(path) as partial, zipfile.ZipFile(partial, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def print_json(document: Mapping[str, object]) -> None:
    """Print one JSON document; numbers that are not finite must already be null."""
    click.echo(json.dumps(document, indent=2, allow_nan=False, ensure_ascii=True))


def error_document(error: SlomodelError) -> dict[str, object]:
    """An error as data: its text, and each diagnostic with its position."""
    return {
        "error": str(error),
        "messages": [diagnostic.facts() for diagnostic in error.diagnostics],
    }
