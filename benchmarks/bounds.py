"""Tightness of proved bounds against strong estimates from below and the paper's sampling.

    python benchmarks/bounds.py [--model NAME] [--radius R ...] [--markdown | --json]
    python benchmarks/bounds.py --fresh [--only CLASS] [--kept FILE] [--markdown]
    python benchmarks/bounds.py --large [--only CASE] [--markdown]
    python benchmarks/bounds.py --practice [--only MODEL] [--kept FILE] [--markdown]
    python benchmarks/bounds.py --unseen [--only MODEL] [--kept FILE] [--markdown]
    python benchmarks/bounds.py --without NAME ...      any of these without a rule or a refinement

For every model and radius: bound / lower and paper / lower for L1 and for L2, where `lower` is the
largest value found by ascents from several seeds and by the paper's 100 random pairs; `paper` uses
those pairs only. Since `lower` may be below the constant, bound / lower overstates looseness. A
bound below `lower` is marked, and the exit status is 1. Times are CPU times; that of the first
radius includes the work at the centre. Models without data in their file get small random data.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from pathlib import Path

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np

import slomodel
from benchmarks.bounds_fresh import fresh_tables
from benchmarks.bounds_large import large_table
from benchmarks.bounds_practice import practice_rows, table_of
from benchmarks.bounds_unseen import unseen_rows
from benchmarks.cases import MODELS, cases
from benchmarks.evaluate import in_columns
from benchmarks.machine import description
from slomodel.bounds import Bounds, pipeline
from slomodel.bounds.rules import layered_networks, majorant_series
from slomodel.bounds.rules.predictors import dense_rows

RADII = (1e-3, 1e-2, 0.1, 1.0)
SEEDS = 2
PAIRS = 100
# Relative accuracy of an estimate from a difference of two Hessians.
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

    def cells(self) -> tuple[str, ...]:
        mark = " BELOW AN ESTIMATE" if self.is_passed else ""
        return (
            self.model,
            str(self.n),
            f"{self.radius:g}",
            f"{self.lower1:.3g}",
            _ratio(self.L1, self.lower1),
            _ratio(self.paper1, self.lower1),
            f"{self.lower2:.3g}",
            _ratio(self.L2, self.lower2),
            _ratio(self.paper2, self.lower2),
            f"{self.ms:.0f}",
            self.rule1.split(":")[0] + mark,
            self.rule2.split(":")[0],
        )


HEADS = ("model", "n", "r", "L1 ≥", "bound", "paper", "L2 ≥", "bound", "paper", "ms")
HEADS = (*HEADS, "rule of L1", "rule of L2")


def _ratio(value: float, lower: float) -> str:
    if lower == 0.0:
        return "=" if value == 0.0 else f"{value:.3g} / 0"
    return f"{value / lower:.3g}"


def _symmetric(vectors: np.ndarray, order: int) -> np.ndarray:
    """The sum of the vectors' powers."""
    return sum(reduce(np.multiply.outer, [v] * order) for v in vectors)


def _others() -> dict[str, dict[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    return {
        "autoencoder": {},
        "cp_tensor": {"T": rng.standard_normal((6, 5, 4))},
        "hanging_chain": {},
        "hard_instance": {},
        "neural_net": {},
        "small_polygon": {},
        "softplus_toy": {},
        "sym_tensor4": {"T": _symmetric(rng.standard_normal((3, 5)), 4)},
        "sym_tensor7": {"T": _symmetric(rng.standard_normal((3, 3)), 7)},
        "torsion_box": {},
    }


OTHERS = _others()
"""The models that other benchmarks lack, with data where their files have none."""


def models(only: str | None) -> Iterator[slomodel.Model]:
    """Every model of models/, with the data of the other benchmarks or small ones."""
    for case in cases(quick=True, only=only):
        if case.size != "1000000":
            yield slomodel.compile(case.source, data=case.data, dims=case.dims)
    for name, data in OTHERS.items():
        if only in (None, name):
            yield slomodel.compile(MODELS / f"{name}.slo", data=data)


def rows(only: str | None, radii: Sequence[float]) -> Iterator[Row]:
    """A row for each model and radius, at the model's own start."""
    for model in models(only):
        center = model.x0()
        found: Bounds | None = None
        for radius in radii:
            began = time.process_time()
            found = found.at(radius) if found else model.bounds(center, radius)
            yield _row(model, center, found, 1e3 * (time.process_time() - began))


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
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="a table for a document")
    form.add_argument("--json", action="store_true", dest="as_json")
    parser.add_argument("--fresh", action="store_true", help="targets on random instances")
    parser.add_argument("--large", action="store_true", help="up to a million unknowns")
    parser.add_argument("--practice", action="store_true", help="the models of practice")
    parser.add_argument("--unseen", action="store_true", help="small models of ten other fields")
    parser.add_argument(
        "--only", metavar="NAME", help="classes, cases or models whose name contains this"
    )
    parser.add_argument("--kept", type=Path, metavar="FILE", help="estimates of earlier runs")
    parser.add_argument(
        "--without", metavar="NAME", help="leave out a rule, or a refinement of sums or series"
    )
    asked = parser.parse_args(arguments)
    if asked.without is not None and not leave_out(asked.without):
        parser.error(f"--without: expected one of {', '.join(sorted(_in_use()))}")
    if asked.fresh:
        return _fresh(asked.only, asked.kept, asked.markdown)
    if asked.large:
        print("\n\n".join([_facts(), in_columns(large_table(asked.only), asked.markdown)]))
        return 0
    if asked.practice or asked.unseen:
        measured = practice_rows if asked.practice else unseen_rows
        cells, totals, is_passed = table_of(measured(asked.only, asked.kept))
        print("\n\n".join([_facts(), totals, in_columns(cells, asked.markdown)]))
        return int(is_passed)
    found = []
    for row in rows(asked.model, asked.radius):
        found.append(row)
        if asked.as_json:
            print(json.dumps(asdict(row)), flush=True)
        else:
            print(" ".join(row.cells()), file=sys.stderr, flush=True)
    if not asked.as_json:
        table = in_columns([HEADS, *(row.cells() for row in found)], asked.markdown)
        print("\n\n".join([_facts(), table]))
    return int(any(row.is_passed for row in found))


REFINED = (dense_rows, majorant_series, layered_networks)
"""The rules with refinements, a tuple `REFINEMENTS` in each."""


def _in_use() -> set[str]:
    """The names of the rules and of the refinements."""
    refinements = (_spelled(one) for rule in REFINED for one in rule.REFINEMENTS)
    return {*(rule.name for rule in pipeline.RULES), *refinements}


def _spelled(refinement: Callable[..., object]) -> str:
    return refinement.__name__.replace("_", " ")


def leave_out(name: str) -> bool:
    """Bound without this rule or refinement from now on; whether there is one of that name."""
    if name not in _in_use():
        return False
    pipeline.RULES = tuple(rule for rule in pipeline.RULES if rule.name != name)
    for rule in REFINED:
        others = tuple(one for one in rule.REFINEMENTS if _spelled(one) != name)
        rule.REFINEMENTS = others
    return True


def _facts() -> str:
    return "\n".join(f"- {key}: {value}" for key, value in description(1).items())


def _fresh(only: str | None, kept: Path | None, markdown: bool) -> int:
    """Print the targets, met or missed, and every case; return the exit status."""
    classes, every, is_passed = fresh_tables(only, kept)
    tables = (in_columns(one, markdown) for one in (classes, every))
    print("\n\n".join([_facts(), *tables]))
    return int(is_passed)


if __name__ == "__main__":
    sys.exit(main())
