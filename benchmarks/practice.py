"""The models of practice: right, solved, and how fast against JAX, NumPy by hand and numba.

    python -m benchmarks.practice [NAME …] [--quick] [--write]

One row for each model of models/practice, in unconstrained variables. `right` counts the CPU
targets on which value and gradient agree with the record at all its points; `solved` says whether
the default solver, from the first of them, reaches the recorded minimum, where that is stable.
Times are those of value and gradient on target c, in double precision and on one thread, at 20
points near the recorded ones; a ratio is the median over pairs of alternating runs, peer /
slomodel: above 1 slomodel is faster. Seconds of compilation, to the first gradient and with an
empty cache, and times of evaluation are of the processor. Bytes are all arrays that binding data
and evaluating hold at the peak, beyond the data, the point and the result. JAX, NumPy and numba are
checked against the record before they are timed; those that are not installed are left out.
`--write` puts the table in results/practice.md.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).parent.parent))

import slomodel
from benchmarks.by_hand import Array, Arrays
from benchmarks.evaluate import in_columns
from benchmarks.measure import Call, cpu_seconds, memory, seconds
from benchmarks.practice_by_hand import BY_HAND
from benchmarks.result_page import ResultPage
from benchmarks.targets import mean
from slomodel import user_cache

ROOT = Path(__file__).parent.parent
MODELS = ROOT / "models" / "practice"
DATA = ROOT / "tests" / "data" / "practice"
DIMS = {"rater_error_rates": {"I": 45}}
TARGETS = ("c", "numexpr", "numpy")
TOLERANCE = 1e-9
POINTS = 20
MOST_SECONDS = 20.0

Evaluate = Callable[[Array], tuple[float, Array]]

_IN_MEMORY = "Derivatives by earlier states pass through memory, by hand in registers"
REASONS: dict[str, str] = {
    "arma11": "A step is three operations that wait for one another, by hand two",
    "nile_kalman": _IN_MEMORY,
    "airline_holt_winters": _IN_MEMORY,
    "gas_oil_rk4": _IN_MEMORY,
    "lecture_ratings": "Elements of rows are looked up, and their gradients added, one by one",
    "lennard_jones_13": "All pairs are computed, and those with j <= i left out of the sum",
    "mixture_five": "The start lies in the basin of another local minimum",
}
"""Why a model is slower than a peer, for the rows where it is."""


@dataclass(frozen=True, slots=True)
class Row:
    """One model: ratios of time, peer / slomodel, by peer; seconds of compilation by library."""

    model: str
    n: int
    right: list[str]
    solved: str
    microseconds: float
    ratios: dict[str, float]
    compilation: dict[str, float]
    peak: int


def records() -> dict[str, dict[str, object]]:
    """Values and gradients at the points, and the minimum, by model."""
    found = json.loads((DATA / "records.json").read_text())
    assert isinstance(found, dict)
    return found


def arrays(file: Path) -> Arrays:
    with np.load(file) as stored:
        return {name: stored[name] for name in stored}


def is_right(evaluate: Evaluate, xs: Array, points: Sequence[Mapping[str, object]]) -> bool:
    """Whether value and gradient agree with the record at the points xs, a row each."""
    return all(_agrees(*evaluate(x), point) for x, point in zip(xs, points, strict=False))


def _agrees(value: float, slope: Array, point: Mapping[str, object]) -> bool:
    if "gradient" in point:
        own, wanted = slope, np.array(point["gradient"])
        norm = np.linalg.norm(wanted)
    else:
        waves = slope @ np.cos(np.arange(1, slope.size + 1))
        own = np.array([np.linalg.norm(slope), waves, *slope[:5]])
        norm = np.float64(str(point["gradient_norm"]))
        first = np.array(point["gradient_first5"])
        wanted = np.array([norm, point["gradient_cos"], *first], float)
    known = float(str(point["value"]))
    value_agrees = abs(value - known) <= TOLERANCE * max(abs(known), 1e-6)
    return value_agrees and bool(np.abs(own - wanted).max() <= TOLERANCE * norm)


def compiled(name: str, target: str) -> slomodel.Model:
    """The model in unconstrained variables."""
    file = MODELS / f"{name}.slo"
    return slomodel.compile(file, dims=DIMS.get(name), backend=target).unconstrained


def compiled_cold(name: str, x: Array, cache: str) -> tuple[slomodel.Model, float]:
    """The model on target c, and the seconds to its first gradient with an empty cache."""
    os.environ["XDG_CACHE_HOME"] = cache
    user_cache.directory.cache_clear()
    began = cpu_seconds()
    model = compiled(name, "c")
    model.value_and_gradient(x)
    return model, cpu_seconds() - began


def solved(model: slomodel.Model, x: Array, minimum: Mapping[str, object]) -> str:
    """Whether the default solver ends at the recorded minimum; `-` where there is none."""
    if not minimum["stable"]:
        return "-"
    wanted = float(str(minimum["value"]))
    found = model.solve(x0=x, max_time=MOST_SECONDS)
    return "yes" if found.fun <= wanted + 1e-6 * abs(wanted) else f"no: {found.fun:.8g}"


def peers(name: str, data: Arrays) -> dict[str, Evaluate]:
    """The versions of the installed libraries."""
    found: dict[str, Evaluate] = {}
    if find_spec("jax") is not None:
        from benchmarks import practice_jax

        found["JAX"] = practice_jax.compiled(name, data)
    if name in BY_HAND:
        found["NumPy"] = BY_HAND[name](data)
    if find_spec("numba") is not None:
        from benchmarks.practice_loops import LOOPS

        if name in LOOPS:
            found["numba"] = LOOPS[name](data)
    return found


def peak_bytes(model: slomodel.Model, xs: Array) -> int:
    """Bytes of the arrays of a model that is bound anew and evaluated twice."""
    own: list[slomodel.Model] = []

    def call(k: int) -> None:
        if not own:
            own.append(model.bind())
        own[0].value_and_gradient(xs[k])

    return 8 * memory(call, model.n)


def measured(name: str, record: Mapping[str, object], quick: bool, cache: str) -> Row:
    """One row; raises ValueError if a peer's result differs from the record."""
    points, minimum = record["points"], record["minimum"]
    assert isinstance(points, list)
    assert isinstance(minimum, dict)
    stored = arrays(DATA / f"{name}.npz")["x"]
    model, cold = compiled_cold(name, stored[0], cache)
    right = ["c"] if is_right(model.value_and_gradient, stored, points) else []
    for target in () if quick else TARGETS[1:]:
        if is_right(compiled(name, target).value_and_gradient, stored, points):
            right.append(target)
    compilation = {"slomodel": cold}
    calls: dict[str, Evaluate] = {"slomodel": model.value_and_gradient}
    for peer, evaluate in peers(name, arrays(MODELS / "data" / f"{name}.npz")).items():
        began = cpu_seconds()
        evaluate(stored[0])
        compilation[peer] = cpu_seconds() - began
        if not is_right(evaluate, stored, points):
            raise ValueError(f"{peer} differs from the record of {name}")
        calls[peer] = evaluate
    rng = np.random.default_rng(2)
    xs = stored[np.arange(POINTS) % len(stored)] + 0.01 * rng.normal(size=(POINTS, model.n))
    timed: list[Call] = [lambda k, run=run: run(xs[k]) for run in calls.values()]
    table = seconds(timed, POINTS, 1e-3 if quick else 5e-3, time.process_time)
    ratios = np.median(table[:, 1:] / table[:, :1], axis=0)
    return Row(
        *(name, model.n, right, "-" if quick else solved(model, stored[0], minimum)),
        1e6 * float(np.median(table[:, 0])),
        dict(zip(list(calls)[1:], map(float, ratios), strict=True)),
        compilation,
        peak_bytes(model, xs),
    )


def rows_here(names: Sequence[str], quick: bool) -> list[Row]:
    # The first model of a process also loads the grammar.
    slomodel.compile("var x\nminimize x^2").value_and_gradient(np.ones(1))
    known = records()
    rows = []
    for name in names or sorted(known):
        with warnings.catch_warnings(), tempfile.TemporaryDirectory() as cache:
            warnings.simplefilter("ignore", slomodel.errors.ModelWarning)
            rows.append(measured(name, known[name], quick, cache))
        told = ", ".join(f"{peer} {ratio:.2f}" for peer, ratio in rows[-1].ratios.items())
        print(f"{name} {rows[-1].microseconds:.1f} us, {told}", file=sys.stderr, flush=True)
    return rows


def table(rows: Sequence[Row]) -> str:
    """One line per model."""
    peers = ("JAX", "NumPy", "numba")
    heads = ("model", "n", "right", "solved", "us", *peers, "compile s", "JAX s", "peak bytes")
    cells = [
        (
            *(row.model, str(row.n), f"{len(row.right)} of {len(TARGETS)}", row.solved),
            f"{row.microseconds:.3g}",
            *(f"{row.ratios[peer]:.2f}" if peer in row.ratios else "-" for peer in peers),
            *(_seconds(row, "slomodel"), _seconds(row, "JAX"), f"{row.peak:,}"),
        )
        for row in rows
    ]
    return in_columns([heads, *cells], True)


def _seconds(row: Row, library: str) -> str:
    return f"{row.compilation[library]:.2f}" if library in row.compilation else "-"


def summary(rows: Sequence[Row]) -> str:
    """Geometric means, and everything that misses: slower than a peer, wrong or not solved."""
    lines = []
    for peer in dict.fromkeys(peer for row in rows for peer in row.ratios):
        ratios = {row.model: row.ratios[peer] for row in rows if peer in row.ratios}
        worst = min(ratios, key=ratios.__getitem__)
        found = f"geometric mean {mean(ratios.values()):.2f}, worst {ratios[worst]:.2f} ({worst})"
        lines.append(f"- {peer}, {len(ratios)} models: {found}")
    longest = max(rows, key=lambda row: row.compilation["slomodel"])
    found = f"{longest.compilation['slomodel']:.2f} s ({longest.model})"
    lines.append(f"- compilation: at most {found}")
    lines.append("\nSlower than a peer, wrong or not solved:\n")
    for row in rows:
        slower = [f"{peer} {ratio:.2f}" for peer, ratio in row.ratios.items() if ratio < 1]
        wrong = [] if len(row.right) == len(TARGETS) else [f"right on {row.right}"]
        missed = slower + wrong + ([row.solved] if row.solved.startswith("no") else [])
        if missed:
            reason = REASONS.get(row.model)
            lines.append(f"- {row.model}: {', '.join(missed)}{f'. {reason}' if reason else ''}")
    return "\n".join(lines)


def page(rows: Sequence[Row]) -> str:
    return f"{table(rows)}\n\n{summary(rows)}"


def main(arguments: list[str] | None = None) -> int:
    """Print the table, or write it; 1 when a value or a gradient is wrong."""
    about = "Time the models of practice; with --quick target c only, and no solver."
    rows = ResultPage(__file__, "Models of practice", about, Row, rows_here, page).run(arguments)
    return int(any("c" not in row.right for row in rows))


if __name__ == "__main__":
    sys.exit(main())
