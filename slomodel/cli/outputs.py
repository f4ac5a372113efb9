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

from slomodel.errors import Diagnostic, DomainError, SlomodelError

BAD_INPUT, NOT_SOLVED, INTERRUPTED = 1, 3, 130
"""Exit codes."""


def check_target(path: Path) -> None:
    """Raises DomainError where a file could not be written to `path`; leaves nothing there."""
    try:
        if path.exists() and not (path.is_file() and os.access(path, os.W_OK)):
            kind = "read-only" if path.is_file() else "not a plain file"
            raise unwritable(path, f"it is {kind}")
        with tempfile.NamedTemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise unwritable(path, error) from None


def unwritable(path: Path, reason: OSError | str) -> DomainError:
    """The error of a file that cannot be written."""
    if isinstance(reason, FileNotFoundError):
        reason = f"there is no folder `{path.parent}`"
    elif isinstance(reason, OSError):
        reason = (reason.strerror or str(reason)).lower()
    remedy = "give a file in a folder that can be written to"
    return DomainError(Diagnostic("E705", f"cannot write `{path}`: {reason}", help=remedy))


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 file in one move; DomainError where that fails."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        partial.write_text(text, encoding="utf-8", newline="\n")
        partial.replace(path)
    except OSError as error:
        raise unwritable(path, error) from None
    finally:
        partial.unlink(missing_ok=True)


def save_arrays(path: Path, arrays: Mapping[str, NDArray[np.float64]]) -> None:
    """Write an npz file in one move, whatever its ending; DomainError where that fails."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        # An own archive: numpy.savez takes array names as keywords, and `file` is one of its own.
        with zipfile.ZipFile(partial, "w") as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
        partial.replace(path)
    except OSError as error:
        raise unwritable(path, error) from None
    finally:
        partial.unlink(missing_ok=True)


def print_json(document: Mapping[str, object]) -> None:
    """One document on standard output; a number that is not finite must be null already."""
    click.echo(json.dumps(document, indent=2, allow_nan=False, ensure_ascii=True))


def error_document(error: SlomodelError) -> dict[str, object]:
    """What went wrong, as data: the whole text, and each message with its place."""
    return {
        "error": str(error),
        "messages": [
            {
                "code": one.code,
                "message": one.message,
                "file": one.span.source.name if one.span else None,
                "line": one.span.line if one.span else None,
                "column": one.span.column if one.span else None,
                "help": one.help,
            }
            for one in error.diagnostics
        ],
    }
