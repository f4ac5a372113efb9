"""Problems for comparing solvers: published problems, regressions of NIST, the models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import slomodel
from benchmarks.by_hand import Array
from benchmarks.cases import cases, standardised_case
from tests import cutest_problems, nist_problems

# Tolerance above a recorded value: relative, or absolute if the value is 0.
REACHED = 1e-8


@dataclass(frozen=True, slots=True)
class Problem:
    """A model with its start; `recorded` are the values of its stationary points, least first.

    For these, solvers aim at a gradient below `gtol`; models of models/ have no recorded values.
    """

    name: str
    model: slomodel.Model
    x0: Array
    recorded: tuple[float, ...] = ()
    gtol: float = 1e-6

    def nearest(self, fun: float) -> float:
        """The recorded value that `fun` is closest to."""
        return min(self.recorded, key=lambda value: abs(fun - value))

    def reached(self, fun: float) -> bool:
        """Whether `fun` is one of the recorded values, to eight digits, or below the least."""
        if not np.isfinite(fun) or not self.recorded:
            return False
        value = self.nearest(fun)
        gap = fun - value
        return (
            gap <= REACHED * (abs(value) or 1.0)
            if value == self.recorded[0]
            else (abs(gap) <= REACHED * abs(value))
        )


def published() -> Iterator[Problem]:
    """The twenty problems of `tests/data/cutest_public.json`."""
    for name, recorded in cutest_problems.RECORDED.items():
        values = (recorded["fstar"], *recorded.get("other_stationary_values", ()))
        x0 = np.array(recorded["x0"], dtype=np.float64)
        yield Problem(name, cutest_problems.model_of(name), x0, values, gtol=1e-9)


def regressions() -> Iterator[Problem]:
    """The nine regressions of `tests/data/nist` from both starts, and in other units."""
    for of_y, of_b in ((1.0, 1.0), (1.7, 3.0)):
        for name in nist_problems.NAMES:
            recorded = nist_problems.recorded(name)
            model = nist_problems.model_of(name, of_y, of_b)
            least = (of_y**2 * recorded["certified"]["rss"],)
            for number, start in enumerate(recorded["starts"], 1):
                units = "" if of_y == 1.0 else " scaled"
                x0 = of_b * np.array(start["b"])
                yield Problem(f"{name} {number}{units}", model, x0, least, gtol=1e-10)


def models() -> Iterator[Problem]:
    """The models of the benchmark of kernels, at its small sizes."""
    for case in (standardised_case(), *cases(quick=True)):
        model = slomodel.compile(case.source, data=case.data, dims=case.dims)
        if model.n <= 10_000:
            yield Problem(f"{case.model} {case.size}".strip(), model, model.x0(0))


GROUPS: dict[str, Callable[[], Iterator[Problem]]] = {
    "published": published,
    "nist": regressions,
    "models": models,
}
