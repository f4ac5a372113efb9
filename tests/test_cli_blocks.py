"""`slomodel solve` with data in folders of blocks."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import slomodel
from slomodel.cli import main

TEXT = "dim N, p data A[N, p], y[N] var w[p] init 0 minimize sumsq(A @ w - y) / N + sumsq(w)\n"


def test_folders_of_blocks(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    (tmp_path / "fit.slo").write_text(TEXT)
    for name, array in (("A", A), ("y", y)):
        (tmp_path / name).mkdir()
        for k, part in enumerate(np.array_split(array, 4)):
            np.save(tmp_path / name / f"{k}.npy", part)
    out = tmp_path / "run.npz"
    command = ["solve", str(tmp_path / "fit.slo"), "--gtol", "1e-9", "--out", str(out)]
    command += ["--data", f"A={tmp_path / 'A'}", "--data", f"y={tmp_path / 'y'}"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    whole = slomodel.compile(TEXT, data={"A": A, "y": y}).solve(gtol=1e-9)
    np.testing.assert_allclose(slomodel.load_solution(out).x, whole.x, atol=1e-8)


def test_dask_is_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    (tmp_path / "m.slo").write_text("var x[2] minimize sumsq(x)\n")
    command = ["solve", str(tmp_path / "m.slo"), "--starts", "2", "--dask", "local:2"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 1
    assert "pip install slomodel[dask]" in result.stderr
