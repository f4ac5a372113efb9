"""H(c) and D³f(c) along the same directions: known norms, and no attained value above."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bounds.settings import claimed, setting

import slomodel
from slomodel.bounds.centre import third_along
from slomodel.bounds.refinements.aligned import Split, aligned
from slomodel.bounds.rules.majorant_series import majorant_series, majorant_terms

FACTORS = "dim p, q, k data M[p, q] var U[p, k], V[k, q] minimize sumsq(U @ V - M)"


def test_the_split_that_a_cube_attains() -> None:
    """5x² + x³ + y²: the eigenvector x, apart from y."""
    found = aligned(setting("var x, y minimize 5 * x^2 + x^3 + y^2", [0.0, 0.0]))
    assert found is not None
    assert 0.99 * found.growth(0.5, 6.0) < 13.0 <= found.growth(0.5, 6.0)
    assert list(found.splits) == [True]  # -H(c) is below whatever D³f(c) adds
    split = found.splits[True][0]
    exact = {"first": 10.0, "other": 2.0, "own": 6.0, "mixed": 0.0}
    assert {name: getattr(split, name) for name in exact} == pytest.approx(exact, abs=1e-10)


def test_the_splits_that_a_product_attains() -> None:
    """x y z beside 5x² + 4.5y²: z turns x into y, inside one split and across the other."""
    text = "var x, y, z minimize 5 * x^2 + 4.5 * y^2 + x * y * z"
    found = aligned(setting(text, [0.0] * 3))
    assert found is not None
    assert found.growth(0.1, 6.0 / math.sqrt(27.0)) < 10.1
    by_other = {round(one.other): one for one in found.splits[True]}
    assert sorted(by_other) == [0, 9]
    for value in (by_other[9].mixed, by_other[0].own):
        assert 0.99 * value < 1.0 <= value
    assert by_other[9].own == pytest.approx(0.0, abs=1e-10)


def test_growth_is_the_least_eigenvalue_of_all_mixtures() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        a, d, own, mixed, third, r = np.abs(rng.standard_normal(6))
        found = Split(a, d - 1.0, own, mixed).growth(r, third)
        exact = a + r * third
        for t in (0.125, 0.25, 0.5, 0.75, 1.0):
            slope = t * own + (1.0 - t) * third
            form = [[a + r * slope, r * t * mixed], [r * t * mixed, d - 1.0 + r * third]]
            exact = min(exact, float(np.linalg.eigvalsh(form)[-1]))
        assert exact * (1.0 - 1e-14) <= found <= exact + 1e-13


@pytest.mark.parametrize("scale", [0.1, 1.0, 1e-120])
def test_no_direction_is_above(scale: float) -> None:
    """‖H(c) + D³f(c)[h]‖ over random h and along the vectors of the largest eigenvalues."""
    rng = np.random.default_rng(1)
    M = rng.standard_normal((4, 3))
    model = slomodel.compile(FACTORS, data={"M": M}, dims={"k": 2})
    centre = scale * rng.standard_normal(model.n)
    asked = model._part(centre)
    series = majorant_terms(asked)
    assert series is not None
    assert series.growth is not None
    third = 6.0 * series.sizes[3]
    T = third_along(asked, np.eye(model.n))
    assert T is not None
    H = np.stack([model.hvp(centre, e) for e in np.eye(model.n)])
    for radius in (0.0, 0.01, 0.3, 2.0):
        bound = series.growth(radius, third)
        assert bound <= (np.linalg.norm(H, 2) + radius * third) * (1.0 + 1e-12)
        most = 0.0
        for h in rng.standard_normal((20, model.n)):
            for _ in range(20):
                h *= radius / np.linalg.norm(h)
                values, V = np.linalg.eigh(H + np.tensordot(h, T.mid, 1))
                k = int(np.argmax(np.abs(values)))
                most = max(most, abs(float(values[k])))
                h = np.sign(values[k]) * (T.mid @ V[:, k] @ V[:, k]) + 1e-9 * h
        assert most <= bound <= 1.1 * most + 1e-12


def test_factors_round_zero_gain() -> None:
    """Where the residual decides H(c), the factors count along its directions alone."""
    rng = np.random.default_rng(2)
    M = rng.standard_normal((9, 2)) @ rng.standard_normal((2, 7))
    model = slomodel.compile(FACTORS, data={"M": M}, dims={"k": 2})
    asked = model._part(0.1 * rng.standard_normal(model.n))
    series = majorant_terms(asked)
    found = claimed(majorant_series, asked, 0.5)
    assert series is not None
    assert found is not None
    apart = series.hessian + 0.5 * 6.0 * series.sizes[3] + 0.25 * 12.0 * series.sizes[4]
    assert 0.98 * apart > found.L1
    assert found.trace[0].startswith("‖H(c) + D³f(c)[h]‖ ≤")
    assert found.trace[1].startswith("12 s_4 r^2 ≤")
