"""Bounds that are finite but useless say so, and name the sub-expression that makes them so."""

from __future__ import annotations

import re

import numpy as np
import pytest
from bounds.settings import setting

import slomodel
from slomodel.bounds import pipeline

# The inner expressions are 0 for all x, which intervals do not see.
PRODUCT = "x[0] * x[1] * x[2]"
CANCELLING = f"sum(x) * cos({PRODUCT})^2 + sum(x) * sin({PRODUCT})^2 - sum(x)"
USELESS = {
    "exponential": (f"let a = {CANCELLING}\nminimize exp(10 * a) + sumsq(x)", CANCELLING),
    "hyperbolic": (f"let a = {CANCELLING}\nminimize cosh(10 * a) + sumsq(x)", "cosh(10 * a)"),
    "divisor": (f"let d = 1e-9 + ({CANCELLING})^2\nminimize 1e-9 / d + sumsq(x)", "in line 2"),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", USELESS)
def test_the_reason_names_the_sub_expression(name: str) -> None:
    text, culprit = USELESS[name]
    model = slomodel.compile(f"dim n var x[n]\n{text}", dims={"n": 4})
    found = model.bounds(np.full(4, 0.3), 1.0, effort="quick")
    curvature = 2.0  # of sumsq(x), as the other term is constant
    assert 1e12 * curvature < found.L1 < np.inf
    told = re.search(r"useless: (\S+) times the curvature seen in the ball", found.reason)
    assert told is not None
    assert float(told[1]) == pytest.approx(found.L1 / curvature, rel=0.1)
    assert culprit in found.reason
    assert found.reason in found.explain()
    assert found.gradient.reason == found.reason


USEFUL = {
    "large and true": ("var x minimize exp(x)", [0.0], 50.0),
    "flat at the centre": ("var x minimize x^4", [1e-9], 1.0),
    "polynomial": ("var x[3] minimize sumsq(x)^3", [1e-3, 0.0, 0.0], 1e3),
    "linear": ("var x[3] minimize sum(x)", [1.0, 2.0, 3.0], 1e6),
    "tiny": ("var x[3] minimize 1e-200 * sumsq(x)", [1.0, 2.0, 3.0], 1.0),
    "point": ("var x[3] minimize exp(sumsq(x))", [1.0, 2.0, 3.0], 0.0),
}


@pytest.mark.parametrize("name", USEFUL)
def test_a_bound_that_is_nearly_attained_is_not_useless(name: str) -> None:
    text, centre, radius = USEFUL[name]
    found = slomodel.compile(text).bounds(np.array(centre), radius)
    assert np.inf > found.L1
    assert found.reason == ""
    assert "useless" not in found.explain()


def test_a_large_bound_is_explained_by_its_sub_expression() -> None:
    model = slomodel.compile(
        "var x[3]\nminimize exp(9*tanh(x[0]*x[1]*x[2])) + sumsq(x)", backend="numpy"
    )
    text = model.bounds(np.zeros(3), 1.5, effort="quick").explain()
    assert "the bound is large" in text or "the bound is useless" in text
    assert "`exp(9*tanh(x[0]*x[1]*x[2]))`" in text
    small = slomodel.compile("var x\nminimize cosh(x)", backend="numpy").bounds([0.0], 1.0)
    assert "the bound is" not in small.explain()


def test_a_bound_is_far_from_the_curvature_at_the_centre_by_a_factor() -> None:
    """Where all entries of H(c) are too expensive, products with it tell whether work may pay."""
    one = setting("var x[3] minimize sum(exp(x)) + x[0]^4", [0.0, 0.0, 1.0])
    assert not pipeline._is_far(one, 0.1, 8.0)
    assert pipeline._is_far(one, 0.1, 1e4)
    assert not pipeline._is_far(one, 0.0, 1e4)
