"""Files of arrays: written atomically, and read without executing anything."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slomodel.errors import Diagnostic, DomainError
from slomodel.solve.options import file_path

Array = NDArray[np.float64]


@contextmanager
def written(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary file beside `path` to write to; it replaces `path` on exit.

    Raises DomainError if the folder or the disk does not allow it.
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
    """The error for a file that cannot be written."""
    if isinstance(reason, FileNotFoundError):
        reason = f"there is no folder `{path.parent}`"
    elif isinstance(reason, OSError):
        reason = (reason.strerror or str(reason)).lower()
    remedy = "give a file in a folder that can be written to"
    return DomainError(Diagnostic("E705", f"cannot write `{path}`: {reason}", help=remedy))


def load(path: Path) -> Array | dict[str, Array]:
    """The array of an npy file, or those of an npz file by name; nothing is unpickled.

    Raises OSError if it cannot be read, ValueError if it is damaged or has another format.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):  # Opening a pipe would block.
        raise OSError(errno.EINVAL, "it is not a plain file")
    with path.open("rb") as file:
        try:
            loaded: Array | np.lib.npyio.NpzFile = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return loaded
            with loaded:
                return dict(loaded.items())
        except OSError:
            raise
        except Exception as error:  # NumPy parses the header as Python.
            raise ValueError("damaged") from error


def archive(path: str | os.PathLike[str], what: str, writer: str) -> dict[str, Array]:
    """The arrays of an npz file, described in errors by `what` and by its `writer`.

    Raises DomainError if it cannot be read.
    """
    file = file_path("path", path)
    try:
        result = load(file)
        return result if isinstance(result, dict) else {"a single array": np.zeros(0)}
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        message = f"cannot read `{os.fspath(path)}`: {reason}"
        remedy = f"give the path of a file written by {writer}"
        raise DomainError(Diagnostic("E601", message, help=remedy)) from None
    except ValueError:
        reason = "it is not a valid npz file"
        raise no_such_file(path, what, writer, reason) from None


def no_such_file(path: str | os.PathLike[str], what: str, writer: str, reason: str) -> DomainError:
    """The error for a file that is not of the requested kind."""
    message = f"`{os.fspath(path)}` is not {what}: {reason}"
    remedy = f"give a file written by {writer}"
    return DomainError(Diagnostic("E601", message, help=remedy))
