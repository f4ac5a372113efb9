"""Targets of the benchmark against other libraries, and whether they are met."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

Ratios = Mapping[tuple[str, str], Mapping[str, float]]
"""Ratios peer / slomodel by model and size: above 1 slomodel is faster."""

BY_HAND, LAYERS = "NumPy by hand", "NumPy by layers"
LONG = {("student_t", "1000000"): 2.4, ("softplus_net", ""): 1.8}
"""Rows with a target of their own against the best peer."""
REWRITTEN = {"linear_autoencoder": 60.0, "deep_linear": 60.0, "sym_tensor": 10.0}
"""Targets against the best peer that follows the formula; hand-written code reorders products."""
TINY = ("rosenbrock", "2")
LEAST_TINY = 0.35


def mean(ratios: Iterable[float]) -> float:
    """The geometric mean."""
    return float(np.exp(np.mean(np.log(list(ratios)))))


def told(ratios: Ratios) -> list[str]:
    """A line for each target: the measured value, and whether it meets the target."""
    best = {row: min(found.values()) for row, found in ratios.items()}
    usual = [ratio for row, ratio in best.items() if row != TINY]
    jax = [found["jax"] for found in ratios.values() if "jax" in found]
    lines = []
    if jax:
        lines.append(_line("JAX jit, each", min(jax), 1.0))
        lines.append(_line("JAX jit, geometric mean", mean(jax), 10.0))
    lines.append(_line("best peer of each row, geometric mean", mean(usual), 4.0))
    lines.append(_line("best peer, worst row but Rosenbrock of 2", min(usual), 0.9))
    if TINY in best:
        lines.append(_line("best peer, Rosenbrock of 2", best[TINY], LEAST_TINY))
    for (model, size), found in ratios.items():
        if model in REWRITTEN:
            plain = {name: ratio for name, ratio in found.items() if name != BY_HAND}
            # The tensor has a single version in NumPy, which is already optimised.
            plain = found if model == "sym_tensor" or not plain else plain
            lines.append(_line(f"best peer, {model}", min(plain.values()), REWRITTEN[model]))
        if (model, size) in LONG:
            lines.append(_line(f"best peer, {model} {size}", best[model, size], LONG[model, size]))
    return lines


def _line(what: str, found: float, least: float) -> str:
    return f"{'met   ' if found >= least else 'missed'} {what}: {found:.2f}, target {least}"
