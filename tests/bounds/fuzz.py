"""One case of the search for a bound that does not hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import mpmath
import numpy as np
from bounds.objective_graph import DIGITS, ObjectiveGraph
from bounds.witness import Witness, Witnesses, recheck, seek
from strategies import Example

from slomodel import functions as fn
from slomodel.bounds import ObjectivePart, bounds
from slomodel.bounds.ranges.enclose import live_in
from slomodel.ir import build
from slomodel.ir.walk import substitute

RADII = (0.0, 1e-12, 1e-3, 0.1, 1.0, 100.0)
# A value in doubles this share above a bound, or any share below it, may be rounding: 60 digits
# decide.
DOUBTFUL = 1e-9
Search = Callable[[ObjectiveGraph, float, np.random.Generator], Witnesses]


MOST_UNITS = 400
"""Units of the objective and of its variables are powers of 2 with exponents of at most this."""


@dataclass(frozen=True)
class Case:
    """A bound over a ball, and the points that come nearest to it.

    `units` are the exponents (k, l) of 2 for which the bound was asked of 2^k f(2^l x); it is
    given for f, as a number with an exponent of any size.
    """

    graph: ObjectiveGraph
    radius: float
    bound: dict[str, float | mpmath.mpf]
    witnesses: Witnesses
    units: tuple[int, int] = (0, 0)

    def ratio(self, which: str) -> float:
        """How much of the bound is reached, in doubles; 0 where there is no bound."""
        witness, bound = self.witness(which), self.bound[which]
        if bound == math.inf or not witness.value > 0.0:
            return 0.0
        return float(witness.value / bound) if bound > 0.0 else math.inf

    def witness(self, which: str) -> Witness:
        return self.witnesses.L1 if which == "L1" else self.witnesses.L2

    @property
    def has_dead_elements(self) -> bool:
        """Whether f depends on some elements of its nodes only: others may overflow to NaN."""
        return bool(live_in(self.graph.setting))

    def violates(self, which: str, doubtful: float = DOUBTFUL) -> bool:
        """Whether the constant is larger than its bound, decided in 60 digits where it is near."""
        if self.bound[which] < math.inf and not self.has_dead_elements and self._is_outside(which):
            return True
        if self.ratio(which) < 1.0 - doubtful:
            return False
        return self.exactly_above(which)

    def _is_outside(self, which: str) -> bool:
        """Whether a point has no derivatives in 60 digits either, where nothing overflows."""
        one = self.witnesses.outside
        if one is None or one.written is not None:
            return one is not None
        v = one.v if np.isfinite(one.v).all() else np.ones(self.graph.n)
        return not mpmath.isfinite(
            recheck(self.graph, self.radius, replace(one, v=v, y=None), which)
        )

    def exactly_above(self, which: str) -> bool:
        """True where more digits do not show the bound to hold: a NaN shows nothing."""
        truth = recheck(self.graph, self.radius, self.witness(which), which)
        return not truth <= self.bound[which]


def part_of(example: Example) -> ObjectivePart:
    """The example as a question; data that may be NaN are read under conditions only."""
    values = {node: np.nan_to_num(array, nan=0.0) for node, array in example.values.items()}
    return ObjectivePart(example.objective, example.variables, values, example.sizes)


def scaled(one: ObjectivePart, power: int, unit: int = 0) -> ObjectivePart:
    """2^power f(2^unit x), at the same point."""
    objective, values = one.objective, dict(one.values)
    if unit:
        factor = build.const(math.ldexp(1.0, unit))
        moved = {variable: fn.mul(factor, variable) for variable in one.variables}
        (objective,) = substitute((objective,), moved)
        for variable in one.variables:
            values[variable] = np.ldexp(values[variable], -unit)
    if power:
        objective = fn.mul(build.const(math.ldexp(1.0, power)), objective)
    return replace(one, objective=objective, values=values)


def in_units(case: Case, power: int, unit: int) -> Case | None:
    """The same case with the bounds of 2^power f(2^unit x); None where its point is rounded."""
    own = case.graph.setting
    its, radius = scaled(own, power, unit), math.ldexp(case.radius, -unit)
    same = (np.ldexp(its.values[v], unit) == own.values[v] for v in own.variables)
    if not all(np.all(one) for one in same) or math.ldexp(radius, unit) != case.radius:
        return None
    answer = bounds(its, radius)
    with mpmath.workdps(DIGITS):
        bound = {
            which: mpmath.ldexp(mpmath.mpf(value), -power - k * unit)
            for which, value, k in (("L1", answer.L1, 2), ("L2", answer.L2, 3))
        }
    return replace(case, bound=bound, units=(power, unit))


def cases(
    setting: ObjectivePart,
    rng: np.random.Generator,
    radii: tuple[float, ...] = RADII,
    ask: Callable[[ObjectivePart, float], tuple[float, float]] | None = None,
    other_units: int = 0,
    search: Search = seek,
) -> list[Case]:
    """The setting's bounds, or those that `ask` gives, at every radius that has one; against the
    points that `search` finds.

    At so many radii also those of the objective and its variables in other units, against the
    same points.
    """
    graph = ObjectiveGraph(setting)
    found = []
    for k, radius in enumerate(radii):
        if ask is None:
            answer = bounds(setting, radius)
            L1, L2 = answer.L1, answer.L2
            assert answer.reason or math.isfinite(L1 + L2), "no bound and no reason"
        else:
            L1, L2 = ask(setting, radius)
        if L1 == L2 == math.inf:
            continue
        with np.errstate(all="ignore"):
            witnesses = search(graph, radius, rng)
        found.append(Case(graph, radius, {"L1": L1, "L2": L2}, witnesses))
        if k < other_units:
            units = (int(one) for one in rng.integers(-MOST_UNITS, MOST_UNITS + 1, 2))
            other = in_units(found[-1], *units)
            found += [] if other is None else [other]
    return found
