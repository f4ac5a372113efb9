"""Recurrences of SymPy expressions against loops, and what cannot be computed step by step."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sympy as sp

import slomodel
from slomodel.errors import SlomodelError

T, t = sp.Symbol("T", integer=True), sp.Symbol("t", integer=True)
mu, omega, a, b = sp.symbols("mu omega a b")
y = sp.IndexedBase("y", shape=(T,))
Y = np.random.default_rng(0).normal(size=6)


def _garch() -> sp.Expr:
    h = slomodel.scan(
        lambda h, t: omega + a * (y[t - 1] - mu) ** 2 + b * h[t - 1], first=[1.5], length=T
    )
    return sp.Sum(sp.log(h[t]) + (y[t] - mu) ** 2 / h[t], (t, 0, T - 1)) / 2


def _loop(x: np.ndarray) -> complex:
    mu, omega, a, b = x
    h = [1.5]
    for k in range(1, len(Y)):
        h.append(omega + a * (Y[k - 1] - mu) ** 2 + b * h[-1])
    return sum(np.log(h) + (Y - mu) ** 2 / np.array(h)) / 2


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_value_and_gradient(target: str) -> None:
    model = slomodel.compile(_garch(), [mu, omega, a, b], data={"y": Y}, backend=target)
    x = np.array([0.1, 0.2, 0.15, 0.7])
    f, g = model.value_and_gradient(x)
    expected = [_loop(x + step).imag / 1e-30 for step in 1e-30j * np.eye(4)]
    assert f == pytest.approx(_loop(x).real, rel=1e-14)
    np.testing.assert_allclose(g, expected, rtol=1e-12)
    again = pickle.loads(pickle.dumps(model))
    assert again.value(x) == f
    longer = model.bind(y=np.ones(9))
    assert np.isfinite(longer.value(x))


def test_two_lags_two_recurrences_and_single_elements() -> None:
    c, x0 = sp.symbols("c x0")
    h = slomodel.scan(lambda h, t: c * h[t - 1] - h[t - 2] / 2, first=[x0, 1], length=5, name="h")
    k = slomodel.scan(lambda k, t: k[t - 1] * h[t] + 1, first=[c], length=5, name="k")
    model = slomodel.compile(k[4] + h[3] ** 2, [c, x0], backend="numpy")
    u = [0.3, 1.0]
    for _ in range(3):
        u.append(0.7 * u[-1] - u[-2] / 2)
    v = 0.7
    for one in u[1:]:
        v = v * one + 1
    assert model.value([0.7, 0.3]) == pytest.approx(v + u[3] ** 2, rel=1e-14)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda h, t: h[t + 1], "at t = 1 this reads step 2, which comes later"),
        (lambda h, t: h[t - 2], "at t = 1 this reads step -1: there is none"),
        (lambda h, t: h[0] + h[t - 1], "a fixed number of steps before its own"),
        (lambda h, t: sp.Sum(h[k], (k, 0, 2)), "a fixed number of steps before its own"),
    ],
)
def test_what_cannot_be_computed_step_by_step_is_refused(step: object, message: str) -> None:
    h = slomodel.scan(step, first=[a], length=4)
    with pytest.raises(SlomodelError, match=message):
        slomodel.compile(h[3], [a])


k = sp.Symbol("k", integer=True)


def test_an_element_past_the_end_is_refused() -> None:
    h = slomodel.scan(lambda h, t: a * h[t - 1], first=[a], length=4)
    with pytest.raises(SlomodelError, match="E407"):
        slomodel.compile(h[4], [a])


def test_other_objects_are_refused() -> None:
    with pytest.raises(SlomodelError, match="not an object of str"):
        slomodel.scan(lambda h, t: h[t - 1], first=["a"], length=4)


G = sp.Symbol("G", integer=True)
i, j = sp.symbols("i j", integer=True)
r, g = sp.IndexedBase("r", shape=(G,)), sp.IndexedBase("g", shape=(G,))
R, OWN = np.arange(7.0), np.array([0, 1, 1, 3, 5, 5, 2])


def _steps(first: list[complex], step: object) -> complex:
    """The sum of squares of the elements that `step(h, t)` adds to the first ones."""
    h = list(first)
    for k in range(len(h), len(Y)):
        h.append(step(h, k))
    return sum(np.square(h))


@pytest.mark.parametrize(
    ("first", "step", "loop"),
    [
        (
            [a, a],
            lambda h, t: y[t] - sp.Sum(b**j * h[t - 1 - j], (j, 0, 1)),
            lambda a, b: _steps([a, a], lambda h, t: Y[t] - h[t - 1] - b * h[t - 2]),
        ),
        (
            [a],
            lambda h, t: b * sp.Sum(y[j] * h[t - j], (j, 1, t)),
            lambda a, b: _steps(
                [a], lambda h, t: b * sum(Y[j] * h[t - j] for j in range(1, t + 1))
            ),
        ),
        (
            [],
            lambda h, t: sp.Piecewise((a, sp.Eq(t % 3, 0)), (b * h[t - 1] + y[t], True)),
            lambda a, b: _steps([], lambda h, t: b * h[t - 1] + Y[t] if t % 3 else a),
        ),
        (
            [a],
            lambda h, t: (
                b * h[t - 1]
                + sp.Sum(sp.Piecewise((r[i], sp.Eq(g[i], t)), (0, True)), (i, 0, G - 1))
            ),
            lambda a, b: _steps([a], lambda h, t: b * h[t - 1] + sum(R[t == OWN])),
        ),
    ],
)
def test_sums_and_conditions_in_a_step(first: list[sp.Expr], step: object, loop: object) -> None:
    h = slomodel.scan(step, first=first, length=T)
    names = {str(one) for one in h.free_symbols}
    data = {name: one for name, one in {"y": Y, "r": R, "g": OWN}.items() if name in names}
    expr = sp.Sum(h[t] ** 2, (t, 0, T - 1))
    model = slomodel.compile(expr, [a, b], data=data, dims={"T": len(Y)}, backend="numpy")
    x = np.array([0.4, 0.6])
    f, slope = model.value_and_gradient(x)
    expected = [loop(*(x + one)).imag / 1e-30 for one in 1e-30j * np.eye(2)]
    assert f == pytest.approx(np.real(loop(*x)), rel=1e-13)
    np.testing.assert_allclose(slope, expected, rtol=1e-11)


@pytest.mark.parametrize("shift", [1, -1])
def test_remainders_as_indices(shift: int) -> None:
    n = sp.Symbol("n", integer=True)
    x = sp.IndexedBase("x", shape=(n,))
    expr = sp.Sum(x[i] * x[(i + shift) % n] ** 2, (i, 0, n - 1))
    model = slomodel.compile(expr, [x], dims={"n": 4}, backend="numpy")
    point = np.arange(1.0, 5.0)
    assert model.value(point) == np.sum(point * np.roll(point, -shift) ** 2)
