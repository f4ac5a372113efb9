"""Proofs that the branches of a `where` meet smoothly: exact, at any scale."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
import sympy as sp

import slomodel
from slomodel.calculus.piecewise import continuity_order
from slomodel.functions import where
from slomodel.ir.expr import Expr, Input, Map
from slomodel.ir.walk import dependents, postorder

pytestmark = [
    pytest.mark.filterwarnings("ignore::slomodel.NonsmoothWarning"),
    pytest.mark.filterwarnings("ignore::slomodel.ModelWarning"),
]


def order_of(objective: Expr) -> int:
    """The order of the outermost choice of a graph."""
    nodes = postorder(objective)
    varying = dependents(nodes, lambda n: isinstance(n, Input) and n.role == "variable")
    choices = [n for n in nodes if isinstance(n, Map) and n.function is where]
    return continuity_order(choices[-1], varying)


def order(source: Any) -> int:
    return order_of(slomodel.compile(source, backend="numpy")._problem.objective)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("var x minimize 1e13*where(x > 0, 1e-13*x, 0)", 0),
        ("var x minimize where(x > 0, 1e-300*x, 0)", 0),
        ("var x minimize where(x > 0, 1e-300*x^2, 0)", 1),
        ("var x minimize where(x > 0, 1 + 1e-15*x, 1)", 0),
        ("var x minimize where(x > 0, 1 + 1e-15, 1)", -1),
        ("var v minimize 1e15*where(v > 0, 1e-14*(exp(v/0.025) - 1), 0)", 0),
        ("var x minimize where(x > 0, x^3, 0)", 2),
        ("var x[2] minimize where(x[0] > x[1], (x[0]-x[1])^2, 0)", 1),
        ("var x[2] minimize where(x[0] > x[1], (x[0]-x[1])^3, 0)", 2),
        ("var x[2] minimize where(x[0] > x[1], x[0]-x[1], 0)", 0),
        ("var x[2] minimize where(x[0] > x[1], x[0], 0)", -1),
        ("var x[2] minimize where(norm2(x) > 1, (norm2(x)-1)^2, 0)", 1),
        ("var x[2] minimize where(norm2(x) > 1, norm2(x)-1, 0)", 0),
        ("var x[2] minimize where(norm2(x) > 1, sumsq(x)-1, 0)", 0),
        ("var x[2] minimize where(norm2(x) > 1, (sumsq(x)-1)^2, 0)", 1),
        ("var x minimize where(exp(x) > 3, (x - log(3))^2, 0)", 1),
        ("var x minimize where(log(x) > 1, (x - e)^3, 0)", 2),
        ("var x, y minimize where(x^2 + y^2 > 1, (x^2+y^2-1)^2, 0)", 1),
        ("var x, y minimize where(x^2 > y, (x^2-y)^3, 0)", 2),
        ("var x, y minimize where(x > 0, x^2*y, 0)", 1),
        ("var x, y minimize where(x > 0, x*y, 0)", 0),
        ("var x, y minimize where(x*y > 0, (x*y)^2, 0)", 1),
        # x y = 0 is not x = 0 alone: on y = 0 this jumps.
        ("var x, y minimize where(x*y > 0, x^2, 0)", -1),
        ("var x, y minimize where(x*(y^2 + 1) > 0, x^2, 0)", -1),
        # SymPy compares no complex numbers, of which roots and a quotient by 0 make some.
        ("var x minimize where(sqrt(sqrt(min(x, -1))) > 0.1, (max(sqrt(x - 9), x) - 1)^2, 0)", -1),
        ("var x, y minimize where(y <= 1/x, (y - 1/x)^2, 0*max(1/x, 2))", 1),
    ],
)
def test_literals_and_several_quantities(text: str, expected: int) -> None:
    assert order(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("var t minimize where(abs(t) <= 1.345, t^2/2, 1.345*abs(t) - 0.9045125)", 1),
        ("var t minimize where(abs(t) <= 1.345, t^2/2, 1.345*abs(t) - 1.345^2/2)", 1),
        ("var t minimize where(abs(t) <= 1.345, t^2/2, 1.345*abs(t) - 0.904512500001)", -1),
        ("var t minimize where(t > 0.3, (t - 0.1 - 0.2)^2, 0)", 1),
        ("var t minimize where(t > 1/3, t^2 - 2*t/3 + 1/9, 0)", 1),
        ("var t minimize where(t > sqrt(2), (t^2 - 2)^2, 0)", 1),
        ("var t minimize where(t > sqrt(2), t^2 - 2, 0)", 0),
        ("var t minimize where(abs(t/3) < pi, 1 + cos(t/3), 0)", 1),
        ("var t minimize where(abs(t/3) < 3.14159265358979, 1 + cos(t/3), 0)", -1),
        ("var t minimize where(t > e, (log(t) - 1)^2, 0)", 1),
    ],
)
def test_numbers_count_as_they_were_written(text: str, expected: int) -> None:
    assert order(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("where(t <= 0, 0, where(t <= 1, t^2, 2*t - 1))", 1),
        ("where(t <= 1, where(t <= 0, 0, t^2), 2*t - 1)", 1),
        ("where(t <= 1, where(t <= 0, 0, t^2), 3*t - 2)", 0),
        ("where(t > 0 and t < 1, t^2*(1-t)^2, 0)", 1),
        ("where(t > 0 and t < 1, t^2*(1-t), 0)", 0),
        ("where(not (t < 0 or t > 1), t^3*(1-t)^3, 0)", 2),
    ],
)
def test_choices_of_several_pieces(text: str, expected: int) -> None:
    assert order(f"var t minimize {text}") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("where(abs(t) <= d, t^2/2, d*(abs(t) - d/2))", 1),
        ("where(t > d/3, (t - d/3)^3, 0)", 2),
        ("where(d*t > a, (d*t - a)^2, 0)", 1),
        ("where(d*t > a*s, (d*t - a*s)^2, 0)", 1),
        # True of d = 0, or d = 1, alone.
        ("where(t > 0, t^2 + d*t, 0)", 0),
        ("where(t > 0, t^2 + (d - 1)*t, 0)", 0),
        ("where(t > 0, t^2 + (d - 1), 0)", -1),
    ],
)
def test_of_data_only_what_holds_for_every_value_counts(text: str, expected: int) -> None:
    assert order(f"data d, a var t, s minimize {text}") == expected


def test_a_sympy_piecewise_is_read_exactly() -> None:
    x = sp.Symbol("x")
    steep = 10**13 * sp.Piecewise((sp.Rational(1, 10**13) * x, x > 0), (0, True))
    thirds = sp.Piecewise((x**2 - 2 * x / 3 + sp.Rational(1, 9), x > sp.Rational(1, 3)), (0, True))
    floats = sp.Piecewise((x**2 / 2, sp.Abs(x) <= 1.345), (1.345 * sp.Abs(x) - 0.9045125, True))
    assert [order(one) for one in (steep, thirds, floats)] == [0, 1, 1]


def test_huge_numbers_end() -> None:
    """exp(exp(exp(20))) has more digits than fit into memory."""
    assert order("var x minimize where(x > 20, exp(exp(exp(x))) - exp(exp(exp(20))), 0)") == -1
    assert order("var x minimize where(x > 1e300, 2^x, 0)") == -1
    assert order("var x minimize where(x > 700, cosh(x)^60, 0)") == -1
    # exp(0.3) is a power of exp(2^-54), as which it would be a root of a polynomial.
    assert order("var x minimize where(log1p(x^2) > 0.3, log1p(x^2), x)") == -1


@pytest.mark.parametrize(
    "text",
    [
        "where(t > 0.1, cos(1e16*t)^2 + sin(1e16*t)^2, 1)",
        "where(s*t > 1, cos(1e16*t)^2 + sin(1e16*t)^2, 1 + 0*s)",
        "where(t > 0.1, exp(1e16*t)*exp(-1e16*t)*t, t)",
    ],
)
def test_large_angles_are_not_written_out(text: str) -> None:
    """SymPy would write cos(10^16 t) as a polynomial in cos(t)."""
    assert order(f"var s, t minimize {text}") in (-1, 2)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(40))
def test_random_branches(seed: int) -> None:
    """D = s (t − ρ)ᵏ h(t) with h(ρ) ≠ 0 vanishes to order k − 1 exactly, whatever s and ρ are."""
    rng = random.Random(seed)
    k = rng.randrange(5)
    scale, unit = (f"{rng.choice('123456789')}e{rng.randint(-16, 16)}" for _ in range(2))
    digits = f"{rng.randint(-999, 999)}.{rng.randint(0, 99):02d}"
    root = f"{digits}e{rng.randint(-9, 9)}"
    common = f"exp(-t^2) + {rng.randint(-5, 5)}*t^3"
    own = f"{scale}*({unit}*t - {unit}*({root}))^{k}*(1 + t^2)"
    sign = rng.choice([">", ">=", "<", "<="])
    text = f"var t minimize where({unit}*t {sign} {unit}*({root}), {common} + {own}, {common})"
    assert order(text) == min(k - 1, 2)


@pytest.mark.parametrize("power", [-400, -60, -1, 1, 60, 400])
def test_scaling_by_powers_of_two_changes_nothing(power: int) -> None:
    """Also where the scaled numbers are no short decimals."""
    s = sp.Float(math.ldexp(1.0, power))
    x = sp.Symbol("x")
    for branch, expected in (((x - 3) ** 2, 1), (x - 3, 0), ((x - 3) ** 3, 2), (x, -1)):
        f = s * sp.Piecewise((branch, x > 3), (0, True))
        assert order(f) == expected
        g = f.subs(x, s * x)
        assert order(g) == expected
