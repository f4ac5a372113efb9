"""`slomodel functions` and `slomodel methods`: lists of what is available."""

from __future__ import annotations

from collections.abc import Sequence

import click

from slomodel.cli.errors import handled_errors
from slomodel.cli.outputs import print_json
from slomodel.front.catalogue import FunctionEntry, catalogue, entries_of
from slomodel.solve import METHODS


@click.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def functions(name: str | None, as_json: bool) -> None:
    """List the functions of the language, or describe the function NAME.

    \b
    slomodel functions
    slomodel functions huber
    """
    with handled_errors(as_json):
        entries = entries_of(name) if name else catalogue()
        if as_json:
            print_json({"functions": [entry.facts() for entry in entries]})
        elif name:
            click.echo("\n\n".join(_in_full(entry) for entry in entries))
        else:
            click.echo(_listed([entry for entry in entries if entry.is_scalar], "By element"))
            arrays = [entry for entry in entries if not entry.is_scalar and not entry.text]
            click.echo(_listed(arrays, "Of arrays"))
            click.echo(_listed([entry for entry in entries if entry.text], "Log densities"))


def _listed(entries: Sequence[FunctionEntry], title: str) -> str:
    width = max(len(entry.signature) for entry in entries)
    lines = [f"  {entry.signature.ljust(width)}  {entry.meaning}" for entry in entries]
    return "\n".join([title, *lines])


def _in_full(entry: FunctionEntry) -> str:
    lines = [entry.signature, f"  {entry.meaning}"]
    if entry.is_scalar:
        unknown = "" if entry.has_bounds else "; bounds: unknown"
        facts = f"domain: {entry.domain}; smoothness: {entry.smoothness}{unknown}"
        lines.append(f"  elementwise; {facts}")
    if entry.text:
        lines += ["", entry.text]
    return "\n".join(lines)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def methods(as_json: bool) -> None:
    """List the methods of `slomodel solve`: meaning, requirements and options of each."""
    with handled_errors(as_json):
        if as_json:
            result = {
                name: {"what": m.what, "needs": m.needs, "options": list(m.options)}
                for name, m in METHODS.items()
            }
            print_json({"methods": result})
            return
        width = max(map(len, METHODS))
        for name, m in METHODS.items():
            click.echo(f"{name.ljust(width)}  {m.what}; needs {m.needs}")
            click.echo(f"{' ' * width}    {', '.join(m.options)}")
