"""Points of a ball that give lower bounds on both constants: the opponents of every bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import mpmath
import numpy as np
from bounds.objective_graph import DIGITS, Exact, ObjectiveGraph, Vector, exact, exact_norm

from slomodel.bounds.ball import Ball, norm, unit
from slomodel.bounds.norms.lanczos import largest

RANDOM_DIRECTIONS = 2
ASCENTS = 2
PAIRS = 2
POWER_STEPS = 3
# Below this share of the coordinates a difference of two gradients is mostly rounding.
RESOLVED = 1e-4
# Pairs on two sides of a boundary, at these shares of the radius from each other, in more digits:
# a jump of the slope by 1e-16 shows only over a smaller distance.
APART = ("1e-3", "1e-9", "1e-15", "1e-21")
DIGITS_ACROSS = 120
NOISE = mpmath.mpf("1e-70")
"""The share of a value or gradient that its roundings are below, over all that cancels in it."""
CONSTANTS = mpmath.mpf(2) ** -50
"""Roundings of constants in derivatives, relative to them."""
BOUNDARIES = 2
BISECTIONS = 60
REFINEMENTS = 60


@dataclass(frozen=True, slots=True)
class Witness:
    """A value that the constant reaches, and where: v at x, or the pair (x, y) along v.

    `written` is the pair for a model whose numbers are those that were written, not their doubles:
    where these have a boundary in another place. A join may be smooth in either reading.
    """

    value: float
    x: Vector | Exact
    v: Vector
    y: Vector | Exact | None = None
    written: tuple[Exact, Exact] | None = None


@dataclass(frozen=True, slots=True)
class Witnesses:
    L1: Witness
    L2: Witness
    outside: Witness | None = None
    """A point of the ball without a finite gradient or Hessian in doubles."""


def seek(f: ObjectiveGraph, radius: float, rng: np.random.Generator) -> Witnesses:
    """The largest values found: Lanczos at the centre and around, Frank-Wolfe ascents, pairs."""
    ball = Ball(f.centre, radius)
    seen = [*_around(f, ball, rng)]
    if radius > RESOLVED * float(np.abs(f.centre).max(initial=0.0)):
        seen += [_pair(f, ball, rng) for _ in range(PAIRS)]
    if radius > 0.0 and f.switches:
        seen += _across(f, ball, rng)
    return _most(seen)


def _most(seen: Sequence[tuple[Witness, Witness]]) -> Witnesses:
    found = [one for pair in seen for one in pair]
    outside = next((one for one in found if not math.isfinite(one.value)), None)
    L1 = max((a for a, _ in seen if math.isfinite(a.value)), key=_value, default=seen[0][0])
    L2 = max((b for _, b in seen if math.isfinite(b.value)), key=_value, default=seen[0][1])
    return Witnesses(L1, L2, outside)


def glance(f: ObjectiveGraph, radius: float, rng: np.random.Generator) -> Witnesses:
    """The largest of the values at the centre, at two points of the boundary and at one inside."""
    ball = Ball(f.centre, radius)
    first = _look(f, ball.centre, rng.standard_normal(f.n))
    seen = [first]
    if radius > 0.0:
        v = first[1].v
        outward = v if norm(v) > 0.0 else rng.standard_normal(f.n)
        outward = outward / norm(outward)
        points = (ball.at(outward), ball.at(-outward), ball.random(rng))
        seen += [_look(f, ball.inside(x), first[0].v) for x in points]
    return _most(seen)


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


def _across(
    f: ObjectiveGraph, ball: Ball, rng: np.random.Generator
) -> list[tuple[Witness, Witness]]:
    """Pairs on two sides of boundaries at which a kink or another branch begins, in many digits.

    In doubles the gradient's rounding, over so small a distance, would drown its jump.
    """
    here, found = f.signs(ball.centre), []
    moves = [one / norm(one) for one in rng.standard_normal((BOUNDARIES, f.n))]
    for move in [sign * one for one in moves for sign in (1.0, -1.0)]:
        changed = np.flatnonzero(f.signs(ball.inside(ball.at(move))) != here)
        if not len(changed):
            continue
        k = int(rng.choice(changed))
        with mpmath.workdps(DIGITS_ACROSS):
            ends = [_boundary(f, ball, move, k, written) for written in (False, True)]
            for share in APART if None not in ends else ():
                pairs = []
                for end in ends:
                    c, r, v = exact(ball.centre), mpmath.mpf(ball.radius), exact(move)
                    half = mpmath.mpf(share) / 2
                    pairs.append(tuple(_inside(c, r, c + r * (end + h) * v) for h in (half, -half)))
                y, z = pairs[0]
                one = Witness(0.0, y, move, z, pairs[1])
                values = [recheck(f, ball.radius, one, which) for which in ("L1", "L2")]
                found.append(tuple(replace(one, value=float(value)) for value in values))
        if len(found) >= BOUNDARIES * len(APART):
            break
    return found


def _boundary(
    f: ObjectiveGraph, ball: Ball, move: Vector, k: int, written: bool
) -> mpmath.mpf | None:
    """The share of the radius along a move (n,) at which one switch changes its sign."""
    here = f.signs(ball.centre)[k]
    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        same = f.signs(ball.centre + middle * ball.radius * move)[k] == here
        low, high = (middle, high) if same else (low, middle)
    c, direction = exact(ball.centre), mpmath.mpf(ball.radius) * exact(move)

    def value(share: mpmath.mpf) -> mpmath.mpf:
        return f.exact_switch(c + share * direction, k, written)

    unit = float(np.spacing(np.abs(ball.centre).max(initial=ball.radius))) / ball.radius
    a, b = (mpmath.mpf(high) + sign * (64.0 * unit + 1e-9 * high) for sign in (-1.0, 1.0))
    left, right = value(a), value(b)
    if not left * right < 0:
        return None
    for step in range(REFINEMENTS):  # the secant's point, or every third time the middle
        middle = (a + b) / 2 if step % 3 == 2 else a - left * (b - a) / (right - left)
        at = value(middle)
        if at == 0 or b - a < mpmath.mpf("1e-50"):
            return middle
        if at * left > 0:
            a, left = middle, at
        else:
            b, right = middle, at
    return (a + b) / 2 if b - a < mpmath.mpf("1e-24") else None


def recheck(f: ObjectiveGraph, radius: float, witness: Witness, which: str) -> mpmath.mpf:
    """The witness's value for `L1` or `L2` in 60 digits, its points moved into the exact ball."""
    with mpmath.workdps(DIGITS if witness.y is None else DIGITS_ACROSS):
        c, r = exact(f.centre), mpmath.mpf(radius)
        x, v = _inside(c, r, exact(witness.x)), exact(witness.v)
        length = exact_norm(v)
        if witness.y is not None:
            value = _quotient(f, x, _inside(c, r, exact(witness.y)), v, which, False)
            if witness.written is None:
                return value
            y, z = (_inside(c, r, one) for one in witness.written)
            return min(value, _quotient(f, y, z, v, which, True))
        if which == "L1":
            return exact_norm(f.exact_hvp(x, v)) / length
        return exact_norm(f.exact_third(x, v)) / length**2


def _quotient(
    f: ObjectiveGraph, x: Exact, y: Exact, v: Exact, which: str, written: bool
) -> mpmath.mpf:
    """What a pair shows: by gradients, and by values, which may jump where gradients do not.

    Where ∇f has the constant L, |f(x) − f(y) − ½⟨∇f(x) + ∇f(y), x − y⟩| <= ¼ L ‖x − y‖².
    """
    distance = exact_norm(x - y)
    if distance == 0:
        return mpmath.mpf(0)  # both moved to one point of the ball's edge
    if which == "L2":
        p, q = f.exact_hvp(x, v, written), f.exact_hvp(y, v, written)
        return _apart(p, q) / distance / exact_norm(v)
    p, q = f.exact_gradient(x, written), f.exact_gradient(y, written)
    a, b = f.exact_value(x, written), f.exact_value(y, written)
    missed = abs(a - b - (p + q) @ (x - y) / 2) - NOISE * (abs(a) + abs(b))
    # The derivative of erf has the double of 2/√π, which its value knows nothing of.
    missed -= CONSTANTS * (exact_norm(p) + exact_norm(q)) * distance
    return max(_apart(p, q) / distance, 4 * missed / distance**2)


def _apart(p: Exact, q: Exact) -> mpmath.mpf:
    """At most the distance, but for roundings."""
    noise = NOISE * (exact_norm(p) + exact_norm(q))
    return max(exact_norm(p - q) - noise, mpmath.mpf(0))


def _inside(c: Exact, r: mpmath.mpf, x: Exact) -> Exact:
    distance = exact_norm(x - c)
    return x if distance <= r else c + (x - c) * (r / distance)
