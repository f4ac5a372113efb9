"""What every method takes: tolerance, budgets, sense, seed."""

from __future__ import annotations

from dataclasses import dataclass

from slomodel.solve.options import choice, flag, number, whole
from slomodel.solve.status import Sense


@dataclass(frozen=True, slots=True)
class Controls:
    """Limits and tolerances of a run. Raises DomainError for the first one outside its range.

    `seed` is for methods that draw random numbers; every run records it.
    """

    sense: Sense = "minimize"
    gtol: float = 1e-6
    scaled: bool = True
    max_iter: int = 100_000
    max_time: float | None = None
    max_nfev: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        choice("sense", self.sense, ("minimize", "maximize"))
        number("gtol", self.gtol, 0.0, closed=True)
        flag("scaled", self.scaled)
        whole("max_iter", self.max_iter, 0)
        whole("seed", self.seed, 0)
        if self.max_time is not None:
            number("max_time", self.max_time, 0.0, closed=True)
        if self.max_nfev is not None:
            whole("max_nfev", self.max_nfev, 1)
