"""Derivatives seen at points of a ball: estimates from below, never bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from slomodel.bounds.ball import Ball, Vector, norm, unit
from slomodel.bounds.limits import box_of_limits
from slomodel.bounds.setting import Setting, once_per_setting
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


@once_per_setting
def _product(setting: Setting) -> tuple[tuple[Input, ...], tuple[Expr, ...]]:
    """Inputs for a direction, by variable, and graphs of the Hessian times that direction."""
    along = tuple(Input(f"along {v.name}", "variable", v.shape) for v in setting.variables)
    return along, jvp(setting.gradient, dict(zip(setting.variables, along, strict=True)))


def _times(setting: Setting, x: Vector, v: Vector) -> Vector:
    """H(x)v (n,)."""
    if setting.product is not None:
        return setting.product(x, v)
    along, graphs = _product(setting)
    at = setting.by_variable(x) | dict(zip(along, setting.by_variable(v).values(), strict=True))
    with np.errstate(all="ignore"):
        result = evaluate(graphs, {**setting.values, **at}, setting.sizes, pause)
    return np.concatenate([np.ravel(a) for a in result])


def _change(setting: Setting, x: Vector, y: Vector, v: Vector) -> Vector:
    """(H(x) - H(y))v (n,)."""
    return _times(setting, x, v) - _times(setting, y, v)


def curvature(setting: Setting, x: Vector, enough: float = math.inf) -> float:
    """‖H(x)v‖ for a random unit v (n,), or for the unit vector along H(x)v if that is larger; the
    second is left out where the first is `enough`.
    """
    generator = np.random.default_rng(0)
    v, seen = unit(generator.standard_normal(setting.n)), 0.0
    for _ in range(2):
        if v is None:
            break
        product = _times(setting, x, v)
        size = norm(product)
        seen = max(seen, size) if math.isfinite(size) else seen
        if seen >= enough:
            break
        v = unit(product)
    return seen


@once_per_setting
def attained(setting: Setting, radius: float) -> tuple[float, float]:
    """‖H‖ and ‖D³f‖ seen in the ball; 0 where they are not finite.

    Points lie along the eigenvector v of H(c), and along D³f(c)[v, v], on which vᵀHv changes most.
    """
    centre = setting.x
    ball = Ball(centre, radius, box_of_limits(setting))
    start = unit(np.random.default_rng(0).standard_normal(setting.n))
    assert start is not None, "a setting with a ball has unknowns"
    first, v = _largest(partial(_times, setting, centre), start)
    step = ball.inside(centre + _APART * radius * v) - centre
    rise = unit(_times(setting, centre + step, v) - _times(setting, centre, v))
    second = 0.0
    for along in (v, *([] if rise is None else [rise])):
        for part in (sign * t for t in _OUTWARD for sign in (1.0, -1.0)):
            x = ball.inside(centre + part * radius * along)
            first = max(first, _largest(partial(_times, setting, x), v)[0])
            y = x + _APART * (centre - x)
            apart = norm(x - y)
            if apart > 0.0:
                change, _ = _largest(partial(_change, setting, x, y), v)
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


def points(setting: Setting, radius: float) -> Iterator[Vector]:
    """Points of the ball (n,): the centre, the boundary along the gradient and towards 0, and
    random points that are the same for every call.
    """
    centre = setting.x
    ball = Ball(centre, radius, box_of_limits(setting))
    generator = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        slopes = evaluate(setting.gradient, setting.values, setting.sizes)
    gradient = np.concatenate([np.ravel(a) for a in slopes])
    random = [generator.standard_normal(setting.n) for _ in range(_RANDOM_POINTS)]
    yield centre
    yield ball.inside(np.zeros(setting.n))
    for direction in (gradient, -gradient, -centre, *random):
        along = unit(direction)
        if along is not None:
            yield ball.at(along)
