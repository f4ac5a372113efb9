"""Points at which models are evaluated, and deviations from the hand-written results."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

import slomodel
from benchmarks.by_hand import Array, Arrays
from benchmarks.cases import Case

POINTS = 20


def pieces(model: slomodel.Model, x: Array) -> Arrays:
    """The variables of a vector x (n,), as views."""
    ends = np.cumsum([0, *(np.prod(shape, dtype=int) for shape in model.variables.values())])
    parts = zip(model.variables.items(), pairwise(ends), strict=True)
    return {name: x[start:end].reshape(shape) for (name, shape), (start, end) in parts}


def points(model: slomodel.Model) -> list[Array]:
    """Twenty vectors x (n,) around starts: some models start at 0, where terms vanish."""
    rng = np.random.default_rng(2)
    return [model.x0(seed) + 0.01 * rng.standard_normal(model.n) for seed in range(POINTS)]


def deviation(case: Case, models: list[slomodel.Model], xs: list[Array]) -> float:
    """Largest difference to the hand version at three points, gradient and value, relative."""
    worst = 0.0
    for x in xs[:3]:
        value, parts = case.hand(pieces(models[0], x), case.known)
        worst = max(worst, *(distance(model, x, value, parts) for model in models))
    return worst


def distance(model: slomodel.Model, x: Array, value: float, parts: Arrays) -> float:
    """Deviation of a model's value and gradient at x (n,) from these, relative to the largest."""
    gradient = model.pack(parts)
    own_value, own = model.value_and_gradient(x)
    slopes = float(np.abs(own - gradient).max() / np.abs(gradient).max())
    return max(slopes, abs(own_value - float(value)) / abs(float(value)))
