"""Conditions joined by `and` and `or` guard the indices in those after them."""

from collections.abc import Callable

import numpy as np
import pytest

import slomodel
from slomodel.ir.expr import Listing
from slomodel.ir.walk import postorder

Y = np.array([1.0, -2.0, 3.0, 4.0, -1.0])
BEFORE = np.array([-1, 0, 1, 4, 2])
N = len(Y)

GUARDED: dict[str, Callable[[int], float]] = {
    "where(i > 0 and y[i-1] > 0, y[i], 1)": lambda i: Y[i] if i > 0 and Y[i - 1] > 0 else 1,
    "where(i == n - 1 or y[i+1] > 0, y[i], 1)": lambda i: Y[i] if i == 4 or Y[i + 1] > 0 else 1,
    "where(p[i] >= 0 and y[p[i]] > 0, y[i], 1)": lambda i: Y[i] if i and Y[BEFORE[i]] > 0 else 1,
    "y[i] * y[i-1] for i in n if i > 0 and y[i-1] > 0 and y[i] > 0": lambda i: (
        Y[i] * Y[i - 1] if i > 0 and Y[i - 1] > 0 and Y[i] > 0 else 0
    ),
    "y[i] for i in n if i == n - 1 or y[i+1] > 0": lambda i: Y[i] if i == 4 or Y[i + 1] > 0 else 0,
}


@pytest.mark.parametrize("terms", GUARDED)
def test_a_condition_guards_those_after_it(terms: str) -> None:
    terms_of = terms if " for " in terms else f"{terms} for i in n"
    text = f"dim n data y[n], p[n] whole var a minimize a * sum({terms_of}) + 0 * sum(p)"
    model = slomodel.compile(text, data={"y": Y, "p": BEFORE}, backend="numpy")
    assert model.value([1.0]) == pytest.approx(sum(map(GUARDED[terms], range(N))), rel=1e-15)


def test_a_condition_does_not_guard_those_before_it() -> None:
    text = "dim n data y[n] var a minimize sum(a * where(y[i-1] > 0 and i > 0, 1, 2) for i in n)"
    with pytest.raises(slomodel.SlomodelError, match="E210"):
        slomodel.compile(text)


WINDOWS = {
    "w[l] * y[i-l] for l in range(3) if l <= i": lambda i, w: sum(
        w[k] * Y[i - k] for k in range(3) if k <= i
    ),
    "w[l] * y[i+l] for l in range(3) if i + l < n": lambda i, w: sum(
        w[k] * Y[i + k] for k in range(3) if i + k < N
    ),
}


@pytest.mark.parametrize("window", WINDOWS)
def test_windows_cut_at_one_end_are_shifted_arrays(window: str) -> None:
    text = f"dim n data y[n] var w[3] minimize sum(sum({window})^2 for i in n)"
    model = slomodel.compile(text, data={"y": Y}, backend="numpy")
    w = np.array([0.5, -0.3, 2.0])
    wanted = sum(WINDOWS[window](i, w) ** 2 for i in range(N))
    assert model.value(w) == pytest.approx(wanted, rel=1e-15)
    assert not any(isinstance(one, Listing) for one in postorder(model._problem.objective))
