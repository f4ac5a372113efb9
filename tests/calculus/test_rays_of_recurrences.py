"""What is proved along a ray through recurrences, against loops in many digits."""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import numpy as np
from calculus.rays_of_graphs import END

from slomodel import functions as fn
from slomodel.calculus.rays.ray import ray_graph
from slomodel.errors import SourceText
from slomodel.front.elaboration.elaborate import elaborate
from slomodel.front.text.parse import parse
from slomodel.ir import build
from slomodel.ir.dims import literal
from slomodel.ir.expr import Input
from slomodel.reference import evaluate

DIGITS = 40


def _hold(
    proved: np.ndarray, phi: Callable[[mpmath.mpf], mpmath.mpf], end: float, width: float
) -> None:
    """Whether the numbers of a ray enclose the derivatives of φ, φ'' to a relative width."""
    with mpmath.workdps(DIGITS):
        for k in range(3):
            exact = mpmath.diff(phi, 0, k)
            assert abs(exact - proved[2 * k]) <= proved[2 * k + 1] <= 1e-9 * (1.0 + abs(exact))
        for share in (0.0, 1.0):
            second, third = (mpmath.diff(phi, share * end, k) for k in (2, 3))
            # Differences in 40 digits have some 20 of them.
            slack = mpmath.mpf(10) ** -15
            assert proved[6] - slack <= second <= proved[7] + slack
            assert proved[8] - slack <= third <= proved[9] + slack
        assert proved[7] - proved[6] <= width * abs(second)


def test_a_state_with_lags_and_data() -> None:
    text = """dim T  data y[T]  var x[T], a
    let p[t in T] = a * sin(p[t-1]) + 0.5 * p[t-2] * y[t] + x[t] first 0.3, a
    minimize sumsq(p)"""
    source = SourceText(text)
    problem = elaborate(parse(source), source)
    draw, steps = np.random.default_rng(4), 5
    at = {name: draw.normal(size=shape) for name, shape in (("x", steps), ("a", ()), ("y", steps))}
    along = {name: 0.3 * draw.normal(size=np.shape(at[name])) for name in ("x", "a")}
    (y,) = (one.node for one in problem.data)
    directions = {one: build.direction(f"v.{one.name}", one.shape) for one in problem.inputs}
    given: dict[Input, np.ndarray] = {y: at["y"], END: np.asarray(0.05)}
    for one, v in directions.items():
        given[one], given[v] = np.asarray(at[one.name]), np.asarray(along[one.name])
    graph = ray_graph(problem.objective, dict(directions), END)

    def phi(t: mpmath.mpf) -> mpmath.mpf:
        x = [mpmath.mpf(u) + t * mpmath.mpf(v) for u, v in zip(at["x"], along["x"], strict=True)]
        a = mpmath.mpf(float(at["a"])) + t * mpmath.mpf(float(along["a"]))
        p = [mpmath.mpf(0.3), a]
        for k in range(2, steps):
            p.append(a * mpmath.sin(p[-1]) + p[-2] * mpmath.mpf(at["y"][k]) / 2 + x[k])
        return sum(u * u for u in p)

    proved = np.array(evaluate(graph.numbers, given, {"T": steps}), dtype=float)
    _hold(proved, phi, 0.05, 0.5)


def test_a_scan_along_the_last_axis() -> None:
    """y[i] = x[i] c[i] (y[i - 1] + 1) for data c, summed."""
    m, n = literal(2), literal(5)
    x, v = build.variable("x", (m, n)), build.direction("v", (m, n))
    factor = fn.mul(x, c := build.data("c", (m, n)))
    graph = ray_graph(build.sum_over(build.scan(factor, factor, 1), (0, 1)), {x: v}, END)
    draw = np.random.default_rng(2)
    values = {one: 1.0 + 0.3 * draw.normal(size=(2, 5)) for one in (x, v, c)}

    def phi(t: mpmath.mpf) -> mpmath.mpf:
        total = mpmath.mpf(0)
        for row in zip(*(values[one] for one in (x, v, c)), strict=True):
            running = mpmath.mpf(0)
            for a, b, data in zip(*row, strict=True):
                running = (mpmath.mpf(a) + t * mpmath.mpf(b)) * mpmath.mpf(data) * (running + 1)
                total += running
        return total

    numbers = evaluate(graph.numbers, {**values, END: np.asarray(0.05)}, {})
    _hold(np.array(numbers, dtype=float), phi, 0.05, 0.5)
