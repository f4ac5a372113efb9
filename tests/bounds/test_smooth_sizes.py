"""Smooth absolute values and lengths: over any ball their bounds are those that hold globally."""

from __future__ import annotations

import numpy as np
import pytest
from marks import only

import slomodel

RADIUS = 0.1
TEXTS = {
    "of the variables": ("var x[n] minimize sum(sqrt(x[i]^2 + e) for i in n)", 1.0),
    "total variation": (
        "var x[n] minimize sum(sqrt((x[i+1] - x[i])^2 + e) for i in range(n - 1))",
        4.0,
    ),
    "of an affine map": ("data A[3, n] var x[n] minimize sum(sqrt((A @ x)^2 + e))", 0.0),
    "of pairs": ("var x[n], y[n] minimize sum(sqrt(x[i]^2 + y[i]^2 + e) for i in n)", 1.0),
    "isotropic total variation": (
        "var x[n] minimize sum(sqrt((x[i+1] - x[i])^2 + (x[i+2] - x[i+1])^2 + e) "
        "for i in range(n - 2))",
        8.0,
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("n", "e"), only((50_000, 1e-8), [(10, 1e-4), (300, 1e-8), (50_000, 1e-8)])
)
@pytest.mark.parametrize("name", TEXTS)
def test_no_bound_exceeds_the_global_one(name: str, n: int, e: float) -> None:
    """The Hessian of sqrt(‖u‖² + ε) is at most ε^(-1/2) everywhere: ‖H‖ <= ε^(-1/2) ‖Σ a aᵀ‖."""
    text, squares = TEXTS[name]
    rng = np.random.default_rng(0)
    A = rng.standard_normal((3, n))
    data = {"A": A, "e": e} if "A[" in text else {"e": e}
    model = slomodel.compile(f"dim n data e {text}", data=data, dims={"n": n})
    centre = rng.standard_normal(model.n)
    found = model.bounds(centre, RADIUS)
    most = (squares or float(np.linalg.norm(A, 2)) ** 2) * e**-0.5
    assert 1.01 * most >= found.L1
    # |D³| of sqrt(t² + ε) is at most 48/(25 √5)/ε; of several arguments it is bounded by entries.
    cubes = (squares or float(np.linalg.norm(A, 2)) ** 2) ** 1.5
    assert 10.0 * cubes / e >= found.L2
    if n == 300 and squares == 1.0:  # the ball holds a point where one element is at its steepest
        nearest = float(np.min(np.linalg.norm(centre.reshape(-1, n), axis=0)))
        if nearest < RADIUS:
            assert e**-0.5 <= found.L1


def test_elements_with_data_of_their_own_are_close_too() -> None:
    """Many different smoothing parameters, and centres: clusters have both about equal."""
    rng = np.random.default_rng(1)
    n = 20_000
    e, y = rng.uniform(1e-6, 4e-6, n), rng.standard_normal(n)
    text = "dim n data e[n], y[n] var x[n] minimize sum(sqrt(x[i] ^ 2 + e[i]) for i in n) + y' @ x"
    model = slomodel.compile(text, data={"e": e, "y": y})
    found = model.bounds(rng.standard_normal(n), RADIUS)
    exact = float(np.max(e**-0.5))
    assert 0.9 * exact <= found.L1 <= 1.6 * exact
