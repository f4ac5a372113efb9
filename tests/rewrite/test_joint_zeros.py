"""Sums whose terms cancel where a quantity takes a value, or where two quantities are equal."""

from __future__ import annotations

import mpmath as mp
import pytest

import slomodel
from slomodel.ir.walk import postorder
from slomodel.rewrite.series.continued import continued
from slomodel.rewrite.stable_forms.rules import stable
from tests.rewrite.test_continued import compare
from tests.rewrite.test_edges import Formula
from tests.rewrite.texts import functions_of, problem_of

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")

L, E, S = mp.log, mp.exp, mp.sqrt
Point = tuple[float, ...]
NEAR = [(a, a * (1.0 + q)) for a in (1e-5, 300.0) for q in (1e-9, -1e-6, 0.2)]


def _jensen_shannon(x: object, y: object) -> object:
    m = (x + y) / 2  # type: ignore[operator]
    return (x * L(x / m) + y * L(y / m)) / 2  # type: ignore[operator]


def _normals(x: object, y: object) -> object:
    return L(y / x) + x**2 / (2 * y**2) - mp.mpf(1) / 2  # type: ignore[operator]


CASES: list[tuple[str, Formula, list[Point]]] = [
    ("0.5 * x * log(2 * x / (x + y)) + 0.5 * y * log(2 * y / (x + y))", _jensen_shannon, NEAR),
    (
        "x * log(x) / 2 + y * log(y) / 2 - (x + y) / 2 * log((x + y) / 2)",
        _jensen_shannon,
        NEAR,
    ),
    ("log(y / x) + x^2 / (2 * y^2) - 1/2", _normals, NEAR),
    ("0.5 * (2 * log(y) - 2 * log(x) + (x / y)^2 - 1)", _normals, NEAR),
    *(
        (text, lambda x, y: x * L(x / (y + 2)) - x + y + 2, [(2.5, 0.5000001), (2.5, 4.0)])
        for text in ("x * log(x / (y + 2)) - x + y + 2", "x * log(x) - x * log(y + 2) - x + y + 2")
    ),
    ("x^2 / y - 2 * x + y", lambda x, y: (x - y) ** 2 / y, NEAR),
    ("0.5 * (x + y) - sqrt(x * y)", lambda x, y: (S(x) - S(y)) ** 2 / 2, NEAR),
    (
        "2 * sqrt(x) - 2 * sqrt(y) - (x - y) / sqrt(y)",
        lambda x, y: 2 * S(x) - 2 * S(y) - (x - y) / S(y),
        NEAR,
    ),
    (
        "exp(x) - exp(y) - exp(y) * (x - y)",
        lambda x, y: E(x) - E(y) - E(y) * (x - y),
        [(1.0, 1.0 + 1e-9), (-700.0, -700.001), (2.0, 1.0)],
    ),
    (
        "-0.5 * (1 + x - y^2 - exp(x))",
        lambda x, y: -(1 + x - y**2 - E(x)) / 2,
        [(1e-9, 1e-9), (-1e-5, 1e-9), (0.4, 1.0)],
    ),
    (
        "x - sin(x) + y - tanh(y)",
        lambda x, y: x - mp.sin(x) + y - mp.tanh(y),
        [(1e-5, 1e-4), (1e-100, 0.01), (1.0, 2.0)],
    ),
    (
        "sqrt(1 + x^2) + sqrt(1 + y^2) - 2",
        lambda x, y: S(1 + x * x) + S(1 + y * y) - 2,
        [(1e-9, 1e-7), (1.0, 2.0)],
    ),
    (
        "x^2 / 2 - log(x) - 0.5 + y^2 / 2",
        lambda x, y: x**2 / 2 - L(x) - mp.mpf(0.5) + y**2 / 2,
        [(1.0 + 1e-9, 1e-9), (3.0, 2.0)],
    ),
    ("x^2 - 1 - 2 * log(x)", lambda x: x**2 - 1 - 2 * L(x), [(1.0 + 1e-9,), (0.3,)]),
    ("1 / x + x - 2", lambda x: 1 / x + x - 2, [(1.0 + 1e-9,), (3.0,)]),
    (
        "log(2) + x * log(x) + (1 - x) * log(1 - x)",
        lambda x: L(2) + x * L(x) + (1 - x) * L(1 - x),
        [(0.5 + 1e-9,), (0.3,)],
    ),
    ("log2(1 + x) - x / log(2)", lambda x: (L(1 + x) - x) / L(2), [(1e-6,), (0.5,)]),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("text", "formula", "points"), CASES, ids=[one[0] for one in CASES])
def test_values_and_derivatives(text: str, formula: Formula, points: list[Point]) -> None:
    compare(text, formula, points, "numpy")


def test_terms_beside_the_group_remain() -> None:
    """Of the constant as much is taken as the group cancels."""
    model = slomodel.compile("var x, y\nminimize 3 * y + exp(x) - x + 4", backend="numpy")
    assert model.value([1e-9, 2.0]) == 11.0
    model = slomodel.compile(
        "var x, y, z, w\nminimize log(y / x) + (x^2 + (z - w)^2) / (2 * y^2) - 1/2",
        backend="numpy",
    )
    x, y, z, w = 0.3, 0.3000001, 1e-9, 3e-9
    with mp.workdps(50):
        exact = (
            L(mp.mpf(y) / x)
            + (mp.mpf(x) ** 2 + mp.mpf(z - w) ** 2) / (2 * mp.mpf(y) ** 2)
            - mp.mpf(0.5)
        )
    assert model.value([x, y, z, w]) == pytest.approx(float(exact), rel=1e-13)


@pytest.mark.parametrize(
    "text",
    [
        "x + y - z",
        "exp(x) - 1 + y",
        "x * log(x / y) - x + 2 * y",
        "x^2 / y - 3 * x + y",
        "log(x) + x^2 / (2 * y^2) - 1/2",
        "exp(x) - exp(y) - exp(y) * (x + y)",
        # They vanish at 0, where no terms cancel.
        "x^6 - 3 * x^2 + x",
        "sin(x) + x^2",
        "x + x * exp(x)",
    ],
)
def test_other_sums_are_left_as_they_are(text: str) -> None:
    objective = stable(problem_of(text.replace("z", "v[0]")).objective)
    assert "where" not in functions_of(continued(objective)) - functions_of(objective)


def test_chains_of_sums_are_not_expanded_at_each_node() -> None:
    lets = "".join(f"let p{k} = sin(p{k - 1}) + x\n" for k in range(1, 600))
    model = slomodel.compile(f"var x\nlet p0 = x\n{lets}minimize p599^2")
    assert model.value([0.0]) == 0.0


def test_long_sums_take_linear_time() -> None:
    """Sums of more than a few terms are not examined."""
    text = " + ".join(f"{k} * log(x + {k})" for k in range(1, 400))
    objective = problem_of(text).objective
    assert len(postorder(continued(objective))) <= len(postorder(objective))
