"""`slomodel fmt`: models rewritten in place, compared, or shown as a difference."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from difflib import unified_diff
from pathlib import Path

import click

from slomodel.cli.inputs import standard_input
from slomodel.cli.outputs import BAD_INPUT, write_text
from slomodel.errors import SlomodelError, SourceText
from slomodel.front.text.format import formatted
from slomodel.front.text.parse import read_source


def format_files(files: Sequence[Path], *, only_check: bool, show_diff: bool) -> int:
    """The exit code: 1 where a file is no model, or with `only_check` would change."""
    failed = differing = 0
    for path in files:
        try:
            source = SourceText(standard_input()) if str(path) == "-" else read_source(path)
            text = formatted(source)
        except SlomodelError as error:
            click.echo(str(error), err=True)
            failed += 1
            continue
        if str(path) == "-" and not (only_check or show_diff):
            sys.stdout.write(text)
        elif text != source.text:
            differing += 1
            _changed(path, source.text, text, only_check=only_check, show_diff=show_diff)
    return BAD_INPUT if failed or (only_check and differing) else 0


def _changed(path: Path, before: str, after: str, *, only_check: bool, show_diff: bool) -> None:
    if show_diff:
        lines = unified_diff(
            before.splitlines(),
            after.splitlines(),
            f"{path}",
            f"{path} in standard layout",
            lineterm="",
        )
        click.echo("\n".join(lines))
    if only_check:
        click.echo(f"{path} is not in standard layout (slomodel fmt {path})", err=True)
    elif not show_diff:
        write_text(path, after)
        click.echo(f"formatted {path}")
