"""Objectives in plain Python for the solver tests, and the recorded runs."""

import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from slomodel.solve import Functions

Vector = NDArray[np.float64]
TRACES = Path(__file__).parent.parent / "data" / "solver_traces"


@cache
def traces() -> dict[str, Any]:
    """The recorded runs: problems, conventions, and the cases of every method."""
    data: dict[str, Any] = json.loads((TRACES / "problems.json").read_text(encoding="utf-8"))
    files = sorted(path for path in TRACES.glob("*.json") if path.name != "problems.json")
    found = (json.loads(path.read_text(encoding="utf-8")) for path in files)
    data["cases"] = [case for of_method in found for case in of_method]
    return data


def cases(method: str) -> list[dict[str, Any]]:
    return [case for case in traces()["cases"] if case["method"] == method]


@cache
def recorded_problem(name: str) -> Functions:
    """A problem of the recorded runs, its gradient by SymPy."""
    problem = traces()["problems"][name]
    names = sp.symbols(problem["variables"])
    expr = sp.sympify(problem["expr"], dict(zip(problem["variables"], names, strict=True)))
    f = sp.lambdify([names], expr, "numpy")
    g = sp.lambdify([names], [sp.diff(expr, v) for v in names], "numpy")
    return Functions(f, lambda x: np.array(g(x), dtype=np.float64), len(names))


def recorded_constants(name: str) -> Callable[[Vector, float], tuple[float, float]]:
    """L1 and L2 over a ball, as recorded for a problem: expressions in the centre and radius."""
    problem = traces()["problems"][name]
    known = {f: getattr(math, f) for f in ("sqrt", "exp", "log", "cosh", "sinh")}
    known |= {"abs": abs, "max": max, "__builtins__": {}}

    def constants(centre: Vector, radius: float) -> tuple[float, float]:
        names = known | {"c": centre.tolist(), "r": radius, "nc": math.hypot(*centre)}
        return eval(problem["L1"], names), eval(problem["L2"], names)

    return constants


def elementwise(
    fun: Callable[[Vector], Vector], jac: Callable[[Vector], Vector], n: int
) -> Functions:
    """Sum over the elements of x (n,)."""
    return Functions(lambda x: float(np.sum(fun(x))), jac, n)


def parabola(centre: float = 1.5, n: int = 2, scale: float = 1.0, offset: float = 0.0) -> Functions:
    """offset + scale·Σ(x − centre)²."""
    return Functions(
        lambda x: offset + scale * float(np.sum((x - centre) ** 2)),
        lambda x: scale * 2.0 * (x - centre),
        n,
    )


def rosenbrock() -> Functions:
    return recorded_problem("rosenbrock")


class Counting:
    """An objective that counts its calls and keeps a log of (kind, x)."""

    def __init__(self, inner: Functions) -> None:
        self.inner = inner
        self.n = inner.n
        self.values = 0
        self.gradients = 0
        self.last_gradient_at: Vector | None = None

    def value(self, x: Vector) -> float:
        self.values += 1
        return self.inner.value(x)

    def value_and_gradient(self, x: Vector, out: Vector | None = None) -> tuple[float, Vector]:
        self.gradients += 1
        self.last_gradient_at = x.copy()
        return self.inner.value_and_gradient(x, out)
