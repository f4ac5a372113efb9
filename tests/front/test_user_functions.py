"""Functions of models: array parameters, dims of their own, local definitions; array literals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import slomodel
from slomodel.errors import SourceText
from slomodel.front.text.format import formatted

Array = NDArray[np.float64]
X = np.array([0.3, -0.7, 1.1])
A = np.arange(6.0).reshape(2, 3) / 4
DECLARED = "dim m, n\ndata A[m, n]\nvar x[n]\n"


def _rk4(v: Array) -> Array:
    def rate(u: Array) -> Array:
        return np.array([-u[0] * u[1], u[0] * u[1] - u[1]])

    k1 = rate(v)
    k2 = rate(v + k1 / 2)
    k3 = rate(v + k2 / 2)
    return v + (k1 + 2 * k2 + 2 * k3 + rate(v + k3)) / 6


VALUES: list[tuple[str, Callable[[Array], float]]] = [
    ("minimize sum([x[0], 2, x[1] * x[2]])", lambda x: x[0] + 2 + x[1] * x[2]),
    (
        "minimize sumsq([[x[0], 2], [3, x[1]]] @ [x[2], 1])",
        lambda x: (x[0] * x[2] + 2) ** 2 + (3 * x[2] + x[1]) ** 2,
    ),
    ("minimize sum([x, 2 * x, A[0, :]][1, :])", lambda x: 2 * x.sum()),
    ("minimize sum([x[i], i][1] * x[i] for i in n)", lambda x: x[1] + 2 * x[2]),
    (
        "minimize sum([[1, 2], [3, 4], [5, 6]]' @ [x[0], x[1], x[2]])",
        lambda x: x @ [3.0, 7.0, 11.0],
    ),
    ("minimize sumsq([[[x[0]]]])", lambda x: x[0] ** 2),
    (
        "fn layer(W[h, d], v[d]) = tanh(W @ v)\nminimize sum(layer(A, x))",
        lambda x: np.tanh(A @ x).sum(),
    ),
    (
        "fn f(v[d]) =\n  let k = sum(v) / d\n  let w[i in d] = (v[i] - k) * i\n  return sumsq(w)\n"
        "minimize f(x) + f(A[0, :]) + f(A[:, 0])",
        lambda x: sum(
            ((v - v.mean()) ** 2 * np.arange(len(v)) ** 2).sum() for v in (x, A[0], A[:, 0])
        ),
    ),
    (
        "fn shifted(v[k + 1], w[k]) = sumsq(v[1:] - w) * k\nminimize shifted(x, 2 * x[:-1])",
        lambda x: 2 * ((x[1:] - 2 * x[:-1]) ** 2).sum(),
    ),
    (
        "fn step(v[n], t) = sum(v) * t^2\nminimize sum(step(x, A)) + step(x, 3)",
        lambda x: x.sum() * ((A**2).sum() + 9),
    ),
    (
        "fn lp(y[...], mu[...], s[...]) = -sum(((y - mu) / s)^2 / 2 + log(s))\n"
        "minimize -lp(A, A[0, 1], 2) - lp(x[0], x[1], 1.5) - lp(x, 0, exp(x))",
        lambda x: float(
            (((A - A[0, 1]) / 2) ** 2 / 2 + np.log(2)).sum()
            + ((x[0] - x[1]) / 1.5) ** 2 / 2
            + np.log(1.5)
            + ((x / np.exp(x)) ** 2 / 2 + x).sum()
        ),
    ),
    (
        "fn all(y[...]) = sum(y) + mean(y) + max(y) + min(y) + prod(y) + sumsq(y) + logsumexp(y)\n"
        "minimize all(x[1])",
        lambda x: 6 * x[1] + x[1] ** 2,
    ),
    (
        "fn rate(v[2]) = [-v[0] * v[1], v[0] * v[1] - v[1]]\n"
        "fn rk4(v[2]) =\n  let k1 = rate(v)\n  let k2 = rate(v + k1 / 2)\n"
        "  let k3 = rate(v + k2 / 2);\n  let k4 = rate(v + k3)\n"
        "  return v + (k1 + 2 * k2 + 2 * k3 + k4) / 6\n"
        "minimize dot(rk4(rk4(x[:2])), [1, 3])",
        lambda x: _rk4(_rk4(x[:2])) @ [1.0, 3.0],
    ),
    (
        "fn row(v[k], i) = v[0] * i\nminimize sum(row(x, A[t, 0]) for t in m)",
        lambda x: A[:, 0].sum() * x[0],
    ),
    (
        "fn pair(t) = [t, t^2]\nminimize sum(pair(x[0])) + pair(3)[1]",
        lambda x: x[0] + x[0] ** 2 + 9,
    ),
    ("fn f(pi[...]) = let e = 2 * pi return sum(e)\nminimize f(x)", lambda x: 2 * x.sum()),
]


@pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")
@pytest.mark.parametrize(("text", "expected"), VALUES)
def test_values_and_gradients_on_all_targets(text: str, expected: Callable[[Array], float]) -> None:
    step = 1e-6 * np.eye(3)
    slopes = [(expected(X + h) - expected(X - h)) / 2e-6 for h in step]
    for backend in ("numpy", "numexpr", "c"):
        model = slomodel.compile(DECLARED + text, data={"A": A}, dims={"n": 3}, backend=backend)
        assert model.value(X) == pytest.approx(expected(X), rel=1e-14)
        np.testing.assert_allclose(model.gradient(X), slopes, rtol=1e-7, atol=1e-8)


@pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")
@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("fn f(v[2]) = sum(v)\nminimize f(x)", "E220", "`f` takes `v[2]` here, not [n]"),
        ("fn f(v[k], w[k]) = dot(v, w)\nminimize f(x, A[:, 0])", "E220", "it is `f(v[k], w[k])`"),
        ("fn f(v[n]) = sum(v)\nminimize f(A[:, 0])", "E220", "not [m]"),
        ("fn f(v[k]) = sum(v)\nminimize f(A)", "E220", "not [m, n]"),
        ("fn f(v[k]) = sum(v)\nminimize f(1)", "E220", "not scalar"),
        ("fn f(v[k], t) = v * t\nminimize sum(f(x, x))", "E222", "one number per element"),
        ("fn f(v[k]) = sum(v)\nminimize f(x, x)", "E208", "it is `f(v[k])`"),
        ("fn f(v) = let v = 2 return v\nminimize f(1)", "E202", "already has a `v`"),
        ("fn f(k[k]) = sum(k)\nminimize f(x)", "E202", "both a parameter and a dim"),
        ("fn f(v) = let a = b let b = v return a\nminimize f(1)", "E201", "unknown name `b`"),
        ("fn f(v) = let a = f(v) return a\nminimize f(1)", "E222", "calls itself"),
        ("minimize sum([x, 1])", "E204", "need one shape: [n] and scalar"),
        ("minimize sum([[1, 2], [3]])", "E204", "[2] and [1]"),
        ("let z = [1, 2]\nminimize x[0] + z", "E213", "did you mean"),
    ],
)
def test_messages(text: str, code: str, words: str) -> None:
    with pytest.raises(slomodel.SlomodelError) as caught:
        slomodel.compile(DECLARED + text)
    (found,) = caught.value.diagnostics
    assert found.code == code
    assert words in str(found)


def test_reading_continues_behind_the_return_after_a_mistake() -> None:
    text = "var x\nfn f(t) =\n  let a = 2x\n  let b = a a\n  return a\nlet c = = 2\nminimize x"
    with pytest.raises(slomodel.SlomodelError) as caught:
        slomodel.compile(text)
    assert [d.span.line for d in caught.value.diagnostics if d.span] == [3, 6]


def test_layout_of_definitions_in_a_function() -> None:
    text = "fn f(v[2]) = let a=[v[0]+1,2] # first\nlet b = a; return a+\nb let c=f([1 ,2])'"
    wanted = (
        "fn   f(v[2]) =\n  let a = [v[0] + 1, 2]  # first\n  let b = a\n  return a +\n       b\n"
        "let  c = f([1, 2])'\n"
    )
    assert formatted(SourceText(text)) == wanted
    assert formatted(SourceText(wanted)) == wanted
