"""Products of exponentials as exponentials of sums: the same function, and sharper bounds."""

from __future__ import annotations

from functools import partial

import mpmath
import numpy as np
import pytest
from bounds.settings import setting as part_of
from random_graphs import throw

from slomodel.bounds import ObjectivePart, bounds
from slomodel.bounds.ranges.enclose import boxed, enclose
from slomodel.bounds.structure.exponentials import with_joined_exponentials
from slomodel.functions import exp
from slomodel.ir.exact import without_rounding
from slomodel.ir.expr import Einsum, Map
from slomodel.ir.walk import postorder
from slomodel.reference import evaluate

HEAD = "data t[5]\nvar a, b, v[5]\nminimize sumsq(t - v) + a + b + "
T = np.random.default_rng(0).uniform(0.5, 2.0, 5)
X = np.random.default_rng(1).standard_normal(7)


@without_rounding()
def joined(setting: ObjectivePart) -> ObjectivePart:
    return with_joined_exponentials(setting)


def value(setting: ObjectivePart) -> float:
    (result,) = evaluate((setting.objective,), setting.values, setting.sizes)
    return float(result)


def exponentials(setting: ObjectivePart) -> int:
    return sum(
        isinstance(node, Map) and node.function is exp for node in postorder(setting.objective)
    )


@pytest.mark.parametrize("seed", range(40))
def test_the_function_is_the_same(seed: int) -> None:
    example = throw(np.random.default_rng(seed), "exponentials", 1)
    rng = np.random.default_rng(seed)
    with without_rounding():
        values = {
            node: array if node.role == "data" else rng.uniform(-1.0, 1.0, np.shape(array))
            for node, array in example.values.items()
        }
        values = {node: np.clip(array, -2.0, 2.0) for node, array in values.items()}
        setting = ObjectivePart(example.objective, example.variables, values, example.sizes)
        found = joined(setting)
    np.testing.assert_allclose(value(found), value(setting), rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("sum(exp(a) * v .* exp(b))", 1),
        ("sum(exp(a + v) ./ exp(v - b))", 1),
        ("sum(v ./ exp(a))", 1),
        ("dot(exp(v), exp(b) * t)", 1),
        ("sum(exp(v) .* exp(a) ./ (exp(a) * sum(exp(v))))", 1),
        ("exp(a) * exp(b - a) * exp(-b) + exp(a)", 1),
        ("sum(v .* sqrt(4 * exp(a) ./ (4 * exp(a) + t .* exp(2 * v))))", 2),
        ("sum(v .* exp(a) .* sqrt(4 * exp(b) ./ (4 * exp(b) + exp(2 * a + 2 * v))))", 1),
        ("sum((1 + exp(v)) ^ -0.5)", 1),
        ("sum(((t - b) ./ exp(a)) ^ 2)", 1),
        ("sum(exp(v) + exp(a))", 2),
    ],
)
def test_exponentials_are_joined(text: str, left: int) -> None:
    setting = part_of(HEAD + text, X.tolist(), t=T)
    found = joined(setting)
    assert exponentials(found) == left
    np.testing.assert_allclose(value(found), value(setting), rtol=1e-13)


def test_equal_factors_stay_a_sum_of_squares() -> None:
    setting = part_of(f"{HEAD}sumsq(v * exp(a)) + sum(v * exp(b))", X.tolist(), t=T)
    found = joined(setting)
    squares = [node for node in postorder(found.objective) if isinstance(node, Einsum)]
    assert any(len(one.operands) == 2 and len(set(one.operands)) == 1 for one in squares)


def test_coefficients_that_are_no_doubles_stay_terms_of_their_own() -> None:
    text = (
        "var a, b, v[3]\nminimize sum(exp(0.1 * v) .* exp(0.2 * v)) + (exp(0.1 * a) * exp(b))^0.3"
    )
    setting = part_of(text, X[:5].tolist())
    with without_rounding():
        found = joined(setting)
        own = enclose([found.objective], boxed(found.values), found.sizes)[found.objective]
    a, b, *v = map(mpmath.mpf, X[:5].tolist())
    with mpmath.workdps(40):
        tenth, fifth, power = map(mpmath.mpf, (0.1, 0.2, 0.3))
        exact = mpmath.exp((tenth * a + b) * power)
        exact += mpmath.fsum(mpmath.exp(tenth * x + fifth * x) for x in v)
        assert own.lo <= exact <= own.hi


def test_opposing_growth_cancels() -> None:
    """A shrunken effect moves by no more than its unshrunken share, however large the scales."""
    written = "exp(a) .* exp(l) .* sqrt(4 / (4 + exp(a)^2 * exp(l)^2))"
    by_hand = "exp(a + l - softplus(2 * a + 2 * l - log(4)) / 2)"
    ask = partial(part_of, centre=[0.5, *([0.2] * 3), *([0.4] * 3)])
    head = "var a, l[3], z[3]\n"
    found = [
        bounds(ask(f"{head}minimize sum((z .* {scale} - 1)^2)"), 1.0)
        for scale in (written, by_hand)
    ]
    assert found[0].L1 <= 1.05 * found[1].L1
    assert found[0].L2 <= 1.05 * found[1].L2


def test_a_quotient_is_exact_like_its_exponential() -> None:
    """exp(2x)/exp(x) over [-1, 1] has both constants e."""
    setting = part_of("var x minimize exp(x)^2 / exp(x)", [0.0])
    found = bounds(setting, 1.0)
    assert np.e * (1.0 - 1e-15) <= min(found.L1, found.L2)
    assert 0.99 * max(found.L1, found.L2) < np.e
