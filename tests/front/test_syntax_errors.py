"""Syntax errors: code, position and words of each message, and no further messages."""

import random
import re
from collections.abc import Callable

import pytest

from slomodel.errors import Diagnostic, ModelSyntaxError, SourceText
from slomodel.front.text.parse import parse
from slomodel.front.text.syntax import STATEMENTS

RESERVED = (*STATEMENTS, "init", "from", "for", "in", "if", "and", "or", "not", "None")


def problems(text: str) -> list[tuple[str, int, int]]:
    """Code, line and column of each message."""
    with pytest.raises(ModelSyntaxError) as caught:
        parse(SourceText(text, "m.slo"))
    found = caught.value.diagnostics
    return [(d.code, d.span.line, d.span.column) for d in found if d.span is not None]


def message(text: str) -> str:
    with pytest.raises(ModelSyntaxError) as caught:
        parse(SourceText(text, "m.slo"))
    return str(caught.value)


# The text, where `¦` marks the place; the code; words of the message.
CASES = [
    ("minimize¦", "E101", "expected an expression, found the end of the model"),
    ("minimize x +¦   # a comment\n\n", "E101", "found the end of the model"),
    ("minimize x + ¦* y", "E101", "expected an expression, found `*`"),
    ("let y = x +\n¦let z = 3", "E101", "expected an expression, found `let`"),
    ("let ¦3 = x", "E101", "expected a name, found `3`"),
    ("let y ¦x", "E101", "expected `=` or `[`, found `x`"),
    ("let f¦(t) = t", "E101", "fn name(t)"),
    ("let y =¦= 3", "E101", "written with one `=`"),
    ("let y = x /¦/ 3", "E101", "a comment begins with `#`"),
    ("dim n¦[3]", "E101", "expected `,`, `=` or a new statement, found `[`"),
    ("data A[n*¦n]", "E101", "expected a number, found `n`"),
    ("let C[i in n ¦j in m] = 3", "E101", "expected `,` or an operator, found `j`"),
    ("let y = sum(x for ¦3 in n)", "E101", "expected a name"),
    ("check¦ ", "E101", "expected an expression"),
    ("check x¦", "E101", "a comparison"),
    ("let y = where(a > 0 and¦, 1, 2)", "E101", "expected an expression"),
    ("let y = where(a ¦and b, 1, 2)", "E117", "compare the number"),
    ("check a ¦and b > 0", "E117", "compare the number"),
    ('let y = where(g[i] == ¦"A", 1, 2)', "E101", "labels are compared by their positions"),
    ("let y = x ¦$ 1", "E102", "`$` is not part"),
    ("let y = x ¦& z", "E102", "write `and`"),
    ("let y = x ¦\u00a0 z", "E102", r"`\u00a0` (U+00A0 NO-BREAK SPACE)"),
    ("let y = x ¦\0 z", "E102", r"`\u0000`"),
    ("let ¦lambda = 3", "E103", "call it `lam`"),
    ("let y = ¦lambda + 1", "E103", "`lambda` is a reserved word"),
    ("let y = x + ¦data", "E103", "`data_`"),
    ("var ¦init[3]", "E103", "`init` is a reserved word"),
    ("let y = sum(a for ¦in in n)", "E103", "`in` is a reserved word"),
    ("¦minmize x", "E104", "did you mean `minimize`?"),
    ("var x\n¦minmize x", "E104", "did you mean `minimize`?"),
    ("let y = x; ¦Check y > 0", "E104", "did you mean `check`?"),
    ("¦parameter A", "E104", "given numbers are declared by `data`"),
    ("¦quux x", "E104", "statements begin with `model`"),
    ("¦y = 3", "E104", "`let y = …`"),
    ("let x = 3\n¦y[i in n] = x", "E104", "`let y = …`"),
    ("let y = (a + b\n¦let z = 3", "E105", "opened at 1:9"),
    ("let y = f(a, [¦", "E101", "expected an expression"),
    ("minimize sum([x[i] ¦for i in n])", "E115", "`sum(x[i] for i in n)`"),
    ("let y = [x[i] ¦for i in n]", "E115", "let y[i in n]"),
    ("fn f(t) = let a = t ¦minimize f(x)", "E101", "ends with `return`, before `minimize`"),
    ("fn f(t) = let a = t¦", "E101", "ends with `return`, before the end"),
    ("fn f(t) = t^2 ¦return t", "E103", "`fn f(t) = t^2`"),
    ("let a = 2 ¦return a", "E103", "let a = t^2 return"),
    ("var x¦[...] minimize sumsq(x)", "E123", "only a parameter"),
    ("data x¦[...] minimize sumsq(x)", "E123", "only a parameter"),
    ("minimize sum(x[i ¦for i in n)", "E105", "`[` is not closed before `for`"),
    ("let y = A[1, (2 + 3¦  \n\n", "E105", "`(` is not closed before the end of the model"),
    ("let y = (a + b¦; let z = 1", "E105", "`(` is not closed before `;`"),
    ("fn f(x ¦= x", "E105", "`(` is not closed before `=`"),
    ("minimize x¦)", "E106", "unmatched `)`"),
    ("minimize (x¦]", "E106", "`(` is closed by `]`"),
    ("let y = ¦0x10", "E107", "numbers are decimal"),
    ("let y = ¦1__0", "E107", "between two digits"),
    ("let y = ¦1_", "E107", "between two digits"),
    ("let y = ¦1.5_ + 2", "E107", "between two digits"),
    ("let y = ¦1.2.3", "E107", "a second point"),
    ("let y = ¦2e + 1", "E107", "the exponent lacks its digits"),
    ("let y = ¦1e999", "E107", "64-bit float"),
    ("let y = ¦1e-999", "E107", "64-bit float"),
    ("let y = 2¦x", "E108", "write `2 * x`"),
    ("let y = 2 ¦x", "E108", "write `2 * x`"),
    ("let y = 3¦(a+b)", "E108", "write `3 * (a+b)`"),
    ("let y = x[i] ¦(a+b)", "E108", "write `x[i] * (a+b)`"),
    ("minimize sum(x[i] ¦format in n)", "E108", "`x[i]` and `format`"),
    ("let y = x¦² + 1", "E109", "write `x^2`"),
    ("let y = x ¦− 1", "E109", "U+2212 MINUS SIGN"),
    ("let y = x¦−1", "E109", "write `x-1`"),
    ("let ¦٣ = 1", "E109", "digits are 0 to 9"),
    ("let y = x ¦\u200b+ 1", "E109", "ZERO WIDTH SPACE"),
    ('let y = einsum(¦"ij', "E110", "lacks its closing"),
    ("let y = einsum(¦'ij', A)", "E110", "double quotes"),
    ("check a < b ¦< c", "E111", "a < b and b < c"),
    ("let y = where(a < b ¦<= c, 1, 2)", "E111", "do not chain"),
    ("var x\nminimize x\n¦x >= 0", "E112", "subject to"),
    ("minimize x ¦subject x >= 0", "E112", "subject to"),
    ("minimize x\n¦s.t. x >= 0", "E112", "subject to"),
    ("minimize x ¦>= 0", "E112", "subject to"),
    ("minimize x¦, x >= 0", "E112", "subject to"),
    ("var x\n¦0 <= x", "E112", "subject to"),
    ("var ¦x, y > 0", "E128", "write `var x` and `var y > 0` as two statements"),
    ("var x in (0, 1¦] minimize x", "E128", "write `in (lo, hi)`"),
    ("var x in ¦]0, 1[ minimize x", "E128", "write `in (lo, hi)`"),
    ("var ¦0 <= x <= 1", "E128", "var x in [0, 1]"),
    ("var x > 0 ¦< 1", "E128", "`x in (0, 1)`"),
    ("var x >= 0 ¦and x <= 1", "E128", "`x in [0, 1]`"),
    ("var x >= 0, ¦<= 1", "E128", "`x in [0, 1]`"),
    ("var x init 1 ¦> 0", "E128", "`var x > 0 init 1`"),
    ("var x init 1 ¦in (0, 1)", "E128", "`var x > 0 init 1`"),
    ("var x ¦== 3", "E128", "model.fix(x=…)"),
    ("var x ¦!= 3", "E128", "a set is"),
    ("var x in ¦0", "E101", "a set is `(lo, hi)`"),
    ("let y = f(a¦, )", "E113", "unexpected comma before `)`"),
    ("let y = x[1¦,]", "E113", "unexpected comma before `]`"),
    ("data A[m]¦,\nvar x", "E113", "unexpected comma before `var`"),
    ("var x¦,", "E113", "unexpected comma before the end of the model"),
    ("let y = x[::2¦:3]", "E114", "two colons"),
    ("let y = A[0, 1:n:2¦:]", "E114", "two colons"),
    ("let y = sum(a for i in n ¦for j in m)", "E115", "for i in n, j in m"),
    ("let y = sum(a for i in n if i < 3¦, j in m)", "E116", "last iteration"),
    ("let y = x ¦> 0", "E117", "a if condition else b"),
    ("let y = (x ¦> 0) * 2", "E117", "a if condition else b"),
    ("let y = x ¦and z", "E117", "`and` makes a condition"),
    ("data A[m] ¦symetric", "E118", "did you mean `symmetric`?"),
    ("data A[m]\n¦minmize f(x)", "E118", "did you mean `minimize`?"),
    ("data A[m] ¦B[n]", "E118", "separated by `,`"),
    ("let a = 1 ¦model foo", "E120", "`model` must come first"),
    ("¦", "E121", "the model is empty"),
    ("¦ ; # nothing\n", "E121", "the model is empty"),
    ("check a ¦= 3", "E122", "compare with `==`"),
    ("let y = sum(a for i in n if i ¦= 3)", "E122", "compare with `==`"),
    ("data ¦yield[n]", "E103", '`data yield_[n] from "file.csv:yield"`'),
    ("data x[n], ¦class[n]", "E103", '`data class_[n] from "file.csv:class"`'),
    ("var x ¦= 3", "E122", "`init`"),
    ("let h[t ¦= 1:T] = a[t]", "E122", "`t in range(a, b)`"),
    ("let h[s in S, t ¦= 0] = a[t]", "E122", "`t in T` runs over a dim"),
    ("let h[t in 1¦:T] = a[t]", "E101", "`let y[i in range(1, n)] = …`"),
    ("var mu[K] ¦ordered", "E101", "write `in ordered`"),
    ("var a, p[K] ¦simplex init 1", "E101", "write `in simplex`"),
    ("data A[¦2.5]", "E123", "`2.5` is not a size"),
    ("data A[n + ¦1e3]", "E123", "a sum of dims, times whole numbers"),
    ("data A[¦9999999999999999]", "E123", "is not a size"),
    ("minimize x ¦if y > 0", "E124", "a if condition else b"),
    ("let y = sum(x ¦if y > 0 for i in 3)", "E124", "a if condition else b"),
    ("subject to x ¦if y > 0 else 1 <= 2", "E124", "parentheses"),
    ("let y = sum(axis=3, ¦b)", "E125", "without a name"),
    ("let y = A¦.shape", "E126", "is its dim"),
    ("let y = A¦.'", "E126", "`.T`"),
]


@pytest.mark.parametrize(("marked", "code", "words"), CASES)
def test_one_message_in_the_right_place(marked: str, code: str, words: str) -> None:
    at = marked.index("¦")
    text = marked.replace("¦", "")
    line, column = marked[:at].count("\n") + 1, at - (marked.rfind("\n", 0, at) + 1) + 1
    assert problems(text) == [(code, line, column)]
    assert words in message(text)
    crlf = text.replace("\n", "\r\n")
    assert problems(crlf) == [(code, line, column)]


def test_independent_mistakes_are_reported_once_each_in_order() -> None:
    text = """model many
data A[m, n] symetric
var x[n], lambda
let y = 2x
let z = (A @ x
let w = y² + 1
minimize sumsq(z) + sum(y for i in n for j in m)
"""
    codes = [("E118", 2, 14), ("E103", 3, 11), ("E108", 4, 10)]
    assert problems(text) == [*codes, ("E105", 6, 1), ("E109", 6, 10), ("E115", 7, 38)]


def test_messages_are_at_most_ten() -> None:
    assert len(problems("let y = 2x\n" * 50)) == 10


def test_position_in_the_middle_of_a_long_model() -> None:
    text = "var x\n" + "let y = x + 1\n" * 500 + "minimize y + + * x"
    assert problems(text) == [("E101", 502, 16)]


def test_golden_unclosed(golden: Callable[[str, str], None]) -> None:
    text = "var x[n]\nlet y = sumsq(A @ (x - 1)\nminimize y + 2x\n"
    golden("syntax_errors.txt", message(text) + "\n")


WORDS = "x y A sum range lambda symmetric 1 2.5 .5 1_ 0x1 ² − ' .T .* ./ .^ ** ^ * / @ + -"
MARKS = '( ) [ ] , ; : = == < <= != " "ij->i" # $ . é'
ODD = ["\n", "\r\n", "\0", "\ufeff", "\ud800"]
PIECES = [*RESERVED, *WORDS.split(" "), *MARKS.split(" "), *ODD]


@pytest.mark.parametrize("seed", range(20))
def test_any_text_gives_a_tree_or_messages_with_places(seed: int) -> None:
    choose = random.Random(seed)
    for _ in range(60):
        glue = choose.choice(["", " ", " ", "\n"])
        text = glue.join(choose.choices(PIECES, k=choose.randrange(1, 25)))
        for diagnostic in diagnostics(text):
            assert re.fullmatch(r"E1\d\d", diagnostic.code)
            assert diagnostic.span is not None
            assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(text)
            assert diagnostic.render().count("\n") >= 3


def diagnostics(text: str) -> tuple[Diagnostic, ...]:
    """The messages about a text; none if it is a model."""
    try:
        parse(SourceText(text))
    except ModelSyntaxError as error:
        return error.diagnostics
    return ()
