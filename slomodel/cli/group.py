"""The group of commands, each loaded when it runs, and suggestions for unknown names."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module

import click

from slomodel import __version__

COMMANDS = {
    "bounds": ("bounds", "bounds", "Bound both Lipschitz constants over balls about a point."),
    "certify": ("certify", "certify", "Prove a critical point near a point, with error bars."),
    "check": ("commands", "check", "Report the errors of a model, or its names and sizes."),
    "codegen": ("commands", "codegen", "Write the kernels of a model as standalone source code."),
    "completion": ("new", "completion", "Print a script that completes commands in a shell."),
    "fmt": ("fmt", "fmt", "Write models in the standard layout."),
    "functions": ("listings", "functions", "List the functions of the language, or explain one."),
    "lsp": ("new", "lsp", "Serve an editor: diagnostics, hover, completion, renaming."),
    "methods": ("listings", "methods", "List the methods of solve, with their options."),
    "new": ("new", "new", "Write a commented model to start from, with a stub of its data."),
    "random-data": ("commands", "draw_data", "Write random data that a model accepts."),
    "report": ("report", "report", "Write a page about a model and a run: one HTML file."),
    "schema": ("new", "schema", "Print the JSON schema of a command's --json output."),
    "solve": ("commands", "solve", "Minimise or maximise a model and print the result."),
}
"""Each command with its module, its name there, and its line in the list of commands.

A module is imported when its command runs, so that --help needs no numerical library.
"""


def load(name: str) -> click.Command | None:
    """Import the command of this name with the libraries that it needs."""
    if name not in COMMANDS:
        return None
    module, attribute, _ = COMMANDS[name]
    command: object = getattr(import_module(f"slomodel.cli.{module}"), attribute)
    assert isinstance(command, click.Command)
    return command


class Commands(click.Group):
    """Commands by name; the error for an unknown name suggests the closest one or lists all."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return load(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][2]) for name in self.list_commands(ctx)])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name in COMMANDS or name.startswith("-"):
            return click.Group.resolve_command(self, ctx, args)
        raise click.UsageError(f"there is no command `{name}`; {self._remedy(name, args)}", ctx)

    def _remedy(self, name: str, args: list[str]) -> str:
        if name.endswith(".slo"):
            return f"to solve this model: slomodel solve {' '.join(args)}"
        near = get_close_matches(name, COMMANDS, n=1)
        if near:
            return f"did you mean `{near[0]}`?"
        return f"there are {', '.join(self.list_commands(click.Context(self)))}"


_NAMES = {"help_option_names": ["-h", "--help"]}


@click.group(cls=Commands, context_settings=_NAMES)
@click.version_option(__version__, prog_name="slomodel", message="%(prog)s %(version)s")
def main() -> None:
    """Check and minimise models written as .slo text.

    \b
    model rosenbrock
    dim  n
    var  x[n] init -1.2
    minimize sum(100 * (x[i+1] - x[i]^2)^2 + (1 - x[i])^2 for i in range(n - 1))

    \b
    slomodel check rosenbrock.slo
    slomodel solve rosenbrock.slo --set n=10
    slomodel solve fit.slo --data A=a.npy --data y=y.npy --plot run.png --out run.npz
    slomodel solve fit.slo --data A=a.npy --data y=y.npy --x0 run.npz --json
    slomodel codegen rosenbrock.slo --set n=10 -o rosenbrock.py
    slomodel functions huber
    slomodel report rosenbrock.slo --set n=10 -o rosenbrock.html

    Exit codes: 0 success, 1 error in the input, 2 error in the command line; `slomodel solve
    --help` lists those of `solve`.
    """
