"""The system's C compiler, and a cache of compiled libraries by their source.

The cache is a private directory of the user (mode 0700, owner checked, not a symbolic link). A
library is written under a temporary name and renamed, so that no process sees an incomplete one.
Without such a directory the libraries live for this process only.
"""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from slomodel.errors import Diagnostic, TargetLimit
from slomodel.user_cache import directory, is_own

FLAGS = (
    "-std=gnu11",
    "-O3",
    "-march=native",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    # A fifth of the compiler's time on long functions, for loads that loops have hoisted already.
    "-fno-gcse",
    "-fno-gcse-after-reload",
    # -O3 writes out loops of up to 200 instructions: a product with a matrix of 12 rows is then
    # scalar and takes 2.8 times as long, and the rests of loops over 76 steps take most of the
    # compiler's time (1.1 s, with 100 it is 0.4 s).
    "--param=max-completely-peeled-insns=100",
    "-fPIC",
    "-pthread",
    "-shared",
    "-w",
)
_WIDE = ("-mprefer-vector-width=512",) if platform.machine() in ("x86_64", "AMD64") else ()
"""By default gcc and clang use half of each register of AVX-512: exp takes 1.8 times as long."""
_LEVELS = (2, 1, 0)
_SECONDS = 120
_LONG_LOOP = re.compile(r"#pragma GCC ivdep\n *for \(.*\n(?:[^}\n]*\n){16}|= .*slo_min\(slo_max\(")
"""A loop of 16 statements, or one that limits a value from both sides: gcc 12 eliminates partial
redundancies by branches in such loops, and then does not vectorise them. Nor does it those in which
it splits or joins the paths of choices. In others, as of softmax, the options cost a fifth."""
_FLAT_LOOPS = ("-fno-tree-pre", "-fno-split-paths", "-fno-thread-jumps", "-fno-code-hoisting")
_VECTOR_LOOP = "#pragma GCC ivdep"
_LONG_TEXT, _VERY_LONG_TEXT = 200_000, 1_000_000
"""Characters from which -O1 is used for texts with few loops, and for all: -O3 takes 1.2 to 3 times
as long, 25 s of a million. It pays where there are loops, which -O1 does not vectorise: kernels of
bounds along rays, of 200,000 to 600,000 characters, are 1.7 to 36 times faster."""
_FEW_LOOPS = 10_000
"""Characters per loop of a text with few loops."""
_SCALAR = re.compile(r" *s\d+ = ")
_MOST_SCALARS = 500
"""Successive assignments to scalars from which gcc does not look for vectors among them: it takes
time with the square of their number (2.5 s of 2,000), and finds few in chains of numbers."""
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class _Begun:
    """A compilation in the background of process `parent`, and the file that it writes."""

    process: subprocess.Popen[bytes]
    made: Path
    parent: int

    def end(self) -> None:
        """Stop the compilation, if it still runs, and remove its file; not in a forked process."""
        if self.parent != os.getpid():
            return
        if self.process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.made.unlink(missing_ok=True)


_begun: dict[Path, _Begun] = {}
"""Compilations by the path of their library."""


def begin(text: str, single: bool, level: str = "") -> None:
    """Start to compile a text. A later `library` waits for it, and reports an error."""
    flags = flags_of(text, single, level)
    with _lock:
        for command in compilers()[:1]:
            path = _path(command, flags, text)
            if path in _begun or is_own(path):
                return
            handle, name = tempfile.mkstemp(suffix=".so", dir=path.parent)
            os.close(handle)
            call = _call(command, flags, Path(name), _LEVELS[0])
            nowhere = subprocess.DEVNULL
            with tempfile.TemporaryFile() as source:
                source.write(text.encode())
                source.seek(0)
                try:
                    process = subprocess.Popen(
                        call, stdin=source, stdout=nowhere, stderr=nowhere, start_new_session=True
                    )
                except OSError:
                    Path(name).unlink()
                    return
            _begun[path] = _Begun(process, Path(name), os.getpid())


def _finish(path: Path) -> None:
    """Wait for the compilation of a library, if one was begun."""
    begun = _begun.pop(path, None)
    if begun is None or begun.parent != os.getpid():
        return
    try:
        with suppress(subprocess.TimeoutExpired):
            if begun.process.wait(_SECONDS) == 0 and is_own(begun.made):
                begun.made.replace(path)
    finally:
        begun.end()


@atexit.register
def _end_all() -> None:
    while _begun:
        _begun.popitem()[1].end()


def library(text: str, single: bool, level: str = "") -> ctypes.CDLL:
    """The compiled text, optimised to a level. Raises TargetLimit if no compiler can compile it."""
    flags = flags_of(text, single, level)
    failed = missing()
    with _lock:
        for command in compilers():
            try:
                return _loaded(command, flags, text)
            except TargetLimit as limit:
                failed = limit
    raise failed


def is_compiled(text: str, single: bool) -> bool:
    """Whether the cache holds the library that the preferred compiler made of this text."""
    flags = flags_of(text, single)
    return any(is_own(_path(command, flags, text)) for command in compilers()[:1])


def flags_of(text: str, single: bool = False, level: str = "") -> tuple[str, ...]:
    """The options with which a text is compiled, by default with the level that suits it."""
    precision = ("-fsingle-precision-constant",) if single else ()
    loops = _FLAT_LOOPS if _LONG_LOOP.search(text) else ()
    if level or _is_too_long(text):
        last: tuple[str, ...] = (level or "-O1",)
    else:
        last = ("-fno-tree-slp-vectorize",) if _has_many_scalars(text) else ()
    return (*FLAGS, *_WIDE, *precision, *loops, *last)


def _is_too_long(text: str) -> bool:
    """Whether the optimisation of loops would take more time than it saves."""
    if len(text) <= _LONG_TEXT:
        return False
    has_few = text.count(_VECTOR_LOOP) * _FEW_LOOPS < len(text)
    return has_few or len(text) > _VERY_LONG_TEXT


def _has_many_scalars(text: str) -> bool:
    """Whether a C text computes a long run of scalars without a loop between them."""
    count = 0
    for line in text.splitlines():
        count = count + 1 if _SCALAR.match(line) else 0
        if count == _MOST_SCALARS:
            return True
    return False


def _path(command: str, flags: tuple[str, ...], text: str) -> Path:
    """The path in the user's cache of the library compiled from the text."""
    key = hashlib.sha256("\0".join([text, *flags, *_machine(command)]).encode()).hexdigest()[:32]
    return directory("kernels") / f"{key}.so"


def _loaded(command: str, flags: tuple[str, ...], text: str) -> ctypes.CDLL:
    path = _path(command, flags, text)
    _finish(path)
    if not is_own(path):
        _compile(command, flags, text, path)
    try:
        return ctypes.CDLL(str(path))
    except OSError:
        # Truncated by a full disk, or built for another system: compile once more.
        _compile(command, flags, text, path)
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise _limit(f"the compiled library cannot be loaded: {error}") from None


@cache
def compilers() -> tuple[str, ...]:
    """The paths of C compilers: those of $CC, cc, gcc and clang that exist."""
    if sys.platform == "win32":
        return ()
    wanted = os.environ.get("CC", "").split()
    result = (shutil.which(name) for name in (*wanted[:1], "cc", "gcc", "clang"))
    return tuple(dict.fromkeys(path for path in result if path is not None))


def missing() -> TargetLimit:
    """The error that says why target `c` is not available, with its remedy."""
    return _limit("no C compiler was found that works")


def _limit(message: str) -> TargetLimit:
    remedy = "install gcc (or name one in $CC), or use backend='numexpr'"
    return TargetLimit(Diagnostic("E801", message, help=remedy))


def _compile(command: str, flags: tuple[str, ...], text: str, path: Path) -> None:
    """Compile the library with the widest vector functions that this system links."""
    handle, name = tempfile.mkstemp(suffix=".so", dir=path.parent)
    os.close(handle)
    result = Path(name)
    try:
        for level in _LEVELS:
            try:
                _run(command, flags, text, result, level)
                break
            except TargetLimit:
                if level == _LEVELS[-1]:
                    raise
        result.replace(path)
    finally:
        result.unlink(missing_ok=True)


def _run(command: str, flags: tuple[str, ...], text: str, path: Path, level: int) -> None:
    try:
        code, errors = _ended(_call(command, flags, path, level), text)
    except subprocess.TimeoutExpired:
        raise _limit(f"the C compiler {command} took more than {_SECONDS} s") from None
    except OSError as error:
        raise _limit(f"the C compiler {command} cannot be run: {error}") from None
    if code:
        said = errors.strip().splitlines()
        raise _limit(f"the C compiler {command} failed: {said[0] if said else 'no message'}")
    if not is_own(path):
        raise _limit(f"the C compiler {command} produced no library")


def _call(command: str, flags: tuple[str, ...], path: Path, level: int) -> list[str]:
    """The command line that compiles its standard input, with vector functions of a level."""
    libraries = ["-lmvec", "-lm"] if level else ["-lm"]
    strict = ["-Wl,-z,defs"] if sys.platform == "linux" else []
    return [
        command,
        *flags,
        f"-DVECTOR_MATH={level}",
        *("-x", "c", "-", "-o", str(path)),
        *strict,
        *libraries,
    ]


def _ended(call: list[str], text: str) -> tuple[int, str]:
    """The exit status and the error output of a process; interruption kills its whole group."""
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
    """Everything that a library depends on besides its text: processor, system, compiler."""
    try:
        info = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        info = platform.processor()
    lines = (line for line in info.splitlines() if line.startswith(("flags", "Features", "model")))
    # One set of lines for all cores: those that differ between cores do not matter here.
    facts = sorted(set(lines))
    # Another version is another file; running it with --version would take longer.
    program = Path(command).resolve()
    known = program.stat()
    version = (str(program), str(known.st_size), str(known.st_mtime_ns))
    return (platform.platform(), *version, *facts)
