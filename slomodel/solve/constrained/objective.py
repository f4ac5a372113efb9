"""The interface of an objective with constraints to the solver."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from slomodel.solve.constants.proved import Prove
from slomodel.solve.norms import Vector
from slomodel.solve.objective import Objective
from slomodel.solve.sets.convex_set import Mask


@dataclass(frozen=True, slots=True)
class PenaltySubproblem:
    """The augmented Lagrangian for given multipliers and penalty, with proofs of its constants."""

    objective: Objective
    prove: Prove


@dataclass(frozen=True, slots=True)
class ConstraintRows:
    """One constraint of the given shape: rows start, …, stop - 1 of the vector of all, in C order.

    They are `orientation` times the difference of the sides as written: 1 for `g <= h` and
    equations, −1 for `g >= h`. Constraints with two ends have rows of the same name.
    """

    name: str
    orientation: int
    is_equation: bool
    start: int
    stop: int
    shape: tuple[int, ...]


class ConstrainedObjective(Protocol):
    """f of x (n,), to be minimised, with constraints c (m,): c = 0 for equations, else c ≤ 0.

    The augmented Lagrangian with multipliers y, penalty ρ and weight w is w·f + Σ (y c + ρc²/2)
    over equations + Σ (max(0, y + ρc)² − y²)/2ρ over inequalities.
    """

    @property
    def n(self) -> int: ...

    @property
    def eps(self) -> float:
        """The rounding unit of the precision of values and derivatives."""
        ...

    @property
    def is_quadratic_program(self) -> bool:
        """Whether f is known to be quadratic and c affine."""
        ...

    @property
    def rows(self) -> Sequence[ConstraintRows]: ...

    @property
    def equations(self) -> Mask:
        """Which of the constraints (m,) are equations."""
        ...

    def evaluate(self, x: Vector, y: Vector) -> tuple[float, Vector, Vector]:
        """f, the gradient (n,) of the Lagrangian f + ⟨y, c⟩, and c (m,)."""
        ...

    def product(self, x: Vector, y: Vector, v: Vector) -> tuple[Vector, Vector]:
        """The Hessian of the Lagrangian times v, (n,), and the Jacobian of c times v, (m,)."""
        ...

    def augmented(self, y: Vector, penalty: Vector, weight: float = 1.0) -> PenaltySubproblem:
        """For penalties (m,), which are equal in the rows of one constraint."""
        ...


def loosest_for_lengths(options: Mapping[str, object]) -> float:
    """The largest tolerance √ε that methods accept with given lengths D and d, inf for none.

    They need d ≥ √ε and D ≥ √ε/2 + 2d, and d is D/4 unless it is given.
    """
    D, d = (
        float(given) if isinstance(given := options.get(name), int | float) else math.inf
        for name in ("D", "d")
    )
    return min(d, D / 4.0, 2.0 * (D - 2.0 * d) if d < D / 2.0 < math.inf else math.inf)
