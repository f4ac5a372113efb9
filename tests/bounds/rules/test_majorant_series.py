"""Majorants of polynomial objectives: largest values on the sphere, coefficients, constants."""

import math

import numpy as np
import pytest
from bounds.settings import claimed, setting
from marks import only

from slomodel.bounds.norms.polynomial import (
    Polynomial,
    collected,
    gradient_square,
    largest_value,
    monomials_bound,
    unfolding_bound,
)
from slomodel.bounds.rules.jets.norm_graph import prepare
from slomodel.bounds.rules.majorant_series import majorant_series
from slomodel.bounds.rules.series.majorant import majorants, objective_majorant
from slomodel.ir.expr import Input

INF = math.inf


def polynomial(**coefficients: float) -> Polynomial:
    """From exponents as digits: `_21=3.0` is 3 t1² t2."""
    exponents = [[int(e) for e in word.lstrip("_")] for word in coefficients]
    return Polynomial(np.array(exponents), np.array(list(coefficients.values())))


def value(p: Polynomial, t: np.ndarray) -> float:
    return float(np.sum(p.coefficients * np.prod(t**p.exponents, axis=1)))


def seen(p: Polynomial, rng: np.random.Generator) -> float:
    """A value that p attains on the sphere, by many steps of t ← ∇p(t)/‖∇p(t)‖ with a shift."""
    best = 0.0
    for _ in range(20):
        t = np.abs(rng.standard_normal(p.blocks))
        for _ in range(200):
            t = t / np.linalg.norm(t)
            best = max(best, value(p, t))
            slopes = [
                np.sum(p.coefficients * p.exponents[:, b] * np.prod(t**p.exponents, 1)) / t[b]
                for b in range(p.blocks)
            ]
            t = np.maximum(np.array(slopes) + best * t, 1e-12)
    return best


# Each bound is exact for one of these, so that 1 % less would be below the largest value.
EXACT = {
    # t1² t2 is 2/√27 at most.
    "one monomial": (monomials_bound, polynomial(_21=1.0), 2.0 / math.sqrt(27.0)),
    "power of a sum": (
        unfolding_bound,
        polynomial(_40=1.0, _31=4.0, _22=6.0, _13=4.0, _04=1.0),
        4.0,
    ),
    "power of a sum by its gradient": (
        lambda p: math.sqrt(unfolding_bound(gradient_square(p))),
        polynomial(_30=1.0, _21=3.0, _12=3.0, _03=1.0),
        math.sqrt(8.0) * (1 - 1e-15),
    ),
    "sum of squares": (unfolding_bound, polynomial(_20=3.0, _11=2.0, _02=3.0), 4.0),
}


@pytest.mark.parametrize("name", EXACT)
def test_each_bound_is_exact_somewhere(name: str) -> None:
    bound, p, exact = EXACT[name]
    found = bound(p)
    assert 0.99 * found < exact <= found
    assert exact <= largest_value(p) <= found


def as_dict(p: Polynomial) -> dict[tuple[int, ...], float]:
    keys = (tuple(int(e) for e in exponent) for exponent in p.exponents)
    return dict(zip(keys, p.coefficients.tolist(), strict=True))


def test_the_square_of_the_gradient_bounds_its_own_square() -> None:
    """t1² t2² + t1⁴: p on the sphere is at most √max Σ(∂_b p/4)²."""
    p = polynomial(_22=1.0, _40=1.0)
    q = gradient_square(p)
    assert as_dict(q) == pytest.approx({(6, 0): 1.0, (4, 2): 1.25, (2, 4): 0.25})
    rng = np.random.default_rng(0)
    assert seen(p, rng) <= largest_value(p) <= math.sqrt(unfolding_bound(q)) * (1 + 1e-15)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("degree", range(1, 8))
@pytest.mark.parametrize("blocks", only(2, [1, 2, 3]))
def test_no_value_on_the_sphere_is_above(blocks: int, degree: int) -> None:
    rng = np.random.default_rng(10 * blocks + degree)
    for _ in range(3):
        rows = [rng.multinomial(degree, np.full(blocks, 1 / blocks)) for _ in range(6)]
        p = collected(np.array(rows), rng.random(6) * 10.0 ** rng.integers(-3, 4, 6))
        most = seen(p, rng)
        found = largest_value(p)
        assert most * (1 - 1e-12) <= found <= 1.5 * most
        if degree > 1:
            each = (monomials_bound(p), unfolding_bound(p))
            assert all(most * (1 - 1e-12) <= one for one in each)


def test_polynomials_of_no_size_or_all_sizes() -> None:
    zero = Polynomial(np.array([[2, 1]]), np.array([0.0]))
    assert largest_value(zero) == 0.0
    assert largest_value(Polynomial(np.array([[2, 1]]), np.array([INF]))) == INF
    many = Polynomial(np.eye(40, dtype=np.int64) * 4, np.ones(40))
    assert 1.0 <= largest_value(many) <= 41.0


COEFFICIENTS = {
    # of one unknown: the Taylor coefficients themselves
    "var x minimize x^4": ([2.0], {(2,): 24.0, (3,): 8.0, (4,): 1.0}),
    # ‖x‖⁴ at 0
    "var x[3] minimize sumsq(x)^2": ([0.0] * 3, {(4,): 1.0}),
    "var x, y minimize x * y": ([2.0, 3.0], {(1, 1): 1.0}),
    # ½‖uvᵀ‖² = ½‖u‖²‖v‖²
    "var u[2], v[3] minimize sumsq(u) * sumsq(v) / 2": (
        [3.0, 4.0, 0.0, 0.0, 2.0],
        {(2, 0): 2.0, (1, 1): 20.0, (0, 2): 12.5} | {(2, 1): 2.0, (1, 2): 5.0, (2, 2): 0.5},
    ),
}


@pytest.mark.parametrize("text", COEFFICIENTS)
def test_coefficients(text: str) -> None:
    centre, exact = COEFFICIENTS[text]
    found = majorants(prepare(setting(text, centre)))
    assert found is not None
    coefficients = as_dict(objective_majorant(found))
    present = {key: a for key, a in coefficients.items() if a > 1e-60}
    assert present == pytest.approx(exact, rel=1e-9)
    assert all(coefficients[key] >= exact[key] * (1 - 1e-15) for key in exact)


def test_only_factors_beside_what_varies_are_measured() -> None:
    """Of ‖UV - M‖² U, V and the residual: neither M nor U V, each of as many numbers."""
    rng = np.random.default_rng(1)
    text = "data M[30, 20] var U[30, 2], V[2, 20] minimize sumsq(U @ V - M)"
    asked = setting(text, list(rng.standard_normal(100)), M=rng.standard_normal((30, 20)))
    prepared = prepare(asked)
    assert majorants(prepared) is not None
    measured = {node for node, _ in prepared.measured}
    large = [n for n in prepared.order if prepared.scope.shape(n) == (30, 20)]
    assert len(large) == 4  # M, U V, U V - M, 2 (U V - M)
    assert len(measured.intersection(large)) == 1
    assert {node.name for node in measured if isinstance(node, Input)} == {"U", "V"}
    assert not set(prepared.roots) & set(prepared.centre)


@pytest.mark.parametrize("radius", [0.0, 1e-9, 0.5, 100.0, 1e100])
@pytest.mark.parametrize(
    ("text", "centre", "L1", "L2"),
    [
        ("var x minimize x^4", [2.0], lambda e: 12 * e**2, lambda e: 24 * e),
        ("var x minimize x^3 - x", [2.0], lambda e: 6 * e, lambda e: 6.0),
        ("var x[3] minimize sumsq(x)^2", [0.0, 2.0, 0.0], lambda e: 12 * e**2, lambda e: 24 * e),
        (
            "data w[3] var x[3] minimize sum(w * x^3)",
            [2.0, 0.0, 0.0],
            lambda e: 6 * e,
            lambda e: 6.0,
        ),
    ],
)
def test_constants_of_balls_that_the_series_attains(text, centre, L1, L2, radius) -> None:
    """Exact at e = ‖c‖ + r; a series 1 % smaller would be below the truth."""
    data = {"w": np.array([1.0, 0.5, 0.25])} if "data" in text else {}
    found = claimed(majorant_series, setting(text, centre, **data), radius)
    assert found is not None
    edge = 2.0 + radius
    assert 0.99 * found.L1 < L1(edge) <= found.L1 * (1 + 1e-15)
    assert 0.99 * found.L2 < L2(edge) <= found.L2 * (1 + 1e-15)
    assert found.reason == ""


@pytest.mark.parametrize(
    "text",
    [
        "var x minimize exp(x)",
        "var x minimize x^1.5",
        "var x minimize 1 / x",
        # Polynomials almost everywhere, whose gradients' graphs do not tell of jumps.
        "var x minimize sign(x)",
        "var x minimize where(x > 0, x^2, x^2 + 1)",
        "var x minimize huber(x)",
        "var x[2] minimize max(x)",
        "var x, y minimize max(x, y)",
        "var x minimize relu(x)^2",
    ],
)
@pytest.mark.filterwarnings("ignore::slomodel.NonsmoothWarning")
def test_what_is_not_a_polynomial_is_left_to_others(text: str) -> None:
    centre = [1.0, 2.0] if "y" in text or "[2]" in text else [1.0]
    assert claimed(majorant_series, setting(text, centre), 0.5) is None


def test_a_choice_by_data_is_a_polynomial() -> None:
    text = "data w[2] var x[2] minimize sum(where(w > 0, x^4, x^2))"
    found = claimed(majorant_series, setting(text, [0.0, 0.0], w=np.array([1.0, -1.0])), 1.0)
    assert found is not None
    assert found.L1 >= 12.0
    assert found.L2 >= 24.0


def test_a_polynomial_of_too_high_a_degree_is_left_to_others() -> None:
    text = "var x minimize (((x^8)^8) + 1)^2"
    assert claimed(majorant_series, setting(text, [1.0]), 0.5) is None


def test_the_trace_reports_each_term() -> None:
    found = claimed(majorant_series, setting("var x minimize x^4", [2.0]), 0.5)
    assert found is not None
    assert [line[:11] for line in found.trace[:3]] == ["‖H(c)‖ ≤ 48", "6 s_3 r ≤ 2", "12 s_4 r^2 "]
    assert [line[:11] for line in found.trace2] == ["6 s_3 ≤ 48.", "24 s_4 r ≤ "]
    assert found.enclosure.third_by.inequality == "Σ k(k-1)(k-2) s_k r^(k-3)"


def test_the_trace_reports_blocks_and_leaves_out_what_is_small() -> None:
    text = "var u[2], v minimize sumsq(u)^2 * v + 1e-9 * v^3"
    found = claimed(majorant_series, setting(text, [0.0, 0.0, 3.0]), 1.0)
    assert found is not None
    assert [line.split(", mostly of ")[-1] for line in found.trace2[:2]] == ["u^4", "u^4 v"]
    assert found.trace2[2].startswith("1 smaller terms ≤ 6")
