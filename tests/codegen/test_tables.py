"""Tables that are looked up along their last axes: rows in a copy, conditions at the table."""

from __future__ import annotations

import re

import numpy as np
import pytest

import slomodel

HEAD = "dim N, L, q = 5\ndata x[N, L] in q\n"
WEIGHTS = "data y[N, L]\n"
MODELS = {
    "couplings": """var h[L, q], J[L, q, L, q]
        let s[n in N, l in L, a in q] = h[l, a] + sum(J[l, a, m, x[n, m]] for m in L if m != l)
        minimize sum(logsumexp(s[n, l, :]) - s[n, l, x[n, l]] for n in N, l in L) + sumsq(J)""",
    "a plain sum": """var J[L, q, L, q]
        minimize sum(sin(sum(J[l, a, m, x[n, m]] for m in L)) for n in N, l in L, a in q)""",
    "the looked up axis first but one": """var J[q, q, L, q]
        minimize sum(exp(sum(J[a, x[n, m], m, l] * y[n, m] for m in L)) for n in N, l in q, a in q)
                 + sum(J .^ 3)""",
    "two lookups": """var J[9, q, q]
        minimize sum(tanh(sum(y[n, m] * J[k, x[n, m], x[n, 0]] for m in L)) for n in N, k in 9)""",
    "rows in order of rank": """var s[q]
        minimize sum(log(sum(exp(s[x[n, l]]) for l in range(k, 6))) - s[x[n, k]]
                     for n in N, k in range(6)) + sum(s .^ 3)""",
    "a matrix for each row": """var B[q, 4, 4], u[q, 4]
        minimize sum((sum(u[x[n, 0], a] * B[x[n, 1], a, b] * u[x[n, 2], b] for a in 4, b in 4)
                      - y[n, 0])^2 for n in N)""",
    "half of the pairs": """var J[L, L, q, q]
        minimize sum((sum(J[l, m, x[n, l], x[n, m]] for l in L, m in L if l < m) - y[n, 0])^2
                     for n in N) + sumsq(J)""",
}


def _compiled(name: str, backend: str) -> slomodel.Model:
    rng = np.random.default_rng(5)
    arrays = {"x": rng.integers(0, 5, (30, 9)).astype(float)}
    text = HEAD + MODELS[name]
    if "y[" in text:
        text, arrays["y"] = HEAD + WEIGHTS + MODELS[name], rng.normal(size=(30, 9))
    return slomodel.compile(text, data=arrays, backend=backend)


@pytest.mark.parametrize("name", MODELS)
def test_values_and_derivatives_are_those_of_numpy(name: str) -> None:
    model, right = (_compiled(name, backend) for backend in ("c", "numpy"))
    rng = np.random.default_rng(6)
    x, v = 0.2 * rng.normal(size=model.n), rng.normal(size=model.n)
    for own, other in zip(model.value_and_gradient(x), right.value_and_gradient(x), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-12, atol=1e-13 * np.abs(other).max())
    own, other = model.hvp(x, v), right.hvp(x, v)
    np.testing.assert_allclose(own, other, rtol=1e-11, atol=1e-12 * np.abs(other).max())


def test_rows_are_read_and_added_to() -> None:
    text = _compiled("couplings", "c").source("c")
    # For each sequence and position, all 9 · 5 scores at once.
    assert re.search(r"p\d+\[i\] = p\d+\[i\] \+ p\d+\[i \+ p\d+\[0\] \* 45\];", text)
    assert re.search(r"(p\d+\[i \+ p\d+\[0\] \* 45\]) = \1 \+ p\d+\[i\];", text)
