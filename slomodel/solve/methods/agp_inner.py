"""The inner iterations of accelerated gradient projection: Algorithms 4 to 6 of the paper."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from slomodel.solve.norms import Vector, norm
from slomodel.solve.objective import Evaluator
from slomodel.solve.sets.epoch_set import EpochSet
from slomodel.solve.subroutine import Iterate

# Limit on the inner iterations of one call, of which the theorem needs √κ·log(1/ε). A ball with a
# kink would take millions.
MOST = 5000
SPENT = -1
# Rounding error of an inner product, in units of eps times the sum of its terms.
ROUNDING = 32.0


@dataclass(frozen=True, slots=True)
class Subproblem:
    """f̂(x) = f(x) + α‖x − x̄‖² on the set X, `inside`, with the constants of the method.

    `noise` is the rounding error of a difference of values near x̄. `literal`: only the tests of
    the paper are made, and those for rounding.
    """

    evaluate: Evaluator
    start: Iterate
    inside: EpochSet
    alpha: float
    L1: float
    tolerance: float
    noise: float
    checks: bool
    literal: bool

    @property
    def steepest(self) -> float:
        return self.L1 + 2.0 * self.alpha

    def lifted(self, x: Vector, f: float) -> float:
        """f̂ at x (n,), from f(x)."""
        distance = norm(x - self.start.x)
        return f + self.alpha * distance * distance

    def slope(self, x: Vector, g: Vector) -> Vector:
        """∇f̂ at x (n,), from g = ∇f(x)."""
        return g + (2.0 * self.alpha) * (x - self.start.x)

    def project(self, x: Vector) -> Vector:
        """The point of X nearest to x (n,)."""
        nearest = np.empty_like(x)
        self.inside.project(x, nearest)
        return nearest


@dataclass(frozen=True, slots=True)
class NCPair:
    """u and v with f̂(u) < f̂(v) + ⟨∇f̂(v), u − v⟩ + (α/2)‖u − v‖². Paper: defn:nc-pair.

    v is x̂_j; `name` says whether u is ŷ_j or w.
    """

    u: Vector
    f_u: float
    v: Vector
    name: str
    j: int


@dataclass(slots=True)
class Outcome:
    """How the inner iterations ended, after t of them. Paper: proposition:Flags.

    `point` is p for flags 1, 3 and 5. Of ŷ_1 … ŷ_{t−1}, `best` has the lowest f, its index is
    `best_at`, and `calmest` has the least ‖∇f‖. `extra` holds the last ŷ_t and z, where f̂ is not
    above f̂(ŷ_0). Flag 0: a trial was not finite, or L1 is too small; −1: too many iterations.
    """

    flag: int = 0
    t: int = 0
    point: Iterate | None = None
    pair: NCPair | None = None
    w: str = ""
    best: Iterate | None = None
    best_at: int = 0
    calmest: Iterate | None = None
    extra: list[tuple[Vector, float, str]] = field(default_factory=list)


class UntilGuilty:
    """The inner iterations from x̄. Every ŷ_j, x̂_j and ∇f̂(x̂_j) is computed once and stored.

    Paper: alg:AGP-UPG.
    """

    def __init__(self, task: Subproblem) -> None:
        self._task = task
        self._kappa = task.steepest / task.alpha
        root = math.sqrt(self._kappa)
        self._omega = (root - 1.0) / (root + 1.0)
        start = task.start
        self._y, self._f_y, self._fhat_y = [start.x], [start.f], [start.f]
        self._x, self._slope_x = [start.x], [start.g]
        self._fhat_x: list[float | None] = [start.f]
        self._out = Outcome()

    @property
    def kappa(self) -> float:
        return self._kappa

    def run(self) -> Outcome:
        """Iterate until one of the five flags is raised or a value is not finite."""
        out = self._out
        while out.flag == 0:
            if out.t >= MOST:
                out.flag = SPENT
                break
            out.t += 1
            if not self._one():
                break
        return out

    def _one(self) -> bool:
        """Carry out iteration t; False if it cannot continue and no flag is raised."""
        task, out, t = self._task, self._out, self._out.t
        trial = self._x[t - 1] - self._slope_x[t - 1] / task.steepest
        inside = task.inside.in_interior(trial)
        y = trial if inside else task.project(trial)
        f = task.evaluate.value(y)
        if not math.isfinite(f) or not self._keeps_to_it(y, f):
            return False
        self._y.append(y)
        self._f_y.append(f)
        self._fhat_y.append(task.lifted(y, f))
        higher = self._fhat_y[t] > self._fhat_y[0] + task.noise
        if higher:
            out.flag, out.w = 4 if inside else 2, "y0"
            out.pair = self._find(self._y[0], self._f_y[0], self._fhat_y[0])
            return True
        g = np.empty_like(y)
        gnorm = task.evaluate.gradient(y, g)
        if not math.isfinite(gnorm):
            return False
        point = Iterate(y, f, g, gnorm)
        slope = task.slope(y, g)
        if not inside:
            out.flag, out.point = 1, point
        elif not task.literal and gnorm < task.tolerance:
            out.flag, out.point = 5, point
        elif self._certify(y, slope) and out.flag == 0:
            if norm(slope) <= task.tolerance / 10.0:
                out.flag, out.point = 5, point
            else:
                self._remember(point)
                return self._extrapolate()
        return out.flag != 0

    def _certify(self, y: Vector, slope: Vector) -> bool:
        """Certify-Progress where f̂(ŷ_t) ≤ f̂(ŷ_0): flags 3 and 4; False if something is not finite.

        Paper: alg:Certify.
        """
        task, out, t = self._task, self._out, self._out.t
        z = y - slope / task.steepest
        inside = task.inside.in_interior(z)
        z = z if inside else task.project(z)
        f = task.evaluate.value(z)
        fhat = task.lifted(z, f)
        # A gradient step on f̂ increases f̂ only if L1 is too small.
        if not math.isfinite(f) or (fhat > self._fhat_y[t] + task.noise and task.checks):
            return False
        if not inside:
            return self._put_on_boundary(z, f)
        distance, size = norm(z - self._y[0]), norm(slope)
        psi = self._fhat_y[0] - fhat + 0.5 * task.alpha * distance * distance + task.noise
        decay = math.exp(-t / math.sqrt(self._kappa))
        if size * size > 2.0 * task.steepest * psi * decay:
            out.flag, out.w = 4, "z"
            out.pair = self._find(z, f, fhat)
            out.extra = [(y, self._f_y[t], "yt")]
            if fhat <= self._fhat_y[0]:
                out.extra.append((z, f, "z"))
        return True

    def _put_on_boundary(self, w: Vector, f: float) -> bool:
        """Raise flag 3 with w (n,) on the boundary of X."""
        g = np.empty_like(w)
        gnorm = self._task.evaluate.gradient(w, g)
        if not math.isfinite(gnorm):
            return False
        self._out.flag, self._out.point = 3, Iterate(w, f, g, gnorm)
        return True

    def _remember(self, y: Iterate) -> None:
        """Store ŷ_t, which is not the last, if its f or ‖∇f‖ is the lowest so far."""
        out = self._out
        if out.best is None or y.f < out.best.f:
            out.best, out.best_at = y, out.t
        if out.calmest is None or y.gnorm < out.calmest.gnorm:
            out.calmest = y

    def _extrapolate(self) -> bool:
        """Compute x̂_t = ŷ_t + ω(ŷ_t − ŷ_{t−1}) and ∇f̂ there; False if it is not finite."""
        task, y = self._task, self._y
        x = y[-1] + self._omega * (y[-1] - y[-2])
        g = np.empty_like(x)
        if not math.isfinite(task.evaluate.gradient(x, g)):
            return False
        self._x.append(x)
        self._slope_x.append(task.slope(x, g))
        self._fhat_x.append(None)
        return True

    def _fhat_at_x(self, j: int) -> float:
        """f̂(x̂_j), evaluated on first use."""
        known = self._fhat_x[j]
        if known is None:
            x = self._x[j]
            known = self._fhat_x[j] = self._task.lifted(x, self._task.evaluate.value(x))
        return known

    def _keeps_to_it(self, y: Vector, f: float) -> bool:
        """Whether f̂(ŷ_t) ≤ f̂(x̂) + ⟨∇f̂(x̂), ŷ_t − x̂⟩ + (L̂1/2)‖ŷ_t − x̂‖², x̂ = x̂_{t−1}.

        Violations within rounding are ignored; without `checks` the answer is True.
        """
        task, j = self._task, self._out.t - 1
        if not task.checks:
            return True
        step = y - self._x[j]
        length = norm(step)
        allowed = float(self._slope_x[j].dot(step)) + 0.5 * task.steepest * length * length
        excess = task.lifted(y, f) - self._fhat_at_x(j) - allowed
        return excess <= task.noise

    def _find(self, w: Vector, f_w: float, fhat_w: float) -> NCPair | None:
        """Find-NC-Pair: the first pair whose inequality holds by more than its rounding error.

        Paper: alg:NC-Pair.
        """
        task = self._task
        for j in range(self._out.t):
            v, slope = self._x[j], self._slope_x[j]
            candidates = (
                (self._y[j], self._f_y[j], self._fhat_y[j], "y"),
                (w, f_w, fhat_w, "w"),
            )
            for u, f, fhat, name in candidates:
                apart = u - v
                distance = norm(apart)
                product = float(slope.dot(apart))
                above = product + 0.5 * task.alpha * distance * distance
                terms = float(np.abs(slope).dot(np.abs(apart)))
                rounding = task.noise + ROUNDING * task.evaluate.eps * terms
                if distance > 0.0 and fhat < self._fhat_at_x(j) + above - rounding:
                    return NCPair(u, f, v, name, j)
        return None
