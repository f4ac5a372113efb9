"""Objectives that are plain functions of x."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from slomodel.errors import Diagnostic, ShapeError
from slomodel.solve.facts import conforms
from slomodel.solve.norms import EPS, Vector
from slomodel.solve.objective import Objective, Precise
from slomodel.solve.options import bad_value


@dataclass(slots=True)
class Functions:
    """An objective defined by two plain functions of x (n,).

    `eps` is the coarsest rounding unit among the numbers that they have returned.
    """

    fun: Callable[[Vector], object]
    jac: Callable[[Vector], Vector]
    n: int
    eps: float = EPS

    def value(self, x: Vector) -> float:
        answer = self.fun(x)
        if not isinstance(answer, float):
            self._note_precision(answer)
        return scalar(answer)

    def _note_precision(self, answer: object) -> None:
        """Note the precision of a returned value; integers have none."""
        kind = getattr(answer, "dtype", None)
        if isinstance(kind, np.dtype) and kind.kind == "f":
            self.eps = max(self.eps, float(np.finfo(kind).eps))

    def value_and_gradient(self, x: Vector, out: Vector | None = None) -> tuple[float, Vector]:
        answer = self.jac(x)
        self._note_precision(answer)
        g = np.asarray(answer, dtype=np.float64)
        if g.shape != (self.n,):
            raise ShapeError(
                Diagnostic(
                    "E605",
                    f"jac(x): expected shape ({self.n},), found {g.shape}",
                    help="return one derivative for each element of x",
                )
            )
        if out is None:
            return self.value(x), g.copy()
        np.copyto(out, g)
        return self.value(x), out


def scalar(answer: object) -> float:
    """A number, or the element of a one-element array, as SciPy allows; else DomainError."""
    if isinstance(answer, float):
        return answer
    array = np.asarray(answer)
    if array.size != 1 or array.dtype.kind not in "iufb":
        raise bad_value("fun(x)", "a real number", answer)
    return float(array.item())


@dataclass(frozen=True, slots=True)
class CurvedFunctions:
    """Plain functions with a third, (x, v) -> the Hessian at x times v, all (n,)."""

    plain: Objective
    hessp: Callable[[Vector, Vector], Vector]

    @property
    def n(self) -> int:
        return self.plain.n

    @property
    def eps(self) -> float:
        return self.plain.eps if conforms(self.plain, Precise) else EPS

    def value(self, x: Vector) -> float:
        return self.plain.value(x)

    def value_and_gradient(self, x: Vector, out: Vector | None = None) -> tuple[float, Vector]:
        return self.plain.value_and_gradient(x, out)

    def hvp(self, x: Vector, v: Vector) -> Vector:
        return self.hessp(x, v)
