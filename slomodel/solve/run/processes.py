"""Numbered tasks in several processes, with the results in order of completion."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkContext, SpawnContext
from multiprocessing.process import BaseProcess
from typing import Generic, TypeVar

T = TypeVar("T")

# Seconds that interrupted tasks have to return their results.
GRACE = 10.0
FORKS = sys.platform == "linux"
MASKS = hasattr(signal, "pthread_sigmask")


class Pool(Generic[T]):
    """Worker processes that call `task(k)` for one number k after another.

    If the system can fork, they share the memory of this process, kernels and data included;
    otherwise `task` is pickled. Leaving the `with` block ends them. Inside it Ctrl-C interrupts the
    running tasks and no other is started; a second Ctrl-C abandons them.
    """

    def __init__(self, task: Callable[[int], T], workers: int) -> None:
        context = _context()
        self._bell, self._ring = context.Pipe(duplex=False)
        self._stopping = False
        self._given_up = False
        self._before: object = None
        self._busy: dict[Connection, int] = {}
        self._workers: dict[Connection, BaseProcess] = {}
        for _ in range(workers):
            here, there = context.Pipe()
            # A child closes its copies of the other pipes, so that their end of file is noticed.
            known = [*self._workers, here] if FORKS else []
            process = context.Process(target=_work, args=(task, there, known), daemon=True)
            with _interrupts_held():
                process.start()
            there.close()
            self._workers[here] = process

    def __enter__(self) -> Pool[T]:
        # Python allows handlers in the main thread only, and a handler set by others is respected.
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._on_interrupt)
        return self

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        for here, process in self._workers.items():
            here.close()
            if here in self._busy:
                process.terminate()
            process.join()
        self._bell.close()
        self._ring.close()

    def results(self, numbers: Iterable[int]) -> Iterator[tuple[int, T | None]]:
        """(k, result) in order of completion; None if the process died or the task was abandoned.

        Raises the exception that a task raised.
        """
        waiting = iter(numbers)
        for here in self._workers:
            self._hand_out(here, waiting)
        while self._busy and not self._given_up:
            ready = wait([self._bell, *self._busy], GRACE if self._stopping else None)
            if not ready:
                return
            if self._bell in ready:
                self._stop()
                waiting = iter(())
            for here in [one for one in self._busy if one in ready]:
                k, result, alive = self._received(here)
                if alive:
                    self._hand_out(here, waiting)
                yield k, result

    def _on_interrupt(self, number: int, frame: object) -> None:
        self._ring.send_bytes(b"stop")

    def _stop(self) -> None:
        """Interrupt the running tasks; the second time, abandon them."""
        self._bell.recv_bytes()
        self._given_up = self._stopping
        self._stopping = True
        for here in self._busy:
            process = self._workers[here]
            if process.pid is not None and process.is_alive():
                os.kill(process.pid, signal.SIGINT)

    def _hand_out(self, here: Connection, waiting: Iterator[int]) -> None:
        for k in waiting:
            self._busy[here] = k
            here.send(k)
            return

    def _received(self, here: Connection) -> tuple[int, T | None, bool]:
        k = self._busy.pop(here)
        try:
            result, error = here.recv()
        except (EOFError, OSError):
            return k, None, False
        if error is not None:
            raise error
        return k, result, True


def _context() -> ForkContext | SpawnContext:
    if FORKS:
        return multiprocessing.get_context("fork")
    return multiprocessing.get_context("spawn")


def _work(task: Callable[[int], T], there: Connection, others: list[Connection]) -> None:
    """The loop of a worker: receive numbers, send results, until the parent closes the pipe.

    Ctrl-C interrupts the running task, never the sending of its result; numbers that arrive later
    are answered with None.
    """
    interrupt = _Interrupt()
    signal.signal(signal.SIGINT, interrupt)
    if MASKS:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    for other in others:
        other.close()
    while True:
        try:
            there.send(_answer(task, there.recv(), interrupt))
        except (EOFError, OSError):
            return


class _Interrupt:
    """A handler that raises at most once, and only while that is permitted.

    Ctrl-C arrives twice: from the terminal and from the parent.
    """

    def __init__(self) -> None:
        self.came = False
        self.raises = False

    def __call__(self, number: int, frame: object) -> None:
        first, self.came = not self.came, True
        if first and self.raises:
            raise KeyboardInterrupt


def _answer(
    task: Callable[[int], T], k: int, interrupt: _Interrupt
) -> tuple[T | None, BaseException | None]:
    """(result, error) of a task; both None if it was interrupted."""
    answer: tuple[T | None, BaseException | None] = None, None
    try:
        try:
            interrupt.raises = True
            if not interrupt.came:
                answer = task(k), None
        except Exception as error:
            answer = None, error
        interrupt.raises = False
    except KeyboardInterrupt:  # the handler raises only once
        interrupt.raises = False
    return answer


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Block Ctrl-C while a process starts and has no handler yet."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if MASKS else set()
    try:
        yield
    finally:
        if MASKS:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
