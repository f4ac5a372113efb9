"""Elements of arrays of exponentials, read below logarithms: as exponentials written in place."""

from __future__ import annotations

import numpy as np
import pytest

import slomodel
from slomodel.functions import softplus
from slomodel.ir.expr import is_map
from slomodel.ir.walk import postorder

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")
TERMS = {
    "neighbours": ("exp(x[k])", "log(p[i] + 2 * p[i+1]) for i in range(n - 1)"),
    "one element": ("exp(x[k])", "log(p[0] / (p[i] + p[0])) for i in n"),
    "looked up": (
        "sigmoid(x[k])",
        "y[i] * log(p[g[i]]) + (1 - y[i]) * log(1 - p[g[i]]) for i in N",
    ),
    "beside another": ("exp(x[k])", "log(p[g[i]] + 1e-3 * p[0]) for i in N"),
    "products": ("sigmoid(x[k])", "log(p[i] * p[i+1]) for i in range(n - 1)"),
    "cuts": ("sigmoid(x[k])", "log(p[i+1] - p[i]) for i in range(n - 1)"),
    "quotient": ("exp(x[k])", "log(p[i] / sum(p[j] for j in n)) for i in range(n - 1)"),
    "tails": ("normcdf(x[k])", "log(1 - p[g[i]]) for i in N"),
}
POINTS = (np.array([-900.0, -850.0, -720.0, -30.0]), np.array([25.0, 40.0, 800.0, 1200.0]))


def _compiled(p: str, term: str, in_place: bool) -> slomodel.Model:
    given = "" if in_place else f"let p[k in n] = {p}\n"
    if in_place:
        for place in ("i+1", "g[i]", "i", "j", "0"):
            term = term.replace(f"p[{place}]", p.replace("k", place))
    text = f"dim n, N\ndata g[N] in n, y[N]\nvar x[n]\n{given}minimize sum({term})"
    data = {"g": np.array([2, 0, 3, 3, 1]), "y": np.array([1.0, 0.0, 0.0, 1.0, 1.0])}
    return slomodel.compile(text, data=data, dims={"n": 4}, backend="numpy")


@pytest.mark.parametrize("name", TERMS)
def test_elements_of_a_let_are_as_accurate_as_what_it_stands_for(name: str) -> None:
    p, term = TERMS[name]
    model, other = (_compiled(p, term, in_place) for in_place in (False, True))
    v = np.array([1.0, -0.5, 0.3, 2.0])
    for x in POINTS:
        assert np.isfinite(other.value(x))
        assert model.value(x) == pytest.approx(other.value(x), rel=1e-14)
        for one, wanted in (
            (model.gradient(x), other.gradient(x)),
            (model.hvp(x, v), other.hvp(x, v)),
        ):
            np.testing.assert_allclose(one, wanted, rtol=1e-13, atol=1e-15)


def test_what_is_looked_up_is_computed_once_for_each_element() -> None:
    p, term = TERMS["looked up"]
    order = postorder(_compiled(p, term, in_place=False)._problem.objective)
    assert any(is_map(one, softplus) for one in order)
    assert all(str(one.shape[0]) == "n" for one in order if is_map(one, softplus))
