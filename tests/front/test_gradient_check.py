"""The gradient check accepts right gradients and rejects wrong ones."""

import numpy as np
import pytest
from hypothesis import given
from strategies import Example, graphs

import slomodel
from slomodel import functions as fn
from slomodel.calculus import gradient
from slomodel.front.lints.gradient_check import gradient_deviation
from slomodel.ir import build
from slomodel.ir.dims import named
from slomodel.ir.function import ScalarFunction
from slomodel.reference import evaluate, evaluate_all


@given(example=graphs(complex_ok=True, max_steps=5))
def test_the_gradient_of_any_graph_passes(example: Example) -> None:
    parts = gradient(example.objective, example.variables)
    values = evaluate(parts, example.values, example.sizes)
    found = dict(zip(example.variables, (np.real(v) for v in values), strict=True))
    rng = np.random.default_rng(0)
    worst = gradient_deviation(example.objective, example.values, example.sizes, found, rng)
    assert set(worst) == {node.name for node in example.variables}
    # Rounding errors are relative to the terms, which may be far larger than their sum.
    every = evaluate_all([example.objective, *parts], example.values, example.sizes)
    terms = max(float(np.abs(a[np.isfinite(a)]).max(initial=1.0)) for a in every.values())
    norm = np.linalg.norm([np.linalg.norm(g[np.isfinite(g)]) for g in found.values()])
    for node, g in found.items():
        if np.all(np.isfinite(g)):
            assert worst[node.name] * (norm or 1.0) <= 1e-10 * terms


@pytest.mark.parametrize("n", [3, 500])
def test_a_wrong_entry_is_seen(n: int) -> None:
    x, y = build.variable("x", (named("n"),)), build.variable("y", ())
    objective = fn.mul(build.inner(fn.sin(x), x), fn.exp(y))
    rng = np.random.default_rng(1)
    values = {x: rng.standard_normal(n), y: np.array(0.3)}
    right = dict(zip((x, y), evaluate(gradient(objective, [x, y]), values), strict=True))
    worst = gradient_deviation(objective, values, {"n": n}, right, rng)
    assert max(worst.values()) < 1e-14
    wrong = {**right, x: right[x].copy()}
    wrong[x][1] += 1e-3 * np.linalg.norm(right[x])
    worst = gradient_deviation(objective, values, {"n": n}, wrong, rng)
    assert worst["x"] > 1e-5
    assert worst["y"] < 1e-14


@pytest.mark.sampled(4)
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize(
    "function",
    [f for f in fn.TABLE.values() if f.arity == 1 and f.result == "real" and f.smoothness],
    ids=str,
)
def test_steps_from_zero_both_ways(function: ScalarFunction, zero: float, sign: float) -> None:
    """Functions computed separately for x < 0 and x > 0 have one derivative at 0."""
    x = build.variable("x", ())
    objective = function(fn.mul(sign, x))
    values = {x: np.array(zero)}
    with np.errstate(all="ignore"):
        (g,) = evaluate(gradient(objective, [x]), values)
        worst = gradient_deviation(objective, values, {}, {x: g}, np.random.default_rng(0))
    assert not np.isfinite(g) or worst["x"] < 1e-14


def test_a_part_that_is_zero_but_for_rounding_is_right() -> None:
    model = slomodel.compile("var w[2] init 1, b init 0 minimize sum(w^2) + 0.1*b + 0.2*b - 0.3*b")
    assert max(model.check_gradient().values()) < 1e-15
