"""One run of one solver on one problem: its result and its cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from benchmarks.by_hand import Array
from benchmarks.problems import Problem
from slomodel.errors import SlomodelError
from slomodel.solve import Solution
from slomodel.solve.directions.table import DIRECTIONS
from slomodel.solve.run.monitor import State

MOST_STEPS = 10_000_000
# Wall-clock seconds per second of CPU time, on a busy machine.
BUSY = 6.0
# A run shorter than SHORT seconds is repeated REPEATS times.
SHORT = 0.1
REPEATS = 4


@dataclass(frozen=True, slots=True)
class Cost:
    """Values, gradients and products with the Hessian, and seconds of the processor."""

    values: int
    gradients: int
    products: int
    seconds: float

    @property
    def evaluations(self) -> int:
        return self.values + self.gradients + self.products


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a run, its whole cost and the cost until a recorded value was `reached`.

    Without a recorded value, a run that ends in success counts as having reached one.
    """

    fun: float
    gradient_norm: float
    status: str
    cost: Cost
    reached: Cost | None


Solver = Callable[[Problem, float], Outcome | None]
"""A function from (problem, time limit) to an outcome; None if the method does not apply."""


class _Target:
    """Records the cost of a run at the first time that f has a recorded value."""

    def __init__(self, problem: Problem) -> None:
        self.first: Cost | None = None
        self._problem = problem

    def look(self, fun: float, *cost: float) -> None:
        if self.first is None and self._problem.reached(fun):
            self.first = Cost(*cost)

    def of(self, whole: Cost, success: bool) -> Cost | None:
        return self.first if self._problem.recorded else whole if success else None


def own(method: str, **options: object) -> Solver:
    """A method of slomodel."""

    def run(problem: Problem, seconds: float) -> Outcome | None:
        target = _Target(problem)

        def look(at: State) -> bool:
            took = time.process_time() - start
            target.look(at.fun, at.nfev, at.njev, at.nhev, took)
            return took > seconds

        def solve(max_iter: int) -> Solution:
            return problem.model.solve(
                *(method, problem.x0),
                gtol=problem.gtol,
                callback=look,
                max_iter=max_iter,
                max_time=BUSY * seconds,
                **options,
            )

        start = time.process_time()
        try:
            solve(2)  # compiles the kernels that the method needs
        except SlomodelError:
            return None
        target.first = None
        start = time.process_time()
        found = solve(MOST_STEPS)
        whole = Cost(found.nfev, found.njev, found.nhev, time.process_time() - start)
        reached = target.of(whole, found.success)
        return Outcome(found.fun, found.gradient_norm, ending(found), whole, reached)

    return run


def ending(found: Solution) -> str:
    """The status; a callback only stops a run at the time limit."""
    return "max_time" if found.status == "user_stopped" else found.status.value


class _OutOfTime(Exception):
    pass


class _Watched:
    """Value and gradient in one call, which counts as one of each."""

    def __init__(self, problem: Problem, seconds: float) -> None:
        self.target = _Target(problem)
        self.calls = 0
        self.lowest, self.x = np.inf, problem.x0
        self.start = time.process_time()
        self._model = problem.model
        self._seconds = seconds

    def __call__(self, x: Array) -> tuple[float, Array]:
        f, g = self._model.value_and_gradient(x)
        self.calls += 1
        took = time.process_time() - self.start
        self.target.look(f, self.calls, self.calls, 0, took)
        if f < self.lowest:
            self.lowest, self.x = f, x.copy()
        if took > self._seconds:
            raise _OutOfTime
        return f, g


def scipys(method: str, **options: object) -> Solver:
    """A method of SciPy with the same stopping rule, in the maximum norm that SciPy uses."""

    def run(problem: Problem, seconds: float) -> Outcome:
        f, g = problem.model.value_and_gradient(problem.x0)
        scale = min(1.0, max(abs(f), float(np.linalg.norm(g)))) or 1.0
        told = {**options, "gtol": problem.gtol * scale}
        watched = _Watched(problem, seconds)
        success = False
        try:
            with np.errstate(all="ignore"):
                found = minimize(watched, problem.x0, jac=True, method=method, options=told)
            success = bool(found.success)
            status = "converged" if success else "failed"
            fun, x = float(found.fun), found.x
        except _OutOfTime:
            status, fun, x = "max_time", watched.lowest, watched.x
        whole = Cost(watched.calls, watched.calls, 0, time.process_time() - watched.start)
        steepness = float(np.linalg.norm(problem.model.gradient(x)))
        return Outcome(fun, steepness, status, whole, watched.target.of(whole, success))

    return run


def measured(solver: Solver, problem: Problem, seconds: float) -> Outcome | None:
    """The outcome, with the shortest times of a few runs if these are short."""
    best = solver(problem, seconds)
    for _ in range(REPEATS if best and best.cost.seconds < SHORT else 0):
        again = solver(problem, seconds)
        if again and again.cost.seconds < best.cost.seconds:
            best = again
    return best


SOLVERS: Mapping[str, Solver] = {
    "auto": own("auto"),
    **{name: own("norm-armijo", direction=name) for name in DIRECTIONS},
    **{name: own(name) for name in ("std-armijo", "pgd", "tgd", "agp", "gd", "ngd", "adgd", "bpg")},
}
"""The methods of slomodel by name; a direction stands for norm-armijo along it."""

PEERS: Mapping[str, Solver] = {
    "L-BFGS-B": scipys("L-BFGS-B", ftol=0.0, maxiter=MOST_STEPS, maxfun=MOST_STEPS),
    "BFGS": scipys("BFGS", maxiter=MOST_STEPS),
    "CG": scipys("CG", maxiter=MOST_STEPS),
}
