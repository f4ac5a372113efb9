"""Sines and cosines of pairs of angles: one of each angle, and the accuracy of those of pairs."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import slomodel
from slomodel.codegen.loops import planning
from slomodel.functions import cos, sin
from slomodel.ir.expr import Map
from slomodel.ir.walk import postorder

_N = 40
MODELS = {
    "spins": "minimize -sum(J[i, j] * cos(a[i] - a[j]) for i in n, j in n)",
    "oscillators": "minimize sum(J[i, j] * sin(a[i] + a[j] - 0.5) for i in n, j in range(i+1))",
    "two_kinds": """minimize
        sum(J[i, j] * (cos(a[i] - b[j]) + sin(b[j] - a[i])^2) for i in n, j in n)""",
}


J = np.random.default_rng(1).normal(size=(_N, _N))


def _model(name: str, backend: str = "c") -> slomodel.Model:
    variables = "var a[n], b[n]" if name == "two_kinds" else "var a[n]"
    text = f"dim n\ndata J[n, n]\n{variables}\n{MODELS[name]}"
    return slomodel.compile(text, data={"J": J}, backend=backend)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("spread", [3.0, 1e-6])
def test_values_and_gradients_are_those_of_numpy(name: str, spread: float) -> None:
    model, other = _model(name), _model(name, "numpy")
    x = 1.0 + spread * np.random.default_rng(2).normal(size=model.n)
    for own, right in zip(model.value_and_gradient(x), other.value_and_gradient(x), strict=True):
        # A few roundings of each term, whose magnitudes are those of J.
        np.testing.assert_allclose(own, right, rtol=0, atol=4e-16 * np.abs(J).sum())
    v = np.random.default_rng(3).normal(size=model.n)
    np.testing.assert_allclose(model.hvp(x, v), other.hvp(x, v), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_functions_run_over_angles_and_not_over_pairs(name: str) -> None:
    compiled = _model(name)._compiled
    entry = compiled.derivatives.entry("value_and_gradient")
    program, _ = planning.planned(entry, compiled._layout, compiled.numbers, in_order=True)
    functions = [
        node
        for node in postorder(*program.roots)
        if isinstance(node, Map) and node.function in (cos, sin)
    ]
    assert functions
    assert all(node.rank == 1 for node in functions)


def test_a_sine_of_nearly_equal_angles_is_off_by_roundings_of_the_angles() -> None:
    a = 1.0 + 1e-9 * np.arange(_N)
    J = np.random.default_rng(1).normal(size=(_N, _N))
    text = (
        "dim n\ndata J[n, n]\nvar a[n]\nminimize sum(J[i, j] * sin(a[i] - a[j]) for i in n, j in n)"
    )
    value = slomodel.compile(text, data={"J": J}, backend="c").value(a)
    with mpmath.workdps(40):
        right = mpmath.fsum(
            mpmath.mpf(J[i, j]) * mpmath.sin(mpmath.mpf(a[i]) - mpmath.mpf(a[j]))
            for i in range(_N)
            for j in range(_N)
        )
    assert abs(value - float(right)) <= 2**-52 * np.abs(J).sum()
