"""The group of commands, and what it answers to a name that is none of them."""

from __future__ import annotations

from difflib import get_close_matches

import click

from slomodel.errors import MissingRule

NOT_YET = {
    "report": "a page about a model and a run",
}


class Commands(click.Group):
    """Commands by name; an unknown one is answered with the nearest, or with the list."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name in self.commands or name.startswith("-"):
            return click.Group.resolve_command(self, ctx, args)
        if name in NOT_YET:
            return name, _absent(name), args[1:]
        raise click.UsageError(f"there is no command `{name}`; {self._remedy(name, args)}", ctx)

    def _remedy(self, name: str, args: list[str]) -> str:
        if name.endswith(".slo"):
            return f"to solve this model: slomodel solve {' '.join(args)}"
        near = get_close_matches(name, self.commands, n=1)
        if near:
            return f"did you mean `{near[0]}`?"
        return f"there are {', '.join(self.list_commands(click.Context(self)))}"


def _absent(name: str) -> click.Command:
    """A command of a later version: fails with a sentence, whatever its arguments are."""

    def fail() -> None:
        error = MissingRule(f"`slomodel {name}` ({NOT_YET[name]}) is not there yet")
        click.echo(f"error: {error}", err=True)
        raise SystemExit(1)

    anything = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(name, callback=fail, context_settings=anything, add_help_option=False)
