"""How much work a proof of bounds may take, in floating-point operations."""

from __future__ import annotations

from dataclasses import dataclass

from slomodel.errors import Diagnostic, DomainError

INTERVAL_FLOPS = 64.0
"""Operations on one interval of an array: both endpoints, rounded outward, and memory traffic."""
MOST_NUMBERS = 2**22
"""Largest number of entries of an array that a proof holds, whatever the effort: 32 MB."""
NUMBERS_AT_ONCE = 2**21
"""Entries that are computed together: chunks of 16 MB cost little memory and no time."""
MOST_NODES = 2000
"""Largest number of nodes of a graph that is searched for structure: some 10 ms, and seconds at ten
times as many, since searches compare nodes with one another.
"""


@dataclass(frozen=True, slots=True)
class Effort:
    """The operations that one rule may spend at a centre or over a ball, about 1 ns each.

    `gap`: costlier rules are tried where a bound exceeds the same derivative at the centre, which
    no bound can be below, by more than this factor. `gap_of_sums` takes its place where a rule for
    sums over elements or networks has bounded both constants, which the others seldom improve.
    """

    name: str
    flops: float
    gap: float
    gap_of_sums: float

    def count(self, each: float) -> int:
        """The number of things that fit the effort at `each` operations apiece."""
        return int(self.flops / each)

    def scaled(self, default: int, power: float) -> int:
        """`default` scaled to this effort for costs that grow like number^power; at least 1."""
        ratio = float(self.flops / DEFAULT.flops)
        return max(1, int(default * ratio ** (1.0 / power) + 0.5))


DEFAULT = Effort("default", 2.0**30, 2.0, 3.0)
"""About a second for each expensive rule."""
EFFORTS = (
    Effort("quick", 2.0**24, float("inf"), float("inf")),
    DEFAULT,
    Effort("thorough", 2.0**36, 1.01, 1.01),
)


def less_effort(effort: Effort) -> Effort:
    """The next lower effort, for work that is repeated over many balls; the lowest for itself."""
    at = EFFORTS.index(effort)
    return EFFORTS[max(at - 1, 0)]


def effort_of(name: object) -> Effort:
    """The effort with this name. Raises DomainError."""
    for one in EFFORTS:
        if isinstance(name, str) and name == one.name:
            return one
    known = ", ".join(repr(one.name) for one in EFFORTS)
    message = f"effort: expected one of {known}, found {name!r:.60}"
    help = "give effort='default', or leave it out"
    raise DomainError(Diagnostic("E602", message, help=help))
