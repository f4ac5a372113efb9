"""Runs on the hard instance of Section 5, d = 4, and lines fitted to their costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from protocol import MODELS, Watch
from scipy.stats import linregress

import slomodel

Array = NDArray[np.float64]
DEGREE = 4
# The largest |r''| and |r'''| of r(t) = 1/(2 + log(1 + t²)) on t ≥ 1, rounded up.
R2, R3 = 0.11, 0.08
TOLERANCES = tuple(0.1 * 2.0 ** (-k / 2) for k in range(21))
"""√ε, from 0.1 to 1e-4."""
# Below this the curvature of r at small x hardly matters.
SMALL = 0.05
HEADER = "method", "start", "least √ε", "exponent of ε", "theory", "exponent of R_T"


@dataclass(frozen=True, slots=True)
class Reached:
    """A run that reached ‖∇f‖ < √ε: its evaluations, and its distance from 0."""

    method: str
    Delta: float
    tolerance: float
    evaluations: int
    radius: float


def over_ball(Delta: float) -> Callable[[Array, float], tuple[float, float]]:
    """L1 and L2 over the ball about a centre (2,), from the largest entries of each derivative.

    L2 is that of the pieces: across x1 = 1, where the Hessian jumps, none exists.
    """

    def constants(center: Array, radius: float) -> tuple[float, float]:
        x, y = np.abs(center) + radius
        hessian = np.array([[2.0 * y * y, 4.0 * x * y], [4.0 * x * y, 2.0 * x * x + 2.0]])
        L1 = Delta * R2 + float(np.linalg.norm(hessian, 2))
        return L1, Delta * R3 + 6.0 * float(np.hypot(x, y))

    return constants


def methods(Delta: float, tolerance: float) -> dict[str, Mapping[str, object]]:
    """Name → options. L of bpg: ‖∇²f(x)‖ ≤ 0.11Δ + 3(1 + ‖x‖²). L of gd: L1 over B(0, Δ/√ε)."""
    by_hand = over_ball(Delta)
    return {
        "gd": {"method": "gd", "L": by_hand(np.zeros(2), Delta / tolerance)[0]},
        "bpg": {"method": "bpg", "L": 3.0 + R2 * Delta, "p": DEGREE},
        "pgd": {"method": "pgd", "lipschitz": by_hand},
        "tgd": {"method": "tgd", "lipschitz": by_hand},
        "tgd certified": {"method": "tgd", "lipschitz": by_hand, "D": "auto"},
        "norm-armijo": {"method": "norm-armijo", "initial_step": "full"},
        "agp": {"method": "agp", "lipschitz": by_hand},
    }


@cache
def compiled(Delta: float) -> slomodel.Model:
    """The model with its kernels compiled, so that run times exclude that."""
    model = slomodel.compile(MODELS / "hard_instance.slo", data={"Delta": Delta})
    model.value_and_gradient(model.x0())
    return model


def measure(method: str, x0: Array, seconds: float, Delta: float = 1.0) -> list[Reached]:
    """Runs from a start (2,) for decreasing tolerances, until one takes more than `seconds`.

    Each takes about twice as long as the one before, so that none follows one of half that time.
    """
    model = compiled(Delta)
    found = []
    for tolerance in TOLERANCES:
        options = methods(Delta, tolerance)[method]
        watch = Watch(seconds)
        solution = model.solve(
            x0=x0,
            gtol=tolerance,
            scaled=False,
            max_iter=10**9,
            callback=watch,
            threads=1,
            **options,
        )
        if not solution.success:
            break
        radius = float(np.linalg.norm(solution.x))
        found.append(Reached(method, Delta, tolerance, solution.nfev, radius))
        if watch.rows[-1][0] > seconds / 2.0:
            break
    return found


def slope(x: Sequence[float], y: Sequence[float]) -> str:
    """The exponent p of y ~ x^p by least squares on logarithms, with its standard error."""
    if len(set(x)) < 3:
        return "–"
    line = linregress(np.log(x), np.log(y))
    return f"{line.slope:.2f} ± {line.stderr:.2f}"


def fits(method: str, start: str, runs: list[Reached]) -> str:
    """Markdown row: the exponents in ε and in ‖x_T‖ over the tolerances below `SMALL`."""
    small = [run for run in runs if run.tolerance <= SMALL]
    counts = [run.evaluations for run in small]
    in_eps = slope([run.tolerance**2 for run in small], counts)
    in_radius = slope([run.radius for run in small], counts)
    least = f"{min(run.tolerance for run in runs):.1e}" if runs else "–"
    theory = "-1.5" if method == "agp" else "-2"
    return row(method, start, least, in_eps, theory, in_radius)


def row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"
