"""Sums of powers of vectors: recognised in any spelling, exact without cancellation."""

from __future__ import annotations

import numpy as np
import pytest
from bounds.fuzz import cases
from bounds.settings import claimed, setting

from slomodel.bounds import ObjectivePart
from slomodel.bounds.rules.symmetric_powers import symmetric_powers, symmetric_terms
from slomodel.bounds.structure.sums_of_squares import power_sum

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")
TENSOR = "data T[3,3,3] var X[2,3] let P[a in 3, b in 3, c in 3] = "
CUBES = {
    "one product": TENSOR + "sum(X[i,a] * X[i,b] * X[i,c] for i in 2) minimize sumsq(T - P)",
    "in another order": TENSOR + "sum(X[i,c] * (X[i,a] * X[i,b]) for i in 2) minimize sumsq(P - T)",
    "elements": TENSOR + "sum(X[i,a] * X[i,b] * X[i,c] for i in 2) "
    "minimize 3 * sum((P[a,b,c] - T[a,b,c])^2 for a in 3, b in 3, c in 3) / 3 + sumsq(X)",
    "columns": TENSOR.replace("X[2,3]", "X[3,2]")
    + "sum(X[a,i] * X[b,i] * X[c,i] for i in 2) minimize sumsq(T - P)",
}


def cubes(name: str) -> ObjectivePart:
    rng = np.random.default_rng(3)
    T, X = rng.standard_normal((3, 3, 3)), rng.standard_normal((2, 3))
    centre = X.T if name == "columns" else X
    return setting(CUBES[name], list(centre.ravel()), T=T)


@pytest.mark.parametrize("name", CUBES)
def test_it_is_recognised_however_it_is_written(name: str) -> None:
    found, same = symmetric_terms(cubes(name)), symmetric_terms(cubes("one product"))
    assert found is not None
    assert same is not None
    for k in range(3, 7):
        assert found.sizes[k] == pytest.approx(same.sizes[k], rel=1e-6)


@pytest.mark.parametrize(
    ("text", "unknowns"),
    [
        ("data T[3,3] var X[2,3], Y[2,3] minimize sumsq(T - X' @ Y)", 12),
        ("data T[3,3] var X[3,3] minimize sumsq(T - X @ X)", 9),
        (
            "data T[3,3], w[2] var X[2,3] "
            "minimize sum((sum(w[i] * X[i,a] * X[i,b] for i in 2) - T[a,b])^2 for a in 3, b in 3)",
            6,
        ),
    ],
)
def test_other_products_are_left_alone(text: str, unknowns: int) -> None:
    data = {"T": np.ones((3, 3))} | ({"w": np.ones(2)} if "w[2]" in text else {})
    assert power_sum(setting(text, [1.0] * unknowns, **data)) is None


def test_one_number_is_exact() -> None:
    """(x³ + 1)² round 1: x⁶ + 2 x³, with no sign that cancels."""
    terms = "(x[a] * x[b] * x[c] - T[a,b,c])^2 for a in 1, b in 1, c in 1"
    text = f"data T[1,1,1] var x[1] minimize sum({terms})"
    for radius in (0.0, 0.5, 2.0):
        found = claimed(symmetric_powers, setting(text, [1.0], T=-np.ones((1, 1, 1))), radius)
        assert found is not None
        x = 1.0 + radius
        for value, exact in (
            (found.L1, 30.0 * x**4 + 12.0 * x),
            (found.L2, 120.0 * x**3 + 12.0),
        ):
            assert exact <= value <= exact * (1.0 + 1e-12)


def test_only_the_symmetric_part_of_the_data_counts() -> None:
    rng = np.random.default_rng(0)
    text = CUBES["one product"]
    T, X = rng.standard_normal((3, 3, 3)), list(rng.standard_normal(6))
    mean = sum(np.transpose(T, p) for p in PERMUTATIONS) / 6.0
    found, same = (claimed(symmetric_powers, setting(text, X, T=one), 0.5) for one in (T, mean))
    assert found is not None
    assert same is not None
    for one, other in ((found.L1, same.L1), (found.L2, same.L2)):
        assert one == pytest.approx(other, rel=1e-12)


PERMUTATIONS = ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))


@pytest.mark.parametrize("name", CUBES)
def test_nothing_attained_is_above_the_bound(name: str) -> None:
    def ask(one: ObjectivePart, radius: float) -> tuple[float, float]:
        found = claimed(symmetric_powers, one, radius)
        assert found is not None
        return found.L1, found.L2

    for case in cases(cubes(name), np.random.default_rng(1), (0.0, 1e-3, 1.0), ask):
        for which in ("L1", "L2"):
            assert not case.violates(which), (case.radius, case.bound, case.witnesses)
            assert case.ratio(which) > (0.7 if name == "one product" else 0.5)
