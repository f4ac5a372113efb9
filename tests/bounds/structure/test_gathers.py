"""Gathers moved below functions: one argument where two nodes were gathered, the same values."""

import numpy as np
import pytest
from bounds.settings import claimed, setting

from slomodel.bounds.rules.linear_predictors import linear_predictors
from slomodel.bounds.structure.gathers import element_forms, with_gathers_below
from slomodel.reference import evaluate

GRADES = """
dim N, J
data c[J, 2], g[N] in J
var t[J]
let Q[i in J, k in 2] = sigmoid(t[i] - c[i, k])
minimize -sum(log(Q[g[n], 0] - Q[g[n], 1]) for n in N)
"""
SHIFTED = """
dim n = 4
var x[n]
let e = exp(x) .* sin(2 * x + 1)
minimize sum(tanh(e[i + 1] - e[i]) * cos(e[2]) for i in range(n - 1))
"""
CUTS = np.array([[-1.0, 1.0], [-0.5, 0.7], [-2.0, 0.3]])


def test_the_value_is_the_same() -> None:
    same = np.array([0, 1, 2, 0, 2])
    found = [
        setting(GRADES, [0.1, -0.3, 0.2], c=CUTS, g=same),
        setting(SHIFTED, [0.1, -0.3, 0.2, 0.5]),
    ]
    assert with_gathers_below(found[1]) is not None
    for one in found:
        for own in element_forms(one):
            (value,) = evaluate((own.objective,), own.values, own.sizes)
            (given,) = evaluate((one.objective,), one.values, one.sizes)
            assert value == pytest.approx(given, rel=1e-14)


def test_functions_of_the_same_element_are_one_function() -> None:
    """-log(σ(t + 1) - σ(t - 1)) by two gathers has the constants of the function itself."""
    same = np.array([0, 1, 2])
    one = setting(GRADES, [0.1, -0.3, 0.2], c=CUTS, g=same)
    found = claimed(linear_predictors, one, 0.1)
    assert found is not None

    def curvature(t: np.ndarray, c: np.ndarray) -> np.ndarray:
        a, b = (1 / (1 + np.exp(c[k] - t)) for k in (0, 1))
        return a * (1 - a) + b * (1 - b)  # (log(σ(u) - σ(w)))'' = -σ'(u) - σ'(w)

    t = np.linspace(-0.1, 0.1, 401)
    most = max(curvature(x + t, c).max() for x, c in zip([0.1, -0.3, 0.2], CUTS, strict=True))
    assert most <= found.L1 <= 1.01 * most
