"""Errors of elaboration: each is reported once, with code, position and remedy."""

from collections.abc import Callable

import pytest

from slomodel.errors import (
    MissingRule,
    ModelSyntaxError,
    ShapeError,
    SlomodelError,
    SourceText,
    Span,
)
from slomodel.front.elaboration import evaluation as steps
from slomodel.front.elaboration.elaborate import elaborate
from slomodel.front.text.parse import parse
from tests.front.elaborated import DECLARED, error_of

# model after the declarations with the place of the message, code, words of it
CASES = [
    ("minimize sum(¦xx)", "E201", "did you mean `x`?"),
    ("minimize sum(¦later) let later = x", "E201", "used before it is declared"),
    ("let ¦x = 2 minimize c", "E202", "`x` is a variable since line 3"),
    ("let q = c fn ¦q(t) = t minimize q", "E202", "declared twice"),
    ("fn ¦exp(t) = t minimize c", "E202", "a function of the language"),
    ("fn f(t, ¦t) = t minimize c", "E202", "two parameters"),
    ("minimize sum(z[i] for ¦z in n)", "E202", "`z` is data"),
    ("minimize sum(x[i] for i in n, ¦i in n)", "E202", "two indices"),
    ("minimize sum(sum(x[i] for ¦i in n) for i in n)", "E202", "already bound here"),
    ("minimize ¦softpls(c)", "E203", "did you mean `softplus`?"),
    ("minimize ¦norm(B)", "E203", "fro(A)"),
    ("minimize ¦x(3)", "E203", "missing `*`?"),
    ("minimize ¦range(3)", "E203", "follow `in`"),
    ("fn f(t) = t minimize ¦f + c", "E203", "write `f(…)`"),
    ("minimize sumsq(A @ x ¦- z)", "E204", "did you mean `data z[m]`?"),
    ("minimize sumsq(X' ¦- A)", "E204", "did you mean `A'`?"),
    ("minimize sum(X ¦+ y)", "E204", "write `y[:, None]`"),
    ("minimize sum(y ¦* A @ x)", "E204", "did you mean `y .* (A @ x)`?"),
    ("minimize ¦max(x, y)[0]", "E204", "`max` needs equal shapes"),
    ("minimize sum(where(x ¦> y, x, x))", "E204", "[n] and [m]"),
    ("minimize sum(x ¦.^ y)", "E204", "[n] and [m]"),
    ("data g[n] in m minimize sum(exp(y ¦+ 2 * x))", "E204", "did you mean `y[g]`?"),
    ("minimize sum(w ¦+ x)", "E204", "[3] and [n]"),
    ("minimize sum(A ¦@ s)", "E205", "write `s * A`"),
    ("minimize sum((A @ x) ¦@ s)", "E205", "write `s * (A @ x)`"),
    ("minimize sum(A' ¦@ x)", "E205", "did you mean `A`?"),
    ("minimize sum(A ¦@ y)", "E205", "did you mean `A'`?"),
    ("minimize sum(T ¦@ u)", "E205", "sums over the last axis"),
    ("minimize sum(B ¦* C)", "E206", "write `B .* C` for the elementwise or `B @ C`"),
    (
        "minimize sum(1 ¦/ B)",
        "E206",
        "write `1 ./ B` for the elementwise quotient or `1 * inv(B)`",
    ),
    (
        "minimize sum(B ¦/ C)",
        "E206",
        "write `B ./ C` for the elementwise quotient or `B @ inv(C)`",
    ),
    ("minimize sum(B¦^2)", "E206", "write `B .^ 2` for elementwise powers or `B @ B`"),
    ("minimize x @ x¦'", "E207", "write `dot(x, x)` or `outer(x, x)`"),
    ("minimize sum(x¦' + z)", "E207", "left operand of `@`"),
    ("minimize x¦' * z", "E207", "left operand of `@`"),
    ("minimize sum(B @ x¦')", "E207", "write `B @ x`"),
    ("minimize sum(T¦')", "E207", "einsum"),
    ("minimize ¦huber()", "E208", "takes 1 or 2 arguments, and 0 are given"),
    ("minimize ¦exp(c, c)", "E208", "takes 1 argument, and 2 are given"),
    ("minimize huber(c, ¦d=1)", "E208", "no argument `d`"),
    ("minimize huber(c, 1, ¦delta=1)", "E208", "given twice"),
    ("minimize where(¦c, 1, 2)", "E208", "where(x > 0, a, b)"),
    ("minimize exp(¦c > 0)", "E208", "not a condition"),
    ("minimize sum(x, axis=¦1)", "E208", "there is no axis 1 in an array of 1"),
    ('minimize einsum(¦"i,j", x, x)', "E208", "`->`"),
    ('minimize einsum(¦"i->ii", x)', "E208", "twice in the result"),
    ("minimize ¦A[0, 0, 0]", "E209", "one index for each axis"),
    ("minimize ¦c[0]", "E209", "scalar"),
    ("minimize x[¦0.5]", "E209", "not a whole number"),
    ("minimize x[¦s]", "E209", "`s` is an index here"),
    ("minimize sum(x[¦sqrt(i)] for i in n)", "E209", "is more than that"),
    ("minimize sum(sum(x[j] for j in range(¦c)) for i in n)", "E212", "`c` bounds a range"),
    ("minimize x[¦n]", "E210", "the index reaches n"),
    ("minimize w[¦-4]", "E210", "the index reaches -1"),
    ("minimize sum(x[¦i+1] for i in n)", "E210", "`i in range(n - 1)`"),
    ("minimize sum(w[¦1:5])", "E210", "leaves an axis of size 3"),
    (
        "minimize sum(A[¦i, j] for i in n, j in n)",
        "E211",
        "`i` runs over `n`, and this axis is `m`",
    ),
    ("minimize sum(x[i] for i in ¦x[0])", "E212", "write `range(x[0])`"),
    ("minimize ¦exp(x[i] for i in n)", "E212", "does not take `for`"),
    ("minimize ¦mean(w[i] for i in range(1, 1))", "E212", "mean of no elements"),
    ("minimize ¦A @ x", "E213", "did you mean `sum(A @ x)` or `sumsq(A @ x)`?"),
    (
        "minimize ¦c - 2*mean(x - x[i] for i in n)",
        "E213",
        "the terms of `mean(… for i in …)` are arrays: index all that stands in them",
    ),
    ("let q = c¦", "E214", "no objective"),
    ("minimize c ¦maximize c", "E214", "one objective"),
    ("data q = ¦s minimize c", "E216", "number"),
    ("data q = ¦1/0 minimize c", "E216", "finite"),
    ("data q[¦l] minimize c", "E217", "`dim l`"),
    ("data q[¦s] minimize c", "E217", "`s` is data"),
    ("data q[m, n] ¦symmetric minimize c", "E217", "one dim on all axes"),
    ("dim q = ¦-1 minimize c", "E217", "a size"),
    ("var q init ¦unform minimize q", "E218", "did you mean `uniform`?"),
    ("var q[3] init ¦eye minimize sum(q)", "E218", "a matrix"),
    ("var q[3] init ¦z minimize sum(q)", "E218", "equal"),
    ("var q init ¦c minimize q", "E218", "a start is"),
    ("var q init ¦uniform(1, 0) minimize q", "E218", "uniform(0, 1)"),
    ("¦check c > 0 minimize c", "E219", "declare its set"),
    ("minimize where(c ¦== 0, 1, c)", "E219", "isolated points"),
    ("minimize ¦norm2(B)", "E220", "fro(A)"),
    ("minimize ¦trace(A)", "E220", "not [m, n]"),
    ("minimize ¦sum(c)", "E220", "for i in n"),
    ("minimize ¦dot(A, A)", "E220", "two vectors"),
    ("minimize sum(¦reshape(w, 2, 2))", "E220", "as many elements"),
    ('minimize sum(¦einsum("ij,j->i", A, y))', "E220", "`j` stands for `n` and for `m`"),
    ("fn f(t) = ¦f(t - 1) minimize f(c)", "E222", "calls itself"),
    ("fn f(t) = ¦g(t) fn g(t) = h(t) fn h(t) = 1 + f(t) minimize f(c)", "E222", "`f` calls `g`, w"),
    ("fn f(t) = ¦g(t) fn g(t) = t^2 minimize f(c)", "E201", "is used before it is declared"),
    ("fn f(t) = ¦t * z minimize sum(f(x))", "E222", "one number per element"),
    ("minimize sum(¦sort(x))", "E250", "derivatives jump"),
    ("minimize ¦prod(c)", "E220", "for i in n"),
    ("minimize ¦max(zeros(0))", "E212", "the max of no elements"),
    ("minimize ¦logsumexp(c)", "E220", "takes an array"),
    ("minimize sum(¦softmax(x, axis=None))", "E208", "needs one axis"),
]


@pytest.mark.parametrize(("marked", "code", "words"), CASES, ids=[case[0] for case in CASES])
def test_one_message_in_the_right_place(marked: str, code: str, words: str) -> None:
    at = len(DECLARED) + marked.index("¦")
    error = error_of(DECLARED + marked.replace("¦", ""))
    found = [(d.code, d.span.start if d.span else None) for d in error.diagnostics]
    assert found == [(code, at)]
    assert words in str(error)


KINDS: list[tuple[str, type[SlomodelError]]] = [
    ("minimize sum(xx)", ModelSyntaxError),
    ("minimize sum(x + y)", ShapeError),
    ("minimize sort(x)", MissingRule),
    ("minimize sum(x + y) check xx > 0", ModelSyntaxError),
]


@pytest.mark.parametrize(("text", "kind"), KINDS)
def test_kind_of_error(text: str, kind: type[SlomodelError]) -> None:
    assert type(error_of(DECLARED + text)) is kind


def test_independent_mistakes_are_reported_once_each_and_what_follows_is_not() -> None:
    text = """dim n
data A[n, q], y[n]
var x[n], x
let r = A @ x - y
let t = y + zz
let u = t + r
fn f(a) = a + bb
minimize sum(f(u)) + sum(r)
"""
    error = error_of(text)
    found = [(d.code, d.span.line) for d in error.diagnostics if isinstance(d.span, Span)]
    assert found == [("E217", 2), ("E202", 3), ("E201", 5), ("E201", 7)]


def test_no_variables() -> None:
    assert "E215" in str(error_of("data a minimize a"))


def test_functions_that_grow_without_bound_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MOST_EXPANDED", 3_000)
    lines = ["var x", "fn f0(t) = t + t^2"]
    lines += [f"fn f{k}(t) = f{k - 1}(f{k - 1}(t))" for k in range(1, 60)]
    assert "E223" in str(error_of("\n".join([*lines, "minimize f59(x)"])))


def test_golden_shapes(golden: Callable[[str, str], None]) -> None:
    text = "dim m, n\n\n\ndata A[m, n], y[n]\nvar x[n]\nminimize sumsq(A @ x - y)\n"
    golden("shape_mismatch.txt", str(error_of(text)) + "\n")


def test_golden_several(golden: Callable[[str, str], None]) -> None:
    text = (
        "model many\ndim n, m\ndata A[n, n], b[m]\nvar x[n]\n"
        "let r = A * A\nlet s = sum(x[i] * b[i] for i in n)\n"
        "let t = norm2(A @ x + bb)\nminimize A @ x\n"
    )
    golden("several_mistakes.txt", str(error_of(text)) + "\n")


def test_a_dim_that_is_not_declared_is_reported_once() -> None:
    text = "data X[N, d] data y[N] var w[d], v[N] minimize sumsq(X @ w - y) + sumsq(v)"
    with pytest.raises(ModelSyntaxError) as caught:
        elaborate(parse(SourceText(text)), SourceText(text))
    told = [(one.code, one.span and one.span.start) for one in caught.value.diagnostics]
    assert told == [("E217", text.index("N")), ("E217", text.index("d], v"))]
