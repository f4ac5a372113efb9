"""Extremes inside recurrences: their slopes do not depend on rounding."""

from __future__ import annotations

import numpy as np
import pytest

import slomodel

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.NonsmoothWarning")


@pytest.mark.parametrize("target", ["numpy", pytest.param("c", marks=pytest.mark.slow)])
def test_an_extreme_has_the_slopes_of_the_element_that_it_takes(target: str) -> None:
    """Value iteration: the gradient is that of the best actions, whatever rounding does."""
    draw, steps, states, actions = np.random.default_rng(1), 25, 3, 2
    reward = draw.random((states, actions))
    moves = draw.dirichlet(np.ones(states), size=(states, actions))
    model = slomodel.compile(
        """dim T, S, A  data R[S, A], P[S, A, S]  var theta[S]
        let V[t in T, s in S] = max(theta[s] + R[s, a]
            + 0.9 * sum(P[s, a, u] * V[t-1, u] for u in S) for a in A)  first 0
        minimize sum(V[T-1, :])""",
        data={"R": reward, "P": moves},
        dims={"T": steps},
        backend=target,
    )
    for _ in range(5):
        theta = draw.normal(size=states)
        value, slopes = np.zeros(states), np.zeros((states, states))
        for _ in range(1, steps):
            found = theta[:, np.newaxis] + reward + 0.9 * moves @ value
            best = found.argmax(axis=1)
            value = found.max(axis=1)
            slopes = np.eye(states) + 0.9 * moves[np.arange(states), best] @ slopes
        np.testing.assert_allclose(model.gradient(theta), slopes.sum(axis=0), rtol=1e-12)
