"""Files of arrays: written in one move, whole or not at all, and read with nothing run."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slomodel.errors import Diagnostic, DomainError

# What NumPy raises for files that are no archive of arrays, or a broken one.
_DAMAGED = (ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error)


@contextmanager
def written(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A file beside `path` to write to, which takes its place at the end.

    Raises DomainError where the folder or the disk does not allow it.
    """
    target = Path(path)
    partial = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        yield partial
        partial.replace(target)
    except OSError as error:
        raise unwritable(target, error) from None
    finally:
        if partial.parent.is_dir():
            partial.unlink(missing_ok=True)


def unwritable(path: Path, reason: OSError | str) -> DomainError:
    """The error of a file that cannot be written."""
    if isinstance(reason, FileNotFoundError):
        reason = f"there is no folder `{path.parent}`"
    elif isinstance(reason, OSError):
        reason = (reason.strerror or str(reason)).lower()
    remedy = "give a file in a folder that can be written to"
    return DomainError(Diagnostic("E705", f"cannot write `{path}`: {reason}", help=remedy))


def archive(path: str | os.PathLike[str], what: str, writer: str) -> dict[str, NDArray[np.float64]]:
    """The arrays of an npz file, which should be `what` and was written by `writer`.

    Raises DomainError where it cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            loaded: object = np.load(file, allow_pickle=False)
            if not isinstance(loaded, np.lib.npyio.NpzFile):
                return {"a single array": np.zeros(0)}
            with loaded:
                return dict(loaded.items())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        message = f"cannot read `{os.fspath(path)}`: {reason}"
        remedy = f"give the path of a file written by {writer}"
        raise DomainError(Diagnostic("E601", message, help=remedy)) from None
    except _DAMAGED:
        reason = "it is no npz file, or a damaged one"
        raise no_such_file(path, what, writer, reason) from None


def no_such_file(path: str | os.PathLike[str], what: str, writer: str, reason: str) -> DomainError:
    """The error of a file that is something else than was asked for."""
    message = f"`{os.fspath(path)}` is not {what}: {reason}"
    remedy = f"give a file written by {writer}"
    return DomainError(Diagnostic("E601", message, help=remedy))
