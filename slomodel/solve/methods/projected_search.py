"""The normalised Armijo line search, Algorithm 2 of the paper, for variables in a set."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from slomodel.solve.compiled.boxes import ModelInC
from slomodel.solve.compiled.steps import CompiledSteps, Pace, compiled_steps
from slomodel.solve.directions.direction import SecantPair
from slomodel.solve.directions.table import DIRECTIONS
from slomodel.solve.facts import conforms
from slomodel.solve.line_search.arc import ArcSearch
from slomodel.solve.line_search.armijo import AcceptedTrial
from slomodel.solve.line_search.initial_step import INITIAL_STEPS, StepMemory
from slomodel.solve.methods.auto import FEW, PredictedDecrease
from slomodel.solve.methods.ball import ball_of_a_step, grown, widened
from slomodel.solve.norms import EPS, LARGEST, Vector, norm
from slomodel.solve.objective import Evaluator
from slomodel.solve.quadratics.limited_memory import MOST
from slomodel.solve.quadratics.minimize import minimiser
from slomodel.solve.quadratics.quadratic import Quadratic
from slomodel.solve.quadratics.table import MODELS
from slomodel.solve.sets.convex_set import Face, Set
from slomodel.solve.stagnation.stagnation import Stagnation
from slomodel.solve.status import Status
from slomodel.solve.subroutine import (
    AcceptedStep,
    Block,
    BlockLimits,
    ConstantsOver,
    EpochRegion,
    Halt,
    Iterate,
    TheoremInequality,
)
from slomodel.solve.verify.inequalities import by_curvature, of_line_search

# Length of the first step, in units of max(1, ‖x0‖), of a model without curvature.
FIRST_STEP = 1.0
# A test that the Hessian's model has not confirmed is repeated where the decrease that is predicted
# has fallen to this fraction.
CONFIRM_AGAIN = 0.1
# The most products of a test by the Hessian, in units of the run's work so far: where that is
# singular a test may take as many as all evaluations before it, and the run does as well without.
CONFIRMATION = 0.5
# The models that replace one whose minimisation takes too much work: the first for a convex
# quadratic over a polyhedron, of not too many unknowns.
INSTEAD = ("newton", "lbfgs")


@dataclass(frozen=True, slots=True)
class ProjectedSearch:
    """Steps of length at most δ̄ along feasible directions y − x, without Lipschitz constants.

    For the direction `gradient` y is the projection of x − t∇f, with t from `initial_step`; for
    others it minimises a quadratic model over the set, which with `is_quadratic` is the objective.
    D = d = δ̄, so that every step ends its epoch; with `grows` δ̄ grows after steps of full length.
    With `gtol` a run also ends where no decrease is predicted to that tolerance (auto.py).
    """

    within: Set
    delta_bar: float
    theta: float
    sigma: float
    alpha: float
    direction: str
    initial_step: str
    first_step: float
    chosen_for: str = ""
    is_quadratic: bool = False
    grows: bool = False
    gtol: float | None = None

    name = "norm-armijo"
    own_test = False
    linearises = False
    second_descent = None

    @property
    def parameters(self) -> dict[str, float | str]:
        more: dict[str, float | str] = {"chosen_for": self.chosen_for} if self.chosen_for else {}
        return {
            "delta_bar": self.delta_bar,
            "theta": self.theta,
            "sigma": self.sigma,
            "alpha": self.alpha,
            "direction": self.direction,
            "initial_step": self.initial_step,
            **more,
        }

    @property
    def inequalities(self) -> tuple[TheoremInequality, ...]:
        return (
            *of_line_search(self.sigma, self.alpha),
            by_curvature(None, self.sigma, self.theta, self.alpha),
        )

    def region(self, start: Iterate, constants: ConstantsOver | None) -> EpochRegion:
        return ball_of_a_step(start, self.delta_bar, self.within)

    def stepper(self, evaluate: Evaluator, start: Iterate, tolerance: float) -> ProjectedSearchRun:
        return ProjectedSearchRun(self, evaluate, start, tolerance)


class ProjectedSearchRun:
    """One run of ProjectedSearch: its buffers, the memory of the model, and its stagnation."""

    def __init__(
        self, method: ProjectedSearch, evaluate: Evaluator, start: Iterate, tolerance: float
    ) -> None:
        self._method = method
        self._evaluate = evaluate
        self._initial_step = INITIAL_STEPS[method.initial_step]
        self._first_gnorm = start.gnorm
        self._model: Quadratic | None = None
        # The goal of the minimisation of a model that is the objective, else 0.
        self._goal = tolerance if method.is_quadratic else 0.0
        if method.direction in MODELS:
            own = (method.first_step, self._goal)
            self._model = MODELS[method.direction](evaluate, start, *own)
        self._memory = StepMemory()
        self._reach = method.delta_bar
        # The minimiser of the model that v points to, a point of the set, and the decrease of the
        # model there. It is compared with that of the Hessian's model below a threshold.
        self._end: Vector | None = None
        self._predicted = self._confirm_below = math.inf
        self._test = None if method.gtol is None else PredictedDecrease(start, method.gtol)
        # The face at the last accepted point.
        self._face: Face | None = None
        idle = DIRECTIONS[method.direction].idle
        self._stagnation = Stagnation.of_searches(evaluate, start, idle)
        resolution = self._stagnation.resolution
        self._search = ArcSearch(evaluate, resolution, start, method.theta, method.sigma)
        self._v = np.empty_like(start.x)
        self._s = np.empty_like(start.x)
        self._y = np.empty_like(start.x)
        self._pace = Pace()
        self._compiled: CompiledSteps | None = None
        is_exact = self._model is None or self._model.is_exact
        if method.within.is_box and conforms(self._model, ModelInC) and not is_exact:
            self._compiled = compiled_steps(evaluate, len(start.x), MOST, None)

    def enter(self, region: EpochRegion) -> EpochRegion:
        return widened(region, self._reach, self._method.within)

    def advance(self, current: Iterate, region: EpochRegion, limits: BlockLimits) -> Block | None:
        """Plain steps by a compiled loop; None if there is none, or the next is not plain."""
        compiled, model, stagnation = self._compiled, self._model, self._stagnation
        if compiled is None or self._reach != region.D or stagnation.probe.due:
            return None
        if not self._pace.is_due():
            return None
        loop = compiled.loop
        if not (conforms(model, ModelInC) and model.store(loop, current)):
            self._pace.pass_over()
            return None
        loop.alpha, loop.reach, loop.grows = self._method.alpha, self._reach, self._method.grows
        loop.confirm_below = self._confirm_below
        if self._test is not None:
            self._test.store(loop)
        self._search.store(loop)
        stagnation.store(loop)
        steps = compiled.run("projected_search", current, limits)
        self._pace.record(steps, bool(loop.was_left))
        if not steps:
            self._pace.is_due()
            return None
        block = compiled.block(steps, "")
        model.load(loop)
        self._search.load(loop)
        stagnation.load(loop, compiled.best)
        np.copyto(self._v, compiled.last_step)
        self._reach, self._memory.delta, self._face = loop.reach, loop.delta, None
        return block

    def step(self, current: Iterate, region: EpochRegion) -> AcceptedStep | Halt:
        """Step to x + δ(y − x) with δ ≤ 1 from the line search. Paper: alg:lsearch."""
        D = region.D
        halt = self._stagnation.look_far(current, self._v)
        if halt:
            return halt
        self._replace_spent(current)
        own = self._toward_minimiser(current)
        if own and self._test is not None and self._predicted < self._confirm_below:
            own, halt = self._confirmed(current, self._test)
            if halt:
                return halt
        if not own:
            self._toward_projection(current)
        accepted = self._along(current, D)
        if accepted is None and own:
            own = False
            self._toward_projection(current)
            accepted = self._along(current, D)
        if accepted is None:
            return self._stagnation.explain_search(current, D)[0]
        length = norm(np.subtract(accepted.point.x, current.x, out=self._s))
        if self._stagnation.after(accepted.point, length / D):
            return self._stagnation.explain_search(current, D)[0]
        return self._accept(current, accepted, length, D, own)

    def _along(self, at: Iterate, D: float) -> AcceptedTrial | None:
        """Search along v from the full step, or from the length D."""
        length = norm(self._v)
        if length == 0.0:
            return None
        longest = min(D / length, LARGEST)
        slope = float(at.g.dot(self._v))
        return self._search.search(at, self._v, slope, min(1.0, longest), longest, self._end)

    def _replace_spent(self, at: Iterate) -> None:
        """Replace a model that takes too much work, for the rest of the run."""
        if self._model is None or not self._model.is_spent:
            return
        forms = self._model.may_form
        goal = self._goal if forms else 0.0
        name = INSTEAD[0] if forms else INSTEAD[1]
        self._model = MODELS[name](self._evaluate, at, self._method.first_step, goal)

    def _toward_minimiser(self, at: Iterate) -> bool:
        """Write y − x (n,) into v, y the minimiser of the model; False if it is not suitable.

        At a curved boundary v is the projection of y − x on the tangent cone or on the tangent
        plane, whichever is steeper: a chord to another point of the boundary points inward, where g
        may be far steeper than along it. It is suitable if ⟨g,v⟩ ≤ −α‖x − P(x − g)‖‖v‖.
        """
        self._end, self._predicted = None, math.inf
        if self._model is None:
            return False
        within = self._method.within
        face = self._face or within.face(at.x, at.g)
        shift = face.shift
        if not self._model.begin(at, shift):
            return False
        try:
            y, self._predicted = minimiser(self._model, within, at, face)
        except np.linalg.LinAlgError:
            return False
        np.subtract(y, at.x, out=self._v)
        if shift is None:
            self._end = y
        else:
            along = face.project(self._v)
            within.tangent(at.x, self._v.copy(), self._v)
            if at.g.dot(along) < at.g.dot(self._v):
                np.copyto(self._v, along)
        return self._descends(at, self._method.alpha)

    def _confirmed(self, at: Iterate, test: PredictedDecrease) -> tuple[bool, Halt | None]:
        """Whether the direction is suitable, and the end of the run at a stationary point.

        At a point that meets the test by the model of the run, the direction becomes that of the
        Hessian, of which pairs may not yet know all, and the test is repeated.
        """
        if not test.met(at, self._v, self._predicted, None):
            return True, None
        self._confirm_below = CONFIRM_AGAIN * self._predicted
        name = "newton" if len(at.x) <= FEW else "newton-cg"
        first = Iterate(at.x, at.f, at.g, self._first_gnorm)
        known, own = MODELS[name](self._evaluate, first, self._method.first_step, 0.0), self._model
        known.allow(CONFIRMATION * self._evaluate.work)
        self._model = known
        suitable, self._model = self._toward_minimiser(at), own
        # A minimisation that was cut short predicts less than the whole decrease.
        if known.is_over or not (suitable and test.met(at, self._v, self._predicted, None)):
            return suitable, None
        detail = (
            f"Norm of the projected gradient {at.gnorm:.3g}; by its second derivatives the "
            f"objective changes by {self._predicted:.2g} from here to its minimum."
        )
        sentence = "The point is stationary to the tolerance."
        return True, Halt(Status.converged, detail, sentence=sentence)

    def _descends(self, at: Iterate, alpha: float) -> bool:
        length, slope = norm(self._v), float(at.g.dot(self._v))
        return 0.0 < length <= LARGEST and slope <= -alpha * at.gnorm * length

    def _toward_projection(self, at: Iterate) -> None:
        """Write P(x − t∇f) − x (n,) into v, with t ≤ 1 if a larger one is not suitable."""
        self._end = None
        longest = min(self._reach / norm(at.g), LARGEST)
        t = self._initial_step(longest, self._memory)
        self._project(at, t)
        if t > 1.0 and not self._descends(at, self._method.alpha):
            self._project(at, 1.0)

    def _project(self, at: Iterate, t: float) -> None:
        np.multiply(at.g, -t, out=self._v)
        if not self._method.within.convex:
            self._method.within.tangent(at.x, self._v.copy(), self._v)
            return
        self._v += at.x
        end = self._end = np.empty_like(self._v)
        self._method.within.project(self._v, end)
        np.subtract(end, at.x, out=self._v)

    def _accept(
        self, old: Iterate, accepted: AcceptedTrial, length: float, D: float, own: bool
    ) -> AcceptedStep:
        new = accepted.point
        full_length = length >= D * (1.0 - 4.0 * EPS)
        self._memory.delta = accepted.delta
        self._stagnation.probe.count(full_length)
        if self._method.grows and full_length:
            self._reach = grown(self._reach, length)
        s = self._s
        y = np.subtract(new.g, old.g, out=self._y)
        if self._model is not None:
            self._face = self._method.within.face(new.x, new.g)
            shift = self._face.shift
            if shift is not None:
                y += shift * s
        pair = SecantPair(s, y, float(s.dot(y)), length, norm(y), own)
        self._memory.pair = pair
        if self._model is not None:
            self._model.learn(pair)
        return AcceptedStep(new, length, full_length, accepted.by_rounding)
