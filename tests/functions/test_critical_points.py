"""Stated critical points are accurate to the last places: ranges are evaluated there."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import sympy as sp

from slomodel.bounds.arithmetic.interval import interval
from slomodel.bounds.ranges.derivatives import derivative_range
from slomodel.functions import TABLE, symbols
from slomodel.functions.elementary import sech_asinh
from slomodel.ir.function import ScalarFunction, every_function

STATED = [f for f in (*TABLE.values(), sech_asinh) if f.monotonicity is not None and f.arity == 1]
CASES = [
    pytest.param(function, k, at, id=f"{function.name}-{k}-{at:.3g}")
    for function in STATED
    if function.monotonicity is not None
    for k, points in enumerate(function.monotonicity.critical_points)
    for at in points
]


@pytest.mark.sampled(12)
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


DECAYING = [one for one in every_function() if one.decay is not None]


@pytest.mark.parametrize("function", DECAYING, ids=str)
def test_decay_of_derivatives(function: ScalarFunction) -> None:
    """|φ^(k+1)| <= rate |φ^(k)| and |φ^(4)| <= fourth |φ^(k)|, nearly equal somewhere."""
    own = function.decay
    assert own is not None
    (x,) = symbols(function)
    orders = (own.order, own.order + 1, 4)
    derivatives = [
        sp.lambdify(x, sp.diff(function.definition(x), x, order), "mpmath") for order in orders
    ]
    points = np.concatenate([np.linspace(-9.0, 9.0, 361), np.linspace(-60.0, 60.0, 25)])
    with mpmath.workdps(120):
        found = [[abs(one(mpmath.mpf(at))) for one in derivatives] for at in points.tolist()]
        rate = max(above / below for below, above, _ in found)
        fourth = max(last / below for below, _, last in found)
    assert 0.99 * own.rate <= rate <= own.rate
    assert 0.99 * own.fourth <= fourth <= own.fourth
