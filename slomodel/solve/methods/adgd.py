"""Adaptive gradient descent: step sizes from the change of the gradient along the last step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from slomodel.solve.methods.context import MethodContext
from slomodel.solve.methods.step_rules import FreeMethod
from slomodel.solve.norms import norm
from slomodel.solve.options import number
from slomodel.solve.subroutine import Iterate

# Growth of a step that neither the change of the gradient nor earlier growth limits.
DOUBLE = 2.0


@dataclass(frozen=True, slots=True)
class AdGD(FreeMethod):
    """x − λ_k∇f, λ_k = min(λ_{k−1}·√(1 + θ_{k−1}), ‖Δx‖/(2‖Δ∇f‖)), θ_k = λ_k/λ_{k−1}.

    Malitsky & Mishchenko (2020), ICML, Algorithm 1. Proved for convex f; f may increase too.
    """

    lam0: float

    name = "adgd"
    own_test = False
    linearises = False
    second_descent = None

    @property
    def parameters(self) -> dict[str, float | str]:
        return {"lam0": self.lam0}

    def rule(self) -> SecantLength:
        return SecantLength(self.lam0)


class SecantLength:
    """The length λ_k‖∇f‖, with the state that determines λ_k."""

    def __init__(self, lam0: float) -> None:
        self._lam = lam0
        self._theta = math.inf

    @property
    def limit(self) -> str:
        return f"lambda = {self._lam:.3g}"

    def propose(self, current: Iterate) -> float:
        return self._lam * current.gnorm

    def took(self, old: Iterate, new: Iterate, length: float) -> None:
        """Update λ_{k+1} after the step of length λ_k‖∇f‖, which may have been shortened."""
        lam = length / old.gnorm
        change = norm(np.subtract(new.g, old.g))
        by_gradient = length / (2.0 * change) if change > 0.0 else math.inf
        following = min(lam * math.sqrt(1.0 + self._theta), by_gradient)
        if not following < math.inf:
            following = DOUBLE * lam
        self._lam, self._theta = following, following / lam

    def full(self, old: Iterate, new: Iterate) -> bool:
        return new.f < old.f and new.gnorm >= old.gnorm


def adgd(given: Mapping[str, object], context: MethodContext) -> AdGD:
    """AdGD with its default λ_0 = 1e-6."""
    return AdGD(number("lam0", given.get("lam0", 1e-6), 0.0))
