"""Runs of the recorded problems, with known constants over balls and all their points."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from solve.objectives import Vector, recorded_constants, recorded_problem, traces

from slomodel.solve import Solution, solve

PROBLEMS = ("chain", "expsum", "quartic", "ridge", "rosenbrock", "tensor", "wells")
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Recorded:
    """A run with the points of every step, and the best lower bound of f that is known."""

    problem: str
    found: Solution
    points: list[Vector]
    root: float
    f_lower: float

    def error(self, *values: float) -> float:
        """Rounding error of a difference of values."""
        return 32.0 * EPS * max(map(abs, values))

    def epochs(self) -> list[list[int]]:
        """The steps k of every epoch, the first with its centre in front."""
        epoch = self.found.history.epoch
        steps = range(1, len(epoch))
        ks = [[k for k in steps if epoch[k] == e] for e in range(1, int(epoch.max()) + 1)]
        return [[one[0] - 1, *one] for one in ks if one]


@cache
def recorded(problem: str, method: str, gtol: float, max_iter: int, factor: float = 1.0) -> Any:
    """A run with the recorded constants times `factor`; the tolerance is √ε = gtol."""
    return run(problem, method, gtol, max_iter, lipschitz=scaled(problem, factor))


def scaled(problem: str, factor: float) -> Any:
    constants = recorded_constants(problem)

    def over(centre: Vector, radius: float) -> tuple[float, float]:
        L1, L2 = constants(centre, radius)
        return factor * L1, factor * L2

    return over


def run(problem: str, method: str, gtol: float, max_iter: int, **options: Any) -> Recorded:
    points: list[Vector] = []
    found = solve(
        recorded_problem(problem),
        traces()["problems"][problem]["x0"],
        method=method,
        gtol=gtol,
        scaled=False,
        max_iter=max_iter,
        callback=lambda state: points.append(state.x),
        verify=True,
        **options,
    )
    return Recorded(problem, found, points, gtol, traces()["problems"][problem]["f_lower"])
