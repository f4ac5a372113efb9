"""The start of a run, from whatever a caller holds."""

from __future__ import annotations

import os

from slomodel.errors import Diagnostic, DomainError
from slomodel.front.data.vectors import Point, Vector, Vectors
from slomodel.solve import Solution


def start_point(x0: Point | Solution, vectors: Vectors) -> Vector:
    """The vector (n,) of a start: a vector, named arrays or the point of a Solution.

    Raises DomainError or ShapeError, with the call that was probably meant.
    """
    if isinstance(x0, Solution):
        return vectors.vector(x0.x, "x0")
    if isinstance(x0, str | os.PathLike):
        remedy = f"read it first: x0=slomodel.load_solution({os.fspath(x0)!r})"
        raise _no_start("a text", remedy)
    if callable(x0):
        name = getattr(x0, "__name__", "it")
        raise _no_start("a function", f"call it, as in x0=model.{name}()")
    return vectors.vector(x0, "x0")


def _no_start(found: str, remedy: str) -> DomainError:
    message = f"x0: expected real numbers, named arrays or a Solution, found {found}"
    return DomainError(Diagnostic("E602", message, help=remedy))
