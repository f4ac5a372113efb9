"""Runs the blocks of a page, in order and in one folder, and puts under each what it prints."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import warnings
from collections.abc import Iterator
from pathlib import Path

from click.testing import CliRunner

import slomodel
from slomodel.cli import main

_BLOCK = re.compile(
    r"^```(?P<language>\w*)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
_MOST_LINES = 40
NOT_RUN = {"text", ""}


def with_outputs(markdown: str, folder: Path) -> str:
    """The page with a block of text under every block that prints; raises where one fails.

    A block with a title is written to that file of `folder`. Blocks `slo` are compiled, blocks
    `python` share one module, and each line of a block `console` is a command of slomodel.
    """
    space: dict[str, object] = {}

    def shown(found: re.Match[str]) -> str:
        language, title, text = found["language"], found["title"], found["text"]
        if title:
            (folder / title).write_text(text, encoding="utf-8")
        if language == "slo":
            slomodel.compile(folder / title if title else text)
            return found[0]
        printed = io.StringIO()
        if language == "python":
            with contextlib.redirect_stdout(printed):
                exec(compile(text, "page", "exec"), space)
        elif language == "console":
            for line in text.splitlines():
                printed.write(_of_command(line))
        elif not title and language not in NOT_RUN:
            raise ValueError(f"a block in {language} is neither run nor a file")
        lines = printed.getvalue().rstrip().splitlines()
        if not lines:
            return found[0]
        if len(lines) > _MOST_LINES:
            lines = [*lines[:_MOST_LINES], "…"]
        return "\n".join([found[0], "", '```text title="prints"', *lines, "```"])

    with _inside(folder):
        return _BLOCK.sub(shown, markdown)


def _of_command(line: str) -> str:
    """What a line such as `$ slomodel check a.slo` prints."""
    words = shlex.split(line)
    if words[:2] != ["$", "slomodel"]:
        raise ValueError(f"not a command of slomodel: {line}")
    done = CliRunner().invoke(main, words[2:])
    if done.exit_code:
        raise ValueError(f"{line}: {done.output}")
    return done.stdout


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """With `folder` as the working directory, without warnings about models."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", slomodel.ModelWarning)
            yield
    finally:
        os.chdir(before)
