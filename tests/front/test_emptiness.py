"""Sums, means and extremes of no elements: 0, or an error when data are given, never a NaN."""

import numpy as np
import pytest

import slomodel
from slomodel.errors import ModelWarning

# Small models that do not use all declarations.
pytestmark = pytest.mark.filterwarnings("ignore::slomodel.errors.ModelWarning")

BACKENDS = ("numpy", "numexpr")
DECLARED = "dim n, k = 2 data g[n] var y[n], x\n"

EMPTY = [
    "mean(y[i] for i in n if g[i] > 0)",
    "mean(g[i] for i in n if i > 5) * x",
    "max(y[i] for i in n if g[i] > 0)",
    "min(y[i] - x for i in n if g[i] > 0)",
    "logsumexp(y[i] for i in n if g[i] > 0)",
    "sum(mean(y[i] for i in n if g[i] == j)^2 for j in k)",
    "sum(mean(y[i] for i in n if g[i] == j) * j for j in k)",
    "where(x > 0, x, 1) * mean(y[i] for i in n if g[i] > 0)",
]


@pytest.mark.parametrize("text", EMPTY)
def test_of_nothing_once_data_is_given(text: str) -> None:
    model = slomodel.compile(f"{DECLARED}minimize {text}")
    with pytest.raises(slomodel.DomainError, match="` has no elements") as caught:
        model.bind(g=[-1.0, -2.0])
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "E314"
    assert diagnostic.span is not None
    assert diagnostic.span.text in text
    assert "else 0" in diagnostic.help
    assert diagnostic.span.text.split("(")[0] in ("mean", "max", "min", "logsumexp")


GUARDED = [
    ("where(sum(1 for i in n if g[i] > 0) > 0, mean(y[i] for i in n if g[i] > 0), x)", 5.0),
    ("x + prod(y[i] for i in n if g[i] > 0) - 1", 5.0),
    ("x + sum(log(y[i]) for i in n if g[i] > 0)", 5.0),
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("text", "value"), GUARDED)
def test_what_is_not_chosen_may_be_of_nothing(text: str, value: float, backend: str) -> None:
    data = {"g": [-1.0, -2.0]}
    model = slomodel.compile(f"{DECLARED}minimize {text}", data=data, backend=backend)
    point = [1.0, 2.0, 5.0]
    assert model.value(point) == value
    assert model.gradient(point).tolist() == [0.0, 0.0, 1.0]
    assert model.hvp(point, [1.0, 1.0, 1.0]).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_groups_that_are_left_out(backend: str) -> None:
    text = f"{DECLARED}minimize sum(mean(y[i] for i in n if g[i] == j)^2 for j in k if j > 0)"
    model = slomodel.compile(text, data={"g": [1.0, 1.0]}, backend=backend)
    assert model.value([1.0, 2.0, 5.0]) == 1.5**2
    assert model.gradient([1.0, 2.0, 5.0]).tolist() == [1.5, 1.5, 0.0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_variables_leave_empty_is_traced(backend: str) -> None:
    text = f"{DECLARED}minimize mean(y[i] for i in n if y[i] > 9) + x * sum(g)"
    model = slomodel.compile(text, data={"g": [1.0, 1.0]}, backend=backend)
    assert np.isnan(model.value([1.0, 2.0, 5.0]))
    assert "the quotient of 0.0 and 0.0 is nan" in model.solve(x0=[1.0, 2.0, 5.0]).message


SUMS = [
    "x + sum(log(c) for i in n)",
    "x + sum(log(c) * y[i] for i in n)",
    "x + sum(log(c) * y)",
    "x + sum(sqrt(x - 10) for i in n)",
    "x + sum(y[i] * sqrt(x - 10) for i in n, j in 3)",
    "x + mean(sum(log(c) for i in n) for j in 3)",
    "x + sum(y[i] / log(c) for i in n)",
    "x + sum(y[i] * x / log(x - 10) for i in n)",
    "x + sum(y / sqrt(x - 10) / 2)",
    "x + sum(y[i] / n for i in n)",
    "x + sum(y[i]^2 / (4 * n) for i in n)",
    "x + sum(y / (x - x))",
    "x + sum(y[i] / n / log(c) for i in n, j in n)",
    "x + sum(sum(y[i] / (n * log(c)) for i in n) for j in 3)",
    "x + dot(y, y / n)",
    "x + mean(sumsq(y / n) for j in 3)",
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("text", SUMS)
def test_an_empty_sum_is_zero_whatever_its_terms_are(text: str, backend: str) -> None:
    """NaN times no element: log of a negative number, root of one."""
    declared = "dim n data c var x, y[n] minimize sumsq(y) +"
    model = slomodel.compile(f"{declared}{text}", data={"c": -1}, dims={"n": 0}, backend=backend)
    assert (model.value([2.0]), model.gradient([2.0]), model.hvp([2.0], [1.0])) == (2.0, 1.0, 0.0)
    model = slomodel.compile(f"{declared}{text}", data={"c": 1}, dims={"n": 2}, backend=backend)
    assert np.isfinite(model.value([20.0, 1.0, 1.0])) or "log(c)" in text or "x - x" in text


@pytest.mark.parametrize("backend", BACKENDS)
def test_scalars_that_stay_inside_a_sum(backend: str) -> None:
    text = (
        "dim n data c var x[n] minimize sum(exp(c) * x^2) + sqrt(sum(exp(c) * x[i]^2 for i in n))"
    )
    with pytest.warns(slomodel.NonsmoothWarning, match="a norm has a kink at 0"):
        model = slomodel.compile(text, data={"c": 0.5}, dims={"n": 2}, backend=backend)
    weight, x = np.exp(0.5), np.array([3.0, 4.0])
    assert model.value(x) == pytest.approx(25 * weight + 5 * np.sqrt(weight), rel=1e-15)
    slope = 2 * weight * x + np.sqrt(weight) * x / 5
    np.testing.assert_allclose(model.gradient(x), slope, rtol=1e-15)
    assert model.gradient([0.0, 0.0]).tolist() == [0.0, 0.0]


def test_nan_in_data_that_nothing_uses_is_a_warning_alone() -> None:
    text = "dim n data a[n], b[n], s[n], t[n] check b > 0 var x[n] init s minimize sumsq(x)"
    fine = {"a": [np.nan, np.inf], "b": [1, 1], "s": [0, 1], "t": [1, 1]}
    with pytest.warns(ModelWarning) as caught:
        model = slomodel.compile(text, data=fine)
    assert ["W202" in str(one.message) for one in caught] == [True, True]
    assert model.solve().success
    for name in ("b", "s"):
        with pytest.raises(slomodel.DomainError, match=rf"\[E308\]: data `{name}` has 1 value"):
            model.bind(**{name: [np.nan, 1.0]})
