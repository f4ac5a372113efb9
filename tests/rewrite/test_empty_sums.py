"""Log-sum-exps that data leave without terms: zeros among transitions, weights and masks."""

from collections.abc import Callable

import numpy as np
import pytest

import slomodel
from slomodel.errors import SourceText
from slomodel.front.source import problem_of
from slomodel.rewrite.empty_sums import with_empty_sums
from slomodel.rewrite.facts import Facts

T, K = 6, 3
Y = np.array([0.1, -0.2, 0.5, 1.2, 1.1, 2.3])
P = np.array([[0.9, 0.1, 0.0], [0.0, 0.8, 0.2], [0.0, 0.0, 1.0]])
FIRST = np.array([1.0, 0.0, 0.0])
SEEN = np.array([[1, 0, 0], [1, 1, 1], [1, 1, 0], [0, 1, 1], [1, 1, 1], [1, 1, 1]], float)
CHAIN = """dim T, K
data y[T], P[K, K], p0[K], seen[T, K]
var mu[K]
let e[t in T, k in K] = -(y[t] - mu[k])^2 / 2
"""
MU = np.array([0.0, 1.0, 2.0])


def forward(mu: np.ndarray, first: np.ndarray, seen: np.ndarray) -> complex:
    """Minus the log of the likelihood, by probabilities."""
    emitted = np.exp(-((Y[:, None] - mu) ** 2) / 2) * seen
    state = emitted[0] * first
    for t in range(1, T):
        state = emitted[t] * (state @ P)
    return complex(-np.log(state.sum()))


def slopes(f: Callable[[np.ndarray], complex], x: np.ndarray) -> np.ndarray:
    """The gradient by complex steps."""
    return np.array([f(x + 1e-30j * e).imag / 1e-30 for e in np.eye(x.size)])


def check(model: slomodel.Model, f: Callable[[np.ndarray], complex], x: np.ndarray) -> None:
    """Value, gradient and Hessian product."""
    v, h = np.linspace(1.0, 2.0, x.size), 1e-4
    ahead = [slopes(f, x + s * h * v) for s in (1, -1, 2, -2)]
    curved = (8 * (ahead[0] - ahead[1]) - (ahead[2] - ahead[3])) / (12 * h)
    assert model.value(x) == pytest.approx(f(x).real, rel=1e-13)
    np.testing.assert_allclose(model.gradient(x), slopes(f, x), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(model.hvp(x, v), curved, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    "recurrence",
    [
        "f[t-1, :] + log(P[:, k]))",
        "f[t-1, j] + log(P[j, k]) for j in K)",
        "log(P[j, k] * exp(f[t-1, j])) for j in K)",
    ],
)
def test_transitions_of_probability_0(recurrence: str) -> None:
    """With these, states without predecessors have the logarithm -inf at early steps."""
    text = (
        f"{CHAIN}let f[t in T, k in K] = e[t, k] + logsumexp({recurrence}"
        " first e[0, k] + log(p0[k])\nminimize -logsumexp(f[T-1, :])"
    )
    data = {"y": Y, "P": P, "p0": FIRST}
    model = slomodel.compile(text.replace(", seen[T, K]", ""), data=data)
    check(model, lambda mu: forward(mu, FIRST, np.ones((T, K))), MU)


def test_weights_and_masks_of_0() -> None:
    text = (
        f"{CHAIN}let f[t in T, k in K] = log(sum(P[j, k] * exp(f[t-1, j]) for j in K)) + e[t, k]"
        " + log(seen[t, k]) first e[0, k] + log(seen[0, k] * p0[k])"
        "\nminimize -log(sum(exp(f[T-1, :])))"
    )
    weights = np.array([0.2, 0.3, 0.5])
    model = slomodel.compile(text, data={"y": Y, "P": P, "p0": weights, "seen": SEEN})
    check(model, lambda mu: forward(mu, weights, SEEN), MU)


@pytest.mark.parametrize(
    "inner", ["logsumexp(log(W[i, :]) + a)", "log(sum(W[i, j] * exp(a[j]) for j in n))"]
)
def test_rows_of_zeros(inner: str) -> None:
    W = np.array([[0.0, 0.0, 0.0], [0.5, 0.0, 2.0]])
    text = f"dim m, n\ndata W[m, n]\nvar a[n]\nminimize log(1 + sum(exp({inner}) for i in m))"
    model = slomodel.compile(text, data={"W": W}, backend="numpy")
    check(model, lambda a: complex(np.log(1 + np.sum(W @ np.exp(a)))), np.array([1.0, 2.0, 3.0]))


def test_two_terms() -> None:
    """A chain of two states as logsumexp of two, one of which cannot be reached at first."""
    text = (
        "dim T\ndata w[T]\nvar a, b\nlet f[t in T] = log(exp(f[t-1] + a) + exp(log(w[t]) + b))"
        " first log(w[0])\nminimize exp(f[T-1]) + a * b"
    )
    w = np.array([0.0, 0.0, 0.5, 1.0])
    model = slomodel.compile(text, data={"w": w}, backend="numpy")

    def f(x: np.ndarray) -> complex:
        state = w[0]
        for one in w[1:]:
            state = state * np.exp(x[0]) + one * np.exp(x[1])
        return complex(state + x[0] * x[1])

    check(model, f, np.array([0.3, -0.4]))


def test_only_data_with_zeros_add_choices() -> None:
    """Nor is the derivative by a variable that is 0 itself taken to be 0."""
    text = "dim n\ndata w[n]\nvar a[n]\nminimize exp(logsumexp(log(w) + a))"
    problem = problem_of(SourceText(text))
    (w,) = (declared.node for declared in problem.data)
    for values, is_same in (([1.0, 2.0], True), ([0.0, 2.0], False)):
        facts = Facts({"n": 2}, {w: np.array(values)})
        assert (with_empty_sums(problem.objective, facts)[0] is problem.objective) is is_same
    model = slomodel.compile(
        "var p[2], a\nminimize exp(logsumexp(log(p) + a)) + sumsq(p - 1)", backend="numpy"
    )
    with np.errstate(all="ignore"):
        assert np.isnan(model.gradient([0.0, 0.0, 0.5])[:2]).all()


def test_logarithms_of_products_summed_over_rows() -> None:
    """The scale of W @ exp(a) is one number, and so is that of its sum."""
    terms = "sum(sum(W[i, j] * exp(a[j]) for j in n) for i in m)"
    text = f"dim m, n\ndata W[m, n]\nvar a[n]\nminimize log(1 + {terms})"
    W = np.array([[0.5, 0.0], [1.0, 2.0], [0.0, 0.0]])
    model = slomodel.compile(text, data={"W": W}, backend="numpy")
    check(model, lambda a: complex(np.log(1 + np.sum(W @ np.exp(a)))), np.array([1.0, 2.0]))
