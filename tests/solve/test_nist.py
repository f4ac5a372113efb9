"""Nonlinear regression problems of NIST: certified parameters from both starts, also rescaled."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import slomodel

FOLDER = Path(__file__).parent.parent / "data" / "nist"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
# Values and parameters times these: a method must not depend on units.
SCALES = [(1.0, 1.0), (1.7, 3.0)]


@cache
def recorded(name: str) -> dict[str, Any]:
    problem: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return problem


@cache
def model_of(name: str, of_y: float, of_b: float) -> slomodel.Model:
    """The residual sum of squares, every parameter divided by `of_b`, the response times `of_y`."""
    problem = recorded(name)
    fitted = re.sub(r"\bx\b", "x[i]", problem["model"])
    fitted = re.sub(r"\b(b\d)\b", rf"(\1 / {of_b})", fitted)
    text = f"""
dim m
data x[m], y[m]
var {", ".join(problem["parameters"])}
minimize sum(({of_y} * ({fitted}) - y[i])^2 for i in m)
"""
    y = of_y * np.array(problem["y"])
    return slomodel.compile(text, data={"x": np.array(problem["x"]), "y": y})


def test_all_nine_are_here() -> None:
    assert len(NAMES) == 9


@pytest.mark.parametrize("name", NAMES)
def test_recorded_values_at_the_starts(name: str) -> None:
    for start in recorded(name)["starts"]:
        value, gradient = model_of(name, 1.0, 1.0).value_and_gradient(start["b"])
        assert value == pytest.approx(start["rss"], rel=1e-10)
        np.testing.assert_allclose(gradient, start["gradient"], rtol=1e-8)


@pytest.mark.parametrize("scales", SCALES, ids=["as given", "rescaled"])
@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("name", NAMES)
def test_certified_parameters(name: str, start: int, scales: tuple[float, float]) -> None:
    problem, (of_y, of_b) = recorded(name), scales
    x0 = of_b * np.array(problem["starts"][start]["b"])
    found = model_of(name, of_y, of_b).solve(x0=x0, direction="gauss-newton", gtol=1e-14)
    assert found.success, found.message
    certified = problem["certified"]
    np.testing.assert_allclose(found.x / of_b, certified["b"], rtol=1e-6)
    assert found.fun / of_y**2 == pytest.approx(certified["rss"], rel=1e-8)
