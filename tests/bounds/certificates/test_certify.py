"""Certificates of solved models, each against Newton's method in 60 digits."""

from __future__ import annotations

from functools import cache, partial

import mpmath
import numpy as np
import pytest
from bounds.objective_graph import DIGITS, ObjectiveGraph
from marks import slow_unless

import slomodel
from slomodel.bounds import PointCertificate

RNG = np.random.default_rng(3)
A = RNG.standard_normal((12, 3))
Y = np.sign(A @ RNG.standard_normal(3) + RNG.standard_normal(12))
T = np.linspace(0.0, 3.0, 12)

compiled = partial(slomodel.compile, backend="numpy")

MODELS = {
    "rosenbrock": ("var x[3]\nminimize sum(100*(x[i+1]-x[i]^2)^2 + (1-x[i])^2 for i in 2)", {}),
    "logistic": (
        "dim m, n\ndata A[m,n], y[m]\nvar w[n]\nminimize sum(log1p(exp(-y*(A@w)))) + 0.1*sumsq(w)",
        {"A": A, "y": Y},
    ),
    "student": (
        "dim m, n\ndata A[m,n], y[m]\nvar w[n]\nminimize sum(log1p((A@w-y)^2)) + sumsq(w)/4",
        {"A": A, "y": Y},
    ),
    "decay": (
        "dim m\ndata t[m], y[m]\nvar a init 1, k init 1\nminimize sum((a*exp(-k*t)-y)^2)",
        {"t": T, "y": 2.5 * np.exp(-1.3 * T) + 0.01 * np.cos(7.0 * T)},
    ),
    "units": ("var a, b\nminimize (1e6*a - 3)^2 + (a*1e6 - 1e-3*b)^2 + (1e-3*b-1)^4", {}),
    "maximum": ("var x > 0, y\nmaximize log(x) - x - y^2*x - (y-1)^2", {}),
    "softmax": (
        "dim m, n\ndata A[m,n]\nvar W[n,3]\n"
        "minimize sum(logsumexp((A@W)[i,:]) for i in m) - 0.3*sum(A@W) + sumsq(W)",
        {"A": A[:8, :2]},
    ),
    "bound": ("var x >= 0, y in [-1, 1], z\nminimize (x+1)^2 + (y-3)^2 + x*z + exp(z) - 2*z", {}),
    "huber": ("var x, y\nminimize sqrt(1 + (x-2)^2) + sqrt(1 + (x*y-1)^2) + 0.1*y^2", {}),
    "erf": ("var x, y\nminimize x^2 + y^2 - erf(x + 2*y) + 0.3*sin(x*y)", {}),
}
DEARER = {"softmax", "student"}


@cache
def solved(name: str) -> tuple[slomodel.Model, PointCertificate]:
    text, data = MODELS[name]
    model = compiled(text, data=dict(data))
    solution = model.solve(gtol=1e-10)
    return model, solution.certify()


def newton(model: slomodel.Model, found: PointCertificate) -> tuple[mpmath.matrix, mpmath.matrix]:
    """The critical point near x in 60 digits, with held elements as they are, and H there."""
    graph = ObjectiveGraph(model._part(found.x))
    free = np.flatnonzero(~found.held)
    x = np.array([mpmath.mpf(float(one)) for one in found.x], dtype=object)
    for _ in range(7):
        g = graph.exact_gradient(x)
        H = mpmath.matrix(len(free), len(free))
        for column, j in enumerate(free):
            v = np.array([mpmath.mpf(int(k == j)) for k in range(len(x))], dtype=object)
            product = graph.exact_hvp(x, v)
            for row, i in enumerate(free):
                H[row, column] = product[i]
        step = mpmath.lu_solve(H, -mpmath.matrix([g[i] for i in free]))
        for row, i in enumerate(free):
            x[i] += step[row]
    assert mpmath.norm(step) < mpmath.mpf(10) ** -40 * (1 + mpmath.norm(mpmath.matrix(list(x))))
    return mpmath.matrix(list(x)), H


@pytest.mark.parametrize("name", slow_unless(lambda name: name not in DEARER, MODELS))
def test_the_critical_point_is_where_it_is_proved_to_be(name: str) -> None:
    model, found = solved(name)
    assert found.exists, found.reason
    with mpmath.workdps(DIGITS):
        exact, H = newton(model, found)
        for i, x in enumerate(found.x):
            assert abs(exact[i] - mpmath.mpf(float(x))) <= found.error[i]
        values = mpmath.eigsy((H + H.T) / 2, eigvals_only=True)
        low, high = found.eigenvalues
        assert low <= min(values)
        assert max(values) <= high
    assert found.kind == ("maximum" if name == "maximum" else "minimum")
    assert float(np.max(found.error)) < 1e-8 * (1.0 + float(np.abs(found.x).max()))
    assert found.distance <= found.unique_within


def test_uniqueness_and_convexity_stop_short_of_other_critical_points() -> None:
    model = compiled("var x\nminimize (x^2 - 1)^2")
    found = model.certify([1.0])
    assert found.exists
    assert found.unique_within < 1.0  # 0 is critical too
    assert 0.2 < found.convex_within <= 1.0 - 1.0 / np.sqrt(3.0)
    assert model.convex_within([1.0]) == found.convex_within
    assert model.convex_within([0.0]) == 0.0


def test_a_certificate_in_unconstrained_variables_says_so() -> None:
    """Its error bars are those of u, of which only variables without an open set are x."""
    model = compiled(
        "var c[2] in ordered init [0, 2] var s > 0 minimize sumsq(c) + s - log(s) - c[1]"
    )
    found = model.certify(model.solve())
    summary = found.summary
    assert summary.index("`model.unconstrained`") < summary.index("c (unconstrained) = ")
    assert "s (unconstrained) = " in summary
    assert "unconstrained" not in compiled("var s > 0 minimize s - log(s)").certify([1.0]).summary


def test_a_saddle_has_proved_curvature_of_both_signs() -> None:
    found = compiled("var x, y\nminimize x^2 - y^2 + x^3").certify([1e-9, 0.0])
    assert (found.exists, found.kind) == (True, "saddle")
    assert found.direction is not None
    assert np.abs(found.direction) == pytest.approx([0.0, 1.0])
    assert -2.0 <= found.curvature < -1.999
    assert 0.3 < found.unique_within <= 2.0 / 3.0  # the other one is at x = -2/3


def test_the_gap_bounds_what_points_nearby_gain() -> None:
    model = compiled("var x[3]\nminimize sumsq(x) + x[0]*x[1]")
    found = model.certify([0.1, 0.0, 0.0])
    assert np.isinf(found.gap_within)
    assert 0.01 <= found.gap <= 0.011 * 4
    flat = compiled("var u, v\nminimize (u*v - 1)^2").certify([1.0, 1.0])
    assert not flat.exists
    assert "singular" in flat.reason
    assert 0.0 <= flat.gap < 1e-3


@pytest.mark.parametrize(
    ("text", "x", "reason"),
    [
        ("var x[3]\nminimize sum(abs(x)^1.5)", [0.0, 1.0, 1.0], "singular"),
        ("var x[2]\nminimize (0.1*x[0] + 0.3*x[1] - 1)^2", [0.3, 0.6], "singular up to rounding"),
        ("var x\nminimize log(x) + 1/x", [-1.0], "no value"),
        ("var x\nminimize x^4 + x", [3.0], "too far"),
        ("var x[2] in simplex\nminimize sumsq(x)", [0.5, 0.5], "intervals and balls"),
        ("var x[2] in ball(1)\nminimize sumsq(x - 3)", [0.6, 0.8], "boundary of a ball"),
        ("var x\nminimize (x-1)^2\nsubject to x^3 >= 0", [1.0], "constraints"),
        ("var x >= 0\nminimize x^2", [0.0], "multipliers"),
        ("var x >= 0\nminimize (x - 1)^2", [-1.0], "outside"),
    ],
)
def test_no_proof_has_a_reason(text: str, x: list[float], reason: str) -> None:
    found = compiled(text).certify(x)
    assert not found.exists
    assert reason in found.reason
    assert found.reason in found.summary
    assert np.isinf(found.error).any()
    assert found.kind == "unknown"


def test_a_loaded_solution_is_certified_by_the_model(tmp_path) -> None:
    model = compiled("var x, y\nminimize (x - 1)^2 + (x*y - 2)^2 + y^4")
    solution = model.solve()
    solution.save(tmp_path / "run.npz")
    loaded = slomodel.load_solution(tmp_path / "run.npz")
    with pytest.raises(slomodel.DomainError, match="does not know its model"):
        loaded.certify()
    assert np.array_equal(model.certify(loaded).error, solution.certify().error)
