"""Products that are added without being rounded: only where an entry allows it."""

from __future__ import annotations

import numpy as np
import pytest

from slomodel.calculus import NOTHING
from slomodel.codegen.kernels import TARGETS, Compiled, Derivatives, Kernels
from slomodel.codegen.native.prelude import FUSED_NAME
from slomodel.functions import add, exp, mul, sub
from slomodel.ir import build
from slomodel.ir.dims import named

N = named("n")
X, A, B = (build.variable(name, (N,)) for name in "xab")


@pytest.mark.parametrize("fused", [False, True])
def test_sums_and_differences_of_products(fused: bool) -> None:
    product, other = mul(X, A), mul(exp(X), B)
    terms = [add(product, B), sub(other, A), sub(B, mul(A, exp(B))), add(product, mul(X, other))]
    roots = [build.sum_over(one, (0,)) for one in terms]
    total = add(add(roots[0], roots[1]), add(roots[2], roots[3]))
    zeros = tuple(build.zeros((N,)) for _ in range(3))
    derivatives = Derivatives(total, (X, A, B), NOTHING, zeros, fused=fused)
    compiled = Compiled("sums", derivatives, (), {"n": 37}, TARGETS["c"])
    assert (f"{FUSED_NAME}(" in compiled.source(("value_and_gradient",))) is fused
    x, a, b = np.random.default_rng(1).normal(size=(3, 37))
    value = Kernels(compiled, {}).function("value_and_gradient")(
        np.concatenate([x, a, b]), np.empty(3 * 37)
    )
    parts = [x * a + b, np.exp(x) * b - a, b - a * np.exp(b), x * a + x * np.exp(x) * b]
    assert np.isclose(value, np.sum(parts), rtol=1e-13)
