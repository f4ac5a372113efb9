"""`floor` and `ceil`, which take data alone."""

from __future__ import annotations

import numpy as np
import pytest

import slomodel
from slomodel.errors import ModelSyntaxError
from tests.marks import only

Y = np.array([1.5, 2.0, -0.1])


@pytest.mark.parametrize("backend", only("numpy", ["numpy", "numexpr", "c"]))
def test_values_and_gradients(backend: str) -> None:
    text = "dim N data y[N] var a minimize sum((a * floor(y) - ceil(2 * y) + floor(N / 2))^4)"
    model = slomodel.compile(text, data={"y": Y}, backend=backend, strict=True)
    left = 0.3 * np.floor(Y) - np.ceil(2 * Y) + 1.0
    assert model.value([0.3]) == pytest.approx(np.sum(left**4), rel=1e-15)
    np.testing.assert_allclose(model.gradient([0.3]), np.sum(4 * left**3 * np.floor(Y)), rtol=1e-15)


def test_variables_are_refused() -> None:
    with pytest.raises(ModelSyntaxError, match="takes data alone, and this depends on `a`"):
        slomodel.compile("data y var a minimize (a - ceil(y + a))^2", data={"y": 1.0})
