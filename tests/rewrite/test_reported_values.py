"""Values and gradients of formulas in public reports, all from 60 digits, on each target."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import slomodel

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")

DATA = {"w": np.array([0.25, 0.75]), "X": np.array([[0.0, 1.0], [2.0, 0.0]])}
TAIL = "-log(0.5 * (1 + erf(x / sqrt(2))))"
Point = tuple[float, ...]
# variables, what is minimised, a point, the value, the gradient where it is reported
REPORTED: list[tuple[str, str, Point, float, Point | None]] = [
    ("z[2]", "log(sum(w .* exp(z)))", (-900.0, -1000.0), -901.3862943611199, (1.0, 1.1e-43)),
    ("z[2]", "log(sum(w .* exp(z)))", (800.0, 900.0), 899.7123179275483, None),
    ("a, b", "log(0.25 * exp(a) + 0.75 * exp(b))", (800.0, 900.0), 899.7123179275483, None),
    ("z[2]", "log(w @ exp(z))", (800.0, 900.0), 899.7123179275483, None),
    ("z[2]", "log(dot(w, exp(z)))", (800.0, 900.0), 899.7123179275483, None),
    ("z[2]", "logsumexp(log(w) + z)", (800.0, 900.0), 899.7123179275483, None),
    (
        "M[2, 2]",
        "sum(X .* log(X ./ M) - X + M)",
        (1.0, 0.5, 0.5, 2.0),
        4.465735902799727,
        (1.0, -1.0, -3.0, 1.0),
    ),
    ("x", "0.5 * x * log(x)", (0.0,), 0.0, None),
    ("x", "x * (log(x) - 1)", (0.0,), 0.0, None),
    ("x", "x * log(x) / 2", (0.0,), 0.0, None),
    ("x", TAIL, (-7.0,), 27.384307498811076, None),
    ("x", TAIL, (-8.0,), 35.01343716, None),
    ("x", TAIL, (-10.0,), 53.23128515051247, None),
    ("x", TAIL, (-40.0,), 804.6084420137538, None),
    ("x", "(x^2)^0.75", (0.0,), 0.0, (0.0,)),
    ("x", "x * sqrt(x)", (0.0,), 0.0, (0.0,)),
    ("x", "sqrt(x)^2", (0.0,), 0.0, (1.0,)),
    ("x[2]", "sqrt(sum(w .* x^2))", (0.0, 0.0), 0.0, (0.0, 0.0)),
    ("x", "sqrt(3 * exp(-877 * x))", (1.0,), 6.3158282690528883e-191, (-2.7694906959796915e-188,)),
    ("x", "log(exp(x) - 1)", (800.0,), 800.0, (1.0,)),
    ("a, b", "log(exp(a) - exp(b))", (800.0, 799.0), 799.5413248546129, (1.58198, -0.58198)),
    ("x", "log1p(-exp(x))", (-1e-20,), -46.0517, None),
]


def _digits(number: float) -> float:
    """The relative tolerance for a number as it is reported."""
    return 1e-14 if len(f"{number!r}".replace("-", "")) > 15 else 1e-5 if number else 0.0


@pytest.mark.parametrize("backend", ["numpy", "numexpr", "c"])
def test_reported_values(backend: str) -> None:
    for declared, text, point, value, slopes in REPORTED:
        used = [name for name in DATA if f"{name} " in text or f"({name}" in text]
        shapes = {"w": "w[2]", "X": "X[2, 2]"}
        data = f"data {', '.join(shapes[name] for name in used)}" if used else ""
        model = slomodel.compile(
            f"{data} var {declared} minimize {text}",
            data={name: DATA[name] for name in used},
            backend=backend,
        )
        assert model.value(point) == pytest.approx(value, rel=_digits(value), abs=0), text
        if slopes is not None:
            for got, want in zip(model.gradient(point), slopes, strict=True):
                tolerance = 0.05 if want == 1.1e-43 else max(_digits(want), 1e-14)
                assert got == pytest.approx(want, rel=tolerance, abs=0), text


X, A, B = sp.symbols("x a b", real=True)
SYMPY_TAIL = -sp.log(sp.Rational(1, 2) * (1 + sp.erf(X / sp.sqrt(2))))
MILLS = sp.exp(-(X**2) / 2) / sp.sqrt(2 * sp.pi) / (sp.erfc(-X / sp.sqrt(2)) / 2)
FORMS: list[tuple[sp.Expr, Point, float, Point | None]] = [
    ((X**2) ** sp.Rational(3, 4), (0.0,), 0.0, (0.0,)),
    (X * sp.sqrt(X), (0.0,), 0.0, (0.0,)),
    (sp.sqrt(3 * sp.exp(-877 * X)), (1.0,), 6.3158282690528883e-191, (-2.7694906959796915e-188,)),
    (sp.sqrt(A**2 / 4 + 3 * B**2 / 4), (0.0, 0.0), 0.0, (0.0, 0.0)),
    (sp.log(sp.exp(X) - 1), (800.0,), 800.0, (1.0,)),
    (sp.log(sp.exp(A) - sp.exp(B)), (800.0, 799.0), 799.5413248546129, (1.58198, -0.58198)),
    (sp.log(1 - sp.exp(X)), (-1e-20,), -46.0517, None),
    (SYMPY_TAIL, (-10.0,), 53.23128515051247, None),
    (SYMPY_TAIL, (-40.0,), 804.6084420137538, None),
    (sp.log(sp.exp(A) / 4 + 3 * sp.exp(B) / 4), (800.0, 900.0), 899.7123179275483, None),
    (X * (sp.log(X) - 1), (0.0,), 0.0, None),
    (MILLS, (-40.0,), 40.0249688, None),
    (sp.exp(A) / (3 * (sp.exp(A) + sp.exp(B))), (800.0, 799.0), 0.2436862, None),
    (sp.log(1 + B**2 * sp.exp(A)), (800.0, 0.0), 0.0, (0.0, 0.0)),
    (X * sp.Abs(X), (0.0,), 0.0, (0.0,)),
    ((A**2 + B**2) ** sp.Rational(3, 2), (0.0, 0.0), 0.0, (0.0, 0.0)),
]


def test_sympy_forms() -> None:
    for expr, point, value, slopes in FORMS:
        model = slomodel.compile(expr, backend="numpy")
        with np.errstate(all="ignore"):
            assert model.value(point) == pytest.approx(value, rel=_digits(value), abs=0), expr
            if slopes is not None:
                np.testing.assert_allclose(
                    model.gradient(point), slopes, rtol=1e-5, atol=0, err_msg=str(expr)
                )
