"""Interval evaluation of graphs: random points of random boxes lie in every node's interval."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import graphs

from slomodel import functions as fn
from slomodel.bounds.arithmetic import interval_einsum
from slomodel.bounds.arithmetic.interval import around, from_zero, point
from slomodel.bounds.arithmetic.interval_einsum import contract, largest_sum
from slomodel.bounds.ranges.enclose import boxed, enclose
from slomodel.ir import build
from slomodel.ir.dims import literal
from slomodel.ir.walk import postorder
from slomodel.reference import evaluate_all


@given(
    example=graphs(max_steps=6), seed=st.integers(0, 10), width=st.sampled_from([0.0, 1e-6, 0.3])
)
@settings(max_examples=150, deadline=None)
def test_values_lie_in_the_intervals(example, seed, width):
    rng = np.random.default_rng(seed)
    boxes = boxed(example.values)
    for variable in example.variables:
        boxes[variable] = around(example.values[variable], width)
    found = enclose([example.objective], boxes, example.sizes)
    for _ in range(3):
        values = dict(example.values)
        for variable in example.variables:
            moved = width * rng.uniform(-1.0, 1.0, values[variable].shape)
            values[variable] = values[variable] + moved
        exact = evaluate_all([example.objective], values, example.sizes)
        for node in postorder(example.objective):
            a, value = found[node], np.asarray(exact[node], dtype=np.float64)
            assert a.shape == value.shape
            slack = 1e-9 * (1.0 + np.abs(value))
            inside = (a.lo - slack <= value) & (value <= a.hi + slack)
            assert (inside | np.isnan(value)).all()


@pytest.mark.parametrize("every_product", [0, 2**18])
def test_contractions_enclose_exact_sums(every_product, monkeypatch):
    monkeypatch.setattr(interval_einsum, "_EVERY_PRODUCT", every_product)
    monkeypatch.setattr(interval_einsum, "_EVERY_PRODUCT_OF_POINTS", every_product)
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((4, 30)), rng.standard_normal((30, 3))
    result = contract([(point(A), (0, 1)), (point(B), (1, 2))], (2, 0), (4, 30, 3))
    for i in range(4):
        for j in range(3):
            exact = sum(Fraction(A[i, k]) * Fraction(B[k, j]) for k in range(30))
            assert Fraction(result.lo[j, i]) <= exact <= Fraction(result.hi[j, i])
    assert result.rad.max() < 1e-12
    boxes = [(around(A, 0.1), (0, 1)), (around(B, 0.2), (1, 2))]
    result = contract(boxes, (0, 2), (4, 30, 3))
    for _ in range(20):
        signs = rng.integers(0, 2, A.shape) * 2 - 1, rng.integers(0, 2, B.shape) * 2 - 1
        value = (A + 0.1 * signs[0]) @ (B + 0.2 * signs[1])
        assert (result.lo - 1e-12 <= value).all()
        assert (value <= result.hi + 1e-12).all()


def test_a_contraction_that_underflows_is_not_zero(monkeypatch):
    monkeypatch.setattr(interval_einsum, "_EVERY_PRODUCT", 0)
    monkeypatch.setattr(interval_einsum, "_EVERY_PRODUCT_OF_POINTS", 0)
    tiny, huge = np.full(3, 1e-200), np.full(3, 1e300)
    result = contract([(point(tiny), (0,)), (point(tiny), (0,)), (point(huge), (0,))], (), (3,))
    assert result.lo <= 3e-100 <= result.hi


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e150])
def test_the_largest_of_sums_of_products_is_not_exceeded(scale):
    rng = np.random.default_rng(2)
    for labels, output in (([(0, 1), (1,)], (0,)), ([(0,), (1, 2)], (2,)), ([(1,)], (0, 2))):
        factors = [(scale * rng.random([(4, 5, 3)[k] for k in own]), own) for own in labels]
        bound = largest_sum(factors, output, (4, 5, 3))
        whole = contract([(from_zero(a), own) for a, own in factors], output, (4, 5, 3)).hi.max()
        total = np.ones((4, 5, 3))
        for a, own in factors:
            total = total * a[tuple(slice(None) if k in own else None for k in range(3))]
        exact = total.sum(axis=tuple(k for k in range(3) if k not in output))
        assert exact.max() * (1.0 - 1e-14) <= bound <= max(whole, exact.max()) * (1.0 + 1e-13)
    assert largest_sum([], (0, 1), (4, 5, 3)) == 3.0
    none = largest_sum([(np.zeros(3), (0,)), (np.full(3, np.inf), (0,))], (), (3,))
    assert none == 0.0


def test_a_sum_of_squares_is_not_negative():
    x = build.variable("x", (literal(2),))
    found = enclose([build.inner(x, x)], {x: around([0.0, 1.0], 2.0)}, {})
    total = found[build.inner(x, x)]
    assert total.lo == 0.0
    assert total.hi == pytest.approx(13.0, rel=1e-14)


def test_boxes_in_batches_are_as_boxes_one_by_one():
    rng = np.random.default_rng(1)
    x, A = build.variable("x", (literal(3),)), build.data("A", (literal(4), literal(3)))
    graph = build.sum_over(fn.sigmoid(build.matmul(A, x)), (0,))
    values = rng.standard_normal((4, 3))
    centers = rng.standard_normal((5, 3))
    together = {**boxed({A: values}, 1), x: around(centers, 0.1)}
    many = enclose([graph], together, {}, 1)[graph]
    for k in range(5):
        one = enclose([graph], {**boxed({A: values}), x: around(centers[k], 0.1)}, {})[graph]
        np.testing.assert_allclose(many.lo[k], one.lo, rtol=1e-14)
        np.testing.assert_allclose(many.hi[k], one.hi, rtol=1e-14)


def test_the_largest_element_is_known_where_no_other_can_pass_it():
    x = build.variable("x", (literal(3),))
    share = fn.eq(x, build.spread(build.extreme(x, "max", (0,)), build.extreme(x, "max", (0,))))
    apart = enclose([share], {x: around([0.0, 1.0, 3.0], 0.5)}, {})[share]
    assert apart.lo.tolist() == apart.hi.tolist() == [0.0, 0.0, 1.0]
    close = enclose([share], {x: around([0.0, 2.5, 3.0], 0.5)}, {})[share]
    assert close.lo.tolist() == [0.0, 0.0, 0.0]
    assert close.hi.tolist() == [0.0, 1.0, 1.0]


def test_a_diagonal_without_elements_has_none():
    found = contract([(point(np.zeros((0,))), (0,))], (0, 0), (0,))
    assert found.shape == (0, 0)
