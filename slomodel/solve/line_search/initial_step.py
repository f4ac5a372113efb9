"""First trial step of a line search: a table of rules, none of which exceeds δ̄/‖v‖."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from slomodel.solve.directions.direction import SecantPair
from slomodel.solve.norms import ratio


@dataclass(slots=True)
class StepMemory:
    """The data that the rules use: the pair of the last step and the last accepted δ."""

    pair: SecantPair | None = None
    delta: float | None = None


def full(longest: float, memory: StepMemory) -> float:
    """The paper's δ̄/‖v‖ (alg:lsearch)."""
    return longest


def bb(longest: float, memory: StepMemory) -> float:
    """The Barzilai–Borwein step ⟨s,s⟩/⟨s,y⟩ of the last step; `full` where ⟨s,y⟩ ≤ 0."""
    pair = memory.pair
    if pair is None or not pair.sy > 0.0:
        return longest
    step = ratio(pair.snorm, pair.sy) * pair.snorm
    return min(longest, step) if step > 0.0 else longest


def unit(longest: float, memory: StepMemory) -> float:
    """min(1, δ̄/‖v‖), for directions with a length of their own."""
    return min(1.0, longest)


def memory_of_last(longest: float, memory: StepMemory) -> float:
    """Four times the last accepted δ."""
    return longest if memory.delta is None else min(longest, 4.0 * memory.delta)


InitialStep = Callable[[float, StepMemory], float]

INITIAL_STEPS: dict[str, InitialStep] = {
    "full": full,
    "bb": bb,
    "unit": unit,
    "memory": memory_of_last,
}

WANTS_PAIRS = frozenset({"bb"})
