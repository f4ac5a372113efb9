"""Constants in derivatives: their rounding errors are bounded, whatever factor amplifies them."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from bounds.fuzz import cases, in_units, part_of
from bounds.settings import setting
from random_graphs import throw

import slomodel.functions as table
from slomodel.bounds import ObjectivePart, bounds
from slomodel.bounds.arithmetic.midpoint_radius import Bounded
from slomodel.bounds.norms.loewner import Rows, cubic_sum, quadratic_sum
from slomodel.bounds.norms.power_sums import Moments, power_sums
from slomodel.ir import build
from slomodel.ir.dims import literal
from slomodel.ir.exact import without_rounding
from slomodel.ir.expr import Const
from slomodel.ir.walk import postorder

NUMBERS = [1.3675956862490646, 0.9760437746955588, 1.0194697679337283, 1.265416153445288]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("step", [0.0, 2.2e-16, -2.2e-16])
@pytest.mark.parametrize("c", NUMBERS)
def test_terms_that_nearly_cancel(c: float, step: float) -> None:
    """1e16 (3 (c x²) - d x²) with d = 3 c but for a rounding: the product 3 c once was rounded."""
    d = 3.0 * c * (1.0 + step)
    one = setting(f"var x minimize 1e16*(3*({c!r}*x^2) - {d!r}*x^2)", [0.3])
    truth = 2 * 10**16 * abs(3 * Fraction(c) - Fraction(d))
    assert Fraction(bounds(one, 0.1).L1) >= truth


def test_products_of_numbers_are_rounded_up() -> None:
    for _ in range(30):
        k, c = random.Random(_).randrange(3, 30), random.Random(_).uniform(0.5, 2.0)
        one = setting(f"var x minimize {k}*({c!r}*x^2)", [0.3])
        assert Fraction(bounds(one, 0.1).L1) >= 2 * k * Fraction(c)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("number", [1049, 1179])
def test_a_constant_that_underflows_is_not_0(number: int) -> None:
    """A bound near the largest double made units in which the factor 1e-150 was 0, and so all."""
    with np.errstate(all="ignore"):
        example = throw(np.random.default_rng(number), "classes", 4)
    one = part_of(example)
    (case,) = cases(one, np.random.default_rng(0), (100.0,)) or [None]
    assert case is None or not (case.violates("L1") or case.violates("L2"))


def test_a_small_objective_in_small_units_has_no_bound_of_0() -> None:
    x = build.variable("x", (literal(2),))
    objective = table.mul(1e-146, build.inner(x, x))
    (case,) = cases(
        ObjectivePart(objective, (x,), {x: np.ones(2)}, {}), np.random.default_rng(0), (0.1,)
    )
    other = in_units(case, 117, -378)
    assert other is not None
    assert not other.violates("L1")


def test_powers_of_two_that_underflow_together_stay_apart() -> None:
    """2^-600 (2^-600 (A x)) with A of 1e300 is not 0."""
    x, A = build.variable("x", ()), build.data("A", ())
    tiny = math.ldexp(1.0, -600)
    inner = table.mul(tiny, table.mul(tiny, table.mul(A, x)))
    objective = table.square(table.mul(1e200, inner))
    one = ObjectivePart(objective, (x,), {x: np.asarray(1.0), A: np.asarray(1e300)}, {})
    truth = 2 * (Fraction(tiny) ** 2 * Fraction(1e300) * Fraction(1e200)) ** 2
    assert Fraction(bounds(one, 0.1).L1) >= truth


@pytest.mark.parametrize("factor", ["1e100", "1e50"])
@pytest.mark.parametrize("radius", [0.0, 0.1])
def test_products_that_underflow_below_large_factors(factor: str, radius: float) -> None:
    """φ'' = 1e-261 times u'² = 1e-130 is no double, and 1e300·1e100 times that is 1e9."""
    one = setting(f"var x minimize 1e300*({factor}*exp(1e-65*x - 600))", [1.0])
    with mpmath.workdps(60):
        x = mpmath.mpf(1.0)
        truth = mpmath.mpf(10) ** 300 * mpmath.mpf(factor) * mpmath.mpf("1e-130")
        truth *= mpmath.exp(mpmath.mpf(1e-65) * x - 600) * (1 - mpmath.mpf("1e-15"))
        assert mpmath.mpf(bounds(one, radius).L1) >= truth


@pytest.mark.filterwarnings("ignore::slomodel.NonsmoothWarning")
def test_terms_that_a_rewriting_would_take_for_opposite() -> None:
    """3 (c x) + d |x| is not 2 d relu(x) because 3 c is rounded to d: nor is its square 0."""
    c, d = 1.3675956862490646, 4.102787058747194
    assert 3.0 * c == d
    one = setting(f"var x minimize (1e16*(3*({c!r}*x) + {d!r}*abs(x)))^2", [-2.5])
    truth = 2 * (10**16 * (3 * Fraction(c) - Fraction(d))) ** 2
    assert Fraction(bounds(one, 0.1).L1) >= truth > 1


@pytest.mark.parametrize("factor", ["", "1e16*"])
@pytest.mark.parametrize("power", ["2.5", "3.5"])
def test_a_ball_that_leaves_the_domain_by_a_last_place(factor: str, power: str) -> None:
    """x^2.5 has a second derivative at 0, and no value at -2e-16."""
    one = setting(f"var x minimize ({factor}x)^{power}", [1.5])
    inside, outside = bounds(one, 1.5), bounds(one, float(np.nextafter(1.5, 2.0)))
    assert math.isfinite(inside.L1)
    assert outside.L1 == outside.L2 == math.inf


def test_sums_over_rows_whose_products_underflow() -> None:
    """Σ d a bᵀ and Σ t a b c with d a a number without all its digits, b and c large."""
    small, large = np.array([[1.1e-200]]), np.array([[1.3e200]])
    zero = np.zeros(1)
    a, b = Rows(Bounded(small, zero), small[0]), Rows(Bounded(large, zero), large[0])
    d = np.array([1.7e-121])
    found = quadratic_sum([a, b], {(0, 1): d})
    exact_sum = 2 * Fraction(d[0]) * Fraction(small[0, 0]) * Fraction(large[0, 0])
    assert abs(Fraction(found.value[0, 0]) - exact_sum) <= Fraction(found.error)
    root = np.sqrt(large)
    c = Rows(Bounded(root, zero), root[0])
    third = cubic_sum([a, c], {(0, 1, 1): d})
    exact_sum = Fraction(d[0]) * Fraction(small[0, 0]) * Fraction(root[0, 0]) ** 2
    assert abs(Fraction(third.value[0, 0, 0]) - exact_sum) <= Fraction(third.error)


@pytest.mark.parametrize("q", [2, 3, 4])
def test_power_sums_of_small_rows_with_large_weights(q: int) -> None:
    row, c = np.array([[1.1e-170, 0.7e-165]]), np.array([[1e300]])
    length = np.linalg.norm(row * 1e160, axis=1) * 1e-160 * (1.0 + 1e-15)
    moments = Moments(Rows(Bounded(row, np.zeros(1)), length))
    truth = Fraction(c[0, 0]) * (sum(Fraction(one) ** 2 for one in row[0])) ** (q // 2)
    truth *= Fraction(0.7e-165) if q == 3 else 1
    assert Fraction(float(power_sums(moments, c, q)[0])) >= truth


def test_a_graph_without_rounding_keeps_what_is_not_exact() -> None:
    x = build.variable("x", ())
    with without_rounding():
        kept = table.mul(table.mul(Const(3.0), Const(0.58)), x)
        folded = table.mul(table.mul(Const(3.0), Const(0.5)), x)
        chosen = table.add(table.where(Const(True), Const(0.1), Const(2.0)), x)
    assert Const(0.58) in postorder(kept)
    assert Const(1.5) in postorder(folded)
    assert Const(0.1) in postorder(chosen)
    assert len(postorder(chosen)) == 3
    assert len(postorder(table.mul(table.mul(Const(3.0), Const(0.58)), x))) == 3
