"""Adjoints of convolutions with channels: right, and without arrays of all products."""

from __future__ import annotations

import numpy as np
import pytest

import slomodel
from slomodel.codegen.loops import planning
from slomodel.codegen.program import is_slice
from slomodel.ir.expr import Einsum, Scatter
from slomodel.ir.walk import postorder

MODELS = {
    "images": """dim S = 3, C = 2, O = 4, Q = 3, n = 13
        data x[S, C, n, n]
        var W[O, C, 3, 3], V[Q, O, 2, 4]
        let h[s in S, o in O, i in range(n-2), j in range(n-2)] =
            tanh(sum(W[o, c, p, q] * x[s, c, i+p, j+q] for c in C, p in 3, q in 3))
        minimize sum(sum(V[o, c, p, q] * h[s, c, i+p, j+q] for c in O, p in 2, q in 4)^4
                     for s in S, o in Q, i in range(n-3), j in range(n-5))""",
    "series, the channel last": """dim S = 4, C = 2, O = 3, n = 30
        data x[S, n, C]
        var W[5, C, O], V[4, O]
        let h[s in S, t in range(n-4), o in O] =
            tanh(sum(W[p, c, o] * x[s, t+p, c] for p in 5, c in C))
        minimize sum(sum(V[p, o] * h[s, t+p, o] for p in 4, o in O)^2
                     for s in S, t in range(n-8))""",
    "a part of the places": """dim C = 2, O = 3, n = 40
        var x[C, n], W[O, C, 3]
        minimize sum(exp(-sum(W[o, c, p] * x[c, t+p+2] for c in C, p in 3)^2)
                     for o in O, t in range(n-9)) + sumsq(x)""",
}


def _models(name: str) -> tuple[slomodel.Model, slomodel.Model, np.ndarray]:
    rng = np.random.default_rng(3)
    text = MODELS[name]
    shapes = {"images": (3, 2, 13, 13), "series, the channel last": (4, 30, 2)}
    data = {"x": rng.normal(size=shapes[name])} if name in shapes else {}
    own, other = (slomodel.compile(text, data=data, backend=one) for one in ("c", "numpy"))
    return own, other, 0.3 * rng.normal(size=own.n)


@pytest.mark.parametrize("name", MODELS)
def test_derivatives_are_those_of_numpy(name: str) -> None:
    own, other, x = _models(name)
    found, right = own.gradient(x), other.gradient(x)
    np.testing.assert_allclose(found, right, rtol=0, atol=1e-13 * np.abs(right).max())


def test_products_with_the_hessian_are_those_of_numpy() -> None:
    own, other, x = _models("a part of the places")
    found, right = own.hvp(x, x[::-1]), other.hvp(x, x[::-1])
    np.testing.assert_allclose(found, right, rtol=0, atol=1e-13 * np.abs(right).max())


@pytest.mark.parametrize("name", MODELS)
def test_products_are_not_added_to_windows(name: str) -> None:
    compiled = _models(name)[0]._compiled
    for kind in ("value_and_gradient", "hvp"):
        entry = compiled.derivatives.entry(kind)
        program, _ = planning.planned(entry, compiled._layout, compiled.numbers, in_order=True)
        added = [one for one in postorder(*program.roots) if isinstance(one, Scatter)]
        products = [one for one in added if isinstance(one.operands[0], Einsum)]
        assert all(is_slice(one.index) for one in products)
