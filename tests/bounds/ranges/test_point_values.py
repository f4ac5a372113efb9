"""Values with propagated errors, against exact rationals and 50 digits."""

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from slomodel import functions as fn
from slomodel.bounds.ranges.point_values import values_at
from slomodel.calculus import jvp
from slomodel.ir.build import const, variable
from slomodel.ir.expr import Expr

X = variable("x", ())
DIGITS = 50


def derivatives(value: Expr, highest: int) -> list[Expr]:
    found = [value]
    for _ in range(highest):
        found += jvp((found[-1],), {X: const(1.0)})
    return found


def points() -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.concatenate([rng.standard_normal(150), 10.0 * rng.standard_normal(50), [0.0, 1e-160]])


def test_every_polynomial_is_enclosed_by_few_steps() -> None:
    """Most of its values are no doubles: without the error of a sum or a product they are out."""
    square = fn.square(fn.sub(X, const(0.3)))
    graph = fn.add(fn.mul(square, fn.neg(X)), fn.mul(const(0.7), fn.sub(square, X)))
    x = points()
    (found,) = values_at([graph], X, x) or []
    beside = 0
    for one, lo, hi in zip(x, found.lo, found.hi, strict=True):
        t = Fraction(one)
        squared = (t - Fraction(0.3)) ** 2
        exact = -squared * t + Fraction(0.7) * (squared - t)
        assert Fraction(lo) <= exact <= Fraction(hi)
        size = abs(squared * t) + squared + abs(t)
        assert Fraction(hi) - Fraction(lo) <= 16 * size / 2**53 + Fraction(1, 10**300)
        beside += exact != Fraction(float(exact))
    assert beside > len(x) // 2


@pytest.mark.parametrize("first", [True, False])
def test_no_part_of_the_error_of_a_product_is_left_out(first: bool) -> None:
    """0.3 x of exact factors, and (x² - 2) x near x² = 2, where all digits of a factor are lost."""
    near = np.sqrt(2.0) + 1e-15 * np.arange(-50.0, 50.0)
    lost = fn.sub(fn.mul(X, X), const(2.0))
    graph = fn.mul(lost, X) if first else fn.mul(X, lost)
    whole, product = values_at([graph, fn.mul(const(0.3), X)], X, near) or []
    for k, one in enumerate(near):
        t = Fraction(one)
        assert Fraction(product.lo[k]) <= Fraction(0.3) * t <= Fraction(product.hi[k])
        assert Fraction(whole.lo[k]) <= (t * t - 2) * t <= Fraction(whole.hi[k])


def test_products_below_the_smallest_double_are_enclosed() -> None:
    x = np.array([1e-160, -3e-163, 5e-324])
    (found,) = values_at([fn.mul(fn.mul(X, X), X)], X, x) or []
    for one, lo, hi in zip(x, found.lo, found.hi, strict=True):
        assert Fraction(lo) <= Fraction(one) ** 3 <= Fraction(hi)


@pytest.mark.parametrize("name", ["tanh", "softplus"])
def test_derivatives_of_functions_of_the_table_are_enclosed(name: str) -> None:
    value = {"tanh": fn.tanh, "softplus": fn.softplus}[name](X)
    exact = {"tanh": mp.tanh, "softplus": lambda t: mp.log1p(mp.exp(t))}[name]
    x = points()[:40]
    found = values_at(derivatives(value, 4), X, x)
    assert found is not None
    with mp.workdps(DIGITS):
        for order, a in enumerate(found):
            for one, lo, hi in zip(x, a.lo, a.hi, strict=True):
                truth = mp.diff(exact, mp.mpf(float(one)), order) if order else exact(mp.mpf(one))
                slack = mp.mpf(10) ** (-DIGITS // 3) * max(abs(truth), 1)
                assert mp.mpf(float(lo)) - slack <= truth <= mp.mpf(float(hi)) + slack
                assert hi - lo <= 1e-13 * max(abs(float(truth)), 1.0)


def test_what_has_no_rule_or_is_not_finite_has_no_values() -> None:
    assert values_at([fn.div(const(1.0), X)], X, np.ones(2)) is None
    assert values_at([fn.tanh(fn.mul(X, X))], X, np.ones(2)) is None
    assert values_at([fn.mul(X, X)], X, np.array([1.0, 1e200])) is None
    assert values_at([X], X, np.array([np.inf])) is None
