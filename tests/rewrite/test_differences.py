"""Functions of differences of indices: one value for each difference, and the same numbers."""

import numpy as np
import pytest

import slomodel
from slomodel.functions import exp, pow
from slomodel.ir.expr import Map
from slomodel.ir.walk import postorder

NAME = "differences of indices"

FIRES = {
    "a blur": """data x[m]
        var s, w[n]
        minimize sum((w[i] - sum(exp(-((i - j) * exp(s))^2) * x[j] for j in m))^2 for i in n)""",
    "kernels of several widths": """data x[m]
        var l[3], w[3]
        minimize sum(sum(w[k] * exp(-abs(i - j) * exp(l[k])) * x[j] for j in m, k in 3)^2
                     for i in n)""",
    "without the diagonal": """data x[m]
        var p
        minimize sum(sum(abs(i - j)^(-exp(p)) * x[j] for j in m if j != i)^2 for i in n)""",
    "a covariance": """data x[m]
        var s, p
        let K[i in m, j in m] = exp(p - ((i - j) * exp(s))^2) + where(i == j, 0.5, 0)
        minimize logdet(K) + dot(x, solve(K, x))""",
}
NEVER = {
    "other functions of two indices": "var p minimize sum(exp(p * i * j / 99) for i in n, j in m)",
    "unknowns on both sides": "var a[n] minimize sum(exp(a[i] * (i - j)) for i in n, j in m)",
    "data alone": "var p minimize p^2 + sum(exp(-(i - j)^2) for i in n, j in m)",
}


def _model(text: str, backend: str, **options: object) -> slomodel.Model:
    needed = {"x": np.linspace(-1, 2, 9)} if "x[m]" in text else {}
    return slomodel.compile(f"dim n = 13, m = 9\n{text}", data=needed, backend=backend, **options)


@pytest.mark.parametrize(
    ("name", "backend"), [*((one, "numpy") for one in FIRES), ("without the diagonal", "c")]
)
def test_values_are_those_of_pairs(name: str, backend: str) -> None:
    model = _model(FIRES[name], backend, rewrites=[NAME])
    assert NAME in model.explain()
    right = _model(FIRES[name], "numpy", rewrites=False)
    rng = np.random.default_rng(0)
    x, v = 0.3 * rng.normal(size=model.n), rng.normal(size=model.n)
    value, slope = model.value_and_gradient(x)
    wanted, other = right.value_and_gradient(x)
    assert value == pytest.approx(wanted, rel=1e-14)
    if backend == "numpy" and name != "without the diagonal":
        assert value == wanted
    np.testing.assert_allclose(slope, other, rtol=0, atol=1e-13 * np.abs(other).max())
    product, other = model.hvp(x, v), right.hvp(x, v)
    np.testing.assert_allclose(product, other, rtol=0, atol=1e-12 * np.abs(other).max())


@pytest.mark.parametrize("name", FIRES)
def test_costly_functions_run_over_differences(name: str) -> None:
    compiled = _model(FIRES[name], "numpy")._compiled
    roots = compiled.derivatives.entry("value_and_gradient").roots
    costly = [n for n in postorder(*roots) if isinstance(n, Map) and n.function in (exp, pow)]
    sizes = [np.prod([dim.size(compiled.numbers) for dim in node.shape]) for node in costly]
    assert max(sizes) <= 3 * (13 + 9 - 1)


@pytest.mark.parametrize("name", NEVER)
def test_other_models_stay_as_they_are(name: str) -> None:
    assert NAME not in _model(NEVER[name], "numpy").explain()
