"""A second descent from the start of a run that creeps, by steps that are led astray less easily.

The first steps of a run may end in a narrow valley, or in one that leads to a limit at infinity,
where f falls by a tiny part of itself in thousands of steps. Conjugate gradients that stop early
take steps along the directions of large curvature first, and so may end elsewhere.
"""

from __future__ import annotations

import numpy as np

from slomodel.solve.objective import Evaluator
from slomodel.solve.run.history import Recorder
from slomodel.solve.run.run_state import RunState
from slomodel.solve.stagnation.resolution import ROUNDING
from slomodel.solve.subroutine import AcceptedStep, Iterate, Subroutine

# Work before a second descent: so much, and so much for each unknown. Most runs have ended by then.
LONG, LONG_PER_UNKNOWN = 600.0, 40.0
# A run creeps if f fell, in the second half of its steps, by less than this part of |f| and of its
# whole fall.
CREEPS = 1e-3
# Work until a second descent has ended, in units of that before it.
MOST = 3.0


def creeps(evaluate: Evaluator, recorder: Recorder, run: RunState, k: int) -> bool:
    """Whether a run of `auto` makes next to no progress after k steps, for the first time.

    In sets only runs with kinks are judged, for which there are other steps (kinks_in_sets.py).
    """
    few = evaluate.weighted_work < LONG + LONG_PER_UNKNOWN * len(run.current.x)
    if few or run.has_descended_again or not run.leaves_saddles:
        return False
    if evaluate.within is not None and run.facts.smooth:
        return False
    f = run.current.f
    fell = evaluate.sign * recorder.value(k // 2) - f
    return fell <= CREEPS * min(abs(f), run.first_f - f)


def second_descent(
    subroutine: Subroutine, evaluate: Evaluator, run: RunState, start: Iterate
) -> Iterate | None:
    """The end of another descent from x0, if it is lower than the present point of the run.

    It ends where ‖g‖ is gtol times that of the present point, after MOST times the work of the run,
    or where it has no further step. It needs Hessian products and an objective without kinks.
    None for methods that were requested.
    """
    run.has_descended_again = True
    other, own = subroutine.second_descent, evaluate.own_gradient
    if other is None or not (evaluate.has_products and evaluate.is_smooth):
        return None
    most, evaluate.own_gradient = MOST * evaluate.weighted_work, None
    start.gnorm = evaluate.gradient(start.x, start.g)
    enough = run.options.gtol * run.current.gnorm
    stepper, at = other.stepper(evaluate, start, 0.0), start
    region = stepper.enter(other.region(start, None))
    while evaluate.weighted_work < most and at.gnorm > enough:
        taken = stepper.step(at, region)
        if not isinstance(taken, AcceptedStep):
            break
        at, region = taken.point, stepper.enter(region)
    evaluate.own_gradient = own
    noise = ROUNDING * evaluate.eps * abs(run.current.f)
    return at.copy() if at.f < run.current.f - noise and np.isfinite(at.gnorm) else None
