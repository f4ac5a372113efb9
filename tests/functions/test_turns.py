"""Where derivatives are said to turn they do, to the last places: ranges are read off there."""

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

TURNING = [f for f in (*TABLE.values(), sech_asinh) if f.monotony is not None and f.arity == 1]
CASES = [
    pytest.param(function, k, turn, id=f"{function.name}-{k}-{turn:.3g}")
    for function in TURNING
    if function.monotony is not None
    for k, turns in enumerate(function.monotony.turns)
    for turn in turns
]


@pytest.mark.parametrize(("function", "k", "turn"), CASES)
def test_the_next_derivative_changes_sign_there(
    function: ScalarFunction, k: int, turn: float
) -> None:
    x = sp.Symbol("x", real=True)
    slope = sp.lambdify(x, sp.diff(function.definition(x), x, k + 1), "mpmath")
    with mpmath.workdps(60):
        step = mpmath.mpf("2e-15") * abs(mpmath.mpf(turn)) or mpmath.mpf("1e-30")
        before, after = (mpmath.re(slope(mpmath.mpf(turn) + s * step)) for s in (-1, 1))
    assert before * after < 0


@pytest.mark.parametrize("turn", [0.361515, 1.693902])
def test_the_fourth_derivative_of_asinh_at_its_turns(turn: float) -> None:
    """A turn that was off by 1e-5 made it too small there by 1e-10 of it."""
    found = derivative_range(
        TABLE["asinh"], 4, interval(np.array([turn - 1e-3]), np.array([turn + 1e-3]))
    )
    with mpmath.workdps(60):
        roots = [mpmath.sqrt((6 + sign * mpmath.sqrt(30)) / 4) for sign in (-1, 1)]
        root = min(roots, key=lambda one: abs(one - turn))
        x = sp.Symbol("x")
        value = sp.lambdify(x, sp.diff(sp.asinh(x), x, 4), "mpmath")(root)
        assert mpmath.mpf(float(found.lo[0])) <= value <= mpmath.mpf(float(found.hi[0]))
