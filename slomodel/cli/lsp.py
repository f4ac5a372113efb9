"""`slomodel lsp`: a language server on standard input and output, for editors."""

from __future__ import annotations

import sys

import click

from slomodel.errors import Diagnostic, DomainError


@click.command()
def lsp() -> None:
    """Serve an editor through the language server protocol, on standard input and output.

    Diagnostics are the messages of `slomodel check`; hover, completion, definitions, renaming,
    formatting and an outline are available. It needs the package pygls: pip install
    'slomodel[lsp]'.
    """
    try:
        from slomodel.cli.language_server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        message = "a language server needs the package `pygls`"
        remedy = "install it with `pip install 'slomodel[lsp]'`"
        raise DomainError(Diagnostic("E801", message, help=remedy)) from None
    sys.exit(serve(sys.stdin.buffer, sys.stdout.buffer))
