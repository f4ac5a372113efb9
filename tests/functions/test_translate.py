"""SymPy expressions become graphs of the same value; those without a rule give an error."""

from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

from slomodel.errors import DomainError, MissingRule
from slomodel.functions import (
    TABLE,
    add,
    div,
    exp,
    mul,
    neg,
    sqrt,
    square,
    sub,
    symbols,
    to_graph,
)
from slomodel.functions import pow as power
from slomodel.functions.sympy_definitions import DEFINITIONS
from slomodel.ir.build import const, variable
from slomodel.ir.expr import Const
from slomodel.ir.function import ScalarFunction
from slomodel.ir.walk import postorder
from slomodel.reference import evaluate
from tests.functions.exact_values import evaluate_at, regular_points

s, t = sp.symbols("s t", real=True)
x, y = variable("x", ()), variable("y", ())
VALUES = {s: x, t: y}


CANCELS = {
    "lbeta": 1e-9,
    "bose": 1e-9,
    "log1mexp": 1e-9,
    "logexpm1": 1e-9,
    "log_rising_factorial": 1e-8,
    "digamma_difference": 1e-8,
    "trigamma_difference": 1e-8,
    "log_bessel_i0": 1e-3,
}
"""Relative tolerances where the definition in doubles loses digits."""


UNREAD = ("floor", "log_bessel_i0_2", "log_bessel_i0_3", "sinc_1", "sinc_2")
REMOVABLE = ("quotient", "remainder", "bernoulli", "box_cox", "acos1m", "acosh1p", "atanh1m")
READ = [
    function
    for function in TABLE.values()
    if function.name not in UNREAD and not any(word in function.name for word in REMOVABLE)
]
"""The functions that are read from SymPy, which excludes those of data in indices, those for which
SymPy has further Bessel functions, and those whose definition is 0/0 near 0 or cancels there.
"""


@pytest.mark.parametrize("function", READ, ids=str)
def test_definition_has_the_meaning(function: ScalarFunction) -> None:
    """Up to cancellation: log(1 + x) and log(cosh(x)) have an absolute error of 1e-16."""
    own = symbols(function)
    expr = function.definition(*own)
    for point in regular_points(function):
        got = evaluate_at(
            lambda *v: to_graph(expr, dict(zip(own, v, strict=True))), function, point
        )
        with np.errstate(all="ignore"):
            want = function.numpy(*map(np.asarray, point)).item()
        assert got == pytest.approx(
            want, rel=CANCELS.get(function.name, 1e-13), abs=1e-15, nan_ok=True
        )


@pytest.mark.parametrize(
    ("expr", "graph"),
    [
        (s**2, square(x)),
        (1 / s, div(1.0, x)),
        (sp.sqrt(s), sqrt(x)),
        (1 / sp.sqrt(s), div(1.0, sqrt(x))),
        (s - t, sub(x, y)),
        (-s - t, neg(add(x, y))),
        (-s * t, neg(mul(x, y))),
        (s / t, div(x, y)),
        (sp.Rational(1, 3) * s, mul(Const(1 / 3, Fraction(1, 3)), x)),
        (s / 2, mul(0.5, x)),
        (2 / s**3, div(2.0, power(x, 3.0))),
        (s**t, power(x, y)),
        (sp.E**s, exp(x)),
        (2 * sp.pi, Const(2 * np.pi, 2 * sp.pi)),
        (sp.Float("0.1"), const(0.1)),
        (sp.oo, const(np.inf)),
    ],
    ids=str,
)
def test_form(expr: sp.Expr, graph: object) -> None:
    assert to_graph(expr, VALUES) is graph


@pytest.mark.parametrize(
    ("expr", "value"),
    [
        (sp.Piecewise((s, s < t), (t**2, sp.And(s > 3, t > 1)), (-1, True)), 25.0),
        (sp.Piecewise((1, sp.Or(s < 0, sp.Not(t < 1))), (2, True)), 1.0),
        (sp.Max(s, t, 6), 7.0),
        (sp.Min(s, t, 6), 5.0),
        (sp.Abs(t - s) + sp.sign(t - s), 1.0),
        (sp.exp(s) * t / (1 + s**2), np.exp(7.0) * 5 / 50),
        (sp.Add(*[sp.sin(k * s) for k in range(1, 40)]), np.sin(7.0 * np.arange(1, 40)).sum()),
    ],
    ids=str,
)
def test_value(expr: sp.Expr, value: float) -> None:
    got = evaluate([to_graph(expr, VALUES)], {x: np.asarray(7.0), y: np.asarray(5.0)})[0]
    assert got.item() == pytest.approx(value, rel=1e-13)


@pytest.mark.parametrize("kind", [*DEFINITIONS, sp.besseli], ids=lambda kind: kind.__name__)
def test_a_function_read_as_a_formula_has_its_value(kind: type[sp.Function]) -> None:
    two = kind in (sp.beta, sp.binomial, sp.erf2, sp.besseli)
    for first, second in ((0.3, 0.6), (3.7, 1.2), (25.0, 9.5)):
        arguments = ((1, s) if kind is sp.besseli else (s, t)) if two else (s,)
        want = kind(*arguments).subs({s: sp.Float(first, 30), t: sp.Float(second, 30)})
        if kind is sp.erf2:
            want = sp.erf(second) - sp.erf(first)
        want = complex(want.evalf(25))
        point = {x: np.asarray(first), y: np.asarray(second)}
        (got,) = evaluate([to_graph(kind(*arguments), VALUES)], point)
        if want.imag:
            assert np.isnan(got), "outside the domain"
        else:
            assert got.item() == pytest.approx(want.real, rel=3e-14, abs=1e-300)


@pytest.mark.parametrize(
    ("expr", "error", "words"),
    [
        (sp.zeta(s), MissingRule, "`zeta`"),
        (sp.harmonic(s, 2), MissingRule, "`harmonic`"),
        (sp.Symbol("u") + s, MissingRule, "`u`"),
        (sp.Piecewise((s, s > 0)), MissingRule, "end it with True"),
        (sp.I * s, DomainError, "not a real number"),
        (s + sp.Integer(10) ** 400, DomainError, "largest double"),
        (sp.zoo, DomainError, "not a real number"),
        (sp.nan, DomainError, "not a real number"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_refusal(expr: sp.Expr, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        to_graph(expr, VALUES)


def test_depth_is_not_a_limit() -> None:
    expr = s
    for _ in range(5000):
        expr = sp.sin(expr, evaluate=False)
    assert len(postorder(to_graph(expr, VALUES))) == 5001


def test_long_sums_are_shallow() -> None:
    terms = [sp.Symbol(f"u{k}", real=True) for k in range(1000)]
    values = {term: variable(f"u{k}", ()) for k, term in enumerate(terms)}
    depth: dict[object, int] = {}
    for node in postorder(to_graph(sp.Add(*terms), values)):
        depth[node] = 1 + max((depth[operand] for operand in node.operands), default=0)
    assert max(depth.values()) == 11


def test_a_name_is_never_read_as_code() -> None:
    hostile = sp.Symbol("__import__('os').abort()", real=True)
    assert to_graph(hostile**2, {hostile: x}) is square(x)
