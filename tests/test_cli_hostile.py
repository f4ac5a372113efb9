"""The command line in the hands of somebody who has not read the manual."""

import re
import subprocess
import sys
from pathlib import Path

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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
@pytest.mark.parametrize("asked", [["--help"], ["fmt", "--help"], ["functions"]])
def test_output_that_cannot_be_written(asked: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "slomodel", *asked]
        told = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (told.returncode, told.stderr) == (
        1,
        "error: cannot write the output: No space left on device\n",
    )
