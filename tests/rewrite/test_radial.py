"""Even functions of a norm: Hessian products at 0, where the norm has no derivative."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

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
    np.testing.assert_allclose(model.hvp([0.0, 0.0], v), curvature * v, rtol=1e-15)


@pytest.mark.parametrize(("text", "curvature"), EVEN[::3])
def test_absolute_values(text: str, curvature: float) -> None:
    model = slomodel.compile(f"var x\nminimize {text.format(r='abs(x)')}", backend="numpy")
    assert model.hvp([0.0], [1.0]) == pytest.approx(curvature, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("sqrt(x^2 + y^2) * tanh(sqrt(x^2 + y^2))", lambda r: r * mp.tanh(r)),
        ("cosh(sqrt(x^2 + y^2)) - 1", lambda r: mp.cosh(r) - 1),
    ],
)
def test_values_and_derivatives(text: str, formula: Formula) -> None:
    def of_point(x: object, y: object) -> object:
        return formula(mp.sqrt(x * x + y * y))  # type: ignore[operator]

    compare(text, of_point, [(1e-9, 1e-8), (0.3, -0.4), (3.0, 4.0)], "numpy")


def test_odd_functions_keep_their_kink() -> None:
    model = slomodel.compile("var v[2]\nminimize sinh(norm2(v))", backend="numpy")
    assert model.gradient([3e-9, 4e-9]) == pytest.approx([0.6, 0.8])
