"""Compares `auto` on problems in closed sets with SciPy, from the same starts and kernels.

    python benchmarks/sets.py [--case NAME ...] [--direction NAME] [--repeats N] [--write]

Boxes are compared with L-BFGS-B, simplices and balls with SLSQP and trust-constr; spheres, which
`Model.scipy` does not express, with recorded runs of SLSQP. `total` is the number of evaluations
until a solver ends by its own default test, `right` that until f is the minimum (or another
recorded stationary value) to 1e-6; an evaluation is a value, with or without gradient. `products`
are those with the Hessian, of which each costs about as much as a gradient. Times are those of the
processor, the best of N runs (default 5). Runs of SciPy end after LIMIT seconds of the processor,
and count as never right unless they have been. Without --case the page goes on with larger problems
and factorisations (`set_problems.py`); --write makes it `results/sets.md`.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).parent.parent))

import slomodel
from benchmarks.machine import description
from benchmarks.measure import cpu_seconds
from benchmarks.result_page import RESULTS
from benchmarks.set_cases import CASES, Case, Vector
from benchmarks.set_problems import factor_table, larger_table
from slomodel.errors import ModelWarning, StartWarning
from slomodel.solve import State

# Runs that take longer than this, in seconds, are not repeated, and end after LIMIT.
LONG, LIMIT = 1.0, 10.0
PAGE = RESULTS / "sets.md"
TITLE = """# `auto` in closed sets

Printed by `python benchmarks/sets.py --write`; what the columns mean stands at the top of that
file. Counts of evaluations are exact; on a machine with other work times below a few milliseconds
are rough. L-BFGS-B stops at its own default test, which asks for less than gtol = 1e-6.
"""
LARGER = """Larger problems (`set_problems.py`), in seconds of the processor, against L-BFGS-B with
ten pairs; the last column is by how much of f it ends higher:
"""
FACTORED = """Factorisations of 200 × 100 matrices with ten nonnegative factors, from the same
starts: objective and seconds of the processor. The peer is scikit-learn's coordinate descent with
at most 20,000 sweeps (- where it is not installed); its multiplicative updates end higher.
"""
Stop = Callable[[float], bool]
"""Whether a value is right."""


@dataclass
class Effort:
    """Evaluations in all and until f is right, seconds, and products with the Hessian.

    None: not known, or never right.
    """

    total: int
    right: int | None
    seconds: float | None = None
    products: int = 0

    @property
    def shown(self) -> str:
        return f"{self.total} ({'never' if self.right is None else self.right})"


class OutOfTime(Exception):
    """Raised by an evaluation after the limit."""


class Counted:
    """Values and gradients of a model, counted.

    `right` is the first count with a right value at a feasible point, up to a distance of 1e-9.
    """

    def __init__(self, model: slomodel.Model, is_right: Stop) -> None:
        self._model, self._is_right = model, is_right
        self._within = model._within
        self._until = cpu_seconds() + LIMIT
        self.count = 0
        self.right: int | None = None

    def __call__(self, x: Vector) -> tuple[float, Vector]:
        if cpu_seconds() > self._until:
            raise OutOfTime
        f, g = self._model.value_and_gradient(x)
        self.count += 1
        if self.right is None and self._is_right(f):
            assert self._within is not None
            self.right = self.count if self._within.contains(x, 1e-9) else None
        return f, g


def ours(model: slomodel.Model, x0: Vector, is_right: Stop, repeats: int, direction: str) -> Effort:
    """A run of `auto`, or of norm-armijo along a direction."""
    options: dict[str, object] = {"direction": direction} if direction else {}
    right: list[int] = []

    def seen(state: State) -> None:
        if is_right(state.fun):
            right.append(state.nfev)

    found = model.solve(x0=x0, callback=seen, **options)
    seconds = min(timed(lambda: model.solve(x0=x0, **options)) for _ in range(repeats))
    ended = found.success and is_right(found.fun)
    return Effort(found.nfev, right[0] if right and ended else None, seconds, found.nhev)


def theirs(model: slomodel.Model, x0: Vector, is_right: Stop, repeats: int, method: str) -> Effort:
    """A run of a method of SciPy with its default options, but for limits."""
    given = model.scipy()
    options = {"maxiter": 15_000, **({"maxfun": 15_000} if method == "L-BFGS-B" else {})}
    kinds = {key: given[key] for key in ("bounds", "constraints") if key in given}
    if method == "SLSQP":
        options["maxiter"] = 1_000

    def run(fun: Counted) -> None:
        with suppress(OutOfTime):
            minimize(fun, x0, jac=True, method=method, options=options, **kinds)

    counted = Counted(model, is_right)
    seconds = timed(lambda: run(counted))
    for _ in range(repeats if seconds < LONG else 0):
        seconds = min(seconds, timed(lambda: run(Counted(model, is_right))))
    return Effort(counted.count, counted.right, seconds)


def timed(call: Callable[[], object]) -> float:
    start = cpu_seconds()
    call()
    return cpu_seconds() - start


def compared(name: str, repeats: int, direction: str) -> tuple[Effort, dict[str, Effort]]:
    """Our effort, and those of the peers that apply."""
    case = Case(name)
    model, start = case.model(), case.array("start")
    where = model._within
    assert where is not None
    x0 = np.empty_like(start)
    where.project(start, x0)
    first = model.value(x0)

    def is_right(f: float) -> bool:
        return case.is_right(f, first)

    mine = ours(model, x0, is_right, repeats, direction)
    if not where.convex:
        evaluations = CASES[name]["peers"]["SLSQP"][0]
        return mine, {"SLSQP": Effort(evaluations, evaluations)}
    boxes = "constraints" not in model.scipy()
    methods = ("L-BFGS-B",) if boxes else ("SLSQP", "trust-constr")
    return mine, {one: theirs(model, x0, is_right, repeats, one) for one in methods}


def mean(ratios: Iterable[float]) -> str:
    """The geometric mean of ratios, as text."""
    found = [math.log(ratio) for ratio in ratios]
    return f"{math.exp(sum(found) / len(found)):.2f} ({len(found)})" if found else "-"


def table(rows: dict[str, tuple[Effort, dict[str, Effort]]]) -> str:
    """One line a case, as markdown."""
    lines = ["| case | auto: total (right) | products | peer | total (right) | ms | peer's ms |"]
    lines.append("| --- | ---: | ---: | --- | ---: | ---: | ---: |")
    for name, (mine, peers) in rows.items():
        for peer, effort in peers.items():
            lines.append(
                f"| {name} | {mine.shown} | {mine.products} | {peer} | {effort.shown} "
                f"| {_ms(mine.seconds)} | {_ms(effort.seconds)} |"
            )
    return "\n".join(lines)


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1e3 * seconds:.2f}"


def summary(rows: dict[str, tuple[Effort, dict[str, Effort]]]) -> str:
    """Geometric means of our cost over each peer's, where both are right."""
    lines = ["| over | right | total | with products | time |"]
    lines.append("| --- | ---: | ---: | ---: | ---: |")
    for peer in ("L-BFGS-B", "SLSQP", "trust-constr"):
        both = [
            (mine, peers[peer])
            for mine, peers in rows.values()
            if peer in peers and mine.right and peers[peer].right
        ]
        right = mean(a.right / b.right for a, b in both if a.right and b.right)
        total = mean(a.total / b.total for a, b in both)
        products = mean((a.total + a.products) / b.total for a, b in both)
        time = mean(a.seconds / b.seconds for a, b in both if a.seconds and b.seconds)
        lines.append(f"| {peer} | {right} | {total} | {products} | {time} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Print the tables, or write them."""
    parser = argparse.ArgumentParser(description="Compare auto in sets with SciPy.")
    parser.add_argument("--case", nargs="+", choices=CASES)
    parser.add_argument("--direction", default="", help="instead of the one that auto chooses")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--write", action="store_true", help=f"write results/{PAGE.name}")
    options = parser.parse_args(arguments)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", StartWarning)
        warnings.simplefilter("ignore", ModelWarning)
        # SciPy warns of what its methods do with constraints.
        warnings.simplefilter("ignore", UserWarning)
        facts = "\n".join(f"- {key}: {value}" for key, value in description(1).items())
        names = options.case or list(CASES)
        rows = {one: compared(one, options.repeats, options.direction) for one in names}
        parts = [facts, table(rows), summary(rows)]
        if options.case is None:
            few = min(2, options.repeats)
            parts += [f"{LARGER}\n{larger_table(few)}", f"{FACTORED}\n{factor_table(few)}"]
    text = "\n\n".join(parts)
    if options.write:
        PAGE.write_text(f"{TITLE}\n{text}\n", encoding="utf-8")
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
