"""The commands about a model's text and data: fmt and random-data."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from slomodel.cli import main

UGLY, NEAT = "var x;minimize x^2# c", "var  x\nminimize x^2  # c\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ugly.slo").write_text(UGLY, encoding="utf-8")
    Path("neat.slo").write_text(NEAT, encoding="utf-8")
    Path("wrong.slo").write_text("var x minimize 2x", encoding="utf-8")


def run(*arguments: str, text: str | None = None) -> Result:
    result = CliRunner().invoke(main, arguments, input=text)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def test_fmt_writes_what_changes() -> None:
    result = run("fmt", "ugly.slo", "neat.slo")
    assert (result.exit_code, result.stdout) == (0, "formatted ugly.slo\n")
    assert Path("ugly.slo").read_text(encoding="utf-8") == NEAT


def test_fmt_check_writes_nothing() -> None:
    result = run("fmt", "--check", "ugly.slo", "neat.slo")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "ugly.slo is not in standard layout (slomodel fmt ugly.slo)\n"
    assert Path("ugly.slo").read_text(encoding="utf-8") == UGLY
    assert run("fmt", "--check", "neat.slo").exit_code == 0


def test_fmt_diff_writes_nothing() -> None:
    result = run("fmt", "--diff", "ugly.slo")
    assert result.exit_code == 0
    changed = {"-var x;minimize x^2# c", "+var  x", "+minimize x^2  # c"}
    assert changed <= set(result.stdout.split("\n"))
    assert Path("ugly.slo").read_text(encoding="utf-8") == UGLY


def test_fmt_goes_on_after_a_mistake() -> None:
    result = run("fmt", "wrong.slo", "none.slo", "ugly.slo")
    assert (result.exit_code, result.stdout) == (1, "formatted ugly.slo\n")
    assert "wrong.slo:1:17" in result.stderr
    assert "cannot read `none.slo`" in result.stderr


def test_fmt_of_standard_input() -> None:
    assert run("fmt", "-", text=UGLY).stdout == NEAT
