"""The system's C compiler, and a cache of compiled libraries by their source.

The cache is a directory of the user's own (mode 0700, owner checked, no symbolic link); a library
is written under another name and renamed, so that two processes never see half of one. Where
there is no such directory the libraries live for this process only.
"""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import os
import platform
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path

from slomodel.errors import Diagnostic, TargetLimit

FLAGS = (
    "-std=gnu11",
    "-O3",
    "-march=native",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-fPIC",
    "-pthread",
    "-shared",
    "-w",
)
_LEVELS = (2, 1, 0)
_SECONDS = 120
_LONG_TEXT = 200_000
"""Beyond so many characters the compiler's own time counts for more than what it saves."""
_lock = threading.Lock()


def library(text: str, single: bool) -> ctypes.CDLL:
    """The compiled text. Raises TargetLimit where no compiler can make it."""
    flags = _flags(text, single)
    failed = missing()
    with _lock:
        for command in compilers():
            try:
                return _loaded(command, flags, text)
            except TargetLimit as limit:
                failed = limit
    raise failed


def is_compiled(text: str, single: bool) -> bool:
    """Whether the first compiler has compiled the text before, so that it only has to be loaded."""
    flags = _flags(text, single)
    return any(_is_own(_path(command, flags, text)) for command in compilers()[:1])


def _flags(text: str, single: bool) -> tuple[str, ...]:
    precision = ("-fsingle-precision-constant",) if single else ()
    return (*FLAGS, *precision, *(("-O1",) if len(text) > _LONG_TEXT else ()))


def _path(command: str, flags: tuple[str, ...], text: str) -> Path:
    """Where the user's cache has the library that is compiled from the text."""
    key = hashlib.sha256("\0".join([text, *flags, *_machine(command)]).encode()).hexdigest()[:32]
    return _directory() / f"{key}.so"


def _loaded(command: str, flags: tuple[str, ...], text: str) -> ctypes.CDLL:
    path = _path(command, flags, text)
    if not _is_own(path):
        _compile(command, flags, text, path)
    try:
        return ctypes.CDLL(str(path))
    except OSError:
        # Cut off by a full disk, or made for another system: made again once.
        _compile(command, flags, text, path)
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise _limit(f"what the C compiler made cannot be loaded: {error}") from None


@cache
def compilers() -> tuple[str, ...]:
    """The paths of C compilers: $CC, cc, gcc and clang, as far as they are there."""
    if sys.platform == "win32":
        return ()
    wanted = os.environ.get("CC", "").split()
    found = (shutil.which(name) for name in (*wanted[:1], "cc", "gcc", "clang"))
    return tuple(dict.fromkeys(path for path in found if path is not None))


def missing() -> TargetLimit:
    """Why there is no target `c` here, and what helps."""
    return _limit("no C compiler was found that works")


def _limit(message: str) -> TargetLimit:
    remedy = "install gcc (or name one in $CC), or use backend='numexpr'"
    return TargetLimit(Diagnostic("E801", message, help=remedy))


def _compile(command: str, flags: tuple[str, ...], text: str, path: Path) -> None:
    """Make the library with the widest vector functions that this system links."""
    handle, name = tempfile.mkstemp(suffix=".so", dir=path.parent)
    os.close(handle)
    made = Path(name)
    try:
        for level in _LEVELS:
            try:
                _run(command, flags, text, made, level)
                break
            except TargetLimit:
                if level == _LEVELS[-1]:
                    raise
        made.replace(path)
    finally:
        made.unlink(missing_ok=True)


def _run(command: str, flags: tuple[str, ...], text: str, path: Path, level: int) -> None:
    libraries = ["-lmvec", "-lm"] if level else ["-lm"]
    strict = ["-Wl,-z,defs"] if sys.platform == "linux" else []
    call = [
        command,
        *flags,
        f"-DVECTOR_MATH={level}",
        *("-x", "c", "-", "-o", str(path)),
        *strict,
        *libraries,
    ]
    try:
        code, errors = _ended(call, text)
    except subprocess.TimeoutExpired:
        raise _limit(f"the C compiler {command} took over {_SECONDS} s") from None
    except OSError as error:
        raise _limit(f"the C compiler {command} cannot be run: {error}") from None
    if code:
        said = errors.strip().splitlines()
        raise _limit(f"the C compiler {command} failed: {said[0] if said else 'no message'}")
    if not _is_own(path):
        raise _limit(f"the C compiler {command} made nothing")


def _ended(call: list[str], text: str) -> tuple[int, str]:
    """The exit status and what was said. What is broken off takes the programs it runs along."""
    pipe = subprocess.PIPE
    run = subprocess.Popen(call, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
    with run:
        try:
            _, errors = run.communicate(text.encode(), timeout=_SECONDS)
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)
            raise
    return run.returncode, errors.decode(errors="replace")


@cache
def _machine(command: str) -> tuple[str, ...]:
    """What a library depends on besides its text: the processor, the system, the compiler."""
    try:
        info = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        info = platform.processor()
    lines = (line for line in info.splitlines() if line.startswith(("flags", "Features", "model")))
    # Every core says the same; some lines differ between cores in nothing that matters.
    facts = sorted(set(lines))
    # Another version is another file; asking it for its version would take longer.
    program = Path(command).resolve()
    known = program.stat()
    version = (str(program), str(known.st_size), str(known.st_mtime_ns))
    return (platform.platform(), *version, *facts)


@cache
def _directory() -> Path:
    """The user's cache, or a directory for this process alone."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = Path(home) / "slomodel" / "kernels"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_private(path) and os.access(path, os.W_OK):
            return path
    except OSError:
        pass
    own = Path(tempfile.mkdtemp(prefix="slomodel-"))
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    return own


def _is_private(path: Path) -> bool:
    """True for a real directory of this user that nobody else can enter."""
    found = path.lstat()
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid == os.getuid()
        and not stat.S_IMODE(found.st_mode) & 0o077
    )


def _is_own(path: Path) -> bool:
    """True for a library that is there, a real file, and this user's."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid() and found.st_size > 0
