"""Minimisation of a quadratic model over a set, by Newton steps on its faces."""

from __future__ import annotations

import numpy as np

from slomodel.solve.norms import Vector, norm
from slomodel.solve.objective import projected_norm
from slomodel.solve.quadratics.quadratic import Quadratic
from slomodel.solve.sets.convex_set import Face, Set
from slomodel.solve.subroutine import Iterate

# Least fraction of the decrease that the slope predicts, for a step on a face.
SUFFICIENT = 1e-4
# Factors tried for a step on a face before a projected gradient step.
FACTORS = (1.0, 0.5, 0.25, 0.0625)


def minimiser(model: Quadratic, within: Set, at: Iterate, face: Face) -> tuple[Vector, float]:
    """A point y (n,) of the set near the minimiser of the model, and the model's decrease there.

    Each step is P(y + td), d the Newton step on the face of y and the gradient r of the model, at x
    the given `face`: bounds that −r presses against stay active, all others are dropped, and the
    projection P adds as many as the step meets. Where no t gives a sufficient decrease, a
    projected gradient step with an exact line search is taken, which always does.
    """
    y = np.empty_like(at.x)
    free = model.free_step(at) if face.whole else None
    if free is not None and not within.project(at.x + free, y):
        return y, -0.5 * float(at.g.dot(free))
    np.copyto(y, at.x)
    r = at.g.copy()
    goal = model.accuracy * at.gnorm
    for _ in range(model.most):
        known = model.minimiser_over(within, y, r)
        if known is not None:
            s = known - y
            r += model.product(s)
            within.project(known, y)
            break
        step = _on_face(model, within, y, r, face)
        if step is None:
            step = _projected(model, within, y, r)
        end, s, Bs = step
        np.copyto(y, end)
        r += Bs
        curvature = float(s.dot(Bs))
        if face.shift is not None:
            curvature += float((face.shift * s).dot(s))
        if not s.any() or curvature <= 0.0 or model.is_over:
            break
        if not model.is_exact and projected_norm(within, y, r) <= goal:
            break
        face = within.face(y, r)
        # At a minimiser that is known to be one, bounds are active and not only near.
        if model.is_exact and norm(face.project(r)) <= goal:
            break
    # With r = g + Bs the model changes by ⟨g, s⟩ + ½⟨s, Bs⟩ = ½⟨s, g + r⟩.
    return y, -0.5 * float((y - at.x).dot(at.g + r))


def _on_face(
    model: Quadratic, within: Set, y: Vector, r: Vector, face: Face
) -> tuple[Vector, Vector, Vector] | None:
    """A point y + s on the face of −r, s and Bs, all (n,); None if no length gives a decrease.

    The point is that of the projection: y + s may leave a bound by rounding.

    On a curved boundary s leaves the tangent plane, and r across it, which may be large, belongs to
    the curvature: the slope is that on the plane.
    """
    try:
        d, Bd = model.solve(face, r)
    except np.linalg.LinAlgError:
        return None
    if not np.isfinite(d).all():
        return None
    trial = np.empty_like(y)
    along = r if face.shift is None else face.project(r)
    for t in FACTORS:
        moved = within.project(y + t * d, trial)
        s = trial - y
        slope = float(along.dot(s))
        if slope >= 0.0:
            continue
        Bs: Vector = model.product(s) if moved or Bd is None else t * Bd
        if float(r.dot(s)) + 0.5 * float(s.dot(Bs)) <= SUFFICIENT * slope:
            return trial, s, Bs
    return None


def _projected(
    model: Quadratic, within: Set, y: Vector, r: Vector
) -> tuple[Vector, Vector, Vector]:
    """The step s of length up to 1 along P(y − r/b) − y that minimises the model.

    b is the curvature of the model along its gradient. The result is y + s, s and Bs, all (n,).
    """
    curvature = float(r.dot(model.product(r)))
    square = float(r.dot(r))
    t = square / curvature if curvature > 0.0 and square > 0.0 else 1.0
    end = np.empty_like(y)
    within.project(y - t * r, end)
    p = end - y
    Bp = model.product(p)
    slope, bend = float(r.dot(p)), float(p.dot(Bp))
    if bend <= -slope:
        return end, p, Bp
    length = -slope / bend
    within.project(y + length * p, end)
    return end, length * p, length * Bp
