"""Wheel, editable install and plain checkout: each finds the grammar and solves a model."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOLVE = """
import sys
import slomodel
model = slomodel.compile("var x[2] init 0 minimize sum((x[i] - 1)^2 for i in 2)")
assert abs(model.solve().x - 1).max() < 1e-5
print(slomodel.__file__)
"""


def solved_in(folder: Path, *paths: Path) -> Path:
    """Where slomodel came from in a process that sees it only under `paths`."""
    command = [sys.executable, "-P", "-c", f"import sys; sys.path[:0] = {list(map(str, paths))!r}"]
    command[-1] += SOLVE
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


def test_the_wheel_is_complete(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path)
    assert "slomodel/grammar/slo.lark" in names
    assert "slomodel/py.typed" in names
    for folder in ("models", "slomodel/templates", "slomodel/schemas"):
        inside = folder if folder.startswith("slomodel") else f"slomodel/{folder}"
        for path in (ROOT / folder).rglob("*.*"):
            if path.is_file() and path.suffix in (".slo", ".csv", ".json", ".npz"):
                assert f"{inside}/{path.relative_to(ROOT / folder)}" in names
    modules = {str(p.relative_to(ROOT)) for p in (ROOT / "slomodel").rglob("*.py")}
    assert modules <= set(names)
    assert not any(name.startswith(("tests", "models", "benchmarks")) for name in names)
    assert solved_in(tmp_path, tmp_path) == tmp_path / "slomodel" / "__init__.py"


def test_a_plain_checkout(tmp_path: Path) -> None:
    assert solved_in(tmp_path, ROOT) == ROOT / "slomodel" / "__init__.py"


def test_an_editable_install_is_this_checkout(tmp_path: Path) -> None:
    direct = distribution("slomodel").read_text("direct_url.json")
    if direct is None or '"editable": true' not in direct:
        pytest.skip("slomodel is not installed editable in this environment")
    assert solved_in(tmp_path) == ROOT / "slomodel" / "__init__.py"
