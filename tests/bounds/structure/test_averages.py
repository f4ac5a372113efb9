"""Quotients by positive sums rewritten with logarithms: same values, exponents of at most 0."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from bounds.settings import setting as part_of

from slomodel.bounds.effort import effort_of
from slomodel.bounds.enclosure import norm_of
from slomodel.bounds.rules.curved_terms import curved_terms
from slomodel.bounds.structure.averages import with_averages
from slomodel.functions import div
from slomodel.ir.expr import Map
from slomodel.ir.walk import postorder
from slomodel.reference import evaluate

HEAD = "dim N, K\ndata X[N, 2], Y[N, K]\nvar W[2, K], s\nlet u = X @ W\n"
WEIGHTS = (
    "softmax(u)[i, k]",
    "exp(u[i, k]) / sum(exp(u[i, l]) for l in K)",
    "exp(u[i, k] - logsumexp(u[i, :]))",
    "2 * exp(u[i, k]) * exp(s) / (exp(s) * sum(2 * exp(u[i, l]) for l in K))",
    "exp(u[i, k]) / (exp(s) + sum(exp(u[i, l]) for l in K))",
    "where(k != i % 3, exp(u[i, k]), 0) / sum(exp(u[i, l]) for l in K if l != i % 3)",
    "where(k == i % 3, 0, exp(u[i, k])) / sum(where(l == i % 3, 0, exp(u[i, l])) for l in K)",
    "where(k != i % 3, exp(-u[i, k]^2), 0)"
    " / (exp(s) + sum(exp(-u[i, l]^2) for l in K if l != i % 3))",
)
DATA = {
    "X": np.random.default_rng(0).standard_normal((4, 2)),
    "Y": np.random.default_rng(1).standard_normal((4, 3)),
}
CENTRE = (2.0 * np.random.default_rng(2).standard_normal(7)).tolist()


@pytest.mark.parametrize("weight", WEIGHTS)
def test_weights_are_exponentials_of_at_most_0(weight: str) -> None:
    text = f"{HEAD}minimize sum(({weight} * (Y[i, k] + u[i, k]) - 1)^2 for i in N, k in K) + s^2"
    setting = part_of(text, CENTRE, **DATA)
    found = with_averages(setting)
    pair = (setting.objective, found.part.objective, *found.of_weights)
    before, after, *exponents = evaluate(pair, setting.values, setting.sizes)
    np.testing.assert_allclose(after, before, rtol=1e-12)
    assert found.exponents
    assert all(np.max(one) <= 1e-13 for one in exponents)
    assert bool(found.of_weights) == ("2 *" not in weight)  # no factors are cancelled
    old, new = (
        [node for node in postorder(root) if isinstance(node, Map) and node.function is div]
        for root in pair[:2]
    )
    assert len(new) < len(old) or "logsumexp" in weight


def test_spellings_of_a_mean_have_the_same_bounds() -> None:
    found = []
    for weight in WEIGHTS[:4]:
        text = f"{HEAD}minimize sum((sum({weight} * Y[i, k] for k in K) - 1)^2 for i in N) + s^2"
        setting = part_of(text, CENTRE, **DATA)
        one = curved_terms(setting, 0.3)
        assert one is not None
        found.append((norm_of(one.over.second), one.over.third))
    first = found[0]
    assert np.isfinite(first).all()
    for other in found[1:]:
        np.testing.assert_allclose(other, first, rtol=0.1)


MIXTURES = (
    "logsumexp(a) - logsumexp(a[k] - s[k] - (y[i] - m[k])^2 / 2 * exp(-2 * s[k]) for k in K)",
    "-logsumexp(a[k] - logsumexp(a) - s[k] - (y[i] - m[k])^2 / (2 * exp(2 * s[k])) for k in K)",
    "-log(sum(exp(a[k]) / sum(exp(a)) * exp(-(y[i] - m[k])^2 / (2 * exp(2 * s[k]))) / exp(s[k])"
    " for k in K))",
)


def test_terms_that_all_classes_share_move_no_weights() -> None:
    """A mixture with normalised weights, whose sum is in every class or outside of them all."""
    found = []
    for one in MIXTURES:
        text = f"dim N, K = 2 data y[N] var a[K], m[K], s[K] minimize sum({one} for i in N)"
        setting = part_of(text, [0.1, 0.2, -1.0, 1.0, 0.0, 0.3], y=[-1.5, -1.0, 0.8, 2.0])
        bound = curved_terms(replace(setting, effort=effort_of("quick")), 0.3)
        assert bound is not None
        found.append((norm_of(bound.over.second), bound.over.third))
    np.testing.assert_allclose(found, found[:1] * 3, rtol=1e-6)
