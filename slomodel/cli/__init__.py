"""The command line: `slomodel check | solve | bounds | codegen FILE …`."""

from slomodel.cli.bounding import bounds
from slomodel.cli.commands import main

main.add_command(bounds)

__all__ = ["main"]
