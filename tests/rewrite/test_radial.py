"""Functions of a norm without a linear term: Hessian products at 0, where the norm has none."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import slomodel
from tests.rewrite.test_continued import compare
from tests.rewrite.test_edges import Formula

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")

EVEN: list[tuple[str, float]] = [
    ("cosh({r})", 1.0),
    ("cos(2 * {r})", -4.0),
    ("1 - cos({r})", 1.0),
    ("{r} * tanh({r})", 2.0),
    ("{r} * sin({r}) + 3", 2.0),
    ("log(cosh({r}))", 1.0),
    ("sinh({r})^2", 2.0),
    ("exp({r}) + exp(-{r})", 2.0),
    ("(1 + {r}) * exp(-{r})", -1.0),
    ("exp(-{r}) + {r} * exp(-{r})", -1.0),
    ("(1 + sqrt(5) * {r} + 5 / 3 * {r}^2) * exp(-sqrt(5) * {r})", -5 / 3),
    ("{r} - log(1 + {r})", 1.0),
    ("sqrt(1 + {r}) - {r} / 2", -0.25),
    ("(1 - cos({r})) / {r}^2", -1 / 12),
    ("{r}^3 / (1 + {r}^2)", 0.0),
    ("{r}^2 / (1 + {r})", 2.0),
    ("{r} * erf({r})", 4 / np.sqrt(np.pi)),
    ("{r} * (normcdf({r}) - 0.5)", np.sqrt(2 / np.pi)),
]
"""Functions f of a norm r, and f''(0)."""
NORMS = ["norm2(v)", "sqrt(v[0]^2 + v[1]^2)", "sqrt(sum(v .* v))", "hypot(v[0], v[1])"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("text", "curvature"), EVEN)
def test_hessian_at_0(text: str, curvature: float, norm: str) -> None:
    model = slomodel.compile(f"var v[2]\nminimize {text.format(r=norm)}", backend="numpy")
    v = np.array([1.0, -2.0])
    assert not model.gradient([0.0, 0.0]).any()
    np.testing.assert_allclose(model.hvp([0.0, 0.0], v), curvature * v, rtol=3e-15)


@pytest.mark.parametrize(("text", "curvature"), EVEN[::3])
def test_absolute_values(text: str, curvature: float) -> None:
    model = slomodel.compile(f"var x\nminimize {text.format(r='abs(x)')}", backend="numpy")
    assert model.hvp([0.0], [1.0]) == pytest.approx(curvature, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("sqrt(x^2 + y^2) * tanh(sqrt(x^2 + y^2))", lambda r: r * mp.tanh(r)),
        ("cosh(sqrt(x^2 + y^2)) - 1", lambda r: mp.cosh(r) - 1),
        ("(1 + hypot(x, y)) * exp(-hypot(x, y))", lambda r: (1 + r) * mp.exp(-r)),
        ("hypot(x, y) - log(1 + hypot(x, y))", lambda r: r - mp.log(1 + r)),
    ],
)
def test_values_and_derivatives(text: str, formula: Formula) -> None:
    def of_point(x: object, y: object) -> object:
        return formula(mp.sqrt(x * x + y * y))  # type: ignore[operator]

    compare(text, of_point, [(1e-9, 1e-8), (0.3, -0.4), (3.0, 4.0)], "numpy")


@pytest.mark.parametrize(
    ("text", "curvature"),
    [
        ("sum(abs(v) .* tanh(abs(v)))", 2.0),
        ("sum(w .* abs(v) .* tanh(abs(v)))", 2.0),
        ("sum(abs(v) .* abs(tanh(v)))", 2.0),
        ("sum(abs(sinh(v)) .* abs(atan(v)))", 2.0),
        ("sum(abs(v[k]) * sin(abs(v[k])) for k in 2)", 2.0),
        ("sum((1 + abs(v)) .* exp(-abs(v)))", -1.0),
        ("sum(w .* (1 + abs(v)) .* exp(-abs(v)))", -1.0),
        ("sum(log(1 + abs(v) + v^2) - abs(v))", 1.0),
    ],
)
def test_sums_of_products(text: str, curvature: float) -> None:
    declared = "data w[2]\n" if "w" in text else ""
    data = {"w": np.ones(2)} if declared else None
    model = slomodel.compile(f"{declared}var v[2]\nminimize {text}", data=data, backend="numpy")
    v = np.array([1.0, -2.0])
    np.testing.assert_allclose(model.hvp([0.0, 0.0], v), curvature * v, rtol=1e-14)


def test_odd_functions_keep_their_kink() -> None:
    model = slomodel.compile("var v[2]\nminimize sinh(norm2(v))", backend="numpy")
    assert model.gradient([3e-9, 4e-9]) == pytest.approx([0.6, 0.8])


@pytest.mark.parametrize("text", ["norm2(x)^5", "hypot(x[0], x[1])^5", "sumsq(x)^2.5"])
def test_odd_powers_of_norms_have_no_even_part(text: str) -> None:
    model = slomodel.compile(f"var x[2]\nminimize {text}", backend="numpy")
    for x in (np.array([0.3, -0.4]), np.array([3e-3, -4e-3]), np.zeros(2)):
        r = np.linalg.norm(x)
        assert_allclose(model.value(x), r**5, rtol=1e-13)
        assert_allclose(model.gradient(x), 5 * r**3 * x, rtol=1e-13)
        wanted = 5 * r**3 * np.eye(2) + 15 * r * np.outer(x, x)
        assert_allclose(model.hessian(x), wanted, rtol=1e-13)
