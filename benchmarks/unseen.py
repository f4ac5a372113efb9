"""Models that nothing here was tuned for, against JAX and numba: how fast, and how near the limit.

    python -m benchmarks.unseen [NAME …] [--quick] [--write]

One row for each model of `unseen_models`, and of the further parts, `unseen_more`,
`unseen_third` to `unseen_seventh`: value and gradient, and the product of the
Hessian and a vector, at 20 points one after another, on target c, in double precision and on one
thread. A ratio is the median over pairs of alternating runs,
peer / slomodel: above 1 slomodel is faster. JAX runs compiled, on one thread; both are checked
against each other before they are timed. `limit` is the part of the measured time of value and
gradient that `limits` says this machine needs for the operations of the program; recurrences have
no such limit. For a model below 60 % of it the summary names what takes the rest, in parts of the
measured time as `limits` estimates them; `loops` are what is left. Seconds of compilation, to the
first gradient and with an empty cache, are of the processor. `--write` puts the table in
results/unseen.md.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).parent.parent))

import slomodel
from benchmarks.by_hand import Array
from benchmarks.evaluate import in_columns
from benchmarks.limits import limit, work
from benchmarks.measure import Call, cpu_seconds, seconds
from benchmarks.result_page import ResultPage
from benchmarks.targets import mean
from benchmarks.unseen_fifth import FIFTH
from benchmarks.unseen_fourth import FOURTH
from benchmarks.unseen_models import MODELS, Unseen
from benchmarks.unseen_more import MORE
from benchmarks.unseen_seventh import SEVENTH
from benchmarks.unseen_sixth import SIXTH
from benchmarks.unseen_third import THIRD
from slomodel import user_cache

POINTS = 20
MOST_DEVIATION = 1e-8
NEAR = 0.85
"""The part of the limit from which on 0.95 of a peer's speed is enough."""

_SMALL = 0.05
"""Parts of the time below this one are not named."""

REASONS: dict[str, str] = {
    "radial_units": "The peer expands |x - c|^2 into a product of matrices, which cancels",
    "sensor_network": "Coordinates are looked up, and their gradients added, one by one",
    "word_vectors": "Gradients of rows are added where they are looked up, in two passes",
    "phi4_lattice": "Adjoints of neighbours are six arrays, which a second loop adds",
    "charges_on_sphere": "Runs of pairs j < i are 30 long, and each begins every pass anew",
    "label_spread": "Gradients of rows are added where they are looked up, in two passes",
    "hidden_states": "Derivatives by earlier states pass through memory, by hand in registers",
    "weekly_cases": "Each step waits for a division, by hand for a product with its inverse",
}
"""Why a model misses a target, for the rows that do."""


@dataclass(frozen=True, slots=True)
class Row:
    """One model: microseconds, ratios of time peer / slomodel, the part of the limit, compilation.

    `fraction`, `cause` and `beyond`, parts of the time by what takes it beyond the limit, are empty
    for recurrences, and `numba` where no loop is natural.
    """

    model: str
    field: str
    n: int
    us: float
    hvp_us: float
    jax: float
    jax_hvp: float
    numba: float | None
    fraction: float | None
    cause: str
    beyond: dict[str, float]
    compilation: float
    jax_compilation: float


def deviation(found: Array, wanted: Array) -> float:
    """The largest difference, relative to the largest element."""
    return float(np.abs(found - wanted).max() / max(np.abs(wanted).max(), 1e-300))


def measured(one: Unseen, quick: bool) -> Row:
    """One row; raises ValueError if JAX or numba find another value or derivative."""
    from benchmarks import unseen_jax
    from benchmarks.unseen_fourth_loops import FOURTH_LOOPS
    from benchmarks.unseen_loops import LOOPS
    from benchmarks.unseen_more_loops import MORE_LOOPS
    from benchmarks.unseen_third_loops import THIRD_LOOPS

    rng = np.random.default_rng(0)
    data = one.data(rng)
    began = cpu_seconds()
    model = slomodel.compile(one.source, data=data, backend="c")
    xs, vs = ([one.point(model.n, rng) for _ in range(POINTS)] for _ in range(2))
    value, gradient = model.value_and_gradient(xs[0])
    cold = cpu_seconds() - began
    peer = unseen_jax.compiled(one.name, data, list(model.variables.values()))
    began = cpu_seconds()
    peer_value, peer_gradient = peer.value_and_gradient(xs[0])
    peer_cold = cpu_seconds() - began
    # The peers minimise what the model maximises.
    sense = -1.0 if "maximize" in one.source else 1.0
    _check(one.name, "JAX", value, gradient, sense * peer_value, sense * peer_gradient)
    product, peer_product = model.hvp(xs[0], vs[0]), sense * peer.hvp(xs[0], vs[0])
    _check(one.name, "JAX", 1.0, product, 1.0, peer_product)
    calls: list[Call] = [
        lambda k: model.value_and_gradient(xs[k]),
        lambda k: peer.value_and_gradient(xs[k]),
        lambda k: model.hvp(xs[k], vs[k]),
        lambda k: peer.hvp(xs[k], vs[k]),
    ]
    loops = LOOPS | MORE_LOOPS | THIRD_LOOPS | FOURTH_LOOPS
    if one.name in loops:
        loop = loops[one.name](data)
        _check(one.name, "numba", value, gradient, *loop(xs[0]))
        calls.append(lambda k: loop(xs[k]))
    table = seconds(calls, POINTS, 1e-3 if quick else 5e-3, time.process_time)
    own = float(np.median(table[:, 0]))
    ratios = [
        float(np.median(table[:, b] / table[:, a]))
        for a, b in ((0, 1), (2, 3), *(((0, 4),) if len(calls) > 4 else ()))
    ]
    found = work(model)
    least = None if found is None else limit(found)
    return Row(
        *(one.name, one.field, model.n, 1e6 * own, 1e6 * float(np.median(table[:, 2]))),
        *(ratios[0], ratios[1], ratios[2] if len(ratios) > 2 else None),
        *((None, "recurrence") if least is None else (least.seconds / own, least.cause)),
        {} if found is None else {key: s / own for key, s in found.beyond.seconds().items()},
        *(cold, peer_cold),
    )


def _check(
    name: str, peer: str, value: float, array: Array, other: float, other_array: Array
) -> None:
    apart = max(abs(value - other) / max(abs(value), 1e-300), deviation(array, other_array))
    if not apart <= MOST_DEVIATION:
        raise ValueError(f"{peer} differs from {name} by {apart:.1e}")


def rows_here(names: Sequence[str], quick: bool) -> list[Row]:
    # The first model of a process also loads the grammar.
    slomodel.compile("var x\nminimize x^2").value_and_gradient(np.ones(1))
    rows = []
    for one in (*MODELS, *MORE, *THIRD, *FOURTH, *FIFTH, *SIXTH, *SEVENTH):
        if names and one.name not in names:
            continue
        with warnings.catch_warnings(), tempfile.TemporaryDirectory() as cache:
            warnings.simplefilter("ignore", slomodel.errors.ModelWarning)
            os.environ["XDG_CACHE_HOME"] = cache
            user_cache.directory.cache_clear()
            rows.append(measured(one, quick))
        row = rows[-1]
        told = f"{row.us:.1f} us, JAX {row.jax:.2f}, product {row.jax_hvp:.2f}"
        print(f"{row.model} {told}", file=sys.stderr, flush=True)
    return rows


def table(rows: Sequence[Row]) -> str:
    """One line per model."""
    heads = (
        *("model", "n", "us", "JAX", "numba", "limit", "bounded by"),
        *("product us", "JAX", "compile s", "JAX s"),
    )
    cells = [
        (
            *(row.model, str(row.n), f"{row.us:.3g}", f"{row.jax:.2f}"),
            "-" if row.numba is None else f"{row.numba:.2f}",
            "-" if row.fraction is None else f"{100 * row.fraction:.0f} %",
            *(row.cause, f"{row.hvp_us:.3g}", f"{row.jax_hvp:.2f}"),
            *(f"{row.compilation:.2f}", f"{row.jax_compilation:.2f}"),
        )
        for row in rows
    ]
    return in_columns([heads, *cells], True)


def missed(row: Row) -> list[str]:
    """The targets that a row misses."""
    least = 0.95 if row.fraction is not None and row.fraction >= NEAR else 1.0
    found = [f"JAX {row.jax:.2f}"] if row.jax < least else []
    found += [f"product {row.jax_hvp:.2f}"] if row.jax_hvp < least else []
    found += [f"numba {row.numba:.2f}"] if row.numba is not None and row.numba < least else []
    if row.fraction is not None and row.fraction < 0.6:
        found.append(f"{100 * row.fraction:.0f} % of the limit by {row.cause}{_rest(row)}")
    return found


def _rest(row: Row) -> str:
    """What takes the time beyond the limit, the largest part first."""
    assert row.fraction is not None
    parts = {**row.beyond, "loops": 1 - row.fraction - sum(row.beyond.values())}
    told = [
        f"{name} {100 * part:.0f} %"
        for name, part in sorted(parts.items(), key=lambda pair: -pair[1])
        if part >= _SMALL
    ]
    return f" (beyond it {', '.join(told)})" if told else ""


def summary(rows: Sequence[Row]) -> str:
    """Geometric means, and every target that is missed."""
    lines = []
    parts = {"second part, ": MORE, "third part, ": THIRD}
    parts |= {"fourth part, ": FOURTH, "fifth part, ": FIFTH, "sixth part, ": SIXTH}
    parts |= {"seventh part, ": SEVENTH}
    part = {one.name: own for own, models in parts.items() for one in models}
    for own in ("", *parts):
        lines += _means([row for row in rows if part.get(row.model, "") == own], own)
    lines.append("\nTargets missed:\n")
    for row in rows:
        if missed(row):
            reason = REASONS.get(row.model)
            lines.append(
                f"- {row.model}: {', '.join(missed(row))}{f'. {reason}' if reason else ''}"
            )
    return "\n".join(lines)


def _means(rows: Sequence[Row], part: str) -> list[str]:
    """Geometric mean and least ratio to each peer."""
    lines = []
    for name, ratios, target in (
        ("JAX, value and gradient", {row.model: row.jax for row in rows}, 4.0),
        ("JAX, products with the Hessian", {row.model: row.jax_hvp for row in rows}, 3.0),
        ("numba", {row.model: row.numba for row in rows if row.numba is not None}, 1.0),
    ):
        if ratios:
            worst = min(ratios, key=ratios.__getitem__)
            found = f"geometric mean {mean(ratios.values()):.2f} (target {target})"
            lines.append(f"- {part}{name}: {found}, worst {ratios[worst]:.2f} ({worst})")
    return lines


def page(rows: Sequence[Row]) -> str:
    return f"{table(rows)}\n\n{summary(rows)}"


def main(arguments: list[str] | None = None) -> int:
    """Print the table, or write it."""
    about = "Time models that nothing was tuned for."
    ResultPage(__file__, "Unseen models", about, Row, rows_here, page).run(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
