"""Identities applied on construction preserve the value, and never hide a NaN."""

import numpy as np
import pytest

from slomodel.functions import TABLE, add, div, land, lt, mul, neg, pow, sqrt, square, where
from slomodel.functions import abs as absolute
from slomodel.ir.build import const, variable
from slomodel.ir.dims import named
from slomodel.ir.expr import Const, Input
from slomodel.ir.function import ScalarFunction
from slomodel.reference import evaluate
from tests.functions.exact_values import operand_types, ulps

CONSTANTS = (0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, 4.0, 0.5, -0.5, -4.0, 2.0**-1000, 7.0, np.inf)
AT = np.array([0.0, 1.0, -1.0, 0.3, -2.7, 1e-160, 1e200, 5e-324, -1e308, np.inf, np.nan])
POW_ULPS = 3
TWO_NUMBERS = [f for f in TABLE.values() if operand_types(f) == ("real", "real")]
ONE_NUMBER = [f for f in TABLE.values() if operand_types(f) == ("real",)]

x = variable("x", (named("n"),))


def assert_same(got: np.ndarray, want: np.ndarray, allowed: float) -> None:
    for one, other in zip(np.broadcast_to(got, want.shape), want, strict=True):
        assert ulps(one.item(), other.item()) <= allowed


@pytest.mark.sampled(4)
@pytest.mark.parametrize("function", TWO_NUMBERS, ids=str)
@pytest.mark.parametrize("number", CONSTANTS)
def test_one_constant(function: ScalarFunction, number: float) -> None:
    at = AT
    if function is pow and number in (0.5, -0.5):
        at = AT[-np.inf != AT]
    allowed = POW_ULPS if function is pow else 0
    with np.errstate(all="ignore"):
        for graph, want in (
            (function(x, number), function.numpy(at, number)),
            (function(number, x), function.numpy(number, at)),
        ):
            assert graph.shape == x.shape
            assert_same(evaluate([graph], {x: at})[0], want, allowed)


@pytest.mark.parametrize("function", ONE_NUMBER, ids=str)
@pytest.mark.parametrize("inner", [neg, absolute], ids=str)
def test_one_operand(function: ScalarFunction, inner: ScalarFunction) -> None:
    with np.errstate(all="ignore"):
        want = function.numpy(inner.numpy(AT))
    assert_same(evaluate([function(inner(x))], {x: AT})[0], want, 0)


def test_identities() -> None:
    assert mul(x, 1.0) is mul(1.0, x) is add(x, 0.0) is div(x, 1.0) is neg(neg(x)) is x
    assert mul(-1.0, x) is neg(x)
    assert square(neg(x)) is square(x)
    assert absolute(neg(x)) is absolute(absolute(x)) is absolute(x)
    assert div(x, 2.0) is mul(x, 0.5)
    assert mul(x, 0.0) is not const(0.0)


def test_powers_are_products() -> None:
    assert pow(x, 2.0) is square(x)
    assert pow(x, 3.0) is mul(square(x), x)
    assert pow(x, 0.5) is sqrt(x)
    assert pow(x, -1.0) is div(1.0, x)
    assert evaluate([pow(x, 0.0)], {x: AT})[0].tolist() == [1.0] * len(AT)
    negative = np.array([-8.0, -0.5])
    assert evaluate([pow(x, 5.0)], {x: negative})[0].tolist() == [-32768.0, -0.03125]


def test_one_operand_twice_is_not_one_element_twice() -> None:
    """An outer product has the same operand on both sides but not the same elements."""
    from slomodel.ir.build import apply_along

    shape = (named("n"), named("n"))
    values = np.array([1.0, 5.0])
    for function in TWO_NUMBERS:
        graph = apply_along(function, (x, x), ((0,), (1,)), shape)
        want = function.numpy(values[:, None], values[None, :])
        assert np.array_equal(evaluate([graph], {x: values})[0], want)


def test_known_conditions_decide() -> None:
    y: Input = variable("y", (named("n"),))
    assert where(True, x, y) is x
    assert where(False, x, y) is y
    condition = lt(x, y)
    assert where(condition, 2.0, 2.0).shape == x.shape
    assert land(True, condition) is land(condition, True) is condition
    decided = land(False, condition)
    assert evaluate([decided], {x: AT, y: AT})[0].tolist() == [False] * len(AT)
    assert isinstance(lt(1.0, 2.0), Const)
