"""The regression problems of `data/nist`, in the language."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import slomodel

_FOLDER = Path(__file__).parent / "data" / "nist"
NAMES = sorted(path.stem for path in _FOLDER.glob("*.json"))


@cache
def recorded(name: str) -> dict[str, Any]:
    """Model, data, starts and certified values as the file has them."""
    problem: dict[str, Any] = json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return problem


@cache
def model_of(name: str, of_y: float = 1.0, of_b: float = 1.0) -> slomodel.Model:
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
