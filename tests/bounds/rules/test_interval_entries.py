"""Interval entries and quadratics: known constants to a per cent or better, never below."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
import sympy as sp
from bounds.settings import claimed, setting

from slomodel.bounds.norms.cubic_norm import trilinear_norm
from slomodel.bounds.rules.interval_entries import interval_entries
from slomodel.bounds.rules.majorant_series import constant_hessian, majorant_series

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.NonsmoothWarning")
INF = math.inf


@pytest.mark.parametrize(
    ("text", "centre", "radius", "L1", "L2", "loose"),
    [
        ("var x minimize 1/x", [1.0], 0.5, 16.0, 96.0, 1e-13),
        ("var x minimize x^1.5", [1.0], 0.5, 0.75 / math.sqrt(0.5), 0.375 / 0.5**1.5, 1e-13),
        ("var x minimize x^4", [2.0], 1.0, 108.0, 72.0, 1e-13),
        ("var x minimize exp(x)", [0.0], 1.0, math.e, math.e, 1e-13),
        ("var x minimize cos(x)", [0.0], 0.5, 1.0, math.sin(0.5), 1e-13),
        ("var x minimize softplus(x)", [0.0], 3.0, 0.25, math.sqrt(3) / 18, 0.02),
        ("var x minimize logcosh(x)", [0.0], 1.0, 1.0, 4 / math.sqrt(27), 0.02),
        ("var x minimize relu(x)^2", [0.5], 1.0, 2.0, INF, 1e-13),
        ("var x minimize relu(x)^3", [0.5], 1.0, 9.0, 6.0, 1e-13),
        ("var x minimize huber(x)", [0.5], 1.0, 1.0, INF, 1e-13),
        ("var x minimize x * log(x)", [1.0], 0.5, 2.0, 4.0, 1e-13),
        ("var x, y minimize x * y + x^3", [0.0, 0.0], 0.0, 1.0, 6.0, 1e-13),
        (
            "var x[3] minimize prod(x)",
            [0.0, 0.0, 0.0],
            1.0,
            math.sqrt(4 / 3),
            2 / math.sqrt(3),
            0.1,
        ),
        ("var x, y minimize x^2 * y", [0.0, 0.0], 1.0, 4 / math.sqrt(3), math.sqrt(16 / 3), 0.04),
        (
            "var x, y minimize sqrt(x^2 + y^2)",
            [3.0, 4.0],
            1.0,
            0.25,
            2 / math.sqrt(3) / 16,
            0.03,
        ),
        ("var x, y minimize x^2 / y", [0.0, 1.0], 0.0, 2.0, 4 / math.sqrt(3), 0.16),
    ],
)
def test_known_constants(text, centre, radius, L1, L2, loose):
    found = claimed(interval_entries, setting(text, centre), radius)
    assert found is not None
    assert L1 * (1 - 1e-14) <= found.L1 <= L1 * (1 + loose)
    assert L2 * (1 - 1e-14) <= found.L2
    assert L2 * (1 + loose) >= found.L2
    assert bool(found.reason) == math.isinf(found.L2)


@pytest.mark.parametrize(
    ("text", "centre", "radius", "words"),
    [
        ("var x minimize abs(x)", [0.5], 1.0, "`abs(x)` in line 1 has a kink"),
        ("var x minimize relu(x)", [1.0], 1.0, "has a kink"),
        ("var x minimize 1/x", [1.0], 1.0, "`1/x` in line 1 has no value"),
        ("var x minimize log(x)", [1.0], 1.0, "`log(x)` in line 1 has an unbounded"),
        ("var x minimize sqrt(x)", [1.0], 1.0, "unbounded derivative of order 1"),
        ("var x minimize x^1.5", [1.0], 1.0, "unbounded derivative of order 2"),
        ("var x minimize x^1.5", [1.0], 1.1, "has no value"),
        ("var x minimize exp(x)", [800.0], 1.0, "unbounded value"),
        ("var x, y minimize max(x, y)", [1.0, 1.0], 0.5, "has a kink"),
        ("var x minimize where(x > 0, x^2, 1)", [0.5], 1.0, "may jump"),
    ],
)
def test_no_bound_and_why(text, centre, radius, words):
    found = claimed(interval_entries, setting(text, centre), radius)
    assert found is not None
    assert (found.L1, found.L2) == (INF, INF)
    assert words in found.reason


def test_many_variables_are_left_to_other_strategies():
    assert claimed(interval_entries, setting("var x[7] minimize sum(x^4)", [1.0] * 7), 1.0) is None


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "text",
    [
        "var x, y minimize (1 - x)^2 + 100 * (y - x^2)^2",
        "var x, y minimize sin(x) * cos(y) + x * y^3",
        "var x, y minimize exp(x * y) / (1 + x^2)",
        "var x, y minimize atan(x + y^2) * tanh(y)",
    ],
)
@pytest.mark.parametrize("radius", [0.0, 1e-3, 0.1, 1.0])
def test_not_below_the_hessian_at_any_point_in_fifty_digits(text, radius):
    centre = np.array([0.4, -0.7])
    found = claimed(interval_entries, setting(text, list(centre)), radius)
    assert found is not None
    x, y = sp.symbols("x y")
    f = sp.sympify(text.split("minimize")[1].replace("^", "**"))
    H = sp.lambdify((x, y), sp.hessian(f, (x, y)), "mpmath")
    rng = np.random.default_rng(0)
    largest = mp.mpf(0)
    with mp.workdps(50):
        for angle in rng.uniform(0, 2 * np.pi, 40):
            share = mp.sqrt(mp.mpf(float(rng.integers(0, 5))) / 4)
            step = mp.mpf(radius) * share
            p = [mp.mpf(centre[0]) + step * mp.cos(angle), mp.mpf(centre[1]) + step * mp.sin(angle)]
            largest = max(largest, *map(abs, mp.eigsy(mp.matrix(H(*p)), eigvals_only=True)))
    assert largest <= found.L1
    assert 1.1 * largest >= found.L1 or radius == 1.0


def _largest_value(T: np.ndarray, rng: np.random.Generator) -> float:
    """A value that the form attains: power steps from many starts."""
    best = 0.0
    for _ in range(60):
        v = rng.standard_normal(len(T))
        for _ in range(40):
            w = np.einsum("ijk,j,k", T, v, v)
            v = w / max(np.linalg.norm(w), 1e-300)
        best = max(best, abs(np.einsum("ijk,i,j,k", T, v, v, v)))
    return best


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("scale", [1e-310, 1e-150, 1.0, 1e150])
def test_norms_of_trilinear_forms(n, scale):
    rng = np.random.default_rng(n)
    own = np.sort(np.indices((n, n, n)), axis=0)
    T = rng.standard_normal((4, n, n, n))[:, *own]
    bound = trilinear_norm(scale * T)
    for form, found in zip(T, bound, strict=True):
        least = _largest_value(form, rng)
        assert (1 - 1e-9) * least * scale <= found + 1e-322
        assert found <= (1 + 0.12) * least * scale + 1e-322


def test_the_norm_of_a_product_of_coordinates_is_exact():
    T = np.zeros((1, 3, 3, 3))
    for i, j, k in [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]:
        T[0, i, j, k] = 1.0
    assert trilinear_norm(T)[0] == pytest.approx(2 / math.sqrt(3), rel=1e-12)
    assert trilinear_norm(T)[0] >= 2 / math.sqrt(3) * (1 - 1e-15)
    assert trilinear_norm(np.full((1, 2, 2, 2), np.inf))[0] == INF
    assert trilinear_norm(np.zeros((1, 2, 2, 2)))[0] == 0.0


def test_quadratics_are_exact_at_any_radius():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((12, 8))
    asked = setting("dim m, n data A[m, n] var x[n] minimize sumsq(A @ x)", [0.0] * 8, A=A)
    with mp.workdps(50):
        M = mp.matrix(A.tolist())
        exact = 2 * max(mp.eigsy(M.T * M, eigvals_only=True))
    for radius in (0.0, 1.0, INF):
        found = claimed(majorant_series, asked, radius)
        assert found is not None
        assert exact <= found.L1 <= exact * (1 + 1e-5)
        assert found.L2 == 0.0


@pytest.mark.parametrize(
    "text", ["var x minimize x^3", "var x minimize abs(x)", "var x minimize huber(x)"]
)
def test_functions_that_are_not_quadratic_are_not_taken_for_it(text):
    assert constant_hessian(setting(text, [1.0])) is None


def test_a_ball_without_numbers_between_its_ends_is_answered():
    """One half of such a box does not reach the ball, and the other is the box again."""
    asked = setting("var x minimize where(x <= 1, x^2, 3 * x - 2)", [1.0 + 2.3e-16])
    found = claimed(interval_entries, asked, 5e-324)
    assert found is not None
    assert found.L1 == INF
