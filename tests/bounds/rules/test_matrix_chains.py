"""Gram form and chains of matrices: equal values, exact scalar chains, sound bounds."""

from __future__ import annotations

import numpy as np
import pytest
from bounds.fuzz import cases
from bounds.settings import setting

from slomodel.bounds import ObjectivePart
from slomodel.bounds.rules.majorant_series import majorant_terms
from slomodel.bounds.rules.series.chain_norms import chain_parts
from slomodel.bounds.structure.gram_form import in_gram_form
from slomodel.ir.walk import inputs
from slomodel.reference import evaluate

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")
CLOSE = 1e-9
DATA = "data X[3,40], Y[2,40] var A[2,3], B[2,2] "
CHAINS = {
    "by columns": DATA + "minimize sumsq(B @ A @ X - Y)",
    "by rows": DATA + "minimize sumsq(X' @ A' @ B' - Y') / 40 + sumsq(A)",
    "residual turned": DATA + "minimize 3 * sumsq(Y - B @ (A @ X))",
}


def asked(name: str) -> ObjectivePart:
    rng = np.random.default_rng(2)
    X, Y = rng.standard_normal((3, 40)), rng.standard_normal((2, 40))
    return setting(CHAINS[name], list(rng.standard_normal(10)), X=X, Y=Y)


@pytest.mark.parametrize("name", CHAINS)
def test_the_gram_form_has_the_same_values(name: str) -> None:
    one = asked(name)
    gram = in_gram_form(one)
    assert gram.objective is not one.objective
    rng = np.random.default_rng(0)
    for _ in range(5):
        at = {v: rng.standard_normal(np.shape(one.values[v])) for v in one.variables}
        values = {**one.values, **at}
        before, after = evaluate((one.objective, gram.objective), values, one.sizes)
        assert after == pytest.approx(before, rel=1e-12)


def test_few_samples_are_left_as_they_are() -> None:
    text = "data A[2,5], y[2] var x[5] minimize sumsq(A @ x - y)"
    one = setting(text, [0.0] * 5, A=np.ones((2, 5)), y=np.ones(2))
    assert in_gram_form(one) is one
    text = "data A[50,5], y[50] var x[5] minimize sumsq(A @ x - y)"
    one = setting(text, [0.0] * 5, A=np.ones((50, 5)), y=np.ones(50))
    assert set(inputs(in_gram_form(one).objective)) == set(inputs(one.objective))
    assert in_gram_form(one) is not one


def test_parts_of_a_chain_of_numbers_are_exact() -> None:
    """((w2 + h2) (w1 + h1) x - y)² with all of one sign."""
    text = "data X[1,1], Y[1,1] var A[1,1], B[1,1] minimize sumsq(B @ A @ X - Y)"
    one = setting(text, [2.0, 3.0], X=np.array([[0.5]]), Y=np.array([[-1.0]]))
    found = chain_parts(one, ["A", "B"])
    assert found is not None
    w1, w2, x, residual = 2.0, 3.0, 0.5, 4.0
    exact = {
        (2, 0): (w2 * x) ** 2,
        (0, 2): (w1 * x) ** 2,
        (1, 1): 2.0 * (residual * x + w1 * w2 * x * x),
        (2, 1): 2.0 * w2 * x * x,
        (1, 2): 2.0 * w1 * x * x,
        (2, 2): x * x,
    }
    for key, value in exact.items():
        assert value <= found[key] <= value * (1.0 + CLOSE), key


@pytest.mark.parametrize("name", CHAINS)
def test_chains_are_recognised_however_they_are_written(name: str) -> None:
    one = asked(name)
    found = chain_parts(one, ["A", "B"])
    assert found is not None
    factor = {"by columns": 1.0, "by rows": 1.0 / 40.0, "residual turned": 3.0}[name]
    same = chain_parts(asked("by columns"), ["A", "B"])
    assert same is not None
    for key, value in same.items():
        if sum(key) > 2:
            assert found[key] == pytest.approx(factor * value, rel=1e-9)


@pytest.mark.parametrize("name", CHAINS)
def test_nothing_attained_is_above_the_bound(name: str) -> None:
    one = in_gram_form(asked(name))
    assert majorant_terms(one) is not None
    for case in cases(one, np.random.default_rng(1), (1e-3, 1.0)):
        for which in ("L1", "L2"):
            assert not case.violates(which), (case.radius, case.bound, case.witnesses)
            assert case.ratio(which) > 0.25


@pytest.mark.parametrize(
    ("text", "centre", "X", "Y"),
    [
        ("A @ B @ X", [1e60, 1e150], 1e75, 1e-150),
        ("A @ B @ C @ X", [1e75, 1e150, 1e-150], 1e-100, 1e60),
        ("A @ B @ C @ X", [0.0, -1e80, 1e80], 1.0, -1.0),
        ("A @ B @ X", [1e-170, 1e-170], 1e-170, 1e-170),
    ],
)
@pytest.mark.sampled(6)
@pytest.mark.parametrize("radius", [0.0, 0.1, 1e-170])
def test_norms_of_any_scale_are_not_failures(
    text: str, centre: list[float], X: float, Y: float, radius: float
) -> None:
    names = ", ".join(f"{name}[1,1]" for name in "ABC"[: len(centre)])
    model = f"data X[1,1], Y[1,1] var {names} minimize sumsq({text} - Y)"
    one = setting(model, centre, X=np.array([[X]]), Y=np.array([[Y]]))
    for case in cases(one, np.random.default_rng(0), (radius,)):
        for which in ("L1", "L2"):
            assert not case.witness(which).value > case.bound[which] * (1.0 + CLOSE)
