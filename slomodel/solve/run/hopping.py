"""Basin hopping: runs from perturbed ends of earlier ones, which are accepted as by Metropolis.

Wales & Doye, Global optimization by basin-hopping and the lowest energy structures of Lennard-Jones
clusters containing up to 110 atoms (1997).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Protocol

import numpy as np

from slomodel.solve.norms import Vector
from slomodel.solve.run.monitor import Progress, State
from slomodel.solve.run.multistart import rank
from slomodel.solve.run.multistart_summary import SAME, SAME_OF_FIRST
from slomodel.solve.run.solution import Solution
from slomodel.solve.run_options import RunOptions
from slomodel.solve.status import Status

# The first length of hops in units of the variables, its limits, and the rate at which it follows
# the fraction of accepted ones, which is to be TARGET.
FIRST, SHORTEST, LONGEST, RATE, TARGET = 0.2, 1e-3, 2.0, 0.2, 0.5
# Limits of units as multiples of those at the start: an end may be 0, or far away where f is flat.
SMALLEST, LARGEST = 0.1, 100.0
# The temperature is this fraction of the median change of f in the last RECENT hops that changed f.
TEMPERATURE, RECENT = 0.3, 50
# Largest number of distinct minima that are returned.
MOST_RUNS = 100


class LocalRun(Protocol):
    """A run from a point u (n,) of the solver, or from the first start, within a time."""

    def __call__(self, u: Vector | None, *, seed: int, max_time: float | None) -> Solution: ...


@dataclass(frozen=True, slots=True)
class Hopping:
    """`hops` runs after the first, each from a random point round the last accepted end.

    `start` gives the first start (n,) of a seed, `scales` the spread of each unknown at a point,
    both (n,): those at the last accepted end are the units of hops. `inside` moves a point into the
    sets of the variables. Lengths of hops and the temperature follow the run. With the seed all
    hops are determined.
    """

    run: LocalRun
    start: Callable[[int], Vector]
    hops: int
    scales: Callable[[Vector], Vector]
    inside: Callable[[Vector], Vector]
    options: RunOptions
    display: Progress | None = None
    keeps_runs: bool = True

    def __call__(
        self, *, seed: int, max_time: float | None = None, max_iter: int | None = None
    ) -> Solution:
        """The best of the runs, with the distinct minima as its `runs`, best first.

        With `max_iter` only the first run is started, as a check of the options.
        """
        if max_iter is not None:
            return self.run(None, seed=seed, max_time=0.0)
        began = perf_counter()
        sign = -1.0 if self.options.sense == "maximize" else 1.0
        rng = np.random.default_rng(seed)
        first = self.scales(self.start(seed))
        current = self.run(None, seed=seed, max_time=max_time)
        result = [current]
        floor = SAME_OF_FIRST * abs(float(current.history.fun[0]))
        length, accepted, best_at, k = FIRST, 0, 0, 0
        changes: list[float] = []
        while k < self.hops and current.status is not Status.interrupted:
            left = None if max_time is None else max_time - (perf_counter() - began)
            if left is not None and left <= 0.0:
                break
            k += 1
            at = _of_solver(current)
            units = np.clip(self.scales(at), SMALLEST * first, LARGEST * first)
            step = length * units * rng.uniform(-1.0, 1.0, len(at))
            draw = float(rng.random())
            hopped = self.run(self.inside(at + step), seed=seed, max_time=left)
            if rank(hopped, sign, self.options.ctol) < rank(result[0], sign, self.options.ctol):
                best_at = k
            _insert(result, hopped, sign, self.options.ctol, floor)
            change = sign * (hopped.fun - current.fun)
            accepts = _accepts(hopped, current, change, changes, draw, self.options.ctol)
            if SAME * abs(current.fun) < abs(change) < math.inf:
                changes = [*changes[-RECENT:], abs(change)]
            if accepts:
                current = hopped
                accepted += 1
            length = min(max(length * math.exp(RATE * (accepts - TARGET)), SHORTEST), LONGEST)
            if self.display:
                self.display.update(_state(result[0], k, self.hops, perf_counter() - began))
            if hopped.status is Status.interrupted:
                break
        solution = _with_account(result, k, accepted, best_at)
        return solution if self.keeps_runs else replace(solution, runs=())


def _of_solver(solution: Solution) -> Vector:
    return solution.x if solution.unconstrained is None else solution.unconstrained


def _accepts(
    new: Solution, old: Solution, change: float, changes: list[float], draw: float, ctol: float
) -> bool:
    """Whether the walk goes on from the new end: always if it is about as good."""
    if math.isnan(change) or new.violation > max(ctol, old.violation):
        return math.isnan(old.fun) and not math.isnan(new.fun)
    if change <= SAME * abs(old.fun):
        return True
    temperature = TEMPERATURE * float(np.median(changes)) if changes else 0.0
    return temperature > 0.0 and draw < math.exp(-change / temperature)


def _insert(runs: list[Solution], new: Solution, sign: float, ctol: float, floor: float) -> None:
    """Add a run to the distinct minima, best first; of equal ones the first is kept.

    Values count as equal if they differ by less than `floor`. A run that found no minimum is added
    only if it is the best.
    """
    best = rank(new, sign, ctol) < rank(runs[0], sign, ctol)
    if not best and (not new.success or math.isnan(new.fun)):
        return
    place = sum(rank(one, sign, ctol) < rank(new, sign, ctol) for one in runs)
    near = runs[max(0, place - 1) : place + 1]
    for one in near:
        if abs(one.fun - new.fun) <= max(SAME * abs(one.fun), floor):
            if place == 0:
                runs[0] = new
            return
    if best and not runs[0].success:
        del runs[0]
    runs.insert(place, new)
    del runs[MOST_RUNS:]


def _with_account(runs: list[Solution], hops: int, accepted: int, best_at: int) -> Solution:
    """The best run, with a sentence about the hops."""
    number = sum(one.success for one in runs)
    minima = f"{number or 'no'} {'minimum' if number < 2 else 'different minima'}"
    where = f"the best at hop {best_at}" if best_at else "the best by the first run"
    sentence = f"Basin hopping: {hops} hops, {accepted} accepted, {minima} found, {where}."
    best = runs[0]
    return replace(best, message=f"{best.message} {sentence}", runs=tuple(runs))


def _state(best: Solution, k: int, hops: int, time: float) -> State:
    counts = (best.nfev, best.njev, best.nhev)
    return State(k, best.x, best.fun, best.gradient_norm, 0.0, hops, time, *counts)
