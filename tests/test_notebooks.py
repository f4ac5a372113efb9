"""The notebooks of examples run, and their objects are displayed as tables and pictures."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pytest

nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

FOLDER = Path(__file__).parent.parent / "examples" / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))


@cache
def executed(name: str) -> Any:
    """A notebook after all its cells have run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import nbformat

        notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
        nbclient.NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    return notebook


def displays(name: str) -> list[dict[str, Any]]:
    """The bundles that the cells display, in order."""
    cells = [cell for cell in executed(name).cells if cell.cell_type == "code"]
    outputs = [output for cell in cells for output in cell.outputs]
    return [dict(output.data) for output in outputs if "data" in output]


@pytest.mark.filterwarnings("ignore")
def test_a_regression() -> None:
    first, progress, *shown = displays("regression")
    # The line of progress is empty once the run has ended.
    assert progress == {"text/plain": ""}
    assert "<math" in first["text/html"]
    solution, fit, numbers = shown
    assert "<polyline" in solution["text/html"]
    assert "u[south]" in fit["text/html"]
    assert "text/html" not in numbers


@pytest.mark.filterwarnings("ignore")
def test_bounds_certificates_and_sweeps() -> None:
    model, certificate, bounds, point, sweep = displays("bounds")
    assert "<math" in model["text/html"]
    assert "inequality" in certificate["text/html"]
    assert "certified" in bounds["text/html"]
    assert "critical point" in point["text/html"]
    assert "<polyline" in sweep["text/html"]
    assert sweep["text/html"].count("<tr>") == 5


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_are_stored_without_outputs(name: str) -> None:
    import nbformat

    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)
