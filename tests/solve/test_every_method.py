"""Every method on hard starts: it ends with a truthful status."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from slomodel.solve import METHODS, Functions, solve

NIST = Path(__file__).parent.parent / "data" / "nist"
Array = NDArray[Any]
Value = Callable[[Array], Any]
# What a method cannot do without on plain functions.
NEEDED: dict[str, dict[str, object]] = {"bpg": {"L": 10.0, "p": 4}, "agp": {"max_iter": 100}}
# Their f may rise, so that they may end at a stationary point above the start.
FREE = ("ngd", "adgd")
FAILURES = {"max_iter", "max_nfev", "line_search_stalled"}


def rosenbrock(x: Array) -> Any:
    return 100.0 * (x[1] - x[0] ** 2) ** 2 + (1.0 - x[0]) ** 2


def exponentials(x: Array) -> Any:
    return np.exp(x[0]) + np.exp(-x[0])


def quartics(x: Array) -> Any:
    return np.sum(x**4)


def hard(x: Array) -> Any:
    """The paper's instance of Section 5 with Δ = 10, ε = 0.01, d = 4 and exponent 100, not 200."""
    far = 10.0 * 1e200

    def r(z: Any) -> Any:
        return 1.0 / (2.0 + np.log(1.0 + z * z))

    def slope(z: Any) -> Any:
        return -2.0 * z / (1.0 + z * z) * r(z) ** 2

    z = x[0]
    if z.real <= 1.0:
        g = r(1.0) + slope(1.0) * (z - 1.0)
    elif z.real < far - 1.0:
        g = r(z)
    else:
        a = -slope(far - 1.0) / 2.0
        g = a * (z - far) ** 2 + r(far - 1.0) - a
    return 10.0 * g + (z * z + 1.0) * x[1] ** 2


def regression(name: str) -> tuple[Value, list[list[float]]]:
    """RSS of a NIST problem, and its two starts."""
    problem = json.loads((NIST / f"{name}.json").read_text(encoding="utf-8"))
    t, y = np.array(problem["x"]), np.array(problem["y"])

    def misra(b: Array) -> Any:
        return np.sum((b[0] * (1.0 - np.exp(-b[1] * t)) - y) ** 2)

    def mgh(b: Array) -> Any:
        return np.sum((b[0] * (t**2 + t * b[1]) / (t**2 + t * b[2] + b[3]) - y) ** 2)

    return {"Misra1a": misra, "MGH09": mgh}[name], [start["b"] for start in problem["starts"]]


def gradient(f: Value, x: Array) -> Array:
    """∇f (n,) by the complex step."""
    n, h = len(x), 1e-150
    return np.array([f(x + 1j * h * e).imag / h for e in np.eye(n)])


def problems() -> dict[str, tuple[Value, list[float]]]:
    found: dict[str, tuple[Value, list[float]]] = {
        "rosenbrock": (rosenbrock, [-1.2, 1.0]),
        "exp from 300": (exponentials, [300.0]),
        "quartics from 1e5": (quartics, [1e5, -1e5, 5e4]),
        "the paper's": (hard, [0.0, 0.0]),
    }
    for name in ("Misra1a", "MGH09"):
        f, starts = regression(name)
        found |= {f"{name} {k}": (f, start) for k, start in enumerate(starts, 1)}
    return found


PROBLEMS = problems()


@pytest.mark.sampled(7)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_status_is_true(name: str, method: str) -> None:
    f, x0 = PROBLEMS[name]
    objective = Functions(lambda x: float(f(x).real), lambda x: gradient(f, x), len(x0))
    options: dict[str, Any] = {"max_iter": 1000, "max_nfev": 2000} | NEEDED.get(method, {})
    found = solve(objective, x0, method=method, **options)
    with np.errstate(all="ignore"):
        start, here = np.array(x0), gradient(f, found.x)
        size, first = float(np.linalg.norm(here)), float(f(start).real)
        steepness = float(np.linalg.norm(gradient(f, start)))
    assert found.fun == objective.value(found.x)
    assert found.fun <= first or (method in FREE and found.success)
    assert found.gradient_norm == pytest.approx(size, rel=1e-12)
    tolerance = 1e-6 * min(1.0, max(abs(first), steepness))
    assert (found.status == "converged") == (size < tolerance)
    if found.status == "precision":
        # Nothing is left that f could show: along −∇f its changes are its rounding errors.
        t = np.linspace(-1.0, 1.0, 9) * 1e-8 * max(1.0, float(np.linalg.norm(found.x)))
        values = [objective.value(found.x - s * here / size) for s in t]
        assert min(values) >= found.fun - 1e-9 * abs(found.fun)
    elif not found.success:
        assert found.status in FAILURES
