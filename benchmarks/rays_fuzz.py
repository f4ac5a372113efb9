"""Search for a bound along a ray that does not hold, on random graphs and on models.

    python benchmarks/rays_fuzz.py [--cases 20000] [--seed 0] [--worst 100] [--models]

A case is a ray from a random point along a random direction. Derivatives of orders 2 and 3 in
doubles at points of the ray are compared with what is proved; 60 digits decide where they are
outside or, at the end, for the `--worst` rays, those whose derivatives come closest to an end
relative to the width of the range and to rounding. Graphs are those of tests/random_graphs.py,
`RAYS` rays each. With `--models` the rays are of the models of models/ and models/practice, and the
derivatives are those of Hessian products, with their rounding as allowance. Every violation is
printed; the exit status is then 1.
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
from calculus.rays_of_graphs import RandomRay, thrown, violations
from random_graphs import KINDS, WITH_LITERALS

from benchmarks.rays import models
from slomodel.errors import MissingRule
from slomodel.reference import evaluate

RAYS = 20
"""Rays through one graph."""
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
    closest: list[tuple[float, int, str, RandomRay]] = field(default_factory=list)
    order: Iterator[int] = field(default_factory=count)

    def keep(self, margin: float, name: str, ray: RandomRay) -> None:
        """Keep a ray if it is among the closest."""
        entry = (-margin, next(self.order), name, ray)
        push = heappush if len(self.closest) < self.worst else heappushpop
        push(self.closest, entry)

    def decide(self, name: str, ray: RandomRay) -> None:
        """Compare a ray with the derivatives in 60 digits."""
        self.counts["decided in 60 digits"] += 1
        for one in violations(ray, SHARES):
            self.wrong.append(f"{name}: {one}")
            print(self.wrong[-1], flush=True)


def moved(ray: RandomRay, rng: np.random.Generator) -> RandomRay:
    """Another ray through the same graph: another point, direction and length."""
    values = dict(ray.example.values)
    for x in ray.example.variables:
        at = np.asarray(values[x])
        values[x] = at * rng.uniform(0.5, 1.5, at.shape) * rng.choice([1.0, 1.0, -1.0], at.shape)
    v = {one: np.asarray(rng.normal(size=at.shape)) for one, at in ray.v.items()}
    length = float(np.sqrt(sum(float((one**2).sum()) for one in v.values()))) or 1.0
    v = {one: at / length for one, at in v.items()}
    end = float(10.0 ** rng.uniform(-6.0, 0.7))
    return replace(ray, example=replace(ray.example, values=values), v=v, end=end)


def margin_of(ray: RandomRay) -> float | None:
    """The least distance of a derivative from an end of its range, relative to its width.

    It is negative for a violation in doubles, and None where nothing is proved.
    """
    proved = ray.proved()
    if not all(np.isfinite(proved[6:])):
        return None
    margin = np.inf
    for share in SHARES:
        values = {**ray.example.values, **ray.v}
        for x, along in ray.directions.items():
            values[x] = np.asarray(values[x]) + share * ray.end * np.asarray(ray.v[along])
        found = [float(one) for one in evaluate(ray.derivatives, values, ray.example.sizes)]
        for k, (lo, hi) in ((2, proved[6:8]), (3, proved[8:10])):
            if np.isfinite(found[k]):
                width = max(hi - lo, UNSURE * (abs(lo) + abs(hi)), 1e-280)
                margin = min(margin, (found[k] - lo) / width, (hi - found[k]) / width)
    return float(margin)


def random_rays(tally: Tally, cases: int, seed: int) -> None:
    """Rays through random graphs."""
    rng = np.random.default_rng(seed)
    began = shown = time.process_time()
    for graph in count():
        kind = ALL_KINDS[graph % len(ALL_KINDS)]
        if kind in RARE and graph // len(ALL_KINDS) % 8:
            continue
        try:
            first = thrown(rng, kind)
        except (MissingRule, AssertionError):
            tally.counts["graphs without a proof"] += 1
            continue
        for k in range(RAYS):
            ray = moved(first, rng) if k else first
            tally.counts["rays"] += 1
            margin = margin_of(ray)
            if margin is None:
                tally.counts["nothing proved"] += 1
            elif margin < 0.0 and np.isfinite(margin):
                tally.decide(f"{kind}, graph {graph}, ray {k}", ray)
            elif np.isfinite(margin):
                tally.keep(margin, f"{kind}, graph {graph}, ray {k}", ray)
        now = time.process_time()
        if now - shown > 30.0:
            shown = now
            rate = 60.0 * tally.counts["rays"] / (now - began)
            print(f"{tally.counts['rays']} rays, {rate:.0f} a minute", file=sys.stderr, flush=True)
        if tally.counts["rays"] >= cases:
            break
    for _, _, name, ray in tally.closest:
        tally.decide(name, ray)


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
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worst", type=int, default=100)
    parser.add_argument("--models", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    tally = Tally(given.worst)
    began = time.process_time()
    (rays_of_models if given.models else random_rays)(tally, given.cases, given.seed)
    spent = time.process_time() - began
    print(dict(tally.counts), f"{60.0 * tally.counts['rays'] / spent:.0f} rays a minute")
    print(f"{len(tally.wrong)} violations")
    sys.exit(1 if tally.wrong else 0)


if __name__ == "__main__":
    main()
