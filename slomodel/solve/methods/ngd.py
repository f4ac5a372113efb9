"""Normalised gradient descent: every step has the length d."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slomodel.solve.methods.context import MethodContext
from slomodel.solve.methods.step_rules import FreeMethod
from slomodel.solve.norms import LARGEST, norm
from slomodel.solve.options import number
from slomodel.solve.subroutine import Iterate

FRACTION = 0.01


@dataclass(frozen=True, slots=True)
class NGD(FreeMethod):
    """x − d·∇f/‖∇f‖: f may rise, and near a minimiser the iterates oscillate.

    Grimmer (2019), SIAM J. Optim. 29(2), with a constant step; convergence is known for convex f
    only.
    """

    d: float

    name = "ngd"
    own_test = False
    linearises = False
    second_descent = None

    @property
    def parameters(self) -> dict[str, float | str]:
        return {"d": self.d}

    def rule(self) -> FixedLength:
        return FixedLength(self.d)


@dataclass(frozen=True, slots=True)
class FixedLength:
    """The constant length d."""

    d: float

    @property
    def limit(self) -> str:
        return f"d = {self.d:.3g}"

    def propose(self, current: Iterate) -> float:
        return self.d

    def took(self, old: Iterate, new: Iterate, length: float) -> None:
        pass

    def full(self, old: Iterate, new: Iterate) -> bool:
        return new.f < old.f


def ngd(given: Mapping[str, object], context: MethodContext) -> NGD:
    """NGD with its default: d = max(1, ‖x0‖)/100."""
    by_start = FRACTION * min(max(1.0, norm(context.x0)), LARGEST)
    return NGD(number("d", given.get("d", by_start), 0.0))
