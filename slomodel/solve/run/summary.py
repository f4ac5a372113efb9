"""A solution as a few lines of text."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap

import numpy as np

_SHOWN = (
    "message",
    "success",
    "status",
    "fun",
    "gradient_norm",
    "x",
    "jac",
    "nit",
    "nfev",
    "njev",
    "method",
)
_WIDTH = 88


def summary(solution: Mapping[str, object]) -> str:
    """One line per field, as SciPy prints its results; long arrays are abbreviated."""
    indent = max(map(len, _SHOWN)) + 2
    lines = []
    for name in _SHOWN:
        text = _shown(solution[name], _WIDTH - indent)
        lines.append(f"{name.rjust(indent - 2)}: {text[0]}")
        lines += [" " * indent + more for more in text[1:]]
    return "\n".join(lines)


def _shown(value: object, width: int) -> list[str]:
    if isinstance(value, np.ndarray):
        text = np.array2string(value, max_line_width=width, precision=6, threshold=10)
        return text.splitlines()
    if isinstance(value, float):
        return [f"{value:.12g}"]
    return wrap(str(value), width) or [""]
