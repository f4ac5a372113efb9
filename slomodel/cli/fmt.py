"""`slomodel fmt`: models rewritten in place, compared, or shown as a difference."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path

import click

from slomodel.cli import options
from slomodel.cli.errors import handled_errors
from slomodel.cli.inputs import standard_input
from slomodel.cli.outputs import (
    BAD_INPUT,
    error_document,
    print_json,
    write_text,
)
from slomodel.errors import SlomodelError, SourceText
from slomodel.front.text.format import formatted
from slomodel.front.text.parse import read_source


@dataclass(frozen=True, slots=True)
class Formatter:
    """The treatment of each model; with `as_json` one document is printed at the end."""

    only_check: bool
    show_diff: bool
    as_json: bool
    results: list[dict[str, object]] = field(default_factory=list)

    def run(self, files: Sequence[Path]) -> int:
        """Format the files and return the exit code.

        It is 1 if a file is not a model or, with `only_check`, would change.
        """
        good = [self._one(path) for path in files]
        if self.as_json:
            print_json({"files": self.results})
        return 0 if all(good) else BAD_INPUT

    def _one(self, path: Path) -> bool:
        is_input = str(path) == "-"
        try:
            source = SourceText(standard_input()) if is_input else read_source(path)
            text = formatted(source)
        except SlomodelError as error:
            click.echo(str(error), err=True)
            self.results.append({"file": str(path), **error_document(error)})
            return False
        changed = text != source.text
        writes = not (self.only_check or self.show_diff)
        if is_input and writes and not self.as_json:
            sys.stdout.write(text)
        elif changed:
            self._changed(path, source.text, text, writes and not is_input)
        self.results.append({"file": str(path), "changed": changed, "text": text})
        return not (changed and self.only_check)

    def _changed(self, path: Path, before: str, after: str, writes: bool) -> None:
        if self.show_diff and not self.as_json:
            names = (f"{path}", f"{path} in standard layout")
            lines = unified_diff(before.splitlines(), after.splitlines(), *names, lineterm="")
            click.echo("\n".join(lines))
        if self.only_check:
            click.echo(f"{path} is not in standard layout (slomodel fmt {path})", err=True)
        if writes:
            write_text(path, after)
            if not self.as_json:
                click.echo(f"formatted {path}")


@click.command()
@options.given(options.FMT)
def fmt(files: tuple[Path, ...], only_check: bool, show_diff: bool, as_json: bool) -> None:
    """Write models in the standard layout: one statement per line, even spacing, same comments.

    FILE is a model, or - to read standard input and write standard output.

    \b
    slomodel fmt models/*.slo
    slomodel fmt --check --diff models/*.slo
    """
    with handled_errors(as_json):
        sys.exit(Formatter(only_check, show_diff, as_json).run(files))
