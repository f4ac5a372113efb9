"""Operations on matrices on every CPU target, against the reference interpreter."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from agreeing import Question, flat, in_c, in_python
from matrix_objectives import FUNCTIONS, arrays, inputs, objective

from slomodel.codegen.kernels import Derivatives
from slomodel.reference import Array, evaluate

SIZES = [(True, {"n": 3, "m": 2, "b": 2}), (False, {"n": 14, "m": 1, "b": 1})]
"""Batched or not, and sizes: LAPACK computes in C from 13 rows on, loops for fewer."""


@cache
def questions() -> list[Question]:
    """All operations for all sizes."""
    found = []
    rng = np.random.default_rng(3)
    empty = [(function, False, {"n": 0, "m": 2, "b": 1}) for function in FUNCTIONS[:2]]
    filled = [(function, *own) for function in FUNCTIONS for own in SIZES]
    for function, batched, sizes in (*filled, *empty):
        A, B, W, V = inputs(batched)
        derivatives = Derivatives(objective(function, batched), [A, B])
        values = dict(zip((A, B, W, V), arrays(rng, sizes, batched), strict=True))
        for node, variable in zip(derivatives.directions, (A, B), strict=True):
            values[node] = rng.normal(size=values[variable].shape)
        found.append(Question(derivatives, (W, V), values, sizes))
    return found


@cache
def expected() -> list[dict[str, Array]]:
    """The results of the reference interpreter."""
    found = []
    for one in questions():
        results = {
            name: flat(evaluate(roots, one.values, one.sizes)) for name, roots in one.roots.items()
        }
        found.append({**results, "again": results["value"]})
    return found


@pytest.mark.parametrize("target", ["numpy", "numexpr", "c"])
def test_targets_agree_with_the_reference(target: str) -> None:
    # Compiling all of them takes a second more, and the loops for small matrices are few.
    some = slice(1, None, 2) if target == "c" else slice(None)
    asked = questions()[some] + questions()[:1] * (target == "c")
    right = expected()[some] + expected()[:1] * (target == "c")
    own = in_c(asked) if target == "c" else (in_python(one, target) for one in asked)
    for found, wanted in zip(own, right, strict=True):
        for name, array in found.items():
            scale = np.abs(wanted[name]).max(initial=1e-3)
            np.testing.assert_allclose(array, wanted[name], rtol=1e-9, atol=1e-11 * scale)
