"""The interface of quadratic models q(s) = ⟨g, s⟩ + ½⟨s, Bs⟩ that are minimised over a set."""

from __future__ import annotations

from typing import Protocol

from slomodel.solve.directions.direction import SecantPair
from slomodel.solve.norms import Vector
from slomodel.solve.sets.convex_set import Face, Set
from slomodel.solve.subroutine import Iterate

# Fraction of its goal to which a model that is the objective reduces its projected gradient.
REACHED = 0.5


class Quadratic(Protocol):
    """A rule for the matrix B of the model at a point, with its memory.

    `accuracy` is the fraction to which a minimisation reduces the norm of the model's projected
    gradient, and `most` the largest number of its steps. `is_exact`: the objective is the model.
    `wants_pairs`: B depends on the pairs of accepted steps.
    """

    @property
    def wants_pairs(self) -> bool: ...

    @property
    def operations(self) -> float:
        """Operations so far of the linear algebra that grows with n, without Hessian products."""
        ...

    @property
    def accuracy(self) -> float: ...

    @property
    def is_exact(self) -> bool: ...

    @property
    def is_spent(self) -> bool:
        """Whether the work of minimisations so far calls for another model."""
        ...

    @property
    def may_form(self) -> bool:
        """Whether the matrix B itself may replace a model that is spent."""
        ...

    @property
    def most(self) -> int: ...

    @property
    def is_over(self) -> bool:
        """Whether the present minimisation has taken the products that it may take."""
        ...

    def allow(self, work: float) -> None:
        """Limit the Hessian products of the next minimisation, about."""
        ...

    def begin(self, at: Iterate, shift: Vector | None) -> bool:
        """Set up B at a point, where the boundary adds the curvature `shift` (n,), None for 0.

        False if B is not finite. Later calls raise LinAlgError if it is singular.
        """
        ...

    def free_step(self, at: Iterate) -> Vector | None:
        """The minimiser s (n,) over ℝⁿ, at the point of `begin`, if it costs less than `solve`."""
        ...

    def product(self, s: Vector) -> Vector:
        """B s for s (n,)."""
        ...

    def solve(self, face: Face, r: Vector) -> tuple[Vector, Vector | None]:
        """d (n,) in the subspace of the face with Q(B + shift)d = −Qr, Q its projection, and Bd.

        d may be approximate; it is a direction of descent for the gradient r (n,) of the model. Bd
        is None unless it is a by-product.
        """
        ...

    def minimiser_over(self, within: Set, y: Vector, r: Vector) -> Vector | None:
        """The minimiser (n,) over a set, if it costs less to compute than further steps.

        y (n,) is a point of the set and r (n,) the gradient of the model there.
        """
        ...

    def learn(self, pair: SecantPair) -> None:
        """Update with the pair of an accepted step, y the change of the Lagrangian's gradient."""
        ...
