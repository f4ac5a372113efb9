"""Every record states the worst error on each target: no point shows a larger one."""

from __future__ import annotations

from functools import lru_cache

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from slomodel.codegen.kernels import TARGETS, Compiled, Derivatives, Kernels
from slomodel.functions import TABLE, mul
from slomodel.ir import build
from slomodel.ir.dims import named
from slomodel.ir.function import ScalarFunction
from tests.functions.exact_values import (
    FEW_DIGITS,
    columns,
    definition,
    jumps,
    operand_types,
    points,
)

MEASURED = [f for f in TABLE.values() if f.result == "real" and "bool" not in operand_types(f)]
TARGET = pytest.mark.parametrize("target", ["numpy", "numexpr", "c"])
EVERY = pytest.mark.parametrize("function", MEASURED, ids=str)
Rows = NDArray[np.float64]


def operands(function: ScalarFunction, count: int) -> Rows:
    """Points (m, arity) of the domain: over plain magnitudes, over the whole range, and at ends."""
    rng = np.random.default_rng(count)
    shape = (count // 10, function.arity)
    wide = 10.0 ** rng.uniform(-320.0, 308.0, (count // 100, function.arity))
    plain = 10.0 ** rng.uniform(-8.0, 2.9, (4 * shape[0], function.arity))
    near = rng.uniform(0.0, 40.0, (5 * shape[0], function.arity))
    rows = np.concatenate([wide, plain, near])
    rows *= rng.choice([-1.0, 1.0], rows.shape)
    rows = np.concatenate([rows, points(function)])
    for k, (low, high) in enumerate(function.domain):
        rows[:, k] = np.where(rows[:, k] < low, low + abs(rows[:, k]), rows[:, k])
        rows = rows[(low <= rows[:, k]) & (rows[:, k] <= high)]
    zeros = (rows == 0.0).any(axis=1)
    return rows[
        [not (zero and jumps(function, tuple(row))) for zero, row in zip(zeros, rows, strict=True)]
    ]


def exact(function: ScalarFunction, rows: Rows) -> Rows:
    """The definition's values (m,), NaN where it has none.

    log(1 + exp(-700)) takes 300 digits before its first one, log(cosh(1e-300)) twice that.
    """
    value = definition(function)
    found = np.full(len(rows), np.nan)
    sizes = np.abs(np.where(rows == 0.0, 1.0, rows))
    extreme = ((sizes < 1e-9) | (sizes > 60.0)).any(axis=1)
    plain = FEW_DIGITS.get(function, 60)
    for digits, chosen in ((plain, ~extreme), (700, extreme)):
        with mpmath.workdps(digits):
            for k in np.flatnonzero(chosen):
                try:
                    one = mpmath.mpmathify(value(*map(mpmath.mpf, rows[k])))
                except (ZeroDivisionError, ValueError, OverflowError):
                    continue
                if isinstance(one, mpmath.mpf):
                    found[k] = float(one)
    return found


def on_target(function: ScalarFunction, rows: Rows, target: str) -> Rows:
    """The values (m,) that the generated code of a target computes: of sum(p * f(y)) the gradient
    by p.
    """
    n = named("n")
    p = build.variable("p", (n,))
    own = [build.variable(f"y{k}", (n,)) for k in range(function.arity)]
    objective = build.sum_over(mul(p, function(*own)), (0,))
    derivatives = Derivatives(objective, [p, *own])
    compiled = Compiled("own", derivatives, [], {"n": len(rows)}, TARGETS[target], "float64")
    point = np.concatenate([np.ones(len(rows)), *rows.T])
    out = np.zeros_like(point)
    with np.errstate(all="ignore"):
        Kernels(compiled, {}).function("value_and_gradient")(point, out)
    return out[: len(rows)]


@lru_cache(1)
def sample(function: ScalarFunction, count: int) -> tuple[Rows, Rows]:
    """Points and exact values; fewer where these take long."""
    rows = operands(function, count // 50 if function in FEW_DIGITS else count)
    return rows, exact(function, rows)


def worst(function: ScalarFunction, target: str, count: int) -> tuple[float, tuple[float, ...]]:
    """The largest error in units of the last place, and where."""
    rows, want = sample(function, count)
    got = on_target(function, rows, target)
    scale = 0.0
    if function.error_scale is not None:
        scale = function.error_scale(*columns(function, [tuple(row) for row in rows]))
    with np.errstate(all="ignore"):
        units = np.abs(got - want) / np.spacing(np.maximum(np.abs(want), scale))
    units = np.where((got == want) | np.isnan(want), 0.0, units)
    # Overflow may come a rounding early or late.
    edge = np.minimum(np.abs(got), np.abs(want)) > np.finfo(float).max * (1.0 - 1e-14)
    units = np.where(edge, 0.0, np.where(np.isnan(units), np.inf, units))
    place = int(np.argmax(units))
    return float(units[place]), tuple(rows[place])


@pytest.mark.sampled(36)
@TARGET
@EVERY
def test_the_worst_error_is_the_stated_one(function: ScalarFunction, target: str) -> None:
    error, place = worst(function, target, 1_000)
    assert error <= function.worst_ulps(target), place


@pytest.mark.slow
@TARGET
@EVERY
def test_the_worst_error_of_a_million_points(function: ScalarFunction, target: str) -> None:
    error, place = worst(function, target, 1_000_000)
    assert error <= function.worst_ulps(target), place
