"""Derivatives at sampled points of a ball: lower estimates, never bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from slomodel.bounds.ball import Ball, Vector, norm, unit
from slomodel.bounds.limits import box_of_limits
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.stopping import pause
from slomodel.calculus import jvp
from slomodel.ir.expr import Expr, Input
from slomodel.reference import evaluate

_RANDOM_POINTS = 4
"""Random points of the ball at which values and curvatures are seen."""
_STEPS = 3
"""Power steps for the direction in which H, or a difference of two, is largest."""
_APART = 0.1
"""Part of the way from the centre between two points whose Hessians are compared."""
_OUTWARD = (0.1, 1.0)
"""Parts of the radius at which the ball is looked at."""


@once_per_part
def _product(part: ObjectivePart) -> tuple[tuple[Input, ...], tuple[Expr, ...]]:
    """Inputs for a direction, by variable, and graphs of the Hessian times that direction.

    Of the form that chooses between formulas, if there is one: at points where the plain one
    underflows its derivatives are NaN, and nothing would be seen.
    """
    part = part.with_choices or part
    along = tuple(Input(f"along {v.name}", "variable", v.shape) for v in part.variables)
    return along, jvp(part.gradient, dict(zip(part.variables, along, strict=True)))


def _times(part: ObjectivePart, x: Vector, v: Vector) -> Vector:
    """H(x)v (n,)."""
    if part.product is not None:
        return part.product(x, v)
    along, graphs = _product(part)
    at = part.by_variable(x) | dict(zip(along, part.by_variable(v).values(), strict=True))
    with np.errstate(all="ignore"):
        result = evaluate(graphs, {**part.values, **at}, part.sizes, pause)
    return np.concatenate([np.ravel(a) for a in result])


def _change(part: ObjectivePart, x: Vector, y: Vector, v: Vector) -> Vector:
    """(H(x) - H(y))v (n,)."""
    return _times(part, x, v) - _times(part, y, v)


def curvature(part: ObjectivePart, x: Vector, enough: float = math.inf) -> float:
    """‖H(x)v‖ for a random unit v (n,), or for the unit vector along H(x)v if that is larger; the
    second is left out where the first is `enough`.
    """
    generator = np.random.default_rng(0)
    v, seen = unit(generator.standard_normal(part.n)), 0.0
    for _ in range(2):
        if v is None:
            break
        product = _times(part, x, v)
        size = norm(product)
        seen = max(seen, size) if math.isfinite(size) else seen
        if seen >= enough:
            break
        v = unit(product)
    return seen


@once_per_part
def attained(part: ObjectivePart, radius: float) -> tuple[float, float]:
    """‖H‖ and ‖D³f‖ at sampled points of the ball; 0 where they are not finite.

    Points lie along the eigenvector v of H(c), and along D³f(c)[v, v], on which vᵀHv changes most.
    """
    centre = part.x
    ball = Ball(centre, radius, box_of_limits(part))
    start = unit(np.random.default_rng(0).standard_normal(part.n))
    assert start is not None, "a part with a ball has unknowns"
    first, v = _largest(partial(_times, part, centre), start)
    step = ball.inside(centre + _APART * radius * v) - centre
    rise = unit(_times(part, centre + step, v) - _times(part, centre, v))
    second = 0.0
    for along in (v, *([] if rise is None else [rise])):
        for share in (sign * t for t in _OUTWARD for sign in (1.0, -1.0)):
            x = ball.inside(centre + share * radius * along)
            first = max(first, _largest(partial(_times, part, x), v)[0])
            y = x + _APART * (centre - x)
            apart = norm(x - y)
            if apart > 0.0:
                change, _ = _largest(partial(_change, part, x, y), v)
                second = max(second, change / apart)
    return first, second


def _largest(apply: Callable[[Vector], Vector], v: Vector) -> tuple[float, Vector]:
    """The largest ‖Av‖ of a few power steps from a unit vector (n,), and the last vector."""
    seen = 0.0
    for _ in range(_STEPS):
        product = apply(v)
        size = norm(product)
        along = unit(product)
        if along is None:
            break
        seen, v = max(seen, size), along
    return seen, v


def points(part: ObjectivePart, radius: float) -> Iterator[Vector]:
    """Points of the ball (n,): the centre, the boundary along the gradient and towards 0, and
    random points that are the same for every call.
    """
    centre = part.x
    ball = Ball(centre, radius, box_of_limits(part))
    generator = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        slopes = evaluate(part.gradient, part.values, part.sizes)
    gradient = np.concatenate([np.ravel(a) for a in slopes])
    random = [generator.standard_normal(part.n) for _ in range(_RANDOM_POINTS)]
    yield centre
    yield ball.inside(np.zeros(part.n))
    for direction in (gradient, -gradient, -centre, *random):
        along = unit(direction)
        if along is not None:
            yield ball.at(along)
