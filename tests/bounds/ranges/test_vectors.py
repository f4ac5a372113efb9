"""Vectors, their lengths and quotients by these: bounds hold, are sharp, and know spellings."""

from __future__ import annotations

import numpy as np
import pytest
from bounds.settings import setting as part_of

import slomodel
from slomodel.bounds.ranges.curvature.centre_graph import centre_graph
from slomodel.bounds.ranges.curvature.hessian_ranges import BallGraph, ball_graph
from slomodel.bounds.ranges.curvature.slopes import NodeBounds
from slomodel.bounds.ranges.curvature.vectors import vectors_of
from slomodel.bounds.structure.lengths import lengths_in, with_unit_vectors

pytestmark = [
    pytest.mark.filterwarnings("ignore::slomodel.errors.NonsmoothWarning"),
    pytest.mark.filterwarnings("ignore:.*does not occur:slomodel.errors.ModelWarning"),
]
RNG = np.random.default_rng(8)
X = RNG.standard_normal((4, 3))
HEAD = "dim N, p\ndata X[N, p]\nvar W[2, p], g[2]\nlet u = X @ W'\n"
UNITS = {
    "a row": "u[1, 0]/norm2(u[1, :])",
    "a factor beside it": "-g[0]*u[1, 1]/sqrt(sumsq(u[1, :]) + 0.3)",
    "a curved row": "sin(u[1, 0])/sqrt(2*sin(u[1, 0])^2 + 2*sin(u[1, 1])^2 + 0.2)",
    "a column": "u[1, 0]/norm2(u[:, 0])",
}
TEXTS = {
    **{name: HEAD + f"minimize {unit}" for name, unit in UNITS.items()},
    "rows": HEAD
    + "let z[i in N, k in 2] = u[i, k]/norm2(u[i, :])\nminimize sum(z[i, 0] for i in N)",
    "cosines": HEAD
    + "let z[i in N, k in 2] = u[i, k]/norm2(u[i, :])\nminimize sum((z @ z')[0, :])",
    "standardised": HEAD
    + "let m[k in 2] = mean(u[:, k])\nlet v[k in 2] = mean((u[:, k] - m[k])^2)\n"
    + "let z[i in N, k in 2] = g[k]*(u[i, k] - m[k])/sqrt(v[k] + 0.1)\nminimize sum(z[0, :])",
    "an amplitude": HEAD + "minimize sum(sqrt(u[:, 0]^2 + sin(u[:, 1])^2 + 0.5))",
    "a length": HEAD + "minimize norm2(u[:, 0] - u[:, 1] + 3)",
}
CENTRE = np.array([1.1, -0.4, 0.3, 0.2, 1.3, -0.8, 0.7, -1.2])


def graph(text: str, x: np.ndarray, radius: float, **data: np.ndarray) -> BallGraph:
    part = with_unit_vectors(part_of(text, x.tolist(), **data))
    return ball_graph(part, radius, centre_graph(part, vectors_of(part, 10**6)))


def bounds_of(text: str, x: np.ndarray, radius: float, **data: np.ndarray) -> NodeBounds:
    run = graph(text, x, radius, **data)
    return run.curves[run.part.objective]


@pytest.mark.parametrize(("name", "radius"), [("cosines", 1e-6), *((one, 0.1) for one in TEXTS)])
def test_no_derivative_exceeds_its_bound(name: str, radius: float) -> None:
    own = bounds_of(TEXTS[name], CENTRE, radius, X=X)
    model = slomodel.compile(TEXTS[name], data={"X": X}, backend="numpy")
    assert np.isfinite(own.curvature).all()
    for direction in RNG.standard_normal((20, CENTRE.size)):
        x = CENTRE + (radius * (1.0 - 1e-9) / np.linalg.norm(direction)) * direction
        assert np.linalg.norm(model.gradient(x)) <= own.slope * (1.0 + 1e-10)
        assert np.linalg.norm(model.hessian(x), 2) <= own.curvature * (1.0 + 1e-10)


@pytest.mark.parametrize("angle", [np.arctan(np.sqrt(2.0)), 0.3])
def test_the_cosine_of_an_angle_has_the_exact_constant(angle: float) -> None:
    x = 0.5 * np.array([np.cos(angle), np.sin(angle)])
    own = bounds_of("var x[2]\nminimize (x/norm2(x))[0]", x, 1e-9)
    np.testing.assert_allclose(own.curvature, 4.0 * 2.0 / np.sqrt(3.0), rtol=1e-6)
    model = slomodel.compile("var x[2]\nminimize x[0]/norm2(x)", backend="numpy")
    attained = np.linalg.norm(model.hessian(x), 2)
    assert attained <= 8.0 / np.sqrt(3.0) * (1.0 + 1e-12)
    if angle > 0.5:
        np.testing.assert_allclose(attained, 8.0 / np.sqrt(3.0), rtol=1e-9)


@pytest.mark.parametrize("name", ["rows", "cosines", "standardised"])
def test_quotients_by_lengths_are_seen(name: str) -> None:
    part = with_unit_vectors(part_of(TEXTS[name], CENTRE.tolist(), X=X))
    assert lengths_in(part.order, part.varying).units


SPELLINGS = {
    "as written": "let z[i in N, k in 2] = g[k]*u[i, k]/norm2(u[i, :])\n",
    "factor last": "let z[i in N, k in 2] = u[i, k]/norm2(u[i, :])*g[k]\n",
    "root of squares": "let z[i in N, k in 2] = g[k]*(u[i, k]/sqrt(sumsq(u[i, :])))\n",
    "transposed": "let t = W @ X'\nlet z[i in N, k in 2] = g[k]*t[k, i]/norm2(t[:, i])\n",
}


def test_spellings_of_normalised_rows_have_the_same_bound() -> None:
    tail = "minimize sum((sin(3*z[i, 0]) + z[i, 1] - 1)^2 for i in N)"
    values = [
        bounds_of(HEAD + text + tail, CENTRE, 0.1, X=X).curvature for text in SPELLINGS.values()
    ]
    np.testing.assert_allclose(values, values[0], rtol=0.1)
