"""Quality of the choices of functions/cost.py: timed as chosen, all fused, and not fused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from unittest.mock import patch

import numpy as np

import slomodel
from benchmarks.by_hand import Array, Arrays
from benchmarks.cases import cases
from benchmarks.measure import Call, seconds

SIZES = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
GOOD = 1.3
CHAINS = {
    "two plain operations": "a[i] * x[i] + c[i]",
    "polynomial": "(a[i] * x[i] + c[i]) * x[i] - a[i] * (c[i] + x[i])^2",
    "quotient": "x[i]^2 / (1 + x[i]^2) * a[i]",
    "exp, log": "log(1 + exp(a[i] * x[i] + c[i])) * a[i]",
    "tanh": "a[i] * tanh(c[i] * x[i] + a[i]) - c[i]",
    "sin, cos": "sin(a[i] * x[i]) * cos(c[i] * x[i]) + a[i] * x[i]",
    "roots": "sqrt(1 + (a[i] * x[i] - c[i])^2) - 1",
    "kinks": "max(a[i] * x[i], c[i]) + abs(x[i]) * a[i]",
    "cases": "where(x[i]^2 < 0.25, a[i] * x[i]^2, abs(x[i]) - c[i])",
}


def check(clock: Callable[[], float]) -> str:
    """A table, one line per case: microseconds of each variant, and chosen against best."""
    lines = [f"{'case':36s}{'chosen us':>11s}{'fused us':>11s}{'not us':>11s}{'chosen/best':>13s}"]
    good = []
    for name, models, xs in _compared():
        table = seconds(
            [_at(model, xs) for model in models],
            len(xs),
            3e-3,
            clock,
        )
        chosen, fused, apart = 1e6 * np.median(table, axis=0)
        to_best = max(np.median(table[:, 0] / table[:, k]) for k in (1, 2))
        good.append(to_best <= GOOD)
        lines.append(f"{name:36s}{chosen:11.1f}{fused:11.1f}{apart:11.1f}{to_best:13.2f}")
    lines.append(f"within {GOOD} of the better: {sum(good)} of {len(good)}")
    return "\n".join(lines)


def _at(model: slomodel.Model, xs: list[Array]) -> Call:
    return lambda k: model.value_and_gradient(xs[k])


def _compared() -> Iterator[tuple[str, list[slomodel.Model], list[Array]]]:
    """Each case as chosen, all fused, not fused, with points."""
    rng = np.random.default_rng(4)
    for name, term in CHAINS.items():
        source = f"dim n\ndata a[n], c[n]\nvar x[n]\nminimize sum({term} for i in n)"
        for n in SIZES:
            data = {key: rng.uniform(0.1, 0.9, n) for key in ("a", "c")}
            xs = [rng.uniform(0.1, 0.9, n) for _ in range(10)]
            yield f"{name}, {n}", _three(source, data, {}), xs
    for case in cases(quick=True):
        models = _three(case.source, case.data, case.dims)
        xs = [models[0].x0(k) + 0.01 * rng.standard_normal(models[0].n) for k in range(10)]
        yield f"{case.model} {case.size}", models, xs


def _three(source: object, data: Arrays, dims: Mapping[str, int]) -> list[slomodel.Model]:
    made = []
    for fused in (None, True, False):
        model = slomodel.compile(source, data=data, dims=dims, backend="numexpr")
        # Planned at the first call.
        if fused is None:
            model.value_and_gradient(model.x0())
        else:
            with patch("slomodel.codegen.schedule.worth_fusing", lambda *_, fused=fused: fused):
                model.value_and_gradient(model.x0())
        made.append(model)
    return made
