"""Spellings by SymPy: expanded, factored, combined and so on, near the edges of functions."""

import ast
import warnings
from collections.abc import Callable

import numpy as np
import pytest
import sympy as sp

import slomodel
from tests.rewrite.random_algebra import tree
from tests.rewrite.test_random_algebra import exact

SYMBOLS = sp.symbols("x y", real=True)
REWRITINGS: dict[str, Callable[[sp.Expr], sp.Expr]] = {
    "as it is": lambda e: e,
    "expand": sp.expand,
    "together": sp.together,
    "factor": sp.factor,
    "powsimp": sp.powsimp,
    "expand_log": lambda e: sp.expand_log(e, force=True),
    "logcombine": lambda e: sp.logcombine(e, force=True),
    "exponentials": lambda e: e.rewrite(sp.exp),
    "cancel": sp.cancel,
    "expand powers": lambda e: sp.expand(e, power_exp=True),
}
ANY = frozenset[str]()
FORMULAS: list[tuple[str, tuple[float, ...], frozenset[str]]] = [
    ("log(exp(x) + 2 * exp(y))", (800.0, 790.0), ANY),
    ("log(0.25 * exp(x) + 0.75 * exp(y))", (800.0, -900.0), ANY),
    ("log((exp(x) + 3 * exp(y)) / (exp(x) + exp(y)))", (800.0, 799.0), ANY),
    ("(x * exp(x) + y * exp(y)) / (exp(x) + exp(y))", (800.0, 799.0), ANY),
    ("exp(x) / (exp(x) + exp(y) + 1)", (800.0, -3.0), ANY),
    ("log(exp(x) - exp(y))", (800.0, 799.5), ANY),
    ("x * log(y) + (1 - x) * log(1 - y)", (0.25, 1e-20), ANY),
    ("log(normcdf(x))", (-30.0,), ANY),
    # Of a/D + b/D with a common divisor, each quotient overflows.
    ("normcdf(x) / normcdf(y)", (-38.0, -38.5), frozenset(("expand", "expand powers"))),
    ("exp(x) / sigmoid(y)", (-760.0, -761.0), ANY),
    ("3 * sigmoid(x) / sigmoid(y)", (-760.0, -761.0), ANY),
    ("log(softplus(x)^y)", (-800.0, 2.0), ANY),
    ("sqrt(x^2 + 1) - x", (1e7,), ANY),
    ("sqrt(x + 1) - sqrt(x)", (1e12,), ANY),
    ("(exp(x) - exp(y)) / (x - y)", (1.0, 1.00001), ANY),
    ("exp(-sqrt(x^2 + y^2))", (1e-8, 1e-9), ANY),
    ("log(exp(x) + exp(-x) - 2)", (800.0,), ANY),
    ("1 / (exp(x) - 1) - 1 / x", (1e-6,), ANY),
]
"""Formulas, each with a point near an edge, and the rewritings in which digits are lost."""
_FUNCTIONS: dict[str, Callable[[sp.Expr], sp.Expr]] = {
    "normcdf": lambda a: (1 + sp.erf(a / sp.sqrt(2))) / 2,
    "sigmoid": lambda a: 1 / (1 + sp.exp(-a)),
    "softplus": lambda a: sp.log(1 + sp.exp(a)),
}


def written_in_sympy(node: ast.expr) -> sp.Expr:
    """A formula of `random_algebra` in SymPy."""
    match node:
        case ast.Constant(value=number):
            return sp.Rational(str(number))
        case ast.Name(id=name):
            return SYMBOLS["xy".index(name)]
        case ast.UnaryOp(operand=inner):
            return -written_in_sympy(inner)
        case ast.BinOp(left=left, op=operator, right=right):
            a, b = written_in_sympy(left), written_in_sympy(right)
            by_kind = {ast.Add: a + b, ast.Sub: a - b, ast.Mult: a * b, ast.Pow: a**b}
            return a / b if isinstance(operator, ast.Div) else by_kind[type(operator)]
        case ast.Call(func=ast.Name(id=name), args=[inner]):
            function = _FUNCTIONS.get(name) or getattr(sp, name)
            return function(written_in_sympy(inner))
    raise ValueError(ast.dump(node))


def fault(text: str, point: tuple[float, ...], rewriting: str) -> str:
    """What a rewriting gets wrong; empty where it agrees."""
    expression = REWRITINGS[rewriting](written_in_sympy(tree(text)))
    v = np.array((1.0, -0.7))[: len(point)]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", slomodel.ModelWarning)
        model = slomodel.compile(expression, list(SYMBOLS[: len(point)]), backend="numpy")
        got = [[model.value(point)], model.gradient(point), model.hvp(point, v)]
    wrong = ""
    for order, (own, (wanted, slack)) in enumerate(zip(got, exact(text, point), strict=True)):
        if not np.all(np.abs(np.subtract(own, wanted)) <= slack):
            wrong += f"{expression} at {point}: derivative {order} {own}, not {wanted}; "
    return wrong


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", range(len(FORMULAS)), ids=[text for text, _, _ in FORMULAS])
def test_rewritings_agree(case: int) -> None:
    """Value, gradient and Hessian product to 1e-12 in two of the rewritings."""
    text, point, lossy = FORMULAS[case]
    names = [one for one in REWRITINGS if one not in lossy]
    for k in (case, case + 4):
        assert not fault(text, point, names[k % len(names)])


@pytest.mark.slow
@pytest.mark.parametrize("case", range(len(FORMULAS)), ids=[text for text, _, _ in FORMULAS])
def test_all_rewritings_agree(case: int) -> None:
    text, point, lossy = FORMULAS[case]
    faults = [fault(text, point, one) for one in REWRITINGS if one not in lossy]
    assert not any(faults), "\n".join(one for one in faults if one)
