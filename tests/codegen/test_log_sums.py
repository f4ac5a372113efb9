"""Running log-sum-exps in C: block by block, with the accuracy and the limits of single steps."""

from __future__ import annotations

from functools import cache

import mpmath
import numpy as np
import pytest

import slomodel
from slomodel.codegen.native.log_sums import NAME

inf, nan = np.inf, np.nan


@cache
def _model(size: int, backend: str = "c") -> slomodel.Model:
    """The sum of the running log-sum-exps with weights 1, -1, 1, … that follow."""
    text = "dim n\ndata w[n]\nvar x[n]\nminimize sum(w .* cumlogsumexp(x))"
    weights = (-1.0) ** np.arange(size)
    return slomodel.compile(text, data={"w": weights}, backend=backend)


def _right(x: np.ndarray) -> tuple[float, float]:
    """The value, and the sum of the magnitudes of its terms."""
    with mpmath.workdps(60):
        total, value, scale = mpmath.mpf(0), mpmath.mpf(0), mpmath.mpf(0)
        for k, one in enumerate(x):
            total += mpmath.exp(mpmath.mpf(one))
            value += (-1) ** k * mpmath.log(total)
            scale += abs(mpmath.log(total))
        return float(value), float(scale)


rng = np.random.default_rng(7)
CASES = {
    "alike": rng.normal(size=600),
    "rising": np.linspace(-300.0, 300.0, 600),
    "falling": np.linspace(300.0, -300.0, 600),
    "out of range": rng.normal(size=600) * 2000,
    "sums that are nearly 1": np.r_[0.0, np.full(299, -50.0)],
    "one by one to 1": np.r_[np.log(0.5), np.log(0.25), np.full(58, np.log(2.0**-8))],
    "large": 1e6 + rng.normal(size=300),
    "a late giant": np.r_[rng.normal(size=255), 650.0, rng.normal(size=44)],
    "two": np.array([-1.0, 3.0]),
}


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_many_digits(name: str) -> None:
    x = CASES[name]
    value, scale = _right(x)
    assert abs(_model(x.size).value(x) - value) <= 4e-16 * scale


def test_the_blocks_are_those_of_one_function() -> None:
    assert f" {NAME}(w" in _model(600).source("c")


@pytest.mark.parametrize(
    "x",
    [
        [-inf, -inf, 0.0, 1.0],
        [0.0, -inf, 1.0, -inf],
        [-1e308, 1e308, 0.0, 1.0],
        [0.0, 700.0, -700.0, 710.0],
    ],
)
def test_infinities_are_those_of_numpy(x: list[float]) -> None:
    own, other = (_model(4, backend) for backend in ("c", "numpy"))
    point = np.array(x)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(own.value(point), other.value(point), rtol=1e-14)


def test_what_is_not_a_number_stays_so() -> None:
    for place in (0, 1, 299, 599):
        x = CASES["alike"].copy()
        x[place] = nan
        assert np.isnan(_model(600).value(x))


def test_columns_go_by_blocks_too() -> None:
    text = """dim n, K
    data w[n]
    var x[n, K]
    let r = cumlogsumexp(x, axis=0)
    minimize sum(w[i] * r[i, k] for i in n, k in K)"""
    x = np.stack([CASES["alike"], CASES["rising"], CASES["out of range"]], axis=1)
    weights = (-1.0) ** np.arange(600)
    model = slomodel.compile(text, data={"w": weights}, dims={"K": 3}, backend="c")
    value, scale = np.sum([_right(one) for one in x.T], axis=0)
    assert abs(model.value(x.ravel()) - value) <= 4e-16 * scale
    assert f"k < 3; k++) {NAME}(w" in model.source("c")


@pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")  # for data that one form leaves
@pytest.mark.parametrize("condition", ["", " if t[j] > 0"])
def test_sums_that_begin_without_terms_are_in_blocks_too(condition: str) -> None:
    text = "data first[n] in n, t[n] = 1 var x[n]"
    rows = f"logsumexp(x[j] for j in range(first[i], n){condition}) - x[i]"
    order = f"sum(exp(x[j]) for j in n if t[j] >= t[i]{condition.replace(' if', ' and')})"
    data = {"first": np.arange(40) // 2 * 2, "t": np.r_[np.linspace(3.0, 1.0, 38), -1.0, -2.0]}
    if condition:
        text = f"dim n {text} minimize sum(log({order}) - x[i] for i in n if t[i] > 0)"
    else:
        text = f"dim n {text} minimize sum({rows} for i in n) + 0*sum(t)"
    model = slomodel.compile(text, data=data, backend="c")
    assert condition or f" {NAME}(w" in model.source("c")
    x = np.random.default_rng(0).standard_normal(40)
    other = slomodel.compile(text, data=data, backend="numpy")
    np.testing.assert_allclose(model.value(x), other.value(x), rtol=1e-14)
    np.testing.assert_allclose(model.gradient(x), other.gradient(x), rtol=1e-12, atol=1e-14)
    change = (model.gradient(x + 1e-5) - model.gradient(x - 1e-5)) / 2e-5
    np.testing.assert_allclose(model.hvp(x, np.ones(40)), change, rtol=1e-6, atol=1e-8)
