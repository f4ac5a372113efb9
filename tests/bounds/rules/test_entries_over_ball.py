"""Entries over the ball: as the radius tends to 0 the bounds tend to those at the centre."""

import numpy as np
import pytest
from bounds.fuzz import cases
from bounds.settings import setting

from slomodel.bounds import ObjectivePart, bounds
from slomodel.bounds.attained import attained

COX = """
dim N, p
data X[N, p], event[N]
var beta[p]
let eta = X @ beta
minimize sum(event[i] * (log(sum(exp(eta[j]) for j in N if j >= i)) - eta[i]) for i in N)
"""
NEIGHBOURS = """
dim N, d
data X[N, d], S[N, N], E[N, N]
var A[2, d]
let Z = X @ A.T
let Q[i in N, j in N] = sum((Z[i, k] - Z[j, k]) ^ 2 for k in 2)
minimize -sum(softmax(-Q - 1e9 * E, axis=1) .* S)
"""
MIXTURE = """
dim N, d
data X[N, d]
var mu[3, d], s[3], w[3]
let l[i in N, k in 3] = (
  w[k] - d * s[k] - sum((X[i, j] - mu[k, j]) ^ 2 for j in d) * exp(-2 * s[k]) / 2)
minimize -sum(logsumexp(l[i, :]) for i in N) + N * logsumexp(w)
"""
CODING = """
dim m, n
data X[m, n]
var D[m, 4], Z[4, n]
minimize sumsq(X - D @ Z) / 2 + sum(sqrt(Z ^ 2 + 1e-6)) / 10
"""


def problem(name: str) -> ObjectivePart:
    rng = np.random.default_rng(0)
    if name == "cox":
        event = (rng.random(60) < 0.6).astype(float)
        return setting(COX, [0.0] * 7, X=rng.standard_normal((60, 7)), event=event)
    if name == "neighbours":
        y = rng.integers(0, 3, 20)
        same = (y[:, None] == y) * 1.0 - np.eye(20)
        X = rng.standard_normal((20, 4)) + y[:, None]
        return setting(NEIGHBOURS, list(0.3 * rng.standard_normal(8)), X=X, S=same, E=np.eye(20))
    if name == "mixture":
        centre = [*rng.standard_normal(6), *[0.0] * 6]
        return setting(MIXTURE, centre, X=2 * rng.standard_normal((50, 2)))
    return setting(CODING, list(rng.standard_normal(80)), X=rng.standard_normal((8, 12)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["cox", "neighbours", "mixture", "coding"])
def test_a_small_ball_has_nearly_the_bound_of_its_centre(name: str) -> None:
    one = problem(name)
    at_centre = bounds(one, 0.0)
    near = bounds(one, 1e-4)
    # The smooth |z| of `coding` has a width of 1e-3, of which the radius is a tenth.
    ratio = near.L1 / at_centre.L1
    assert ratio <= (1.1 if name == "coding" else 1.05)
    if one.n <= 40:
        assert near.L2 <= 3.0 * at_centre.L2


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["cox", "neighbours", "mixture", "coding"])
def test_no_point_shows_more(name: str) -> None:
    found = cases(problem(name), np.random.default_rng(1), (0.0, 1e-4, 0.01, 0.1))
    assert len(found) == 4
    for case in found:
        assert not case.violates("L1")
        assert not case.violates("L2")


CROSS = """
dim N, P = 4
data g[N] in P
var X[P, 3]
fn cross(a[3], b[3]) = [a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]]
let q[i in N] = cross(X[g[i], :], X[(i+1) % P, :]) + X[0, :]
minimize sum(q .^ 4)
"""


def test_a_polynomial_whose_terms_cancel() -> None:
    """Norms of its coefficients exceed its curvature in the ball more than a hundred times."""
    rng = np.random.default_rng(0)
    g = rng.integers(0, 4, 6)
    one = setting(CROSS, list(rng.standard_normal(12)), g=g)
    found = bounds(one, 0.1)
    seen = attained(one, 0.1)[0]
    assert seen <= found.L1 <= 3.0 * seen
