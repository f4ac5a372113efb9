"""The examples of the README: models compile, and the Python code runs as described."""

import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import slomodel

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    found = re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    assert found, f"the README has no {language} example"
    return found


@pytest.mark.parametrize("text", blocks("slo"))
def test_models_compile_and_have_the_gradient_of_their_value(text: str) -> None:
    model = slomodel.compile(text, dims={"n": 5})
    x, v = np.random.default_rng(0).standard_normal((2, model.n))
    slope = (model.value(x + 1e-6 * v) - model.value(x - 1e-6 * v)) / 2e-6
    assert model.gradient(x) @ v == pytest.approx(slope, rel=1e-7)


def test_the_model_shown_is_the_file() -> None:
    shown = blocks("slo")[0]
    name = shown.split()[1]
    file = (ROOT / "models" / f"{name}.slo").read_text(encoding="utf-8")
    assert file.endswith(shown)


Run = Callable[[str], dict[str, Any]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run an example as in the repository's folder, without leaving files there."""
    (tmp_path / "models").symlink_to(ROOT / "models", target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLOMODEL_BACKEND", raising=False)  # as for a user

    def executed(code: str) -> dict[str, Any]:
        space: dict[str, Any] = {}
        exec(compile(code, "README.md", "exec"), space)
        return space

    return executed


def test_the_first_example(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    solution = run(blocks("python")[0])["solution"]
    assert solution.success
    np.testing.assert_allclose(solution.variables["x"], 1.0, atol=1e-4)
    assert capsys.readouterr().out.startswith(f"{solution.status} {solution.fun}")


def test_the_example_of_the_python_interface(run: Run, tmp_path: Path) -> None:
    space = run(blocks("python")[1])
    model, solution, x, g = (space[name] for name in ("model", "solution", "x", "g"))
    assert solution.success
    # Measured without noise: the least value is 0, and SciPy starts at the same point.
    assert solution.fun < 1e-12
    assert space["newton"].fun == pytest.approx(0.0, abs=1e-8)
    assert space["curvature"] == pytest.approx(g @ model.hessian(x) @ g, rel=1e-12)
    np.testing.assert_allclose(space["found"].x, 1.0, atol=1e-4)
    np.testing.assert_allclose(space["banana"].x, 1.0, atol=1e-4)
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")
    kernels = runpy.run_path(str(tmp_path / "kernels.py"))
    y = np.load(tmp_path / "measured.npz")["y"]
    assert kernels["value"](x, {"A": space["A"], "y": y}) == space["f"]


def test_the_example_of_missing_numbers(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    space = run(blocks("python")[2])
    found = space["model"].solve().variables
    # Four numbers are known, and a product of this kind holds them all.
    fitted = np.outer(found["u"], found["v"])[space["known"]]
    np.testing.assert_allclose(fitted, [5, 3, 4, 1], atol=1e-6)
    assert float(capsys.readouterr().out) < 1e-12


def test_models_named_on_the_command_line_exist() -> None:
    named = re.findall(r"slomodel \w+ (models/\w+\.slo)", README)
    assert len(named) >= 4
    assert [name for name in named if not (ROOT / name).is_file()] == []
