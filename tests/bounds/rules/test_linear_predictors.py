"""Sums over elements: recognition, exact constants, and sound bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bounds.fuzz import cases
from bounds.settings import claimed, setting
from bounds.test_sound import alone

from slomodel.bounds.arithmetic.interval import Interval, point
from slomodel.bounds.arithmetic.midpoint_radius import Bounded
from slomodel.bounds.norms.cubic_norm import cubic_norm
from slomodel.bounds.norms.element_derivatives import (
    Weighted,
    fourth_order,
    second_order,
    third_order,
)
from slomodel.bounds.norms.fourth_powers import cubic_by_fourth_powers, fourth_powers
from slomodel.bounds.norms.loewner import (
    Rows,
)
from slomodel.bounds.rules.linear_predictors import linear_predictors
from slomodel.bounds.structure.linear_predictors import elements

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")
CLOSE = 1e-9


def rows_of(A: np.ndarray) -> Rows:
    return Rows.of(point(A))


def between(low: list[float], high: list[float]) -> Interval:
    return Interval(np.array(low), np.array(high))


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("var x[4] minimize sum(x^4)", (1,)),
        ("data A[6,4] var x[4] minimize mean(softplus(A @ x)) + sumsq(x)", (1, 1)),
        ("data A[6,4] var x[4] minimize sumsq((A @ x)^2 - 1) / 4", (1,)),
        ("var x[4] minimize sum((x[i+1] - x[i]^2)^2 for i in range(3))", (2,)),
        ("data A[6,4] var x[4] minimize sum(where((A @ x)^2 <= 2, (A @ x)^4, 4))", (1,)),
        ("data t[6] var a, w, p minimize sum((a * sin(w * t + p))^2)", (2,)),
        ("data A[6,4] var x[4] minimize sum(logcosh(x[i] - x[j]) for i in 4, j in 4)", (1,)),
    ],
)
def test_the_parts_and_their_arguments(text: str, arguments: tuple[int, ...]) -> None:
    n = 3 if "var a" in text else 4
    data = {"A": np.ones((6, 4)), "t": np.ones(6)}
    one = setting(text, [0.5] * n, **{k: v for k, v in data.items() if f"data {k}" in text})
    found = elements(one.objective, one.variables)
    assert found is not None
    assert tuple(len(part.arguments) for part in found) == arguments


@pytest.mark.parametrize(
    "text",
    ["var x[4] minimize prod(x)", "var x[4] minimize exp(sumsq(x))", "var x[4] minimize max(x)"],
)
def test_other_objectives_are_left_alone(text: str) -> None:
    one = setting(text, [0.5] * 4)
    assert claimed(linear_predictors, one, 1.0) is None


A3 = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0], [2.0, 0.0, 1.0]])
ROUND = "(x[0]^2 - 1)^2 + " + " + ".join(
    f"((0.5 * x[0] {sign} {math.sqrt(0.75)!r} * x[1])^2 - 1)^2" for sign in "+-"
)
"""Three rows round the circle: Σ (a·v)² = 3/2 and Σ (a·v)⁴ = 9/8 for every unit v."""


@pytest.mark.parametrize(
    ("text", "centre", "radius", "L1", "L2"),
    [
        ("var x[3] minimize sum(x^4)", [1.0, 0.5, 0.0], 0.5, 27.0, 36.0),
        ("var x[3] minimize sum(x^2) - 2 * sum(x)", [1.0, 0.5, 0.0], 0.5, 2.0, 0.0),
        ("var x[3] minimize sum(x^3)", [1.0, 0.5, 0.0], 1.0, 12.0, 6.0),
        ("var x[2] minimize sum(-cos(x))", [0.0, 0.0], 0.5, 1.0, math.sin(0.5)),
        ("var x[2] minimize 3 * (x[0] + x[1])^4", [0.0, 0.0], 1.0, 144.0, 288.0),
        ("var x[2] minimize x[0] * x[1]^2", [0.0, 0.0], 0.0, 0.0, math.sqrt(16.0 / 3.0)),
    ],
)
def test_known_constants(
    text: str, centre: list[float], radius: float, L1: float, L2: float
) -> None:
    found = claimed(linear_predictors, setting(text, centre), radius)
    assert found is not None
    assert L1 <= found.L1 <= L1 * (1.0 + CLOSE) + CLOSE
    assert L2 <= found.L2 <= L2 * (1.0 + CLOSE) + CLOSE


@pytest.mark.parametrize("sign", ["", "-"])
def test_each_end_of_the_spectrum_goes_alone(sign: str) -> None:
    """H = -6 I at the centre, to which 12 r² Σ (a·d)² (a·v)² adds 13.5 at most; by quartic forms,
    since the parts are apart.
    """
    found = claimed(
        linear_predictors, setting(f"var x[2] minimize {sign}({ROUND})", [0.0, 0.0]), 1.0
    )
    assert found is not None
    assert 7.5 <= found.L1 <= 7.5 * 1.002
    assert 27.0 <= found.L2 <= 27.0 * 1.002


def test_a_kink_and_a_jump_have_their_reasons() -> None:
    found = claimed(linear_predictors, setting("var x[3] minimize sum(abs(x))", [0.1] * 3), 1.0)
    assert found is not None
    assert math.inf == found.L1
    assert "`abs(x)` in line 1 has a kink" in found.reason
    found = claimed(linear_predictors, setting("var x[3] minimize sum(huber(x))", [0.5] * 3), 1.0)
    assert found is not None
    assert pytest.approx(1.0, rel=CLOSE) == found.L1
    assert math.inf == found.L2


def test_both_sides_of_loewners_order_are_exact() -> None:
    """a aᵀ with weights in [low, high]: the larger of high and -low, times ‖a‖²."""
    rows = (rows_of(np.array([[3.0, 4.0]])),)
    for low, high, largest in ((-1.0, 2.0, 50.0), (-3.0, 2.0, 75.0), (1.0, 2.0, 50.0)):
        bound = second_order([Weighted(rows, {(0, 0): between([low], [high])})])
        assert largest <= bound <= largest * (1.0 + CLOSE)


def test_a_mixed_derivative_counts_once_for_both_arguments() -> None:
    """[[0, t], [t, 0]], |t| <= 5 over unit rows has norm 5, over lengths 2 and 3 30."""
    zero = between([0.0], [0.0])
    for lengths, largest in (((1.0, 1.0), 5.0), ((2.0, 3.0), 30.0)):
        rows = tuple(rows_of(length * np.eye(2)[k : k + 1]) for k, length in enumerate(lengths))
        ranges = {(0, 0): zero, (1, 1): zero, (0, 1): between([-5.0], [5.0])}
        bound = second_order([Weighted(rows, ranges)])
        assert largest <= bound <= largest * (1.0 + CLOSE)


def test_third_and_fourth_orders_are_exact_for_one_element() -> None:
    rows = (rows_of(np.array([[3.0, 4.0, 0.0]])),)
    ranges = {(0, 0, 0): between([1.0], [3.0]), (0, 0, 0, 0): between([-2.0], [1.0])}
    by_size, by_middles = third_order([Weighted(rows, ranges)])
    assert 375.0 <= by_size <= 375.0 * (1.0 + CLOSE)
    assert 375.0 <= by_middles <= 375.0 * (1.0 + CLOSE)
    assert 1250.0 <= fourth_order([Weighted(rows, ranges)]) <= 1250.0 * (1.0 + CLOSE)


@pytest.mark.parametrize("m", [5, 9])
def test_fourth_powers_of_rows_round_the_circle(m: int) -> None:
    """Σ cos⁴(t - t_k) = 3m/8 whatever t; by rows, and by pairs of variables."""
    angles = np.pi * np.arange(m) / m
    A = np.stack([np.cos(angles), np.sin(angles)], 1)
    bound = fourth_powers(rows_of(A), np.ones(m))
    assert 3 * m / 8 <= bound * (1.0 + 1e-14)
    assert bound <= 3 * m / 8 * (1.0 + CLOSE)


def test_fourth_powers_are_not_below_what_is_attained() -> None:
    rng = np.random.default_rng(0)
    for n, m in ((3, 40), (20, 15), (12, 200)):
        A, d = rng.standard_normal((m, n)), rng.random(m)
        bound, largest = fourth_powers(rows_of(A), d), 0.0
        for v in rng.standard_normal((30, n)):
            for _ in range(50):
                v = A.T @ (d * (A @ v) ** 3)
                v = v / np.linalg.norm(v)
            largest = max(largest, float(np.sum(d * (A @ v) ** 4)))
        assert largest <= bound <= 4.0 * largest


def test_third_powers_of_one_row() -> None:
    bound = cubic_by_fourth_powers(rows_of(np.array([[3.0, 4.0]])), np.array([2.0]))
    assert 250.0 <= bound <= 250.0 * (1.0 + CLOSE)


@pytest.mark.parametrize("n", [34, 64])
def test_cubic_norms_of_many_variables(n: int) -> None:
    """e⊗e⊗e has norm 1, and sym(w ⊗ I) has norm ‖w‖."""
    e = np.zeros((n, n, n))
    e[0, 0, 0] = 1.0
    assert 1.0 <= cubic_norm(Bounded(e, 0.0)) <= 1.0 + CLOSE
    w, eye = np.linspace(-1.0, 2.0, n), np.eye(n)
    T = sum(np.einsum(spec, w, eye) for spec in ("i,jk->ijk", "j,ik->ijk", "k,ij->ijk")) / 3.0
    length = float(np.linalg.norm(w))
    assert (
        length * (1.0 - 1e-14) <= cubic_norm(Bounded(np.asarray(T), 0.0)) <= length * (1.0 + 1e-6)
    )


def test_cubic_norms_of_sums_of_cubes() -> None:
    """Σ e_i⊗e_i⊗e_i has norm 1; of any rows none is below what is attained."""
    n = 34
    T = np.zeros((n, n, n))
    T[np.arange(n), np.arange(n), np.arange(n)] = 1.0
    assert 1.0 <= cubic_norm(Bounded(T, 0.0)) <= 1.0 + 2e-3
    rng = np.random.default_rng(0)
    A = rng.standard_normal((80, n))
    T = np.einsum("mi,mj,mk->ijk", A, A, A)
    largest = 0.0
    for v in rng.standard_normal((20, n)):
        for _ in range(60):
            v = A.T @ (A @ v) ** 2
            largest = max(largest, float(np.sum((A @ (v / np.linalg.norm(v))) ** 3)))
            v = v / np.linalg.norm(v)
    assert largest <= cubic_norm(Bounded(T, 0.0)) <= 2.0 * largest


@pytest.mark.parametrize(
    "text",
    [
        "data A[6,4] var x[4] minimize mean(softplus(A @ x)) + sum(x^2 / (1 + x^2))",
        "data A[6,4] var x[4] minimize sumsq((A @ x)^2 - 1) / 4",
        "data A[6,4] var x[4] minimize sum(where((A @ x)^2 <= 2, 2 - (2 - (A @ x)^2)^3, 2))",
        "data A[6,4] var x[4] minimize sum(tanh(x[i+1]) * cos(x[i]) for i in range(3))",
        "data A[6,4] var x[4] minimize sum((x[i+1] - x[i]^2)^2 for i in range(3))",
    ],
)
def test_nothing_attained_is_above_a_claim(text: str) -> None:
    rng = np.random.default_rng(1)
    one = setting(text, list(rng.standard_normal(4)), A=rng.standard_normal((6, 4)))
    for case in cases(one, rng, (0.0, 0.01, 1.0), alone(linear_predictors)):
        for which in ("L1", "L2"):
            assert not case.violates(which), (case.radius, case.bound, case.witnesses)
            assert case.ratio(which) > 0.1 or case.radius == 1.0


@pytest.mark.parametrize(("slope", "largest"), [(1.0, 1.0), (-2.0, 4.0), (0.5, 0.25)])
def test_a_function_of_an_affine_argument_turns_where_it_does(slope: float, largest: float) -> None:
    """The third derivative of softplus(s u + 1) is s³ σ'', |σ''| <= √3/18."""
    text = f"var x[2] minimize sum(softplus({slope} * x + 1))"
    found = claimed(linear_predictors, setting(text, [0.0, 0.0]), 20.0)
    assert found is not None
    assert largest / 4.0 <= found.L1 <= largest / 4.0 * (1.0 + CLOSE)
    third = abs(slope) ** 3 * math.sqrt(3.0) / 18.0
    assert third <= found.L2 <= third * (1.0 + CLOSE)
