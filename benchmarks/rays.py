"""Bounds along rays: their cost, their tightness, and runs of certified steps against Armijo's.

    python benchmarks/rays.py [--only NAME] [--steps N] [--backend c] [--runs | --floor]

For every model of models/ and models/practice, at its start and along −∇f: the length T of the
first certified step, M with φ(t) <= φ(0) + φ'(0)t + M t²/2 over [0, T] that the step uses over the
least such M, the bound on the curvature over the largest, both at 33 points, and the time of the
kernel over that of value and gradient (time of the processor, one thread; take
NUMEXPR_NUM_THREADS=1 and OMP_NUM_THREADS=1). With --runs: N steps along −∇f and by lbfgs with both
line searches, from the same start: the values at the end, and the steps and the time of the
processor until the higher one is reached. With --floor: runs
by lbfgs with gtol = 1e-16, and ‖∇f‖ at their ends as computed and in extended precision.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import process_time

import numpy as np
from scipy.interpolate import CubicSpline

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).parent.parent))

import slomodel
from benchmarks.bounds import OTHERS
from benchmarks.by_hand import Array
from benchmarks.cases import cases
from benchmarks.machine import description
from slomodel.calculus.rays.bounds import RayBounds
from slomodel.errors import SlomodelError
from slomodel.solve.line_search.certified import FAR, SHORTER, proved_step

MODELS = Path(__file__).parent.parent / "models"
DIMS = {"rater_error_rates": {"I": 45}}
BLOCK = 0.02
"""Seconds of one timed block; the least of `BLOCKS` counts."""
BLOCKS = 5
SHORT = 0.3
"""Seconds of the processor for which a short run is repeated; the least counts."""


def models(only: str | None, backend: str) -> Iterator[tuple[str, slomodel.Model]]:
    """The models in unconstrained variables, those that need data with the benchmarks' own."""
    done = set()
    for case in cases(quick=True):
        if only in (None, case.model):
            yield (
                f"{case.model} {case.size}".strip(),
                slomodel.compile(case.source, data=case.data, dims=case.dims, backend=backend),
            )
        done.add(case.model)
    for file in sorted([*MODELS.glob("*.slo"), *(MODELS / "practice").glob("*.slo")]):
        if file.stem in done or only not in (None, file.stem):
            continue
        dims, data = DIMS.get(file.stem), OTHERS.get(file.stem, {})
        try:
            model = slomodel.compile(file, data=data, dims=dims, backend=backend)
            yield file.stem, model.unconstrained
        except SlomodelError as error:
            print(f"{file.stem}: not compiled: {str(error).splitlines()[0]}", file=sys.stderr)


def first_step(
    bounds: Callable[[Array, Array, float], RayBounds], x: Array, v: Array
) -> RayBounds | None:
    """The bounds over the first certified step along v, both (n,); None if there is no proof."""
    end, best = 1.0, None
    for _ in range(80):
        found = bounds(x, v, end)
        step = proved_step(found)
        if step is None:
            if best is not None:
                return best
            end *= SHORTER
            continue
        if best is not None and step.t <= best.T:
            return best
        best = bounds(x, v, step.t)
        if FAR * step.t < end:
            end = math.sqrt(end * step.t)
            continue
        if not step.limited or end > 1e6:
            return best
        end *= 2.0
    return best


def least_time(call: Callable[[], object]) -> float:
    """Seconds of the processor per call."""
    call()
    began = process_time()
    call()
    count = max(1, int(BLOCK / max(process_time() - began, 1e-6)))
    times = []
    for _ in range(BLOCKS):
        began = process_time()
        for _ in range(count):
            call()
        times.append((process_time() - began) / count)
    return min(times)


@dataclass(frozen=True, slots=True)
class Row:
    """A model's cost and tightness."""

    name: str
    n: int
    cost: float
    tightness: float
    of_curvature: float
    step: float
    reason: str = ""

    def __str__(self) -> str:
        if self.reason:
            return f"| {self.name} | {self.n} | – | – | – | – | {self.reason} |"
        shown = (
            f"{self.cost:.1f} | {self.tightness:.4f} | {self.of_curvature:.4f} | {self.step:.2g}"
        )
        return f"| {self.name} | {self.n} | {shown} | |"


def least_remainder(ends: Array, curvatures: Array) -> float:
    """The largest 2(φ(t) - φ(0) - φ'(0)t)/t² at these t (m,), as an integral of φ'' (m,).

    From differences of φ it would be rounding for short rays.
    """
    twice = CubicSpline(ends, curvatures).antiderivative(2)
    return float(max(curvatures[0], *(2.0 * twice(ends[1:]) / ends[1:] ** 2)))


def row(name: str, model: slomodel.Model) -> Row:
    """The row of a model at its start."""
    x = model.x0()
    _, g = model.value_and_gradient(x)
    if not np.isfinite(g).all() or not g.any():
        return Row(name, model.n, 0.0, 0.0, 0.0, 0.0, "no finite gradient at the start")
    v = -g / np.linalg.norm(g)
    found = first_step(model.ray_bounds, x, v)
    if found is None:
        reason = model.ray_bounds(x, v, 1e-9).reason or "no proof of descent"
        return Row(name, model.n, 0.0, 0.0, 0.0, 0.0, reason)
    ends = np.linspace(0.0, found.T, 33)
    curvatures = np.array([float(v @ model.hvp(x + t * v, v)) for t in ends])
    least = least_remainder(ends, curvatures)
    # A curvature that is negative along the ray is bounded too, and the step is as long as proved.
    tightness, of_curvature = (
        bound / seen if seen > 0.0 else float("nan")
        for bound, seen in ((found.remainder_upper, least), (found.upper, curvatures.max()))
    )
    plain = least_time(lambda: model.value_and_gradient(x))
    proved = least_time(lambda: model.ray_bounds(x, v, found.T))
    return Row(name, model.n, proved / plain, tightness, of_curvature, found.T)


def seconds(run: Callable[..., object], steps: int) -> float:
    """The least seconds of the processor from the start of a run to its iterate of this number."""
    least, spent, count = math.inf, 0.0, 0
    while count < 3 or (spent < SHORT and count < 100):
        times: list[float] = []
        began = process_time()
        run(max_iter=steps, callback=lambda state, times=times: times.append(process_time()))
        spent, count = spent + process_time() - began, count + 1
        least = min(least, times[-1] - times[0])
    return least


def runs(name: str, model: slomodel.Model, steps: int) -> Iterator[str]:
    """A line for each direction: values after N steps, and time to the higher of the two."""
    for direction in ("gradient", "lbfgs"):
        options = {"x0": model.x0(), "direction": direction, "threads": 1}
        searches = [
            partial(model.solve, "norm-armijo", line_search=search, **options)
            for search in ("armijo", "certified")
        ]
        armijo, certified = (search(max_iter=steps) for search in searches)
        first = float(armijo.history.fun[0])
        target = max(armijo.fun, certified.fun) + 1e-6 * abs(first - min(armijo.fun, certified.fun))
        counts = [max(1, int(np.argmax(one.history.fun <= target))) for one in (armijo, certified)]
        times = [seconds(search, count) for search, count in zip(searches, counts, strict=True)]
        yield (
            f"| {name} | {direction} | {armijo.fun:.6g} | {certified.fun:.6g} | {counts[0]} | "
            f"{counts[1]} | {times[0]:.3g} | {times[1]:.3g} | {times[1] / times[0]:.1f} |"
        )


FLOORS = (
    *("robust_logistic", "phase_retrieval", "rosenbrock", "lennard_jones_13", "eight_schools"),
    *("seeds_binomial", "softplus_toy", "wells_logit", "dogs_learning", "student_t", "deep_linear"),
)
MOST_SLOPES = 600
"""Largest n for which the gradient is computed in extended precision, by slopes along the axes."""


def precise_norm(model: slomodel.Model, x: Array) -> float:
    """‖∇f‖ in extended precision; NaN for large n."""
    if len(x) > MOST_SLOPES:
        return math.nan
    return math.hypot(*(model.ray_bounds(x, e, 0.0, precise=True).slope for e in np.eye(len(x))))


def floor(name: str, model: slomodel.Model) -> str:
    """The line of two runs that end at the limit of precision."""
    options = {"direction": "lbfgs", "gtol": 1e-16, "max_iter": 600, "threads": 1}
    ends = [
        model.solve("norm-armijo", line_search=search, **options)
        for search in ("armijo", "certified")
    ]
    norms = [*(one.gradient_norm for one in ends), *(precise_norm(model, one.x) for one in ends)]
    shown = " | ".join(f"{one:.2g}" for one in norms)
    return f"| {name} | {shown} | {ends[0].nit} | {ends[1].nit} | {ends[1].status} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only")
    parser.add_argument("--backend", default="c")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--runs", action="store_true")
    parser.add_argument("--floor", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{description(1)}\n")
    if given.runs:
        print("| model | direction | f armijo | f certified | steps | steps | s | s | ratio |")
        print("|---|---|---|---|---|---|---|---|---|")
        for name, model in models(given.only, given.backend):
            for line in runs(name, model, given.steps):
                print(line, flush=True)
        return
    if given.floor:
        print("| model | armijo | certified | exact armijo | exact certified | steps | steps | |")
        print("|---|---|---|---|---|---|---|---|")
        for one in (given.only,) if given.only else FLOORS:
            for name, model in models(one, given.backend):
                if model.n < 1_000:
                    print(floor(name, model), flush=True)
        return
    print("| model | n | kernel / gradient | M / least | bound / curvature | step | no proof |")
    print("|---|---|---|---|---|---|---|")
    rows = []
    for name, model in models(given.only, given.backend):
        try:
            rows.append(row(name, model))
            print(rows[-1], flush=True)
        except SlomodelError as error:
            print(f"{name}: {str(error).splitlines()[0]}", file=sys.stderr)
    proved = [one for one in rows if not one.reason]
    cost, tight, wide = (
        np.array([getattr(one, field) for one in proved])
        for field in ("cost", "tightness", "of_curvature")
    )
    print(f"\n{len(proved)} of {len(rows)} models have a proof; kernel / gradient: ", end="")
    print(f"median {np.median(cost):.1f}, largest {cost.max():.1f}; ", end="")
    for what, ratios in (("M / least", tight), ("bound / curvature", wide)):
        seen = ratios[~np.isnan(ratios)]
        print(f"{what}: median {np.median(seen):.4f}, largest {seen.max():.4g}, ", end="")
        print(f"<= 1.5 on {np.sum(seen <= 1.5)} of {len(seen)}")


if __name__ == "__main__":
    main()
