"""Sets of variables of SymPy expressions: assumptions of symbols, and bounds=."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
import sympy as sp

import slomodel
from slomodel.errors import SlomodelError
from slomodel.front.source import recipe_of
from slomodel.ir.expr import Const
from slomodel.problem import DeclaredSet

s = sp.Symbol("s", positive=True)
n = sp.Symbol("n", negative=True)
q = sp.Symbol("q")
i = sp.Symbol("i", integer=True)
X = sp.IndexedBase("X", shape=(4,), positive=True)
TERMS = sp.log(s) + 1 / s + (n + 1) ** 2 + (q - 1) ** 2 + sp.Sum(X[i] - sp.log(X[i]), (i, 0, 3))


def sets(bounds: object = None) -> dict[str, DeclaredSet | None]:
    recipe = recipe_of(TERMS, None, None, None, "numpy", "float64", (), bounds)
    return {one.name: one.set for one in recipe.problem().variables}


def test_assumptions_are_open_half_lines() -> None:
    found = {name: one and (one.kind, one.text) for name, one in sets().items()}
    positive = ("open_box", "> 0")
    assert found == {"X": positive, "n": ("open_box", "< 0"), "q": None, "s": positive}


@pytest.mark.parametrize("sign", [1, -1])
def test_a_run_ends_on_a_closed_half_line(sign: int) -> None:
    z = sp.Symbol("z", nonnegative=True) if sign > 0 else sp.Symbol("z", nonpositive=True)
    model = slomodel.compile((z - 1) ** 2 + s - sp.log(s), backend="numpy")
    assert model.explain().count("z scalar >= 0" if sign > 0 else "z scalar <= 0") == 1
    found = model.solve().variables
    assert [found["z"], found["s"]] == pytest.approx([max(sign, 0), 1], abs=1e-5)


def test_a_run_ends_inside() -> None:
    model = slomodel.compile(TERMS, backend="numpy")
    assert pickle.loads(pickle.dumps(model)).unconstrained.n == 7
    found = model.solve().variables
    assert [*found["X"], -found["n"], found["q"], found["s"]] == pytest.approx([1] * 7, abs=1e-5)


@pytest.mark.parametrize(
    ("pair", "text"),
    [
        ((0, 1), "in [0, 1]"),
        ((0, None), ">= 0"),
        ((None, sp.Rational(1, 2)), "<= 0.5"),
        ([-math.inf, 2.0], "<= 2"),
        ((1, math.inf), ">= 1"),
    ],
)
def test_bounds_are_closed_intervals(pair: object, text: str) -> None:
    for key in (q, "q", s, "X"):
        one = sets({key: pair})[str(key)]
        assert one is not None
        below = "in [0, " + text[3:] + "]" if text[0] == "<" and key in (s, "X") else text
        assert (one.kind, one.text) == ("box", below)
        assert all(isinstance(end, Const) for end in one.numbers)


def test_bounds_and_assumptions_hold_together() -> None:
    found = {name: one and one.text for name, one in sets({s: (-1, None), n: (None, 2)}).items()}
    assert found == {"X": "> 0", "n": "< 0", "q": None, "s": "> 0"}
    z, w = sp.Symbol("z", nonnegative=True), sp.Symbol("w", nonpositive=True)
    model = slomodel.compile((z + 1) ** 2 + (w - 1) ** 2, bounds={z: (-2, 2), w: (-2, 2)})
    assert list(model.solve().x) == [0.0, 0.0]
    for symbol, pair in ((s, (-2, 0)), (s, (-2, -1)), (n, (0, 1)), (z, (-2, -1)), (w, (1, None))):
        with pytest.raises(SlomodelError, match=f"(?s)E602.*`{symbol}` is .*, but its bounds are"):
            slomodel.compile((symbol - 1) ** 2, bounds={symbol: pair})


def test_no_bound_is_not_a_set() -> None:
    assert sets({q: (None, None)})["q"] is None


def test_variables_of_a_long_expression() -> None:
    """Numbers in different sets, of which the objective reads the one vector."""
    p = [sp.Symbol(f"p{k}", positive=True) for k in range(20)]
    r = [sp.Symbol(f"r{k}") for k in range(20)]
    terms = [p[k] - sp.log(p[k]) + (r[k] - 1) ** 2 + p[k] * r[k] ** 2 for k in range(20)]
    model = slomodel.compile(sum(terms), [*p[:10], *r, *p[10:]], backend="numpy")
    u = np.random.default_rng(0).normal(size=40)
    x = np.r_[np.exp(u[:10]), u[10:30], np.exp(u[30:])]
    np.testing.assert_allclose(model.from_unconstrained(u), x, rtol=1e-15)
    np.testing.assert_allclose(model.to_unconstrained(x), u, rtol=1e-14, atol=1e-15)
    assert model.unconstrained.value(u) == pytest.approx(model.value(x), rel=1e-14)
    slope = model.gradient(x) * np.r_[x[:10], np.ones(20), x[30:]]
    np.testing.assert_allclose(model.unconstrained.gradient(u), slope, rtol=1e-12, atol=1e-14)
    assert model.solve().success


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (3, "E602.*a dict of pairs"),
        ({q: 1}, "E602.*`q` are not a pair"),
        ({q: (2, 1)}, "E602.*are empty"),
        ({q: ("a", 1)}, "E602.*not numbers"),
        ({q: (math.nan, 1)}, "E602.*NaN"),
        ({"foo": (0, 1)}, "E405.*`foo` in bounds= is not a variable"),
    ],
)
def test_refusals(bounds: object, message: str) -> None:
    with pytest.raises(SlomodelError, match=f"(?s){message}"):
        slomodel.compile(TERMS, bounds=bounds)


def test_a_text_declares_its_own_sets() -> None:
    with pytest.raises(SlomodelError, match=r"(?s)E604.*write `var x in"):
        slomodel.compile("var x minimize x^2", bounds={"x": (0, 1)})
