"""`model.ray_bounds` on every target, against the kernels of value, gradient and Hessian."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import slomodel
from slomodel.errors import DomainError

RNG = np.random.default_rng(3)
A, Y = RNG.normal(size=(30, 4)), RNG.normal(size=30)
MODELS = {
    "network": (
        "dim N, d, h = 3\ndata A[N, d], y[N]\nvar W[h, d], v[h] init normal(0, 1)\n"
        "minimize mean((tanh(A @ W') @ v - y)^2) + 0.1*sumsq(W)"
    ),
    "logistic": (
        "dim N, d\ndata A[N, d], y[N]\nvar x[d] init normal(0, 1)\n"
        "minimize sum(softplus(-y .* (A @ x))) + logsumexp(x)"
    ),
    "robust": (
        "dim N, d\ndata A[N, d], y[N]\nvar x[d], s init normal(0, 1)\n"
        "maximize -sum(log(1 + (A @ x - y)^2 / exp(s))) - N*s - s^2"
    ),
    "determinant": (
        "dim N, d\ndata A[N, d], y[N]\nvar x[d] init normal(0, 1)\n"
        "minimize det(A[:5] @ A[:5]' + diag(exp(A[:5] @ x))) + 0*sum(y)"
    ),
}


def _compiled(name: str, backend: str) -> slomodel.Model:
    return slomodel.compile(MODELS[name], data={"A": A, "y": Y}, backend=backend)


CASES = [("network", "c"), ("robust", "numpy")]


@pytest.mark.parametrize(("name", "backend"), CASES)
def test_bounds_hold_along_rays(name: str, backend: str) -> None:
    model = _compiled(name, backend)
    x = model.x0(1)
    f, g = model.value_and_gradient(x)
    for v in (g / np.linalg.norm(g), np.random.default_rng(0).normal(size=model.n)):
        for T in (0.0, 1e-3, 0.1, 0.5):
            found = model.ray_bounds(x, v, T)
            assert found.reason == ""
            assert found.T == T
            assert abs(found.value - f) <= 1e-10 * (1.0 + abs(f))
            assert abs(found.slope - g @ v) <= 1e-10 * (1.0 + abs(g @ v))
            seen = [v @ model.hvp(x + t * v, v) for t in np.linspace(0.0, T, 20)]
            slack = 1e-10 * max(map(abs, seen))
            assert abs(found.curvature - seen[0]) <= slack + found.curvature_error
            assert found.lower - slack <= min(seen)
            assert max(seen) <= found.upper + slack
            if T <= 1e-3:
                assert found.upper <= max(seen) + 1e-3 * max(map(abs, seen))
            assert max(found.value_error, found.slope_error, found.curvature_error) <= 1e-8


def test_steps_whose_shifts_do_not_matter() -> None:
    """Log-sum-exps of states, shifted by the largest of their exponents."""
    text = """dim T = 3, K = 2\nvar p[K] init normal(0, 1)
    let f[t in T, k in K] = p[k] * logsumexp(f[t-1, :]) first p[k]
    minimize f[T-1, 0]"""
    model = slomodel.compile(text, backend="numpy")
    x, v = model.x0(1), np.random.default_rng(0).normal(size=model.n)
    own: dict[str, Any] = {}
    exec(compile(model.ray_source("numpy"), "rays", "exec"), own)
    _, _, _, _, curvature, error, lower, upper, *_ = own["ray_bounds"](x, v, 0.02, {})
    seen = [v @ model.hvp(x + t * v, v) for t in np.linspace(0.0, 0.02, 9)]
    assert abs(curvature - seen[0]) <= error + 1e-13 <= 1e-10
    assert lower <= min(seen) <= max(seen) <= upper <= max(seen) + 0.3


def test_targets_agree() -> None:
    rays = [_compiled("logistic", backend) for backend in ("numpy", "numexpr", "c")]
    x, v = rays[0].x0(), RNG.normal(size=rays[0].n)
    found = [model.ray_bounds(x, v, 0.2) for model in rays]
    for one in found[1:]:
        assert one.upper == pytest.approx(found[0].upper, rel=1e-10)
        assert one.third_lower == pytest.approx(found[0].third_lower, rel=1e-10)


def test_a_model_without_a_proof_states_the_reason() -> None:
    model = _compiled("determinant", "numpy")
    x, v = model.x0(), np.ones(model.n)
    found = model.ray_bounds(x, v, 0.1)
    f, g = model.value_and_gradient(x)
    assert (found.value, found.slope) == (f, pytest.approx(g @ v))
    assert (found.lower, found.upper) == (-math.inf, math.inf)
    assert "determinant" in found.reason


def test_a_kink_on_the_way_leaves_nothing_known() -> None:
    with pytest.warns(slomodel.NonsmoothWarning):
        model = slomodel.compile("var x[2]\nminimize sum(abs(x)) + sumsq(x)")
    assert model.ray_bounds([1.0, 1.0], [1.0, 0.0], 3.0).upper == pytest.approx(2.0)
    found = model.ray_bounds([1.0, 1.0], [-1.0, 0.0], 3.0)
    assert found.upper == math.inf
    assert "kink" in found.reason


def test_the_source_of_the_kernel_stands_alone() -> None:
    """The module for NumPy returns the numbers of the model, and the C text names them."""
    model = _compiled("logistic", "numpy")
    x, v = model.x0(), RNG.normal(size=model.n)
    own: dict[str, Any] = {}
    exec(compile(model.ray_source("numpy"), "rays", "exec"), own)
    numbers = own["ray_bounds"](x, v, 0.2, {"A": A, "y": Y})
    found = model.ray_bounds(x, v, 0.2)
    assert numbers[:5:2].tolist() == [found.value, found.slope, found.curvature]
    assert numbers[6:8].tolist() == [found.lower, found.upper]
    assert "upper end of f'''" in model.ray_source("c")
    with pytest.raises(DomainError, match="no bounds along rays: it has a det"):
        _compiled("determinant", "numpy").ray_source()


def test_arguments_are_checked() -> None:
    model = slomodel.compile("var x\nminimize x^4")
    with pytest.raises(DomainError, match="T: expected a finite number"):
        model.ray_bounds([1.0], [1.0], -1.0)
    with pytest.raises(slomodel.ShapeError, match="v"):
        model.ray_bounds([1.0], [1.0, 2.0], 1.0)
