"""Checks of option values; each error names the option, its range and the value."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Collection, Iterable
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from slomodel.errors import Diagnostic, DomainError, ShapeError
from slomodel.solve.hints import closest
from slomodel.solve.norms import Vector


def number(
    name: str, value: object, low: float, high: float = math.inf, *, closed: bool = False
) -> float:
    """A finite number in (low, high), or in [low, high] if `closed`."""
    # A check against `numbers.Real` takes as long as a small kernel.
    if type(value) is float or (
        isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
    ):
        x = float(value)
        inside = low <= x <= high if closed else low < x < high
        if inside and math.isfinite(x):
            return x
    brackets = "[]" if closed else "()"
    wanted = f"a number in {brackets[0]}{low:g}, {high:g}{brackets[1]}"
    if high == math.inf:
        wanted = f"a finite number {'≥' if closed else '>'} {low:g}"
    raise bad_value(name, wanted, value)


def whole(name: str, value: object, low: int) -> int:
    """An integer ≥ `low`."""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        count = int(value)
        if count >= low:
            return count
    raise bad_value(name, f"a whole number ≥ {low}", value)


def flag(name: str, value: object) -> bool:
    """True or False."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise bad_value(name, "True or False", value)


def choice(
    name: str,
    value: object,
    there: Collection[str],
    hint: str = "",
) -> str:
    """One of the names in `there`; `hint` is the remedy for another one, if known."""
    if isinstance(value, str) and value in there:
        return value
    raise bad_value(name, f"one of {listed(there)}", value, hint or closest(value, there))


def file_path(name: str, value: object) -> Path:
    """The path that is given as option `name`. Raises DomainError for anything else."""
    if isinstance(value, (str, os.PathLike)):
        return Path(value)
    raise bad_value(name, "the path of a file", value)


def bad_value(name: str, wanted: str, value: object, hint: str = "") -> DomainError:
    shown = repr(value)
    result = shown if len(shown) <= 60 else f"a {type(value).__name__}"
    remedy = hint or f"give {name} as {wanted}"
    return DomainError(
        Diagnostic("E602", f"{name}: expected {wanted}, found {result}", help=remedy)
    )


def listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def start_vector(x0: ArrayLike | None, n: int) -> Vector:
    """A float64 copy (n,) of x0, which may have any real type."""
    try:
        given = np.asarray(x0)
    except ValueError as error:
        raise bad_value("x0", f"{n} real numbers", x0) from error
    if given.dtype.kind not in "iufb":
        raise bad_value("x0", f"{n} real numbers", x0)
    if given.shape != (n,):
        raise ShapeError(
            Diagnostic(
                "E605",
                f"x0: expected shape ({n},), found {given.shape}",
                help="give one number for each element of the variables",
            )
        )
    return given.astype(np.float64)
