"""Deep, long and wide objectives: what numexpr cannot take in one kernel is split."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from marks import only

from slomodel import functions as fn
from slomodel.codegen.kernels import TARGETS, Compiled, Derivatives, Kernels
from slomodel.ir import build
from slomodel.ir.dims import literal, named
from slomodel.ir.expr import Expr, Input

ON_CPU = sorted(TARGETS.keys() - {"cuda", "cupy"})


def kernels_of(
    objective: Expr,
    variables: list[Input],
    data: dict[Input, np.ndarray],
    target: str,
    **sizes: int,
) -> Kernels:
    derivatives = Derivatives(objective, variables)
    compiled = Compiled("limits", derivatives, list(data), sizes, TARGETS[target])
    return Kernels(compiled, {node.name: array for node, array in data.items()})


def value_and_gradient(kernels: Kernels, x: np.ndarray) -> tuple[float, np.ndarray]:
    gradient = np.empty(x.size)
    return kernels.function("value_and_gradient")(x, gradient), gradient


@pytest.mark.parametrize("target", only("numpy", ON_CPU))
@pytest.mark.parametrize("shape", [pytest.param((), marks=pytest.mark.slow), (literal(3),)])
def test_a_chain_of_6_000_nodes(target: str, shape: tuple) -> None:
    x = build.variable("x", shape)
    node: Expr = x
    for k in range(3_000):
        node = fn.add(build.const(0.5), fn.mul(build.const(1.0 - 1e-5 * (k % 7)), node))
    objective = node if not shape else build.sum_over(node, (0,))
    point = np.linspace(0.1, 0.3, 3 if shape else 1)
    value, gradient = value_and_gradient(kernels_of(objective, [x], {}, target), point)
    slope = np.prod([1.0 - 1e-5 * (k % 7) for k in range(3_000)])
    expected = point.copy()
    for k in range(3_000):
        expected = 0.5 + (1.0 - 1e-5 * (k % 7)) * expected
    assert value == pytest.approx(expected.sum(), rel=1e-12)
    np.testing.assert_allclose(gradient, slope, rtol=1e-11)


@pytest.mark.parametrize("target", ON_CPU)
def test_a_sum_of_80_arrays(target: str) -> None:
    n = named("n")
    x = build.variable("x", (n,))
    data = {build.data(f"a{k}", (n,)): np.full(4, 0.5 + k) for k in range(80)}
    total: Expr = x
    for node in data:
        total = fn.add(total, fn.mul(node, x))
    objective = build.inner(total, total)
    point = np.array([1.0, 2.0, -1.0, 0.5])
    value, gradient = value_and_gradient(kernels_of(objective, [x], data, target, n=4), point)
    factor = 1.0 + sum(0.5 + k for k in range(80))
    assert value == pytest.approx(factor**2 * point @ point, rel=1e-13)
    np.testing.assert_allclose(gradient, 2.0 * factor**2 * point, rtol=1e-12)


@pytest.mark.parametrize("target", ON_CPU)
def test_many_terms_with_constants_of_their_own(target: str) -> None:
    many = 150 if target == "c" else 500  # gcc takes seconds for 500
    x = build.variable("x", (literal(5),))
    total: Expr = build.const(0.0)
    for k in range(many):
        total = fn.add(total, fn.cos(fn.mul(build.const(0.01 * (k + 1)), x)))
    point = np.linspace(-1.0, 1.0, 5)
    objective = build.sum_over(total, (0,))
    value, gradient = value_and_gradient(kernels_of(objective, [x], {}, target), point)
    rates = 0.01 * np.arange(1, many + 1)[:, None]
    assert value == pytest.approx(np.cos(rates * point).sum(), rel=1e-12)
    np.testing.assert_allclose(gradient, (-rates * np.sin(rates * point)).sum(0), atol=1e-10)


@pytest.mark.parametrize("target", ON_CPU)
def test_functions_nested_300_deep(target: str) -> None:
    x = build.variable("x", (literal(4),))
    node: Expr = x
    for _ in range(300):
        node = fn.sin(fn.add(node, x))
    point = np.linspace(0.2, 0.9, 4)
    objective = build.sum_over(node, (0,))
    value, _ = value_and_gradient(kernels_of(objective, [x], {}, target), point)
    expected = point.copy()
    for _ in range(300):
        expected = np.sin(expected + point)
    assert value == pytest.approx(expected.sum(), rel=1e-13)


def test_repeated_squaring_does_not_blow_up_the_text() -> None:
    x = build.variable("x", (literal(3),))
    node: Expr = x
    for _ in range(60):
        node = fn.mul(node, fn.add(node, build.const(-0.5)))
    derivatives = Derivatives(build.sum_over(node, (0,)), [x])
    text = Compiled("squares", derivatives, [], {}, TARGETS["numexpr"]).source()
    assert len(text) < 200_000


@pytest.mark.parametrize("target", ON_CPU)
def test_one_model_in_eight_threads_equals_the_serial_run(target: str) -> None:
    n = named("n")
    x, a = build.variable("x", (n,)), build.data("a", (n,))
    objective = build.sum_over(fn.log1p(fn.exp(fn.mul(a, fn.sin(fn.mul(a, x))))), (0,))
    rng = np.random.default_rng(0)
    kernels = kernels_of(objective, [x], {a: rng.normal(size=3000)}, target, n=3000)
    points = rng.normal(size=(8, 3000))
    expected = [value_and_gradient(kernels, point) for point in points]
    found: dict[int, tuple[float, np.ndarray]] = {}

    def work(k: int) -> None:
        for _ in range(20):
            found[k] = value_and_gradient(kernels, points[k])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, (value, gradient) in enumerate(expected):
        assert found[k][0] == value
        np.testing.assert_array_equal(found[k][1], gradient)
