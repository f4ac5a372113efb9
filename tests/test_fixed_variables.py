"""Variables held at values: `model.fix` and `model.free`."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest
import sympy as sp
from numpy.typing import ArrayLike

import slomodel
from slomodel.errors import DomainError, SlomodelError

TEXT = """
dim  n = 3
data c[n]
var  s > 0 init 1, x[n] init 0, t in (s, 9)
minimize sumsq(x - c) / s + s^2 + t - log(t)
"""
C = np.array([1.0, 2.0, 3.0])


def model() -> slomodel.Model:
    return slomodel.compile(TEXT, data={"c": C}, backend="numpy")


def test_the_objective_is_that_of_the_model_at_the_value() -> None:
    own, point = model(), np.array([2.0, 0.1, 0.2, 0.3, 4.0])
    held = own.fix(s=2.0)
    assert held.variables == {"x": (3,), "t": ()}
    assert held.value(point[1:]) == own.value(point)
    np.testing.assert_allclose(held.gradient(point[1:]), own.gradient(point)[1:], rtol=1e-15)
    both = held.fix(x=[0.1, 0.2, 0.3])
    assert both.variables == {"t": ()}
    assert both.value([4.0]) == own.value(point)
    assert pickle.loads(pickle.dumps(both)).value([4.0]) == own.value(point)


def test_ends_that_were_variables_are_data() -> None:
    held = model().fix(s=2.0)
    assert held.from_unconstrained([0, 0, 0, 0.0])[3] == pytest.approx(5.5)
    solution = held.solve()
    np.testing.assert_allclose(solution.variables["x"], C, atol=1e-5)
    assert solution.variables["t"] == pytest.approx(2.0, abs=1e-4)


def test_bind_changes_the_value() -> None:
    held, point = model().fix(s=2.0), np.array([3.0, 0.1, 0.2, 0.3, 4.0])
    assert held.bind(s=3.0).value(point[1:]) == model().value(point)
    assert held.bind(c=C + 1).value(point[1:]) == pytest.approx(
        model().fix(s=2.0).bind(c=C + 1).value(point[1:])
    )


def test_free_undoes_fix() -> None:
    own, point = model(), np.array([2.0, 0.1, 0.2, 0.3, 4.0])
    held = own.fix(s=2.0, t=4.0)
    assert held.free("t").variables == {"x": (3,), "t": ()}
    assert held.free().variables == own.variables
    assert held.free().value(point) == own.value(point)
    assert own.free().variables == own.variables


def test_a_solution_starts_models_with_others_fixed() -> None:
    own = model()
    held = own.fix(s=2.0, t=4.0)
    found = held.solve(x0={"x": [0.1, 0.2, 0.3]}, max_iter=0)
    freed = held.free("t").solve(x0=found, max_iter=0)
    assert freed.variables["t"] == 4.0
    np.testing.assert_allclose(freed.variables["x"], [0.1, 0.2, 0.3])
    other = own.fix(x=C).solve(x0=freed, max_iter=0)
    np.testing.assert_allclose(other.variables["t"], 4.0)
    np.testing.assert_allclose(other.variables["s"], 2.0)
    with pytest.raises(SlomodelError, match=r"E605(.|\n)*shape"):
        slomodel.compile("var z[7]\nminimize sumsq(z)").solve(x0=found)


def test_elements_of_a_vector_of_numbers() -> None:
    """A long SymPy expression over numbers is one over their vector."""
    x = sp.symbols("x0:20")
    terms = [(x[k] - x[k + 1] ** 2) ** 2 for k in range(19)]
    own = slomodel.compile(sum(terms) + x[0] ** 2, backend="numpy")
    point = np.random.default_rng(1).normal(size=20)
    held = own.fix(x3=point[3], x4=point[4], x19=point[19])
    kept = [k for k in range(20) if k not in (3, 4, 19)]
    assert held.value(point[kept]) == pytest.approx(own.value(point), rel=1e-14)
    np.testing.assert_allclose(held.gradient(point[kept]), own.gradient(point)[kept], rtol=1e-13)
    assert held.bounds(point[kept], 0.1).L1 <= own.bounds(point, 0.1).L1


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("x[2] in [0, 1]", [0, 1], [0, 1.1]),
        ("x[2] in simplex", [0.3, 0.7], [0.3, 0.6]),
        ("x[2] in ball(2)", [1.2, 1.6], [2, 1]),
        ("x[2, 2] in psd", [[1, 1], [1, 1]], [[1, 2], [2, 1]]),
        ("x[2] in ordered", [0, 1], [1, 1]),
    ],
)
def test_values_are_in_their_sets(text: str, inside: ArrayLike, outside: ArrayLike) -> None:
    own = slomodel.compile(f"var {text}, a init 1 minimize sumsq(x - a)", backend="numpy")
    assert own.fix(x=inside).n == 1
    with pytest.raises(DomainError, match=r"E321.*the value is outside the set `x in"):
        own.fix(x=outside)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda m: m.fix(s=-1), r"E321.*the value .*`s > 0`: s is -1"),
        (lambda m: m.fix(q=1), r"E605.*no variable `q`(.|\n)*help: the variables are"),
        (lambda m: m.fix(x=[1, 2]), r"E605.*shape \(3,\), not \(2,\)"),
        (lambda m: m.fix(x="a"), r"E306"),
        (lambda m: m.fix(x=[np.nan, 1, 1]), r"E308"),
        (lambda m: m.fix(s=1, t=2, x=C), r"E604.*every variable"),
        (lambda m: m.unconstrained.fix(s=1), r"E604.*write model.fix"),
        (lambda m: m.fix(s=1).free("t"), r"E309.*`t` is not held.*there is `s`"),
        (lambda m: m.free("t"), r"E309.*there is none"),
    ],
)
def test_refusals(action: Callable[[slomodel.Model], object], message: str) -> None:
    with pytest.raises(SlomodelError, match=f"(?s){message}"):
        action(model())
