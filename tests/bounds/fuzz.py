"""One case of the search for a bound that does not hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from bounds.objective_graph import ObjectiveGraph
from bounds.witness import Witness, Witnesses, recheck, seek
from strategies import Example

from slomodel.bounds import Setting, bounds

RADII = (0.0, 1e-12, 1e-3, 0.1, 1.0, 100.0)
# A value in doubles this share above a bound, or any share below it, may be rounding: 60 digits
# decide.
DOUBTFUL = 1e-9


@dataclass(frozen=True)
class Case:
    """A bound over a ball, and the points that come nearest to it."""

    graph: ObjectiveGraph
    radius: float
    bound: dict[str, float]
    witnesses: Witnesses

    def ratio(self, which: str) -> float:
        """How much of the bound is reached, in doubles; 0 where there is no bound."""
        witness, bound = self.witness(which), self.bound[which]
        if bound == math.inf or not witness.value > 0.0:
            return 0.0
        return witness.value / bound if bound > 0.0 else math.inf

    def witness(self, which: str) -> Witness:
        return self.witnesses.L1 if which == "L1" else self.witnesses.L2

    def violates(self, which: str, doubtful: float = DOUBTFUL) -> bool:
        """Whether the constant is larger than its bound, decided in 60 digits where it is near."""
        if self.bound[which] < math.inf and self.witnesses.outside:
            return True
        if self.ratio(which) < 1.0 - doubtful:
            return False
        return self.exactly_above(which)

    def exactly_above(self, which: str) -> bool:
        """True where more digits do not show the bound to hold: a NaN shows nothing."""
        truth = recheck(self.graph, self.radius, self.witness(which), which)
        return not truth <= self.bound[which]


def setting_of(example: Example) -> Setting:
    """The example as a question; data that may be NaN are read under conditions only."""
    values = {node: np.nan_to_num(array, nan=0.0) for node, array in example.values.items()}
    return Setting(example.objective, example.variables, values, example.sizes)


def cases(
    setting: Setting,
    rng: np.random.Generator,
    radii: tuple[float, ...] = RADII,
    ask: Callable[[Setting, float], tuple[float, float]] | None = None,
) -> list[Case]:
    """The setting's bounds, or those that `ask` gives, at every radius that has one."""
    graph = ObjectiveGraph(setting)
    found = []
    for radius in radii:
        if ask is None:
            answer = bounds(setting, radius)
            L1, L2 = answer.L1, answer.L2
            assert answer.reason or math.isfinite(L1 + L2), "no bound and no reason"
        else:
            L1, L2 = ask(setting, radius)
        if L1 == L2 == math.inf:
            continue
        with np.errstate(all="ignore"):
            witnesses = seek(graph, radius, rng)
        found.append(Case(graph, radius, {"L1": L1, "L2": L2}, witnesses))
    return found
