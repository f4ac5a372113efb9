"""Estimates of both constants from gradients and Hessian-vector products at points of the ball.

Every number here is reached by some pair of points (but for rounding and, for L2, the error of a
difference), so it lies below the constant: it is an estimate and no bound.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

import numpy as np
from numpy.random import Generator

from slomodel.bounds.ball import Ball, Vector, norm, unit
from slomodel.bounds.forms.lanczos import largest
from slomodel.bounds.result import Bounds, Claim, Constant, checked_radius
from slomodel.errors import Diagnostic, DomainError

RANDOM_STARTS = 2
# Steps of a difference of H, in units of max(1, ‖x‖∞): the error of the difference is least
# near the cube root of eps.
DIFFERENCE = 6e-6
# A Frank-Wolfe step that gains less than this share ends an ascent.
GAIN = 1e-3
SHARES = (1.0, 0.5, 0.25)
POWER_STEPS = 3


class Derivatives(Protocol):
    """The gradient and Hessian-vector products of a function of x (n,)."""

    @property
    def n(self) -> int: ...

    def gradient(self, x: Vector) -> Vector: ...

    def hvp(self, x: Vector, v: Vector) -> Vector: ...


@dataclass(frozen=True, slots=True)
class Estimate:
    """The largest value seen for each constant, and how many points were looked at."""

    L1: float = 0.0
    L2: float = 0.0
    points: int = 0

    def saw(self, L1: float, L2: float, points: int = 1) -> Estimate:
        """With the values at further points; those that are not finite are left out."""
        L1, L2 = (value if math.isfinite(value) else 0.0 for value in (L1, L2))
        return Estimate(max(self.L1, L1), max(self.L2, L2), self.points + points)


def pairs(f: Derivatives, ball: Ball, samples: int, generator: Generator) -> Estimate:
    """The largest ‖∇f(x) − ∇f(x')‖/‖x − x'‖ over random pairs of points uniform in the ball.

    For L2 the same of H, along the direction in which H(x) − H(x') is largest after a few power
    steps. Paper: sec:numerical.
    """
    found = Estimate()
    for _ in range(samples):
        x, y = ball.random(generator), ball.random(generator)
        distance = norm(x - y)
        if distance == 0.0:
            continue
        slope = norm(f.gradient(x) - f.gradient(y)) / distance
        v, turn = generator.standard_normal(f.n), 0.0
        for _step in range(POWER_STEPS):
            along = unit(v)
            if along is None:
                break
            v = f.hvp(x, along) - f.hvp(y, along)
            turn = norm(v) / distance
        found = found.saw(slope, turn, 2)
    return found


@dataclass(frozen=True, slots=True)
class Look:
    """What is seen at x (n,): λ of H(x) with its eigenvector (n,), and ‖D³f(x)[w, w]‖ at best."""

    x: Vector
    eigenvalue: float
    vector: Vector
    turn: float


def ascent(f: Derivatives, ball: Ball, samples: int, generator: Generator) -> Estimate:
    """Climbs from the centre and several starts towards larger ‖H‖, over `samples` points in all.

    The starts are c ± r·v, v the eigenvector of H(c), the two ends of the radius through c, and
    random points of the boundary.
    """
    centre = _look(f, ball, ball.centre, generator.standard_normal(f.n))
    found = Estimate().saw(abs(centre.eigenvalue), centre.turn)
    if ball.radius == 0.0:
        return found
    outward = unit(ball.centre)
    directions = [centre.vector, *([] if outward is None else [outward])]
    directions += [-one for one in directions]
    directions += [d for d in generator.standard_normal((RANDOM_STARTS, f.n)) if d.any()]
    for k, direction in enumerate(directions):
        start = ball.at(direction / norm(direction))
        most = samples * (k + 1) // len(directions) - found.points
        for look in islice(_climb(f, ball, start, centre.vector), max(0, most)):
            found = found.saw(abs(look.eigenvalue), look.turn)
    return found


def _climb(f: Derivatives, ball: Ball, x: Vector, v: Vector) -> Iterator[Look]:
    """Points from x (n,) on, each with a larger ‖H‖ or a trial for one, until no trial is better.

    At each both ends of the spectrum by Lanczos; then towards the boundary point in the direction
    in which |vᵀH(x)v| grows fastest, v the eigenvector (a Frank-Wolfe step).
    """
    here = _look(f, ball, x, v)
    yield here
    climbing = math.isfinite(here.eigenvalue)
    while climbing:
        uphill = unit(_slope(f, ball, here.x, here.vector) * math.copysign(1.0, here.eigenvalue))
        if uphill is None:
            return
        climbing = False
        for share in SHARES:
            trial = (1.0 - share) * here.x + share * ball.at(uphill)
            there = _look(f, ball, ball.inside(trial), here.vector)
            yield there
            if abs(there.eigenvalue) > (1.0 + GAIN) * abs(here.eigenvalue):
                here, climbing = there, True
                break


def _look(f: Derivatives, ball: Ball, x: Vector, v: Vector) -> Look:
    """The view at x (n,); the Lanczos method and the power steps for D³f start from v (n,)."""
    value, vector = largest(lambda w: f.hvp(x, w), v)
    turn, along = 0.0, vector
    for _ in range(POWER_STEPS if math.isfinite(value) else 0):
        slope = _slope(f, ball, x, along)
        turn = max(turn, norm(slope))
        following = unit(slope)
        if following is None:
            break
        along = following
    return Look(x, value, vector, turn)


def _slope(f: Derivatives, ball: Ball, x: Vector, v: Vector) -> Vector:
    """D³f(x)[v, v] (n,) by a difference of H(·)v between two points of the ball; v of length 1.

    0 in a ball too small for one.
    """
    t = min(DIFFERENCE * max(1.0, float(np.abs(x).max())), ball.radius)
    ahead, behind = ball.inside(x + t * v), ball.inside(x - t * v)
    distance = norm(ahead - behind)
    if distance < 0.5 * t:
        return np.zeros_like(x)
    return (f.hvp(ahead, v) - f.hvp(behind, v)) / distance


METHODS: dict[str, Callable[[Derivatives, Ball, int, Generator], Estimate]] = {
    "ascent": ascent,
    "pairs": pairs,
}


def sample(
    f: Derivatives, centre: Vector, radius: float, samples: object, seed: int, method: str
) -> Bounds:
    """Both constants as a method estimates them; repeatable by `seed`. Raises DomainError."""
    radius = checked_radius(radius)
    if method not in METHODS:
        listed = ", ".join(METHODS)
        message = f"method: expected one of {listed}, found {method!r}"
        raise DomainError(Diagnostic("E602", message, help=f"use one of {listed}"))
    if isinstance(samples, bool) or not isinstance(samples, numbers.Integral) or samples < 1:
        message = f"samples: expected a whole number ≥ 1, found {samples!r}"
        raise DomainError(Diagnostic("E602", message, help="give the number of points or pairs"))
    if not (np.all(np.isfinite(centre)) and math.isfinite(radius)):
        message = "points are drawn from a ball with finite centre and radius only"
        raise DomainError(Diagnostic("E606", message, help="give a finite centre and radius"))
    found = Estimate()
    if f.n:
        generator = np.random.default_rng(seed)
        with np.errstate(all="ignore"):
            found = METHODS[method](f, Ball(centre, radius), int(samples), generator)
    trace = (f"the largest seen at {found.points} points",)
    return Bounds(
        L1=found.L1,
        L2=found.L2,
        source="sampled",
        rigor="estimated",
        radius=radius,
        n=f.n,
        gradient=Constant((Claim(method, found.L1, trace=trace),)),
        hessian=Constant((Claim(method, found.L2, trace=trace),)),
        at_radius=lambda other: sample(f, centre, other, samples, seed, method),
    )
