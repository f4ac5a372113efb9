"""Contraction order: reordered products, with unchanged values."""

import numpy as np
import pytest

import slomodel

NAME = "contraction order"
N, D, H = 400, 6, 3

# The product of the small matrices first; the sine keeps the samples from being compressed.
FIRES = {
    "from the right": "sum(sin(v' @ (W @ (U @ X))) .* y)",
    "indices": "sum(sin(sum(v[h] * W[h, k] * U[k, i] * X[i, j] for h in H, k in H, i in D)) * y[j]"
    " for j in N)",
    "nested indices": "sum(sin(sum(v[h] * (sum(W[h, k] * (U @ X)[k, j] for k in H)) for h in H))"
    " for j in N)",
    "a column at a time": "sum(exp(-sumsq(W @ (U @ X[:, j]))) for j in N)",
}

NEVER = {
    "from the left": "sum(sin(v' @ W @ U @ X) .* y)",
    "an activation between": "sum(sin(v' @ tanh(W @ tanh(U @ X))) .* y)",
    "a product that is used again": "sum(sin(W @ (U @ X))) + sumsq(U @ X)",
    "equal factors": "sum(S[a, b, c] * v[a] * v[b] * v[c] for a in H, b in H, c in H)",
}

HEAD = f"""dim N = {N}, D = {D}, H = {H}
"""
ARRAYS = {"X": "D, N", "y": "N", "S": "H, H, H"}


def compiled(objective: str, **options: object) -> slomodel.Model:
    sizes = {"N": N, "D": D, "H": H}
    draw = np.random.default_rng(0)
    drawn = {
        name: draw.standard_normal([sizes[dim] for dim in dims.split(", ")])
        for name, dims in ARRAYS.items()
    }
    used = [name for name in ARRAYS if f"{name}[" in objective or f" {name})" in objective]
    used += ["y"] if ".* y" in objective and "y" not in used else []
    data = ", ".join(f"{name}[{ARRAYS[name]}]" for name in used)
    text = (
        f"{HEAD}data {data}\nvar v[H], W[H, H], U[H, D]\n"
        f"minimize {objective} + 0.1 * (sumsq(v) + sumsq(W) + sumsq(U))"
    )
    return slomodel.compile(text, data={name: drawn[name] for name in used}, **options)


def told(model: slomodel.Model) -> bool:
    return f"rewritten  {NAME}: " in model.explain()


@pytest.mark.parametrize("backend", ["numpy", "numexpr"])
@pytest.mark.parametrize("name", FIRES)
def test_fires(name: str, backend: str) -> None:
    one, other = (compiled(FIRES[name], backend=backend, rewrites=on) for on in (True, False))
    assert told(one)
    assert not told(other)
    assert_same(one, other)


def assert_same(one: slomodel.Model, other: slomodel.Model) -> None:
    x, v = np.random.default_rng(1).standard_normal((2, one.n))
    value, gradient = one.value_and_gradient(x)
    assert value == pytest.approx(other.value(x), rel=1e-12)
    for found, wanted in ((gradient, other.gradient(x)), (one.hvp(x, v), other.hvp(x, v))):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())


@pytest.mark.parametrize("name", NEVER)
def test_does_not_fire(name: str) -> None:
    assert not told(compiled(NEVER[name]))


def test_the_order_is_that_of_the_sizes() -> None:
    """Few samples: the wide product comes last; many: the weights come first."""
    text = "dim n, m, p data X[m, n] var A[p, m], B[m, m] minimize sum(sin(A @ (B @ X)))"
    few = slomodel.compile(text, data={"X": np.ones((30, 2))}, dims={"p": 30})
    assert not told(few)
    many = few.bind(X=np.ones((30, 900)))
    assert told(many)
    x = np.random.default_rng(0).standard_normal(many.n) / 30.0
    plain = slomodel.compile(text, data={"X": np.ones((30, 900))}, dims={"p": 30}, rewrites=False)
    assert_same(many, plain)
    assert np.isfinite(many.value(x))
