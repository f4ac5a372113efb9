"""The likelihoods of the benchmark have the values and gradients of SciPy by hand."""

import numpy as np
import pytest

import slomodel
from benchmarks.linear_algebra import TOLERANCE, Timed, differs, likelihoods, table

LIKELIHOODS = likelihoods()


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_value_and_gradient_are_those_of_scipy(name: str) -> None:
    own = LIKELIHOODS[name]
    model = slomodel.compile(own.text, data=own.data, backend="numpy")
    x = own.start + 0.01 * np.random.default_rng(0).normal(size=model.n)
    value, slope = own.by_hand(own.data)(x)
    assert differs(model.value_and_gradient(x), (value, slope)) <= TOLERANCE
    assert differs((value, 1.0001 * slope), (value, slope)) > TOLERANCE


def test_the_table_leaves_out_peers_that_are_not_installed() -> None:
    assert table([Timed("one", 3, 12.0, {"SciPy": 2.0})]).splitlines()[-1].endswith("2.00 |   - |")
