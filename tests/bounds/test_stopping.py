"""A proof in progress can be stopped, whichever rule is running."""

import numpy as np
import pytest
from paper.test_certificate import small

import slomodel
from slomodel.bounds import stopped_by


class Stopped(Exception):
    """What a check of these tests raises."""


class Countdown:
    """A check that counts, and raises when it has been called so many times."""

    def __init__(self, most: float) -> None:
        self.calls = 0
        self._most = most

    def __call__(self) -> None:
        self.calls += 1
        if self.calls >= self._most:
            raise Stopped


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["deep_linear", "robust_logistic", "rosenbrock", "softplus_net"])
def test_a_proof_stops_wherever_that_is_requested(name: str) -> None:
    model = small(name)
    x0 = model.x0(seed=1) + 0.1
    whole = Countdown(np.inf)
    with stopped_by(whole):
        bound = model.bounds(x0, 0.1)
    assert whole.calls >= 50
    for most in np.unique(np.geomspace(1, whole.calls, 6).astype(int)):
        check = Countdown(most)
        with pytest.raises(Stopped), stopped_by(check):
            model.bounds(x0, 0.1)
        assert check.calls == most
    # What was stopped leaves nothing behind, and nobody listens after the block.
    again = model.bounds(x0, 0.1)
    assert (again.L1, again.L2) == (bound.L1, bound.L2)


@pytest.mark.parametrize(
    "term",
    [
        "9*(x[i+1] - x[i]^2)^2 + (1 - x[i])^2",
        pytest.param("sqrt(1 + (x[i+1] - x[i])^2)", marks=pytest.mark.slow),
    ],
)
def test_a_proof_over_many_elements_checks_within_each_rule(term: str) -> None:
    """Each rule takes tens of operations on all elements, which take seconds if there are many."""
    text = f"dim n\nvar x[n] init 0.5\nminimize sum({term} for i in range(n - 1))"
    calls = []
    for n in (3_000, 12_000):
        model = slomodel.compile(text, dims={"n": n}, backend="numpy")
        check = Countdown(np.inf)
        with stopped_by(check):
            model.bounds(model.x0(), 0.1)
        calls.append(check.calls)
    assert calls[1] >= calls[0] + 50


def test_blocks_may_be_nested() -> None:
    model = slomodel.compile("var x[3]\nminimize sumsq(x)^2 + sum(exp(x))")
    inner, outer = Countdown(np.inf), Countdown(np.inf)
    with stopped_by(outer):
        with stopped_by(inner):
            model.bounds(np.ones(3), 0.1)
        assert outer.calls == 0
        with stopped_by(None):
            model.bounds(np.ones(3), 0.1)
        assert outer.calls == 0
        model.bounds(np.ones(3), 0.1)
    assert outer.calls == inner.calls > 20
