"""Data outside the support of a density, unless a condition leaves them out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import slomodel
from slomodel.front.elaboration.functions.library import SUPPORTS, library


@pytest.mark.parametrize(
    ("call", "data"),
    [
        ("poisson_lpmf(y, exp(a))", {"y": [1.5, 2.0]}),
        ("poisson_log_lpmf(y, a)", {"y": [-1.0, 2.0]}),
        ("sum(poisson_log_lpmf(y[i], a) for i in n)", {"y": [0.5, 2.0]}),
        ("neg_binomial_2_log_lpmf(y, a, 2)", {"y": [1.0, 2.25]}),
        ("binomial_logit_lpmf(y, 3 * y, a)", {"y": [1.0, 2.5]}),
        ("multinomial_lpmf(y, softmax(0 * y + a))", {"y": [1.0, 2.5]}),
    ],
)
def test_counts_are_whole_numbers(call: str, data: dict[str, list[float]]) -> None:
    text = f"dim n\ndata y[n]\nvar a\nmaximize {call}"
    with pytest.raises(slomodel.DomainError, match=r"takes counts, whole numbers from 0 on"):
        slomodel.compile(text, data=data)
    assert slomodel.compile(text, data={"y": [1, 2]}, backend="numpy").value([0.1]) < 0


@pytest.mark.parametrize(
    ("call", "data", "support"),
    [
        ("weibull_lpdf(y, a, 1)", [-1.0, 2.0], "numbers from 0 on"),
        ("weibull_lccdf(2 * y, a, 1)", [-1.0, 2.0], "numbers from 0 on"),
        ("gamma_lpdf(y, a, 1)", [-0.5, 2.0], "numbers from 0 on"),
        ("exponential_lcdf(y, a)", [-0.5, 2.0], "numbers from 0 on"),
        ("lognormal_lpdf(y, a, 1)", [0.0, 2.0], "numbers above 0"),
        ("inv_gamma_lpdf(y, a, 1)", [0.0, 2.0], "numbers above 0"),
        ("beta_lpdf(y, a, 2)", [0.5, 1.5], "numbers from 0 to 1"),
    ],
)
def test_data_are_in_the_support_of_their_density(
    call: str, data: list[float], support: str
) -> None:
    text = f"dim n\ndata y[n]\nvar a > 0\nmaximize {call}"
    with pytest.raises(slomodel.DomainError, match=f"takes {support}, and .*y. has others"):
        slomodel.compile(text, data={"y": data})
    assert slomodel.compile(text, data={"y": [0.5, 0.7]}, backend="numpy").value([1.1]) != 0
    # In a sum a condition may leave such elements out.
    slomodel.compile(text.replace(call, f"sum({call.replace('y', 'y[i]')} for i in n)"))


@pytest.mark.parametrize(
    ("call", "data", "words"),
    [
        ("bernoulli_logit_lpmf(y, a)", [1.0, 2.0], "takes 0 or 1"),
        ("binomial_lpmf(y, 2, a)", [0.0, 3.0], "needs `y <= 2`"),
        ("pareto_lpdf(y, 1, a)", [0.5, 2.0], "needs `1 <= y`"),
    ],
)
def test_data_without_a_chance_are_refused(call: str, data: list[float], words: str) -> None:
    text = f"dim n data y[n] var a in (0, 1) maximize {call}"
    with pytest.raises(slomodel.DomainError, match=words):
        slomodel.compile(text, data={"y": data})
    assert slomodel.compile(text, data={"y": [1.0, 1.0]}, backend="numpy").value([0.5]) != 0


def test_every_density_of_a_support_has_a_parameter_for_it() -> None:
    densities = library()
    named = SUPPORTS.keys() & densities.keys()
    assert {"weibull_lpdf", "weibull_lccdf", "beta_lpdf"} <= named
    assert all(densities[one].fn.parameters[0].name.text == "y" for one in named)


def test_counts_that_a_condition_leaves_out_may_be_missing() -> None:
    text = "dim n\ndata y[n]\nvar a\n"
    text += "maximize sum(poisson_log_lpmf(y[i], a) for i in n if y[i] >= 0)"
    model = slomodel.compile(text, data={"y": [-1.0, 2.0]}, backend="numpy")
    assert model.value([0.5]) == pytest.approx(stats.poisson.logpmf(2, np.exp(0.5)))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("where(y > 0, gamma_lpdf(y, a, b), log(a))", 0.0),
        ("where(y > 0, lognormal_lpdf(y, a, b), 0) - a", -1.0),
        ("where(y >= 0, poisson_lpmf(y, a), 0) - b", -1.0),
        ("hurdle(y)", 0.0),
    ],
)
def test_data_that_a_choice_leaves_out_may_be_anything(text: str, value: float) -> None:
    """As in a hurdle model, also inside a function of the model."""
    head = "data y var a > 0, b > 0\nfn hurdle(q) = where(q > 0, gamma_lpdf(q, a, b), 0)\n"
    model = slomodel.compile(f"{head}maximize {text}", data={"y": -1.0}, backend="numpy")
    assert model.value([1.0, 1.0]) == value
