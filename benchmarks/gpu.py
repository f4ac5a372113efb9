"""Value and gradient on a CUDA device: fraction of its bandwidth, and JAX on the same card.

    python benchmarks/gpu.py                 every model, elementwise ones of 10⁶ to 10⁸ elements
    python benchmarks/gpu.py --write         the same, written to benchmarks/results/gpu.md
    python benchmarks/gpu.py rosenbrock      some models
    python benchmarks/gpu.py --quick         small sizes

In double precision; times are medians of calls that end with the value on the host. Points and
results of elementwise models and of models/ are on the device, those of unseen models on the host,
for JAX too. Compilation is not timed. Without a device it prints a message and ends.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

import slomodel
from benchmarks.by_hand import Array
from benchmarks.cases import Case, cases
from benchmarks.evaluate import in_columns
from benchmarks.peers import FORMULAS, in_jax
from benchmarks.points import pieces, points
from benchmarks.result_page import ResultPage
from benchmarks.targets import mean
from benchmarks.unseen import MOST_DEVIATION, deviation
from benchmarks.unseen_models import MODELS, Unseen
from benchmarks.unseen_more import MORE
from slomodel.codegen.cuda.target import require_device
from slomodel.errors import ModelWarning, TargetLimit

_TEXT = "dim n\ndata w[n]\nvar x[n]\nminimize sum({} for i in range(n))"
ELEMENTWISE = {
    "log(1 + x²)": _TEXT.format("log(1 + x[i]^2)").replace("data w[n]\n", ""),
    "softplus": _TEXT.format("softplus(x[i])").replace("data w[n]\n", ""),
    "weighted": _TEXT.format("w[i] * sqrt(1 + x[i]^2)"),
}
CALLS = 21


@dataclass(frozen=True, slots=True)
class Row:
    """One model at one size: microseconds per call, a peer, and `share` of the bandwidth."""

    model: str
    unknowns: int
    microseconds: float
    jax_microseconds: float | None = None
    share: float | None = None


def microseconds(call: Callable[[], object]) -> float:
    """The median time of a call; the device is idle before and after each."""
    import cupy

    times = []
    for _ in range(CALLS + 2):
        cupy.cuda.runtime.deviceSynchronize()
        start = time.perf_counter()
        call()
        cupy.cuda.runtime.deviceSynchronize()
        times.append(time.perf_counter() - start)
    return 1e6 * float(np.median(times[2:]))


def copy_bandwidth(elements: int) -> float:
    """Bytes per second, read and written, of a copy of this many doubles."""
    import cupy

    source, target = (cupy.asarray(np.zeros(elements)) for _ in range(2))
    return 16.0 * elements / (1e-6 * microseconds(lambda: cupy.copyto(target, source)))


def elementwise(names: Sequence[str], sizes: Sequence[int]) -> list[Row]:
    """Models that read and write each element once; the first row is a copy."""
    import cupy

    chosen = [name for name in ELEMENTWISE if not names or name in names]
    if not chosen:
        return []
    bandwidth = copy_bandwidth(sizes[-1])
    rows = [Row("copy", sizes[-1], 1e6 * 16.0 * sizes[-1] / bandwidth, share=1.0)]
    for name in chosen:
        text = ELEMENTWISE[name]
        for n in sizes:
            data = {"w": np.ones(n)} if "data w" in text else {}
            model = slomodel.compile(text, dims={"n": n}, data=data, backend="cupy")
            x = cupy.asarray(np.random.default_rng(0).standard_normal(n))
            out = cupy.asarray(np.zeros(n))
            run = model._kernels.function("value_and_gradient")
            spent = microseconds(lambda run=run, x=x, out=out: run(x, out))
            moved = 8.0 * n * (2 + len(data))
            rows.append(Row(name, n, spent, share=moved / (1e-6 * spent) / bandwidth))
    return rows


def of_models(names: Sequence[str], quick: bool) -> list[Row]:
    """The models of models/ against JAX's, at one point on the device."""
    import cupy

    rows = []
    for case in (case for name in names or [None] for case in cases(quick, name)):
        options = {"data": case.data, "dims": case.dims}
        model = slomodel.compile(case.source, backend="cupy", **options)
        x = points(model)[0]
        point, out = cupy.asarray(x), cupy.asarray(np.zeros(model.n))
        run = model._kernels.function("value_and_gradient")
        spent = microseconds(lambda run=run, point=point, out=out: run(point, out))
        rows.append(Row(f"{case.model} {case.size}".strip(), model.n, spent, _jax(case, model, x)))
    return rows


def _jax(case: Case, model: slomodel.Model, x: Array) -> float | None:
    """JAX's time for the same, with variables and data on the device; None without JAX."""
    evaluate = in_jax(case.model) if case.model in FORMULAS else None
    if evaluate is None:
        return None
    import jax

    if jax.default_backend() != "gpu":
        return None
    variables = {name: jax.device_put(part) for name, part in pieces(model, x).items()}
    data = {name: jax.device_put(np.asarray(array)) for name, array in case.known.items()}
    return microseconds(lambda: float(evaluate(variables, data)[0]))


def of_unseen_models(names: Sequence[str]) -> list[Row]:
    """The unseen models against JAX's, at one point on the host; 0 µs for those that are refused.

    Raises ValueError if JAX finds another value or gradient.
    """
    rows = []
    for one in (*MODELS, *MORE):
        if names and one.name not in names:
            continue
        rng = np.random.default_rng(0)
        data = one.data(rng)
        model = slomodel.compile(one.source, data=data, backend="numpy")
        x = one.point(model.n, rng)
        try:
            model = slomodel.compile(one.source, data=data, backend="cupy")
            value, gradient = model.value_and_gradient(x)
        except TargetLimit:
            rows.append(Row(one.name, model.n, 0.0))
            continue
        spent = microseconds(lambda model=model, x=x: model.value_and_gradient(x))
        rows.append(Row(one.name, model.n, spent, _unseen_jax(one, model, x, value, gradient)))
        print(one.name, f"{spent:.1f} us", file=sys.stderr, flush=True)
    return rows


def _unseen_jax(
    one: Unseen, model: slomodel.Model, x: Array, value: float, gradient: Array
) -> float | None:
    """JAX's time for an unseen model, whose results are compared; None without JAX."""
    try:
        import jax
    except ImportError:
        return None
    if jax.default_backend() != "gpu":
        return None
    from benchmarks import unseen_jax

    peer = unseen_jax.compiled(
        one.name, one.data(np.random.default_rng(0)), list(model.variables.values())
    )
    other, other_gradient = peer.value_and_gradient(x)
    sense = -1.0 if "maximize" in one.source else 1.0
    apart = max(
        abs(value - sense * other) / abs(value), deviation(gradient, sense * other_gradient)
    )
    if not apart <= MOST_DEVIATION:
        raise ValueError(f"JAX differs from {one.name} by {apart:.1e}")
    return microseconds(lambda: peer.value_and_gradient(x))


def rows_here(names: Sequence[str], quick: bool) -> list[Row]:
    sizes = (10_000,) if quick else (10**6, 10**7, 10**8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return [*elementwise(names, sizes), *of_models(names, quick), *of_unseen_models(names)]


def page(rows: Sequence[Row]) -> str:
    """The card, a table in Markdown, and the mean of the ratios to JAX."""
    heads = ("model", "unknowns", "µs", "JAX µs", "JAX / slomodel", "of copy bandwidth")
    cells = []
    for row in rows:
        jax = row.jax_microseconds
        told = (f"{jax:.1f}", f"{jax / row.microseconds:.2f}") if jax else ("-", "-")
        share = f"{100 * row.share:.0f} %" if row.share else "-"
        own = f"{row.microseconds:.1f}" if row.microseconds else "refused"
        cells.append((row.model, str(row.unknowns), own, *told, share))
    ratios = [
        row.jax_microseconds / row.microseconds
        for row in rows
        if row.jax_microseconds and row.microseconds
    ]
    means = (
        [
            f"JAX takes {mean(ratios):.2f} times as long in the geometric mean of {len(ratios)}"
            f" models, and at least {min(ratios):.2f} times.\n"
        ]
        if ratios
        else []
    )
    return "\n".join(
        [f"On one {_card()}, in double precision.\n", *means, in_columns([heads, *cells], True)]
    )


def _card() -> str:
    import cupy

    name = cupy.cuda.runtime.getDeviceProperties(0)["name"]
    return name.decode() if isinstance(name, bytes) else str(name)


def main(arguments: list[str] | None = None) -> int:
    """Print the table, or write it."""
    # JAX would take most of the device's memory for itself.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    try:
        require_device()
    except TargetLimit as error:
        sys.exit(str(error))
    about = "Time value and gradient on a CUDA device."
    ResultPage(__file__, "CUDA devices", about, Row, rows_here, page).run(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
