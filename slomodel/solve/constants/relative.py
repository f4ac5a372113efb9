"""The constant of a polynomial relative to ‖x‖^p/p + ‖x‖²/2, from bounds over balls about 0."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np
from numpy.polynomial import chebyshev

from slomodel.solve.constants.proved import Prove
from slomodel.solve.norms import Vector, power
from slomodel.solve.objective import Evaluator
from slomodel.solve.subroutine import Constants, ConstantsOver, Iterate

# Radii of the initial cells. Cells are bisected until the constant is within a factor CLOSE of the
# least value that the bounds allow, or until MOST radii have been used.
RADII = (0.25, 1.0, 4.0, 64.0, 8192.0)
MOST = 16
CLOSE = 1.1
# Bound on the relative rounding error of a few hundred operations on positive numbers.
ROUNDING = 1e-12

Bound = Callable[[float], float]
"""t -> an upper bound on ‖∇²f‖ over ‖x‖ ≤ t."""


@dataclass(frozen=True, slots=True)
class Adaptable:
    """L = sup over t ≥ 0 of m(t)/(1 + t^{p−2}), with m(t) the maximum of ‖∇²f‖ over ‖x‖ ≤ t.

    Since ∇²h ⪰ (1 + ‖x‖^{p−2})·I for the kernel h = ‖x‖^p/p + ‖x‖²/2, it follows that ±∇²f ⪯ L·∇²h.
    """

    prove: Prove
    degree: int
    p: float

    name = "analytic"
    estimated = False
    worth = 1.0
    gives_second = False

    @property
    def for_every_step(self) -> Adaptable:
        return self

    @property
    def parameters(self) -> dict[str, float | str]:
        return {"L": "from bounds"}

    def start(self, evaluate: Evaluator, seed: int) -> ConstantsOver:
        return self._over

    def _over(self, at: Iterate, radius: float) -> Constants:
        """The constant over the whole space, for any ball; inf with a reason if there is none."""
        origin: Vector = np.zeros_like(at.x)
        reasons: list[str] = []

        def bound(t: float) -> float:
            proof = self.prove(origin, t)
            if not math.isfinite(proof.L1):
                reasons.append(proof.reason or "no bound is known")
            return proof.L1

        L = least_constant(bound, max(self.degree - 2, 0), self.p - 2.0)
        missing = reasons[0] if reasons else "the power p is less than the degree"
        # A linear f would give L = 0, but any positive L is valid for it.
        return Constants(L or 1.0, None, self.name, False, "" if math.inf > L else missing)


def least_constant(bound: Bound, k: int, q: float) -> float:
    """Upper bound on sup m(t)/(1 + t^q) for a Hessian of degree k in x; inf if q < k.

    On a cell [a, b] the quotient is bounded by m(b)/(1 + a^q) and by the coefficients (see
    `Coefficients`). The cell with the largest bound is bisected.
    """
    known = {t: bound(t) for t in RADII}
    if q < k or not all(map(math.isfinite, known.values())):
        return math.inf
    beyond = Coefficients(known, k, q)
    cells = [(-beyond(RADII[-1]), RADII[-1], math.inf, math.inf)]
    least = 0.0

    def add(a: float, b: float, m: float) -> None:
        nonlocal least
        least = max(least, m / (1.0 + power(b, q)))
        heappush(cells, (-min(m / (1.0 + power(a, q)), beyond(a)), a, b, m))

    for a, b in pairwise((0.0, *RADII)):
        add(a, b, known[b])
    for _ in range(MOST - len(RADII)):
        upper, a, b, m = cells[0]
        if -upper <= CLOSE * least or b == math.inf:
            break
        heappop(cells)
        middle = math.sqrt(a * b) if a > 0.0 else b / 4.0
        add(a, middle, bound(middle))
        add(middle, b, m)
    return -cells[0][0] * (1.0 + ROUNDING)


class Coefficients:
    """Upper bound on m(t')/(1 + t'^q) over t' ≥ t, from the coefficients of ∇²f along lines.

    Along a line through 0, ⟨u, ∇²f(s·e)u⟩ = Σ a_j s^j with j ≤ k. By V. Markov's inequality, a
    polynomial bounded by m on [−r, r] has |a_j|·r^j at most m times the coefficient of T_k or
    T_{k−1}. For a_k the lower coefficients give a better bound: |a_k|R^k ≤ m(R) + Σ |a_j|R^j, R the
    largest radius.
    """

    def __init__(self, known: dict[float, float], k: int, q: float) -> None:
        self._q = q
        below = [min(_markov(k, j) * m / power(r, j) for r, m in known.items()) for j in range(k)]
        R = max(known)
        top = known[R] * power(R, -k) + sum(a * power(R, j - k) for j, a in enumerate(below))
        self._largest = [*below, top]

    def __call__(self, t: float) -> float:
        if self._q == 0.0:
            return self._largest[0] / 2.0
        if t < 1.0:
            return math.inf
        return sum(a * power(t, j - self._q) for j, a in enumerate(self._largest))


def _markov(k: int, j: int) -> float:
    """The largest |a_j| of a polynomial of degree k that is bounded by 1 on [−1, 1]."""
    of = k if (k - j) % 2 == 0 else k - 1
    return float(abs(chebyshev.cheb2poly([0.0] * of + [1.0])[j]))
