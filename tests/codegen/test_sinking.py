"""Target `c`: values that later loops compute again, so that fewer arrays pass between loops."""

import numpy as np
import pytest

import slomodel
from slomodel.codegen.loops import sinking

MODELS = {
    "sums of pairs": """dim n = 60
    var a[n], b[n], c
    let d[i in n, j in n] = sqrt(1 + (a[i] - b[j])^2)
    minimize -sum(log(sum(exp(c - d[i, j]) / (1 + d[i, j]^2) for j in n)) for i in n)""",
    "looked up": """dim n = 5000, m = 70
    data g[n] in m, h[n] in m
    var x[m], y[m]
    let d[i in n] = x[g[i]] - y[h[i]]
    let t = sum(log1p(d[i]^2) for i in n)
    minimize sum(exp(-t / 5000) * d[i]^2 / (1 + d[i]^4) for i in n)""",
    "ends of a sum": """dim n = 4000
    var x[n]
    let s = sum(exp(x))
    minimize sum(exp(x[i]) * x[i] / (1 + x[i]^2) for i in n) / s + sum(sin(x / s) .* exp(x))""",
}


def _compiled(name: str) -> slomodel.Model:
    rng = np.random.default_rng(0)
    tables = {name: rng.integers(0, 70, 5000) for name in "gh"} if name == "looked up" else {}
    return slomodel.compile(MODELS[name], data=tables, backend="c")


@pytest.mark.parametrize("name", MODELS)
def test_values_are_the_same_and_costly_functions_are_called_once(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = _compiled(name)
    text = ours.source()
    monkeypatch.setattr(sinking, "LEAST", 10**9)
    other = _compiled(name)
    rng = np.random.default_rng(1)
    x = 0.3 * rng.normal(size=ours.n)
    (value, gradient), (wanted, other_gradient) = (
        one.value_and_gradient(x) for one in (ours, other)
    )
    assert value == wanted
    np.testing.assert_array_equal(gradient, other_gradient)
    for function in ("exp(", "sqrt(", "log(", "sin("):
        assert text.count(function) <= other.source().count(function)


def test_fewer_arrays_pass_between_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    def workspace() -> int:
        return int(_compiled("sums of pairs").source().split("a workspace of ")[1].split()[0])

    found = workspace()
    monkeypatch.setattr(sinking, "LEAST", 10**9)
    assert found < workspace()
