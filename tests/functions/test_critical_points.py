"""Stated critical points are accurate to the last places: ranges are evaluated there."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import sympy as sp

from slomodel.bounds.arithmetic.interval import interval
from slomodel.bounds.ranges.derivatives import derivative_range
from slomodel.functions import TABLE
from slomodel.functions.elementary import sech_asinh
from slomodel.ir.function import ScalarFunction

STATED = [f for f in (*TABLE.values(), sech_asinh) if f.monotonicity is not None and f.arity == 1]
CASES = [
    pytest.param(function, k, at, id=f"{function.name}-{k}-{at:.3g}")
    for function in STATED
    if function.monotonicity is not None
    for k, points in enumerate(function.monotonicity.critical_points)
    for at in points
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("function", "k", "at"), CASES)
def test_the_next_derivative_changes_sign_there(
    function: ScalarFunction, k: int, at: float
) -> None:
    x = sp.Symbol("x", real=True)
    slope = sp.lambdify(x, sp.diff(function.definition(x), x, k + 1), "mpmath")
    with mpmath.workdps(400):  # terms cancel like 1/x^8 near 0
        step = mpmath.mpf("2e-15") * abs(mpmath.mpf(at)) or mpmath.mpf("1e-30")
        before, after = (mpmath.re(slope(mpmath.mpf(at) + s * step)) for s in (-1, 1))
    assert before * after < 0


@pytest.mark.parametrize("at", [0.361515, 1.693902])
def test_the_fourth_derivative_of_asinh_at_its_critical_points(at: float) -> None:
    """A critical point off by 1e-5 made it too small there by 1e-10 of it."""
    found = derivative_range(
        TABLE["asinh"], 4, interval(np.array([at - 1e-3]), np.array([at + 1e-3]))
    )
    with mpmath.workdps(60):
        roots = [mpmath.sqrt((6 + sign * mpmath.sqrt(30)) / 4) for sign in (-1, 1)]
        root = min(roots, key=lambda one: abs(one - at))
        x = sp.Symbol("x")
        value = sp.lambdify(x, sp.diff(sp.asinh(x), x, 4), "mpmath")(root)
        assert mpmath.mpf(float(found.lo[0])) <= value <= mpmath.mpf(float(found.hi[0]))
