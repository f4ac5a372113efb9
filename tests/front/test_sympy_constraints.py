"""Constraints of SymPy expressions: relations, intervals of symbols, pickles, messages."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sympy as sp
from numpy.testing import assert_allclose

import slomodel
from slomodel.errors import SlomodelError

x, y = sp.symbols("x y")


def test_relations_are_constraints() -> None:
    """min (x − 2)² + (y − 1)² with x² <= y and x + y <= 2 is at (1, 1), both active."""
    model = slomodel.compile((x - 2) ** 2 + (y - 1) ** 2, subject_to=[x**2 <= y, x + y <= 2])
    found = model.solve(x0=[0.5, 0.5])
    assert_allclose(found.x, [1.0, 1.0], rtol=1e-8)
    assert_allclose(found.multipliers["constraint 1"], -2 / 3, rtol=1e-6)
    assert model.constraints([3.0, 1.0]) == {"constraint 1": 8.0, "constraint 2": 2.0}


def test_labels_equations_and_intervals_survive_a_pickle() -> None:
    relations = {"area": sp.Eq(x * y, 4), "side": sp.And(x <= 1, x >= 0.5), "skew": y >= 2 * x}
    model = slomodel.compile(x + y, subject_to=relations)
    for one in (model, pickle.loads(pickle.dumps(model))):
        found = one.solve(x0=[0.9, 3.0])
        assert_allclose(found.x, [1.0, 4.0], rtol=1e-8)
        assert found.multipliers.keys() == {"x", "area", "skew"}
    assert r"\text{subject to}" in model.latex()


def test_symbols_with_assumptions_keep_their_sets() -> None:
    p = sp.Symbol("p", positive=True)
    found = slomodel.compile(p - sp.log(p) / 4, subject_to=[p <= 0.1]).solve(x0=[0.05])
    assert_allclose(found.x, [0.1], rtol=1e-8)
    assert "constraint 1" in found.multipliers


def test_indexed_sums_and_many_symbols() -> None:
    A = sp.IndexedBase("A", shape=(4,))
    i = sp.Symbol("i", integer=True)
    total = sp.Eq(sp.Sum(A[i], (i, 0, 3)), 1)
    model = slomodel.compile(sp.Sum((A[i] - i) ** 2, (i, 0, 3)), subject_to=total)
    assert_allclose(model.solve().x, np.arange(4) - 5 / 4, atol=1e-8)
    many = sp.symbols("z0:12")
    expr = sum((one - k) ** 2 for k, one in enumerate(many))
    found = slomodel.compile(expr, subject_to=[sum(one**2 for one in many) <= 1]).solve()
    assert_allclose(found.x, np.arange(12) / np.linalg.norm(np.arange(12)), atol=1e-8)


@pytest.mark.parametrize(
    ("relation", "code"),
    [(x < 1, "E411"), (sp.Ne(x, 1), "E411"), (x + 1, "E411"), ("x <= 1", "E602"), (False, "E602")],
)
def test_messages(relation: object, code: str) -> None:
    with pytest.raises(SlomodelError) as caught:
        slomodel.compile(x**2, subject_to=[relation])
    assert caught.value.diagnostics[0].code == code
    with pytest.raises(SlomodelError, match="a text states its own"):
        slomodel.compile("var x minimize x^2", subject_to=[x <= 1])
