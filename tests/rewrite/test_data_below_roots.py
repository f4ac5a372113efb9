"""Roots of products with data: derivatives where the data are 0."""

import numpy as np
import pytest

import slomodel

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")


@pytest.mark.parametrize(
    "term",
    [
        "sqrt(c[i] * exp(x[i]))",
        "sqrt(c[i] * (x[i]^2 + y^2))",
        "sqrt(c[i] * exp(x[i]) / y^2)",
        "(c[i] * exp(x[i]))^0.3",
        "(y^2 * c[i] * x[i]^2)^1.5",
    ],
)
def test_data_of_0_below_roots(term: str) -> None:
    """Terms whose datum is 0 leave value, gradient and Hessian product to the others."""
    text = f"dim n data c[n] var x[n], y minimize sum({term} for i in n)"
    x, y, v = np.array([0.3, -0.2, 0.7]), 1.5, np.array([1.0, 2.0, -1.0, 0.5])
    models = [
        slomodel.compile(text, data={"c": np.array(c)}, backend="numpy")
        for c in ([0.0, 2.0, 0.5], [2.0, 0.5])
    ]
    (all_terms, at), (others, beside) = zip(models, ([*x, y], [*x[1:], y]), strict=True)
    assert all_terms.value(at) == pytest.approx(others.value(beside), rel=1e-14)
    for whole, rest in (
        (all_terms.gradient(at), others.gradient(beside)),
        (all_terms.hvp(at, v), others.hvp(beside, v[1:])),
    ):
        np.testing.assert_allclose(whole, [0.0, *rest], rtol=1e-13)
