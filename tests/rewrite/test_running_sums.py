"""Sums over j < i as running sums: the values of the written sums, also far from 1."""

import numpy as np
import pytest

import slomodel
from slomodel.ir.expr import Recur, Scan
from slomodel.ir.walk import postorder
from slomodel.reference import evaluate

CONDITIONS = ("j < i", "j <= i", "j > i", "j >= i", "i < j", "i >= j")
TERMS = {
    "plain": ("y[j, k]^3", "sin(r[i, k])"),
    "weighted": ("w[j] * y[j, k]", "r[i, k]^2 * w[i]"),
    "exponentials": ("exp(y[j, k])", "cos(r[i, k])"),
    "logarithms": ("exp(y[j, k])", "log(1 + r[i, k])"),
    "quotients": ("exp(y[j, k])", "y[i, k] / (1 + r[i, k])"),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("terms", TERMS)
def test_the_sums_of_a_condition_on_two_indices(terms: str, condition: str) -> None:
    body, use = TERMS[terms]
    text = f"""dim n, K
    data w[n]
    var y[n, K]
    let r[i in n, k in K] = sum({body} for j in n if {condition})
    minimize sum({use} for i in n, k in K) + w[0]"""
    rng = np.random.default_rng(3)
    w, y, v = rng.normal(size=7), rng.normal(size=(7, 2)), rng.normal(size=14)
    model = slomodel.compile(text, data={"w": w}, dims={"K": 2}, backend="numpy")
    problem = model._problem
    every = postorder(problem.objective)
    assert any(isinstance(one, Recur | Scan) for one in every)
    assert any(one.shape == (*one.shape[:1],) * 2 for one in postorder(*problem.plain.values()))
    (plain,) = problem.plain.values()
    values = {
        one.node: a for one, a in zip((*problem.data, *problem.variables), (w, y), strict=True)
    }
    (wanted,) = evaluate([plain], values, {"n": 7, "K": 2})
    assert model.value(y.ravel()) == pytest.approx(float(wanted), rel=1e-13)

    def gradient(t: float) -> np.ndarray:
        return model.gradient(y.ravel() + t * v)

    slope = (model.value(y.ravel() + 1e-6 * v) - model.value(y.ravel() - 1e-6 * v)) / 2e-6
    assert gradient(0.0) @ v == pytest.approx(slope, rel=1e-6, abs=1e-6)
    np.testing.assert_allclose(
        model.hvp(y.ravel(), v), (gradient(1e-6) - gradient(-1e-6)) / 2e-6, rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("spelled", ["for j in n if j >= i", "for j in range(i, n)"])
@pytest.mark.parametrize("b", [0.3, 1e4, -1e4])
def test_logarithms_of_running_sums_neither_overflow_nor_underflow(spelled: str, b: float) -> None:
    text = f"""dim n
    data y[n]
    var b
    minimize sum(log(sum(exp(y[j] * b) {spelled})) for i in n)"""
    y = np.array([1.0, 5.0, -3.0, 2.0])
    wanted = np.logaddexp.accumulate(b * y[::-1]).sum()
    model = slomodel.compile(text, data={"y": y}, backend="numpy")
    assert model.value(np.array([b])) == pytest.approx(wanted, rel=1e-14)


@pytest.mark.parametrize("condition", ["j <= i", "j >= i", "i <= j"])
def test_log_sum_exps_of_a_condition_are_running_ones(condition: str) -> None:
    text = f"""dim n, K
    var y[n, K]
    let r[i in n, k in K] = logsumexp(y[j, k] for j in n if {condition})
    minimize sum(sin(r[i, k]) for i in n, k in K)"""
    model = slomodel.compile(text, dims={"n": 6, "K": 3}, backend="numpy")
    problem = model._problem
    assert any(isinstance(one, Recur) for one in postorder(problem.objective))
    for scale in (1.0, 1e4):
        y = scale * np.random.default_rng(0).normal(size=(6, 3))
        order = slice(None, None, 1 if condition == "j <= i" else -1)
        wanted = np.sin(np.logaddexp.accumulate(y[order], axis=0)).sum()
        assert model.value(y.ravel()) == pytest.approx(wanted, rel=1e-10)


def test_sums_that_are_no_running_sums() -> None:
    for term, condition in (
        ("exp(y[i] * y[j])", "j < i"),
        ("y[j]", "j < i + 1"),
        ("y[j]", "j < 2 * i"),
    ):
        text = (
            f"dim n = 4\nvar y[n]\nminimize sum(sum({term} for j in n if {condition})^2 for i in n)"
        )
        problem = slomodel.compile(text, backend="numpy")._problem
        assert not any(isinstance(one, Recur | Scan) for one in postorder(problem.objective))


@pytest.mark.parametrize("term", ["sqrt(x[j])", "log(x[j])", "exp(-1e3 * log(x[j]))"])
@pytest.mark.parametrize(("condition", "unread"), [("j < i", 2), ("j > i", 0)])
@pytest.mark.parametrize("use", ["sin({})", "log(3 + {}^2)"])
def test_derivatives_by_terms_that_no_sum_reads_are_0(
    term: str, condition: str, unread: int, use: str
) -> None:
    r = use.format(f"sum({term} for j in n if {condition})")
    model = slomodel.compile(f"dim n = 3\nvar x[n]\nminimize sum({r} for i in n)", backend="numpy")
    x = np.array([1.1, 0.9, 1.2])
    expected = model.gradient(x), model.hvp(x, np.ones(3))
    x[unread] = 0.0
    for found, wanted in zip((model.gradient(x), model.hvp(x, np.ones(3))), expected, strict=True):
        assert wanted[unread] == 0.0
        np.testing.assert_allclose(found, wanted, rtol=1e-14)
