"""log Σ exp: closed-form bounds at any radius, exact where attained."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bounds.fuzz import cases
from bounds.settings import claimed, setting
from bounds.test_sound import alone

from slomodel.bounds import bounds
from slomodel.bounds.norms.loewner import largest_eigenvalue, quadratic_sum
from slomodel.bounds.rules.log_sum_exp import (
    _features,
    _recognised,
    _rows,
    _variances,
    log_sum_exp,
)
from slomodel.bounds.structure.log_sum_exp import log_sums
from slomodel.ir.walk import postorder

CLOSE = 1e-9
SKEW = math.sqrt(8.0) / (6.0 * math.sqrt(3.0))


@pytest.mark.parametrize("variable", ["x[6]", "x[2,3]", "x[3,1,2]"])
def test_over_all_axes_of_an_array(variable: str) -> None:
    found = bounds(setting(f"var {variable} minimize logsumexp(x)", [0.0] * 6), 1000.0)
    assert 0.5 <= found.L1 <= 0.5 * (1.0 + CLOSE)
    assert SKEW <= found.L2 <= SKEW * (1.0 + CLOSE)


@pytest.mark.parametrize("radius", [10.0, 1000.0])
def test_the_constants_of_logsumexp_over_large_balls(radius: float) -> None:
    """Half the variance of two equal weights; the skewest two weights."""
    found = bounds(setting("var x[5] minimize logsumexp(x)", [0.0] * 5), radius)
    assert 0.5 <= found.L1 <= 0.5 * (1.0 + CLOSE)
    assert SKEW <= found.L2 <= SKEW * (1.0 + CLOSE)


def test_at_equal_numbers_the_largest_weight_counts() -> None:
    found = claimed(log_sum_exp, setting("var x[8] minimize 3 * logsumexp(x)", [7.0] * 8), 0.0)
    assert found is not None
    assert 3.0 / 8.0 <= found.L1 <= 3.0 / 8.0 * (1.0 + CLOSE)


def test_the_largest_weight_over_a_ball() -> None:
    """p_1 is at most that at x_1 + r, x_2 - r, …."""
    found = _recognised(setting("var x[8] minimize logsumexp(x)", [7.0] * 8))
    assert found is not None
    ((own,), _) = found
    (share,) = _variances(own, 0.25)
    assert pytest.approx(1.0 / (1.0 + 7.0 * math.exp(-0.5)), rel=CLOSE) == share


def test_from_the_centre() -> None:
    """At p = 1/2 the third cumulant is 0 and the fourth -1/2 its largest: |D³f| <= r/2 nearby, to
    which it comes within the order of r³.
    """
    radius = 1e-3
    found = claimed(log_sum_exp, setting("var x[2] minimize logsumexp(x)", [1.0, 1.0]), radius)
    assert found is not None
    t = radius * math.sqrt(2.0)  # x_1 - x_2, along which p = 1/(1 + exp(-t))
    p = 1.0 / (1.0 + math.exp(-t))
    exact = 2.0 * math.sqrt(2.0) * p * (1.0 - p) * (2.0 * p - 1.0)
    assert exact <= found.L2 <= exact * (1.0 + radius)


TEXTS = {
    "classes": "data A[6,4] var W[3,4] minimize sum(logsumexp((W @ A')[:, j]) for j in 6) / 6",
    "log softmax": "data A[6,4] var W[3,4] let p = softmax(W @ A', axis=0) "
    "minimize -sum(log(p) .* (A[0:3, 0:2] @ A[:, 0:2]'))",
    "two axes": "data A[6,4] var W[3,4] minimize logsumexp(A[0:3, :] .* W) - logsumexp(A @ W')",
    "less": "data A[6,4] var x[4] minimize sumsq(x) - logsumexp(A @ x)",
    "with others": "data A[6,4] var x[4] minimize 2 * logsumexp(A @ x + 1) + sum(tanh(x)^2)",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TEXTS)
def test_nothing_attained_is_above_a_claim(name: str) -> None:
    rng = np.random.default_rng(1)
    n = 12 if "W[3,4]" in TEXTS[name] else 4
    one = setting(TEXTS[name], list(rng.standard_normal(n)), A=rng.standard_normal((6, 4)))
    found = cases(one, rng, (0.0, 0.1, 100.0), alone(log_sum_exp))
    assert len(found) == 3
    for case in found:
        for which in ("L1", "L2"):
            assert not case.violates(which), (case.radius, case.bound, case.witnesses)


LAYERS = {
    "by units": "data A[6,4] var W[3,4], b[3] let u = W @ A' + b[:, None] "
    "minimize sum(logsumexp(u, axis=0))",
    "by samples": "data A[6,4] var W[4,3], b[3] let u = A @ W + b[None, :] "
    "minimize sum(logsumexp(u, axis=1))",
    "without bias": "data A[6,4] var W[4,3] minimize sum(logsumexp(A @ W, axis=1))",
}


@pytest.mark.parametrize("name", LAYERS)
def test_rows_of_a_layer_stand_for_those_of_all_units(name: str) -> None:
    rng = np.random.default_rng(2)
    n = 12 if name == "without bias" else 15
    one = setting(LAYERS[name], list(rng.standard_normal(n)), A=rng.standard_normal((6, 4)))
    split = log_sums(one.objective, one.variables, set(postorder(one.objective)))
    assert split is not None
    ((own,), _) = split
    short = _features(one, own)
    long = _rows(one, own, (1, 0) if name == "by units" else (0, 1), 3)
    assert short is not None
    assert long is not None
    assert short[1] == pytest.approx(long[1], rel=1e-9)
    c = rng.uniform(0.0, 1.0, 6)
    by_features = largest_eigenvalue(quadratic_sum([short[0]], {(0, 0): c}))
    by_rows = largest_eigenvalue(quadratic_sum([long[0]], {(0, 0): np.repeat(c, 3)}))
    assert by_features == pytest.approx(by_rows, rel=1e-9)


@pytest.mark.parametrize("radius", [0.1, 100.0])
def test_classes_with_many_weights_have_the_bound_of_half_the_moments(radius: float) -> None:
    """0 <= D²F <= 1/2; for two equal classes all is attained."""
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((220, 7)), np.zeros((2, 7))
    one = setting(
        "data X[220,7], Y[2,7] var W[2,220] "
        "minimize sum(logsumexp(W @ X, axis=0)) - sum(Y .* (W @ X)) + 3 * sumsq(W)",
        [0.0] * 440,
        X=X,
        Y=y,
    )
    found = bounds(one, radius)
    exact = 0.5 * float(np.linalg.norm(X, 2)) ** 2 + 6.0
    assert exact <= found.L1 <= exact * (1.0 + 1e-5)
    assert 0.3 * float(np.linalg.norm(X, 2)) ** 2 * np.linalg.norm(X, axis=0).max() > found.L2
