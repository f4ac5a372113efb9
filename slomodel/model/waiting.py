"""A line on a terminal during a long call: the current task and the elapsed seconds."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

PATIENCE = 1.0
"""Seconds after which the line appears."""

_busy = threading.Lock()


def _is_worker() -> bool:
    """Whether this is a process that another one started; that one shows the line."""
    # Imported where it is needed: `slomodel check` starts faster without it.
    import multiprocessing

    return multiprocessing.parent_process() is not None


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Within the block, show `what` and the elapsed seconds on standard error, if it is a terminal.

    The line appears after `PATIENCE` and is erased at the end, also after an error or Ctrl-C. There
    is only one line at a time: nested blocks and worker processes show none.
    """
    stream = sys.stderr
    if stream is None or not stream.isatty() or _is_worker():
        yield
        return
    if not _busy.acquire(blocking=False):
        yield
        return
    ended = threading.Event()
    shower = threading.Thread(target=_show, args=(what, stream, ended), daemon=True)
    try:
        shower.start()
        yield
    finally:
        ended.set()
        shower.join()
        _busy.release()


def _show(what: str, stream: TextIO, ended: threading.Event) -> None:
    width, seconds = 0, PATIENCE
    while not ended.wait(PATIENCE if not width else 1.0):
        line = f"{what}: {seconds:.0f} s"
        width = max(width, len(line))
        stream.write(f"\r{line}")
        stream.flush()
        seconds += 1.0
    if width:
        stream.write(f"\r{' ' * width}\r")
        stream.flush()
