"""Operations on matrices that read few of the unknowns, against their values."""

from __future__ import annotations

import numpy as np
import pytest
from bounds.settings import setting

from slomodel.bounds.arithmetic.monomials import monomials
from slomodel.bounds.arithmetic.power_series import PowerSeries, variables
from slomodel.bounds.ranges.power_series import propagate
from slomodel.bounds.ranges.power_series.propagate import SeriesPass, inputs_of
from slomodel.ir.expr import MatrixOperation
from slomodel.reference import evaluate

PROCESS = """
dim n
data x[n], y[n]
var l, s, b[4]
let K[i in n, j in n] = exp(-exp(l) * (x[i] - x[j])^2) + where(i == j, exp(s), 0)
let e = y - b[0] - b[1] * x - b[2] * sin(b[3] + x)
"""
OBJECTIVES = {
    "determinant": "minimize logdet(K) + sum(exp(e))",
    "solution": "minimize dot(e, solve(K, e))",
    "factor": "minimize sum(exp(cholesky(K) @ e))",
}


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("apart", [(), (0, 3)])
def test_matrices_of_few_unknowns_hold(
    name: str, apart: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.linspace(0.0, 2.0, 5)
    own = setting(PROCESS + OBJECTIVES[name], np.zeros(6).tolist(), x=x, y=np.sin(x))
    table, reach = monomials(6, 3, apart), 0.08
    found: dict[str, PowerSeries] = {}
    given = inputs_of(own, variables(table, own.x, np.full(6, reach)))
    for side in ("with", "without"):
        if side == "without":
            monkeypatch.setattr(propagate, "narrow", lambda *rest: None)
            monkeypatch.setattr(propagate, "narrow_inverse", lambda *rest: None)
        values = SeriesPass(table, own.sizes, 1.0).values_of(own.objective, given)
        one = values[own.objective]
        assert isinstance(one, PowerSeries)
        found[side] = one
        assert any(isinstance(node, MatrixOperation) for node in values)
    assert found["with"].tail < 1.2 * found["without"].tail
    rng = np.random.default_rng(0)
    for length in (1.0, 0.5):
        for _ in range(10):
            z = rng.standard_normal(6)
            z *= length / np.linalg.norm(z)
            at = {**own.values, **own.by_variable(own.x + reach * z)}
            (exact,) = evaluate([own.objective], at, own.sizes)
            for one in found.values():
                off = abs(np.prod(z**table.exponents, axis=1)[: len(one.c)] @ one.c - exact)
                assert off <= one.tail * length**4 + one.error + 1e-12
