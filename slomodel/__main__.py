"""The command line: entry point of `python -m slomodel` and of the script `slomodel`."""

from __future__ import annotations

import gc
import os
import signal
import sys
from typing import NoReturn

_INTERRUPTED = 130


def main() -> None:
    """Load the commands and run the requested one.

    Ctrl-C while they load ends the process at once; there is nothing to save yet.
    """
    if sys.argv[1:] == ["--version"]:
        from slomodel import __version__

        print(f"slomodel {__version__}")
        return
    # A shell starts background jobs with Ctrl-C ignored; that is left as it is.
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interruptible:
        signal.signal(signal.SIGINT, _leave)
    # Loaded modules are never freed: collecting their cycles, now and at exit, would take 0.25 s.
    gc.disable()
    from slomodel.cli.group import load
    from slomodel.cli.group import main as commands

    if sys.argv[1:]:
        load(sys.argv[1])
    gc.freeze()
    gc.enable()
    if interruptible:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        commands()
    except OSError as error:  # Needed by --help, which is printed before a command begins.
        sys.exit(f"error: cannot write the output: {error.strerror}")


def _leave(number: int, frame: object) -> NoReturn:
    """Exit at once: an exception from a half-loaded library often surfaces as a different one."""
    os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, b"interrupted\n")
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
