"""Search for a bound along a ray that does not hold, on random graphs and on models.

    python benchmarks/rays_fuzz.py [--cases 1000000] [--each 10000] [--seed 0] [--worst 100]
    python benchmarks/rays_fuzz.py --models

A case is a ray from a random point along a random direction. Derivatives of orders 2 and 3 in
doubles at points of the ray are compared with what is proved; 60 digits decide where they are
outside or, at the end, for the `--worst` rays, those whose derivatives come closest to an end
relative to the width of the range and to rounding. Graphs are those of tests/random_graphs.py, each
compiled in C for `--each` rays. With `--models` the rays are of the models of models/ and
models/practice, and the derivatives are those of Hessian products, with their rounding as
allowance. Every violation is printed; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from heapq import heappush, heappushpop
from itertools import count
from pathlib import Path

if __package__ in (None, ""):  # run as a script; its folder has a module of the name of another
    sys.path.pop(0)
    sys.path.insert(0, str(Path(__file__).parent.parent))
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import numpy as np
from calculus.rays_of_graphs import END, RandomRay, thrown, violations
from random_graphs import KINDS, WITH_LITERALS

from benchmarks.by_hand import Array
from benchmarks.rays import models
from slomodel import functions as fn
from slomodel.calculus import NOTHING
from slomodel.codegen.kernels import TARGETS, Compiled, Derivatives, Kernels
from slomodel.errors import MissingRule
from slomodel.ir import build
from slomodel.ir.walk import substitute
from slomodel.rewrite.work import prepared

SHARES = (0.0, 0.31, 0.77, 1.0)
ALL_KINDS = (*KINDS, *WITH_LITERALS)
RARE = ("long rows", "layers", "layers of classes", "chains", "classes", "products", "pairs")
"""Kinds of graphs that take longer; used once in eight times."""
UNSURE = 1e-6
"""Values in doubles this close to an end, relative to all of them, leave the case undecided."""


@dataclass(slots=True)
class Tally:
    """Counts of the rays, the violations, and the rays that come closest to one."""

    worst: int
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    closest: list[tuple[float, int, str, RandomRay, Array]] = field(default_factory=list)
    order: Iterator[int] = field(default_factory=count)

    def keep(self, margin: float, name: str, ray: RandomRay, proved: Array) -> None:
        """Keep a ray if it is among the closest."""
        entry = (-margin, next(self.order), name, ray, proved)
        push = heappush if len(self.closest) < self.worst else heappushpop
        push(self.closest, entry)

    def decide(self, name: str, ray: RandomRay, proved: Array) -> None:
        """Compare what is proved of a ray with the derivatives in 60 digits."""
        self.counts["decided in 60 digits"] += 1
        for one in violations(ray, SHARES, proved.tolist()):
            self.wrong.append(f"{name}: {one}")
            print(self.wrong[-1], flush=True)


class CompiledRays:
    """The rays through one graph, by one kernel in C of x, v, T and t, one after another.

    It gives the numbers of the bounds over [0, T] and the derivatives of orders 2 and 3 at t.
    """

    def __init__(self, ray: RandomRay) -> None:
        self.ray = ray
        example = ray.example
        x, v = example.variables, tuple(ray.directions[one] for one in example.variables)
        own = tuple(build.variable(f"at {k}", one.shape) for k, one in enumerate(x))
        along = tuple(build.variable(f"along {k}", one.shape) for k, one in enumerate(v))
        end, t = build.variable("end", ()), build.variable("t", ())
        here = {
            a: fn.add(b, fn.mul(build.broadcast(t, (), b.shape) if b.shape else t, c))
            for a, b, c in zip(x, own, along, strict=True)
        }
        inputs = {**dict(zip(x, own, strict=True)), **dict(zip(v, along, strict=True)), END: end}
        proved = substitute(ray.graph.numbers, inputs)
        seen = substitute(ray.derivatives[2:], {**inputs, **here})
        self._results = len(proved) + len(seen)
        outs = tuple(build.variable(f"result {k}", ()) for k in range(self._results))
        variables = (*own, *along, end, t)
        names = {one.name for one in (*variables, *outs, *example.data)}
        roots, tables = prepared((*proved, *seen), names)
        zeros = tuple(build.zeros(one.shape) for one in variables)
        given = (*zeros, *roots)
        derivatives = Derivatives(roots[0], (*variables, *outs), NOTHING, given, fused=True)
        sizes, data = example.sizes, example.data
        compiled = Compiled("rays", derivatives, data, sizes, TARGETS["c"], prepared=tables)
        arrays = {one.name: np.asarray(example.values[one]) for one in data}
        self._kernel = Kernels(compiled, arrays).function("value_and_gradient")
        self._x = np.concatenate([np.ravel(example.values[one]) for one in x])

    def rays(self, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """The arguments (count, 2n + 1) of random rays, and the numbers (count, 14 + 8) of each.

        The first ray is that of the graph.
        """
        n, shape = len(self._x), (count, len(self._x))
        x = self._x * rng.uniform(0.5, 1.5, shape) * rng.choice([1.0, 1.0, -1.0], shape)
        v = rng.normal(size=shape)
        v /= np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-300)
        rays = np.column_stack([x, v, 10.0 ** rng.uniform(-6.0, 0.7, count)])
        first = [
            np.ravel(self.ray.v[self.ray.directions[one]]) for one in self.ray.example.variables
        ]
        rays[0] = np.concatenate([self._x, *first, [self.ray.end]])
        point, out = np.zeros(2 * n + 2 + self._results), np.empty(2 * n + 2 + self._results)
        numbers = np.empty((count, 14 + 2 * len(SHARES)))
        for k, ray in enumerate(rays):
            point[: 2 * n + 1] = ray
            for j, share in enumerate(SHARES):
                point[2 * n + 1] = share * ray[-1]
                self._kernel(point, out)
                numbers[k, 14 + 2 * j : 16 + 2 * j] = out[-2:]
            numbers[k, :14] = out[-self._results : -2]
        return rays, numbers

    def one(self, arguments: Array) -> RandomRay:
        """A ray of these arguments (2n + 1,)."""
        example, n = self.ray.example, len(self._x)
        values, v, at = dict(example.values), {}, 0
        for x in example.variables:
            shape = np.shape(values[x])
            size = int(np.prod(shape, dtype=int))
            values[x] = arguments[at : at + size].reshape(shape)
            v[self.ray.directions[x]] = arguments[n + at : n + at + size].reshape(shape)
            at += size
        moved = replace(example, values=values)
        return replace(self.ray, example=moved, v=v, end=float(arguments[-1]))


def margins(numbers: Array) -> Array:
    """The least distance (m,) of a derivative from an end of its range, relative to its width.

    It is negative for a violation in doubles, and NaN where nothing is proved.
    """
    result = np.full(len(numbers), np.inf)
    for k in (2, 3):
        lo, hi = numbers[:, 2 + 2 * k, None], numbers[:, 3 + 2 * k, None]
        seen = numbers[:, 12 + k :: 2]
        with np.errstate(all="ignore"):
            width = np.maximum(np.maximum(hi - lo, UNSURE * (abs(lo) + abs(hi))), 1e-280)
            own = np.minimum((seen - lo) / width, (hi - seen) / width)
        result = np.fmin(result, np.where(np.isfinite(own), own, np.inf).min(axis=1))
    result[~np.isfinite(numbers[:, 6:14]).all(axis=1)] = np.nan
    return result


def random_rays(tally: Tally, cases: int, seed: int, each: int) -> None:
    """Rays through random graphs."""
    rng = np.random.default_rng(seed)
    began = shown = time.process_time()
    for graph in count():
        kind = ALL_KINDS[graph % len(ALL_KINDS)]
        if kind in RARE and graph // len(ALL_KINDS) % 8:
            continue
        try:
            own = CompiledRays(thrown(rng, kind))
        except (MissingRule, AssertionError):
            tally.counts["graphs without a proof"] += 1
            continue
        rays, numbers = own.rays(each, rng)
        margin = margins(numbers)
        tally.counts["graphs"] += 1
        tally.counts["rays"] += each
        tally.counts["nothing proved"] += int(np.isnan(margin).sum())
        order = np.argsort(margin)[: max(tally.worst // 10, 1)]
        for k in order[np.isfinite(margin[order])]:
            name = f"{kind}, graph {graph}, ray {k}"
            if margin[k] < 0.0:
                tally.decide(name, own.one(rays[k]), numbers[k, :14])
            else:
                tally.keep(float(margin[k]), name, own.one(rays[k]), numbers[k, :14])
        now = time.process_time()
        if now - shown > 30.0:
            shown = now
            rate = 60.0 * tally.counts["rays"] / (now - began)
            print(f"{tally.counts['rays']} rays, {rate:.0f} a minute", file=sys.stderr, flush=True)
        if tally.counts["rays"] >= cases:
            break
    for _, _, name, ray, proved in tally.closest:
        tally.decide(name, ray, proved)


def rays_of_models(tally: Tally, cases: int, seed: int) -> None:
    """Rays from points about the starts of models, against their Hessian products."""
    rng = np.random.default_rng(seed)
    every = [(name, model) for name, model in models(None, "numpy") if model.n <= 2_000]
    each = max(1, cases // len(every))
    for name, model in every:
        x0 = model.x0()
        for k in range(each):
            v = rng.normal(size=model.n)
            v /= np.linalg.norm(v)
            x = x0 + 10.0 ** rng.uniform(-4.0, -0.5) * rng.normal(size=model.n)
            end = float(10.0 ** rng.uniform(-6.0, -0.5))
            bounds = model.ray_bounds(x, v, end)
            tally.counts["rays"] += 1
            if bounds.reason:
                tally.counts["nothing proved"] += 1
                continue
            seen = [float(v @ model.hvp(x + t * end * v, v)) for t in SHARES]
            slack = 1e-9 * max(map(abs, seen)) + bounds.curvature_error
            if min(seen) < bounds.lower - slack or max(seen) > bounds.upper + slack:
                tally.wrong.append(f"{name}, ray {k}: {seen} not in {bounds}")
                print(tally.wrong[-1], flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--each", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worst", type=int, default=100)
    parser.add_argument("--models", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    tally = Tally(given.worst)
    began = time.process_time()
    if given.models:
        rays_of_models(tally, given.cases, given.seed)
    else:
        random_rays(tally, given.cases, given.seed, given.each)
    spent = time.process_time() - began
    print(dict(tally.counts), f"{60.0 * tally.counts['rays'] / spent:.0f} rays a minute")
    print(f"{len(tally.wrong)} violations")
    sys.exit(1 if tally.wrong else 0)


if __name__ == "__main__":
    main()
