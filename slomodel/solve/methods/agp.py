"""Accelerated gradient projection: Algorithm 3 of the paper (alg:AGP-subroutine)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from slomodel.errors import Diagnostic, DomainError
from slomodel.solve.constants.choice import lipschitz_source
from slomodel.solve.constants.proved import ProofSource, unproved
from slomodel.solve.constants.source import LipschitzSource
from slomodel.solve.methods.agp_inner import NCPair, Outcome, Subproblem, UntilGuilty
from slomodel.solve.methods.ball import SLACK, fixed_radius
from slomodel.solve.methods.context import MethodContext
from slomodel.solve.norms import Vector, norm
from slomodel.solve.objective import Evaluator
from slomodel.solve.options import bad_value, choice
from slomodel.solve.sets.ball import EuclideanBall
from slomodel.solve.stagnation.stagnation import Stagnation
from slomodel.solve.subroutine import (
    AcceptedStep,
    Constants,
    ConstantsOver,
    EpochRegion,
    Halt,
    Iterate,
    TheoremInequality,
    Violation,
)
from slomodel.solve.verify.inequalities import of_accelerated_steps

# Constants are needed over the ball of radius 3D, which contains every x̂_t.
OVER = 3.0
LEAST_D = 0.1
GROW = 4.0  # factor on D where L2 allows, up to the magnitude of x
# Limit on doublings of L1 and L2 in one epoch: a factor of 1e9 in all.
DOUBLINGS = 30
LIFTS = ("scale-free", "paper")


@dataclass(frozen=True, slots=True)
class AGP:
    """AGP: one step minimises f + α‖x − x̄‖² by accelerated steps until f is shown to be nonconvex.

    α = 2√L2·ε^¼, X = B(x₀, D − d), d = 2ε^¼/√L2, and L2 is raised to at least 36√ε/D², which does
    not change C1, C2 and the descent √ε·D/32 of an epoch. `lift` "paper": d = 2ε^¼ and L2 ≥ 1 as in
    the paper, which makes the run depend on the units of f. D = None: the larger of 0.1 and
    6√gtol/√L2.
    Paper: eqn:para-AGP-UPG.
    """

    D: float | None
    lift: str
    gtol: float

    name = "agp"
    own_test = False
    linearises = False
    second_descent = None

    @property
    def parameters(self) -> dict[str, float | str]:
        return ({} if self.D is None else {"D": self.D}) | {"lift": self.lift}

    @property
    def inequalities(self) -> tuple[TheoremInequality, ...]:
        return of_accelerated_steps()

    def stepper(self, evaluate: Evaluator, start: Iterate, tolerance: float) -> AGPRun:
        if self.lift == "paper" and self.D is not None:
            least = 6.0 * math.sqrt(tolerance)
            if least > self.D * (1.0 + SLACK):
                raise bad_value("D", f"a number ≥ 6ε^¼ = {least:g}", self.D)
        return AGPRun(self, evaluate, start, tolerance)

    def region(self, start: Iterate, constants: ConstantsOver | None) -> EpochRegion:
        """The ball of an epoch with the constants over three times its radius."""
        assert constants is not None
        D = self.D or LEAST_D
        if self.lift == "paper" and self.D is None:
            D = max(D, 6.0 * math.sqrt(self.gtol))
        result = both(constants, start, D)
        wanted, farthest = 6.0 * math.sqrt(self.gtol), max(1.0, norm(start.x))
        while self.D is None and self.lift != "paper" and farthest >= GROW * D:
            D_next = GROW * D
            if not D_next * math.sqrt(result.second) <= wanted:
                break
            larger = constants(start, OVER * D_next)
            if larger.unproved or not D_next * math.sqrt(larger.second) <= wanted:
                break
            D, result = D_next, larger
        centre = start.x.copy()
        ball = EuclideanBall(centre, D)
        return EpochRegion(
            centre, ball, 0.0, result.L1, result.second, result.source, result.estimated
        )


def both(constants: ConstantsOver, start: Iterate, D: float) -> Constants:
    """L1 and L2 over B(x, 3D); DomainError where one is missing."""
    result = constants(start, OVER * D)
    if result.unproved:
        raise unproved(OVER * D, result.unproved)
    if result.L2 is None:
        message = f"agp needs L2, and there is none over the ball of radius {OVER * D:.3g}"
        remedy = "give lipschitz as a function of centre and radius that returns (L1, L2)"
        raise DomainError(Diagnostic("E606", message, help=remedy))
    return result


class AGPRun:
    """One run of AGP."""

    def __init__(self, method: AGP, evaluate: Evaluator, start: Iterate, tolerance: float) -> None:
        self._literal = method.lift == "paper"
        self._evaluate = evaluate
        # With gtol = 0 the run continues to the resolution of f, and α must still be positive.
        self._tolerance = max(tolerance, evaluate.eps * start.gnorm)
        self._stagnation = Stagnation.of_fixed_steps(evaluate, start)
        self._largest_f = abs(start.f)
        self._doublings = 0
        self._doubled = False
        self._s = np.empty_like(start.x)

    def enter(self, region: EpochRegion) -> EpochRegion:
        """The region with L2 raised and the margin d that belongs to it."""
        assert region.L2 is not None
        if not self._doubled:
            self._doublings = 0
        self._doubled = False
        D, root = region.D, math.sqrt(self._tolerance)
        if self._literal:
            return replace(region, L2=max(region.L2, 1.0), d=2.0 * root)
        L2 = max(region.L2, 36.0 * self._tolerance / (D * D))
        return replace(region, L2=L2, d=2.0 * root / math.sqrt(L2))

    def step(self, current: Iterate, region: EpochRegion) -> AcceptedStep | Halt | Violation:
        """Step from x̄ to p, b⁽¹⁾ or b⁽²⁾, or to the best point left if rounding excludes these."""
        halt = self._stagnation.look_far(current, self._s)
        if halt:
            return halt
        task = self._task(current, region)
        if not math.isfinite(task.steepest) or self._doublings > DOUBLINGS:
            return self._why_no_gain(current, region)
        inner = UntilGuilty(task)
        out = inner.run()
        if out.flag == 0:
            return self._double()
        facts: dict[str, float | str] = {"flag": out.flag, "t": out.t, "alpha": task.alpha}
        facts |= {"kappa": inner.kappa, "doublings": self._doublings}
        new = out.point
        facts["chosen"] = "p"
        if new is None:
            new = self._of_the_pair(task, region, out, facts)
        if new is None:
            new = self._otherwise(task, out, facts)
        if new is None:
            return self._why_no_gain(current, region)
        return self._accept(current, new, region, facts, at_boundary=out.flag in (1, 3))

    def _task(self, current: Iterate, region: EpochRegion) -> Subproblem:
        assert region.L1 is not None
        assert region.L2 is not None
        return Subproblem(
            evaluate=self._evaluate,
            start=current,
            inside=region.set.shrunk(region.d),
            alpha=2.0 * math.sqrt(region.L2) * math.sqrt(self._tolerance),
            L1=region.L1,
            tolerance=self._tolerance,
            noise=2.0 * self._stagnation.resolution.noise(current),
            checks=region.estimated,
            literal=self._literal,
        )

    def _of_the_pair(
        self, task: Subproblem, region: EpochRegion, out: Outcome, facts: dict[str, float | str]
    ) -> Iterate | None:
        """b⁽¹⁾ if it is low enough, else b⁽²⁾ if that is; None without a pair."""
        assert region.L2 is not None
        pair, L2, alpha = out.pair, region.L2, task.alpha
        facts["w"] = out.w
        if pair is None:
            return None
        facts |= {"nc_u": pair.name, "nc_j": pair.j}
        wanted = task.start.f - alpha**3 / (64.0 * L2 * L2)
        x, f, name = self._first(task, out, pair)
        facts |= {"b1": name, "b1_gain": f - task.start.f}
        if f <= wanted:
            facts["chosen"] = "b1"
            if out.best is not None and x is out.best.x:
                return out.best
            return self._complete(x, f)
        facts["chosen"] = "b2"
        least = task.tolerance**1.5 / (10.0 * math.sqrt(L2))
        away = pair.u - pair.v
        away *= alpha / (L2 * norm(away))
        values = [(self._evaluate.value(x), x) for x in (pair.u + away, pair.u - away)]
        f, x = min(values, key=lambda one: one[0] if math.isfinite(one[0]) else math.inf)
        low = f <= task.start.f - least + task.noise
        return self._complete(x, f) if low and math.isfinite(f) else None

    def _first(self, task: Subproblem, out: Outcome, pair: NCPair) -> tuple[Vector, float, str]:
        """b⁽¹⁾: the lowest of ŷ_1 … ŷ_{t−1} and u, and of the equally admissible ŷ_t and z."""
        result: list[tuple[Vector, float, str]] = []
        if out.best is not None:
            result.append((out.best.x, out.best.f, f"y{out.best_at}"))
        result.append((pair.u, pair.f_u, "u"))
        if not task.literal:
            result += out.extra
        return min(result, key=lambda one: one[1])

    def _otherwise(
        self, task: Subproblem, out: Outcome, facts: dict[str, float | str]
    ) -> Iterate | None:
        """The lowest ŷ, the ŷ of least ‖∇f‖, or a gradient step, if that is an improvement.

        It has to lower f, or ‖∇f‖ at the resolution of f.
        """
        start, noise = task.start, self._stagnation.resolution.noise(task.start)
        if out.best is not None and out.best.f < start.f - noise:
            facts["chosen"] = "best"
            return out.best
        if out.calmest is not None and out.calmest.gnorm < start.gnorm:
            facts["chosen"] = "calmest"
            return out.calmest
        facts["chosen"] = "gradient"
        x = start.x - start.g / task.steepest
        if not task.inside.in_interior(x):
            return None
        new = self._complete(x, self._evaluate.value(x))
        if new is None or new.f > start.f + noise:
            return None
        return new if new.f < start.f - noise or new.gnorm < start.gnorm else None

    def _complete(self, x: Vector, f: float) -> Iterate | None:
        """The point x (n,) with its value f and gradient; None if one of these is not finite."""
        g = np.empty_like(x)
        if not math.isfinite(f):
            return None
        gnorm = self._evaluate.gradient(x, g)
        return Iterate(x.copy(), f, g, gnorm) if math.isfinite(gnorm) else None

    def _accept(
        self,
        current: Iterate,
        new: Iterate,
        region: EpochRegion,
        facts: dict[str, float | str],
        at_boundary: bool,
    ) -> AcceptedStep | Halt | Violation:
        """Accept the step if f decreases by C1‖x⁺ − x̄‖², as proved. Paper: eq:C1C2:AGP."""
        assert region.L2 is not None
        length = norm(np.subtract(new.x, current.x, out=self._s))
        if length == 0.0:
            return self._why_no_gain(current, region)
        C1 = math.sqrt(region.L2 * self._tolerance) / 24.0
        resolution = self._stagnation.resolution
        excess = max(new.f - current.f + C1 * length * length, new.f - resolution.lowest)
        holds = resolution.within_noise(self._evaluate, current, excess, self._largest_f, region.D)
        if region.estimated and not holds:
            return self._double()
        if self._stagnation.after(new, length / region.D):
            return self._why_no_gain(current, region)
        resolution.lowest = min(resolution.lowest, new.f) if holds else new.f
        self._largest_f = max(self._largest_f, abs(new.f))
        self._stagnation.probe.count(at_boundary)
        return AcceptedStep(
            new, length, at_boundary, holds and excess > 0.0, violates=not holds, facts=facts
        )

    def _double(self) -> Violation:
        """Request that the step be repeated with L1 and L2 doubled."""
        self._doublings += 1
        self._doubled = True
        return Violation()

    def _why_no_gain(self, at: Iterate, region: EpochRegion) -> Halt:
        reach = max(region.D, norm(at.x))
        limit = f"D = {region.D:.3g}, L1 = {region.L1:.3g} and L2 = {region.L2:.3g}"
        return self._stagnation.explain(at, reach, limit)


def agp_source(given: Mapping[str, object], prove: ProofSource | None) -> LipschitzSource:
    """The source of L1 and L2; DomainError for a number, which gives only one of them."""
    source = lipschitz_source(given, prove, second=True)
    if not source.gives_second:
        message = "lipschitz is one number, and agp needs L1 and L2"
        remedy = "give a function of centre and radius that returns (L1, L2)"
        raise DomainError(Diagnostic("E604", message, help=remedy))
    return source


def agp(given: Mapping[str, object], context: MethodContext) -> AGP:
    """AGP with its defaults."""
    D = fixed_radius(given["D"]) if "D" in given else None
    return AGP(D, choice("lift", given.get("lift", LIFTS[0]), LIFTS), context.gtol)
