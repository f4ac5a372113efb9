"""Points of a ball that show how large both constants are at least: the opponent of every bound."""

from __future__ import annotations

import math
from dataclasses import dataclass

import mpmath
import numpy as np
from bounds.objective_graph import DIGITS, Exact, ObjectiveGraph, Vector, exact, exact_norm

from slomodel.bounds.ball import Ball, norm, unit
from slomodel.bounds.forms.lanczos import largest

RANDOM_DIRECTIONS = 2
ASCENTS = 2
PAIRS = 2
POWER_STEPS = 3
# Below this share of the coordinates a difference of two gradients is mostly rounding.
RESOLVED = 1e-4


@dataclass(frozen=True, slots=True)
class Witness:
    """A value that the constant reaches, and where: v at x, or the pair (x, y) along v."""

    value: float
    x: Vector
    v: Vector
    y: Vector | None = None


@dataclass(frozen=True, slots=True)
class Witnesses:
    L1: Witness
    L2: Witness
    outside: bool = False
    """A point of the ball has no finite gradient or Hessian."""


def seek(f: ObjectiveGraph, radius: float, rng: np.random.Generator) -> Witnesses:
    """The largest values found: Lanczos at the centre and around, Frank-Wolfe ascents, pairs."""
    ball = Ball(f.centre, radius)
    seen = [*_around(f, ball, rng)]
    if radius > RESOLVED * float(np.abs(f.centre).max(initial=0.0)):
        seen += [_pair(f, ball, rng) for _ in range(PAIRS)]
    found = [one for pair in seen for one in pair]
    outside = not all(math.isfinite(one.value) for one in found)
    L1 = max((a for a, _ in seen if math.isfinite(a.value)), key=_value, default=seen[0][0])
    L2 = max((b for _, b in seen if math.isfinite(b.value)), key=_value, default=seen[0][1])
    return Witnesses(L1, L2, outside)


def _value(witness: Witness) -> float:
    return witness.value


def _around(
    f: ObjectiveGraph, ball: Ball, rng: np.random.Generator
) -> list[tuple[Witness, Witness]]:
    first = _look(f, ball.centre, rng.standard_normal(f.n))
    seen = [first]
    if ball.radius == 0.0:
        return seen
    directions = [first[0].v, -first[0].v, *rng.standard_normal((RANDOM_DIRECTIONS, f.n))]
    outward = unit(ball.centre)
    directions += [] if outward is None else [outward, -outward]
    for direction in directions:
        x = ball.inside(ball.at(direction / norm(direction)))
        seen.append(_look(f, x, first[0].v))
    for k in (0, 1):
        for _ in range(ASCENTS):
            finite = [pair[k] for pair in seen if math.isfinite(pair[k].value)]
            if not finite:
                break
            best = max(finite, key=_value)
            uphill = f.third(best.x, best.v)
            sign = math.copysign(1.0, float(best.v @ f.hvp(best.x, best.v)))
            step = unit(sign * uphill)
            if step is None:
                break
            seen.append(_look(f, ball.at(step), best.v))
    return seen


def _look(f: ObjectiveGraph, x: Vector, v: Vector) -> tuple[Witness, Witness]:
    """‖H(x)v‖ for the best v that Lanczos finds, ‖D³f(x)[w, w]‖ for the best of a few w."""
    start = unit(v)
    value, vector = largest(lambda w: f.hvp(x, w), v)
    del value
    first = Witness(norm(f.hvp(x, vector)), x, vector)
    second = Witness(0.0, x, vector)
    for w in (vector, start):
        for _ in range(POWER_STEPS):
            if w is None:
                break
            turned = f.third(x, w)
            if not norm(turned) <= second.value:
                second = Witness(norm(turned), x, w)
            w = unit(turned)
    return first, second


def _pair(f: ObjectiveGraph, ball: Ball, rng: np.random.Generator) -> tuple[Witness, Witness]:
    x, y = ball.random(rng), ball.random(rng)
    distance = norm(x - y)
    v = (x - y) / distance
    first = Witness(norm(f.gradient(x) - f.gradient(y)) / distance, x, v, y)
    return first, Witness(norm(f.hvp(x, v) - f.hvp(y, v)) / distance, x, v, y)


def recheck(f: ObjectiveGraph, radius: float, witness: Witness, which: str) -> mpmath.mpf:
    """The witness's value for `L1` or `L2` in 60 digits, its points moved into the exact ball."""
    with mpmath.workdps(DIGITS):
        c, r = exact(f.centre), mpmath.mpf(radius)
        x, v = _inside(c, r, exact(witness.x)), exact(witness.v)
        length = exact_norm(v)
        if witness.y is not None:
            y = _inside(c, r, exact(witness.y))
            distance = exact_norm(x - y)
            if which == "L1":
                return exact_norm(f.exact_gradient(x) - f.exact_gradient(y)) / distance
            return exact_norm(f.exact_hvp(x, v) - f.exact_hvp(y, v)) / distance / length
        if which == "L1":
            return exact_norm(f.exact_hvp(x, v)) / length
        return exact_norm(f.exact_third(x, v)) / length**2


def _inside(c: Exact, r: mpmath.mpf, x: Exact) -> Exact:
    distance = exact_norm(x - c)
    return x if distance <= r else c + (x - c) * (r / distance)
