"""What is known of an objective besides its values: from the compiler, or from what it can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from slomodel.solve.norms import Vector


@runtime_checkable
class Curved(Protocol):
    """An objective that has products with its Hessian too."""

    def hvp(self, x: Vector, v: Vector) -> Vector:
        """The Hessian at x times v, all (n,)."""
        ...


@dataclass(frozen=True, slots=True)
class Facts:
    """`curvature`: it has products with its Hessian."""

    curvature: bool = False


NO_FACTS = Facts()


def facts_of(objective: object) -> Facts:
    """What an objective says of itself, or what can be seen of it."""
    return Facts(curvature=isinstance(objective, Curved))
