"""A constant added to the objective changes neither the steps of `auto` nor how near it ends."""

import numpy as np
import pytest
from marks import only
from numpy.testing import assert_allclose

import slomodel

T = np.linspace(0.0, 4.0, 30)
PROBLEMS = {
    "squares": (
        "dim n\ndata t[n], y[n]\nvar a init 1, k init 0.2, c\nminimize {0} + sum("
        "(a*exp(-k*t[i]) + c - y[i])^2 for i in n)",
        {"t": T, "y": 3.0 * np.exp(-T) + 1.0 + 0.1 * np.sin(9.0 * T)},
        [3.0, 1.0, 1.0],
    ),
    "likelihood": (
        "dim n\ndata t[n], y[n]\nvar b0, b1\nminimize {0} + sum("
        "exp(b0 + b1*t[i]) - y[i]*(b0 + b1*t[i]) for i in n)",
        {"t": T, "y": np.round(2.0 * np.exp(0.5 * T))},
        [np.log(2.0), 0.5],
    ),
    "chain": (
        "var x[30] init 0.5\nminimize {0} + sum("
        "(x[i] - 1)^2 + 9*(x[i+1] - x[i]^2)^2 for i in range(29))",
        {},
        np.ones(30),
    ),
}


@pytest.mark.parametrize("factor", only(1, (-1.0, 1e4, -1e6)))
@pytest.mark.parametrize("name", PROBLEMS)
def test_an_added_constant_changes_nothing(name: str, factor: float) -> None:
    text, data, near = PROBLEMS[name]
    plain = slomodel.compile(text.format(0.0), data=data, backend="numpy")
    constant = factor * plain.value(plain.x0())
    found = plain.solve()
    shifted = slomodel.compile(text.format(constant), data=data, backend="numpy").solve()
    assert shifted.success, shifted.message
    # Half the digits of x at worst, where the constant hides changes of f.
    assert_allclose(shifted.x, found.x, rtol=1e-4)
    assert_allclose(found.x, near, rtol=0.2)
    steps = min(8, found.nit, shifted.nit)
    rounding = 1e-12 * abs(constant)
    assert_allclose(
        shifted.history.fun[:steps] - constant, found.history.fun[:steps], atol=rounding
    )
