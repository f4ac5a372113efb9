"""Searches whose steps are shortened until they underflow."""

import numpy as np

import slomodel

KERNEL_REGRESSION = """dim N, d
data X[N, d], y[N]
var h[d], g
let K[i in N, j in N] = exp(-sum(exp(h[l]) * (X[i, l] - X[j, l])^2 for l in d))
minimize sum((y[i] - sum(K[i, j] * y[j] for j in N if j != i)
  / (exp(g) + sum(K[i, j] for j in N if j != i)))^2 for i in N)
"""


def test_a_residual_with_its_infimum_at_infinity() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((20, 2))
    data = {"X": X, "y": np.sin(X[:, 0]) + 0.1 * rng.standard_normal(20)}
    model = slomodel.compile(KERNEL_REGRESSION, data=data, backend="numpy")
    solution = model.solve(x0=0.5 * rng.standard_normal(model.n), max_iter=80)
    assert solution.fun < 0.2976
