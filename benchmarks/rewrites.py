"""Savings by the passes: each model with passes off and on, against hand-written NumPy and JAX.

    python benchmarks/evaluate.py --rewrites [--quick] [--model NAME] [--markdown | --json]

`by hand` is the careful NumPy of by_hand.py, `layers` a network layer by layer, as its formula
says (peers.py), `jax` its compiled value and gradient, if JAX is installed. All alternate over 20
points, on one thread, in CPU time, in a process that retains freed memory, which favours the peers.
A speed is the median over pairs of neighbouring runs, peer / model: above 1 the model is faster.

Targets, reported but not enforced: the models of `TARGETS` faster by the stated factors than the
best of the peers that follow the formula, and nothing slower than 0.9 times hand-written NumPy.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace

import numpy as np

import slomodel
from benchmarks.by_hand import Arrays, Evaluate
from benchmarks.cases import Case, cases, standardised_case
from benchmarks.machine import description, run_again
from benchmarks.measure import Call, seconds
from benchmarks.peers import LAYERED, in_jax
from benchmarks.points import POINTS, deviation, distance, pieces, points

TARGETS = {
    "linear_autoencoder": 20.0,
    "deep_linear": 20.0,
    "deep_linear_standardised": 20.0,
    "sym_tensor": 3.5,
}
LEAST_BY_HAND = 0.9
PEERS = ("by hand", "layers", "jax")


@dataclass(frozen=True, slots=True)
class Saved:
    """One case: times in microseconds per call, and speeds peer / model with passes on."""

    model: str
    size: str
    passes: tuple[str, ...]
    off_us: float
    on_us: float
    faster: float
    us: dict[str, float]
    speeds: dict[str, float]
    deviation: float

    @property
    def peer(self) -> str:
        """The best peer that follows the formula; `by hand` for models without another."""
        formula = {name: self.us[name] for name in ("layers", "jax") if name in self.us}
        own = formula if "layers" in formula else {**formula, "by hand": self.us["by hand"]}
        return min(own, key=own.__getitem__)

    @property
    def missed(self) -> tuple[str, ...]:
        """The targets that this row misses."""
        target = TARGETS.get(self.model)
        slow = target is not None and self.speeds[self.peer] < target
        behind = self.speeds["by hand"] < LEAST_BY_HAND
        named = {f"{target:g} times {self.peer}" if target else "": slow, "by hand": behind}
        return tuple(name for name, is_missed in named.items() if is_missed)


def measured(case: Case, quick: bool) -> Saved:
    """One row without JAX."""
    on, off = (_compiled(case, rewrites) for rewrites in (True, False))
    xs = points(on)
    unpacked = [pieces(on, x) for x in xs]
    calls: dict[str, Call] = {
        "on": lambda k: on.value_and_gradient(xs[k]),
        "off": lambda k: off.value_and_gradient(xs[k]),
        "by hand": lambda k: case.hand(unpacked[k], case.known),
    }
    if case.model in LAYERED:
        layered = LAYERED[case.model]
        calls["layers"] = lambda k: layered(unpacked[k], case.known)
    us, speeds = _turns(calls, quick)
    changed = [line for line in on.explain().splitlines() if line.startswith("rewritten")]
    return Saved(
        *(case.model, case.size),
        tuple(line.split(":")[0].removeprefix("rewritten").strip() for line in changed),
        *(us["off"], us["on"], speeds["off"]),
        {name: us[name] for name in PEERS if name in us},
        {name: speeds[name] for name in PEERS if name in speeds},
        deviation(case, [on, off], xs),
    )


def with_jax(row: Saved, case: Case, quick: bool) -> Saved:
    """The row with JAX, if installed, timed separately: its threads would add to the CPU time."""
    evaluate = in_jax(case.model)
    if evaluate is None:
        return row
    on = _compiled(case, True)
    xs = points(on)
    jax = _jax_call(evaluate, [pieces(on, x) for x in xs], case.known)
    calls: dict[str, Call] = {
        "on": lambda k: on.value_and_gradient(xs[k]),
        "jax": jax,
    }
    us, speeds = _turns(calls, quick)
    row.us["jax"], row.speeds["jax"] = us["jax"], speeds["jax"]
    value, gradient = jax(0)
    wrong = distance(on, xs[0], value, {name: np.asarray(one) for name, one in gradient.items()})
    return replace(row, deviation=max(row.deviation, wrong))


def _compiled(case: Case, rewrites: bool) -> slomodel.Model:
    # The targets are those of numexpr and NumPy; C has a table of its own.
    own = {"data": case.data, "dims": case.dims, "backend": "numexpr"}
    return slomodel.compile(case.source, rewrites=rewrites, **own)


def _turns(calls: dict[str, Call], quick: bool) -> tuple[dict[str, float], dict[str, float]]:
    """Microseconds of each computation, and its time relative to the first."""
    block = 2e-3 if quick else 1e-2
    table = seconds(list(calls.values()), POINTS, block, time.process_time)
    times = 1e6 * np.median(table, axis=0)
    ratios = np.median(table / table[:, :1], axis=0)
    names = list(calls)
    return dict(zip(names, times.tolist(), strict=True)), dict(
        zip(names, ratios.tolist(), strict=True)
    )


def _jax_call(
    evaluate: Evaluate, xs: list[Arrays], data: Arrays
) -> Callable[[int], tuple[float, Arrays]]:
    """JAX's function over its own arrays of variables and data."""
    import jax.numpy

    own = {name: jax.numpy.asarray(array) for name, array in data.items()}
    given = [{name: jax.numpy.asarray(array) for name, array in x.items()} for x in xs]
    return lambda k: evaluate(given[k], own)


def _all_cases(options: argparse.Namespace) -> Iterator[Case]:
    standardised = standardised_case()
    if options.model in (None, standardised.model):
        yield standardised
    yield from cases(options.quick, options.model)


def rows_here(options: argparse.Namespace) -> list[Saved]:
    """The rows, in this process."""
    rows = []
    for case in _all_cases(options):
        rows.append(measured(case, options.quick))
        print(f"{case.model} {case.size}", file=sys.stderr, flush=True)
    again = zip(rows, _all_cases(options), strict=True)
    return [with_jax(row, case, options.quick) for row, case in again]


def cells(rows: list[Saved]) -> list[tuple[str, ...]]:
    """The table, heads first."""
    heads = ("model", "size", "passes", "off us", "on us", "off/on")
    found = [(*heads, *(f"{peer} us" for peer in PEERS), *PEERS, "deviation", "missed")]
    for row in rows:
        times = (f"{row.us[peer]:.4g}" if peer in row.us else "-" for peer in PEERS)
        speeds = (f"{row.speeds[peer]:.2f}" if peer in row.speeds else "-" for peer in PEERS)
        own = (f"{row.off_us:.4g}", f"{row.on_us:.4g}", f"{row.faster:.2f}")
        missed = ", ".join(row.missed) or "-"
        passes = ", ".join(row.passes) or "-"
        name = (row.model, row.size or "file", passes)
        found.append((*name, *own, *times, *speeds, f"{row.deviation:.0e}", missed))
    return found


def report(options: argparse.Namespace, script: str, shown: Callable[..., str], most: float) -> int:
    """Print the table; return 1 if a gradient deviates by more than `most`."""
    chosen = ["--rewrites", *(["--quick"] if options.quick else [])]
    chosen += ["--model", options.model] if options.model else []
    machine = description(1)
    if options.here:
        print(json.dumps([asdict(row) for row in rows_here(options)]))
        return 0
    given = run_again(script, [*chosen, "--here", "kept"], "kept", 1)
    assert isinstance(given, list)
    rows = [Saved(**{**one, "passes": tuple(one["passes"])}) for one in given]
    if options.json:
        told = [asdict(row) | {"peer": row.peer, "missed": row.missed} for row in rows]
        print(json.dumps({"machine": machine, "rows": told}, indent=1))
    else:
        facts = [f"{key}: {value}" for key, value in machine.items()]
        missed = sum(bool(row.missed) for row in rows)
        end = f"rows that miss a target: {missed} of {len(rows)}"
        print("\n\n".join(["\n".join(facts), shown(cells(rows), options.markdown), end]))
    return int(any(row.deviation > most for row in rows))
