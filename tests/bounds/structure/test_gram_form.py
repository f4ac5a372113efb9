"""A sum of squares in Gram form has the range of the original."""

import re

import numpy as np
import pytest
from bounds.fuzz import cases
from marks import every, only

import slomodel
from slomodel import functions as fn
from slomodel.bounds.arithmetic.interval import around
from slomodel.bounds.lipschitz import bounds
from slomodel.bounds.ranges.enclose import boxed, enclose
from slomodel.bounds.structure.gram_form import as_written, in_gram_form
from slomodel.functions.compound import same
from slomodel.ir.expr import Map
from slomodel.ir.walk import postorder
from slomodel.reference import evaluate


def head(text):
    """The declarations of a text with A, b and w as far as they are in it."""
    vectors = "".join(f", {name}[m]" for name in ("b", "w") if name in names(text))
    return f"dim n, m\ndata A[m, n]{vectors}\nvar x[n]\nminimize {text}"


def names(text):
    return set(re.findall(r"\w+", text))


# Functions of sums of squares that are smooth where the sum is positive, or everywhere.
EVERYWHERE = {
    "student": "log(1 + sumsq(A @ x - b))",
    "by a dot product": "log(1 + dot(A @ x - b, A @ x - b))",
    "by a mean": "log(1 + mean((A @ x - b).^2))",
    "shifted log": "log(sumsq(A @ x - b) + 0.1)",
    "charbonnier": "sqrt(1 + sumsq(A @ x - b))",
    "inverse": "1 / (1 + sumsq(A @ x - b))",
    "geman": "sumsq(A @ x - b) / (2 + sumsq(A @ x - b))",
    "welsch": "exp(-sumsq(A @ x - b) / 100)",
    "quadratic form": "log(1 + x' @ A' @ A @ x)",
    "given Gram matrix": "sqrt(1 + x' @ (A' @ A) @ x)",
    "with weights": "log(1 + sum(w .* (A @ x - b).^2))",
    "even powers": "log(1 + sum((A @ x - b).^4))",
    "one term each": "sum(log(1 + (A @ x - b).^2))",
    "rational": "(1 + sumsq(A @ x - b))^(-1.5)",
}
AWAY_FROM_ZERO = {
    "length": "sqrt(sumsq(A @ x - b))",
    "norm": "norm2(A @ x - b)",
    "power": "sumsq(A @ x - b)^1.5",
    "log": "log(sumsq(A @ x - b))",
    "reciprocal": "1 / sumsq(A @ x - b)",
}


def model(text, n, m, seed, conditioning=1.0):
    """With A of given condition, and b far from its range."""
    rng = np.random.default_rng(seed)
    U, _ = np.linalg.qr(rng.standard_normal((m, m)))
    V, _ = np.linalg.qr(rng.standard_normal((n, n)))
    A = U[:, :n] * np.geomspace(1.0, 1.0 / conditioning, n) @ V
    b = A @ rng.standard_normal(n) + 3.0 * U[:, n]
    data = {"A": A, "b": b, "w": rng.random(m)}
    used = {name: array for name, array in data.items() if name in names(text)}
    return slomodel.compile(head(text), data=used), rng.standard_normal(n)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("conditioning", only(1e6, [1.0, 1e6]))
@pytest.mark.parametrize("name", EVERYWHERE)
def test_there_are_bounds_where_a_function_is_smooth(name, conditioning):
    for n, m, radii in ((2, 5, (10.0,)), (8, 30, (1e-3, 0.1, 10.0))):
        found, x = model(EVERYWHERE[name], n, m, 0, conditioning)
        for radius in radii:
            claimed = found.bounds(x, radius)
            sampled = found.sample_bounds(x, radius, samples=6, seed=1)
            assert sampled.L1 <= claimed.L1 * (1 + 1e-9) < np.inf
            assert sampled.L2 <= claimed.L2 * (1 + 1e-6) < np.inf


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore::slomodel.errors.NonsmoothWarning")
@pytest.mark.parametrize("name", every(2, AWAY_FROM_ZERO))
def test_there_are_bounds_where_the_sum_is_not_zero(name):
    """Away from the range of A by 3, the sum is at least 9 everywhere."""
    for n, m in ((2, 5), (8, 30)):
        found, x = model(AWAY_FROM_ZERO[name], n, m, 0)
        for radius in (1e-3, 0.1, 10.0) if n == 2 else (1.0,):
            claimed = found.bounds(x, radius)
            sampled = found.sample_bounds(x, radius, samples=6, seed=1)
            assert sampled.L1 <= claimed.L1 * (1 + 1e-9) < np.inf
            assert sampled.L2 <= claimed.L2 * (1 + 1e-6) < np.inf


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore::slomodel.errors.NonsmoothWarning")
@pytest.mark.parametrize("name", AWAY_FROM_ZERO)
def test_there_is_none_where_the_sum_vanishes(name):
    """At x with A x = b there is a pole or kink; the Hessian of sumsq^1.5 is Lipschitz there."""
    rng = np.random.default_rng(0)
    A, x = rng.standard_normal((20, 3)), rng.standard_normal(3)
    found = slomodel.compile(head(AWAY_FROM_ZERO[name]), data={"A": A, "b": A @ x})
    claimed = found.bounds(x + 1e-3, 0.1, effort="quick")
    sampled = found.sample_bounds(x + 1e-3, 0.1, samples=20)
    if name == "power":
        assert sampled.L1 * (1 - 1e-9) <= claimed.L1 < 2 * sampled.L1
        assert sampled.L2 * (1 - 1e-6) <= claimed.L2 < 4 * sampled.L2
    else:
        assert claimed.L1 == claimed.L2 == np.inf


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", every(2, EVERYWHERE))
def test_no_bound_is_passed(name):
    found, x = model(EVERYWHERE[name], 3, 7, 2)
    for case in cases(found._part(x), np.random.default_rng(3), (0.3,)):
        for which in ("L1", "L2"):
            assert not case.violates(which), (case.radius, case.bound, case.witnesses)


@pytest.mark.parametrize("name", {**EVERYWHERE, **AWAY_FROM_ZERO})
@pytest.mark.filterwarnings("ignore::slomodel.errors.NonsmoothWarning")
def test_both_ways_to_write_a_node_are_equal(name):
    found, x = model({**EVERYWHERE, **AWAY_FROM_ZERO}[name], 4, 9, 5)
    setting = found._part(x)
    gram = in_gram_form(setting)
    assert as_written(gram) is setting or gram is setting
    nodes = [
        node
        for node in postorder(gram.objective)
        if isinstance(node, Map) and node.function is same
    ]
    roots = [operand for node in nodes for operand in node.operands]
    values = evaluate(roots, gram.values, gram.sizes)
    for one, other in zip(values[::2], values[1::2], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
    boxes = boxed(gram.values) | {v: around(gram.values[v], 1.0) for v in gram.variables}
    found = enclose([gram.objective], boxes, gram.sizes)
    for node in nodes:
        assert (found[node].lo >= 0.0).all()


def test_polynomials_are_left_alone():
    found, x = model("sumsq(A @ x - b)^2 + sumsq(x)", 4, 9, 5)
    gram = in_gram_form(found._part(x))
    assert not any(
        isinstance(node, Map) and node.function is same for node in postorder(gram.objective)
    )


@pytest.mark.parametrize(
    "text",
    [
        "log(1 + x' @ A' @ x)",
        "log(100 + x' @ A' @ A @ b)",
        "exp(sum(A[i, j] * A[j, k] * x[i] * x[k] for i in n, j in n, k in n))",
        "exp(sum(A[i, j] * A[j, i] * x[i] * x[j] for i in n, j in n))",
        "exp(sum(A[i, j] * A[i, k] * x[j] * x[j] * x[k] for i in n, j in n, k in n))",
    ],
)
def test_what_is_not_a_square_is_not_taken_for_one(text):
    rng = np.random.default_rng(0)
    vector = ", b[n]" if "@ b" in text else ""
    data = {"A": rng.standard_normal((3, 3))} | ({"b": rng.standard_normal(3)} if vector else {})
    whole = f"dim n\ndata A[n, n]{vector}\nvar x[n]\nminimize {text}"
    setting = slomodel.compile(whole, data=data)._part(0.1 * rng.standard_normal(3))
    gram = in_gram_form(setting)
    assert not any(
        isinstance(node, Map) and node.function is same for node in postorder(gram.objective)
    )


def test_derivatives_are_those_of_the_first_way():
    from slomodel.bounds import ObjectivePart
    from slomodel.calculus import gradient
    from slomodel.ir import build

    x = build.variable("x", ())
    both = build.apply(same, fn.square(x), fn.mul(x, x))
    (g,) = gradient(fn.log(fn.add(1.0, both)), (x,))
    (value,) = evaluate([g], {x: np.asarray(0.7)})
    assert value == pytest.approx(1.4 / 1.49, rel=1e-15)
    found = bounds(ObjectivePart(fn.exp(both), (x,), {x: np.asarray(0.0)}, {}), 0.5)
    # f'' = (2 + 4x²) exp(x²), f''' = (12x + 8x³) exp(x²)
    assert 3.0 * np.exp(0.25) <= found.L1 <= 3.1 * np.exp(0.25)
    assert 7.0 * np.exp(0.25) <= found.L2 <= 7.3 * np.exp(0.25)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("name", {**EVERYWHERE, **AWAY_FROM_ZERO})
@pytest.mark.filterwarnings("ignore::slomodel.errors.NonsmoothWarning")
def test_values_at_an_exact_fit_stay_in_the_domain(name, backend):
    """The kernels may compress A and b, but to squares still: no sum is below 0 by a rounding."""
    rng = np.random.default_rng(1)
    text = {**EVERYWHERE, **AWAY_FROM_ZERO}[name]
    for m, scale in ((40, 1.0), (400, 1e6), (3000, 1.0)):
        A, x = scale * rng.standard_normal((m, 5)), rng.standard_normal(5)
        data = {"A": A, "b": A @ x, "w": rng.random(m)}
        used = {own: array for own, array in data.items() if own in names(text)}
        found = slomodel.compile(head(text), data=used, backend=backend)
        value, slope = found.value_and_gradient(x)
        if name in EVERYWHERE:
            assert np.isfinite(value)
            assert np.isfinite(slope).all()
        else:
            assert not np.isnan(value)
