"""The examples of the README: models compile, Python runs, and solves what it says."""

import re
from pathlib import Path

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


@pytest.mark.parametrize("code", blocks("python"))
def test_python_runs(
    code: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    space: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), space)
    solution = space["solution"]
    assert isinstance(solution, slomodel.Solution)
    assert solution.success
    np.testing.assert_allclose(solution.variables["x"], 1.0, atol=1e-4)
    printed = capsys.readouterr().out
    assert printed.startswith(f"{solution.status} {solution.fun}")


def test_models_named_on_the_command_line_exist() -> None:
    named = re.findall(r"slomodel \w+ (models/\w+\.slo)", README)
    assert len(named) >= 4
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_the_state_is_told_as_it_is() -> None:
    """What the README lists as absent is refused with a sentence, not half there."""
    model = slomodel.compile("var x[2] minimize sumsq(x)")
    absent = [
        lambda: model.bound_formula("L1"),
        lambda: model.solve(method="agp"),
        lambda: slomodel.compile("var x minimize x^2", backend="cupy"),
    ]
    for attempt in absent:
        with pytest.raises(slomodel.MissingRule, match=r"not (there yet|in this version)"):
            attempt()
