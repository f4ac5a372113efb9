"""Both ends of the Hessian's spectrum, its blocks and its diagonal majorant, against samples."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import slomodel

RNG = np.random.default_rng(5)
A = RNG.standard_normal((9, 3))
compiled = partial(slomodel.compile, backend="numpy")

MODELS = {
    "separable": ("var x[3]\nminimize sum(log1p(x^2)) + x[0]*x[1]", 0.3, 0.1),
    "student": ("data A[9, 3]\nvar x[3], c\nminimize sum(log1p((A@x - c)^2)) + sumsq(x)", 0.1, 0.2),
    "factors": ("var U[3,2], V[2,2]\nminimize sum((U@V - 1)^2)", 0.4, 0.1),
    "kink": ("var x[2]\nminimize sum(max(x, 0)^2) + x[0]*x[1]", 0.0, 0.5),
    "units": ("var a, b\nminimize (1e3*a)^2 + a*b + 1e-3*b^2 + a^4", 0.5, 0.1),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MODELS)
def test_samples_lie_within(name: str) -> None:
    text, at, radius = MODELS[name]
    model = compiled(text, data={"A": A} if "A[" in text else None)
    centre = np.full(model.n, at) + 0.1 * RNG.standard_normal(model.n) * (name != "kink")
    found = model.bounds(centre, radius)
    slices, start = {}, 0
    for variable, shape in model.variables.items():
        slices[variable] = slice(start, start + int(np.prod(shape)))
        start = slices[variable].stop
    for _ in range(40):
        d = RNG.standard_normal(model.n)
        H = model.hessian(centre + radius * RNG.uniform() ** 0.2 * d / np.linalg.norm(d))
        values = np.linalg.eigvalsh(H)
        slack = 1e-12 * np.abs(values).max()
        assert found.lower - slack <= values[0]
        assert values[-1] <= found.upper + slack
        assert np.linalg.eigvalsh(np.diag(found.majorant) - H)[0] >= -1e-9 * np.abs(H).max()
        for (v, w), norm in found.blocks.items():
            assert np.linalg.norm(H[slices[v], slices[w]], 2) <= norm + slack
    assert max(-found.lower, found.upper) <= found.L1
    assert found.convex == (found.lower >= 0.0)


def test_a_proof_of_convexity_and_what_explain_says() -> None:
    model = compiled("var x[2], y\nminimize sum(cosh(x)) + y^2 + 0.1*x[0]*y")
    found = model.bounds([0.1, 0.0, 0.2], 0.5)
    assert found.convex
    assert 0.9 < found.lower < found.upper < 2.2
    text = found.explain()
    assert "eigenvalues of the Hessian in [0.9" in text
    assert ": convex on the ball" in text
    assert "blocks ≤ x" in text
    assert "diagonal majorant" in text
    assert found.blocks["x", "y"] == found.blocks["y", "x"] == pytest.approx(0.1, rel=1e-6)


def test_the_ends_shrink_to_those_of_the_centre() -> None:
    model = compiled("var x, y\nminimize exp(x) - y^2*x")
    H = model.hessian([0.5, 1.0])
    found = model.bounds([0.5, 1.0], 0.0)
    assert [found.lower, found.upper] == pytest.approx(np.linalg.eigvalsh(H), rel=1e-12)
    assert found.lower <= np.linalg.eigvalsh(H)[0] + 1e-15


def test_without_a_proof_the_ends_are_infinite() -> None:
    with pytest.warns(slomodel.NonsmoothWarning):
        model = compiled("var x\nminimize abs(x)")
    found = model.bounds([0.0], 1.0)
    assert (found.lower, found.upper, found.convex) == (-np.inf, np.inf, False)
    assert np.isinf(found.majorant).all()
    sampled = compiled("var x\nminimize x^4").sample_bounds([1.0], 0.1)
    assert (sampled.lower, dict(sampled.blocks)) == (-np.inf, {})
