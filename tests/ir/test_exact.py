"""Constants store the numbers as written, without rounding."""

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from slomodel import functions as fn
from slomodel.functions import to_graph
from slomodel.ir import build
from slomodel.ir.exact import is_exact
from slomodel.ir.expr import Const, Expr
from slomodel.ir.function import ScalarFunction

numbers = st.integers(-(10**9), 10**9).map(lambda k: k / 1000.0)


def exact(node: Expr) -> object:
    assert isinstance(node, Const)
    return node.exact


def test_sums_and_quotients_of_decimals_are_exact() -> None:
    assert exact(fn.add(0.1, 0.2)) == Fraction(3, 10)
    assert exact(fn.div(1.0, 3.0)) == Fraction(1, 3)
    assert exact(fn.div(fn.square(1.345), 2.0)) == Fraction("0.9045125")
    assert exact(fn.mul(fn.div(1.0, 3.0), 3.0)) == 1
    assert exact(fn.sqrt(2.0)) == sp.sqrt(2)
    assert exact(fn.cos(to_graph(sp.pi, {}))) == -1


def test_a_number_without_a_rounding_is_one_node_however_it_was_made() -> None:
    assert fn.add(1.0, 1.0) is build.const(2.0)
    assert fn.div(fn.mul(2.0, 3.0), 4.0) is build.const(1.5)
    assert fn.mul(0.1, 10.0) is build.const(1.0)
    assert fn.sqrt(4.0) is build.const(2.0)
    assert to_graph(sp.Rational(1, 2), {}) is build.const(0.5)


@given(numbers, numbers)
def test_the_double_is_next_to_the_exact_number(a: float, b: float) -> None:
    for function in (fn.add, fn.sub, fn.mul):
        node = function(a, b)
        assert isinstance(node, Const)
        largest = max(abs(a), abs(b), abs(node.value))
        error = abs(Fraction(node.value) - Fraction(node.exact))  # type: ignore[arg-type]
        assert error <= Fraction(largest) / 2**50


@pytest.mark.parametrize("steps", [50, 2000])
def test_long_products_end_as_doubles(steps: int) -> None:
    """Numbers with thousands of digits are not stored."""
    node: Expr = build.const(1.1)
    for _ in range(steps):
        node = fn.mul(fn.div(node, 1.7), 1.7)
    assert isinstance(node, Const)
    written = node.written
    assert written is None or isinstance(written, Fraction)
    assert node.value == pytest.approx(1.1)


@pytest.mark.parametrize(
    "node",
    [
        fn.pow(10.0, 300.0),
        fn.exp(700.0),
        fn.exp(1e300),
        fn.pow(2.0, -1000.0),
        fn.div(1.0, 0.0),
        fn.log(-1.0),
        fn.sqrt(-1.0),
        fn.tan(1e300),
    ],
    ids=lambda node: str(node.value),
)
def test_what_is_large_or_no_number_is_folded_at_once(node: Expr) -> None:
    assert isinstance(node, Const)


def test_exact_numbers_survive_copies_and_pickles() -> None:
    node = fn.div(1.0, 3.0)
    assert copy.deepcopy(node) is node
    graph = fn.mul(node, build.variable("x", ()))
    assert pickle.loads(pickle.dumps(graph)) is graph


@pytest.mark.parametrize(
    ("function", "numbers", "expected"),
    [
        (fn.huber, (1e20, 1.0), False),  # 1e20 - 1/2
        (fn.huber, (2.0**52 + 1.0, 1.0), False),
        (fn.huber, (1e-200, 1.0), False),
        (fn.huber, (3.0, 1.0), True),
        (fn.root, (94906265.0**2 + 1.0,), False),
        (fn.root, (9.0,), True),
        (fn.maximum, (0.1, 0.3), True),
        (fn.clip, (0.1, 0.2, 0.3), True),
        (fn.abs, (-0.1,), True),
        (fn.sign, (-0.1,), True),
        (fn.add, (2.0, 3.0), True),
        (fn.add, (0.1, 0.2), False),
    ],
)
def test_a_double_is_exact_only_where_nothing_was_rounded(
    function: ScalarFunction, numbers: tuple[float, ...], expected: bool
) -> None:
    value = float(function.numpy(*(np.float64(number) for number in numbers)))
    assert is_exact(function, [Const(number) for number in numbers], value) is expected
