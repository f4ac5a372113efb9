"""Estimates of both constants from gradients and Hessian-vector products at points of the ball.

Every number here is attained by some pair of points, so it lies below the constant: it is an
estimate, not a bound. The contribution of rounding, most of a difference at close points, is
measured and subtracted.
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
from slomodel.bounds.norms.lanczos import largest
from slomodel.bounds.result import Bounds, Claim, Constant, checked_radius
from slomodel.errors import Diagnostic, DomainError

EPS = float(np.finfo(np.float64).eps)
RANDOM_STARTS = 2
"""Random directions beside those of the largest curvature at the centre."""
# Steps of a difference of H, in units of max(1, ‖x‖∞): the error of the difference is least
# near the cube root of eps.
DIFFERENCE = 6e-6
# A Frank-Wolfe step with a relative gain below this ends an ascent.
GAIN = 1e-3
FRACTIONS = (1.0, 0.5, 0.25)
"""Lengths of steps that are tried, as parts of a Frank–Wolfe step."""
POWER_STEPS = 3
"""Steps of the power iteration at a point, each a Hessian-vector product."""
# Rounding errors are measured as the largest change over NUDGES points within FARTHEST_NUDGE ulps
# of x. The errors assumed are MARGIN times that, and at least MARGIN·LEAST·eps relative.
NUDGES = 8
FARTHEST_NUDGE = 4
MARGIN = 8.0
LEAST = 4.0
# Where rounding errors may exceed this fraction of a difference of gradients, a Hessian-vector
# product is used instead.
TOO_CLOSE = 1e-4


class DerivativeOracle(Protocol):
    """The gradient and Hessian-vector products of a function of x (n,)."""

    @property
    def n(self) -> int: ...

    def gradient(self, x: Vector) -> Vector: ...

    def hvp(self, x: Vector, v: Vector) -> Vector: ...


@dataclass(frozen=True, slots=True)
class Estimate:
    """The largest value seen for each constant, and the number of points evaluated."""

    L1: float = 0.0
    L2: float = 0.0
    points: int = 0

    def saw(self, L1: float, L2: float, points: int = 1) -> Estimate:
        """The estimate updated with values at further points; non-finite ones are ignored."""
        L1, L2 = (value if math.isfinite(value) else 0.0 for value in (L1, L2))
        return Estimate(max(self.L1, L1), max(self.L2, L2), self.points + points)


@dataclass(frozen=True, slots=True)
class Rounding:
    """Rounding errors of gradients and of products H(x)v with ‖v‖ = 1: (absolute, relative).

    At the point of measurement both are the same error; elsewhere in the ball the larger counts.
    """

    gradient: tuple[float, float]
    product: tuple[float, float]

    def of_gradient(self, *gradients: Vector) -> float:
        """Error bound for a gradient (n,), or for the difference of two."""
        return _off(self.gradient, gradients)

    def of_product(self, *products: Vector) -> float:
        """Error bound for a product (n,), or for the difference of two."""
        return _off(self.product, products)


def _off(measured: tuple[float, float], seen: tuple[Vector, ...]) -> float:
    return max(measured[0], measured[1] * max(map(norm, seen)))


def rounding_at(f: DerivativeOracle, x: Vector, v: Vector, eps: float) -> Rounding:
    """The rounding errors of the gradient and of H(x)v/‖v‖, at x (n,) for a v ≠ 0 (n,).

    They are measured as changes between neighbouring points, a few multiples of `eps` from x. The
    change of the exact derivatives over that distance is included, and is smaller.
    """
    along = v / norm(v)
    generator = np.random.default_rng(0)
    nudges = generator.integers(-FARTHEST_NUDGE, FARTHEST_NUDGE, (NUDGES, len(x)), endpoint=True)
    near = x * (1.0 + eps * nudges)

    def measured(of: Callable[[Vector], Vector]) -> tuple[float, float]:
        here = of(x)
        size = norm(here)
        if not math.isfinite(size):
            return 0.0, LEAST * MARGIN * eps
        others = (norm(of(y) - here) for y in near)
        spread = max(LEAST * eps * size, *(one for one in others if math.isfinite(one)), 0.0)
        return MARGIN * spread, MARGIN * (spread / size if size > 0.0 else LEAST * eps)

    return Rounding(measured(f.gradient), measured(lambda y: f.hvp(y, along)))


def pairs(
    f: DerivativeOracle, ball: Ball, samples: int, generator: Generator, eps: float = EPS
) -> Estimate:
    """The largest ‖∇f(x) − ∇f(x')‖/‖x − x'‖ over random pairs of points uniform in the ball.

    For L2 the same quotient of H, along the direction in which H(x) − H(x') is largest after a few
    power steps. Where x and x' are so close that rounding errors dominate a difference, it is
    replaced by ‖H(x)(x − x')‖. Paper: sec:numerical.
    """
    result = Estimate()
    rounding = rounding_at(f, ball.centre, np.ones(f.n), eps)
    for _ in range(samples):
        x, y = ball.random(generator), ball.random(generator)
        distance = norm(x - y)
        if distance == 0.0:
            continue
        g, other = f.gradient(x), f.gradient(y)
        error = rounding.of_gradient(g, other)
        slope = (norm(g - other) - error) / distance
        if error > TOO_CLOSE * slope * distance:
            product = f.hvp(x, (x - y) / distance)
            slope = max(slope, norm(product) - rounding.of_product(product))
        v, turn = generator.standard_normal(f.n), 0.0
        for _step in range(POWER_STEPS):
            along = unit(v)
            if along is None:
                break
            ahead, behind = f.hvp(x, along), f.hvp(y, along)
            v = ahead - behind
            turn = (norm(v) - rounding.of_product(ahead, behind)) / distance
        result = result.saw(slope, turn, 2)
    return result


@dataclass(frozen=True, slots=True)
class Look:
    """Local estimates at x (n,): λ of H(x) with its eigenvector (n,), and about max ‖D³f(x)[w, w]‖.

    `size` is |λ| less its rounding error; the rounding error of `turn` is subtracted too.
    """

    x: Vector
    eigenvalue: float
    size: float
    vector: Vector
    turn: float


@dataclass(frozen=True, slots=True)
class Views:
    """A function over a ball, with the rounding errors of its derivatives."""

    f: DerivativeOracle
    ball: Ball
    rounding: Rounding

    def look(self, x: Vector, v: Vector) -> Look:
        """The estimates at x (n,); Lanczos' method and the steps for D³f start from v (n,)."""
        value, vector = largest(lambda w: self.f.hvp(x, w), v)
        turn, along = 0.0, vector
        for _ in range(POWER_STEPS if math.isfinite(value) else 0):
            slope, seen = self.slope(x, along)
            turn = max(turn, seen)
            following = unit(slope)
            if following is None:
                break
            along = following
        size = abs(value) - self.rounding.of_product(value * vector)
        return Look(x, value, size, vector, turn)

    def slope(self, x: Vector, v: Vector) -> tuple[Vector, float]:
        """D³f(x)[v, v] (n,) and its norm less rounding, by a difference of H(·)v; ‖v‖ = 1.

        Both points of the difference lie in the ball; the norm is 0 where it is too small for two
        points.
        """
        t = min(DIFFERENCE * max(1.0, float(np.abs(x).max())), self.ball.radius)
        ahead, behind = self.ball.inside(x + t * v), self.ball.inside(x - t * v)
        distance = norm(ahead - behind)
        if not distance > 0.5 * t:
            return np.zeros_like(x), 0.0
        one, other = self.f.hvp(ahead, v), self.f.hvp(behind, v)
        change = one - other
        seen = (norm(change) - self.rounding.of_product(one, other)) / distance
        return change / distance, seen


def ascent(
    f: DerivativeOracle, ball: Ball, samples: int, generator: Generator, eps: float = EPS
) -> Estimate:
    """Estimates by ascent of ‖H‖ from the centre and other starts, over `samples` points in all.

    The starts are c ± r·v, v the eigenvector of H(c), the two ends of the radius through c, and
    random points of the boundary.
    """
    first = generator.standard_normal(f.n)
    views = Views(f, ball, rounding_at(f, ball.centre, first, eps))
    centre = views.look(ball.centre, first)
    result = Estimate().saw(centre.size, centre.turn)
    if ball.radius == 0.0:
        return result
    outward = unit(ball.centre)
    directions = [centre.vector, *([] if outward is None else [outward])]
    directions += [-one for one in directions]
    directions += [d for d in generator.standard_normal((RANDOM_STARTS, f.n)) if d.any()]
    for k, direction in enumerate(directions):
        start = ball.at(direction / norm(direction))
        most = samples * (k + 1) // len(directions) - result.points
        for look in islice(_climb(views, start, centre.vector), max(0, most)):
            result = result.saw(look.size, look.turn)
    return result


def _climb(views: Views, x: Vector, v: Vector) -> Iterator[Look]:
    """Points from x (n,) on, each a trial for a larger ‖H‖, until no trial is an improvement.

    At each point the Lanczos method computes both extreme eigenvalues; trials move towards the
    boundary point in the direction in which |vᵀH(x)v| grows fastest, v the eigenvector (a
    Frank-Wolfe step).
    """
    here, ball = views.look(x, v), views.ball
    yield here
    climbing = math.isfinite(here.eigenvalue)
    while climbing:
        slope, _ = views.slope(here.x, here.vector)
        uphill = unit(slope * math.copysign(1.0, here.eigenvalue))
        if uphill is None:
            return
        climbing = False
        for fraction in FRACTIONS:
            trial = (1.0 - fraction) * here.x + fraction * ball.at(uphill)
            there = views.look(ball.inside(trial), here.vector)
            yield there
            if abs(there.eigenvalue) > (1.0 + GAIN) * abs(here.eigenvalue):
                here, climbing = there, True
                break


METHODS: dict[str, Callable[[DerivativeOracle, Ball, int, Generator, float], Estimate]] = {
    "ascent": ascent,
    "pairs": pairs,
}


def sample(
    f: DerivativeOracle,
    centre: Vector,
    radius: float,
    samples: object,
    seed: int,
    method: object,
    eps: float = EPS,
    box: tuple[Vector, Vector] | None = None,
) -> Bounds:
    """Both constants as estimated by a method; reproducible by `seed`. Raises DomainError.

    `eps` is the machine epsilon of the precision in which f computes. No point outside `box`, lower
    and upper ends (n,), is evaluated; it is ignored where the centre lies outside.
    """
    radius = checked_radius(radius)
    if not isinstance(method, str) or method not in METHODS:
        listed = ", ".join(METHODS)
        message = f"method: expected one of {listed}, found {method!r}"
        raise DomainError(Diagnostic("E602", message, help=f"use one of {listed}"))
    if isinstance(samples, bool) or not isinstance(samples, numbers.Integral) or samples < 1:
        message = f"samples: expected a whole number ≥ 1, found {samples!r}"
        raise DomainError(Diagnostic("E602", message, help="give the number of points or pairs"))
    if not (np.all(np.isfinite(centre)) and math.isfinite(radius)):
        message = "points are drawn from a ball with finite centre and radius only"
        raise DomainError(Diagnostic("E606", message, help="give a finite centre and radius"))
    result = Estimate()
    if box is not None and not ((box[0] <= centre) & (centre <= box[1])).all():
        box = None
    if f.n:
        generator = np.random.default_rng(seed)
        with np.errstate(all="ignore"):
            result = METHODS[method](f, Ball(centre, radius, box), int(samples), generator, eps)
    trace = (f"the largest seen at {result.points} points, less its rounding",)
    return Bounds(
        L1=result.L1,
        L2=result.L2,
        source="sampled",
        rigor="estimated",
        radius=radius,
        n=f.n,
        gradient=Constant((Claim(method, result.L1, trace=trace),)),
        hessian=Constant((Claim(method, result.L2, trace=trace),)),
        at_radius=lambda other: sample(f, centre, other, samples, seed, method, eps, box),
    )
