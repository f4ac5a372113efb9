"""Sums of lgamma in the spellings of statistics: values and gradients at large arguments."""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest

import slomodel
from tests.rewrite.texts import functions_of, problem_of

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")

G = mp.loggamma
Formula = Callable[..., object]
DATA = {"n": np.array([3.0, 0.0, 7.0]), "w": np.array([1.0, 2.5, 0.5])}


def _student(v: object) -> object:
    return G((v + 1) / 2) - G(v / 2) - mp.log(v) / 2


def _negative_binomial(r: object, m: object) -> object:
    counts = [int(n) for n in DATA["n"]]
    return sum(G(n + r) - G(r) - r * mp.log1p(m / r) + n * mp.log(m / (r + m)) for n in counts)


def _beta_binomial(a: object, b: object) -> object:
    return G(a + 3) - G(a) + G(b + 5) - G(b) - G(a + b + 8) + G(a + b)


def _dirichlet_multinomial(a: object) -> object:
    weights = [mp.mpf(float(w)) * a for w in DATA["w"]]
    rest = sum(G(w + int(n)) - G(w) for w, n in zip(weights, DATA["n"], strict=True))
    return rest + G(sum(weights)) - G(sum(weights) + 10)


# variables, text, formula, point
ROWS: list[tuple[str, str, Formula, tuple[float, ...]]] = [
    *(
        ("v", text, _student, (at,))
        for at in (1e10, 3.0)
        for text in (
            "lgamma((v + 1) / 2) - lgamma(v / 2) - log(v) / 2",
            "-log(v) / 2 - lgamma(v / 2) + lgamma(v / 2 + 1/2)",
            "lgamma(0.5 * v + 0.5) - 0.5 * log(v) - lgamma(0.5 * v)",
            "-(lgamma(v / 2) - lgamma((1 + v) / 2)) - 0.5 * log(v)",
        )
    ),
    *(
        ("r, m", text, _negative_binomial, at)
        for at in ((1e10, 3.0), (0.1, 50.0))
        for text in (
            "sum(lgamma(n + r) - lgamma(r) + r * log(r / (r + m)) + n * log(m / (r + m)))",
            "sum(lgamma(n + r) + r * log(r / (m + r)) + n * log(m / (r + m))) - N * lgamma(r)",
            "sum(lgamma(r + n)) - sum(lgamma(r) + r * (log(r + m) - log(r)) - n * log(m / (m+r)))",
            "sum(n * log(m / (m + r))) - sum(r * log1p(m / r) - log_rising_factorial(r, n))",
        )
    ),
    *(
        ("a, b", text, _beta_binomial, at)
        for at in ((1e10, 1e9), (2.0, 1e-3))
        for text in (
            "lbeta(a + 3, b + 5) - lbeta(a, b)",
            "lgamma(a+3) - lgamma(a) + lgamma(b+5) - lgamma(b) - lgamma(a+b+8) + lgamma(a+b)",
            "(lgamma(a+3) + lgamma(5+b) + lgamma(b+a)) - (lgamma(8+a+b) + lgamma(a) + lgamma(b))",
        )
    ),
    *(
        ("a", text, _dirichlet_multinomial, (at,))
        for at in (1e9, 0.3)
        for text in (
            "sum(lgamma(a*w + n)) - sum(lgamma(a*w)) + lgamma(a * 4) - lgamma(a * 4 + 10)",
            "sum(lgamma(n + w*a) - lgamma(w*a)) - (lgamma(10 + 4*a) - lgamma(4*a))",
        )
    ),
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize(("variables", "text", "formula", "point"), ROWS)
def test_no_digits_are_lost(
    variables: str, text: str, formula: Formula, point: tuple[float, ...], backend: str
) -> None:
    """To a few roundings of the terms, which are of size log(1e10) * 20 at most."""
    model = slomodel.compile(
        f"dim N data n[N], w[N] var {variables} minimize {text}", data=DATA, backend=backend
    )
    with mp.workdps(60):
        exact = [mp.mpf(x) for x in point]
        assert model.value(point) == pytest.approx(float(formula(*exact)), rel=1e-11, abs=1e-12)
        slopes = [
            float(mp.diff(formula, tuple(exact), tuple(int(j == k) for j in range(len(point)))))
            for k in range(len(point))
        ]
    for slope, got, x in zip(slopes, model.gradient(point), point, strict=True):
        assert got == pytest.approx(slope, rel=1e-11, abs=1e-13 / max(x, 1.0))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("lgamma(x + y) - lgamma(x) - lgamma(y + 1)", {"lbeta", "log"}),
        ("lgamma(x) + lgamma(y) - lgamma(x + y)", {"lbeta"}),
        ("log_rising_factorial(x, y) - lgamma(y)", {"lbeta"}),
        ("lgamma(x + 3) - lgamma(x)", {"log_rising_factorial"}),
        ("digamma(x + y) - digamma(x)", {"digamma_difference"}),
        ("lgamma(x) - lgamma(y)", {"lgamma"}),
        ("lgamma(2 * x) - lgamma(x)", {"lgamma"}),
        ("3 * lgamma(x + 1) - 2 * lgamma(x)", {"lgamma"}),
    ],
)
def test_what_is_grouped(text: str, names: set[str]) -> None:
    from slomodel.rewrite.stable_forms.rules import stable

    found = functions_of(stable(problem_of(text).objective))
    assert found == names


def test_a_fit_of_poisson_counts_ends_at_large_dispersion() -> None:
    """The likelihood has no maximum: it increases with the dispersion, to where it is flat."""
    y = np.random.default_rng(3).poisson(4.0, 400).astype(float)
    text = """
    dim N data y[N]
    var m > 0 init 2, r > 0 init 2
    minimize -sum(lgamma(y + r) - lgamma(r) + r * log(r / (r + m)) + y * log(m / (r + m)))
    """
    solution = slomodel.compile(text, data={"y": y}).solve()
    assert solution.success
    assert solution.variables["m"] == pytest.approx(y.mean(), rel=1e-5)
