"""Value and gradient on a CUDA device: fraction of its bandwidth, and JAX on the same card.

    python benchmarks/gpu.py            every model, elementwise ones of 10⁶ to 10⁸ elements
    python benchmarks/gpu.py --quick    small sizes
    python benchmarks/gpu.py --json

Points and results are on the device, in double precision; times are medians of calls that end with
the value on the host. Compilation is not timed. Without a device it prints a message and ends.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

import slomodel
from benchmarks.by_hand import Array
from benchmarks.cases import Case, cases
from benchmarks.peers import FORMULAS, in_jax
from benchmarks.points import pieces, points
from slomodel.codegen.cuda.target import require_device
from slomodel.errors import TargetLimit

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


def elementwise(sizes: Sequence[int], bandwidth: float) -> list[Row]:
    """Models that read and write each element once."""
    import cupy

    rows = []
    for name, text in ELEMENTWISE.items():
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


def of_models(quick: bool) -> list[Row]:
    """Every model of models/ against JAX's, at one point on the device."""
    import cupy

    rows = []
    for case in cases(quick=quick):
        options = {"data": case.data, "dims": case.dims}
        model = slomodel.compile(case.source, backend="cupy", **options)
        x = points(model)[0]
        point, out = cupy.asarray(x), cupy.asarray(np.zeros(model.n))
        run = model._kernels.function("value_and_gradient")
        spent = microseconds(lambda run=run, point=point, out=out: run(point, out))
        rows.append(Row(f"{case.model} {case.size}", model.n, spent, _jax(case, model, x)))
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


def report(bandwidth: float, rows: Sequence[Row]) -> str:
    """A table in Markdown, headed by card and date."""
    lines = [
        f"{_card()}, {datetime.now(UTC).date().isoformat()}, "
        f"copy {bandwidth / 1e9:.0f} GB/s, double precision",
        "",
        "| model | unknowns | µs | JAX µs | JAX / slomodel | of copy bandwidth |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        jax = row.jax_microseconds
        told = f"{jax:.1f} | {jax / row.microseconds:.2f}" if jax else "– | –"
        share = f"{100 * row.share:.0f} %" if row.share else "–"
        lines.append(
            f"| {row.model} | {row.unknowns} | {row.microseconds:.1f} | {told} | {share} |"
        )
    return "\n".join(lines)


def _card() -> str:
    import cupy

    name = cupy.cuda.runtime.getDeviceProperties(0)["name"]
    return name.decode() if isinstance(name, bytes) else str(name)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--json", action="store_true", help="the rows as JSON")
    options = parser.parse_args()
    # JAX would take most of the device's memory for itself.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    try:
        require_device()
    except TargetLimit as error:
        sys.exit(str(error))
    quick = options.quick
    bandwidth = copy_bandwidth(10**6 if quick else 10**8)
    sizes = (10_000,) if quick else (10**6, 10**7, 10**8)
    rows = [*elementwise(sizes, bandwidth), *of_models(quick)]
    if options.json:
        told = {"card": _card(), "bandwidth": bandwidth, "rows": [asdict(row) for row in rows]}
        print(json.dumps(told))
    else:
        print(report(bandwidth, rows))


if __name__ == "__main__":
    main()
