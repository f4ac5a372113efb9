"""`method="auto"`: a direction chosen by the structure of the objective, and its stop test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from slomodel.solve.compiled.loop import LoopState
from slomodel.solve.directions.table import DIRECTIONS
from slomodel.solve.facts import ObjectiveFacts
from slomodel.solve.norms import EPS, Vector, norm
from slomodel.solve.sets.convex_set import Set
from slomodel.solve.status import Status
from slomodel.solve.subroutine import Halt, Iterate

FEW = 20
"""Largest n for which a matrix per step costs no more than the rest of the step."""
FEW_IN_SQUARES = 9
"""Largest n for which Jacobians, of n columns per step, cost less than more steps of `bfgs`."""
SOME = 300
"""Largest n for which the Hessian of a quadratic over a polyhedron is formed."""
MANY = 1000
"""Largest n for which a quadratic is left to matrices, and over a curved set to `lbfgs`."""
REACH = 10.0
"""δ̄ over max(1, ‖x0‖), larger since directions with their own length need less restriction."""
DESCENT = 1e-4
"""σ of searches that interpolate: a step with a model behind it needs little descent."""
LOGARITHMIC_MOVE = 2.0
"""Largest change per step of a variable on a logarithmic scale. Changes of variables are flat far
out: a longer step, as along negative curvature, may end where no gradient leads back."""

BENDS = 12
"""Rejected trials that a direction may answer by bending."""

_SECOND = "newton-cg"
SECOND_DESCENT: Mapping[str, Any] = {
    "direction": _SECOND,
    "alpha": DIRECTIONS[_SECOND].alpha,
    "initial_step": DIRECTIONS[_SECOND].initial_step,
    "sigma": 0.3,
    "interpolates": False,
    "grows": False,
    "gtol": None,
}
"""How a second descent differs from that of a run that creeps: its steps are not lengthened, since
those of the first may have been led astray, and a search demands more descent of them."""

# Lower bounds on |f| in the test: a fraction of the change of f that its curvatures cause over
# |x|, and an absolute value.
CURVED, ABSOLUTE = 1e-10, 1e-18
# f tends to a least value of 0 where the predicted decrease is at least VANISHING·|f|: a Newton
# step from a root of order p removes p/(2(p − 1)) of f. It has vanished at VANISHED·(f(x0) − f).
VANISHING, VANISHED = 0.1, EPS * EPS
# Fraction of gtol by which no variable may change.
MOVED = 0.1


class PredictedDecrease:
    """Whether a point is stationary to the relative tolerance `gtol`, in any units of f and x.

    It is if ‖∇f‖ ≤ gtol·max(|f(x0)|/‖x0‖, ‖∇f(x0)‖), and a step v to the minimum of a quadratic
    model lowers f by at most gtol²·F, or changes no variable by more than MOVED·gtol times its
    magnitude. If x0 = 0, 1 stands for ‖x0‖. `steepest` is the bound on ‖∇f‖.
    F is |f|, but at most the larger of f(x0) − f and c = Σ|h_i|x_i²/2, with the diagonal elements
    h_i of the Hessian: a constant added to f does not loosen the test. The second condition is for
    least values of 0, of which no decrease is a small part. Where f tends to 0 and variables vanish
    as well, F may be replaced by CURVED·c, and where all do, by ABSOLUTE times the smaller of 1 and
    f(x0) − f. Elsewhere c says nothing: along a single direction it may be 1e20 times |f|.
    Dennis & Schnabel, Numerical Methods for Unconstrained Optimization (1983), Section 7.2.
    """

    def __init__(self, start: Iterate, gtol: float) -> None:
        self._gtol = gtol
        self._first_f = start.f
        self.steepest = gtol * max(abs(start.f) / (norm(start.x) or 1.0), start.gnorm)

    def store(self, loop: LoopState) -> None:
        """Write the test into the state of a compiled loop."""
        loop.tests, loop.gtol = True, self._gtol
        loop.test_first, loop.test_steepest = self._first_f, self.steepest

    def met(self, at: Iterate, v: Vector, decrease: float, curvatures: Vector | None) -> bool:
        """Whether the test is met at a point by a step v (n,) with its predicted decrease.

        `curvatures` (n,) are the diagonal elements of the Hessian, if they are known.
        """
        gtol, x = self._gtol, at.x
        if not at.gnorm <= self.steepest:
            return False
        curved = 0.0
        if curvatures is not None:
            curved = 0.5 * float(np.abs(curvatures).dot(x * x))
        gained = self._first_f - at.f
        size = min(abs(at.f), max(gained, curved))
        if decrease >= VANISHING * abs(at.f) or abs(at.f) <= VANISHED * gained:
            size = max(size, CURVED * curved, ABSOLUTE * min(1.0, gained))
        return decrease <= gtol * gtol * size or bool((np.abs(v) <= MOVED * gtol * np.abs(x)).all())

    def end(self, at: Iterate, decrease: float, hessian: Vector | None) -> Halt:
        """The end of a run at a point that meets the test by its Hessian (n, n)."""
        detail = (
            f"Gradient norm {at.gnorm:.3g}; by its second derivatives the objective changes by "
            f"{decrease:.2g} from here to its minimum."
        )
        sentence = "The point is stationary to the tolerance."
        return Halt(Status.converged, detail, sentence=sentence, hessian=hessian)


def is_quadratic(facts: ObjectiveFacts) -> bool:
    """Whether the objective is a polynomial of degree 2 at most."""
    return facts.degree is not None and facts.degree <= 2


def chosen(facts: ObjectiveFacts, n: int) -> tuple[str, str]:
    """A direction for n unknowns, and the reason for the choice.

    The first case that applies: few unknowns without Hessian products: `lbfgs/newton`; many of
    them: `lbfgs`. Kinks: `bfgs`. A quadratic of very many unknowns: `newton-cg`, whose conjugate
    gradients solve it in few steps. Very few unknowns and a sum of squares: `levenberg-marquardt`.
    Otherwise `bfgs`.
    """
    few = n <= FEW
    size = f"{n} unknown{'' if n == 1 else 's'}"
    if not facts.curvature:
        few = few and facts.smooth
        return ("lbfgs/newton" if few else "lbfgs"), f"plain functions of {size}"
    if not facts.smooth:
        return "bfgs", "an objective with kinks"
    if is_quadratic(facts) and n > MANY:
        return "newton-cg", f"a quadratic objective of {size}"
    if facts.squares and n <= FEW_IN_SQUARES:
        return "levenberg-marquardt", f"a sum of squares in {size}"
    return "bfgs", f"a smooth objective of {size}"


def chosen_in_set(facts: ObjectiveFacts, n: int, within: Set) -> tuple[str, str]:
    """A direction for n unknowns in a set, and the reason for the choice.

    `lbfgs` takes the fewest evaluations for most problems, and many for some, on which Newton steps
    alternate with it if there are Hessian products. A quadratic is its own model: over a polyhedral
    set it is minimised with its matrix for up to `SOME` unknowns, and on each face by conjugate
    gradients for more, whose products cost less than the linear algebra of the pairs; over curved
    sets only if there are many unknowns.
    """
    if facts.curvature and is_quadratic(facts) and within.polyhedral and n <= SOME:
        return "newton", f"a quadratic objective of {n} unknowns in a set"
    if facts.curvature and is_quadratic(facts) and (within.polyhedral or n > MANY):
        return "newton-cg", f"a quadratic objective of {n} unknowns in a set"
    if not (facts.smooth and facts.curvature):
        return "lbfgs", "variables in a set"
    return ("lbfgs/newton" if n <= FEW else "lbfgs/newton-cg"), f"{n} unknowns in a set"
