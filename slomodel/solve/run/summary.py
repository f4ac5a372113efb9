"""A solution as a few lines of text."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap

import numpy as np
from numpy.typing import NDArray

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
_MOST_NAMED = 20


def summary(solution: Mapping[str, object]) -> str:
    """One line per field, as SciPy prints its results, with the variables by name if they are few.

    Long arrays are abbreviated.
    """
    rows = {name: solution[name] for name in _SHOWN}
    named = solution["variables"]
    if isinstance(named, Mapping) and 0 < len(named) <= _MOST_NAMED:
        rows = _with_variables(rows, named)
    indent = max(map(len, rows)) + 2
    lines = []
    for name, value in rows.items():
        text = _shown(value, _WIDTH - indent)
        lines.append(f"{name.rjust(indent - 2)}: {text[0]}")
        lines += [" " * indent + more for more in text[1:]]
    return "\n".join(lines)


def _with_variables(
    rows: Mapping[str, object], variables: Mapping[str, object]
) -> dict[str, object]:
    """The rows with those of the variables, by name, in place of the flat vectors."""
    result: dict[str, object] = {}
    for name, value in rows.items():
        if name == "x":
            result |= {f"variables[{key!r}]": array for key, array in variables.items()}
        elif name != "jac":
            result[name] = value
    return result


def abbreviated(array: NDArray[np.float64], width: int = _WIDTH) -> str:
    """The elements of an array as text, with `...` in place of most of them if there are many."""

    # NumPy rounds a single number to decimals, 1.05e-4 to 0.000105; six digits count.
    return np.array2string(
        array, max_line_width=width, formatter={"float_kind": _six_digits}, threshold=10
    )


def _six_digits(number: np.floating) -> str:
    return f"{number:.6g}"


def _shown(value: object, width: int) -> list[str]:
    if isinstance(value, np.ndarray):
        return abbreviated(value, width).splitlines()
    if isinstance(value, float):
        return [f"{value:.12g}"]
    return wrap(str(value), width) or [""]
