"""Estimates from below of ‖H‖ and ‖D³f‖ over a ball: more starts and steps than `sample_bounds`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from benchmarks.by_hand import Array
from slomodel import Model
from slomodel.bounds.ball import Ball, norm, unit

STARTS = 8
CLIMBS = 25
SHARES = (1.0, 0.5, 0.2, 0.05)
SETTLED = 1e-7
SHIFT = 0.3
"""Weight of the old direction in a step for D³f, whose plain power method may cycle."""
STEP_OF_THIRD = 6e-6
STEP_OF_FOURTH = 2e-4


def strong_ascent(
    model: Model, centre: Array, radius: float, rng: Generator, starts: int = STARTS
) -> tuple[float, float]:
    """The largest ‖H(x)v‖ and ‖D³f(x)[v, v]‖ evaluated; D³f by differences of H in the ball."""
    ball = Ball(centre, radius)
    points = [ball.at(d / norm(d)) for d in rng.standard_normal((starts, model.n))]
    outward = unit(centre)
    if outward is not None:
        points[0] = ball.at(outward)
    points[-1] = centre
    first = max(_climb(model, ball, x, _second, rng) for x in points)
    second = max(_climb(model, ball, x, _third, rng) for x in points)
    return first, second


Form = Callable[[Model, Ball, Array, Array], tuple[float, Array, Array]]


def _second(model: Model, ball: Ball, x: Array, v: Array) -> tuple[float, Array, Array]:
    """‖H(x)v‖ at the best v, v, and the slope (n,) of |vᵀH(x)v| in x."""
    value = 0.0
    for _ in range(3):
        following = unit(model.hvp(x, model.hvp(x, v)))
        if following is None:
            break
        v = following
    image = model.hvp(x, v)
    value = norm(image)
    return value, v, np.sign(v @ image) * _turn(model, ball, x, v)


def _third(model: Model, ball: Ball, x: Array, v: Array) -> tuple[float, Array, Array]:
    """‖D³f(x)[v, v]‖ at the best v, v, and the slope (n,) of |D³f(x)[v, v, v]| in x."""
    value = 0.0
    for _ in range(4):
        image = _turn(model, ball, x, v)
        length = norm(image)
        value = max(value, length)
        following = unit(image + SHIFT * length * v)
        if following is None:
            break
        v = following
    image = _turn(model, ball, x, v)
    t = min(STEP_OF_FOURTH * max(1.0, float(np.abs(x).max())), ball.radius)
    bent = model.hvp(x + t * v, v) - 2.0 * model.hvp(x, v) + model.hvp(x - t * v, v)
    return max(value, norm(image)), v, np.sign(v @ image) * bent


def _turn(model: Model, ball: Ball, x: Array, v: Array) -> Array:
    """D³f(x)[v, v] (n,), averaged over a segment in the ball."""
    t = min(STEP_OF_THIRD * max(1.0, float(np.abs(x).max())), ball.radius)
    ahead, behind = ball.inside(x + t * v), ball.inside(x - t * v)
    distance = norm(ahead - behind)
    if distance < 0.5 * t:
        return np.zeros_like(x)
    return (model.hvp(ahead, v) - model.hvp(behind, v)) / distance


def _climb(model: Model, ball: Ball, x: Array, form: Form, rng: Generator) -> float:
    """Frank-Wolfe steps while one of `SHARES` towards the boundary gains."""
    v = rng.standard_normal(model.n)
    v /= norm(v)
    best, v, slope = form(model, ball, x, v)
    for _ in range(CLIMBS):
        uphill = unit(slope)
        found = [form(model, ball, x, v)]
        if uphill is not None:
            target = ball.at(uphill)
            trials = [ball.inside(x + share * (target - x)) for share in SHARES]
            values = [norm_at(model, ball, trial, v, form) for trial in trials]
            x_next = trials[int(np.argmax(values))]
            there = form(model, ball, x_next, v)
            if there[0] > found[0][0]:
                x, found = x_next, [there]
        value, v, slope = found[0]
        done = value <= best * (1.0 + SETTLED)
        best = max(best, value)
        if done:
            break
    return best


def norm_at(model: Model, ball: Ball, x: Array, v: Array, form: Form) -> float:
    """The value of a form at x without a better v."""
    return norm(model.hvp(x, v)) if form is _second else norm(_turn(model, ball, x, v))
