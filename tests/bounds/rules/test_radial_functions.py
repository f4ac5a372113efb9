"""Functions of lengths of affine arrays: their two curvatures over the range of the length."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bounds.settings import claimed, setting

import slomodel
from slomodel.bounds.rules.radial_functions import radial_functions
from slomodel.bounds.structure.radial_functions import radial_sums

HEAD = "dim g, m, n data A[g, m, n], b[g, m] var x[n] minimize "
SQUARES = "sum((A[k, i, :] @ x - b[k, i])^2 for i in m)"
# φ of a squared length s, with φ', φ'' and φ''' at s
FUNCTIONS = {
    "log1p(S)": lambda s: (1 / (1 + s), -((1 + s) ** -2.0), 2 * (1 + s) ** -3.0),
    "sqrt(S)": lambda s: (0.5 * s**-0.5, -0.25 * s**-1.5, 0.375 * s**-2.5),
    "exp(-S / 4)": lambda s: tuple((-0.25) ** k * math.exp(-s / 4) for k in (1, 2, 3)),
    "3 * (2 + S)^-1": lambda s: (-3 * (2 + s) ** -2.0, 6 * (2 + s) ** -3.0, -18 * (2 + s) ** -4.0),
}


def derivatives(text: str, A: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """H (n, n) and D³ (n, n, n) of Σ_k φ(‖u_k‖²) where u_k has the Jacobian A_k."""
    n = A.shape[2]
    H, T = np.zeros((n, n)), np.zeros((n, n, n))
    for J, own in zip(A, u, strict=True):
        first, second, third = FUNCTIONS[text](own @ own)
        g, G = 2 * J.T @ own, 2 * J.T @ J
        H += first * G + second * np.outer(g, g)
        T += third * np.einsum("i,j,k->ijk", g, g, g)
        T += second * sum(np.einsum(f"ij,k->{order}", G, g) for order in ("ijk", "ikj", "kji"))
    return H, T


@pytest.mark.filterwarnings("ignore::slomodel.errors.NonsmoothWarning")
@pytest.mark.parametrize("text", FUNCTIONS)
@pytest.mark.parametrize("radius", [0.01, 1.0])
def test_no_point_of_the_ball_exceeds_the_bounds(text: str, radius: float) -> None:
    rng = np.random.default_rng(3)
    A, b, x = rng.standard_normal((5, 6, 4)), 3.0 + rng.random((5, 6)), rng.standard_normal(4)
    own = setting(f"{HEAD} sum({text.replace('S', SQUARES)} for k in g)", list(x), A=A, b=b)
    found = claimed(radial_functions, own, radius)
    above, below = found.enclosure.over.second
    most = np.zeros(2)
    for _ in range(200):
        d = rng.standard_normal(4)
        y = x + radius * d / np.linalg.norm(d) * rng.random() ** 0.25
        H, T = derivatives(text, A, A @ y - b)
        ends, v = np.linalg.eigvalsh(H), rng.standard_normal(4)
        assert -below <= ends[0] + 1e-12
        assert ends[-1] - 1e-12 <= above
        v /= np.linalg.norm(v)
        most = np.maximum(most, [np.abs(ends).max(), abs(np.einsum("ijk,i,j,k", T, v, v, v))])
    assert most[0] <= found.L1 < np.inf
    assert most[1] <= found.L2 < np.inf


@pytest.mark.filterwarnings("ignore::slomodel.errors.NonsmoothWarning")
@pytest.mark.parametrize(
    "spelling",
    [
        "norm2(A[0, :, :] @ x - b[0, :])",
        "sqrt(dot(A[0, :, :] @ x - b[0, :], A[0, :, :] @ x - b[0, :]))",
    ],
)
def test_other_terms_stand_beside_lengths(spelling: str) -> None:
    rng = np.random.default_rng(4)
    A, b = rng.standard_normal((1, 6, 4)), 3.0 + rng.random((1, 6))
    text = f"{HEAD} {spelling} + sumsq(x) / 2 + sum(softplus(x))"
    found = claimed(radial_functions, setting(text, [0.0] * 4, A=A, b=b), 1.0)
    steepest = np.linalg.norm(A[0], 2) ** 2 / (np.linalg.norm(b[0]) - np.linalg.norm(A[0], 2))
    assert 1.25 + steepest >= found.L1


@pytest.mark.filterwarnings("ignore::slomodel.errors.NonsmoothWarning")
@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        ("cosh(T)", math.cosh(1.0), math.sinh(1.0)),
        ("logcosh(T)", 1.0, 4.0 / 27.0**0.5),
        ("log(cosh(T))", 1.0, 4.0 / 27.0**0.5),
        ("T * atan(T)", 2.0, 2.07),
        ("cosh(2 * T) / 4", math.cosh(2.0), 2.0 * math.sinh(2.0)),
        ("(T - log1p(T))", 1.0, 2.0),
        ("T^2 / (1 + T)", 2.0, 6.0),
        ("max(T - 0.5, 0)^3", 3.0, 6.0),
    ],
)
def test_functions_level_at_a_length_that_may_vanish(
    text: str, first: float, second: float
) -> None:
    """Over the unit ball about 0, sup |F''| and sup |F'''|, up to the enclosure of the latter."""
    text = f"var x[3] minimize {text.replace('T', 'norm2(x)')}"
    own = setting(text, [0.0] * 3)
    found = claimed(radial_functions, own, 1.0)
    assert first <= found.L1 <= 1.01 * first
    assert 0.75 * second <= found.L2 <= 1.5 * second


@pytest.mark.filterwarnings("ignore::slomodel.errors.NonsmoothWarning")
def test_a_length_that_may_vanish_has_a_kink() -> None:
    found = claimed(radial_functions, setting("var x[4] minimize norm2(x)", [0.5] * 4), 2.0)
    assert np.inf == found.L1
    assert "kink" in found.reason


@pytest.mark.filterwarnings("ignore::slomodel.errors.NonsmoothWarning")
@pytest.mark.parametrize("text", ["abs(T - 0.5)", "T^1.5", "T * max(T, 0.5)"])
def test_other_kinks_stay(text: str) -> None:
    own = setting(f"var x[3] minimize {text.replace('T', 'norm2(x)')}", [0.1, 0.0, 0.0])
    assert np.inf == claimed(radial_functions, own, 1.0).L1


@pytest.mark.filterwarnings("ignore::slomodel.errors.NonsmoothWarning")
@pytest.mark.parametrize(
    ("text", "L1"),
    [
        ("(2 * x[0]^2 + (x[1] + x[2])^2 / 4 + x[3]^2)^1.5", 6.0 * 2.0**1.5),
        ("sum((x[2*i]^2 + x[2*i+1]^2)^1.5 for i in 2)", 6.0),
        ("sumsq(x) * norm2(x) + x[0] * x[1]", 6.0 + 1.0),
        ("(sumsq(x) / 4 + x[0]^2 + 2 * sumsq(x[1:3]) / 3)^1.5", 6.0 * 1.25**1.5),
    ],
)
def test_sums_of_squares_in_other_spellings(text: str, L1: float) -> None:
    """Over the unit ball at 0."""
    found = claimed(radial_functions, setting(f"var x[4] minimize {text}", [0.0] * 4), 1.0)
    assert L1 * (1.0 - 1e-12) <= found.L1 <= 1.01 * L1


@pytest.mark.filterwarnings("ignore::slomodel.errors.NonsmoothWarning")
def test_a_quadratic_in_many_variables_stands_beside_lengths() -> None:
    H = np.diag(np.linspace(-2.0, 1.0, 450))
    text = "data H[450, 450] var x[450] minimize norm2(x)^3 / 6 + x @ H @ x / 2"
    found = claimed(radial_functions, setting(text, [0.0] * 450, H=H), 1.0)
    assert 3.0 <= found.L1 <= 3.01
    assert 1.0 <= found.L2 <= 1.01


def test_squares_alone_are_no_such_sum() -> None:
    assert radial_sums(setting("var x[4] minimize sumsq(x) + sum(exp(x))", [0.5] * 4)) is None


@pytest.mark.filterwarnings("ignore::slomodel.errors.NonsmoothWarning")
@pytest.mark.parametrize("even", ["T * tanh(T)", "tanh(T)^2", "T * sinh(T) / cosh(T)"])
@pytest.mark.parametrize("radius", [0.0, 1e-6, 0.1])
def test_derivatives_of_pieces_say_nothing_of_the_centre_at_length_0(
    even: str, radius: float
) -> None:
    """The graph has a kink at 0, where its derivatives are those of a piece: f has H(0) = 2 I."""
    own = even.replace("T", "norm2(x)")
    centre = [0.0] * 3
    for text, low, high in (
        (f"var x[3] minimize {own}", 2.0, 2.0),
        (f"var x[3] minimize sumsq(x) / 2 - {own}", -1.0, -1.0),
        (f"var x[3], y[3] minimize {own} + sum(exp(y)) / 4 + x[0] * y[0]", 0.0, 2.0),
    ):
        model = slomodel.compile(text, backend="numpy")
        found = model.bounds(centre * (model.n // 3), radius, effort="quick")
        assert max(abs(low), abs(high)) <= found.L1
        assert found.lower <= low
        assert found.upper >= high
    concave = slomodel.compile(f"var x[3] minimize sumsq(x) / 2 - {own}", backend="numpy")
    assert concave.convex_within(centre, effort="quick") == 0.0
