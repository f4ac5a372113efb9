"""The Gauss–Newton or the Newton direction, according to how well the first predicts descent."""

from __future__ import annotations

from dataclasses import replace

from slomodel.solve.directions.direction import SecantPair
from slomodel.solve.directions.gauss_newton import POOR, GaussNewton
from slomodel.solve.directions.newton import Newton
from slomodel.solve.norms import Vector
from slomodel.solve.objective import Evaluator
from slomodel.solve.subroutine import Iterate

# Steps along the Newton direction before the Gauss–Newton direction is tried again.
STAY = 8


class MixedNewton:
    """The Gauss–Newton direction until a step attains too little of the predicted decrease.

    Then the second derivatives that it neglects are significant, and Newton's direction is taken
    for STAY steps. After Dennis, Gay & Welsch, An adaptive nonlinear least-squares algorithm
    (1981).
    """

    wants_pairs = True
    predicting = None
    in_c = None
    kind = ""

    def __init__(self, evaluate: Evaluator, start: Iterate, delta_bar: float) -> None:
        self._gauss = GaussNewton(evaluate, start, delta_bar)
        self._newton = Newton(evaluate, start, delta_bar)
        # As after Newton steps: there is no prediction to assess.
        self._left = 1

    def propose(self, at: Iterate, out: Vector) -> float:
        if self._left:
            self._left -= 1
        elif self._gauss.share(at) < POOR:
            self._left = STAY
            self._gauss.forget()
        return (self._newton if self._left else self._gauss).propose(at, out)

    @property
    def units(self) -> Vector | None:
        return (self._newton if self._left else self._gauss).units

    def learn(self, pair: SecantPair) -> None:
        self._gauss.learn(replace(pair, own=pair.own and not self._left))

    def fallback(self, at: Iterate, out: Vector) -> float:
        return self._gauss.fallback(at, out)
