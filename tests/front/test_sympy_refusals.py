"""Errors in SymPy expressions: code, message, and the part that it shows."""

from __future__ import annotations

import ast

import numpy as np
import pytest
import sympy as sp
from sympy.tensor.indexed import Idx

from slomodel import DomainError, MissingRule, ModelSyntaxError, ShapeError, SlomodelError, compile

x, y = sp.symbols("x y")
i, j, n, m = sp.symbols("i j n m", integer=True)
X, Y = sp.IndexedBase("x"), sp.IndexedBase("y")
A, B = sp.MatrixSymbol("A", n, m), sp.MatrixSymbol("B", m, n)
Q = sp.MatrixSymbol("Q", 2, 2)
z = sp.Symbol("z", complex=True)
b = sp.Symbol("b")

# expression, code, kind, what the message says, what it shows
PARTS = [
    (sp.Eq(x, y), "E401", ModelSyntaxError, "this is a condition", "Eq(x, y)"),
    (x < y, "E401", ModelSyntaxError, "this is a condition", "x < y"),
    (sp.true, "E401", ModelSyntaxError, "this is a condition", "True"),
    (sp.Tuple(x, y), "E401", ModelSyntaxError, "this is of kind Tuple", "(x, y)"),
    (X, "E401", ModelSyntaxError, "this is of kind IndexedBase", "x"),
    (sp.Matrix([x, y]), "E401", ShapeError, "a matrix of 2 x 1", "Matrix([[x], [y]])"),
    (A * B, "E401", ShapeError, "a matrix of n x n", "A*B"),
    (x + sp.I * y, "E403", DomainError, "`I` is not a real number", "I"),
    (x * z, "E403", DomainError, "`z` is declared not to be a real number", "z"),
    (sp.Symbol("w", imaginary=True), "E403", DomainError, "not to be a real number", "w"),
    (x * sp.Symbol("u", commutative=False), "E403", DomainError, "does not commute", "u"),
    (sp.conjugate(x) * x, "E403", DomainError, "complex ones", "conjugate(x)"),
    (sp.re(x), "E403", DomainError, "complex ones", "re(x)"),
    (sp.Trace(Q.adjoint() * Q), "E403", DomainError, "complex ones", "Adjoint(Q)"),
    (x * (-1) ** sp.Rational(1, 3), "E403", DomainError, "a power is not", "(-1)**(1/3)"),
    (n**2, "E403", DomainError, "`n` is declared as an integer", "n"),
    (x + sp.Function("f")(y), "E404", ModelSyntaxError, "`f` has no formula", "f(y)"),
    (sp.Derivative(x**2, x), "E404", MissingRule, "Derivative is not", "Derivative(x**2, x)"),
    (sp.Integral(x, (x, 0, y)), "E404", MissingRule, "Integral is not", "Integral(x, (x, 0, y))"),
    (sp.DiracDelta(x), "E404", MissingRule, "DiracDelta is not a function", "DiracDelta(x)"),
    (sp.Heaviside(x) * x, "E404", MissingRule, "jumps", "Heaviside(x)"),
    (sp.floor(x), "E404", MissingRule, "jumps", "floor(x)"),
    (sp.zeta(x) + 1, "E404", MissingRule, "`zeta` has no rule", "zeta(x)"),
    (sp.O(x), "E404", MissingRule, "limits and orders", "O(x)"),
    (sp.Lambda(x, x**2), "E404", MissingRule, "apply it to its arguments", "Lambda(x, x**2)"),
    (sp.Poly(x**2), "E404", MissingRule, "poly.as_expr()", "Poly(x**2, x, domain='ZZ')"),
    (sp.Trace(Q[:1, :1]), "E404", MissingRule, "`MatrixSlice` has no rule", "Q[:1, :1]"),
    (X[i] ** 2, "E406", ModelSyntaxError, "no Sum binds the index `i`", "i"),
    (X[Idx("k")], "E406", ModelSyntaxError, "no Sum binds the index `k`", "k"),
    (sp.Sum(X[i**2], (i, 0, 3)), "E406", ModelSyntaxError, "may contain indices", "i**2"),
    (sp.Sum(X[i], (i, 0, n / 2)), "E406", ModelSyntaxError, "may contain indices", "n/2"),
    (sp.Sum(X[sp.Float("0.5")], (i, 0, 3)), "E406", ModelSyntaxError, "whole numbers", "0.5"),
    (sp.Sum(X[i - 1], (i, 0, 3)), "E407", ShapeError, "takes -1 to 2", "x[i - 1]"),
    (Q[0, 0] + sp.Sum(Q[i, 1], (i, 0, 2)), "E407", ShapeError, "takes 0 to 2", "Q[i, 1]"),
    (sp.Sum(X[i], (i, 0, sp.oo)), "E408", ModelSyntaxError, "infinite", "Sum(x[i], (i, 0, oo))"),
    (sp.Sum(X[i], (i, 3, 1)), "E408", ShapeError, "from 3 to 1", "Sum(x[i], (i, 3, 1))"),
    (X[0] + X[1, 2], "E409", ShapeError, "indices elsewhere", "x["),
    (
        sp.Sum(X[i], (i, 0, n - 1)) + sp.Sum(X[j], (j, 0, m - 1)),
        *("E409", ShapeError, "state its shape", "x["),
    ),
    (sp.Trace(A.T * B), "E410", ShapeError, "a square matrix, not [m, n]", "A.T*B"),
    (sp.Trace(A.T * B * A), "E410", ShapeError, "[m, n] and [m, n] do not fit", "A.T*B*A"),
    (sp.Trace(A), "E410", ShapeError, "a square matrix, not [n, m]", "A"),
    (sp.Trace((A + B) * A), "E410", ShapeError, "[n, m] and [m, n] do not fit", "A + B"),
    (sp.Trace(Q ** sp.Symbol("k")), "E410", MissingRule, "a whole exponent", "Q**k"),
    (sp.exp(Q), "E410", ShapeError, "a number is expected", "exp(Q)"),
    (sp.Sum(i * Q, (i, 0, 2)), "E410", ShapeError, "a number is expected", "Sum(i*Q, (i, 0, 2))"),
    (sp.Piecewise((x, x > 0)), "E411", ModelSyntaxError, "(value, True)", "Piecewise((x, x > 0))"),
    (sp.Piecewise((x, b), (0, True)), "E411", ModelSyntaxError, "`b` is a number", "(x, b)"),
    (
        sp.Piecewise((sp.sin(x) / x, sp.Ne(x, 0)), (1, True)),
        *("E411", ModelSyntaxError, "`x` only holds at isolated points", "Ne(x, 0)"),
    ),
    (sp.Max(x, y) + sp.oo, "E412", DomainError, "not a finite number", "oo"),
    (sp.nan, "E412", DomainError, "not a finite number", "nan"),
    (x * 10**400, "E412", DomainError, "exceeds the largest double", "1000"),
    (x * sp.Float("1e400"), "E412", DomainError, "exceeds the largest double", "1"),
]


@pytest.mark.parametrize(
    ("expr", "code", "kind", "says", "shows"), PARTS, ids=[str(part[0])[:40] for part in PARTS]
)
def test_parts(expr: sp.Basic, code: str, kind: type[SlomodelError], says: str, shows: str) -> None:
    with pytest.raises(kind) as caught:
        compile(expr)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == code
    assert says in str(caught.value)
    assert diagnostic.span is not None
    assert diagnostic.span.text.startswith(shows)


# expression, options, code, what the message says
NAMES = [
    (x + sp.Symbol("x", real=True), {}, "E402", "`x` names two objects"),
    (sp.Symbol("x", real=True), {"variables": [x]}, "E402", "`x` names two objects"),
    (x + X[0], {}, "E402", "IndexedBase('x')"),
    (sp.Trace(Q) + sp.Symbol("Q"), {}, "E402", "MatrixSymbol('Q') of shape (2, 2)"),
    (sp.Integer(3), {}, "E405", "the model has no variable"),
    (x**2, {"data": {"x": 1.0}}, "E405", "the model has no variable"),
    (x + y, {"variables": [x]}, "E405", "`y` is neither in variables= nor given"),
    (X[0] + X[1], {"variables": [X[0], X[1]]}, "E405", "give the whole array"),
    (x + y, {"variables": [x, y, "x"]}, "E405", "`x` occurs twice"),
    (x + y, {"variables": [x, y], "data": {"y": 1}}, "E405", "and it is data"),
    (sp.Sum(X[i], (i, 0, n)), {"data": {"n": 3}}, "E405", "give it in dims="),
    (sp.Sum(X[i], (i, 0, n)), {"variables": ["x", "n"]}, "E405", "and it is a size"),
    (x + Y[0], {"dims": {"y": 3}}, "E405", "and a size is a number"),
    (x, {"variables": [x, Y]}, "E409", "the shape of `y` is unknown"),
    (x**2, {"data": {"w": 1.0}}, "E309", "the model has no data `w`"),
    (x**2, {"dims": {"w": 1}}, "E309", "the model has no dim `w`"),
]


@pytest.mark.parametrize(("expr", "options", "code", "says"), NAMES, ids=lambda v: str(v)[:30])
def test_names(expr: sp.Basic, options: dict[str, object], code: str, says: str) -> None:
    with pytest.raises(SlomodelError) as caught:
        compile(expr, **options)
    assert caught.value.diagnostics[0].code == code
    assert says in str(caught.value)


def test_a_whole_message() -> None:
    with pytest.raises(ShapeError) as caught:
        compile(sp.Sum(X[i] * Y[i], (i, 0, n)), data={"y": np.zeros(3)}, dims={"n": 3})
    assert str(caught.value).splitlines() == [
        "error[E407]: an index takes 0 to 3, and its axis has positions 0 to 2",
        "  --> <SymPy expression>:1:1",
        " 1 | y[i]",
        "   | ^^^^",
        " help: arrays count from 0, and a Sum includes its upper limit: "
        "end it at the size minus 1",
    ]


def test_a_long_part_is_shortened() -> None:
    long = sp.Add(*sp.symbols("x0:500"))
    with pytest.raises(MissingRule) as caught:
        compile(sp.zeta(long))
    assert "1 | zeta(…)" in str(caught.value)
    with pytest.raises(ModelSyntaxError, match=r"x\d+ \+ … \(500 operands\) < 0|StrictLess"):
        compile(long < 0)


def test_a_deep_part_is_shortened() -> None:
    deep = x
    for _ in range(1000):
        deep = sp.sin(deep) + y
    with pytest.raises(MissingRule, match=r"zeta\(…\)"):
        compile(sp.zeta(deep))


@pytest.mark.parametrize("source", [[x, y], {"f": x}, 3, 2.5, None])
def test_other_objects(source: object) -> None:
    with pytest.raises(DomainError, match=r"a SymPy expression, not an object of"):
        compile(source)


def test_text_declares_its_own_variables() -> None:
    with pytest.raises(DomainError, match="variables= is for SymPy expressions"):
        compile("var x[3] minimize sumsq(x)", [x])


@pytest.mark.parametrize("name", ['__import__("os").abort()', "{0}", "a'b", 'a"', "# x", "", "v0"])
def test_no_name_is_run(name: str) -> None:
    symbol = sp.Symbol(name)
    assert compile(symbol**2).value([3.0]) == 9.0
    assert compile(symbol * x, [x], data={name: 2.0}).value([3.0]) == 6.0
    assert compile(sp.Sum(Y[i], (i, 0, symbol - 1)), dims={name: 2}).value([3.0, 4.0]) == 7.0


@pytest.mark.parametrize(
    "name", ['"""\nraise SystemExit\n"""', "x\ny", "x\0", "\ud800", r"\xi", r"\lambda", "x\\", "\\"]
)
def test_names_end_neither_comments_nor_docstrings(name: str) -> None:
    symbol = sp.Symbol(name)
    array, matrix = sp.IndexedBase(name), sp.MatrixSymbol(name, 1, 1)
    assert compile(symbol**2).gradient([3.0]) == [6.0]
    assert compile(array[0] ** 2).gradient([3.0]) == [6.0]
    assert compile(matrix[0, 0] * x, [x], data={name: [[2.0]]}).gradient([3.0]) == [2.0]
    assert compile(sp.Sum(Y[i], (i, 0, symbol - 1)), dims={name: 2}).value([3.0, 4.0]) == 7.0
    assert ast.parse(compile(symbol**2).source())
