"""The user's folder of cached files: compiled kernels, and the tables of the parser."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
from functools import cache
from pathlib import Path


@cache
def directory(name: str) -> Path:
    """A folder of the user's cache that nobody else can write, or else one of this process."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = Path(home) / "slomodel" / name
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_private(path) and os.access(path, os.W_OK):
            return path
    except OSError:
        pass
    own = Path(tempfile.mkdtemp(prefix="slomodel-"))
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    return own


def is_own(path: Path) -> bool:
    """Whether a file exists, is regular and not empty, not a link, and belongs to this user."""
    try:
        result = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(result.st_mode) and result.st_uid == os.getuid() and result.st_size > 0


def _is_private(path: Path) -> bool:
    """Whether a path is a directory of this user, not a link, that only the user can access."""
    result = path.lstat()
    return (
        stat.S_ISDIR(result.st_mode)
        and result.st_uid == os.getuid()
        and not stat.S_IMODE(result.st_mode) & 0o077
    )
