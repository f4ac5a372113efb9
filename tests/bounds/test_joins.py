"""Stable forms that choose between formulas for one function: smooth, with bounds at the join."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import slomodel
from slomodel.errors import NonsmoothWarning
from slomodel.functions import where
from slomodel.functions.compound import stop_gradient
from slomodel.ir.expr import is_map
from slomodel.ir.walk import postorder

JOINED = [
    ("log(normcdf(x + 1) - normcdf(x))", 0.0),
    ("log(normcdf(x + 1) - normcdf(x))", -0.5),
    ("log(x / (x + 2))", 2.0),
    ("x / sinh(x)", 1.0),
    ("log(1 - exp(-exp(x)))", -15.0),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("text", "centre"), JOINED)
def test_bounds_across_the_join(text: str, centre: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", NonsmoothWarning)
        model = slomodel.compile(f"var x minimize {text}", backend="numpy")
    assert "derivatives of every order" in model.explain()
    found, seen = model.bounds([centre], 0.1), model.sample_bounds([centre], 0.1)
    assert seen.L1 <= found.L1 <= 1.05 * seen.L1
    assert seen.L2 <= found.L2 < np.inf


def test_bounds_in_tails_where_the_plain_formula_has_none() -> None:
    """Phi(41) - Phi(40) is 0 in doubles; its logarithm is about -804.6."""
    model = slomodel.compile("var x minimize log(normcdf(x + 1) - normcdf(x))", backend="numpy")
    found, seen = model.bounds([40.0], 0.1), model.sample_bounds([40.0], 0.1)
    assert seen.L1 <= found.L1 <= 1.05 * seen.L1


def test_shares_of_equal_weights() -> None:
    """log(w_i/(w_i + w_j)) chooses at w_i = w_j, the usual start."""
    text = """dim n, m
        data a[m] in n, b[m] in n
        var w[n] init 1
        minimize sumsq(w) - sum(log(w[a[k]] / (w[a[k]] + w[b[k]])) for k in m)"""
    model = slomodel.compile(text, data={"a": [0, 1, 2, 0], "b": [1, 2, 0, 2]}, dims={"n": 3})
    found, seen = model.bounds(np.ones(3), 0.1), model.sample_bounds(np.ones(3), 0.1)
    assert seen.L1 <= found.L1 <= 1.1 * seen.L1
    along = model.ray_bounds(np.ones(3), np.array([1.0, -1.0, 0.0]), 0.1)
    assert along.lower <= along.curvature <= along.upper < 1.5 * along.curvature


def test_choices_that_sets_of_variables_bring_in() -> None:
    """The logarithm of 1 + z²/(s²ν) is scaled against overflow once s and ν are exponentials."""
    term, data = "sum(log1p(z^2 / s^2 / nu))", {"z": [0.3, -2.0, 1.0]}
    text = f"dim n data z[n] var s > 0, nu > 1 minimize {term}"
    model = slomodel.compile(text, data=data, backend="numpy").unconstrained
    nodes = postorder(model._part(np.array([0.0, 1.4])).objective)
    assert not any(is_map(node, where, stop_gradient) for node in nodes)


@pytest.mark.parametrize(
    "text", ["where(x > 0, log(x / (x + 2)), x)", "abs(x) * log(1 - exp(-exp(x)))"]
)
def test_kinks_that_are_written_remain(text: str) -> None:
    with pytest.warns(NonsmoothWarning):
        model = slomodel.compile(f"var x minimize {text}", backend="numpy")
    assert np.inf == model.bounds([0.0], 0.1, effort="quick").L1
