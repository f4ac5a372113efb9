"""How loose proved bounds are: beside a strong lower estimate, and beside the paper's sampling.

    python benchmarks/bounds.py [--model NAME] [--radius R ...] [--json]

For every model and radius: bound / lower and paper / lower for L1 and for L2, where `lower` is
the largest value found by ascents from several seeds and by the paper's 100 random pairs, which
are `paper` alone. Since `lower` may be below the constant, bound / lower overstates looseness. A
bound below `lower` is marked and makes the exit status 1. Times are of the first radius, which
does the work at the centre, and of the others.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np

import slomodel
from benchmarks.cases import cases
from slomodel.bounds import Bounds

RADII = (1e-3, 1e-2, 0.1, 1.0)
SEEDS = 2
PAIRS = 100
# An estimate from a difference of two Hessians is right to about this share.
RESOLVED = 1e-6


@dataclass(frozen=True, slots=True)
class Row:
    """One model over one ball."""

    model: str
    n: int
    radius: float
    L1: float
    L2: float
    lower1: float
    lower2: float
    paper1: float
    paper2: float
    rule1: str
    rule2: str
    reason: str
    ms: float

    @property
    def is_passed(self) -> bool:
        """Whether an estimate is above a bound."""
        slack = 1.0 - RESOLVED
        return slack * self.lower1 > self.L1 or slack * self.lower2 > self.L2

    def line(self) -> str:
        mark = "  BELOW AN ESTIMATE" if self.is_passed else ""
        return (
            f"{self.model:<20}{self.n:>6}{self.radius:>8g}{self.lower1:>11.3g}"
            f"{_ratio(self.L1, self.lower1)}{_ratio(self.paper1, self.lower1)}"
            f"{self.lower2:>11.3g}{_ratio(self.L2, self.lower2)}"
            f"{_ratio(self.paper2, self.lower2)}{self.ms:>9.1f}  {self.rule1}{mark}"
        )


HEADER = (
    f"{'model':<20}{'n':>6}{'r':>8}{'lower L1':>11}{'bound':>9}{'paper':>9}"
    f"{'lower L2':>11}{'bound':>9}{'paper':>9}{'ms':>9}  rule of L1"
)


def _ratio(value: float, lower: float) -> str:
    if lower == 0.0:
        return f"{'=' if value == 0.0 else value:>9}"
    return f"{value / lower:>9.3g}"


def rows(only: str | None, radii: Sequence[float]) -> Iterator[Row]:
    """A row for each model and radius, at the model's own start."""
    for case in cases(quick=True, only=only):
        model = slomodel.compile(case.source, data=case.data, dims=case.dims)
        if model.n > 2_000:
            continue
        center = model.x0()
        found: Bounds | None = None
        for radius in radii:
            began = time.perf_counter()
            found = found.at(radius) if found else model.bounds(center, radius)
            yield _row(model, center, found, 1e3 * (time.perf_counter() - began))


def _row(model: slomodel.Model, center: np.ndarray, found: Bounds, ms: float) -> Row:
    radius = found.radius
    paper = model.sample_bounds(center, radius, PAIRS, method="pairs")
    seen = [model.sample_bounds(center, radius, seed=seed) for seed in range(SEEDS)]
    return Row(
        model=model.name,
        n=model.n,
        radius=radius,
        L1=found.L1,
        L2=found.L2,
        lower1=max(paper.L1, *(one.L1 for one in seen)),
        lower2=max(paper.L2, *(one.L2 for one in seen)),
        paper1=paper.L1,
        paper2=paper.L2,
        rule1=found.gradient.best.rule,
        rule2=found.hessian.best.rule,
        reason=found.reason,
        ms=ms,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--model")
    parser.add_argument("--radius", type=float, nargs="+", default=RADII)
    parser.add_argument("--json", action="store_true", dest="as_json")
    asked = parser.parse_args(arguments)
    if not asked.as_json:
        print(HEADER)
    passed = False
    for row in rows(asked.model, asked.radius):
        passed = passed or row.is_passed
        print(json.dumps(asdict(row)) if asked.as_json else row.line(), flush=True)
    return int(passed)


if __name__ == "__main__":
    sys.exit(main())
