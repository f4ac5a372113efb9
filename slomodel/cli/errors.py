"""Invalid input, warnings and Ctrl-C, handled in the same way by every command."""

from __future__ import annotations

import errno
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import NoReturn, TextIO

import click

from slomodel.cli.outputs import BAD_INPUT, INTERRUPTED, error_document, print_json
from slomodel.errors import BackendWarning, ModelWarning, SlomodelError, StartWarning
from slomodel.model.evaluation import memory_ran_out


@contextmanager
def handled_errors(as_json: bool) -> Iterator[None]:
    """Turn errors into a message on standard error and exit code 1, Ctrl-C into exit code 130."""
    # A terminal that cannot display ‖∇f‖ gets a question mark, not a traceback.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        yield
    except SlomodelError as error:
        _report(error, as_json)
    except MemoryError as error:
        _report(memory_ran_out(error), as_json)
    except OSError as error:
        # Click exits silently when the reader of a pipe has closed it.
        if error.errno == errno.EPIPE:
            raise
        click.echo(f"error: cannot write the output: {error.strerror}", err=True)
        sys.exit(BAD_INPUT)
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        sys.exit(INTERRUPTED)


def _report(error: SlomodelError, as_json: bool) -> NoReturn:
    text = str(error)
    click.echo(text if text.startswith("error") else f"error: {text}", err=True)
    if as_json:
        print_json(error_document(error))
    sys.exit(BAD_INPUT)


@contextmanager
def shown_warnings() -> Iterator[None]:
    """Print each warning of slomodel once, as a message; leave other warnings as they are."""
    own = (ModelWarning, BackendWarning, StartWarning)
    shown: set[str] = set()
    with warnings.catch_warnings():
        others = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if not issubclass(category, own):
                others(message, category, filename, lineno, file, line)
                return
            text = str(message) if issubclass(category, ModelWarning) else f"warning: {message}"
            if text not in shown:
                shown.add(text)
                click.echo(text, err=True)

        for category in own:
            warnings.simplefilter("always", category)
        warnings.showwarning = show
        yield
