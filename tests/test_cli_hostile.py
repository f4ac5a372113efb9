"""The command line as somebody uses it who reads no manual."""

import re

import pytest
from click.testing import CliRunner

from slomodel.cli import main

MODEL = "models/rosenbrock.slo"


@pytest.mark.parametrize(
    ("option", "command", "help_of"),
    [
        ("--target", "codegen", "codegen"),
        ("--backend", "solve", "report"),
        ("--dtype", "solve", "solve"),
    ],
)
def test_help_names_what_an_option_takes(option: str, command: str, help_of: str) -> None:
    told = CliRunner().invoke(main, [command, MODEL, "--set", "n=3", option, "nonsense"])
    assert told.exit_code == 1
    known = re.findall(r"\w+", told.stderr.split("expected one of ")[1].split(", found")[0])
    text = CliRunner().invoke(main, [help_of, "--help"]).stdout
    assert set(known) <= set(re.findall(r"\w+", text.split(f"{option} NAME")[1].split("  --")[0]))
