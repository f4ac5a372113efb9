"""The context in which methods choose defaults: start, tolerance, constants and objective."""

from __future__ import annotations

from dataclasses import dataclass

from slomodel.solve.constants.proved import ProofSource
from slomodel.solve.constants.source import LipschitzSource
from slomodel.solve.facts import NO_FACTS, ObjectiveFacts
from slomodel.solve.norms import Vector
from slomodel.solve.sets.convex_set import Set


@dataclass(frozen=True, slots=True)
class MethodContext:
    """The start x0 (n,), the tolerance, and what is known of the objective and its constants.

    x0 is in the set `within`; None stands for the whole space. `constants` is the source that the
    options name, None for a method that takes no constants; `proofs` is the source of proved
    bounds, None for plain functions. `own_test`: a method may test its points itself, since no
    theorem about the gradient norm is checked.
    """

    x0: Vector
    gtol: float
    constants: LipschitzSource | None = None
    proofs: ProofSource | None = None
    facts: ObjectiveFacts = NO_FACTS
    within: Set | None = None
    own_test: bool = False

    @property
    def estimated(self) -> bool:
        """Whether Lipschitz constants may be estimates, or are absent."""
        return self.constants is None or self.constants.estimated

    @property
    def proves(self) -> bool:
        """Whether the constants come from a proof, and not from estimates."""
        return self.constants is not None and self.constants.for_every_step is not None
