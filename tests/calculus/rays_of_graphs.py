"""Random rays through random graphs: what is proved about them, and the truth in many digits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import mpmath
import numpy as np
from bounds.objective_graph import evaluate_exactly
from random_graphs import throw
from strategies import Example

from slomodel.calculus import jvp
from slomodel.calculus.rays.ray import enclosed_value, ray_graph
from slomodel.calculus.rays.root import RayGraph
from slomodel.ir import build
from slomodel.ir.expr import Const, Expr, Input
from slomodel.reference import evaluate

DIGITS = 60
# Roundings of constants in derivatives of functions, relative to all that cancels.
CONSTANTS = mpmath.mpf(2) ** -50


@dataclass(frozen=True)
class RandomRay:
    """A graph with its ray x + t v for 0 <= t <= end, and the derivatives of orders 0 to 3."""

    example: Example
    directions: dict[Input, Input]
    v: dict[Input, np.ndarray]
    end: float
    graph: RayGraph
    derivatives: tuple[Expr, ...]

    def proved(self) -> list[float]:
        """Midpoints and radii of φ, φ', φ'' at 0, ends of φ'' and φ''', and of the remainders."""
        values = {**self.example.values, **self.v, END: np.asarray(self.end)}
        found = evaluate(self.graph.numbers, values, self.example.sizes)
        return [float(one) for one in found]

    def enclosed(self) -> tuple[float, float]:
        """The value at x with a bound on its error."""
        value = enclosed_value(self.example.objective)
        roots = (value.mid, value.rad or Const(0.0))
        middle, radius = evaluate(roots, self.example.values, self.example.sizes)
        return float(middle), float(radius)

    def exact(self, t: float) -> list[mpmath.mpf]:
        """The derivatives at x + t v in mpmath's precision."""
        values: dict[Input, np.ndarray] = {**self.example.values, **self.v}
        for x, v in self.directions.items():
            at, along = (np.asarray(values[one]) for one in (x, v))
            moved = [
                mpmath.mpf(float(a)) + mpmath.mpf(t) * mpmath.mpf(float(b))
                for a, b in zip(at.ravel(), along.ravel(), strict=True)
            ]
            values[x] = np.array(moved, dtype=object).reshape(at.shape)
        found = evaluate_exactly(self.derivatives, values, self.example.sizes)
        return [mpmath.mpf(one.item()) for one in found]


END = build.direction("end", ())


def thrown(rng: np.random.Generator, kind: str, steps: int = 4) -> RandomRay:
    """A random ray; raises MissingRule where no bounds exist."""
    return through(throw(rng, kind, steps), rng, float(10.0 ** rng.uniform(-6.0, 0.7)))


def through(example: Example, rng: np.random.Generator, end: float) -> RandomRay:
    """A ray of a random direction, of length 1 and sometimes another, through a graph."""
    directions = {x: build.direction(f"v.{x.name}", x.shape) for x in example.variables}
    v = {
        along: np.asarray(rng.normal(size=np.shape(example.values[x])))
        for x, along in directions.items()
    }
    length = float(np.sqrt(sum(float((one**2).sum()) for one in v.values()))) or 1.0
    scale = float(rng.choice([1.0, 1.0, 1.0, 1e-3, 1e3])) / length
    v = {along: one * scale for along, one in v.items()}
    derivatives: list[Expr] = [example.objective]
    for _ in range(3):
        derivatives += jvp(derivatives[-1:], dict(directions))
    graph = ray_graph(example.objective, dict(directions), END)
    return RandomRay(example, directions, v, end / scale / length, graph, tuple(derivatives))


def _is_outside(x: mpmath.mpf, lo: float, hi: float) -> bool:
    return bool((not np.isnan(lo) and x < lo) or (not np.isnan(hi) and x > hi))


def _remainder(
    start: Sequence[mpmath.mpf], value: mpmath.mpf, k: int, t: mpmath.mpf
) -> tuple[mpmath.mpf, mpmath.mpf]:
    """M such that φ(t) is Taylor's polynomial of order k - 1 plus M t^k/k!, and its error."""
    terms = [start[j] * t**j / mpmath.factorial(j) for j in range(k)]
    scale = mpmath.factorial(k) / t**k
    return (value - mpmath.fsum(terms)) * scale, CONSTANTS * mpmath.fsum(
        map(abs, terms[1:])
    ) * scale


def violations(
    ray: RandomRay,
    points: Sequence[float] = (0.0, 0.13, 0.5, 0.77, 1.0),
    numbers: Sequence[float] | None = None,
) -> list[str]:
    """What is proved, by the reference or by a kernel's `numbers`, and not true at these fractions
    of the ray.
    """
    proved = ray.proved() if numbers is None else numbers
    middle, radius, ends = proved[0:6:2], proved[1:6:2], proved[6:]
    wrong = []
    with mpmath.workdps(DIGITS):
        truth = [ray.exact(share * ray.end) for share in points]
        value, error = ray.enclosed()
        if np.isfinite(value + error) and abs(truth[0][0] - mpmath.mpf(value)) > error:
            wrong.append(f"value: {value} ± {error}, not {truth[0][0]}")
        for k in range(3):
            if np.isfinite(middle[k] + radius[k]):
                off = abs(truth[0][k] - mpmath.mpf(middle[k]))
                if off > mpmath.mpf(radius[k]) * (1 + CONSTANTS):
                    wrong.append(f"order {k} at 0: {middle[k]} ± {radius[k]}, off by {off}")
        for k, (lo, hi) in ((2, ends[:2]), (3, ends[2:4])):
            for share, one in zip(points, truth, strict=True):
                if _is_outside(one[k], lo, hi):
                    wrong.append(f"order {k} at {share}: {one[k]} not in [{lo}, {hi}]")
        for k, (lo, hi) in ((2, ends[4:6]), (3, ends[6:])):
            for share, one in zip(points, truth, strict=True):
                t = mpmath.mpf(share * ray.end)
                if t:
                    rest, slack = _remainder(truth[0], one[0], k, t)
                    if _is_outside(rest + slack, lo, math.inf) or _is_outside(
                        rest - slack, -math.inf, hi
                    ):
                        wrong.append(f"remainder {k} at {share}: {rest} not in [{lo}, {hi}]")
    return wrong
