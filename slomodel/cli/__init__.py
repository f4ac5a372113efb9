"""The command line: `slomodel check | solve | bounds | codegen FILE …`."""

from slomodel.cli.group import main

__all__ = ["main"]
