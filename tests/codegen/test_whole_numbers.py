"""Models in float32 whose indices or positions pass the whole numbers that it holds."""

from __future__ import annotations

import numpy as np
import pytest

import slomodel
from slomodel.errors import TargetLimit
from slomodel.ir.index_tables import SINGLE_MOST, require_single

n = SINGLE_MOST + 20
POSITIONS = np.arange(n - 20, n)
COMPUTED = {
    "an index": ("var s minimize s * sum(1 for i in n if i >= n - 11 and 2*i != n)", {}),
    "a term": ("var s minimize s * sum(i for i in n if i >= n - 11)", {}),
    "positions": (
        "dim k data g[k] in n var s minimize s * sum(1 for j in k if g[j] == n - 11)",
        {"g": POSITIONS},
    ),
    "counts": ("dim k data c[k] whole var s minimize sum((s - c)^2)", {"c": POSITIONS}),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_what_float32_would_round_is_refused(name: str) -> None:
    text, data = COMPUTED[name]
    with pytest.raises(TargetLimit, match=r"(?s)E801.*16,777,2\d\d.*float64"):
        slomodel.compile(f"dim n = {n}\n{text}", data=data, dtype="float32").value([1.0])


def test_positions_that_only_read_arrays_are_not_numbers() -> None:
    text = "dim n, k data g[k] in n var x[n] minimize sumsq(x[g])"
    model = slomodel.compile(text, data={"g": POSITIONS}, dims={"n": n})
    (declared,) = model._problem.data
    require_single(model._problem.objective, {declared.node: POSITIONS}, {"n": n, "k": 20})


def test_smaller_ones_are_computed() -> None:
    text = "dim n = 1000 var s minimize s * sum(i for i in n if i >= n - 2)"
    assert slomodel.compile(text, dtype="float32").value([1.0]) == 1997
