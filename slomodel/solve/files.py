"""Files written in one move: whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from slomodel.errors import Diagnostic, DomainError


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
