"""`slomodel methods`: what a run can be made with."""

from __future__ import annotations

import click

from slomodel.cli.answering import answering
from slomodel.cli.outputs import print_json
from slomodel.solve import METHODS


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def methods(as_json: bool) -> None:
    """List the methods of `slomodel solve`: what each is, what it needs, its options."""
    with answering(as_json):
        if as_json:
            found = {
                name: {"what": m.what, "needs": m.needs, "options": list(m.options)}
                for name, m in METHODS.items()
            }
            print_json({"methods": found})
            return
        width = max(map(len, METHODS))
        for name, m in METHODS.items():
            click.echo(f"{name.ljust(width)}  {m.what}; needs {m.needs}")
            click.echo(f"{' ' * width}    {', '.join(m.options)}")
