"""Invalid files of starts, solutions and checkpoints: an error at once."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import slomodel
from slomodel.cli import main
from slomodel.errors import DomainError


def header(text: bytes) -> bytes:
    return np.lib.format.magic(1, 0) + len(text).to_bytes(2, "little") + text


@pytest.fixture(params=["pipe", "device", "folder", "loop", "brackets", "size", "pickle", "none"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    found = tmp_path / "x.npz"
    shape = b"{'descr': '<f8', 'fortran_order': False, 'shape': (%d,)}\n"
    make = {
        "pipe": lambda: os.mkfifo(found),
        "device": lambda: found.symlink_to("/dev/zero"),
        "folder": found.mkdir,
        "loop": lambda: found.symlink_to(found),
        "brackets": lambda: found.write_bytes(header(b"(" * 500 + b"\n")),
        "size": lambda: found.write_bytes(header(shape % 10**30)),
        "pickle": lambda: found.write_bytes(pickle.dumps(np.zeros(2))),
        "none": lambda: None,
    }
    make[request.param]()
    return found


def test_what_is_not_a_solution(path: Path) -> None:
    model = slomodel.compile("var x[2] minimize sumsq(x)", backend="numpy")
    for read in (slomodel.load_solution, lambda path: model.solve(resume=path)):
        with pytest.raises(DomainError, match=r"E601.*x\.npz(.|\n)* help: "):
            read(path)


def test_what_is_not_a_start(path: Path) -> None:
    model = path.with_name("m.slo")
    model.write_text("var x[2] minimize sumsq(x)")
    for command in (["solve", "--x0"], ["bounds", "--radius=1", "--at"]):
        told = CliRunner().invoke(main, [command[0], str(model), *command[1:], str(path)])
        assert told.exit_code == 1
        assert "error[E704]: cannot read the start" in told.stderr
        assert "\n help: give a file written by --out" in told.stderr
