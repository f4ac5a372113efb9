"""Signs that f has no lower bound."""

from __future__ import annotations

from slomodel.solve.norms import EPS, Vector, norm
from slomodel.solve.objective import Evaluator
from slomodel.solve.status import Status
from slomodel.solve.subroutine import Halt, Iterate

# Steps of full length in a row before f is probed further out; doubled after each probe, so
# that probing costs at most about as much as the steps.
FIRST_PROBE = 64
# 2^80 times the step: f = −x needs 52 doublings to pass −1/eps, slower ones need a few more.
DOUBLINGS = 80


def depth(f0: float) -> float:
    """The value that a bounded f does not pass: −1/eps, in units of max(1, |f(x0)|)."""
    return -max(1.0, abs(f0)) / EPS


class FarProbe:
    """Looks along the direction of many full steps in a row for a value below `depth`.

    Steps of at most δ̄ would take 1/eps steps to show that f = −x has no lower bound.
    """

    def __init__(self, evaluate: Evaluator, f0: float) -> None:
        self._evaluate = evaluate
        self._depth = depth(f0)
        self._in_a_row = 0
        self._next = FIRST_PROBE

    def count(self, full_length: bool) -> None:
        """Take in whether an accepted step had the full length."""
        self._in_a_row = self._in_a_row + 1 if full_length else 0
        if not full_length:
            self._next = FIRST_PROBE

    @property
    def due(self) -> bool:
        return self._in_a_row >= self._next

    def look(self, at: Iterate, step: Vector) -> Halt | None:
        """Go out from `at` by step, 2·step, 4·step, … (n,) while f falls."""
        self._next *= 2
        last, factor = at.f, 1.0
        for _ in range(DOUBLINGS):
            f = self._evaluate.value(at.x + factor * step)
            if f < self._depth:
                shown = f"{self._evaluate.sign * f:.3g}"
                return Halt(
                    Status.unbounded,
                    f"It is {shown} at a distance of {factor * norm(step):.3g} from the point.",
                )
            if not f < last:
                return None
            last, factor = f, 2.0 * factor
        return None
