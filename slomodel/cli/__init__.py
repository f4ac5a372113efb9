"""The command line: `slomodel check | solve | codegen FILE …`."""

from slomodel.cli.commands import main

__all__ = ["main"]
