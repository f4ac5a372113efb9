"""Random spellings of one function near its edges: values, gradients, products with the Hessian."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

import slomodel
from tests.rewrite.test_edges import Formula, exact, lse, tail

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")

DRAWN = 4
LEAST = 1e-149


# Spellings of one function, drawn from alternatives of its parts.
def _drawn(rng: np.random.Generator, parts: dict[str, list[str]], text: str) -> str:
    """`text` with each `{name}` replaced by a random alternative, until none is left."""
    while "{" in text:
        name = text[text.index("{") + 1 : text.index("}")]
        options = parts[name]
        text = text.replace(f"{{{name}}}", options[rng.integers(len(options))], 1)
    return text


SPELLINGS: list[tuple[dict[str, list[str]], str, str, tuple[float, ...], Formula]] = [
    (
        {
            "sum": [
                "{A} + {B}",
                "{B} + {A}",
                "({A} + {B}) * 1",
                "2 * ({A} / 2 + {B} / 2)",
                "-(-{A} - {B})",
            ],
            "A": [
                "0.2 * {ea}",
                "{ea} * 0.2",
                "{ea} / 5",
                "(2 * {ea} / 10)",
                "0.2 * exp(a / 2) * exp(a / 2)",
            ],
            "B": ["3 * {eb}", "{eb} * 3", "{eb} / (1/3)", "(6 * {eb} / 2)", "3 / exp(-b)"],
            "ea": ["exp(a)", "(1 / exp(-a))", "exp(2 * a / 2)", "exp(a/2)^2"],
            "eb": ["exp(b)", "exp(b + 0)", "exp(-(-b))", "exp(2 * b)^0.5"],
        },
        "log({sum})",
        "a, b",
        (810.0, 808.0),
        lambda a, b: lse((mp.mpf(0.2), 3), a, b),
    ),
    (
        {
            "p": [
                "{x} * {r}",
                "{r} * {x}",
                "{r}^3",
                "sqrt({x}^3)",
                "({x}^3)^0.5",
                "{x}^2 / {r}",
                "{r} / (1/{x})",
            ],
            "x": ["x", "(2 * x / 2)", "(x + 0)"],
            "r": ["sqrt(x)", "(x^0.5)", "(x^(1/2))"],
        },
        "{p}",
        "x",
        (1e-9,),
        lambda x: x ** mp.mpf(1.5),
    ),
    (
        {
            "t": [
                "log({u} - {v})",
                "log(-({v} - {u}))",
                "log(({u} - {v}) / 2) + log(2)",
                "log(2 * {u} - 2 * {v}) - log(2)",
            ],
            "u": ["exp(a)", "1 / exp(-a)", "exp(a)"],
            "v": ["exp(b)", "1 / exp(-b)"],
        },
        "{t}",
        "a, b",
        (900.0, 899.5),
        lambda a, b: mp.log(mp.exp(a) - mp.exp(b)),
    ),
    (
        {
            "f": [
                "log({h} * (1 + {erf}))",
                "log((1 + {erf}) / 2)",
                "log({h} + {h} * {erf})",
                "log(1 - {h} * erfc({u}))",
            ],
            "h": ["0.5", "(1/2)"],
            "erf": ["erf({u})", "-erf(-{u})", "(2 * erf({u}) / 2)"],
            "u": ["(x / sqrt(2))", "(sqrt(0.5) * x)"],
        },
        "{f}",
        "x",
        (-12.0,),
        lambda x: -tail(x),
    ),
    (
        {
            "f": ["log({a} - {b})", "log(-({b} - {a}))", "log(2 * {a} - 2 * {b}) - log(2)"],
            "a": ["normcdf(x)", "(0.5 * erfc(-{u}))", "(1 - normcdf(-x))", "(1 - 0.5 * erfc({u}))"],
            "b": ["normcdf(y)", "(erfc(-{v}) / 2)", "(1 - normcdf(-y))"],
            "u": ["(x / sqrt(2))"],
            "v": ["(y / sqrt(2))"],
        },
        "{f}",
        "x, y",
        (-12.0, -12.5),
        lambda x, y: mp.log((mp.erfc(-x / mp.sqrt(2)) - mp.erfc(-y / mp.sqrt(2))) / 2),
    ),
    (
        {
            "f": [
                "{g} - lgamma({r}) - {y} * log({r})",
                "-lgamma({r}) + ({g} - {y} * log({r}))",
                "-(lgamma({r}) - {g}) - {y} * log({r})",
                "log_rising_factorial({r}, {y}) - {y} * log({r})",
                "lgamma({y}) - lbeta({r}, {y}) - {y} * log({r})",
            ],
            "g": ["lgamma({r} + {y})", "lgamma({y} + {r})", "lgamma(1 * {r} + {y})"],
            "r": ["r", "(2 * r / 2)", "(r + 0)"],
            "y": ["y", "(y / 2 + y / 2)"],
        },
        "{f}",
        "r, y",
        (1e3, 7.5),
        lambda r, y: mp.loggamma(r + y) - mp.loggamma(r) - y * mp.log(r),
    ),
    (
        {
            "f": ["{n} / {d}", "{n} * (1 / {d})", "-{n} / (-{d})", "2 * {n} / (2 * {d})"],
            "n": ["x^3", "(x * x^2)", "(x^2 * x)"],
            "d": ["(exp(x) - 1)", "expm1(x)", "(-1 + exp(x))", "((2 * exp(x) - 2) / 2)"],
        },
        "{f}",
        "x",
        (700.0,),
        lambda x: x**3 / (mp.exp(x) - 1),
    ),
    (
        {
            "f": ["{g} / {d}", "{g} * (1 / {d})", "2 * {g} / (2 * {d})"],
            "g": ["exp(-x^2 / 2)", "exp(-(x^2) / 2)", "exp(-0.5 * x^2)", "exp(-x * x / 2)"],
            "d": ["normcdf(x)", "(1 - normcdf(-x))", "(0.5 * erfc(-x / sqrt(2)))"],
        },
        "{f}",
        "x",
        (-7.5,),
        lambda x: 2 * mp.exp(-x * x / 2) / mp.erfc(-x / mp.sqrt(2)),
    ),
    (
        {
            "f": ["log({p} + {q} * {z})", "log({q} * {z} + {p})", "-log(1 / ({p} + {z} * {q}))"],
            "p": ["sigmoid(x)", "1 / (1 + exp(-x))", "(exp(x) / (1 + exp(x)))"],
            "q": ["(1 - sigmoid(x))", "sigmoid(-x)", "(1 / (1 + exp(x)))"],
            "z": ["exp(-exp(y))", "(1 / exp(exp(y)))"],
        },
        "{f}",
        "x, y",
        (-750.0, 6.8),
        lambda x, y: mp.log((mp.exp(x) + mp.exp(-mp.exp(y))) / (1 + mp.exp(x))),
    ),
    (
        {
            "f": ["({a} * {u} + {b} * {v}) / ({u} + {v})", "({v} * {b} + {u} * {a}) / ({v} + {u})"],
            "a": ["a", "(2 * a / 2)"],
            "b": ["b"],
            "u": ["exp(300 * a)", "exp(a * 300)", "exp(-(-300 * a))"],
            "v": ["exp(300 * b)", "exp(b * 300)"],
        },
        "{f}",
        "a, b",
        (3.0, 3.002),
        lambda a, b: (
            (a * mp.exp(300 * a) + b * mp.exp(300 * b)) / (mp.exp(300 * a) + mp.exp(300 * b))
        ),
    ),
    (
        {
            "f": [
                "{n} / {d}",
                "{n} * (1 / {d})",
                "{n} / x / x^2",
                "{n} * x^(-3)",
                "-{n} / (-{d})",
                "(sin(x) / x - cos(x)) / x^2",
                "sin(x) / {d} - cos(x) / x^2",
            ],
            "n": [
                "(sin(x) - x * cos(x))",
                "(-x * cos(x) + sin(x))",
                "((2 * sin(x) - 2 * x * cos(x)) / 2)",
            ],
            "d": ["x^3", "(x * x^2)", "(x * x * x)"],
        },
        "{f}",
        "x",
        (1e-5,),
        lambda x: (mp.sin(x) - x * mp.cos(x)) / x**3,
    ),
    (
        {
            "f": ["2 * {d}", "{d} / 0.5", "2 * {e}", "-2 * (y * log(x / y) + y - x)"],
            "d": ["(y * {l} - (y - x))", "(y * {l} - y + x)", "(x - y + y * {l})"],
            "e": ["(y * log(y) - y * log(x) - y + x)", "(x - y + y * (log(y) - log(x)))"],
            "l": ["log(y / x)", "(log(y) - log(x))", "(-log(x / y))"],
        },
        "{f}",
        "x, y",
        (300.0, 300.0001),
        lambda x, y: 2 * (y * mp.log(y / x) - y + x),
    ),
    (
        {
            "f": ["{k} / {d}", "{k} * (1 / {d})", "{k} * {d}^(-1)", "-{k} / (-{d})"],
            "k": ["x", "(2 * x / 2)"],
            "d": ["(1 + 9 * {e})", "({e} * 9 + 1)", "(1 + exp(log(9) - 3 * y))"],
            "e": ["exp(-3 * y)", "(1 / exp(3 * y))", "exp(-y)^3"],
        },
        "{f}",
        "x, y",
        (2.0, -300.0),
        lambda x, y: x / (1 + 9 * mp.exp(-3 * y)),
    ),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", range(len(SPELLINGS)))
def test_spellings_of_one_function_agree(case: int) -> None:
    """Value and gradient to 1e-12 near the edge, Hessian product to 1e-10."""
    parts, text, variables, point, formula = SPELLINGS[case]
    rng = np.random.default_rng(case)
    value, slopes = exact(formula, point)
    direction = np.linspace(1.0, 2.0, len(point))
    with mp.workdps(500):
        h = mp.mpf(10) ** -60
        moved = [exact_slopes(formula, point, [s * h * d for d in direction]) for s in (1, -1)]
        curved = [float((a - b) / (2 * h)) for a, b in zip(*moved, strict=True)]
    for spelling in {_drawn(rng, parts, text) for _ in range(DRAWN)}:
        model = slomodel.compile(f"var {variables} minimize {spelling}", backend="numpy")
        # Numbers are rounded, and values that underflow may differ in that range.
        moved = 1e-15 * float(np.abs(slopes) @ np.abs(point)) + LEAST
        assert model.value(point) == pytest.approx(value, rel=1e-12, abs=moved), spelling
        np.testing.assert_allclose(
            model.gradient(point), slopes, rtol=1e-12, atol=LEAST, err_msg=spelling
        )
        product = model.hvp(point, direction)
        scale = np.abs(curved).max() + np.abs(slopes).max() * 1e-3 + LEAST
        np.testing.assert_allclose(
            product, curved, rtol=1e-10, atol=1e-10 * scale, err_msg=spelling
        )


def exact_slopes(formula: Formula, point: tuple[float, ...], by: list[object]) -> list[object]:
    """The gradient at a point that is moved."""
    h = mp.mpf(10) ** -90
    numbers = [mp.mpf(x) + d for x, d in zip(point, by, strict=True)]
    found = []
    for k in range(len(point)):
        ends = [formula(*(x + s * h * (j == k) for j, x in enumerate(numbers))) for s in (1, -1)]
        found.append((ends[0] - ends[1]) / (2 * h))
    return found
